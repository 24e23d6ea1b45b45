//! What a skill does not see of the folders that its proposal lists: whatever the rules keep from being read.
//!
//! **Invariant.** What is hidden from the model is hidden from skills, whoever runs them. A folder with a name in it that no
//! rule can judge is not shown at all.

use std::path::Path;
use std::sync::Arc;

use fluffy_base::ProjectPath;
use fluffy_kernel::{
    Blobs, Clerk, Folders, Found, May, StagedFiles, Tree, TreeError, View, causes,
};

use super::RunError;

/// The most names that are looked at.
const MAX_NAMES: usize = 200_000;

/// The files and directories in these folders that are not to be seen. `dir` is a directory of the forge's own.
pub(super) fn hidden(
    tree: &Arc<Tree>,
    folders: &Folders,
    dir: &Path,
    clerk: &dyn Clerk,
) -> Result<Vec<ProjectPath>, RunError> {
    let failed = |error: &dyn std::error::Error| RunError::Folder(causes(error));
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
            return Err(RunError::Folder(format!("its folders hold more than {MAX_NAMES} files")));
        }
        if listing.unnamed > 0 {
            let why = "holds a name that no rule can judge, such as one that is not UTF-8";
            return Err(RunError::Folder(format!("`{folder}` {why}")));
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
