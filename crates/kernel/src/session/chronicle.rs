//! The entries of one session, in their order, each proved before it is used.
//!
//! **Invariant.** What reaches a model comes from here: an entry that was changed, removed, added or moved in the
//! ledger's file ends the reading, and nothing of the session is given.

use std::ops::ControlFlow;
use std::path::Path;

use fluffy_base::{Digest, Excerpt};
use fluffy_ledger::{
    DetailView, Layout, Page, Proved, Query, ReadEntry, VerifyingKey, input_of, look_back, prove,
};

use super::Entry;
use super::archive::{ARCHIVED_FILE, ARCHIVED_SESSION};
use super::restore::{Archived, RestoreError};

/// What names an entry of a session in its metadata.
pub(crate) const SESSION_ENTRY: &str = "session_entry";

/// How much of what somebody named is told back.
const SHOWN: usize = 60;

/// One entry of a session.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) seq: u64,
    pub(crate) hash: Digest,
    pub(crate) ts_ms: u64,
    pub(crate) entry: Entry,
}

/// The entries of one session.
#[derive(Debug)]
pub(crate) struct Chronicle {
    pub(crate) entries: Vec<Told>,
    /// Since when it is archived, if it is.
    pub(crate) archived: Option<Archived>,
    /// What the ledger was when it was read.
    pub(crate) proved: Proved,
}

impl Chronicle {
    /// The entries of a session, to the end or up to an entry's number, proved against the remembered checkpoint.
    pub(crate) fn read(
        layout: &Layout,
        key: &VerifyingKey,
        id: &str,
        until: Option<u64>,
    ) -> Result<Self, RestoreError> {
        let (mut entries, mut archived) = (Vec::new(), None);
        let proved = each(layout, key, id, until, |read| {
            if read.detail.session_id != id {
                archived = Some(archived_by(&read.detail, read.ts_ms));
            } else if let Some(entry) = parsed(read)? {
                // Whatever happens to it next, it is not put away any more.
                archived = None;
                let ReadEntry { seq, entry_hash: hash, ts_ms, .. } = *read;
                entries.push(Told { seq, hash, ts_ms, entry });
            }
            Ok(())
        });
        match proved {
            Err(RestoreError::Forged { id, found, .. }) => {
                let before = |told: &&Told| found.seq.is_some_and(|seq| told.seq < seq);
                let is_turn = |told: &&Told| matches!(told.entry, Entry::Turn { .. });
                // The last of them may have answers that do not hold.
                let turns = entries.iter().filter(before).filter(is_turn).count().saturating_sub(1);
                Err(RestoreError::Forged { id, found, turns })
            }
            proved => Ok(Self { proved: proved?, entries, archived }),
        }
    }
}

/// Reads and proves everything that was recorded under a session, and that it was archived; the first failure of `read` ends it.
pub(crate) fn each(
    layout: &Layout,
    key: &VerifyingKey,
    id: &str,
    until: Option<u64>,
    mut read: impl FnMut(&ReadEntry<'_>) -> Result<(), RestoreError>,
) -> Result<Proved, RestoreError> {
    let unknown = || RestoreError::Unknown(Excerpt::new(id, SHOWN).to_string());
    let active = layout.active()?.ok_or_else(unknown)?;
    let Some(first) = first_of(&layout.segment(active), id)? else {
        // A broken ledger goes on in a new segment, and what is left of the old one is not all of it.
        for number in layout.segments()?.into_iter().rev().skip(1) {
            if first_of(&layout.segment(number), id)?.is_some() {
                return Err(RestoreError::CutOff(id.to_owned()));
            }
        }
        return Err(unknown());
    };
    let mut failed = None;
    let proved = prove(layout, key, first, until, |entry| {
        let archives = entry.detail.metadata.get(ARCHIVED_SESSION).is_some_and(|it| it == id);
        if entry.detail.session_id != id && !archives {
            return ControlFlow::Continue(());
        }
        match read(entry) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    // What was forged may be what could not be read either: the proof comes first.
    let proved = proved.map_err(|found| RestoreError::Forged {
        id: id.to_owned(),
        found: Box::new(found),
        turns: 0,
    })?;
    failed.map_or(Ok(proved), Err)
}

/// What an entry says that archived a session.
pub(crate) fn archived_by(detail: &DetailView<'_>, since_ms: u64) -> Archived {
    let file = detail.metadata.get(ARCHIVED_FILE).and_then(|file| file.parse().ok());
    Archived { since_ms, file }
}

/// What is left of a session that was cut off, and in which segment. Nothing is proved.
pub(crate) fn left_of(layout: &Layout, id: &str) -> Result<(u32, Vec<Told>), RestoreError> {
    for number in layout.segments()?.into_iter().rev() {
        let database = layout.segment(number);
        let Some(first) = first_of(&database, id)? else { continue };
        let query = Query { session: Some(id.to_owned()), from_seq: first, ..Query::default() };
        let page = Page { limit: u64::MAX, offset: 0, newest_first: false };
        let mut entries = Vec::new();
        for record in query.collect(&database, page)? {
            let detail = DetailView::parse(&record.detail);
            if detail.is_ok_and(|detail| detail.metadata.contains_key(SESSION_ENTRY)) {
                let (seq, ts_ms) = (record.entry.seq, record.entry.ts_ms);
                let entry = entry(&database, seq)?;
                entries.push(Told { seq, hash: record.entry.entry_hash, ts_ms, entry });
            }
        }
        return Ok((number, entries));
    }
    Err(RestoreError::Unknown(id.to_owned()))
}

/// What an entry says of its session, if it is one of a session's own.
pub(crate) fn parsed(read: &ReadEntry<'_>) -> Result<Option<Entry>, RestoreError> {
    if !read.detail.metadata.contains_key(SESSION_ENTRY) {
        return Ok(None);
    }
    let seq = read.seq;
    let input = read.input().ok_or(RestoreError::Gone(seq))?;
    let entry = Entry::parse(input).map_err(|source| RestoreError::Entry { seq, source })?;
    Ok(Some(entry))
}

/// The number of a session's first entry, looked for from the end; of a session whose beginning is not there, of the
/// first that is.
fn first_of(database: &Path, id: &str) -> Result<Option<u64>, RestoreError> {
    let mut first = None;
    look_back(database, |glimpse| {
        if glimpse.detail.session_id != id {
            return ControlFlow::Continue(());
        }
        first = Some(glimpse.seq);
        match glimpse.detail.metadata.get(SESSION_ENTRY) {
            Some(kind) if kind == "opened" => ControlFlow::Break(()),
            Some(_) | None => ControlFlow::Continue(()),
        }
    })?;
    Ok(first)
}

/// The entries of a session as a database has them. Nothing is proved.
pub(crate) fn unproved(
    database: &Path,
    id: &str,
    mut found: impl FnMut(u64, Entry),
) -> Result<(), RestoreError> {
    let page = Page { limit: u64::MAX, offset: 0, newest_first: false };
    let query = Query { session: Some(id.to_owned()), ..Query::default() };
    let mut failed = None;
    query.run(database, page, |record| {
        let detail = DetailView::parse(&record.detail);
        if detail.is_ok_and(|detail| detail.metadata.contains_key(SESSION_ENTRY)) {
            match entry(database, record.entry.seq) {
                Ok(entry) => found(record.entry.ts_ms, entry),
                Err(error) => failed = Some(error),
            }
        }
        failed.is_none()
    })?;
    failed.map_or(Ok(()), Err)
}

/// One entry as a database has it.
fn entry(database: &Path, seq: u64) -> Result<Entry, RestoreError> {
    let blob = input_of(database, seq)?.ok_or(RestoreError::Gone(seq))?;
    Entry::parse(blob.input()).map_err(|source| RestoreError::Entry { seq, source })
}
