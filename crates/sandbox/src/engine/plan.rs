//! Turns a configuration into what a container is made of. The words for it are each engine's own ([`super::words`]).
//!
//! **Invariant.** Nothing of the host is made or changed by mounting: where something is mounted inside something else
//! that is shown, the place for it is there already, and no link leads to it.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use fluffy_base::ProjectPath;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};

use crate::config::{Changes, Config, Parts, Workspace};
use crate::native::init::CONTROL;
use crate::native::plan::{home, scratch};
use crate::native::spec::{Furniture, Kind, Scratch};
use crate::native::system::System;
use crate::runtime::{Failure, RuntimeError};

/// Something that is mounted in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) at: PathBuf,
    pub(super) what: What,
}

/// What is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// Something of the host's.
    Shown { from: PathBuf, access: Access },
    /// Directories laid over each other, the lowest first, with changes in a directory beside one to work in.
    Overlay { layers: Vec<PathBuf>, changes: Option<(PathBuf, PathBuf)> },
    /// An empty file system in memory.
    Memory { bytes: u64, files: u64, mode: u32 },
}

/// What may be done with something of the host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// Where the kernel keeps what one container needs.
pub(super) struct Desk<'a> {
    /// A directory of the container's own.
    pub(super) directory: &'a Path,
    /// The program that becomes the first process, and the directory with its libraries.
    pub(super) program: &'a Path,
    pub(super) libraries: &'a Path,
}

/// Everything that is mounted, what holds others first.
pub(super) fn mounts(
    config: &Config,
    desk: &Desk<'_>,
    system: Option<&System>,
) -> Result<Vec<Mount>, RuntimeError> {
    let mut mounts = own(config, desk);
    for piece in system.iter().flat_map(|system| &system.shown) {
        if let Furniture::Shown(bind) = piece
            && bind.kind != Kind::Device
        {
            let from = bind.from.as_path();
            mounts.push(shown(from, from));
            // What is mounted below does not come along by itself.
            mounts.extend(below(from)?.iter().map(|path| shown(path, path)));
        }
    }
    for path in config.shown().iter().map(|shown| shown.path()) {
        let found = fs::metadata(path)
            .map_err(setup(format!("taking `{}` of the host", path.display())))?;
        if !found.is_dir() && !found.is_file() && system.is_none() {
            return Err(lacking(format!("taking `{}` of the host", path.display()), libc::EINVAL));
        }
        nothing_below(path)?;
        mounts.push(shown(path, path));
    }
    if let Some(workspace) = config.workspace() {
        lay_out(workspace, config.parts(), desk, &mut mounts)?;
    }
    let mounts = in_order(mounts);
    places_are_there(&mounts)?;
    Ok(mounts)
}

/// What holds others comes first. At one place is what was wanted there last, as if it had been mounted over the rest: a
/// project may be where the home directory is.
fn in_order(mut mounts: Vec<Mount>) -> Vec<Mount> {
    let depth = |mount: &Mount| mount.at.components().count();
    mounts.sort_by(|one, other| (depth(one), &one.at).cmp(&(depth(other), &other.at)));
    mounts.reverse();
    mounts.dedup_by(|covered, kept| covered.at == kept.at);
    mounts.reverse();
    mounts
}

/// What every container has of ours.
fn own(config: &Config, desk: &Desk<'_>) -> Vec<Mount> {
    let Scratch { bytes, files } = scratch(config);
    let run = Path::new("/run/fluffy");
    let etc = |name: &str| shown(&desk.directory.join(name), &Path::new("/etc").join(name));
    // A socket is written to by whoever speaks to it, whatever the mount says.
    let mut mounts = vec![
        shown(desk.program, &run.join("program")),
        shown(desk.libraries, &run.join("lib")),
        shown(&desk.directory.join("control.sock"), Path::new(CONTROL)),
        etc("passwd"),
        etc("group"),
    ];
    if config.network().allowed().is_some() {
        mounts.push(shown(&desk.directory.join("proxy.sock"), &run.join("proxy.sock")));
    }
    for (at, mode) in [(Path::new("/tmp"), 0o1777), (home(config), 0o777)] {
        mounts.push(Mount { at: at.to_owned(), what: What::Memory { bytes, files, mode } });
    }
    mounts
}

fn shown(from: &Path, at: &Path) -> Mount {
    Mount { at: at.to_owned(), what: What::Shown { from: from.to_owned(), access: Access::Read } }
}

fn lay_out(
    workspace: &Workspace,
    parts: Option<&Parts>,
    desk: &Desk<'_>,
    mounts: &mut Vec<Mount>,
) -> Result<(), RuntimeError> {
    for layer in &workspace.layers {
        let step = || format!("taking `{}` of the host", layer.display());
        let found = fs::metadata(layer).map_err(setup(step()))?;
        if !found.is_dir() {
            return Err(lacking(step(), libc::ENOTDIR));
        }
        nothing_below(layer)?;
    }
    let volume = workspace.volume().and_then(|volume| volume.directory());
    match parts {
        None => mounts.push(space(workspace, None, 0, volume)?),
        Some(parts) => {
            let places = desk.directory.join("places");
            let made = || -> io::Result<()> {
                fs::create_dir(&places)?;
                let mut all = parts.seen.iter().chain(&parts.changed);
                all.try_for_each(|part| fs::create_dir_all(places.join(part.as_str())))
            };
            made().map_err(setup("making places for the parts of the workspace".to_owned()))?;
            mounts.push(shown(&places, &workspace.at));
            let refused = Workspace {
                at: workspace.at.clone(),
                layers: workspace.layers.clone(),
                changes: Changes::Refused,
            };
            let seen = parts.seen.iter().map(|part| (part, &refused));
            let changed = parts.changed.iter().map(|part| (part, workspace));
            for (number, (part, workspace)) in seen.chain(changed).enumerate() {
                mounts.push(space(workspace, Some(part), number, volume)?);
            }
        }
    }
    if let (Changes::Output(_), Some(volume)) = (&workspace.changes, volume) {
        let what = What::Shown { from: volume.join("upper"), access: Access::Write };
        mounts.push(Mount { at: PathBuf::from("/output"), what });
    }
    Ok(())
}

/// The workspace, or a part of it.
fn space(
    workspace: &Workspace,
    part: Option<&ProjectPath>,
    number: usize,
    volume: Option<&Path>,
) -> Result<Mount, RuntimeError> {
    let within = |top: &Path| part.map_or_else(|| top.to_owned(), |part| top.join(part.as_str()));
    let mut layers = Vec::new();
    for layer in &workspace.layers {
        if let Some(part) = part {
            let step = format!("taking `{part}` of the workspace");
            drop(open_beneath(layer, Path::new(part.as_str())).map_err(setup(step))?);
        }
        layers.push(within(layer));
    }
    let changes = match (&workspace.changes, volume) {
        (Changes::Overlay(_), Some(volume)) => {
            let (upper, mut work) = (within(&volume.join("upper")), volume.join("work"));
            if part.is_some() {
                work.push(number.to_string());
                let made = fs::create_dir_all(&upper).and_then(|()| fs::create_dir(&work));
                made.map_err(setup("making the volume".to_owned()))?;
            }
            Some((upper, work))
        }
        _ => None,
    };
    let what = match (layers.as_slice(), &changes) {
        ([one], None) => What::Shown { from: one.clone(), access: Access::Read },
        _ => What::Overlay { layers, changes },
    };
    Ok(Mount { at: within(&workspace.at), what })
}

/// Refuses what would have an engine make a place in something of the host's, or follow a link there.
fn places_are_there(mounts: &[Mount]) -> Result<(), RuntimeError> {
    for mount in mounts {
        let mut around =
            mounts.iter().filter(|other| mount.at != other.at && mount.at.starts_with(&other.at));
        // The nearest is the one in which it is mounted.
        let Some(around) = around.next_back() else { continue };
        let Ok(rest) = mount.at.strip_prefix(&around.at) else { continue };
        let tops = match &around.what {
            What::Memory { .. } => continue,
            What::Shown { from, .. } => std::slice::from_ref(from),
            What::Overlay { layers, .. } => layers.as_slice(),
        };
        if !tops.iter().any(|top| open_beneath(top, rest).is_ok()) {
            let step = format!("showing `{}` in the sandbox", mount.at.display());
            return Err(lacking(step, libc::ENOENT));
        }
    }
    Ok(())
}

/// Opens what lies below a directory, to which no link leads.
fn open_beneath(top: &Path, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let top = openat(CWD, top, flags | OFlags::DIRECTORY, Mode::empty())?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(&top, path, flags, Mode::empty(), resolve)?)
}

/// What the host has mounted below a directory.
pub(super) fn below(top: &Path) -> Result<Vec<PathBuf>, RuntimeError> {
    let text = fs::read_to_string("/proc/self/mountinfo");
    let text = text.map_err(setup("reading what is mounted".to_owned()))?;
    let points = text.lines().filter_map(|line| line.split(' ').nth(4));
    let points = points.map(|point| {
        PathBuf::from(point.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\"))
    });
    Ok(points.filter(|point| point != top && point.starts_with(top)).collect())
}

/// An engine shows a directory without what is mounted below, and so would uncover what that hides.
fn nothing_below(top: &Path) -> Result<(), RuntimeError> {
    match below(top)?.first() {
        None => Ok(()),
        Some(_) => {
            let step = format!("showing `{}`: something is mounted below it", top.display());
            Err(lacking(step, libc::EBUSY))
        }
    }
}

pub(super) fn setup(step: String) -> impl FnOnce(io::Error) -> RuntimeError {
    move |source| RuntimeError::Setup(Failure { step, source })
}

fn lacking(step: String, errno: i32) -> RuntimeError {
    setup(step)(io::Error::from_raw_os_error(errno))
}
