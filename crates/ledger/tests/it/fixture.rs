//! A ledger in a temporary directory, and ways to look at it and to damage it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fluffy_base::{Decision, Digest, KernelId, KernelState, SeededIds, SessionId, VirtualClock};
use fluffy_ledger::{
    Appended, Blob, Detail, EventType, KeyName, Layout, Ledger, LedgerConfig, Located, Origin,
    Page, Query, Record, SegmentCheck, SigningKey, StoredRecord, VerifyingKey, leaf_hash,
    verify_segments,
};
use fluffy_testkit::Project;
use rusqlite::Connection;
use rusqlite::types::Value;

/// Everything, oldest first.
pub(crate) const ALL: Page = Page { limit: u64::MAX, offset: 0, newest_first: false };

/// A place for one ledger.
pub(crate) struct Place {
    pub(crate) project: Project,
    seed: u8,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { project: Project::new().unwrap(), seed: 7 }
    }

    pub(crate) fn layout(&self) -> Layout {
        let state = self.project.state();
        Layout::new(state.join("project"), state.join("remembered"))
    }

    pub(crate) fn key(&self) -> SigningKey {
        SigningKey::from_seed(KeyName::LEDGER, &[self.seed; 32])
    }

    pub(crate) fn public(&self) -> VerifyingKey {
        self.key().verifying_key().clone()
    }

    /// What opens the ledger in its `session`-th session.
    pub(crate) fn config(&self, session: u64) -> LedgerConfig {
        LedgerConfig {
            layout: self.layout(),
            key: self.key(),
            origin: origin(session),
            clock: Arc::new(VirtualClock::new(1_000, 1)),
            retention: fluffy_ledger::RetentionOptions::default(),
        }
    }

    pub(crate) fn open(&self) -> Ledger {
        Ledger::open(self.config(1)).unwrap()
    }

    /// An open ledger whose kernel has started.
    pub(crate) fn started(&self, session: u64) -> Ledger {
        let ledger = Ledger::open(self.config(session)).unwrap();
        start(&ledger);
        ledger
    }

    /// A closed ledger of `size` entries, every fifth of them with an input.
    pub(crate) fn filled(size: u64) -> Self {
        let place = Self::new();
        place.fill(size);
        place
    }

    /// Fills up to `size` entries in a session of its own, and closes.
    pub(crate) fn fill(&self, size: u64) {
        let mut ledger = self.started(size);
        while ledger.size() < size {
            ledger.append(numbered(&ledger, ledger.size())).unwrap();
        }
        ledger.close().unwrap();
    }

    pub(crate) fn db(&self) -> PathBuf {
        self.layout().segment(1)
    }

    pub(crate) fn verify(&self) -> Vec<SegmentCheck> {
        verify_segments(&self.layout(), Some(&self.public())).unwrap()
    }

    pub(crate) fn findings(&self) -> Vec<Located> {
        let checks = self.verify();
        checks.iter().flat_map(|check| check.findings().cloned().collect::<Vec<_>>()).collect()
    }

    /// Opens the database as anyone could, changes it, and closes it.
    pub(crate) fn tamper(&self, change: impl FnOnce(&Connection)) {
        let connection = Connection::open(self.db()).unwrap();
        change(&connection);
        connection.close().unwrap();
    }

    pub(crate) fn sql(&self, sql: &str) {
        self.tamper(|connection| connection.execute_batch(sql).unwrap());
    }
}

pub(crate) fn origin(session: u64) -> Origin {
    Origin {
        kernel_id: KernelId::named("kernel-test").unwrap(),
        session_id: SessionId::fresh(&SeededIds::new(session)).unwrap(),
        variant: "strict",
        mode: None,
        policy_digest: Some(Digest::of(b"policy")),
        engine: "0.0.0",
    }
}

pub(crate) fn event(ledger: &Ledger, ts_ms: u64, event: EventType) -> Record {
    let detail = Detail::new(ledger.origin().clone(), event);
    Record::event(ts_ms, "for a test", (KernelState::Idle, KernelState::Idle), detail)
}

pub(crate) fn start(ledger: &Ledger) -> Appended {
    let mut record = event(ledger, 1_000, EventType::KernelStart);
    record.state_from = KernelState::Booting;
    ledger.append(record).unwrap()
}

/// A request that was answered, with an input at every fifth.
pub(crate) fn numbered(ledger: &Ledger, number: u64) -> Record {
    let mut record = event(ledger, 1_000 + number, EventType::Syscall);
    record.request_id = format!("request-{number}");
    record.actor = "builder".to_owned();
    record.tool_name = Some("read_file".to_owned());
    record.params_hash = Some(Digest::of(&number.to_be_bytes()));
    record.detail.input_summary = Some(format!("line {number} of \"the file\""));
    if number.is_multiple_of(5) {
        record.input = Some(blob(number));
    }
    record
}

/// A request that was refused: durable.
pub(crate) fn refused(ledger: &Ledger, number: u64) -> Record {
    let mut record = numbered(ledger, number);
    record.decision = Decision::Deny;
    record.error = Some("no rule allows it".to_owned());
    record
}

pub(crate) fn blob(number: u64) -> Blob {
    let salt = Digest::of(&number.to_le_bytes());
    Blob::new(*salt.as_bytes().first_chunk().unwrap(), &[number as u8; 40])
}

pub(crate) fn records(path: &Path) -> Vec<StoredRecord> {
    Query::default().collect(path, ALL).unwrap()
}

/// Everything that the database says, in one text.
pub(crate) fn dump(path: &Path) -> rusqlite::Result<String> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = Connection::open_with_flags(path, flags)?;
    let mut text = String::new();
    for pragma in ["application_id", "user_version", "encoding"] {
        let value: Value = connection.pragma_query_value(None, pragma, |row| row.get(0))?;
        text += &format!("{pragma} {value:?}\n");
    }
    for sql in [
        "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name",
        "SELECT * FROM entries ORDER BY seq",
        "SELECT * FROM tiles ORDER BY id",
    ] {
        let mut statement = connection.prepare(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                text += &format!("{:?}|", row.get_ref(column)?);
            }
            text.push('\n');
        }
    }
    Ok(text)
}

/// Makes hashes and tiles anew from the fields that are stored: what a forger without the key does.
pub(crate) fn rechain(connection: &Connection) {
    let mut prev = Digest::GENESIS;
    let mut nodes = Vec::new();
    for seq in 0..count(connection, "entries") {
        let entry_hash = hash_of_row(connection, seq, &prev);
        connection
            .execute(
                "UPDATE entries SET entry_hash = ?1 WHERE seq = ?2",
                rusqlite::params![entry_hash.as_bytes(), seq],
            )
            .unwrap();
        nodes.push(leaf_hash(&entry_hash));
        prev = entry_hash;
    }
    retile(connection, nodes);
}

pub(crate) fn count(connection: &Connection, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    connection.query_row(&sql, [], |row| row.get(0)).unwrap()
}

/// What the numbers in the database mean.
const DECISIONS: [&str; 3] = ["ALLOW", "DENY", "HALT"];
const STATES: [&str; 7] =
    ["IDLE", "BOOTING", "HALTED", "VALIDATING", "ARBITRATING", "EXECUTING", "AUDITING"];

fn hash_of_row(connection: &Connection, seq: i64, prev: &Digest) -> Digest {
    let sql = "SELECT ts_ms, request_id, actor, intent, decision, state_from, state_to, tool_name, \
               params_hash, error, detail FROM entries WHERE seq = ?1";
    let digest = |bytes: [u8; 32]| Digest::from_bytes(bytes);
    connection
        .query_row(sql, [seq], |row| {
            let text = |column: usize| row.get::<_, String>(column);
            let (tool, error): (Option<String>, Option<String>) = (row.get(7)?, row.get(9)?);
            let evidence = Digest::of(&row.get::<_, Vec<u8>>(10)?);
            let (request, actor, intent) = (text(1)?, text(2)?, text(3)?);
            let number = |column: usize| row.get::<_, u8>(column).map(usize::from);
            let (decision, from, to) = (number(4)?, number(5)?, number(6)?);
            let view = fluffy_ledger::EntryView {
                request_id: &request,
                actor: &actor,
                intent: &intent,
                decision: DECISIONS[decision],
                state_from: STATES[from],
                state_to: STATES[to],
                ts_ms: row.get::<_, i64>(0)?.unsigned_abs(),
                tool_name: tool.as_deref(),
                params_hash: row.get::<_, Option<[u8; 32]>>(8)?.map(digest),
                evidence_hash: Some(evidence),
                error: error.as_deref(),
            };
            Ok(view.hash(prev, &mut Vec::new()))
        })
        .unwrap()
}

fn retile(connection: &Connection, leaves: Vec<Digest>) {
    connection.execute("DELETE FROM tiles", []).unwrap();
    let (mut level, mut nodes) = (0_i64, leaves);
    while nodes.len() >= 32 {
        let mut roots = Vec::new();
        for (index, lowest) in nodes.chunks_exact(32).enumerate() {
            let mut bytes = Vec::new();
            let mut row = lowest.to_vec();
            loop {
                row.iter().for_each(|hash| bytes.extend_from_slice(hash.as_bytes()));
                if row.len() == 1 {
                    break;
                }
                row = row
                    .chunks_exact(2)
                    .map(|pair| Digest::of_parts(&[&[1], pair[0].as_bytes(), pair[1].as_bytes()]))
                    .collect();
            }
            roots.push(row[0]);
            connection
                .execute(
                    "INSERT INTO tiles VALUES (?1, ?2)",
                    rusqlite::params![level << 56 | index as i64, bytes],
                )
                .unwrap();
        }
        (level, nodes) = (level + 1, roots);
    }
}

/// Waits until `done`, letting others run. Gives up after many tries.
pub(crate) fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..20_000_000_u64 {
        if done() {
            return;
        }
        std::thread::yield_now();
    }
    panic!("never: {what}");
}

pub(crate) fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            match fs::copy(entry.path(), target) {
                // A file on its way to another name may be gone by now.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                copied => drop(copied.unwrap()),
            }
        }
    }
}
