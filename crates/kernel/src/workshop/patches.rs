//! Runs a command that may change nothing and leaves unified diffs instead: the other form of output.
//!
//! The project is read-only to it; what it wants changed it writes to `/output`, as `.patch` or `.diff` files. They are
//! applied to copies of the files, and what comes out is judged like any other output.
//!
//! **Invariant.** All patches fit exactly, or nothing of them is taken. No file is changed by two of them, so that
//! their order cannot matter.
//!
//! **Invariant.** A patch is held against what its command could see, and nothing else: whether it fits tells nothing
//! about a file that must not be read.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use fluffy_base::{ByteSize, ProjectPath};
use fluffy_sandbox::harvest::patch::{PatchError, Patched, apply};
use fluffy_sandbox::harvest::{Change, Harvest, HarvestLimits, Kind, harvest};
use fluffy_sandbox::{Changes, Store, Volume, Watcher, Workspace};

use super::command::{CommandError, CommandLine, CommandRun};
use super::produce::{NotTaken, ProduceError, Taken};
use super::sight::Sight;
use super::{Order, Produced, Workshop, WorkshopError};
use crate::files::Blobs;

/// How much is read of what a command leaves as patches.
const LIMITS: HarvestLimits = HarvestLimits {
    entries: 1_000,
    names: ByteSize::from_bytes(1 << 20),
    depth: 8,
    file: ByteSize::from_bytes(8 << 20),
    total: ByteSize::from_bytes(16 << 20),
};

/// How large the files of one patch may be together, once they are patched.
const PATCHED: ByteSize = ByteSize::from_bytes(64 << 20);

/// How the names of patches end.
const ENDINGS: [&str; 2] = [".patch", ".diff"];

/// A file as it is: its contents, and whether it can be executed.
pub type Current = (Vec<u8>, bool);

/// What patches are applied to.
#[derive(Clone, Copy)]
pub struct Originals<'a> {
    /// Where contents are kept.
    pub blobs: &'a Blobs,
    /// A file as the command saw it, or nothing.
    pub read: &'a dyn Fn(&ProjectPath) -> io::Result<Option<Current>>,
}

impl Workshop {
    /// Runs a command that leaves patches for the project as `sight` shows it.
    pub fn command_for_patches(
        &self,
        sight: &Sight<'_>,
        line: &CommandLine,
        originals: &Originals<'_>,
        watcher: Arc<dyn Watcher>,
    ) -> Result<CommandRun, CommandError> {
        let (_hidden, layers) = self.seen(sight)?;
        let order = self.order(sight, line, &layers, watcher)?;
        let volume = self.options.runtime.volume(Store::Disk).map_err(WorkshopError::from)?;
        let config = self.config(&order, None).map_err(WorkshopError::from)?;
        let workspace = Workspace {
            at: self.project().to_owned(),
            layers: self.all_layers(&layers),
            changes: Changes::Output(volume.clone()),
        };
        let config = config.with_workspace(workspace).map_err(WorkshopError::from)?;
        let Order { job, watcher, .. } = order;
        let ran = self.carry_out(config, Some(volume), job, watcher)?;
        let left = produce(ran.volume.as_ref(), originals);
        Ok(CommandRun::of(ran, left))
    }
}

/// Applies the patches in the volume of a command that has ended.
fn produce(volume: Option<&Volume>, originals: &Originals<'_>) -> Result<Taken, ProduceError> {
    let content = volume.and_then(Volume::content).ok_or(ProduceError::NoVolume)?;
    let found = harvest(content, Kind::Output, &LIMITS, &|_| false)?;
    let refused = found.refused().iter();
    let refused =
        refused.map(|it| NotTaken { name: it.name.clone(), why: it.why.to_string() }).collect();
    let mut taken = Taken { refused, ..Taken::default() };
    let mut files = BTreeMap::new();
    for change in found.changes() {
        let name = change.path();
        if !ENDINGS.iter().any(|ending| name.as_str().ends_with(ending)) {
            let why = "it is no patch: `.patch` and `.diff` files are taken from here";
            taken.refused.push(NotTaken { name: name.to_string(), why: why.to_owned() });
            continue;
        }
        for file in patched(&found, change, originals)? {
            let path = file.path().clone();
            if files.insert(path.clone(), file).is_some() {
                let source = PatchError::Twice(path);
                return Err(ProduceError::Patch { patch: name.clone(), source });
            }
        }
    }
    originals.blobs.settle()?;
    taken.produced = files.into_values().collect();
    Ok(taken)
}

/// The files that one patch makes.
fn patched(
    found: &Harvest,
    change: &Change,
    originals: &Originals<'_>,
) -> Result<Vec<Produced>, ProduceError> {
    let Change::Write(written) = change else { return Ok(Vec::new()) };
    let patch = found.read(written)?;
    let failed = |source| ProduceError::Patch { patch: change.path().clone(), source };
    let read = |path: &ProjectPath| Ok((originals.read)(path)?.map(|(bytes, _)| bytes));
    let files = apply(&patch, PATCHED, read).map_err(failed)?;
    let produced = files.into_iter().map(|file| match file.state {
        Patched::Deleted => Ok(Produced::Nothing(file.path)),
        Patched::Written { content, executable } => {
            let executable = match executable {
                Some(executable) => executable,
                None => is_executable(originals, &file.path).map_err(failed)?,
            };
            let stored = originals.blobs.write(&content, executable)?;
            Ok(Produced::File(file.path, stored))
        }
    });
    produced.collect()
}

fn is_executable(originals: &Originals<'_>, path: &ProjectPath) -> Result<bool, PatchError> {
    let current = (originals.read)(path);
    let current = current.map_err(|source| PatchError::Base { path: path.clone(), source })?;
    Ok(current.is_some_and(|(_, executable)| executable))
}
