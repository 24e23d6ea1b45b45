//! Everything that was recorded under a session, proved, for whoever wants to read or keep it.

use std::path::Path;

use fluffy_base::Digest;
use fluffy_ledger::{Layout, Proved, ReadEntry, VerifyingKey};
use serde::Serialize;
use serde_json::Value;

use super::chronicle::{archived_by, each, parsed};
use super::restore::{Fold, StoredSession};
use super::{Entry, RestoreError};
use crate::files::{Blobs, Staged};
use crate::staging::{Diff, Step, StepChange};

/// Everything that was recorded under a session.
#[derive(Debug)]
pub struct Dossier {
    /// What it is.
    pub session: StoredSession,
    /// What was recorded, in its order.
    pub entries: Vec<DossierEntry>,
    /// What the ledger was when it was read.
    pub proved: Proved,
    steps: Vec<Step>,
}

/// One entry of the ledger. Its members are part of a documented form.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DossierEntry {
    /// Its number.
    pub seq: u64,
    /// Its hash.
    pub hash: Digest,
    /// When, in milliseconds since the epoch.
    pub ts_ms: u64,
    /// What kind of thing.
    pub event: String,
    /// ALLOW, DENY or HALT.
    pub decision: String,
    /// What for.
    pub intent: String,
    /// The request that it belongs to.
    pub request_id: String,
    /// The tool that was asked for.
    pub tool: Option<String>,
    /// The rule that decided.
    pub rule: Option<String>,
    /// Why it was refused or failed.
    pub error: Option<String>,
    /// What else the ledger tells of it, as the ledger has it.
    pub detail: Value,
    /// What the session keeps there to go on from, if it is one of its own.
    pub content: Option<Value>,
}

/// What a step changed.
#[derive(Debug)]
pub struct StepDiff {
    /// Its number.
    pub number: u64,
    /// The request that made it.
    pub origin: String,
    /// The files.
    pub files: Vec<String>,
    /// The changes; nothing where the contents are not there any more, or are archived.
    pub diff: Option<Diff>,
}

impl Dossier {
    /// Everything that was recorded under a session, every entry proved.
    pub fn prove(layout: &Layout, key: &VerifyingKey, id: &str) -> Result<Self, RestoreError> {
        let (mut entries, mut steps, mut archived) = (Vec::new(), Vec::new(), None);
        let mut fold = Fold::default();
        let proved = each(layout, key, id, None, |read| {
            if read.detail.session_id != id {
                archived = Some(archived_by(&read.detail, read.ts_ms));
                return Ok(());
            }
            entries.push(DossierEntry::of(read)?);
            if let Some(entry) = parsed(read)? {
                archived = None;
                if let Entry::Happened { step: Some(step), .. } = &entry {
                    steps.push(step.clone());
                }
                fold.add(read.ts_ms, entry);
            }
            Ok(())
        })?;
        let session = StoredSession { archived, ..fold.finish(id)? };
        Ok(Self { session, entries, proved, steps })
    }

    /// What every step changed, also those that were taken back. `dir` is where the session keeps its files.
    pub fn diffs(&self, dir: &Path) -> Vec<StepDiff> {
        let blobs = Blobs::of(&dir.join("blobs"));
        let diff = |step: &Step| {
            let changes = step.changes.iter().map(sides);
            StepDiff {
                number: step.number,
                origin: step.origin.clone(),
                files: step.changes.iter().map(|change| change.path.to_string()).collect(),
                diff: Diff::between(changes, &blobs).ok(),
            }
        };
        self.steps.iter().map(diff).collect()
    }
}

/// What a change has before and after it: what is staged, or what the project had.
fn sides(
    change: &StepChange,
) -> (&fluffy_base::ProjectPath, Option<crate::Stored>, Option<crate::Stored>) {
    let side = |staged: Option<Staged>| match staged {
        Some(Staged::File(stored)) => Some(stored),
        Some(Staged::Deleted) => None,
        None => change.base.file(),
    };
    (&change.path, side(change.before), side(change.after))
}

impl DossierEntry {
    fn of(read: &ReadEntry<'_>) -> Result<Self, RestoreError> {
        let seq = read.seq;
        let json = |bytes: &[u8]| {
            serde_json::from_slice::<Value>(bytes)
                .map_err(|source| RestoreError::Entry { seq, source })
        };
        // Requests are kept as they came, secrets and all: only what a session itself keeps is handed out.
        let own = parsed(read)?.is_some();
        let content = read.input().filter(|_| own).map(json).transpose()?;
        Ok(Self {
            seq,
            hash: read.entry_hash,
            ts_ms: read.ts_ms,
            event: read.detail.event.to_string(),
            decision: read.decision.to_owned(),
            intent: read.intent.to_owned(),
            request_id: read.request_id.to_owned(),
            tool: read.tool_name.map(str::to_owned),
            rule: read.detail.rule.as_deref().map(str::to_owned),
            error: read.error.map(str::to_owned),
            detail: json(read.detail_bytes)?,
            content,
        })
    }
}
