//! The tables as they were made, one migration after another.
//!
//! **Invariant.** A migration that was released is never changed: what a table became is the next one's doing.

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use super::ShelfError;

/// Each makes a database of the version before it one of its own.
const MIGRATIONS: [&str; 2] = [
    // 1: what is known of skills, and how far the ledger was read.
    "CREATE TABLE folded (one INTEGER PRIMARY KEY CHECK (one = 1), segment INTEGER NOT NULL, \
       seq INTEGER NOT NULL, entry_hash TEXT NOT NULL, base TEXT NOT NULL, chain TEXT NOT NULL);
     CREATE TABLE registry (one INTEGER PRIMARY KEY CHECK (one = 1), written TEXT, \
       pending INTEGER NOT NULL);
     CREATE TABLE entries (seq INTEGER PRIMARY KEY, entry_hash TEXT NOT NULL, \
       ts_ms INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, counts INTEGER NOT NULL, \
       content TEXT NOT NULL);
     CREATE INDEX entries_of_a_skill ON entries (name, seq);
     CREATE TABLE skills (name TEXT PRIMARY KEY, standing TEXT NOT NULL, \
       description TEXT NOT NULL, side_effect TEXT NOT NULL, attempts INTEGER NOT NULL, \
       approved_by TEXT, changed_seq INTEGER NOT NULL, changed_ms INTEGER NOT NULL);
     CREATE TABLE states (name TEXT PRIMARY KEY, state TEXT NOT NULL);
     CREATE TABLE skill_proposals (id TEXT NOT NULL, seq INTEGER PRIMARY KEY, \
       ts_ms INTEGER NOT NULL, name TEXT NOT NULL, description TEXT NOT NULL, \
       side_effect TEXT NOT NULL, input_schema TEXT NOT NULL, output_schema TEXT NOT NULL, \
       required_secrets TEXT NOT NULL, artifact TEXT NOT NULL, status TEXT NOT NULL);
     CREATE INDEX proposals_of_a_skill ON skill_proposals (name, seq);
     CREATE TABLE builds (id TEXT NOT NULL, seq INTEGER PRIMARY KEY, ts_ms INTEGER NOT NULL, \
       name TEXT NOT NULL, proposal_id TEXT NOT NULL, attempt_number INTEGER NOT NULL, \
       parent_build_id TEXT, packet TEXT NOT NULL, builder TEXT NOT NULL, ended_seq INTEGER, \
       outcome TEXT, failure TEXT, log TEXT);
     CREATE INDEX builds_of_a_skill ON builds (name, id);
     CREATE TABLE verifications (id TEXT NOT NULL, seq INTEGER PRIMARY KEY, \
       ts_ms INTEGER NOT NULL, name TEXT NOT NULL, build_id TEXT NOT NULL, \
       passed INTEGER NOT NULL, gates TEXT NOT NULL, sealed TEXT NOT NULL, report TEXT NOT NULL);
     CREATE TABLE promotions (seq INTEGER PRIMARY KEY, ts_ms INTEGER NOT NULL, \
       name TEXT NOT NULL, verification_id TEXT NOT NULL, approved_by TEXT NOT NULL, \
       sealed TEXT NOT NULL, revoked_seq INTEGER, revoked_by TEXT, revoked_why TEXT);
     CREATE INDEX promotions_of_a_skill ON promotions (name, seq);
     CREATE TABLE artifacts (sha256 TEXT NOT NULL, kind TEXT NOT NULL, seq INTEGER NOT NULL, \
       name TEXT NOT NULL, PRIMARY KEY (seq, sha256, kind));
     CREATE INDEX artifacts_by_hash ON artifacts (sha256);",
    // 2: runs. What was read before did not keep them, so all of it is read again.
    "CREATE TABLE executions (id TEXT NOT NULL UNIQUE, seq INTEGER PRIMARY KEY, \
       ts_ms INTEGER NOT NULL, name TEXT NOT NULL, parent TEXT, record TEXT NOT NULL);
     CREATE INDEX executions_of_a_skill ON executions (name, seq);
     DELETE FROM folded;",
];

/// The version that this program knows.
pub(super) const KNOWN: usize = MIGRATIONS.len();

/// The tables that are made of the ledger's entries, and nothing else.
pub(super) const DERIVED: [&str; 9] = [
    "entries",
    "skills",
    "states",
    "skill_proposals",
    "builds",
    "verifications",
    "promotions",
    "artifacts",
    "executions",
];

/// Brings a database to the version that this program knows. One that is newer is left alone.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), ShelfError> {
    migrate_to(connection, KNOWN)
}

pub(super) fn migrate_to(connection: &mut Connection, wanted: usize) -> Result<(), ShelfError> {
    let found = version(connection)?;
    if found == wanted {
        return Ok(());
    }
    if found > KNOWN {
        return Err(ShelfError::Newer { found, known: KNOWN });
    }
    // Asked again under the lock: another process may have been quicker.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    transaction.execute_batch(
        "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY) WITHOUT ROWID;",
    )?;
    for (at, migration) in MIGRATIONS.iter().enumerate().take(wanted).skip(found) {
        transaction.execute_batch(migration)?;
        let version = i64::try_from(at + 1).unwrap_or(i64::MAX);
        transaction.execute("INSERT INTO schema_version (version) VALUES (?1)", [version])?;
    }
    Ok(transaction.commit()?)
}

fn version(connection: &Connection) -> Result<usize, ShelfError> {
    let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_version'";
    if connection.query_row(table, [], |_| Ok(())).optional()?.is_none() {
        return Ok(0);
    }
    let newest = "SELECT max(version) FROM schema_version";
    let version: Option<i64> = connection.query_row(newest, [], |row| row.get(0))?;
    Ok(version.and_then(|version| usize::try_from(version).ok()).unwrap_or(0))
}
