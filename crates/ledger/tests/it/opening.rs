//! Opening notices what is broken, keeps it, salvages what can be proved, and goes on.

use std::fs;
use std::path::PathBuf;

use fluffy_ledger::{
    Break, DetailView, KeyName, Ledger, LedgerConfig, Located, Problem, SigningKey, verify_bytes,
};

use crate::fixture::{Place, count, dump, numbered, rechain, records, refused, start};

const SIZE: u64 = 100;

/// The bytes of all files in `damaged/`, by name.
fn kept_files(place: &Place) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(place.layout().dir().join("damaged"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "db" || e == "db-wal"))
        .map(|path| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// Opens a damaged ledger: there is a break, the new segment tells of it, everything that is left
/// verifies, appending goes on, and opening again finds nothing new.
#[track_caller]
fn opens_with_a_break(place: &Place) -> Break {
    let segment = place.layout().active().unwrap().unwrap_or(1);
    let damaged = fs::read(place.layout().segment(segment)).ok();
    let ledger = Ledger::open(place.config(50)).unwrap();
    let broken = ledger.report().broken.clone().expect("a break");
    assert_eq!(ledger.report().segment, broken.segment + 1);
    assert_eq!(ledger.report().entries, 1);

    let first = &records(ledger.path())[0];
    let detail = DetailView::parse(&first.detail).unwrap();
    assert_eq!((&*detail.event, &*detail.kernel_id), ("audit_chain_break", "kernel-test"));
    let position = broken.found.seq.map_or("unknown".to_owned(), |seq| seq.to_string());
    assert_eq!(detail.metadata["position"], position);
    assert_eq!(detail.metadata["problem"], broken.found.to_string());
    assert_eq!(detail.metadata["salvaged"], broken.salvaged.to_string());
    assert_eq!(detail.metadata["source"], broken.source);
    assert_eq!(detail.metadata["broken_segment"], broken.segment.to_string());
    if let Some(damaged) = damaged.filter(|_| broken.segment == segment) {
        let kept = broken.kept.as_ref().unwrap();
        assert_eq!(detail.metadata["kept"], kept.file_name().unwrap().to_str().unwrap());
        assert!(fs::read(kept).unwrap() == damaged, "kept byte for byte");
    }
    if broken.salvaged > 0 {
        let salvaged = verify_bytes(&place.layout().segment(broken.segment)).unwrap();
        assert_eq!((salvaged.entries, salvaged.findings), (broken.salvaged, vec![]));
        assert_eq!(salvaged.tree_root, broken.salvaged_root);
    }

    start(&ledger);
    ledger.append(refused(&ledger, 7)).unwrap();
    drop(ledger);
    assert_eq!(place.findings(), []);
    let again = Ledger::open(place.config(51)).unwrap();
    assert_eq!((&again.report().broken, again.report().entries), (&None, 3));
    drop(again);
    broken
}

#[track_caller]
fn check(sql: &str, found: Located, salvaged: u64, source: &str) {
    let place = Place::filled(SIZE);
    place.sql(sql);
    let broken = opens_with_a_break(&place);
    assert_eq!(broken.found, found, "{sql}");
    assert_eq!((broken.salvaged, broken.source), (salvaged, source), "{sql}");
}

fn without_snapshots(size: u64) -> Place {
    let place = Place::filled(size);
    for entry in fs::read_dir(place.layout().dir().join("snapshots")).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    place
}

#[test]
fn a_changed_entry_is_set_aside_and_the_snapshot_takes_its_place() {
    let place = Place::filled(SIZE);
    let before = dump(&place.db()).unwrap();
    place.sql("UPDATE entries SET actor = 'nobody' WHERE seq = 42");
    let broken = opens_with_a_break(&place);
    assert!(matches!(broken.found, Located { seq: Some(42), problem: Problem::EntryHash { .. } }));
    assert_eq!((broken.salvaged, broken.source), (SIZE, "snapshot"));
    assert_eq!(dump(&place.db()).unwrap(), before);
}

#[test]
fn without_a_snapshot_the_entries_before_the_damage_are_salvaged() {
    let place = without_snapshots(SIZE);
    place.sql("UPDATE entries SET actor = 'nobody' WHERE seq = 42");
    let broken = opens_with_a_break(&place);
    assert_eq!((broken.salvaged, broken.source), (42, "file"));
    let inputs = |n| fluffy_ledger::input_of(&place.db(), n).unwrap();
    assert_eq!(inputs(40), Some(crate::fixture::blob(40)));
}

#[test]
fn lesson_l08_opening_a_ledger_with_unlinked_entries_is_a_break() {
    let place = without_snapshots(SIZE);
    place.sql("DELETE FROM entries WHERE seq = 50");
    let broken = opens_with_a_break(&place);
    assert_eq!(broken.found.seq, Some(50));
    assert_eq!((broken.salvaged, broken.source), (50, "file"));
}

#[test]
fn every_kind_of_damage_is_noticed_on_opening() {
    let stray = |what| Located { seq: None, problem: Problem::Stray(what) };
    check(
        "INSERT INTO tiles SELECT 3, hashes FROM tiles WHERE id = 0",
        stray("a tile that the tree does not have"),
        SIZE,
        "file",
    );
    let at = |seq, problem| Located { seq: Some(seq), problem };
    check(
        "UPDATE entries SET input = NULL WHERE seq = 55",
        at(55, Problem::InputMissing),
        SIZE,
        "snapshot",
    );
    check("DELETE FROM tiles WHERE id = 2", at(64, Problem::Tile { level: 0 }), SIZE, "file");
    check(
        "UPDATE tiles SET hashes = zeroblob(2016) WHERE id = 1",
        at(32, Problem::Tile { level: 0 }),
        SIZE,
        "file",
    );
    check(
        "UPDATE entries SET decision = 3 WHERE seq = 7",
        at(7, Problem::Database("column 6 holds a value of the wrong kind".to_owned())),
        SIZE,
        "snapshot",
    );
}

#[test]
fn a_changed_detail_is_noticed_on_opening() {
    let place = Place::filled(SIZE);
    place.sql("UPDATE entries SET detail = x'7b7d' WHERE seq = 3");
    let broken = opens_with_a_break(&place);
    assert_eq!(broken.found.seq, Some(3));
    assert!(matches!(broken.found.problem, Problem::EntryHash { .. }), "{}", broken.found);
    assert_eq!((broken.salvaged, broken.source), (SIZE, "snapshot"));
}

#[test]
fn a_trigger_that_would_rewrite_entries_never_runs() {
    let place = Place::filled(SIZE);
    place.sql(
        "CREATE TRIGGER t AFTER INSERT ON entries BEGIN \
         UPDATE entries SET actor = 'nobody' WHERE seq = new.seq; END",
    );
    let broken = opens_with_a_break(&place);
    assert!(broken.found.to_string().contains("schema was changed: `t`"), "{}", broken.found);
    assert_eq!((broken.salvaged, broken.source), (SIZE, "file"));
}

#[test]
fn a_file_whose_header_forbids_writing_is_a_break_and_not_a_dead_ledger() {
    use std::os::unix::fs::FileExt as _;
    let place = Place::filled(SIZE);
    let file = std::fs::OpenOptions::new().write(true).open(place.db()).unwrap();
    file.write_all_at(&[3], 18).unwrap();
    let broken = opens_with_a_break(&place);
    assert!(broken.found.to_string().contains("may not be written"), "{}", broken.found);
    assert_eq!(broken.salvaged, SIZE);
}

#[test]
fn a_cut_tail_is_a_break_that_the_snapshot_repairs() {
    for with_snapshots in [true, false] {
        let place = if with_snapshots { Place::filled(SIZE) } else { without_snapshots(SIZE) };
        place.sql("DELETE FROM entries WHERE seq >= 98");
        let broken = opens_with_a_break(&place);
        let truncated = Problem::Truncated { found: 98, promised: SIZE };
        assert_eq!(broken.found, Located { seq: Some(98), problem: truncated });
        let expected = if with_snapshots { (SIZE, "snapshot") } else { (98, "file") };
        assert_eq!((broken.salvaged, broken.source), expected);
    }
}

#[test]
fn a_chain_written_anew_is_a_break_and_nothing_of_it_is_believed() {
    let place = without_snapshots(SIZE);
    place.tamper(|connection| {
        connection.execute("UPDATE entries SET actor = 'nobody' WHERE seq = 90", []).unwrap();
        rechain(connection);
    });
    let broken = opens_with_a_break(&place);
    assert_eq!(broken.found.problem, Problem::Rewritten { size: SIZE });
    assert_eq!((broken.salvaged, broken.source), (0, "nowhere"));
}

#[test]
fn another_ledger_of_the_same_key_is_a_break_and_not_salvaged() {
    for size in [40, SIZE + 20] {
        let place = without_snapshots(SIZE);
        let other = Place::new();
        let mut config = other.config(9);
        config.origin.kernel_id = fluffy_base::KernelId::named("other").unwrap();
        let ledger = Ledger::open(config).unwrap();
        start(&ledger);
        while ledger.size() < size {
            ledger.append(numbered(&ledger, ledger.size())).unwrap();
        }
        drop(ledger);
        fs::copy(other.db(), place.db()).unwrap();
        assert_eq!(opens_with_a_break(&place).salvaged, 0);
    }
}

#[test]
fn a_deleted_ledger_is_a_break_that_the_snapshot_repairs() {
    let place = Place::filled(SIZE);
    fs::remove_file(place.db()).unwrap();
    let broken = opens_with_a_break(&place);
    assert_eq!(broken.found, Located { seq: None, problem: Problem::LedgerMissing });
    assert_eq!((broken.salvaged, broken.source, broken.kept), (SIZE, "snapshot", None));
    let place = without_snapshots(SIZE);
    fs::remove_file(place.db()).unwrap();
    assert_eq!(opens_with_a_break(&place).source, "nowhere");
}

#[test]
fn a_deleted_ledger_of_one_entry_is_a_break_too() {
    let place = Place::new();
    let copy = Place::new();
    let ledger = place.open();
    // What a process that is killed now leaves behind.
    crate::fixture::copy_dir(&place.project.state(), &copy.project.state());
    drop(ledger);
    for name in ["0001.db", "0001.db-wal", "0001.db-shm"] {
        let _ = fs::remove_file(copy.layout().dir().join("ledger").join(name));
    }
    assert_eq!(opens_with_a_break(&copy).found.problem, Problem::LedgerMissing);
}

#[test]
fn a_lost_or_forged_memory_is_a_break() {
    let forgeries: [&[u8]; 5] = [b"", b"forged\n", b"\xff\xfe\x00", &[b'x'; 100_000], b"a\n\n"];
    for forged in forgeries {
        let place = Place::filled(SIZE);
        fs::write(place.layout().remembered(), forged).unwrap();
        let broken = opens_with_a_break(&place);
        assert!(matches!(broken.found.problem, Problem::CheckpointForged(_)), "{broken:?}");
        assert_eq!((broken.salvaged, broken.source), (SIZE, "file"));
    }
    let place = Place::filled(SIZE);
    fs::remove_file(place.layout().remembered()).unwrap();
    assert_eq!(opens_with_a_break(&place).found.problem, Problem::CheckpointMissing);
    let place = Place::filled(SIZE);
    fs::remove_file(place.layout().remembered()).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", place.layout().remembered()).unwrap();
    let broken = opens_with_a_break(&place);
    assert!(matches!(broken.found.problem, Problem::CheckpointForged(_)));
    assert!(fs::symlink_metadata(place.layout().remembered()).unwrap().is_file());
}

#[test]
fn a_lost_key_is_a_break_and_not_silence() {
    let place = Place::filled(SIZE);
    let new = || SigningKey::from_seed(KeyName::LEDGER, &[99; 32]);
    let open = || Ledger::open(LedgerConfig { key: new(), ..place.config(2) }).unwrap();
    let ledger = open();
    let broken = ledger.report().broken.clone().unwrap();
    assert!(matches!(broken.found.problem, Problem::CheckpointForged(_)));
    assert_eq!((broken.salvaged, broken.source), (SIZE, "file"));
    drop(ledger);
    assert_eq!(open().report().broken, None);
}

#[test]
fn a_file_put_beside_the_ledger_does_not_take_its_place() {
    let (place, other) = (Place::filled(SIZE), Place::filled(40));
    fs::copy(other.db(), place.layout().segment(2)).unwrap();
    let ledger = place.started(2);
    let broken = ledger.report().broken.clone().unwrap();
    assert!(matches!(broken.found.problem, Problem::CheckpointForged(_)), "{broken:?}");
    assert_eq!((broken.segment, ledger.report().segment), (2, 3));
    assert_eq!(records(&place.db()).len() as u64, SIZE, "the true one was left alone");
}

#[test]
fn what_no_longer_is_a_database_is_kept_and_replaced_by_the_snapshot() {
    let whole = fs::read(Place::filled(SIZE).db()).unwrap();
    let mut headless = whole.clone();
    headless[..100].fill(0);
    let mut garbage = whole.clone();
    let middle = whole.len() / 2;
    garbage[middle..middle + 6_000].fill(0xa5);
    let contents = [vec![], headless, garbage, whole[..5_000].to_vec(), b"text".to_vec()];
    for (number, content) in contents.into_iter().enumerate() {
        for with_snapshots in [true, false] {
            let place = if with_snapshots { Place::filled(SIZE) } else { without_snapshots(SIZE) };
            fs::write(place.db(), &content).unwrap();
            let broken = opens_with_a_break(&place);
            if with_snapshots {
                assert_eq!((broken.salvaged, broken.source), (SIZE, "snapshot"), "{number}");
            } else {
                assert!(broken.salvaged < SIZE, "{number}");
            }
        }
    }
}

#[test]
fn garbage_in_a_file_that_was_not_closed_is_found_before_anything_is_read() {
    let place = without_snapshots(SIZE);
    fs::remove_file(place.layout().dir().join("clean")).unwrap();
    // A page of free space of the first page: no entry is concerned.
    let mut bytes = fs::read(place.db()).unwrap();
    bytes[101] ^= 1;
    fs::write(place.db(), bytes).unwrap();
    let broken = opens_with_a_break(&place);
    assert!(matches!(broken.found.problem, Problem::Database(_)), "{broken:?}");
    assert_eq!(broken.salvaged, SIZE);
}

#[test]
fn a_mark_of_an_earlier_orderly_end_is_not_believed() {
    let place = without_snapshots(SIZE);
    fs::write(place.layout().dir().join("clean"), "99\n").unwrap();
    let mut bytes = fs::read(place.db()).unwrap();
    bytes[101] ^= 1;
    fs::write(place.db(), bytes).unwrap();
    opens_with_a_break(&place);
}

#[test]
fn the_log_of_a_damaged_ledger_is_kept_with_it() {
    let (place, copy) = (Place::filled(SIZE), Place::new());
    let ledger = place.started(2);
    ledger.append(refused(&ledger, 101)).unwrap();
    crate::fixture::copy_dir(&place.project.state(), &copy.project.state());
    drop(ledger);
    let _ = fs::remove_file(copy.layout().dir().join("ledger/0001.db-shm"));
    fs::write(copy.layout().remembered(), "forged").unwrap();
    let wal = fs::read(copy.layout().dir().join("ledger/0001.db-wal")).unwrap();
    let db = fs::read(copy.db()).unwrap();
    assert!(!wal.is_empty());
    let broken = opens_with_a_break(&copy);
    assert_eq!(broken.salvaged, SIZE + 2, "what is in the log counts");
    let expected = [("0001-1.db".to_owned(), db), ("0001-1.db-wal".to_owned(), wal)];
    assert!(kept_files(&copy) == expected, "both as they were");
}

#[test]
fn an_interrupted_beginning_is_begun_again_without_a_break() {
    // Remembered, but no file yet; then a file without a schema; then one without an entry; then one that SQLite was about
    // to give its log, and would take back first.
    type Step = fn(&std::path::Path);
    let steps: [Step; 4] = [
        |_| {},
        |path| fs::write(path, "").unwrap(),
        |path| {
            let source = Place::filled(3);
            source.sql("DELETE FROM entries; VACUUM");
            fs::copy(source.db(), path).unwrap();
        },
        |path| {
            let dir = tempfile::tempdir().unwrap();
            let at = dir.path().join("a.db");
            let connection = rusqlite::Connection::open(&at).unwrap();
            // More than fits into memory, so that the file is changed before the transaction ends.
            let half = "CREATE TABLE a (b); PRAGMA cache_size = 2; BEGIN; INSERT INTO a VALUES (randomblob(100000));";
            connection.execute_batch(half).unwrap();
            let beside =
                |path: &std::path::Path| PathBuf::from(format!("{}-journal", path.display()));
            fs::copy(beside(&at), beside(path)).unwrap();
            fs::copy(&at, path).unwrap();
            let reader = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
            let reader = rusqlite::Connection::open_with_flags(path, reader).unwrap();
            let read = reader
                .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0));
            assert!(read.is_err(), "it cannot be read without being taken back");
        },
    ];
    for step in steps {
        let place = Place::new();
        fs::create_dir_all(place.layout().dir().join("ledger")).unwrap();
        let root = fluffy_base::Digest::of(b"");
        let origin = "fluffy/kernel-first/1".to_owned();
        let empty = fluffy_ledger::Checkpoint { origin, size: 0, root };
        fs::write(place.layout().remembered(), empty.sign(&place.key()).unwrap()).unwrap();
        step(&place.db());
        let ledger = place.started(1);
        assert_eq!((&ledger.report().broken, ledger.report().segment), (&None, 1));
        assert_eq!(ledger.origin().kernel_id.as_str(), "kernel-first");
        drop(ledger);
        assert_eq!(place.findings(), []);
        assert_eq!(place.open().report().broken, None);
    }
}

/// How far setting aside came before it was interrupted, in the order of its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reached {
    Found,
    Moved,
    Replaced,
    Salvaged,
    Remembered,
    Made,
}

/// A ledger with a changed entry, as an interrupted opening leaves it.
fn interrupted(reached: Reached) -> Place {
    let place = Place::filled(SIZE);
    let root = verify_bytes(&place.db()).unwrap().tree_root;
    place.sql("UPDATE entries SET actor = 'nobody' WHERE seq = 42");
    let dir = place.layout().dir().to_owned();
    let salvaged = format!(
        r#"{{"size":100,"root":"{root}","source":"snapshot","kernel_id":"kernel-test","kept":"0001-1.db"}}"#
    );
    let salvaged = if reached >= Reached::Salvaged { &salvaged } else { "null" };
    let mark =
        format!(r#"{{"segment":1,"seq":42,"problem":"as it was found","salvaged":{salvaged}}}"#);
    fs::write(dir.join("unfinished"), mark).unwrap();
    if reached >= Reached::Moved {
        fs::rename(place.db(), dir.join("damaged/0001-1.db")).unwrap();
    }
    if reached >= Reached::Replaced {
        fs::copy(dir.join("snapshots/0001-0000000000000100.db"), place.db()).unwrap();
    }
    if reached >= Reached::Remembered {
        let (origin, root) = ("fluffy/kernel-test/2".to_owned(), fluffy_base::Digest::of(b""));
        let empty = fluffy_ledger::Checkpoint { origin, size: 0, root };
        fs::write(place.layout().remembered(), empty.sign(&place.key()).unwrap()).unwrap();
    }
    if reached >= Reached::Made {
        fs::write(place.layout().segment(2), "").unwrap();
    }
    place
}

#[test]
fn setting_aside_can_be_interrupted_anywhere() {
    use Reached::{Found, Made, Moved, Remembered, Replaced, Salvaged};
    for reached in [Found, Moved, Replaced, Salvaged, Remembered, Made] {
        let place = interrupted(reached);
        let ledger = place.started(2);
        let broken = ledger.report().broken.clone().unwrap();
        assert_eq!(broken.found.to_string(), "entry 42: as it was found", "{reached:?}");
        assert_eq!((broken.segment, ledger.report().segment), (1, 2), "{reached:?}");
        // What had been put in place is set aside once more, and is then the file itself.
        let source = if reached == Replaced { "file" } else { "snapshot" };
        assert_eq!((broken.salvaged, broken.source), (SIZE, source), "{reached:?}");
        assert_eq!(broken.kept.unwrap().file_name().unwrap(), "0001-1.db");
        drop(ledger);
        assert_eq!(place.findings(), [], "{reached:?}");
        assert!(!place.layout().dir().join("unfinished").exists());
        assert_eq!(place.open().report().broken, None);
    }
}

#[test]
fn a_mark_that_nobody_left_destroys_nothing() {
    let marks = [
        "".to_owned(),
        "garbage".to_owned(),
        r#"{"segment":0,"seq":null,"problem":"x","salvaged":null}"#.to_owned(),
        r#"{"segment":7,"seq":null,"problem":"x","salvaged":null}"#.to_owned(),
        r#"{"segment":4294967295,"seq":null,"problem":"x","salvaged":null}"#.to_owned(),
    ];
    for text in marks {
        let place = Place::filled(SIZE);
        fs::write(place.layout().dir().join("unfinished"), &text).unwrap();
        let ledger = place.open();
        assert_eq!((&ledger.report().broken, ledger.report().entries), (&None, SIZE), "{text}");
        drop(ledger);
        assert_eq!(place.findings(), []);
    }
}

#[test]
fn an_older_segment_is_sealed_by_the_next() {
    let broken = || {
        let place = Place::filled(SIZE);
        place.sql("UPDATE entries SET actor = 'nobody' WHERE seq = 42");
        opens_with_a_break(&place);
        place
    };
    let place = broken();
    place.tamper(|connection| {
        connection.execute("UPDATE entries SET actor = 'nobody' WHERE seq = 90", []).unwrap();
        rechain(connection);
    });
    let rewritten = Problem::Rewritten { size: SIZE };
    assert_eq!(place.findings(), [Located { seq: None, problem: rewritten }]);
    let place = broken();
    place.sql("DELETE FROM entries WHERE seq = 99; VACUUM");
    let truncated = Problem::Truncated { found: 99, promised: SIZE };
    assert_eq!(place.findings(), [Located { seq: Some(99), problem: truncated }]);
    let place = broken();
    fs::remove_file(place.db()).unwrap();
    let truncated = Problem::Truncated { found: 0, promised: SIZE };
    assert_eq!(place.findings(), [Located { seq: Some(0), problem: truncated }]);
}

#[test]
fn breaks_after_breaks_are_each_told_once() {
    let place = Place::filled(SIZE);
    for number in 1..=4 {
        let path = place.layout().segment(number);
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute("UPDATE entries SET actor = 'nobody' WHERE seq = 1", []).unwrap();
        assert!(count(&connection, "entries") > 1);
        connection.close().unwrap();
        let broken = opens_with_a_break(&place);
        assert_eq!((broken.segment, broken.found.seq), (number, Some(1)));
    }
    assert_eq!(place.layout().segments().unwrap(), [1, 2, 3, 4, 5]);
}

#[test]
fn at_most_five_snapshots_are_kept_and_they_are_the_newest() {
    let place = Place::new();
    for session in 1..=8 {
        drop(place.started(session));
    }
    let mut names: Vec<PathBuf> = fs::read_dir(place.layout().dir().join("snapshots"))
        .unwrap()
        .map(|entry| PathBuf::from(entry.unwrap().file_name()))
        .collect();
    names.sort();
    let expected: Vec<_> =
        (5..=9).map(|size| PathBuf::from(format!("0001-{size:016}.db"))).collect();
    assert_eq!(names, expected);
    let check = verify_bytes(&place.layout().dir().join("snapshots").join(&names[4])).unwrap();
    assert_eq!((check.entries, check.findings), (9, vec![]));
}

#[test]
fn lesson_l19_the_tail_of_a_long_ledger_is_checked_without_crying_wolf() {
    let place = Place::filled(4_500);
    place.fill(4_600);
    assert_eq!(place.open().report().broken, None);
    let damaged_at = |seq: u64| {
        let copy = Place::new();
        crate::fixture::copy_dir(&place.project.state(), &copy.project.state());
        copy.sql(&format!("UPDATE entries SET actor = 'nobody' WHERE seq = {seq}"));
        let opened = copy.open().report().broken.clone();
        (opened.and_then(|broken| broken.found.seq), copy)
    };
    // The last 1,024 are checked on opening …
    assert_eq!(damaged_at(3_576).0, Some(3_576));
    assert_eq!(damaged_at(4_599).0, Some(4_599));
    // … the others on demand.
    let (found, copy) = damaged_at(100);
    assert_eq!(found, None);
    assert_eq!(copy.findings()[0].seq, Some(100));
}
