//! Applies unified diffs that a job left instead of files.
//!
//! [`apply`] reads what `git diff` writes, any number of files in one text, and gives the files as they
//! are afterwards. It never touches a disk.
//!
//! **Invariant.** A patch fits exactly or not at all: text is neither searched for at other lines nor
//! compared loosely, and a line that is not understood is an error. Where `git apply` would skip
//! it, part of the change would be lost unseen.

mod head;
mod lines;

use std::collections::BTreeMap;
use std::io;

use fluffy_base::{ByteSize, PathError, ProjectPath};

use head::{Effect, Head};
use lines::{Lines, Rebuilt};

/// A file that a patch changes, as it is afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchedFile {
    /// Which.
    pub path: ProjectPath,
    /// What became of it.
    pub state: Patched,
}

/// What a patch makes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Patched {
    /// It has these contents.
    Written {
        /// All of them.
        content: Vec<u8>,
        /// Whether it can be executed; nothing if that stays as it is.
        executable: Option<bool>,
    },
    /// It is gone.
    Deleted,
}

/// Why a patch is not applied. Lines are counted from one.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// The text is not a unified diff.
    #[error("line {line} of the patch: {what}")]
    Syntax {
        /// The line of the patch.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// It says something that is understood and refused.
    #[error("line {line} of the patch: {what} cannot be taken from a patch")]
    Unsupported {
        /// The line of the patch.
        line: usize,
        /// What it says.
        what: &'static str,
    },
    /// It names no file of the project.
    #[error("line {line} of the patch names no file of the project")]
    Path {
        /// The line of the patch.
        line: usize,
        /// Why not.
        source: PathError,
    },
    /// A hunk does not say what the file says.
    #[error("hunk {hunk} of the patch does not fit `{path}` at line {line}")]
    Mismatch {
        /// The file.
        path: ProjectPath,
        /// Which hunk of this file.
        hunk: usize,
        /// The first line of the file that differs.
        line: u64,
    },
    /// It changes or deletes a file that is not there.
    #[error("the patch changes `{0}`, which does not exist")]
    Missing(ProjectPath),
    /// It creates a file that is there.
    #[error("the patch creates `{0}`, which exists")]
    Exists(ProjectPath),
    /// It deletes a file of which something is left.
    #[error("the patch deletes `{0}` but not all of its lines")]
    Leftover(ProjectPath),
    /// It changes the same file twice, so that the order would decide.
    #[error("the patch changes `{0}` twice")]
    Twice(ProjectPath),
    /// It writes a file and something beneath it.
    #[error("the patch writes `{0}` and a file beneath it")]
    Beneath(ProjectPath),
    /// The files as they are afterwards are too large together.
    #[error("the patched files take more than {0}")]
    TooLarge(ByteSize),
    /// The file as it is could not be had.
    #[error("`{path}` cannot be read to apply the patch")]
    Base {
        /// The file.
        path: ProjectPath,
        /// Why not.
        source: io::Error,
    },
}

/// The files that a patch changes, in the order of their paths. `read_base` gives a file as it is,
/// or nothing if there is none; `total` is how many bytes the results may have together, since a short
/// patch can name many large files.
pub fn apply(
    patch: &[u8],
    total: ByteSize,
    read_base: impl Fn(&ProjectPath) -> io::Result<Option<Vec<u8>>>,
) -> Result<Vec<PatchedFile>, PatchError> {
    let mut lines = Lines::of(patch)?;
    let mut left = total.bytes();
    let mut files: BTreeMap<ProjectPath, Patched> = BTreeMap::new();
    while lines.peek().is_some() {
        let head = Head::read(&mut lines)?;
        if files.contains_key(&head.path) {
            return Err(PatchError::Twice(head.path));
        }
        let base = read_base(&head.path)
            .map_err(|source| PatchError::Base { path: head.path.clone(), source })?;
        let state = apply_to(&head, base, &mut lines)?;
        if let Patched::Written { content, .. } = &state {
            let rest = left.checked_sub(content.len() as u64);
            left = rest.ok_or(PatchError::TooLarge(total))?;
        }
        files.insert(head.path, state);
    }
    check_nesting(&files)?;
    Ok(files.into_iter().map(|(path, state)| PatchedFile { path, state }).collect())
}

fn apply_to(
    head: &Head,
    base: Option<Vec<u8>>,
    lines: &mut Lines<'_>,
) -> Result<Patched, PatchError> {
    let base = match (head.effect, base) {
        (Effect::Create, None) => Vec::new(),
        (Effect::Create, Some(_)) => return Err(PatchError::Exists(head.path.clone())),
        (Effect::Change | Effect::Delete, Some(base)) => base,
        (Effect::Change | Effect::Delete, None) => {
            return Err(PatchError::Missing(head.path.clone()));
        }
    };
    let content = if head.has_hunks { rebuild(head, &base, lines)? } else { base };
    match head.effect {
        Effect::Create | Effect::Change => {
            Ok(Patched::Written { content, executable: head.executable })
        }
        Effect::Delete if content.is_empty() => Ok(Patched::Deleted),
        Effect::Delete => Err(PatchError::Leftover(head.path.clone())),
    }
}

fn rebuild(head: &Head, base: &[u8], lines: &mut Lines<'_>) -> Result<Vec<u8>, PatchError> {
    let mut rebuilt = Rebuilt::of(&head.path, base);
    loop {
        rebuilt.hunk(lines)?;
        if !lines.peek().is_some_and(|line| line.starts_with(b"@@ ")) {
            return rebuilt.finish();
        }
    }
}

/// No file that is written lies beneath another that is written.
fn check_nesting(files: &BTreeMap<ProjectPath, Patched>) -> Result<(), PatchError> {
    let is_written = |path: &ProjectPath| matches!(files.get(path), Some(Patched::Written { .. }));
    for path in files.keys().filter(|path| is_written(path)) {
        let mut above = path.parent();
        while let Some(directory) = above {
            if is_written(&directory) {
                return Err(PatchError::Beneath(directory));
            }
            above = directory.parent();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
