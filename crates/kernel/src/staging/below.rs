//! The files in a directory of the project, where a file is to take its place.
//!
//! **Invariant.** All or nothing: whoever gets the list knows that nothing else is in the directory.

use std::io;

use fluffy_base::ProjectPath;
use rustix::fs::Dir;

use crate::files::{Found, Tree, TreeError};

/// Files beyond which no directory is replaced.
const MOST: usize = 100_000;

/// Why the files in a directory cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum BelowError {
    /// Something is in it that is neither file nor directory.
    #[error("it holds `{0}`, which is not a regular file")]
    NotAFile(ProjectPath),
    /// An empty directory is in it, which nobody asked to remove.
    #[error("it holds the empty directory `{0}`")]
    Empty(ProjectPath),
    /// A name is in it that no path can have.
    #[error("it holds a name in `{0}` that is not taken for a path")]
    Name(ProjectPath),
    /// There is too much in it.
    #[error("it holds more than {MOST} files")]
    TooMany,
    /// It cannot be read.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The operating system refused.
    #[error("its names cannot be read")]
    Io(#[source] io::Error),
}

/// Every file below a directory, sorted.
pub(crate) fn files_below(
    tree: &Tree,
    directory: &ProjectPath,
) -> Result<Vec<ProjectPath>, BelowError> {
    let mut files = Vec::new();
    let mut pending = vec![directory.clone()];
    while let Some(directory) = pending.pop() {
        let names = names(tree, &directory)?;
        if names.is_empty() {
            return Err(BelowError::Empty(directory));
        }
        for path in names {
            match tree.look(&path)? {
                Some(Found::File { .. }) => files.push(path),
                Some(Found::Directory) => pending.push(path),
                Some(Found::Link | Found::Special) => return Err(BelowError::NotAFile(path)),
                None => {}
            }
        }
        if files.len() + pending.len() > MOST {
            return Err(BelowError::TooMany);
        }
    }
    files.sort();
    Ok(files)
}

fn names(tree: &Tree, directory: &ProjectPath) -> Result<Vec<ProjectPath>, BelowError> {
    let failed = |errno: rustix::io::Errno| BelowError::Io(errno.into());
    let handle = tree.directory(Some(directory))?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&handle).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let bytes = entry.file_name().to_bytes();
        if matches!(bytes, b"." | b"..") {
            continue;
        }
        let odd = || BelowError::Name(directory.clone());
        let name = str::from_utf8(bytes).map_err(|_| odd())?;
        let path = directory.join(name).map_err(|_| odd())?;
        // A name that is read as another one is not this file.
        if path.file_name() != name {
            return Err(odd());
        }
        names.push(path);
        if names.len() > MOST {
            return Err(BelowError::TooMany);
        }
    }
    Ok(names)
}
