//! What a job does not see of the folders of the project that it is shown: whatever the rules keep from being read.
//!
//! **Invariant.** What is hidden from the model is hidden from skills and plugins, whoever runs them. A folder with a name in it that no
//! rule can judge is not shown at all.

use std::path::Path;
use std::sync::Arc;

use fluffy_base::ProjectPath;

use super::Folders;
use crate::{Blobs, Clerk, Found, May, StagedFiles, Tree, TreeError, View, causes};

/// The most names that are looked at.
const MAX_NAMES: usize = 200_000;

/// The files and directories in these folders that are not to be seen. `dir` is a directory of the caller's own. The error says why they cannot be
/// shown at all.
pub fn hidden_in(
    tree: &Arc<Tree>,
    folders: &Folders,
    dir: &Path,
    clerk: &dyn Clerk,
) -> Result<Vec<ProjectPath>, String> {
    let failed = |error: &dyn std::error::Error| causes(error);
    let blobs = Arc::new(Blobs::open(dir).map_err(|error| failed(&error))?);
    let view = View::new(Arc::clone(tree), blobs, StagedFiles::default());
    let (mut hidden, mut names) = (Vec::new(), 0_usize);
    let mut pending: Vec<ProjectPath> =
        folders.seen.iter().chain(&folders.changed).cloned().collect();
    while let Some(folder) = pending.pop() {
        let listing = match view.list(Some(&folder)) {
            Ok(listing) => listing,
            // What went away is not seen.
            Err(TreeError::Missing(_)) => continue,
            Err(error) => return Err(failed(&error)),
        };
        names = names.saturating_add(listing.entries.len());
        if names > MAX_NAMES {
            return Err(format!("its folders hold more than {MAX_NAMES} files"));
        }
        if listing.unnamed > 0 {
            let why = "holds a name that no rule can judge, such as one that is not UTF-8";
            return Err(format!("`{folder}` {why}"));
        }
        for entry in listing.entries {
            match entry.found {
                Found::Directory if clerk.may("fs.list", &entry.path) != May::No => {
                    pending.push(entry.path);
                }
                Found::File { .. } | Found::Link | Found::Special
                    if clerk.may("fs.read", &entry.path) == May::Yes => {}
                Found::Directory | Found::File { .. } | Found::Link | Found::Special => {
                    hidden.push(entry.path);
                }
            }
        }
    }
    Ok(hidden)
}
