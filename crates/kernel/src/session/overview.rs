//! The sessions of a project at a glance, from one look back over the ledger.
//!
//! Nothing is proved here: this is for choosing one. Whoever goes on with it proves it.

use std::collections::HashMap;
use std::ops::ControlFlow;

use fluffy_ledger::{Glimpse, Layout, LedgerError, look_back};

use super::archive::ARCHIVED_SESSION;
use super::chronicle::SESSION_ENTRY;
use super::restore::{Fold, StoredSession};
use super::{Entry, ForkedFrom, RestoreError};

/// What is told of a session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// Its id.
    pub id: String,
    /// When it began.
    pub started_ms: u64,
    /// When something was last recorded of it.
    pub last_ms: u64,
    /// What the person wants.
    pub task: String,
    /// Where it stands, in a word.
    pub standing: &'static str,
    /// When it was archived, if it is.
    pub archived_ms: Option<u64>,
    /// The session that it goes on from, if it is a fork.
    pub forked: Option<ForkedFrom>,
}

/// What was seen of a session so far, its last entry first.
#[derive(Default)]
struct Seen {
    last_ms: u64,
    entries: Vec<(u64, Entry)>,
    /// Entries that tell nothing for a list.
    passed: u64,
    damaged: bool,
    archived_ms: Option<u64>,
}

/// The sessions of a project, newest first.
pub fn sessions(layout: &Layout, limit: usize) -> Result<Vec<SessionSummary>, RestoreError> {
    let mut known: Vec<SessionSummary> = Vec::new();
    let segments = layout.segments()?;
    for number in segments.iter().copied().rev() {
        if known.len() >= limit {
            break;
        }
        let first = known.len();
        let mut seen: HashMap<String, Seen> = HashMap::new();
        let mut failed = None;
        look_back(&layout.segment(number), |glimpse| {
            match see(&mut seen, glimpse) {
                Ok(summary) => known.extend(summary),
                Err(error) => failed = Some(error),
            }
            let more = failed.is_none() && known.len() < limit;
            if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        // Their beginning is gone: they are told of, and can be looked into.
        let headless = seen.into_iter().filter(|(_, seen)| seen.last_ms > 0);
        known.extend(headless.map(|(id, seen)| seen.headless(id)));
        if segments.last() != Some(&number) {
            // The ledger was damaged after them, and went on in another segment.
            known.iter_mut().skip(first).for_each(|session| session.standing = "cut off");
        }
    }
    Ok(known)
}

fn see(
    seen: &mut HashMap<String, Seen>,
    glimpse: &Glimpse<'_>,
) -> Result<Option<SessionSummary>, LedgerError> {
    let metadata = &glimpse.detail.metadata;
    if let Some(id) = metadata.get(ARCHIVED_SESSION) {
        // Only if nothing happened to it since.
        let fresh = || Seen { archived_ms: Some(glimpse.ts_ms), ..Seen::default() };
        seen.entry(id.to_string()).or_insert_with(fresh);
        return Ok(None);
    }
    let Some(kind) = metadata.get(SESSION_ENTRY) else { return Ok(None) };
    let id = &*glimpse.detail.session_id;
    let session = seen.entry(id.to_owned()).or_default();
    session.last_ms = session.last_ms.max(glimpse.ts_ms);
    if matches!(&**kind, "turn" | "answered" | "pinned" | "driven") {
        session.passed += 1;
        return Ok(None);
    }
    let input = glimpse.input()?;
    match input.as_ref().map(|blob| Entry::parse(blob.input())) {
        Some(Ok(entry)) => session.entries.push((glimpse.ts_ms, entry)),
        Some(Err(_)) | None => session.damaged = true,
    }
    if kind != "opened" {
        return Ok(None);
    }
    Ok(seen.remove(id).map(|seen| seen.summary(id)))
}

impl Seen {
    fn summary(self, id: &str) -> SessionSummary {
        let Self { last_ms, entries, passed, damaged, archived_ms } = self;
        let mut fold = Fold::default();
        fold.pass_over(passed);
        entries.into_iter().rev().for_each(|(ts_ms, entry)| fold.add(ts_ms, entry));
        let damaged_one = |started_ms, task| SessionSummary {
            id: id.to_owned(),
            started_ms,
            last_ms,
            task,
            standing: "damaged",
            archived_ms,
            forked: None,
        };
        match fold.finish(id) {
            Ok(stored) if !damaged => {
                let standing = stored.standing();
                let StoredSession { started_ms, task, forked, .. } = stored;
                let id = id.to_owned();
                SessionSummary { id, started_ms, last_ms, task, standing, archived_ms, forked }
            }
            Ok(stored) => damaged_one(stored.started_ms, stored.task),
            Err(_) => damaged_one(last_ms, String::new()),
        }
    }

    fn headless(self, id: String) -> SessionSummary {
        SessionSummary {
            id,
            started_ms: self.last_ms,
            last_ms: self.last_ms,
            task: String::new(),
            standing: "damaged",
            archived_ms: None,
            forked: None,
        }
    }
}
