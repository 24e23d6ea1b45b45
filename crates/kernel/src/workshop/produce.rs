//! From what a job left in its volume to files that the session can judge.
//!
//! **Invariant.** Nothing is dropped unseen: whatever the volume holds is [`Produced`], refused by name, or
//! skipped by name.

use std::collections::BTreeMap;

use fluffy_base::ProjectPath;
use fluffy_sandbox::Volume;
use fluffy_sandbox::harvest::patch::PatchError;
use fluffy_sandbox::harvest::{
    Change, Harvest, HarvestError, HarvestLimits, Kind, ReadError, harvest,
};

use super::Produced;
use crate::files::{BlobError, Blobs};

/// How what a job left is taken.
#[derive(Clone, Copy)]
pub struct Taking<'a> {
    /// Where contents are kept.
    pub blobs: &'a Blobs,
    /// Every file that the session's view has at a path or beneath it: a job removes directories at once. It
    /// is asked once for each change, so it should not look at all files.
    pub files: &'a dyn Fn(&ProjectPath) -> Vec<ProjectPath>,
    /// What is left out with all that it holds, such as ignored paths.
    pub skip: &'a dyn Fn(&ProjectPath) -> bool,
}

/// What a job left.
#[derive(Debug, Default)]
pub struct Taken {
    /// Files to judge, by path, each path once.
    pub produced: Vec<Produced>,
    /// What cannot be taken.
    pub refused: Vec<NotTaken>,
    /// What was left out, each directory once.
    pub skipped: Vec<ProjectPath>,
}

/// Something that a job left and that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotTaken {
    /// Its path on one line that a terminal may show.
    pub name: String,
    /// Why not.
    pub why: String,
}

/// Why nothing of what a job left is taken.
#[derive(Debug, thiserror::Error)]
pub enum ProduceError {
    /// The job had no volume, or was never started.
    #[error("the job left nothing that could be taken")]
    NoVolume,
    /// What it left is too much, or cannot be looked at.
    #[error(transparent)]
    Harvest(#[from] HarvestError),
    /// A file could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A content could not be kept.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// A patch does not fit.
    #[error("`{patch}` is not applied")]
    Patch {
        /// Which.
        patch: ProjectPath,
        /// Why not.
        source: PatchError,
    },
}

/// Takes what lies in the volume of a job that has ended.
pub(crate) fn produce(
    volume: Option<&Volume>,
    limits: &HarvestLimits,
    taking: &Taking<'_>,
) -> Result<Taken, ProduceError> {
    let content = volume.and_then(Volume::content).ok_or(ProduceError::NoVolume)?;
    let found = harvest(content, Kind::Overlay, limits, taking.skip)?;
    let refused = found.refused().iter();
    let refused =
        refused.map(|it| NotTaken { name: it.name.clone(), why: it.why.to_string() }).collect();
    let mut taken = Taken { refused, skipped: found.skipped().to_vec(), ..Taken::default() };
    let mut files = BTreeMap::new();
    for change in found.changes() {
        removals(change, taking, &mut files, &mut taken.refused);
    }
    // A file that was written is there, whatever was removed around it.
    for change in found.changes() {
        if let Some(file) = written(&found, change, taking.blobs)? {
            files.insert(change.path().clone(), file);
        }
    }
    taking.blobs.settle()?;
    taken.produced = files.into_values().collect();
    Ok(taken)
}

/// The files that a change removes from the view.
fn removals(
    change: &Change,
    taking: &Taking<'_>,
    files: &mut BTreeMap<ProjectPath, Produced>,
    refused: &mut Vec<NotTaken>,
) {
    let path = change.path();
    let there = (taking.files)(path);
    if there.is_empty() && matches!(change, Change::Delete(_)) {
        let why = "it was removed, but is no file of the project: links and empty directories stay";
        refused.push(NotTaken { name: path.to_string(), why: why.to_owned() });
    }
    for file in there {
        let mut way = std::iter::successors(Some(file.clone()), ProjectPath::parent);
        if !way.any(|part| (taking.skip)(&part)) {
            files.insert(file.clone(), Produced::Nothing(file));
        }
    }
}

fn written(
    found: &Harvest,
    change: &Change,
    blobs: &Blobs,
) -> Result<Option<Produced>, ProduceError> {
    match change {
        Change::Delete(_) | Change::Replace(_) => Ok(None),
        Change::Write(written) => {
            let bytes = found.read(written)?;
            let stored = blobs.write(&bytes, written.executable())?;
            Ok(Some(Produced::File(written.path().clone(), stored)))
        }
    }
}
