//! The session's changes as a directory that sandboxes lay over the project.
//!
//! The directory is a lower layer of overlayfs: files as they are, deletions as *whiteouts* (character
//! devices with the number 0, which do nothing and which an ordinary user may make). A directory that has to
//! stand where the project has a file needs no mark, because overlayfs joins directories with directories
//! alone; and a directory whose files are gone holds a whiteout for each.
//!
//! **Invariant.** A layer is never changed while a sandbox holds it. One that runs while the session goes on sees what it
//! began with; the layer goes when its last holder lets go of it.
//!
//! **Invariant.** A layer that nobody else holds is changed by one move of a finished file into its place, or not at all:
//! whatever takes more is another layer.

use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use fluffy_base::ProjectPath;
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, RenameFlags, Uid, chownat, fchmod, linkat, mknodat,
    openat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use crate::files::{Blobs, Staged, StagedFiles, Stored, Tree};

use super::{StagingError, StepChange};

/// How many layers and files for them this process made: no two have the same name, so that one never takes another
/// away.
static MADE: AtomicU64 = AtomicU64::new(0);

/// A state of the session's files, to be laid over the project.
#[derive(Debug)]
pub struct Layer {
    path: PathBuf,
    files: StagedFiles,
}

impl Layer {
    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lays out these files in a new directory in `top`. Contents that `last` has, too, are shared with it.
    pub(super) fn make(
        top: &Path,
        files: StagedFiles,
        last: Option<&Self>,
        tree: &Tree,
        blobs: &Blobs,
    ) -> Result<Self, StagingError> {
        let path = fresh(top);
        // From here on it is taken away again, also if it does not get finished.
        let layer = Self { path, files };
        let owner = owner(tree).map_err(|source| layer.failed(source))?;
        let building = Building { layer: &layer, last, blobs, owner };
        building.directory(&layer.path).map_err(|source| layer.failed(source))?;
        for (path, staged) in layer.files.iter() {
            if let Staged::File(stored) = staged {
                building.file(path, &stored)?;
            }
        }
        for (path, staged) in layer.files.iter() {
            if staged == Staged::Deleted {
                building.whiteout(path).map_err(|source| layer.failed(source))?;
            }
        }
        Ok(layer)
    }

    /// Takes one change, after which it is a layer of `files`, where that is one move; if not, nothing is changed.
    pub(super) fn take(
        &mut self,
        change: &StepChange,
        files: &StagedFiles,
        tree: &Tree,
        blobs: &Blobs,
    ) -> bool {
        let (Some(Staged::File(stored)), None | Some(Staged::File(_))) =
            (change.after, change.before)
        else {
            return false;
        };
        // Whatever keeps it from being moved, making a new layer tells.
        let moved = self.exchange(&change.path, change.before.is_some(), &stored, tree, blobs);
        if moved.is_ok() {
            self.files = files.clone();
        }
        moved.is_ok()
    }

    /// Moves a file into its place, where no directory has to be made for it.
    fn exchange(
        &self,
        path: &ProjectPath,
        is_there: bool,
        stored: &Stored,
        tree: &Tree,
        blobs: &Blobs,
    ) -> Result<(), StagingError> {
        let failed = |errno: Errno| self.failed(errno.into());
        let owner = owner(tree).map_err(|source| self.failed(source))?;
        let beside = fresh(self.path.parent().unwrap_or(&self.path));
        let at = self.path.join(path.as_str());
        let above = at.parent().unwrap_or(&self.path);
        // Before anything is written: a new directory needs a new layer.
        let stat = statat(CWD, above, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Err(failed(Errno::NOTDIR));
        }
        let flags = if is_there { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        let building = Building { layer: self, last: None, blobs, owner };
        let moved = building
            .content(&beside, stored)
            .and_then(|()| renameat_with(CWD, &beside, CWD, &at, flags).map_err(failed));
        moved.inspect_err(|_| {
            // It may not even have been made.
            let _gone = unlinkat(CWD, &beside, AtFlags::empty());
        })
    }

    fn failed(&self, source: io::Error) -> StagingError {
        StagingError::Layer { path: self.path.clone(), source }
    }
}

impl Drop for Layer {
    fn drop(&mut self) {
        // What stays behind is taken away by the next start.
        let _gone = remove(&self.path);
    }
}

/// A name that nothing has.
fn fresh(top: &Path) -> PathBuf {
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    top.join(format!("{}-{number}", std::process::id()))
}

/// Takes a directory away with what is in it; it is fine if there is none.
#[expect(clippy::disallowed_methods, reason = "the one place that removes layers")]
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whose the files have to be so that a job may change them in its own layer: the project's owner, where we
/// are root and can say so.
fn owner(tree: &Tree) -> io::Result<Option<(Uid, Gid)>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let stat = statat(tree.root(), "", AtFlags::EMPTY_PATH)?;
    Ok(Some((Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid))))
}

struct Building<'a> {
    layer: &'a Layer,
    last: Option<&'a Layer>,
    blobs: &'a Blobs,
    owner: Option<(Uid, Gid)>,
}

impl Building<'_> {
    fn file(&self, path: &ProjectPath, stored: &Stored) -> Result<(), StagingError> {
        let failed = |source| self.layer.failed(source);
        let at = self.layer.path.join(path.as_str());
        self.above(path).map_err(failed)?;
        if let Some(last) = self.last
            && last.files.get(path) == Some(Staged::File(*stored))
        {
            let from = last.path.join(path.as_str());
            // Some file systems know no second names, and all know too many.
            if linkat(CWD, &from, CWD, &at, AtFlags::empty()).is_ok() {
                return Ok(());
            }
        }
        self.content(&at, stored)
    }

    /// A content as a file.
    fn content(&self, at: &Path, stored: &Stored) -> Result<(), StagingError> {
        let bytes = self.blobs.get(stored)?;
        let mode = if stored.executable { 0o755 } else { 0o644 };
        let written = self.write(at, &bytes, Mode::from_raw_mode(mode));
        written.map_err(|source| self.layer.failed(source))
    }

    fn write(&self, at: &Path, bytes: &[u8], mode: Mode) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file = File::from(openat(CWD, at, flags | OFlags::NOFOLLOW, mode)?);
        // The mask of this process does not count here.
        fchmod(&file, mode)?;
        file.write_all(bytes)?;
        self.give(at)
    }

    /// A whiteout, unless the place is taken: by a directory that hides what was there, or above by a file
    /// or a whiteout that hides it, too.
    fn whiteout(&self, path: &ProjectPath) -> io::Result<()> {
        let at = self.layer.path.join(path.as_str());
        match self.above(path) {
            Err(error) if error.raw_os_error() == Some(Errno::NOTDIR.raw_os_error()) => {
                return Ok(());
            }
            other => other?,
        }
        match mknodat(CWD, &at, FileType::CharacterDevice, Mode::empty(), 0) {
            Ok(()) => self.give(&at),
            Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The directories above a path.
    fn above(&self, path: &ProjectPath) -> io::Result<()> {
        let mut above: Vec<_> = std::iter::successors(path.parent(), ProjectPath::parent).collect();
        above.reverse();
        above.iter().try_for_each(|path| self.directory(&self.layer.path.join(path.as_str())))
    }

    fn directory(&self, at: &Path) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(at) {
            Ok(()) => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let made = openat(CWD, at, flags | OFlags::NOFOLLOW, Mode::empty())?;
                fchmod(&made, Mode::from_raw_mode(0o755))?;
                self.give(at)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let stat = statat(CWD, at, AtFlags::SYMLINK_NOFOLLOW)?;
                let directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
                if directory { Ok(()) } else { Err(Errno::NOTDIR.into()) }
            }
            Err(error) => Err(error),
        }
    }

    fn give(&self, at: &Path) -> io::Result<()> {
        match self.owner {
            None => Ok(()),
            Some((uid, gid)) => {
                Ok(chownat(CWD, at, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?)
            }
        }
    }
}
