//! Replacing the signing key, so that it can be interrupted anywhere.
//!
//! 1. the statement that the new key takes the place of the old one, signed by both, is put down;
//! 2. a checkpoint that both keys signed is remembered: it holds whichever key is found later;
//! 3. the key's file is replaced. This is the moment at which the key changes;
//! 4. the statement becomes an entry;
//! 5. a checkpoint of the new key alone is remembered, and the statement is taken away.
//!
//! [`resume`] looks for a statement when the ledger is opened. If the key is still the old one, the
//! rotation never happened; if it is the new one, what is missing of steps 4 and 5 is done.

use std::path::Path;

use fluffy_base::KernelState;
use zeroize::Zeroizing;

use crate::files::{self, Durability};
use crate::key::{RotationError, rotate, verify_rotation};
use crate::ledger::{Shared, lock};
use crate::{
    Appended, Detail, DetailView, EventType, KeyName, LedgerError, Origin, Page, Query, Record,
    SigningKey, VerifyingKey,
};

/// A statement is a few hundred bytes.
const STATEMENT_LIMIT: u64 = 64 << 10;
/// Where an entry carries the statement.
const STATEMENT: &str = "rotation";

/// Replaces the key; `append` appends the entry with the statement.
pub(crate) fn run(
    shared: &Shared,
    path: &Path,
    seed: [u8; 32],
    append: impl FnOnce(&str) -> Result<Appended, LedgerError>,
) -> Result<Appended, LedgerError> {
    let seed = Zeroizing::new(seed);
    let statement = announce(shared, path, &seed)?;
    let prepared =
        files::replace(&shared.layout().rotation(), statement.as_bytes(), Durability::Synced)
            .and_then(|()| shared.remember(Durability::Synced))
            .and_then(|_| SigningKey::replace(path, &seed));
    if let Err(error) = prepared {
        withdraw(shared, path)?;
        return Err(error);
    }
    let appended = append(&statement)?;
    finish(shared)?;
    Ok(appended)
}

/// Finishes or forgets a rotation that was interrupted.
pub(crate) fn resume(
    shared: &Shared,
    append: impl FnOnce(&str) -> Result<Appended, LedgerError>,
) -> Result<(), LedgerError> {
    let file = shared.layout().rotation();
    let Some(statement) = files::read_small(&file, STATEMENT_LIMIT)? else { return Ok(()) };
    let current = lock(&shared.keys).current.verifying_key().clone();
    let hands_over = old_key(&statement)
        .and_then(|old| verify_rotation(&statement, &old).ok())
        .is_some_and(|new| new == current);
    if hands_over {
        if !is_entered(shared, &statement)? {
            append(&statement)?;
        }
        shared.remember(Durability::Synced)?;
    }
    files::remove(&file)
}

/// The caller's record with the statement in it.
pub(crate) fn entry(mut record: Record, statement: &str) -> Record {
    record.detail.event = EventType::KeyRotation;
    record.detail.metadata.insert(STATEMENT, statement.to_owned());
    record
}

/// The ledger's own record of a rotation that was interrupted.
pub(crate) fn late_entry(ts_ms: u64, origin: &Origin, statement: &str) -> Record {
    let states = (KernelState::Booting, KernelState::Booting);
    let detail = Detail::new(origin.clone(), EventType::KeyRotation);
    entry(Record::event(ts_ms, "the signing key was replaced", states, detail), statement)
}

/// From here on, checkpoints are signed by both keys.
fn announce(shared: &Shared, path: &Path, seed: &[u8; 32]) -> Result<String, LedgerError> {
    let new = SigningKey::from_seed(KeyName::LEDGER, seed);
    let mut keys = lock(&shared.keys);
    if keys.next.is_some() {
        return Err(LedgerError::Stopped("a rotation is under way".to_owned()));
    }
    let in_file = SigningKey::load(path)?;
    if in_file.as_ref().map(SigningKey::verifying_key) != Some(keys.current.verifying_key()) {
        return Err(RotationError::OtherOldKey.into());
    }
    let statement = rotate(&keys.current, &new)?;
    keys.next = Some(new);
    Ok(statement)
}

/// Nothing has happened, unless the file has the new key all the same: then opening finishes it.
fn withdraw(shared: &Shared, path: &Path) -> Result<(), LedgerError> {
    let mut keys = lock(&shared.keys);
    let in_file = SigningKey::load(path)?;
    if in_file.as_ref().map(SigningKey::verifying_key) == Some(keys.current.verifying_key()) {
        keys.next = None;
        files::remove(&shared.layout().rotation())?;
    }
    Ok(())
}

fn finish(shared: &Shared) -> Result<(), LedgerError> {
    {
        let mut keys = lock(&shared.keys);
        if let Some(new) = keys.next.take() {
            keys.current = new;
        }
    }
    shared.remember(Durability::Synced)?;
    files::remove(&shared.layout().rotation())
}

/// The key that a statement says it replaces.
fn old_key(statement: &str) -> Option<VerifyingKey> {
    statement.lines().nth(1)?.parse().ok()
}

/// Whether the statement is in the ledger already: the entry is then the last of its kind.
fn is_entered(shared: &Shared, statement: &str) -> Result<bool, LedgerError> {
    let query = Query { event: Some(EventType::KeyRotation), ..Query::default() };
    let newest = Page { limit: 1, offset: 0, newest_first: true };
    let last = query.collect(&shared.path, newest)?.pop();
    Ok(last.is_some_and(|record| {
        DetailView::parse(&record.detail)
            .is_ok_and(|detail| detail.metadata.get(STATEMENT).is_some_and(|s| s == statement))
    }))
}
