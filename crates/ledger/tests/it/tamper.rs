//! Every change to what the database says is found, and where.

use fluffy_ledger::{Located, Problem, verify_bytes};
use proptest::prelude::*;
use rusqlite::types::Value;

use crate::fixture::{Place, copy_dir, count, numbered, rechain};

const SIZE: u64 = 100;

/// The place of the first finding that names one.
fn first_place(findings: &[Located]) -> Option<u64> {
    findings.iter().find_map(|finding| finding.seq)
}

/// Damages a ledger of 100 entries; both verifications find it, at this place.
#[track_caller]
fn check(sql: &str, at: Option<u64>) {
    let place = Place::filled(SIZE);
    assert_eq!(place.findings(), [], "before");
    place.sql(sql);
    let bytes = verify_bytes(&place.db()).unwrap().findings;
    assert!(!bytes.is_empty(), "{sql}");
    assert_eq!(first_place(&bytes), at, "{sql}: {bytes:?}");
    assert_eq!(first_place(&place.findings()), at, "{sql}");
}

#[test]
fn a_dropped_entry_is_missed_where_it_was() {
    check("DELETE FROM entries WHERE seq = 0", Some(0));
    check("DELETE FROM entries WHERE seq = 31", Some(31));
    check("DELETE FROM entries WHERE seq = 32", Some(32));
    check("DELETE FROM entries WHERE seq = 57", Some(57));
    check("DELETE FROM entries WHERE seq BETWEEN 40 AND 70", Some(40));
}

#[test]
fn one_dropped_entry_is_not_a_hundred_findings() {
    let place = Place::filled(SIZE);
    place.sql("DELETE FROM entries WHERE seq = 33");
    let findings: Vec<_> =
        place.findings().into_iter().filter(|finding| finding.seq.is_some()).collect();
    let missing = Located { seq: Some(33), problem: Problem::Missing { until: 34 } };
    let tile = Located { seq: Some(33), problem: Problem::Tile { level: 0 } };
    assert_eq!(findings, [missing, tile]);
}

#[test]
fn a_number_that_means_nothing_is_one_finding_and_what_follows_is_still_judged() {
    for (column, number) in [("decision", 3), ("state_from", 7), ("state_to", -1)] {
        let place = Place::filled(1_100);
        place.sql(&format!(
            "UPDATE entries SET {column} = {number} WHERE seq = 33; \
             UPDATE entries SET actor = 'nobody' WHERE seq = 70"
        ));
        let findings = verify_bytes(&place.db()).unwrap().findings;
        let places: Vec<_> = findings.iter().map(|finding| finding.seq).collect();
        assert_eq!(places, [Some(33), Some(70)], "{findings:?}");
        assert!(matches!(findings[0].problem, Problem::Database(_)), "{findings:?}");
    }
}

#[test]
fn a_dropped_last_entry_is_missed_by_the_tree_or_the_memory() {
    // A tile stands on entries 0 to 95: dropping one of the last four leaves only the memory.
    let place = Place::filled(SIZE);
    place.sql("DELETE FROM entries WHERE seq = 99");
    let truncated = Problem::Truncated { found: 99, promised: 100 };
    let findings = place.findings();
    assert!(findings.contains(&Located { seq: Some(99), problem: truncated }), "{findings:?}");
    let place = Place::filled(96);
    place.sql("DELETE FROM entries WHERE seq = 95");
    assert!(!verify_bytes(&place.db()).unwrap().findings.is_empty());
}

#[test]
fn a_cut_tail_is_missed_by_the_memory_however_much_is_cut() {
    for cut in [1, 4, 5, 40, 98, 99, 100] {
        let place = Place::filled(SIZE);
        place.tamper(|connection| {
            let sql = format!("DELETE FROM entries WHERE seq >= {}", SIZE - cut);
            connection.execute(&sql, []).unwrap();
            let tiles = (SIZE - cut) / 32;
            connection.execute("DELETE FROM tiles WHERE id >= ?1", [tiles as i64]).unwrap();
            // As if it had never been longer.
            connection.execute_batch("VACUUM").unwrap();
        });
        let found = SIZE - cut;
        assert_eq!(verify_bytes(&place.db()).unwrap().findings, [], "{cut}");
        let truncated = Problem::Truncated { found, promised: SIZE };
        assert_eq!(place.findings(), [Located { seq: Some(found), problem: truncated }]);
    }
}

#[test]
fn swapped_copied_and_renumbered_entries_are_found() {
    let swap = "UPDATE entries SET seq = -10 WHERE seq = 20; \
                UPDATE entries SET seq = 20 WHERE seq = 21; \
                UPDATE entries SET seq = 21 WHERE seq = -10;";
    check(swap, Some(20));
    check("UPDATE entries SET seq = 100 WHERE seq = 99", Some(99));
    check("UPDATE entries SET seq = 5000 WHERE seq = 50", Some(50));
    check("UPDATE entries SET seq = 9223372036854775807 WHERE seq = 50", Some(50));
    check("UPDATE entries SET seq = -1 WHERE seq = 50", Some(50));
    check("UPDATE entries SET seq = -9223372036854775808 WHERE seq = 50", Some(50));
    let columns = "entry_hash, ts_ms, request_id, actor, intent, decision, state_from, state_to, \
                   tool_name, params_hash, error, detail, input";
    let copy = |from: i64, to: i64| {
        format!(
            "INSERT INTO entries (seq, {columns}) SELECT {to}, {columns} FROM entries WHERE seq = {from}"
        )
    };
    check(&copy(99, 100), Some(100));
    check(&copy(5, 100), Some(100));
    check(&format!("DELETE FROM entries WHERE seq = 60; {}", copy(61, 60)), Some(60));
    check(&copy(7, -1), None);
}

#[test]
fn what_belongs_to_nothing_is_found() {
    let input = "x'00112233445566778899aabbccddeeff00'";
    check(&format!("UPDATE entries SET input = {input} WHERE seq = 3"), Some(3));
    check("INSERT INTO tiles SELECT 3, hashes FROM tiles WHERE id = 0", None);
    check("INSERT INTO tiles SELECT -1, hashes FROM tiles WHERE id = 0", None);
    check("INSERT INTO tiles SELECT (1 << 56), hashes FROM tiles WHERE id = 0", None);
    check("INSERT INTO tiles SELECT (77 << 56), hashes FROM tiles WHERE id = 0", None);
}

#[test]
fn lost_inputs_and_tiles_are_found() {
    check("UPDATE entries SET input = NULL WHERE seq = 55", Some(55));
    check("UPDATE entries SET input = x'' WHERE seq = 55", Some(55));
    check("DELETE FROM tiles WHERE id = 1", Some(32));
    check("UPDATE tiles SET hashes = x'00' WHERE id = 2", Some(64));
    check("UPDATE tiles SET id = 5 WHERE id = 2", Some(64));
    let swap = "UPDATE tiles SET id = 9 WHERE id = 0; UPDATE tiles SET id = 0 WHERE id = 1; \
                UPDATE tiles SET id = 1 WHERE id = 9;";
    check(swap, Some(0));
}

#[test]
fn a_changed_schema_is_found() {
    check("CREATE TABLE more (x)", None);
    check("CREATE INDEX by_actor ON entries (actor)", None);
    check("CREATE VIEW v AS SELECT 1", None);
    let rewrite = "CREATE TRIGGER t AFTER INSERT ON entries BEGIN \
                   UPDATE entries SET actor = 'nobody' WHERE seq = new.seq; END";
    check(rewrite, None);
    check("DROP TABLE tiles", None);
    check("ALTER TABLE entries ADD COLUMN more TEXT", None);
    check("ALTER TABLE tiles RENAME TO pieces", None);
    check("PRAGMA application_id = 0", None);
    check("PRAGMA user_version = 2", None);
    check("PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = FULL; VACUUM", None);
    check("PRAGMA journal_mode = DELETE; PRAGMA page_size = 1024; VACUUM", None);
}

#[test]
fn lesson_l04_a_chain_written_anew_is_missed_by_the_memory() {
    let place = Place::filled(1_100);
    place.tamper(|connection| {
        let sql = "UPDATE entries SET actor = 'nobody' WHERE seq = 500";
        connection.execute(sql, []).unwrap();
        rechain(connection);
    });
    assert_eq!(verify_bytes(&place.db()).unwrap().findings, [], "the forgery is a good one");
    let rewritten = Problem::Rewritten { size: 1_100 };
    assert_eq!(place.findings(), [Located { seq: None, problem: rewritten }]);
}

#[test]
fn rewriting_nothing_is_found_by_nobody() {
    let place = Place::filled(1_100);
    let before = crate::fixture::dump(&place.db()).unwrap();
    place.tamper(rechain);
    assert_eq!(crate::fixture::dump(&place.db()).unwrap(), before);
    assert_eq!(place.findings(), []);
}

#[test]
fn another_genuine_ledger_of_the_same_key_is_not_this_one() {
    let (place, other) = (Place::filled(SIZE), Place::new());
    let mut ledger = other.started(3);
    while ledger.size() < SIZE + 20 {
        ledger.append(numbered(&ledger, ledger.size())).unwrap();
    }
    ledger.close().unwrap();
    assert_eq!(other.findings(), []);
    std::fs::copy(other.db(), place.db()).unwrap();
    let rewritten = Problem::Rewritten { size: SIZE };
    assert_eq!(place.findings(), [Located { seq: None, problem: rewritten }]);
}

#[test]
fn lesson_l03_a_ledger_that_is_gone_is_not_an_intact_one() {
    let place = Place::filled(SIZE);
    std::fs::remove_file(place.db()).unwrap();
    let missing = Located { seq: None, problem: Problem::LedgerMissing };
    assert_eq!(place.findings(), [missing]);
    std::fs::write(place.layout().remembered(), "forged").unwrap();
    assert!(matches!(
        &place.findings()[..],
        [Located { problem: Problem::CheckpointForged(_), .. }]
    ));
    // Nothing there and nothing remembered: there never was one.
    std::fs::remove_file(place.layout().remembered()).unwrap();
    assert_eq!(place.findings(), []);
}

#[test]
fn a_forged_memory_is_found() {
    let place = Place::filled(SIZE);
    let remembered = place.layout().remembered().to_owned();
    let genuine = std::fs::read(&remembered).unwrap();
    for at in 0..genuine.len() {
        let mut forged = genuine.clone();
        forged[at] ^= 0x80 >> (at % 8);
        std::fs::write(&remembered, &forged).unwrap();
        let findings = place.findings();
        let found =
            matches!(&findings[..], [Located { problem: Problem::CheckpointForged(_), .. }]);
        assert!(found, "byte {at}: {findings:?}");
    }
    std::fs::remove_file(&remembered).unwrap();
    let missing = Located { seq: None, problem: Problem::CheckpointMissing };
    assert_eq!(place.findings(), [missing]);
    std::fs::write(&remembered, genuine).unwrap();
    assert_eq!(place.findings(), []);
}

#[test]
fn a_file_with_the_next_number_does_not_become_the_ledger() {
    let (place, other) = (Place::filled(SIZE), Place::filled(40));
    std::fs::copy(other.db(), place.layout().segment(2)).unwrap();
    let findings = place.findings();
    let found = |problem: &Problem| matches!(problem, Problem::CheckpointForged(_));
    assert!(findings.iter().any(|finding| found(&finding.problem)), "{findings:?}");
}

#[test]
fn without_the_key_nothing_is_called_intact() {
    let place = Place::filled(SIZE);
    let checks = fluffy_ledger::verify_segments(&place.layout(), None).unwrap();
    assert_eq!(checks[0].findings().count(), 1);
    let foreign = fluffy_ledger::SigningKey::from_seed(fluffy_ledger::KeyName::LEDGER, &[9; 32]);
    let key = foreign.verifying_key();
    let checks = fluffy_ledger::verify_segments(&place.layout(), Some(key)).unwrap();
    assert!(matches!(checks[0].memory.as_ref().unwrap().problem, Problem::CheckpointForged(_)));
}

/// Where a byte is changed: table, column, row (a part of all), byte (a part of all) and how.
fn anywhere() -> impl Strategy<Value = (&'static str, &'static str, f64, f64, u8)> {
    let cells = prop::sample::select(vec![
        ("entries", "entry_hash"),
        ("entries", "ts_ms"),
        ("entries", "request_id"),
        ("entries", "actor"),
        ("entries", "intent"),
        ("entries", "decision"),
        ("entries", "state_from"),
        ("entries", "state_to"),
        ("entries", "tool_name"),
        ("entries", "params_hash"),
        ("entries", "error"),
        ("entries", "detail"),
        ("entries", "input"),
        ("tiles", "hashes"),
    ]);
    (cells, 0.0..1.0, 0.0..1.0, 1_u8..).prop_map(|((t, c), row, byte, how)| (t, c, row, byte, how))
}

/// The cell with one byte changed; what is not there gets one.
fn changed(value: Value, byte: f64, how: u8) -> Value {
    let change = |mut bytes: Vec<u8>| {
        if bytes.is_empty() {
            bytes.push(0);
        }
        let at = (byte * bytes.len() as f64) as usize;
        bytes[at] ^= how;
        bytes
    };
    match value {
        Value::Integer(number) => Value::Integer(number ^ i64::from(how)),
        Value::Text(text) => Value::Blob(change(text.into_bytes())),
        Value::Blob(bytes) => Value::Blob(change(bytes)),
        Value::Null => Value::Blob(vec![how; 32]),
        Value::Real(_) => unreachable!("no column holds one"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_changed_byte_of_any_cell_is_found_at_its_entry(
        (table, column, row, byte, how) in anywhere(),
    ) {
        use std::sync::OnceLock;
        static ORIGINAL: OnceLock<Place> = OnceLock::new();
        let original = ORIGINAL.get_or_init(|| Place::filled(SIZE));
        let place = Place::new();
        copy_dir(&original.project.state(), &place.project.state());

        let key = if table == "tiles" { "id" } else { "seq" };
        let mut at = 0_u64;
        place.tamper(|connection| {
            let row = (row * count(connection, table) as f64) as i64;
            let sql = format!("SELECT {key}, {column} FROM {table} ORDER BY {key} LIMIT 1 OFFSET ?1");
            let (seq, value): (i64, Value) =
                connection.query_row(&sql, [row], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
            at = seq.unsigned_abs();
            let textual =
                ["request_id", "actor", "intent", "tool_name", "error"].contains(&column);
            let new = if textual { "CAST(?1 AS TEXT)" } else { "?1" };
            let sql = format!("UPDATE {table} SET {column} = {new} WHERE {key} = ?2");
            connection.execute(&sql, rusqlite::params![changed(value, byte, how), seq]).unwrap();
        });
        let bytes = verify_bytes(&place.db()).unwrap().findings;
        let found = first_place(&bytes);
        if table == "tiles" {
            let within = at * 32..(at + 1) * 32;
            prop_assert!(found.is_some_and(|found| within.contains(&found)), "{:?}", bytes);
        } else {
            prop_assert_eq!(found, Some(at), "{:?}", bytes);
        }
        prop_assert!(!place.findings().is_empty());
    }
}
