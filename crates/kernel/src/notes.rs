//! Reads back what was noted in the ledger, for parts that are made of their own entries.
//!
//! **Invariant.** What is handed out counts only once this says so: every entry between the first that was asked for and
//! the end was held against its hash, its place and the signed root.

use std::ops::ControlFlow;

use fluffy_base::Digest;
use fluffy_ledger::{
    EventType, Layout, LedgerError, Located, Page, Proved, Query, ReadEntry, VerifyingKey, prove,
    prove_copy, prove_one,
};

/// A note as the ledger has it.
#[derive(Debug, Clone, Copy)]
pub struct KeptNote<'a> {
    /// Its number.
    pub seq: u64,
    /// Its hash.
    pub entry_hash: Digest,
    /// When, in milliseconds since the epoch.
    pub ts_ms: u64,
    /// Who made it.
    pub actor: &'a str,
    /// All of it, as [`Note::content`](crate::Note::content) was written.
    pub content: Option<&'a [u8]>,
    /// What kind of thing, if this version knows it.
    pub event: Option<EventType>,
    read: &'a ReadEntry<'a>,
}

/// Why notes cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum NotesError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// What the ledger's file says is not what was recorded.
    #[error("the ledger is not what was recorded: {0}")]
    Forged(Box<Located>),
}

/// The part of a ledger that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The segment.
    pub segment: u32,
    /// How many entries it has.
    pub size: u64,
    /// The entries from 1 to this one (not itself) were wanted and are not held any more; 0 where all were there.
    pub gone_to: u64,
}

impl<'a> KeptNote<'a> {
    /// What its metadata says under a name.
    pub fn metadata(&self, name: &str) -> Option<&'a str> {
        self.read.detail.metadata.get(name).map(|text| &**text)
    }

    /// The session under which it was recorded.
    pub fn session(&self) -> &str {
        &self.read.detail.session_id
    }

    /// All of the entry, to be kept by whoever needs it longer than the ledger holds it: [`proved_copy`] takes it.
    pub fn copy(&self) -> Result<Vec<u8>, LedgerError> {
        self.read.copy()
    }
}

/// The notes of an event from an entry's number on, in order; none where there is no ledger yet. What `visit` gathers
/// counts only if this gives [`Span`]. Every entry is shown, so that the caller knows the hashes between; those that are
/// no notes of the event have no content.
pub fn notes(
    layout: &Layout,
    key: &VerifyingKey,
    event: EventType,
    first: u64,
    mut visit: impl FnMut(&KeptNote<'_>),
) -> Result<Option<Span>, NotesError> {
    if layout.active()?.is_none() {
        return Ok(None);
    }
    let proved = prove(layout, key, first, None, |read| {
        with(read, event, &mut visit);
        ControlFlow::Continue(())
    })?;
    Ok(Some(span(proved.map_err(forged)?)))
}

/// The note of this number, proved by itself; `None` where there is no such entry, or not any more.
pub fn proved_note(
    layout: &Layout,
    key: &VerifyingKey,
    event: EventType,
    seq: u64,
    visit: impl FnOnce(&KeptNote<'_>),
) -> Result<Option<Span>, NotesError> {
    let proved = prove_one(layout, key, seq, |read| with(read, event, visit))?;
    Ok(proved.map_err(forged)?.map(span))
}

/// A note that the ledger does not hold any more, from the copy that was kept of it, proved by the ledger's signed tree.
pub fn proved_copy(
    layout: &Layout,
    key: &VerifyingKey,
    event: EventType,
    copy: &[u8],
    visit: impl FnOnce(&KeptNote<'_>),
) -> Result<Span, NotesError> {
    let proved = prove_copy(layout, key, copy, |read| with(read, event, visit))?;
    Ok(span(proved.map_err(forged)?))
}

/// The newest note of an event, proved with everything after it, so that there is none that is newer.
pub fn newest_note(
    layout: &Layout,
    key: &VerifyingKey,
    event: EventType,
    mut visit: impl FnMut(&KeptNote<'_>),
) -> Result<Option<Span>, NotesError> {
    let Some(active) = layout.active()? else { return Ok(None) };
    let query = Query { event: Some(event), ..Query::default() };
    let page = Page { limit: 1, offset: 0, newest_first: true };
    let newest = query.collect(&layout.segment(active), page)?.pop();
    // Without one, everything is read: there may be one that was made to look like something else.
    let first = newest.map_or(0, |record| record.entry.seq);
    notes(layout, key, event, first, |note| {
        if note.event == Some(event) {
            visit(note);
        }
    })
}

fn with(read: &ReadEntry<'_>, event: EventType, visit: impl FnOnce(&KeptNote<'_>)) {
    let ReadEntry { seq, entry_hash, ts_ms, actor, detail, .. } = read;
    let kind = EventType::from_name(&detail.event);
    let content = read.input().filter(|_| kind == Some(event));
    let (seq, entry_hash, ts_ms) = (*seq, *entry_hash, *ts_ms);
    visit(&KeptNote { seq, entry_hash, ts_ms, actor, content, event: kind, read });
}

fn span(proved: Proved) -> Span {
    Span { segment: proved.segment, size: proved.size, gone_to: proved.gone_to }
}

fn forged(found: Located) -> NotesError {
    NotesError::Forged(Box::new(found))
}
