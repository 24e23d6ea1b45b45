//! Who the kernel is, and the namespaces that are its own.
//!
//! An ordinary user stays who they are. The machine's root becomes the reserved user that owns nothing; mounts that
//! translate owners show it the files of whoever owns the project, the state and the rest as its own.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, fchown};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Gid, Uid, WaitOptions};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::native::cgroup::{Groups, Nest};
use crate::native::init::{Broken, Step as _};
use crate::native::owners;
use crate::native::payload;
use crate::native::sys::{self, Side};

use super::layout::Layout;
use super::mounts::{self, Over};
use super::system::{outside_id, reserved};

/// Who starts the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Somebody who is not root.
    Ordinary { uid: u32, gid: u32 },
    /// The machine's root.
    Root,
    /// Root in a namespace, and nobody else could be had.
    RootAlone,
}

/// Why it could not be done.
#[derive(Debug)]
pub(super) enum Failed {
    Step(Broken),
    /// A file system that cannot translate owners.
    Owners {
        path: PathBuf,
        source: io::Error,
    },
}

impl From<Broken> for Failed {
    fn from(broken: Broken) -> Self {
        Self::Step(broken)
    }
}

impl Form {
    pub(super) fn find() -> Result<Self, Broken> {
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        let step = "reading the map of users";
        let users = fs::read_to_string("/proc/self/uid_map").step(step)?;
        let whole = outside_id(&users, reserved().uid) == Some(reserved().uid);
        Ok(match uid {
            0 if whole => Self::Root,
            0 => Self::RootAlone,
            // Root by another name.
            _ if outside_id(&users, uid) == Some(0) => Self::RootAlone,
            _ => Self::Ordinary { uid, gid },
        })
    }

    /// User and group afterwards.
    pub(super) fn ids(self) -> (u32, u32) {
        match self {
            Self::Ordinary { uid, gid } => (uid, gid),
            Self::Root | Self::RootAlone => (reserved().uid, reserved().gid),
        }
    }
}

/// Leaves the machine's namespaces, lays the files out, and becomes the user. Gives what can be written, and what
/// cannot be had.
pub(super) fn leave(form: Form, layout: &Layout) -> Result<(Vec<PathBuf>, Vec<String>), Failed> {
    let groups = Groups::here().step("looking for control groups")?;
    let owner = (form == Form::Root).then(|| form.ids());
    let (nest, notes) = Nest::enter(&groups, owner);
    let writable = match form {
        Form::Ordinary { uid, gid } => as_ordinary(uid, gid, layout, &nest)?,
        Form::Root | Form::RootAlone => as_root(layout, &nest)?,
    };
    Ok((writable, notes))
}

/// Makes the groups that this process is in the top of what it sees of them, and gives where they are to be seen.
fn top(nest: &Nest) -> Result<Vec<Over>, Broken> {
    sys::leave(libc::CLONE_NEWCGROUP).step("making the namespace of control groups")?;
    nest.settle().step("handing controllers down")?;
    let over = |(from, to): (&Path, &Path)| Over { from: from.to_owned(), to: to.to_owned() };
    Ok(nest.places().map(over).collect())
}

const OWN: libc::c_int =
    libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;

fn as_ordinary(uid: u32, gid: u32, layout: &Layout, nest: &Nest) -> Result<Vec<PathBuf>, Failed> {
    sys::leave(OWN).step("making the namespaces")?;
    let lines = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{uid} {uid} 1")),
        ("gid_map", format!("{gid} {gid} 1")),
    ];
    for (name, line) in lines {
        write(&format!("/proc/self/{name}"), &line).step(&format!("writing {name}"))?;
    }
    let writable = mounts::lay_out(layout, &top(nest)?, None)?;
    payload::give_up_capabilities().step("giving up capabilities")?;
    Ok(writable)
}

fn as_root(layout: &Layout, nest: &Nest) -> Result<Vec<PathBuf>, Failed> {
    set_thread_groups(&[]).step("leaving the groups of root")?;
    sys::leave(libc::CLONE_NEWNS).step("making the namespaces")?;
    let mut owners = Owners::default();
    let writable = mounts::lay_out(layout, &top(nest)?, Some(&mut owners))?;
    map_from_outside()?;
    let (uid, gid) = (Uid::from_raw(reserved().uid), Gid::from_raw(reserved().gid));
    set_thread_res_gid(gid, gid, gid).step("becoming the kernel's group")?;
    // Before the right to empty it goes with root's name, as all others do.
    sys::empty_bounding_set().step("giving up capabilities")?;
    set_thread_res_uid(uid, uid, uid).step("becoming the kernel's user")?;
    payload::give_up_sets().step("giving up capabilities")?;
    Ok(writable)
}

/// Leaves for a user namespace that knows the reserved user and root, and mounts that are copies of those laid out
/// and locked. Only somebody who stays outside may map two users: a child, which ends.
fn map_from_outside() -> Result<(), Broken> {
    let step = "mapping the kernel's user";
    let (left, gone) = pipe_with(PipeFlags::CLOEXEC).step(step)?;
    let (mapped, done) = pipe_with(PipeFlags::CLOEXEC).step(step)?;
    let own = std::process::id();
    match sys::fork().step(step)? {
        Side::Child(()) => {
            drop((gone, mapped));
            // Nothing comes if this process could not leave; nothing is answered if the maps cannot be written.
            if File::from(left).read_exact(&mut [0]).is_ok() && map(own).is_ok() {
                let _gone = File::from(done).write_all(&[1]);
            }
            sys::end(0)
        }
        Side::Parent(_) => {
            drop((left, done));
            sys::leave(OWN).step("making the namespaces")?;
            File::from(gone).write_all(&[1]).step(step)?;
            let answer = File::from(mapped).read_exact(&mut [0]);
            // The one child that there is.
            let _reaped = rustix::process::wait(WaitOptions::empty());
            answer.step(step)
        }
    }
}

fn map(pid: u32) -> io::Result<()> {
    write(&format!("/proc/{pid}/setgroups"), "deny")?;
    for (name, id) in [("uid_map", reserved().uid), ("gid_map", reserved().gid)] {
        // Root is known so that a client who is root is seen as root. Nobody here can become it.
        write(&format!("/proc/{pid}/{name}"), &format!("0 0 1\n{id} {id} 1\n"))?;
    }
    Ok(())
}

/// A map is written at once or not at all.
fn write(path: &str, text: &str) -> io::Result<()> {
    File::options().write(true).open(path)?.write_all(text.as_bytes())
}

/// Namespaces that show an owner's files as the kernel's, one for each owner.
#[derive(Default)]
pub(super) struct Owners(BTreeMap<(u32, u32), OwnedFd>);

impl Owners {
    /// Shows the files of whoever owns this path as the kernel's in a detached mount, and in what is mounted below.
    pub(super) fn translate(&mut self, tree: &OwnedFd, path: &Path) -> Result<(), Failed> {
        let found = fs::symlink_metadata(path).step("asking who owns the files")?;
        let owner = (found.uid(), found.gid());
        let namespace = match self.0.entry(owner) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => {
                new.insert(owners::make(owner, reserved())?)
            }
        };
        let translated = sys::set_mount(tree.as_fd(), 0, Some(namespace.as_fd()), true);
        translated.map_err(|source| Failed::Owners { path: path.to_owned(), source })
    }

    /// Gives a directory to the kernel's user.
    pub(super) fn give(&self, path: &Path) -> Result<(), Failed> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (uid, gid) = (Uid::from_raw(reserved().uid), Gid::from_raw(reserved().gid));
        let given = rustix::fs::open(path, flags, Mode::empty())
            .and_then(|directory| fchown(directory, Some(uid), Some(gid)));
        Ok(given.step("giving the volumes to the kernel's user")?)
    }
}
