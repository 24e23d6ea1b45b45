//! Artifacts and entries in memory, which fail when they are told to.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use fluffy_base::{Digest, ProjectPath};
use fluffy_forge::build::{Next, Shelving, ShelvingError};
use fluffy_forge::{ArtifactKind, BuildEnd, Proposal, SideEffect, SkillEntry, SkillName};
use serde_json::json;

/// When a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Before it has had its effect.
    Before(usize),
    /// After it.
    After(usize),
}

#[derive(Default)]
pub(crate) struct MemoryShelf {
    pub(crate) artifacts: RefCell<BTreeMap<Digest, Vec<u8>>>,
    pub(crate) entries: RefCell<Vec<SkillEntry>>,
    pub(crate) calls: Cell<usize>,
    pub(crate) fault: Cell<Option<Fault>>,
}

impl MemoryShelf {
    /// Whether the last build that ended was built.
    pub(crate) fn is_built(&self) -> bool {
        let entries = self.entries.borrow();
        matches!(entries.last(), Some(SkillEntry::BuildEnded { end: BuildEnd::Built { .. }, .. }))
    }

    fn call<T>(&self, effect: impl FnOnce() -> T) -> Result<T, ShelvingError> {
        let call = self.calls.get();
        self.calls.set(call + 1);
        if self.fault.get() == Some(Fault::Before(call)) {
            return Err("power cut".into());
        }
        let done = effect();
        if self.fault.get() == Some(Fault::After(call)) {
            return Err("power cut".into());
        }
        Ok(done)
    }
}

impl Shelving for MemoryShelf {
    fn next(&self, name: &SkillName) -> Result<Next, ShelvingError> {
        let builds = |entry: &SkillEntry| match entry {
            SkillEntry::BuildStarted { attempt, .. } => Some(attempt.build.clone()),
            _ => None,
        };
        let earlier: Vec<_> = self.entries.borrow().iter().filter_map(builds).collect();
        Ok(Next {
            proposal: proposal(name),
            number: u32::try_from(earlier.len()).unwrap() + 1,
            parent: earlier.last().cloned(),
        })
    }

    fn keep(&self, _: ArtifactKind, bytes: &[u8]) -> Result<Digest, ShelvingError> {
        let digest = Digest::of(bytes);
        self.call(|| self.artifacts.borrow_mut().insert(digest, bytes.to_vec()))?;
        Ok(digest)
    }

    fn artifact(&self, digest: &Digest) -> Result<Vec<u8>, ShelvingError> {
        let found = self.call(|| self.artifacts.borrow().get(digest).cloned())?;
        found.ok_or_else(|| "there is no such artifact".into())
    }

    fn record(&self, entry: SkillEntry) -> Result<(), ShelvingError> {
        self.call(|| self.entries.borrow_mut().push(entry))
    }
}

pub(crate) fn proposal(name: &SkillName) -> Proposal {
    Proposal {
        name: name.clone(),
        description: "Writes a note.".to_owned(),
        input: json!({"type": "object"}),
        output: json!({"type": "object"}),
        side_effect: SideEffect::FileWrite,
        reads: Vec::new(),
        writes: vec![ProjectPath::parse("notes").unwrap()],
        hosts: Vec::new(),
        secrets: Vec::new(),
        model: false,
    }
}
