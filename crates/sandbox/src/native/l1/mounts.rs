//! Lays the machine out as the kernel is to see it.
//!
//! What is put back is taken as detached mounts first, before anything covers it; then everything becomes read-only,
//! the covers are put up, and what was taken is put into place.
//!
//! **Invariant.** No link is followed: every path was resolved before, and one that has changed since is an error.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, symlinkat};
use rustix::mount::{
    FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    fsconfig_set_string, fsopen, mount_change, move_mount, open_tree,
};

use crate::native::init::Step as _;
use crate::native::mounts::{mounted, plain};
use crate::native::sys;

use super::layout::{Access, Cover, Layout, Place, With};
use super::users::{Failed, Owners};

/// How much the kernel's own temporary files may take.
const SCRATCH: (&str, &str) = ("512m", "100000");
/// Room for the directories that lead to what is put back.
const EMPTY: (&str, &str) = ("4m", "10000");

/// The devices that every program needs. There is no terminal among them.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
const NO_SUID: u64 = libc::MOUNT_ATTR_NOSUID;

/// A directory that is laid over another: a control group of our own over all of them.
pub(super) struct Over {
    pub(super) from: PathBuf,
    pub(super) to: PathBuf,
}

/// Lays everything out, in a mount namespace that is this process's own. Gives what can be written.
pub(super) fn lay_out(
    layout: &Layout,
    groups: &[Over],
    owners: Option<&mut Owners>,
) -> Result<Vec<PathBuf>, Failed> {
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
        .step("making the mounts private")?;
    let taken = take_all(layout, owners)?;
    let devices = take_devices()?;
    let mut over = Vec::new();
    for group in groups {
        let tree = clone(&group.from, false).step("taking the control group")?;
        over.push((tree, &group.to));
    }
    let root = find(Path::new("/")).step("finding the root")?;
    sys::change_mount(root.as_fd(), READ_ONLY | NO_SUID, 0, true)
        .step("making everything read-only")?;
    // Whoever makes a user namespace writes there who is who in it; the rest of it has owners that nobody is here.
    let processes = find(Path::new("/proc")).step("finding the processes")?;
    sys::change_mount(processes.as_fd(), 0, READ_ONLY, false)
        .step("letting maps of users be written")?;
    let covers = put_up_all(layout, &devices)?;
    for (place, tree) in &taken {
        put_back(place, tree, &covers)?;
    }
    for (tree, to) in over {
        on(&tree, to).step("placing the control group")?;
    }
    if let Some(home) = &layout.home {
        covered(home, &covers, directories).step("making the home directory")?;
    }
    close(&covers)?;
    rustix::process::chdir("/").step("leaving the working directory")?;
    Ok(writable(layout, groups))
}

/// What can be written afterwards, the kernel's own memory included.
fn writable(layout: &Layout, groups: &[Over]) -> Vec<PathBuf> {
    let own = layout.covers.iter().filter(|cover| cover.with == With::Scratch);
    let mut paths: Vec<PathBuf> = own.map(|cover| cover.at.clone()).collect();
    let devices = layout.covers.iter().filter(|cover| cover.with == With::Devices);
    paths.extend(devices.map(|cover| cover.at.join("shm")));
    paths.push("/proc".into());
    paths.extend(groups.iter().map(|group| group.to.clone()));
    let places = layout.places.iter().filter(|place| place.access != Access::Read);
    paths.extend(places.map(|place| place.path.clone()));
    paths
}

type Taken<'a> = Vec<(&'a Place, OwnedFd)>;

fn take_all<'a>(layout: &'a Layout, mut owners: Option<&mut Owners>) -> Result<Taken<'a>, Failed> {
    let mut taken = Vec::new();
    for place in &layout.places {
        let named = || format!("taking `{}`", place.path.display());
        let tree = clone(&place.path, true).step(&named())?;
        let mut set = (MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV).bits();
        if place.access == Access::Read {
            set |= MountAttrFlags::MOUNT_ATTR_RDONLY.bits();
        }
        sys::change_mount(tree.as_fd(), set.into(), 0, true).step(&named())?;
        if let Some(owners) = owners.as_deref_mut() {
            match place.access {
                Access::Own => owners.give(&place.path)?,
                Access::Write => owners.translate(&tree, &place.path)?,
                // If it cannot be, what everybody may read of it can be read.
                Access::Read => match owners.translate(&tree, &place.path) {
                    Err(Failed::Owners { .. }) => {}
                    done => done?,
                },
            }
        }
        taken.push((place, tree));
    }
    Ok(taken)
}

fn take_devices() -> Result<Vec<(&'static str, OwnedFd)>, Failed> {
    let mut taken = Vec::new();
    for name in DEVICES {
        let tree = clone(&Path::new("/dev").join(name), false).step("taking the devices")?;
        sys::change_mount(tree.as_fd(), NO_SUID | READ_ONLY, 0, false)
            .step("taking the devices")?;
        taken.push((name, tree));
    }
    Ok(taken)
}

type Up<'a> = Vec<(&'a Cover, OwnedFd)>;

fn put_up_all<'a>(
    layout: &'a Layout,
    devices: &[(&'static str, OwnedFd)],
) -> Result<Up<'a>, Failed> {
    let mut covers = Vec::new();
    for cover in &layout.covers {
        let step = format!("covering `{}`", cover.at.display());
        let (size, mode) = match cover.with {
            With::Nothing | With::Devices => (EMPTY, "0755"),
            With::Scratch => (SCRATCH, "1777"),
        };
        let tree = memory(size, mode, cover.with == With::Scratch).step(&step)?;
        on(&tree, &cover.at).step(&step)?;
        if cover.with == With::Devices {
            furnish(&tree, devices).step(&step)?;
        }
        covers.push((cover, tree));
    }
    Ok(covers)
}

/// Makes the covers read-only that have been written to.
fn close(covers: &Up<'_>) -> Result<(), Failed> {
    for (cover, tree) in covers {
        if cover.with != With::Scratch {
            sys::change_mount(tree.as_fd(), READ_ONLY, 0, false).step("closing the covers")?;
        }
    }
    Ok(())
}

/// Devices, shared memory of the kernel's own, and the names of the three streams.
fn furnish(at: &OwnedFd, devices: &[(&'static str, OwnedFd)]) -> io::Result<()> {
    for (name, device) in devices {
        file(at, Path::new(name))?;
        attach(device, &open_in(at, Path::new(name))?)?;
    }
    directories(at, Path::new("shm"))?;
    attach(&memory(SCRATCH, "1777", true)?, &open_in(at, Path::new("shm"))?)?;
    for (to, name) in [
        ("/proc/self/fd", "fd"),
        ("/proc/self/fd/0", "stdin"),
        ("/proc/self/fd/1", "stdout"),
        ("/proc/self/fd/2", "stderr"),
    ] {
        symlinkat(to, at, name)?;
    }
    Ok(())
}

fn put_back(place: &Place, tree: &OwnedFd, covers: &Up<'_>) -> Result<(), Failed> {
    covered(&place.path, covers, |cover, below| {
        if place.is_dir { directories(cover, below) } else { file(cover, below) }
    })
    .and_then(|()| on(tree, &place.path))
    .step(&format!("placing `{}`", place.path.display()))?;
    Ok(())
}

/// Does something in the cover over a path, if there is one.
fn covered(
    path: &Path,
    covers: &Up<'_>,
    make: impl FnOnce(&OwnedFd, &Path) -> io::Result<()>,
) -> io::Result<()> {
    let cover = covers.iter().find_map(|(cover, tree)| {
        let below = path.strip_prefix(&cover.at).ok()?;
        Some((tree, below))
    });
    match cover {
        Some((tree, below)) if below != Path::new("") => make(tree, below),
        _ => Ok(()),
    }
}

/// A file system in memory, with what may be in it.
fn memory((bytes, files): (&str, &str), mode: &str, scratch: bool) -> io::Result<OwnedFd> {
    let fs = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&fs, "size", bytes)?;
    fsconfig_set_string(&fs, "nr_inodes", files)?;
    fsconfig_set_string(&fs, "mode", mode)?;
    let mut attributes = plain();
    if scratch {
        attributes |= MountAttrFlags::MOUNT_ATTR_NOEXEC;
    }
    mounted(&fs, attributes)
}

/// Makes directories one in the other, where they are not there already.
fn directories(top: &OwnedFd, below: &Path) -> io::Result<()> {
    let mut path = PathBuf::new();
    for part in below.components() {
        let above = open_in(top, &path)?;
        path.push(part);
        if open_in(top, &path).is_err() {
            mkdirat(&above, part.as_os_str(), Mode::from_raw_mode(0o755))?;
        }
    }
    Ok(())
}

/// Makes an empty file, to put another one on, where there is none.
fn file(top: &OwnedFd, below: &Path) -> io::Result<()> {
    let above = below.parent().unwrap_or(Path::new(""));
    directories(top, above)?;
    let Some(name) = below.file_name() else { return Err(io::ErrorKind::InvalidInput.into()) };
    if open_in(top, below).is_ok() {
        return Ok(());
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    openat(open_in(top, above)?, name, flags, Mode::from_raw_mode(0o444))?;
    Ok(())
}

fn open_in(top: &OwnedFd, below: &Path) -> io::Result<OwnedFd> {
    let below = if below == Path::new("") { Path::new(".") } else { below };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    Ok(openat2(top, below, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)?)
}

fn find(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    Ok(openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?)
}

/// A detached copy of what stands at a path.
fn clone(path: &Path, deep: bool) -> io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    if deep {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    Ok(open_tree(find(path)?, "", flags)?)
}

fn on(tree: &OwnedFd, path: &Path) -> io::Result<()> {
    attach(tree, &find(path)?)
}

fn attach(tree: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(tree, "", to, "", flags)?)
}
