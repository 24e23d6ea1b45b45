//! A throw-away copy of the project's working tree, for a builder to work on.
//!
//! **Invariant.** Bytes of regular files are copied and nothing else: no link is followed or made, no owner, no time and
//! no attribute comes along. Everything is opened beneath the project's handle.
//!
//! **Invariant.** What the builder did is measured against what was copied here, by hashes that were taken of the very
//! bytes that were written.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, lchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fluffy_base::{ByteSize, Digest, Hasher, ProjectPath};
use fluffy_kernel::{BlobError, Blobs, Found, StagedFiles, Tree, TreeError, View};
use serde::{Deserialize, Serialize};

use super::scratch::{Scratch, ScratchError};
use super::unwanted::{Unwanted, by_name};

/// How much is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyLimits {
    /// Files.
    pub files: usize,
    /// Bytes of all of them.
    pub total: ByteSize,
    /// Bytes of one of them; a larger one stays behind.
    pub file: ByteSize,
}

impl Default for CopyLimits {
    fn default() -> Self {
        Self {
            files: 50_000,
            total: ByteSize::from_bytes(512 << 20),
            file: ByteSize::from_bytes(16 << 20),
        }
    }
}

/// What is copied of which project.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The project.
    pub tree: &'a Arc<Tree>,
    /// What the project's rules hide from models, files and directories.
    pub hidden: &'a dyn Fn(&ProjectPath) -> bool,
    /// What the builder may change, which is copied whatever it is called.
    pub allowed: &'a [ProjectPath],
    /// How much.
    pub limits: CopyLimits,
}

/// A file as it was before, or is after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Was {
    /// Hash of its bytes.
    pub sha256: Digest,
    /// Whether its owner may execute it.
    pub executable: bool,
}

/// A copy of the project.
#[derive(Debug)]
pub struct Copied {
    /// Where it lies.
    pub dir: PathBuf,
    /// Every file in it.
    pub baseline: BTreeMap<ProjectPath, Was>,
    /// What stayed behind, each directory once.
    pub left_out: Vec<(ProjectPath, Unwanted)>,
    /// How many names cannot be written as a path of the project, and stayed behind.
    pub unnamed: usize,
}

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// Too many files.
    #[error(
        "the project has more than {0} files to copy for a builder: hide what it need not see in the policy"
    )]
    TooMany(usize),
    /// Too many bytes.
    #[error(
        "the files to copy for a builder take more than {0}: hide what it need not see in the policy"
    )]
    TooMuch(ByteSize),
    /// What the builder is to write cannot be what it is.
    #[error("`{path}` stands where the skill's files belong, and cannot be copied: {why}")]
    InTheWay {
        /// What.
        path: ProjectPath,
        /// Why not.
        why: Unwanted,
    },
    /// The project cannot be read.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The copy cannot be written.
    #[error("the copy's `{path}` cannot be written")]
    Write {
        /// Which file.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// There is no place for it.
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    /// The same.
    #[error(transparent)]
    Blob(#[from] BlobError),
}

/// Copies the project into the scratch.
pub fn copy(source: &Source<'_>, scratch: &Scratch) -> Result<Copied, CopyError> {
    let dir = scratch.make("copy")?;
    // A view wants contents of a session, and there are none.
    let blobs = Arc::new(Blobs::open(&scratch.make("none")?)?);
    let view = View::new(Arc::clone(source.tree), blobs, StagedFiles::default());
    let copied = Copied { dir, baseline: BTreeMap::new(), left_out: Vec::new(), unnamed: 0 };
    let owner = owner(source.tree.path(), &copied.dir)?;
    let mut copying = Copying { source, copied, owner, room: source.limits.total.bytes() };
    copying.hand_over(&copying.copied.dir, ".")?;
    let mut pending = vec![None];
    while let Some(directory) = pending.pop() {
        copying.directory(&view, directory.as_ref(), &mut pending)?;
    }
    copying.repository()?;
    let mut copied = copying.copied;
    copied.left_out.sort_unstable();
    free(&copied, source.allowed)?;
    Ok(copied)
}

struct Copying<'a> {
    source: &'a Source<'a>,
    copied: Copied,
    /// Who must be able to write to it, where that is somebody else.
    owner: Option<(u32, u32)>,
    /// How many more bytes may be copied.
    room: u64,
}

impl Copying<'_> {
    fn directory(
        &mut self,
        view: &View,
        directory: Option<&ProjectPath>,
        pending: &mut Vec<Option<ProjectPath>>,
    ) -> Result<(), CopyError> {
        let listing = match view.list(directory) {
            Ok(listing) => listing,
            Err(error) => return self.passed_over(directory, error),
        };
        self.copied.unnamed += listing.unnamed;
        let environment = |name: &str| name == "pyvenv.cfg";
        if let Some(directory) = directory
            && listing.entries.iter().any(|entry| environment(entry.path.file_name()))
        {
            return self.leave(directory.clone(), Unwanted::Made);
        }
        for entry in listing.entries {
            match (self.unwanted(&entry.path, entry.found), entry.found) {
                (Some(why), _) => self.leave(entry.path, why)?,
                (None, Found::Directory) => pending.push(Some(entry.path)),
                (None, _) => self.file(&entry.path)?,
            }
        }
        Ok(())
    }

    /// A directory that went away or may not be read is no reason to fail; the project itself is.
    fn passed_over(
        &mut self,
        directory: Option<&ProjectPath>,
        error: TreeError,
    ) -> Result<(), CopyError> {
        match (directory, error) {
            (None, error) => Err(error.into()),
            (Some(_), TreeError::Missing(_)) => Ok(()),
            (Some(path), TreeError::Link { .. } | TreeError::NotADirectory(_)) => {
                self.leave(path.clone(), Unwanted::Link)
            }
            (Some(path), TreeError::Io { source, .. })
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                self.leave(path.clone(), Unwanted::Unreadable)
            }
            (Some(_), error) => Err(error.into()),
        }
    }

    /// As many names as files: a project of nothing but links must not fill the memory either.
    fn leave(&mut self, path: ProjectPath, why: Unwanted) -> Result<(), CopyError> {
        if self.copied.left_out.len() >= self.source.limits.files {
            return Err(CopyError::TooMany(self.source.limits.files));
        }
        self.copied.left_out.push((path, why));
        Ok(())
    }

    fn unwanted(&self, path: &ProjectPath, found: Found) -> Option<Unwanted> {
        match found {
            Found::Link => return Some(Unwanted::Link),
            Found::Special => return Some(Unwanted::Special),
            Found::File { bytes, .. } if bytes > self.source.limits.file.bytes() => {
                return Some(Unwanted::Large);
            }
            Found::File { .. } | Found::Directory => {}
        }
        if is_on_the_way(path, self.source.allowed) {
            return None;
        }
        by_name(path).or_else(|| (self.source.hidden)(path).then_some(Unwanted::Hidden))
    }

    fn file(&mut self, path: &ProjectPath) -> Result<(), CopyError> {
        let file = match self.source.tree.file(path) {
            Ok(file) => file,
            Err(TreeError::Missing(_)) => return Ok(()),
            Err(TreeError::Link { .. } | TreeError::NotAFile(_)) => {
                return self.leave(path.clone(), Unwanted::Link);
            }
            Err(TreeError::Io { source, .. })
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                return self.leave(path.clone(), Unwanted::Unreadable);
            }
            Err(error) => return Err(error.into()),
        };
        let failed = |source| TreeError::Io { path: path.to_string(), source };
        let found = file.metadata().map_err(failed)?;
        if found.nlink() > 1 {
            return self.leave(path.clone(), Unwanted::HardLink);
        }
        if self.copied.baseline.len() >= self.source.limits.files {
            return Err(CopyError::TooMany(self.source.limits.files));
        }
        let executable = found.mode() & 0o100 != 0;
        let sha256 = self.write(path, file, executable)?;
        self.copied.baseline.insert(path.clone(), Was { sha256, executable });
        Ok(())
    }

    /// Copies one file, hashing what is written.
    fn write(
        &mut self,
        path: &ProjectPath,
        mut from: File,
        executable: bool,
    ) -> Result<Digest, CopyError> {
        if let Some(parent) = path.parent() {
            self.make(&parent)?;
        }
        let at = self.copied.dir.join(path.as_str());
        let failed = |source| CopyError::Write { path: path.to_string(), source };
        let mut to = create(&at, executable).map_err(failed)?;
        let mut hasher = Hasher::default();
        let mut buffer = vec![0; 64 << 10];
        let mut left = self.source.limits.file.bytes();
        loop {
            let count = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => {
                    return Err(TreeError::Io { path: path.to_string(), source }.into());
                }
            };
            let bytes = buffer.get(..count).unwrap_or_default();
            let count = bytes.len() as u64;
            // It was smaller when it was looked at.
            let changed = || TreeError::Changed(path.clone());
            left = left.checked_sub(count).ok_or_else(changed)?;
            let room = self.room.checked_sub(count);
            self.room = room.ok_or(CopyError::TooMuch(self.source.limits.total))?;
            hasher.update(bytes);
            to.write_all(bytes).map_err(failed)?;
        }
        self.hand_over(&at, path.as_str())?;
        Ok(hasher.finish())
    }

    /// Makes a directory of the copy with those above it.
    fn make(&self, directory: &ProjectPath) -> Result<(), CopyError> {
        let way = std::iter::successors(Some(directory.clone()), ProjectPath::parent);
        let mut missing: Vec<_> =
            way.take_while(|part| !self.copied.dir.join(part.as_str()).exists()).collect();
        while let Some(part) = missing.pop() {
            self.plain_directory(part.as_str())?;
        }
        Ok(())
    }

    fn plain_directory(&self, name: &str) -> Result<(), CopyError> {
        let at = self.copied.dir.join(name);
        DirBuilder::new()
            .mode(0o755)
            .create(&at)
            .map_err(|source| CopyError::Write { path: name.to_owned(), source })?;
        self.hand_over(&at, name)
    }

    /// An empty repository for builders that want one: no commit, no hook, no remote. It is written as plain files, and
    /// nobody but the builder ever looks at what becomes of it.
    fn repository(&self) -> Result<(), CopyError> {
        for name in [".git", ".git/objects", ".git/refs", ".git/refs/heads"] {
            self.plain_directory(name)?;
        }
        let config = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n";
        for (name, text) in [(".git/HEAD", "ref: refs/heads/main\n"), (".git/config", config)] {
            let at = self.copied.dir.join(name);
            let written = create(&at, false).and_then(|mut file| file.write_all(text.as_bytes()));
            written.map_err(|source| CopyError::Write { path: name.to_owned(), source })?;
            self.hand_over(&at, name)?;
        }
        Ok(())
    }

    fn hand_over(&self, at: &Path, name: &str) -> Result<(), CopyError> {
        let Some((uid, gid)) = self.owner else { return Ok(()) };
        lchown(at, Some(uid), Some(gid))
            .map_err(|source| CopyError::Write { path: name.to_owned(), source })
    }
}

fn create(at: &Path, executable: bool) -> io::Result<File> {
    let mode = if executable { 0o755 } else { 0o644 };
    OpenOptions::new().write(true).create_new(true).mode(mode).open(at)
}

/// Whose the copy must be: root works for the project's owner, who could not write to files of root's.
fn owner(project: &Path, copy: &Path) -> Result<Option<(u32, u32)>, CopyError> {
    let look = |path: &Path| {
        std::fs::metadata(path).map_err(|source| CopyError::Write { path: ".".to_owned(), source })
    };
    let (ours, theirs) = (look(copy)?, look(project)?);
    let differs = ours.uid() == 0 && (ours.uid(), ours.gid()) != (theirs.uid(), theirs.gid());
    Ok(differs.then(|| (theirs.uid(), theirs.gid())))
}

/// Whether a path is one of these or a directory above one.
fn is_on_the_way(path: &ProjectPath, allowed: &[ProjectPath]) -> bool {
    let way = |end: &ProjectPath| std::iter::successors(Some(end.clone()), ProjectPath::parent);
    allowed.iter().any(|end| way(end).any(|part| part == *path))
}

/// Nothing that stayed behind stands where the builder is to write: it would be overwritten unseen.
fn free(copied: &Copied, allowed: &[ProjectPath]) -> Result<(), CopyError> {
    match copied.left_out.iter().find(|(path, _)| is_on_the_way(path, allowed)) {
        None => Ok(()),
        Some((path, why)) => Err(CopyError::InTheWay { path: path.clone(), why: *why }),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make the project that is copied")]
mod tests;
