//! Builds the file system of a sandbox and moves into it.
//!
//! Everything stands in one file system in memory, the *scratch*: `root` becomes the read-only root, `private`
//! holds the writable directories, `upper` and `work` the changes to the workspace. Sources of the host are
//! taken as detached mounts first, before anything covers them, and put into place afterwards; the host's tree
//! is let go at the end.
//!
//! **Invariant.** No path of the host is resolved after something that a job could have made is mounted: nothing a
//! job left can redirect a mount. Paths of the sandbox are resolved in its root, where a link is followed as the job
//! would follow it and never out.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount,
    fsopen, mount_change, move_mount, open_tree, unmount,
};

use super::init::{Broken, Step};
use super::spec::{Bind, Bytes, Furniture, Kind, Masked, Space, SpaceChanges, Spec, Upper};
use super::sys;

/// The sources of all mounts, detached.
pub(super) struct Taken {
    /// In the order of the furniture's shown parts.
    shown: std::vec::IntoIter<OwnedFd>,
    /// Those of each space, in their order.
    layers: std::vec::IntoIter<Vec<OwnedFd>>,
    volume: Option<OwnedFd>,
}

impl Taken {
    /// Takes them. Where the kernel is root this happens before the namespaces are made, because root may
    /// enter directories that the sandbox's user may not.
    pub(super) fn take(spec: &Spec, owners: Option<&OwnedFd>) -> Result<Self, Broken> {
        let mut shown = Vec::new();
        for piece in &spec.furniture {
            if let Furniture::Shown(bind) = piece {
                shown.push(take(bind, owners)?);
            }
        }
        let mut layers = Vec::new();
        for space in &spec.spaces {
            let of_space = space.layers.iter().map(|bind| take_part(bind, &space.within, owners));
            layers.push(of_space.collect::<Result<Vec<_>, _>>()?);
        }
        let volume = spec.spaces.iter().find_map(Space::disk).map(|path| {
            clone(path, false)
                .and_then(|tree| attributes(&tree, false, Kind::Directory, None).map(|()| tree))
                .step("taking the output volume")
        });
        let (shown, layers) = (shown.into_iter(), layers.into_iter());
        Ok(Self { shown, layers, volume: volume.transpose()? })
    }
}

/// What the kernel is handed once a sandbox stands.
pub(super) struct Built {
    /// The top directory of the volume, where it is in memory.
    pub(super) volume: Option<OwnedFd>,
}

/// Builds the root and leaves this process in it. `furnish` is called with the new root as the current
/// directory, while it can still be written.
pub(super) fn build<T>(
    spec: &Spec,
    mut taken: Taken,
    furnish: impl FnOnce() -> Result<T, Broken>,
) -> Result<(Built, T), Broken> {
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
        .step("making the mounts private")?;
    enter_scratch(spec)?;
    mkdir("root", 0o755).step("making the root")?;
    mkdir("private", 0o700).step("making the scratch space")?;
    let root = Root(clone("root", false).step("taking the root")?);
    place(&root.0, "root").step("placing the root")?;
    for (number, piece) in spec.furniture.iter().enumerate() {
        root.furnish_with(piece, number, &mut taken)?;
    }
    let (top, volume) = make_volume(&spec.spaces, &mut taken)?;
    for (number, space) in spec.spaces.iter().enumerate() {
        root.lay_out(space, number, &top, &mut taken)?;
    }
    rustix::process::fchdir(&root.0).step("entering the root")?;
    let made = furnish()?;
    let read_only = MountAttrFlags::MOUNT_ATTR_RDONLY.bits().into();
    sys::set_mount(root.0.as_fd(), read_only, None, false).step("making the root read-only")?;
    rustix::process::pivot_root(".", ".").step("changing the root")?;
    let_go()?;
    Ok((Built { volume }, made))
}

/// Lets the host's root go, which lies over the new one, with the scratch space in it.
fn let_go() -> Result<(), Broken> {
    let step = "letting the host's root go";
    unmount(".", UnmountFlags::DETACH).step(step)?;
    rustix::process::chdir("/").step(step)?;
    // If anything still lay over the root, this would lead to it.
    let (root, above) = (rustix::fs::stat("/").step(step)?, rustix::fs::stat("/..").step(step)?);
    if (root.st_dev, root.st_ino) != (above.st_dev, above.st_ino) {
        return Err(Broken { step: step.into(), error: io::Error::from_raw_os_error(libc::EBUSY) });
    }
    Ok(())
}

/// Makes the file system in memory, over a directory that every machine has, and enters it. All sources are taken
/// already, so it covers nothing that is needed.
fn enter_scratch(spec: &Spec) -> Result<(), Broken> {
    let make = || -> io::Result<OwnedFd> {
        let fs = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_string(&fs, "size", spec.scratch.bytes.to_string())?;
        fsconfig_set_string(&fs, "nr_inodes", spec.scratch.files.to_string())?;
        fsconfig_set_string(&fs, "mode", "0755")?;
        mounted(&fs, plain())
    };
    let scratch = make().step("making the scratch space")?;
    place(&scratch, "/proc").step("placing the scratch space")?;
    rustix::process::fchdir(&scratch).step("entering the scratch space")
}

/// The root of a sandbox that is being built.
struct Root(OwnedFd);

impl Root {
    fn furnish_with(
        &self,
        piece: &Furniture,
        number: usize,
        taken: &mut Taken,
    ) -> Result<(), Broken> {
        let (what, at) = match piece {
            Furniture::Directory(at) | Furniture::Private(at, _) => ("making", at),
            Furniture::File(at, _) => ("writing", at),
            Furniture::Link(_, at) => ("linking", at),
            Furniture::Shown(bind) => ("showing", &bind.to),
            Furniture::Proc(at, _) | Furniture::Terminals(at) => ("mounting", at),
        };
        let at = at.as_path();
        let made = match piece {
            Furniture::Directory(_) => self.directories(at),
            Furniture::File(_, bytes) => self.file(at, bytes.as_bytes()),
            Furniture::Link(to, _) => self.link(to.as_path(), at),
            Furniture::Private(_, mode) => self.private(at, number, *mode),
            Furniture::Shown(bind) => self.show(bind, taken),
            Furniture::Proc(_, masked) => self.proc(at, masked),
            Furniture::Terminals(_) => self.terminals(at),
        };
        made.step(&format!("{what} `/{}` in the sandbox", at.display()))
    }

    /// Puts the workspace, or a part of it, into place. Its changes lie in `top`.
    fn lay_out(
        &self,
        space: &Space,
        number: usize,
        top: &Path,
        taken: &mut Taken,
    ) -> Result<(), Broken> {
        let layers = taken.layers.next().ok_or(io::ErrorKind::UnexpectedEof);
        let layers = layers.step("taking the workspace")?;
        let at = space.at.as_path();
        self.directories(at).step("making the workspace")?;
        let tree = match (&space.changes, layers.as_slice()) {
            (SpaceChanges::Overlay(_), _) => {
                let changes = changes_of(space, number, top).step("making the volume")?;
                &overlay(&layers, number, Some(changes))?
            }
            (_, [one]) => one,
            (_, _) => &overlay(&layers, number, None)?,
        };
        self.place(tree, at).step("placing the workspace")?;
        if matches!(space.changes, SpaceChanges::Output(_)) {
            let tree = clone(top.join("upper"), false).step("taking the output")?;
            let at = Path::new("output");
            self.directories(at).and_then(|()| self.place(&tree, at)).step("placing /output")?;
        }
        Ok(())
    }

    fn show(&self, bind: &Bind, taken: &mut Taken) -> io::Result<()> {
        let tree = taken.shown.next().ok_or(io::ErrorKind::UnexpectedEof)?;
        let at = bind.to.as_path();
        match bind.kind {
            Kind::Directory => self.directories(at)?,
            Kind::File | Kind::Device => match self.file(at, b"") {
                Err(error) if self.has(&error, at) => {}
                other => other?,
            },
        }
        self.place(&tree, at)
    }

    fn proc(&self, at: &Path, masked: &[Masked]) -> io::Result<()> {
        self.directories(at)?;
        let fs = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
        let attributes =
            plain() | MountAttrFlags::MOUNT_ATTR_NOEXEC | MountAttrFlags::MOUNT_ATTR_RDONLY;
        self.place(&mounted(&fs, attributes)?, at)?;
        mkdir("empty", 0o555)?;
        for Masked { name, directory } in masked {
            let cover = clone(if *directory { "empty" } else { "root/dev/null" }, false)?;
            let set = MountAttrFlags::MOUNT_ATTR_RDONLY.bits().into();
            sys::set_mount(cover.as_fd(), set, None, false)?;
            self.place(&cover, &at.join(name.as_path()))?;
        }
        Ok(())
    }

    fn terminals(&self, at: &Path) -> io::Result<()> {
        self.directories(at)?;
        let fs = fsopen("devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_flag(&fs, "newinstance")?;
        fsconfig_set_string(&fs, "ptmxmode", "0666")?;
        fsconfig_set_string(&fs, "mode", "0620")?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        self.place(&mounted(&fs, attributes)?, at)
    }

    fn private(&self, at: &Path, number: usize, mode: u32) -> io::Result<()> {
        let own = format!("private/{number}");
        mkdir(&own, mode)?;
        // The mask of this process does not count here.
        rustix::fs::chmod(&own, Mode::from_raw_mode(mode))?;
        self.directories(at)?;
        self.place(&clone(&own, false)?, at)
    }

    /// Puts a detached mount into place.
    fn place(&self, tree: &OwnedFd, at: &Path) -> io::Result<()> {
        let on = self.open(at)?;
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        Ok(move_mount(tree, "", &on, "", flags)?)
    }

    /// Makes a directory with those above it.
    fn directories(&self, at: &Path) -> io::Result<()> {
        let made = self.make(at, |above, name| mkdirat(above, name, Mode::from_raw_mode(0o755)));
        match made {
            Err(error) if self.has(&error, at) => Ok(()),
            other => other,
        }
    }

    /// Makes a file with the directories above it.
    fn file(&self, at: &Path, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o644);
        let fd = self.make(at, |above, name| openat(above, name, flags, mode))?;
        File::from(fd).write_all(bytes)
    }

    /// Makes a link with the directories above it.
    fn link(&self, to: &Path, at: &Path) -> io::Result<()> {
        self.make(at, |above, name| rustix::fs::symlinkat(to, above, name))
    }

    /// Makes something new in the directory above it.
    fn make<T>(
        &self,
        at: &Path,
        make: impl FnOnce(&OwnedFd, &OsStr) -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        let name = at.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let above = at.parent().unwrap_or(Path::new(""));
        let open = match self.open(above) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.directories(above)?;
                self.open(above)?
            }
            other => other?,
        };
        Ok(make(&open, name)?)
    }

    /// Opens what stands at a path, links followed as the job would.
    fn open(&self, at: &Path) -> io::Result<OwnedFd> {
        let at = if at == Path::new("") { Path::new(".") } else { at };
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        Ok(openat2(&self.0, at, flags, Mode::empty(), resolve)?)
    }

    /// Whether something could not be made because it is there, be it on a mount that takes nothing new.
    fn has(&self, error: &io::Error, at: &Path) -> bool {
        error.kind() == io::ErrorKind::AlreadyExists || self.open(at).is_ok()
    }
}

/// Makes the place where changes go, if any are kept: where it lies, and its top directory if that is in memory.
fn make_volume(spaces: &[Space], taken: &mut Taken) -> Result<(PathBuf, Option<OwnedFd>), Broken> {
    let upper = spaces.iter().find_map(|space| match &space.changes {
        SpaceChanges::Refused => None,
        SpaceChanges::Output(upper) | SpaceChanges::Overlay(upper) => Some(upper),
    });
    match upper {
        None => Ok((PathBuf::new(), None)),
        Some(Upper::Memory) => {
            mkdir("upper", 0o755).and_then(|()| mkdir("work", 0o700)).step("making the volume")?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let top = openat(CWD, "upper", flags, Mode::empty()).step("opening the volume")?;
            Ok((PathBuf::from("."), Some(top)))
        }
        Some(Upper::Disk(_)) => {
            mkdir("volume", 0o700).step("making the volume")?;
            let tree = taken.volume.take().ok_or(io::ErrorKind::UnexpectedEof);
            place(&tree.step("placing the volume")?, "volume").step("placing the volume")?;
            Ok((PathBuf::from("volume"), None))
        }
    }
}

/// Where the changes of a space lie in the volume, and where overlayfs works on them. Those of a part lie in the volume
/// as the part lies in the workspace.
fn changes_of(space: &Space, number: usize, top: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let (mut upper, mut work) = (top.join("upper"), top.join("work"));
    let within = space.within.as_path();
    if within != Path::new("") {
        for name in within.components() {
            upper.push(name);
            match mkdir(&upper, 0o755) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                other => other?,
            }
        }
        work.push(number.to_string());
        mkdir(&work, 0o700)?;
    }
    Ok((upper, work))
}

/// Directories laid over each other, with changes in a directory beside one to work in, if any are kept.
fn overlay(
    layers: &[OwnedFd],
    space: usize,
    changes: Option<(PathBuf, PathBuf)>,
) -> Result<OwnedFd, Broken> {
    let mut lower = Vec::new();
    for (number, layer) in layers.iter().enumerate() {
        let name = format!("layer{space}-{number}");
        mkdir(&name, 0o700).step("making a layer")?;
        place(layer, &name).step("placing a layer")?;
        lower.push(name);
    }
    let make = || -> io::Result<OwnedFd> {
        let fs = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        // The highest comes first.
        let names: Vec<&str> = lower.iter().rev().map(String::as_str).collect();
        fsconfig_set_string(&fs, "lowerdir", names.join(":"))?;
        if let Some((upper, work)) = &changes {
            fsconfig_set_string(&fs, "upperdir", upper)?;
            fsconfig_set_string(&fs, "workdir", work)?;
            // Nothing here survives a crash, so nothing needs to be synced.
            fsconfig_set_flag(&fs, "volatile")?;
        }
        fsconfig_set_flag(&fs, "userxattr")?;
        mounted(&fs, plain())
    };
    // The layers go with the scratch space; the overlay keeps what it needs of them.
    make().step("laying the workspace over the project")
}

/// A detached copy of a mount of the host with its attributes.
fn take(bind: &Bind, owners: Option<&OwnedFd>) -> Result<OwnedFd, Broken> {
    let named = || format!("taking `{}` of the host", bind.from.as_path().display());
    let from = bind.from.as_path();
    let tree = match clone(from, bind.deep) {
        // Something is mounted below that must not be uncovered.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) && !bind.deep => clone(from, true),
        other => other,
    };
    let tree = tree.step(&named())?;
    let owners = owners.filter(|_| bind.owners);
    attributes(&tree, true, bind.kind, owners).step(&named())?;
    Ok(tree)
}

/// The same of a folder in a layer, to which no link leads; all of the layer where none is named.
fn take_part(bind: &Bind, within: &Bytes, owners: Option<&OwnedFd>) -> Result<OwnedFd, Broken> {
    if within.as_path() == Path::new("") {
        return take(bind, owners);
    }
    let open = || -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let layer = openat(CWD, bind.from.as_path(), flags, Mode::empty())?;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let part = openat2(&layer, within.as_path(), flags, Mode::empty(), resolve)?;
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH;
        match open_tree(&part, "", flags) {
            // Something is mounted below that must not be uncovered.
            Err(rustix::io::Errno::INVAL) => {
                Ok(open_tree(&part, "", flags | OpenTreeFlags::AT_RECURSIVE)?)
            }
            other => Ok(other?),
        }
    };
    let named = || format!("taking `{}` of the workspace", within.as_path().display());
    let tree = open().step(&named())?;
    let owners = owners.filter(|_| bind.owners);
    attributes(&tree, true, bind.kind, owners).step(&named())?;
    Ok(tree)
}

fn attributes(
    tree: &OwnedFd,
    read_only: bool,
    kind: Kind,
    owners: Option<&OwnedFd>,
) -> io::Result<()> {
    let mut set = MountAttrFlags::MOUNT_ATTR_NOSUID;
    if read_only {
        set |= MountAttrFlags::MOUNT_ATTR_RDONLY;
    }
    if kind != Kind::Device {
        set |= MountAttrFlags::MOUNT_ATTR_NODEV;
    }
    let deep = owners.is_none();
    sys::set_mount(tree.as_fd(), set.bits().into(), owners.map(AsFd::as_fd), deep)
}

fn clone(path: impl AsRef<Path>, deep: bool) -> io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    if deep {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    Ok(open_tree(CWD, path.as_ref(), flags)?)
}

/// Puts a detached mount into place in the scratch space, where only names of our own stand.
fn place(tree: &OwnedFd, at: impl AsRef<Path>) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(move_mount(tree, "", CWD, at.as_ref(), flags)?)
}

pub(super) fn mounted(fs: &OwnedFd, attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    fsconfig_create(fs)?;
    Ok(fsmount(fs, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// No privileged programs and no devices.
pub(super) fn plain() -> MountAttrFlags {
    MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV
}

fn mkdir(path: impl AsRef<Path>, mode: u32) -> io::Result<()> {
    Ok(mkdirat(CWD, path.as_ref(), Mode::from_raw_mode(mode))?)
}
