//! What is on disk, and when.

use std::fs;

use fluffy_base::{Decision, KernelState};
use fluffy_ledger::{Category, EventType, Ledger};

use crate::fixture::{Place, copy_dir, event, eventually, numbered, records, refused};

/// What a process that is killed now would leave to the next one.
fn as_if_killed(place: &Place) -> Place {
    let copy = Place::new();
    // The memory is copied first: it may be the older of the two, never the newer.
    fs::copy(place.layout().remembered(), copy.layout().remembered()).unwrap();
    copy_dir(place.layout().dir(), copy.layout().dir());
    // The index of the log is shared memory of running processes.
    let _ = fs::remove_file(copy.layout().dir().join("ledger/0001.db-shm"));
    copy
}

#[test]
fn aud_3_what_is_acknowledged_survives_a_killed_process() {
    let place = Place::new();
    let ledger = place.started(1);
    for n in 2..20 {
        let record = if n % 2 == 0 { refused(&ledger, n) } else { numbered(&ledger, n) };
        let appended = ledger.append(record).unwrap();
        let copy = as_if_killed(&place);
        let reopened = copy.open();
        assert_eq!(reopened.report().broken, None);
        let last = records(reopened.path()).pop().unwrap().entry;
        assert_eq!((last.seq, last.entry_hash), (appended.seq, appended.entry_hash));
        assert_eq!((reopened.size(), reopened.head()), (appended.seq + 1, appended.entry_hash));
    }
}

#[test]
fn aud_3_security_events_are_synced_before_append_returns() {
    let place = Place::new();
    let ledger = place.started(1);
    for event_type in EventType::ALL {
        let durable =
            event_type.category() == Category::Security || *event_type == EventType::ToolExecute;
        // One that may wait comes first, so that each sync is the event's own.
        ledger.append(event(&ledger, 1_000, EventType::AiTurn)).unwrap();
        let appended = ledger.append(event(&ledger, 1_000, *event_type)).unwrap();
        if durable {
            assert!(ledger.synced() > appended.seq, "{event_type}");
        }
    }
    let appended = ledger.append(refused(&ledger, 1)).unwrap();
    assert!(ledger.synced() > appended.seq, "a refusal");
    let mut halt = event(&ledger, 1_000, EventType::KernelShutdown);
    (halt.decision, halt.state_to) = (Decision::Halt, KernelState::Halted);
    let appended = ledger.append(halt).unwrap();
    assert!(ledger.synced() > appended.seq, "a halt");
}

#[test]
fn a_hundred_operational_entries_are_synced_soon() {
    let place = Place::new();
    let ledger = place.started(1);
    for n in 0..100 {
        ledger.append(numbered(&ledger, 0)).unwrap_or_else(|error| panic!("{n}: {error}"));
    }
    let size = ledger.size();
    eventually("the housekeeper syncs", || ledger.synced() >= size);
}

#[test]
fn half_a_second_of_operational_entries_is_synced_by_the_next() {
    let place = Place::new();
    let ledger = place.started(1);
    // Of two entries half a second apart, the second one syncs both. The housekeeper may come between
    // and leave nothing to do; not every time.
    let synced_at_once = |n: u64| {
        let seq = ledger.append(event(&ledger, 10_000 + n * 500, EventType::AiTurn)).unwrap().seq;
        ledger.synced() > seq
    };
    assert!((0..50).any(synced_at_once));
}

#[test]
fn one_operational_entry_is_synced_without_another() {
    let place = Place::new();
    let ledger = place.started(1);
    ledger.append(refused(&ledger, 0)).unwrap();
    let appended = ledger.append(numbered(&ledger, 1)).unwrap();
    eventually("half a second passes", || ledger.synced() > appended.seq);
}

#[test]
fn what_is_synced_is_never_ahead_of_what_is_written() {
    let place = Place::new();
    let ledger = place.started(1);
    assert_eq!(ledger.synced(), 1, "the first entry was synced on its making");
    for n in 0..300 {
        let size = ledger.append(numbered(&ledger, n)).unwrap().seq + 1;
        assert!(ledger.synced() <= size);
    }
    let note = ledger.checkpoint().unwrap();
    assert!(note.contains(&format!("\n{}\n", ledger.size())));
    assert_eq!(ledger.synced(), ledger.size());
}

#[test]
fn what_is_remembered_never_breaks_what_a_killed_process_left() {
    let place = Place::new();
    let ledger = place.started(1);
    for n in 2..60 {
        let record = if n % 3 == 0 { refused(&ledger, n) } else { numbered(&ledger, n) };
        ledger.append(record).unwrap();
        assert_eq!(as_if_killed(&place).open().report().broken, None, "{n}");
    }
}

#[test]
fn rec_2_the_log_is_moved_into_the_database_after_a_thousand_writes() {
    let place = Place::new();
    let ledger = place.started(1);
    let length = || fs::metadata(place.db()).unwrap().len();
    let before = length();
    while ledger.size() <= 1_000 {
        ledger.append(numbered(&ledger, ledger.size())).unwrap();
    }
    eventually("the log is moved", || length() > before + 100_000);
}

#[test]
fn a_reader_does_not_hold_up_the_writer() {
    let place = Place::new();
    let ledger = place.started(1);
    let reader = rusqlite::Connection::open(place.db()).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM entries;").unwrap();
    let before: i64 =
        reader.query_row("SELECT count(*) FROM entries", [], |row| row.get(0)).unwrap();
    while ledger.size() <= 1_500 {
        ledger.append(numbered(&ledger, ledger.size())).unwrap();
    }
    let now: i64 = reader.query_row("SELECT count(*) FROM entries", [], |row| row.get(0)).unwrap();
    assert_eq!(before, now, "and sees its own moment");
    drop(reader);
    drop(ledger);
    assert_eq!(place.findings(), []);
}

#[test]
fn closing_leaves_everything_in_one_file_and_a_mark() {
    let place = Place::filled(50);
    let names: Vec<_> = fs::read_dir(place.layout().dir().join("ledger"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names, ["0001.db"]);
    assert_eq!(fs::read_to_string(place.layout().dir().join("clean")).unwrap(), "50\n");
    let note = fs::read_to_string(place.layout().remembered()).unwrap();
    assert!(note.starts_with("fluffy/kernel-test/1\n50\n"), "{note}");
    let ledger = Ledger::open(place.config(2)).unwrap();
    assert!(!place.layout().dir().join("clean").exists());
    drop(ledger);
}

#[test]
fn files_of_the_ledger_are_the_users_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    fn check(dir: &std::path::Path) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", path.display());
            if path.is_dir() {
                check(&path);
            }
        }
    }
    let place = Place::filled(10);
    let ledger = place.started(2);
    ledger.append(refused(&ledger, 1)).unwrap();
    ledger.checkpoint().unwrap();
    check(place.layout().dir());
}
