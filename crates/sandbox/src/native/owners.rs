//! A user namespace in which somebody's files are another's.
//!
//! Where the kernel is root and the project is root's, the sandbox's user is somebody who owns nothing. Mounts
//! made with this namespace show the owner's files as that user's, and everybody else's as they are.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::WaitOptions;

use super::init::{Broken, Step};
use super::spec::Owner;
use super::sys::{self, Side};

/// Makes the namespace in which the files of a user and group are this owner's.
pub(super) fn make((uid, gid): (u32, u32), owner: Owner) -> Result<OwnedFd, Broken> {
    let step = "making the namespace of owners";
    let (made, ready) = pipe_with(PipeFlags::CLOEXEC).step(step)?;
    let (wait, done) = pipe_with(PipeFlags::CLOEXEC).step(step)?;
    match sys::fork().step(step)? {
        Side::Child(()) => {
            drop((made, done));
            // The other side reads nothing if this fails, and says so.
            if sys::leave(libc::CLONE_NEWUSER).is_ok() {
                let _gone = File::from(ready).write_all(&[1]);
            }
            let _end = File::from(wait).read(&mut [0]);
            sys::end(0)
        }
        Side::Parent(pid) => {
            drop((ready, wait));
            File::from(made).read_exact(&mut [0]).step(step)?;
            for (name, from, to) in [("uid_map", uid, owner.uid), ("gid_map", gid, owner.gid)] {
                let file = File::options().write(true).open(format!("/proc/{pid}/{name}"));
                // A map is written at once or not at all.
                let lines = lines(from, to);
                file.and_then(|mut file| file.write_all(lines.as_bytes())).step(step)?;
            }
            let made = File::open(format!("/proc/{pid}/ns/user")).step(step)?;
            drop(done);
            // The one child that this process waits for.
            let _reaped = rustix::process::wait(WaitOptions::empty());
            Ok(made.into())
        }
    }
}

/// One id is another, and all the rest are themselves. What cannot be said twice is left out: whoever has the other
/// id on disk is nobody.
fn lines(from: u32, to: u32) -> String {
    let mut lines = format!("{from} {to} 1\n");
    let (low, high) = (from.min(to), from.max(to));
    let between = low.saturating_add(1);
    for (first, end) in [(0, low), (between, high), (high.saturating_add(1), u32::MAX)] {
        if first < end {
            lines.push_str(&format!("{first} {first} {}\n", end.saturating_sub(first)));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_another_and_the_rest_are_themselves() {
        assert_eq!(lines(0, 9), "0 9 1\n1 1 8\n10 10 4294967285\n");
        assert_eq!(lines(5, 9), "5 9 1\n0 0 5\n6 6 3\n10 10 4294967285\n");
        assert_eq!(lines(9, 5), "9 5 1\n0 0 5\n6 6 3\n10 10 4294967285\n");
        assert_eq!(lines(7, 7), "7 7 1\n0 0 7\n8 8 4294967287\n");
    }
}
