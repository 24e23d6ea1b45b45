//! A layer that exists for one job: what the job must not see, and where it reports to.
//!
//! **Invariant.** What a layer hides is hidden from every layer below it, whoever runs the job: it carries
//! overlayfs's own sign for a deletion, which an ordinary user may make as well.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use fluffy_base::ProjectPath;
use rustix::fs::{CWD, FileType, Mode, OFlags};

/// How often a name that is taken is passed over.
const ATTEMPTS: u32 = 1000;

/// Numbers for names that nobody else in this process uses.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A number that this process has not used.
pub(super) fn fresh() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A directory of ours, laid over all others for one job, and removed after it.
#[derive(Debug)]
pub(crate) struct Layer {
    dir: PathBuf,
    owner: (u32, u32),
}

impl Layer {
    /// An empty layer in `scratch`, for a project whose owner must be able to write to its directories.
    pub(crate) fn new(scratch: &Path, project: &Path) -> io::Result<Self> {
        let found = std::fs::metadata(project)?;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(scratch)?;
        for _ in 0..ATTEMPTS {
            let dir = scratch.join(format!("layer-{}-{}", std::process::id(), fresh()));
            match std::fs::DirBuilder::new().mode(0o755).create(&dir) {
                Ok(()) => {
                    let layer = Self { dir, owner: (found.uid(), found.gid()) };
                    layer.hand_over(&layer.dir)?;
                    return Ok(layer);
                }
                // A killed kernel of the same number left it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Where it lies.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Hides these files and directories. `below` are the layers that this one is laid over, the lowest
    /// first: the directories on the way keep the mode that they have there.
    pub(super) fn hide(&self, hidden: &[ProjectPath], below: &[&Path]) -> io::Result<()> {
        let hidden: BTreeSet<&ProjectPath> = hidden.iter().collect();
        for path in &hidden {
            let mut above = std::iter::successors(path.parent(), ProjectPath::parent);
            if above.any(|directory| hidden.contains(&directory)) {
                continue;
            }
            if let Some(parent) = path.parent() {
                self.directory(&parent, below)?;
            }
            let (kind, none) = (FileType::CharacterDevice, Mode::empty());
            rustix::fs::mknodat(CWD, self.dir.join(path.as_str()), kind, none, 0)?;
        }
        Ok(())
    }

    /// Makes a directory with those that it lies in.
    pub(crate) fn directory(&self, path: &ProjectPath, below: &[&Path]) -> io::Result<()> {
        let mut way: Vec<_> =
            std::iter::successors(Some(path.clone()), ProjectPath::parent).collect();
        while let Some(part) = way.pop() {
            let at = self.dir.join(part.as_str());
            match std::fs::DirBuilder::new().mode(0o755).create(&at) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
            let lower = below.iter().rev().find_map(|layer| {
                std::fs::symlink_metadata(layer.join(part.as_str()))
                    .ok()
                    .filter(std::fs::Metadata::is_dir)
            });
            if let Some(lower) = lower {
                let mode = std::fs::Permissions::from_mode(lower.mode() & 0o777);
                std::fs::set_permissions(&at, mode)?;
            }
            self.hand_over(&at)?;
        }
        Ok(())
    }

    /// Makes a file.
    pub(crate) fn file(&self, path: &ProjectPath, text: &str) -> io::Result<()> {
        let at = self.dir.join(path.as_str());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let made = rustix::fs::openat(CWD, &at, flags, Mode::from_raw_mode(0o644))?;
        File::from(made).write_all(text.as_bytes())?;
        self.hand_over(&at)
    }

    /// Root works for the project's owner, who could not write to directories of root's.
    fn hand_over(&self, at: &Path) -> io::Result<()> {
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::lchown(at, Some(self.owner.0), Some(self.owner.1))?;
        }
        Ok(())
    }
}

impl Drop for Layer {
    #[expect(clippy::disallowed_methods, reason = "the one place that removes layers of a job")]
    fn drop(&mut self) {
        // What cannot be removed lies in a directory of the session's and goes with it.
        let _left = std::fs::remove_dir_all(&self.dir);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileTypeExt as _;

    use super::*;

    #[test]
    fn what_is_hidden_is_a_whiteout_and_goes_with_the_layer() {
        let dir = tempfile::tempdir().unwrap();
        let (scratch, project) = (dir.path().join("scratch"), dir.path().join("project"));
        std::fs::create_dir_all(project.join("a")).unwrap();
        std::fs::set_permissions(project.join("a"), std::fs::Permissions::from_mode(0o750))
            .unwrap();
        let layer = Layer::new(&scratch, &project).unwrap();
        let hidden =
            ["a/b", "secrets", "secrets/key", ".env"].map(|p| ProjectPath::parse(p).unwrap());
        layer.hide(&hidden, &[&project]).unwrap();
        for name in ["a/b", "secrets", ".env"] {
            let found = std::fs::symlink_metadata(layer.dir().join(name)).unwrap();
            assert!(found.file_type().is_char_device() && found.rdev() == 0, "{name}");
        }
        assert_eq!(std::fs::metadata(layer.dir().join("a")).unwrap().mode() & 0o777, 0o750);
        drop(layer);
        assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0);
    }
}
