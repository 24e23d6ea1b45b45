//! Puts what a run wrote into the project.
//!
//! **Invariant.** Only regular files below the folders that the proposal lists, and none that the rules would keep from the
//! model. Everything is written beside its target first; what cannot be written leaves the project as it was.
//!
//! **Invariant.** Names are opened beneath the project's handle and no link is followed or replaced.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use fluffy_base::{Digest, ProjectPath};
use fluffy_kernel::{Clerk, Left, LeftFile, May};
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, Uid};
use rustix::io::Errno;

use super::record::{ChangedFile, RunFailure};

const CONFINED: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// How many files a run may change.
const MAX_FILES: usize = 1_000;

/// How many bytes it may write, all files together.
const MAX_BYTES: usize = 32 << 20;

/// What is taken over, and for whom.
pub(super) struct Takeover<'a> {
    pub(super) project: &'a Path,
    /// The folders that may change.
    pub(super) folders: &'a [ProjectPath],
    /// When the run began: what somebody changed since then is not overwritten.
    pub(super) started_ms: u64,
    /// A name that nobody else uses.
    pub(super) execution: &'a str,
    pub(super) clerk: &'a dyn Clerk,
}

/// A change that stands ready.
struct Ready {
    path: ProjectPath,
    directory: OwnedFd,
    /// The name beside the target; none where the target goes.
    beside: Option<String>,
    sha256: Option<Digest>,
}

/// What was made on the way, to be taken back if it comes to nothing.
#[derive(Default)]
struct Made {
    ready: Vec<Ready>,
    /// Directories with the one that they are in, the outermost first.
    directories: Vec<(OwnedFd, String)>,
}

impl Takeover<'_> {
    /// Puts all of it into place, or nothing.
    pub(super) fn take(
        &self,
        left: &Left,
    ) -> Result<Vec<ChangedFile>, (RunFailure, Vec<ChangedFile>)> {
        let refused = |why: String| (RunFailure::Files { why }, Vec::new());
        self.check(left).map_err(refused)?;
        let mut made = Made::default();
        if let Err(why) = self.prepare(left, &mut made) {
            made.undo();
            return Err(refused(why));
        }
        made.settle()
    }

    fn check(&self, left: &Left) -> Result<(), String> {
        if let Some(refused) = left.refused.first() {
            return Err(format!("`{}`: {}", refused.name, refused.why));
        }
        let bytes: usize = left.files.iter().map(|file| file.bytes.len()).sum();
        if left.files.len() + left.removed.len() > MAX_FILES || bytes > MAX_BYTES {
            return Err(format!("it is more than {MAX_FILES} files or {} MiB", MAX_BYTES >> 20));
        }
        let written = left.files.iter().map(|file| (&file.path, "fs.write"));
        for (path, tool) in written.chain(left.removed.iter().map(|path| (path, "fs.delete"))) {
            let inside = |folder: &ProjectPath| path != folder && path.starts_with(folder);
            if !self.folders.iter().any(inside) {
                return Err(format!("`{path}` lies in no folder that the proposal lists"));
            }
            match self.clerk.may(tool, path) {
                May::Yes => {}
                May::Ask => return Err(format!("a person has to look at `{path}`")),
                May::No => return Err(format!("the rules keep `{path}` from being changed")),
            }
        }
        Ok(())
    }

    fn prepare(&self, left: &Left, made: &mut Made) -> Result<(), String> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(self.project, flags, Mode::empty());
        let root = root.map_err(|errno| format!("the project cannot be opened: {errno}"))?;
        let gone: BTreeSet<&ProjectPath> = left.removed.iter().collect();
        for file in &left.files {
            self.write_beside(&root, file, made)
                .map_err(|error| format!("`{}`: {error}", file.path))?;
        }
        for path in gone.into_iter().filter(|path| left.files.iter().all(|it| it.path != **path)) {
            self.mark_gone(&root, path, made).map_err(|error| format!("`{path}`: {error}"))?;
        }
        Ok(())
    }

    fn write_beside(&self, root: &OwnedFd, file: &LeftFile, made: &mut Made) -> io::Result<()> {
        let directory = made.directory_of(root, &file.path)?;
        let name = file.path.file_name();
        let before = self.unchanged(&directory, name)?;
        let mode = match (&before, file.executable) {
            (Some(before), executable) => {
                let kept = before.st_mode & 0o666;
                if executable { kept | (kept & 0o444) >> 2 } else { kept }
            }
            (None, true) => 0o755,
            (None, false) => 0o644,
        };
        let beside = format!(".{}-{}", self.execution, made.ready.len());
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&directory, &beside, flags, Mode::from_raw_mode(0o600))?;
        let owner = match before {
            Some(before) => before,
            None => rustix::fs::fstat(&directory)?,
        };
        let sha256 = Some(Digest::of(&file.bytes));
        made.ready.push(Ready { path: file.path.clone(), directory, beside: Some(beside), sha256 });
        let mut opened = File::from(opened);
        opened.write_all(&file.bytes)?;
        if rustix::process::geteuid().is_root() {
            let (uid, gid) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
            rustix::fs::fchown(&opened, Some(uid), Some(gid))?;
        }
        rustix::fs::fchmod(&opened, Mode::from_raw_mode(mode))?;
        opened.sync_all()
    }

    fn mark_gone(&self, root: &OwnedFd, path: &ProjectPath, made: &mut Made) -> io::Result<()> {
        let directory = made.directory_of(root, path)?;
        if self.unchanged(&directory, path.file_name())?.is_none() {
            return Ok(());
        }
        let path = path.clone();
        made.ready.push(Ready { path, directory, beside: None, sha256: None });
        Ok(())
    }

    /// The file at a name, if there is one, and it is a regular file that nobody touched since the run began.
    fn unchanged(&self, directory: &OwnedFd, name: &str) -> io::Result<Option<Stat>> {
        let stat = match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("there is something else than a regular file"));
        }
        let seconds = u64::try_from(stat.st_ctime).unwrap_or(0);
        let changed_ms =
            seconds.saturating_mul(1000).saturating_add(stat.st_ctime_nsec / 1_000_000);
        if changed_ms > self.started_ms {
            return Err(io::Error::other("somebody changed it while the skill ran"));
        }
        Ok(Some(stat))
    }
}

impl Made {
    /// The directory of a path, made where it is missing.
    fn directory_of(&mut self, root: &OwnedFd, path: &ProjectPath) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = |at: &OwnedFd, name: &str| {
            rustix::fs::openat2(at, name, flags, Mode::empty(), CONFINED)
        };
        let mut at = open(root, ".")?;
        for name in path.parent().iter().flat_map(|parent| parent.components()) {
            at = match open(&at, name) {
                Err(Errno::NOENT) => {
                    rustix::fs::mkdirat(&at, name, Mode::from_raw_mode(0o755))?;
                    let inner = open(&at, name)?;
                    if rustix::process::geteuid().is_root() {
                        let above = rustix::fs::fstat(&at)?;
                        let (uid, gid) = (Uid::from_raw(above.st_uid), Gid::from_raw(above.st_gid));
                        rustix::fs::fchown(&inner, Some(uid), Some(gid))?;
                    }
                    self.directories.push((at, name.to_owned()));
                    inner
                }
                opened => opened?,
            };
        }
        Ok(at)
    }

    /// Moves everything into place.
    fn settle(mut self) -> Result<Vec<ChangedFile>, (RunFailure, Vec<ChangedFile>)> {
        let mut done = Vec::new();
        let mut rest = std::mem::take(&mut self.ready).into_iter();
        while let Some(ready) = rest.next() {
            if let Err(errno) = ready.settle() {
                let why = format!("`{}`: {errno}", ready.path);
                self.ready = std::iter::once(ready).chain(rest).collect();
                self.undo();
                let failure = if done.is_empty() {
                    RunFailure::Files { why }
                } else {
                    RunFailure::Partly { why }
                };
                return Err((failure, done));
            }
            done.push(ChangedFile { path: ready.path, sha256: ready.sha256 });
        }
        done.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(done)
    }

    /// Takes back what was not put into place.
    fn undo(self) {
        for ready in self.ready {
            if let Some(beside) = ready.beside {
                // What cannot be removed is a hidden file with the run's name.
                let _left = rustix::fs::unlinkat(&ready.directory, beside, AtFlags::empty());
            }
        }
        for (above, name) in self.directories.into_iter().rev() {
            // One that is not empty holds what was put into place.
            let _left = rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR);
        }
    }
}

impl Ready {
    fn settle(&self) -> rustix::io::Result<()> {
        let name = self.path.file_name();
        match &self.beside {
            Some(beside) => {
                rustix::fs::renameat(&self.directory, beside, &self.directory, name)?;
            }
            None => rustix::fs::unlinkat(&self.directory, name, AtFlags::empty())?,
        }
        rustix::fs::fsync(&self.directory)
    }
}

/// Makes the folders that a run may write to and that are not there yet; they go again if nothing comes of it.
pub(super) struct NewFolders(Made);

impl NewFolders {
    pub(super) fn make(project: &Path, folders: &[ProjectPath]) -> Result<Self, String> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(project, flags, Mode::empty());
        let root = root.map_err(|errno| format!("the project cannot be opened: {errno}"))?;
        let mut made = Made::default();
        for folder in folders {
            let inside = folder.join("x").map_err(|error| error.to_string())?;
            if let Err(error) = made.directory_of(&root, &inside) {
                made.undo();
                return Err(format!("the folder `{folder}`: {error}"));
            }
        }
        Ok(Self(made))
    }

    /// Removes those that are empty.
    pub(super) fn clear(self) {
        self.0.undo();
    }
}
