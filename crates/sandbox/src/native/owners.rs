//! A user namespace in which the host's root is the sandbox's user.
//!
//! Where the kernel is root and the project is root's, the sandbox's user is somebody who owns nothing. Mounts
//! made with this namespace show root's files as that user's, and nobody else's.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::WaitOptions;

use super::init::{Broken, Step};
use super::spec::Owner;
use super::sys::{self, Side};

/// Makes the namespace. Nothing comes back in the process that was only needed to have it.
pub(super) fn make(owner: Owner) -> Result<Option<OwnedFd>, Broken> {
    let step = "making the namespace of owners";
    let (made, ready) = pipe_with(PipeFlags::CLOEXEC).step(step)?;
    let (wait, done) = pipe_with(PipeFlags::CLOEXEC).step(step)?;
    match sys::fork().step(step)? {
        Side::Child(()) => {
            drop((made, done));
            // The other side reads nothing if this fails, and says so.
            if sys::leave_users().is_ok() {
                let _gone = File::from(ready).write_all(&[1]);
            }
            let _end = File::from(wait).read(&mut [0]);
            Ok(None)
        }
        Side::Parent(pid) => {
            drop((ready, wait));
            File::from(made).read_exact(&mut [0]).step(step)?;
            for (name, id) in [("uid_map", owner.uid), ("gid_map", owner.gid)] {
                let file = File::options().write(true).open(format!("/proc/{pid}/{name}"));
                // A map is written at once or not at all.
                let line = format!("0 {id} 1");
                file.and_then(|mut file| file.write_all(line.as_bytes())).step(step)?;
            }
            let made = File::open(format!("/proc/{pid}/ns/user")).step(step)?;
            drop(done);
            // The one child that this process ever waits for.
            let _reaped = rustix::process::wait(WaitOptions::empty());
            Ok(Some(made.into()))
        }
    }
}
