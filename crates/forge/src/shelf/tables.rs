//! What the ledger's entries add up to, in tables that are quick to ask.
//!
//! **Invariant.** Every row follows from entries of the ledger: the tables may be thrown away, and are never asked whether
//! a skill may run.
//!
//! **Invariant.** The entries that say where skills stand are a chain of their own: each names the digest of all before it
//! in the ledger, so that a row that was taken out of the tables, added or changed is noticed.

use std::path::Path;

use fluffy_base::Digest;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row, params};
use serde::Serialize;

use super::fold::{Illegal, Skill, apply};
use super::{Execution, Listed, Past, ShelfError, schema};
use crate::{ArtifactKind, BuildEnd, SideEffect, SkillEntry, SkillName, Standing};

/// How far the ledger was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folded {
    pub(super) segment: u32,
    pub(super) seq: u64,
    pub(super) entry_hash: Digest,
    /// What stood before the first entry that is held; zeros unless retention deleted some.
    pub(super) base: Digest,
    /// The digest of all entries that say where skills stand.
    pub(super) chain: Digest,
}

/// An entry as it was read and proved.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) seq: u64,
    pub(super) entry_hash: Digest,
    pub(super) ts_ms: u64,
    pub(super) entry: SkillEntry,
}

/// One row of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Indexed {
    pub(super) seq: u64,
    pub(super) entry_hash: Digest,
}

/// Opens the tables, making or migrating them.
pub(super) fn open(path: &Path) -> Result<Connection, ShelfError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.execute_batch(
        "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; \
         PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;",
    )?;
    schema::migrate(&mut connection)?;
    Ok(connection)
}

/// The digest of the chain after one more entry.
pub(super) fn extended(chain: &Digest, entry_hash: &Digest, name: &str, kind: &str) -> Digest {
    let parts: [&[u8]; 5] =
        [chain.as_bytes(), entry_hash.as_bytes(), name.as_bytes(), b"\0", kind.as_bytes()];
    Digest::of_parts(&parts)
}

/// How far the ledger was read.
pub(super) fn folded(connection: &Connection) -> Result<Option<Folded>, ShelfError> {
    let sql = "SELECT segment, seq, entry_hash, base, chain FROM folded";
    let folded = connection.query_row(sql, [], |row| {
        Ok((
            row.get::<_, u32>(0)?,
            number(row, 1)?,
            digest(row, 2)?,
            digest(row, 3)?,
            digest(row, 4)?,
        ))
    });
    let folded = folded.optional()?;
    Ok(folded.map(|(segment, seq, entry_hash, base, chain)| Folded {
        segment,
        seq,
        entry_hash,
        base,
        chain,
    }))
}

pub(super) fn set_folded(connection: &Connection, folded: &Folded) -> Result<(), ShelfError> {
    let sql = "INSERT OR REPLACE INTO folded (one, segment, seq, entry_hash, base, chain) \
               VALUES (1, ?1, ?2, ?3, ?4, ?5)";
    connection.execute(
        sql,
        params![
            folded.segment,
            key(folded.seq),
            folded.entry_hash.to_string(),
            folded.base.to_string(),
            folded.chain.to_string(),
        ],
    )?;
    Ok(())
}

/// Forgets everything that follows from entries.
pub(super) fn clear(connection: &Connection) -> Result<(), ShelfError> {
    for table in schema::DERIVED {
        connection.execute(&format!("DELETE FROM {table}"), [])?;
    }
    connection.execute("DELETE FROM folded", [])?;
    Ok(())
}

/// Takes an entry in. What is not legal is kept as having happened, and has no effect.
pub(super) fn take(
    connection: &Connection,
    kept: &Kept,
) -> Result<Result<(), Illegal>, ShelfError> {
    let Kept { seq, entry_hash, ts_ms, entry } = kept;
    let mut skill = state(connection, entry.name())?;
    let legal = apply(&mut skill, *seq, entry);
    if let SkillEntry::Ran { name, execution, parent, record } = entry {
        if legal.is_ok() {
            // The first of two with one id counts.
            let sql = "INSERT OR IGNORE INTO executions (id, seq, ts_ms, name, parent, record) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let record = record.to_string();
            let values = params![execution, key(*seq), key(*ts_ms), name.as_str(), parent, record];
            connection.execute(sql, values)?;
        }
        return Ok(legal);
    }
    let sql = "INSERT INTO entries (seq, entry_hash, ts_ms, name, kind, counts, content) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    connection.execute(
        sql,
        params![
            key(*seq),
            entry_hash.to_string(),
            key(*ts_ms),
            entry.name().as_str(),
            entry.kind(),
            legal.is_ok(),
            text(entry)?,
        ],
    )?;
    if let (Ok(()), Some(skill)) = (&legal, &skill) {
        row_of(connection, kept)?;
        artifacts_of(connection, kept)?;
        set_state(connection, skill, *seq, *ts_ms)?;
    }
    Ok(legal)
}

/// The row that an entry makes or changes.
fn row_of(connection: &Connection, kept: &Kept) -> Result<(), ShelfError> {
    let (seq, ts_ms) = (key(kept.seq), key(kept.ts_ms));
    match &kept.entry {
        SkillEntry::Proposed { .. } => proposal_row(connection, kept),
        SkillEntry::BuildStarted { .. } | SkillEntry::BuildEnded { .. } => {
            build_row(connection, kept)
        }
        SkillEntry::Verified { .. } => verification_row(connection, kept),
        SkillEntry::Promoted { name, verification, sealed, by } => {
            connection.execute(
                "INSERT INTO promotions (seq, ts_ms, name, verification_id, approved_by, sealed) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![seq, ts_ms, name.as_str(), verification, by, text(sealed)?],
            )?;
            await_registry(connection)
        }
        SkillEntry::Revoked { name, by, why } => {
            connection.execute(
                "UPDATE promotions SET revoked_seq = ?2, revoked_by = ?3, revoked_why = ?4 \
                 WHERE revoked_seq IS NULL AND seq = \
                 (SELECT max(seq) FROM promotions WHERE name = ?1)",
                params![name.as_str(), seq, by, why],
            )?;
            await_registry(connection)
        }
        SkillEntry::Researched { .. }
        | SkillEntry::RetryApproved { .. }
        | SkillEntry::Ran { .. } => Ok(()),
    }
}

fn proposal_row(connection: &Connection, kept: &Kept) -> Result<(), ShelfError> {
    let SkillEntry::Proposed { proposal, spec, artifact } = &kept.entry else { return Ok(()) };
    connection.execute(
        "INSERT INTO skill_proposals (id, seq, ts_ms, name, description, side_effect, \
         input_schema, output_schema, required_secrets, artifact, status) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 'PROPOSED')",
        params![
            proposal,
            key(kept.seq),
            key(kept.ts_ms),
            spec.name.as_str(),
            spec.description,
            spec.side_effect.name(),
            spec.input.to_string(),
            spec.output.to_string(),
            text(&spec.secrets)?,
            artifact.to_string(),
        ],
    )?;
    Ok(())
}

fn build_row(connection: &Connection, kept: &Kept) -> Result<(), ShelfError> {
    let (seq, ts_ms) = (key(kept.seq), key(kept.ts_ms));
    if let SkillEntry::BuildStarted { name, attempt } = &kept.entry {
        connection.execute(
            "INSERT INTO builds (id, seq, ts_ms, name, proposal_id, attempt_number, \
             parent_build_id, packet, builder) VALUES (?1, ?2, ?3, ?4, (SELECT id FROM \
             skill_proposals WHERE name = ?4 ORDER BY seq DESC LIMIT 1), ?5, ?6, ?7, ?8)",
            params![
                attempt.build,
                seq,
                ts_ms,
                name.as_str(),
                attempt.number,
                attempt.parent,
                attempt.packet.to_string(),
                attempt.builder,
            ],
        )?;
    }
    if let SkillEntry::BuildEnded { name, build, end, log } = &kept.entry {
        let (outcome, failure) = match end {
            BuildEnd::Built { .. } => ("built", None),
            BuildEnd::Failed { kind, .. } => ("failed", Some(kind)),
        };
        connection.execute(
            "UPDATE builds SET ended_seq = ?3, outcome = ?4, failure = ?5, log = ?6 \
             WHERE name = ?1 AND id = ?2",
            params![name.as_str(), build, seq, outcome, failure, log.to_string()],
        )?;
    }
    Ok(())
}

fn verification_row(connection: &Connection, kept: &Kept) -> Result<(), ShelfError> {
    let SkillEntry::Verified { name, build, verification, gates, sealed, report } = &kept.entry
    else {
        return Ok(());
    };
    connection.execute(
        "INSERT INTO verifications (id, seq, ts_ms, name, build_id, passed, gates, sealed, report) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            verification,
            key(kept.seq),
            key(kept.ts_ms),
            name.as_str(),
            build,
            gates.iter().all(|gate| gate.passed),
            text(gates)?,
            text(sealed)?,
            report.to_string(),
        ],
    )?;
    Ok(())
}

/// The registry is to be written again.
fn await_registry(connection: &Connection) -> Result<(), ShelfError> {
    let sql = "INSERT INTO registry (one, pending) VALUES (1, 1) \
               ON CONFLICT (one) DO UPDATE SET pending = 1";
    connection.execute(sql, [])?;
    Ok(())
}

/// The artifacts that an entry names, with what they are.
fn artifacts_of(connection: &Connection, kept: &Kept) -> Result<(), ShelfError> {
    use ArtifactKind::{BuildLog, BuildPacket, Note, ResearchNote, SkillSpec, VerificationReport};
    let mut named = Vec::new();
    match &kept.entry {
        SkillEntry::Proposed { artifact, .. } => named.push((SkillSpec, *artifact)),
        SkillEntry::BuildStarted { attempt, .. } => named.push((BuildPacket, attempt.packet)),
        SkillEntry::BuildEnded { end, log, .. } => {
            named.push((BuildLog, *log));
            if let BuildEnd::Built { files } = end {
                named.extend(files.iter().map(|file| (Note, file.sha256)));
            }
        }
        SkillEntry::Verified { report, .. } => named.push((VerificationReport, *report)),
        SkillEntry::Researched { note, .. } => named.push((ResearchNote, *note)),
        SkillEntry::RetryApproved { .. }
        | SkillEntry::Promoted { .. }
        | SkillEntry::Revoked { .. }
        | SkillEntry::Ran { .. } => {}
    }
    let name = kept.entry.name().as_str();
    for (kind, digest) in named {
        let sql = "INSERT OR IGNORE INTO artifacts (sha256, kind, seq, name) \
                   VALUES (?1, ?2, ?3, ?4)";
        connection.execute(sql, params![digest.to_string(), kind.name(), key(kept.seq), name])?;
    }
    Ok(())
}

/// A skill as the tables have it. Nothing is proved.
pub(super) fn state(
    connection: &Connection,
    name: &SkillName,
) -> Result<Option<Skill>, ShelfError> {
    let mut statement = connection.prepare_cached("SELECT state FROM states WHERE name = ?1")?;
    let state: Option<String> =
        statement.query_row([name.as_str()], |row| row.get(0)).optional()?;
    state.map(|state| serde_json::from_str(&state).map_err(damaged)).transpose()
}

fn set_state(
    connection: &Connection,
    skill: &Skill,
    seq: u64,
    ts_ms: u64,
) -> Result<(), ShelfError> {
    let (name, spec) = (skill.name.as_str(), &skill.proposal.spec);
    let sql = "INSERT OR REPLACE INTO states (name, state) VALUES (?1, ?2)";
    connection.execute(sql, params![name, text(skill)?])?;
    let sql = "UPDATE skill_proposals SET status = ?2 WHERE seq = ?1";
    connection.execute(sql, params![key(skill.proposal.seq), skill.standing.name()])?;
    connection.execute(
        "INSERT OR REPLACE INTO skills (name, standing, description, side_effect, attempts, \
         approved_by, changed_seq, changed_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            name,
            skill.standing.name(),
            spec.description,
            spec.side_effect.name(),
            key(skill.builds.len() as u64),
            skill.promotion().map(|promotion| promotion.by.as_str()),
            key(seq),
            key(ts_ms),
        ],
    )?;
    Ok(())
}

/// All skills, by name.
pub(super) fn listed(connection: &Connection) -> Result<Vec<Listed>, ShelfError> {
    let mut statement = connection.prepare_cached(
        "SELECT name, standing, description, side_effect, attempts, approved_by, changed_seq, \
         changed_ms FROM skills ORDER BY name",
    )?;
    let mut rows = statement.query([])?;
    let mut listed = Vec::new();
    while let Some(row) = rows.next()? {
        let word = |column: usize| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
        let standing = standing_of(word(1)?).ok_or_else(|| damaged("no such standing"))?;
        let class = SideEffect::from_name(word(3)?).ok_or_else(|| damaged("no such class"))?;
        listed.push(Listed {
            name: SkillName::parse(word(0)?).map_err(damaged)?,
            standing,
            description: row.get(2)?,
            side_effect: class,
            attempts: row.get(4)?,
            approved_by: row.get(5)?,
            changed_seq: number(row, 6)?,
            changed_ms: number(row, 7)?,
        });
    }
    Ok(listed)
}

fn standing_of(name: &str) -> Option<Standing> {
    use Standing::{Built, Proposed, Revoked, Trusted, Verified};
    [Proposed, Built, Verified, Trusted, Revoked].into_iter().find(|one| one.name() == name)
}

/// Every skill that is trusted, by name. Nothing is proved.
pub(super) fn trusted(connection: &Connection) -> Result<Vec<Skill>, ShelfError> {
    let sql = "SELECT state FROM states JOIN skills USING (name) WHERE standing = 'TRUSTED' \
               ORDER BY name";
    let mut statement = connection.prepare_cached(sql)?;
    let states = statement.query_map([], |row| row.get::<_, String>(0))?;
    let parsed = states.map(|state| serde_json::from_str(&state?).map_err(damaged));
    parsed.collect()
}

/// What happened to a skill, the first first.
pub(super) fn history(connection: &Connection, name: &SkillName) -> Result<Vec<Past>, ShelfError> {
    let sql = "SELECT seq, ts_ms, counts, content FROM entries WHERE name = ?1 ORDER BY seq";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([name.as_str()])?;
    let mut past = Vec::new();
    while let Some(row) = rows.next()? {
        let content: String = row.get(3)?;
        let entry = serde_json::from_str(&content).map_err(damaged)?;
        past.push(Past {
            seq: number(row, 0)?,
            ts_ms: number(row, 1)?,
            counts: row.get(2)?,
            entry,
        });
    }
    Ok(past)
}

/// The newest runs, the newest first.
pub(super) fn executions(
    connection: &Connection,
    name: Option<&SkillName>,
    limit: u64,
) -> Result<Vec<Execution>, ShelfError> {
    let sql = "SELECT id, seq, ts_ms, name, parent, record FROM executions \
               WHERE ?1 IS NULL OR name = ?1 ORDER BY seq DESC LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![name.map(SkillName::as_str), key(limit)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (name, record): (String, String) = (row.get(3)?, row.get(5)?);
        found.push(Execution {
            id: row.get(0)?,
            seq: number(row, 1)?,
            ts_ms: number(row, 2)?,
            name: SkillName::parse(&name).map_err(damaged)?,
            parent: row.get(4)?,
            record: serde_json::from_str(&record).map_err(damaged)?,
        });
    }
    Ok(found)
}

/// Number of the entry that recorded a run. Nothing is proved.
pub(super) fn execution_seq(connection: &Connection, id: &str) -> Result<Option<u64>, ShelfError> {
    let sql = "SELECT seq FROM executions WHERE id = ?1";
    Ok(connection.query_row(sql, [id], |row| number(row, 0)).optional()?)
}

/// The entries of a skill that say where it stands, in order.
pub(super) fn index_of(
    connection: &Connection,
    name: &SkillName,
) -> Result<Vec<Indexed>, ShelfError> {
    let sql = "SELECT seq, entry_hash FROM entries WHERE name = ?1 ORDER BY seq";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([name.as_str()], |row| {
        Ok(Indexed { seq: number(row, 0)?, entry_hash: digest(row, 1)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The hash of an entry of the index.
pub(super) fn hash_of(connection: &Connection, seq: u64) -> Result<Option<Digest>, ShelfError> {
    let sql = "SELECT entry_hash FROM entries WHERE seq = ?1";
    Ok(connection.query_row(sql, [key(seq)], |row| digest(row, 0)).optional()?)
}

/// The digest of the chain as the index gives it, before an entry's number.
pub(super) fn chain_before(
    connection: &Connection,
    base: Digest,
    seq: u64,
) -> Result<Digest, ShelfError> {
    let sql = "SELECT entry_hash, name, kind FROM entries WHERE seq < ?1 ORDER BY seq";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([key(seq)])?;
    let mut chain = base;
    while let Some(row) = rows.next()? {
        let word = |column: usize| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
        chain = extended(&chain, &digest(row, 0)?, word(1)?, word(2)?);
    }
    Ok(chain)
}

/// The digest of the registry that was written last, and whether it is to be written again.
pub(super) fn registry(connection: &Connection) -> Result<(Option<Digest>, bool), ShelfError> {
    let sql = "SELECT written, pending FROM registry";
    let found = connection.query_row(sql, [], |row| {
        let written: Option<String> = row.get(0)?;
        Ok((written.and_then(|written| written.parse().ok()), row.get(1)?))
    });
    Ok(found.optional()?.unwrap_or((None, false)))
}

pub(super) fn set_registry(connection: &Connection, written: &Digest) -> Result<(), ShelfError> {
    let sql = "INSERT OR REPLACE INTO registry (one, written, pending) VALUES (1, ?1, 0)";
    connection.execute(sql, [written.to_string()])?;
    Ok(())
}

fn text(value: &(impl Serialize + ?Sized)) -> Result<String, ShelfError> {
    serde_json::to_string(value).map_err(ShelfError::Written)
}

fn damaged(error: impl ToString) -> ShelfError {
    ShelfError::Damaged(error.to_string())
}

fn key(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
}

fn digest(row: &Row<'_>, column: usize) -> rusqlite::Result<Digest> {
    let text = row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?;
    text.parse().map_err(|_| {
        let name = "digest".to_owned();
        rusqlite::Error::InvalidColumnType(column, name, rusqlite::types::Type::Text)
    })
}
