//! What remembering costs, each figure beside the bare cost of the same work in the same run.
//!
//! `cargo bench --package fluffy-ledger`

#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]

mod fixture;

use std::path::Path;
use std::sync::OnceLock;

use divan::Bencher;
use fixture::{BODY, NOW_MS, bare, filled, insert, key, layout, open, open_at, record};
use fluffy_base::{Decision, Digest};
use fluffy_ledger::{
    EvidenceBundle, Ledger, Record, RetentionOptions, Segment, look_back, prove, verify_bytes,
    verify_protocol, verify_segments,
};
use rusqlite::Connection;
use tempfile::TempDir;

const MILLION: u64 = 1_000_000;

fn main() {
    divan::main();
}

/// A closed ledger of a million entries, made once.
fn million() -> &'static TempDir {
    static DIR: OnceLock<TempDir> = OnceLock::new();
    DIR.get_or_init(|| {
        let (dir, mut ledger) = filled(MILLION);
        ledger.close().unwrap();
        dir
    })
}

mod append {
    use super::*;

    #[divan::bench(sample_count = 50, sample_size = 200)]
    fn bare_insert_and_two_hashes(bencher: Bencher<'_, '_>) {
        let dir = TempDir::new().unwrap();
        let connection = bare(dir.path(), "NORMAL");
        let mut seq = 0;
        bencher.bench_local(|| {
            seq += 1;
            insert(&connection, seq, &BODY);
        });
    }

    #[divan::bench(sample_count = 50, sample_size = 200, args = [1_000, 10_000, 100_000, MILLION])]
    fn ledger_of(bencher: Bencher<'_, '_>, size: u64) {
        let (_dir, ledger) = filled(size);
        bencher.bench_local(|| ledger.append(record(Decision::Allow)).unwrap());
    }
}

/// A hundred thousand entries of ten days: archiving them, and verifying them from ten archives and from
/// one database.
mod hundred_thousand_entries {
    use super::*;

    const DAYS: u64 = 10;
    const DAY_MS: u64 = 86_400_000;
    const KEPT: RetentionOptions =
        RetentionOptions { retention_days: 90, max_bytes: u64::MAX, keep_days: 30 };

    /// Ten days, all in the database.
    fn database() -> &'static TempDir {
        static LEDGER: OnceLock<TempDir> = OnceLock::new();
        LEDGER.get_or_init(|| {
            let (dir, ledger) = filled(100);
            for day in 0..DAYS {
                let record = || Record { ts_ms: NOW_MS + day * DAY_MS, ..record(Decision::Allow) };
                for _ in 1..10_000 {
                    let _ = ledger.enter(record());
                }
                ledger.append(record()).unwrap();
            }
            drop(ledger);
            dir
        })
    }

    fn copy() -> TempDir {
        let to = TempDir::new().unwrap();
        let from = layout(database().path()).segment(1);
        let segment = layout(to.path()).segment(1);
        std::fs::create_dir_all(segment.parent().unwrap()).unwrap();
        std::fs::copy(from, segment).unwrap();
        std::fs::copy(database().path().join("remembered"), to.path().join("remembered")).unwrap();
        to
    }

    fn later(keep_days: u64, dir: &Path) -> Ledger {
        let retention = RetentionOptions { keep_days, ..KEPT };
        open_at(dir, NOW_MS + (DAYS + 1) * DAY_MS, retention)
    }

    /// The same, all but the last of the days in archives alone.
    fn archives() -> &'static TempDir {
        static LEDGER: OnceLock<TempDir> = OnceLock::new();
        LEDGER.get_or_init(|| {
            let dir = copy();
            let ledger = later(30, dir.path());
            assert_eq!(ledger.report().retained.archived.len() as u64, DAYS);
            for _ in 0..64 {
                let ts_ms = NOW_MS + (DAYS + 1) * DAY_MS;
                ledger.append(Record { ts_ms, ..record(Decision::Allow) }).unwrap();
            }
            drop(ledger);
            assert!(later(0, dir.path()).report().retained.trimmed >= 100_000);
            dir
        })
    }

    #[divan::bench(sample_count = 5, sample_size = 1)]
    fn open_with_nothing_to_do(bencher: Bencher<'_, '_>) {
        bencher.with_inputs(copy).bench_local_values(|dir| {
            let ledger = open_at(dir.path(), NOW_MS, KEPT);
            assert!(ledger.report().retained.archived.is_empty());
            (ledger, dir)
        });
    }

    #[divan::bench(sample_count = 5, sample_size = 1)]
    fn open_and_archive_ten_days(bencher: Bencher<'_, '_>) {
        bencher.with_inputs(copy).bench_local_values(|dir| {
            let ledger = later(30, dir.path());
            assert_eq!(ledger.report().retained.archived.len() as u64, DAYS);
            (ledger, dir)
        });
    }

    #[divan::bench(sample_count = 5, sample_size = 1)]
    fn open_archive_and_leave_the_database(bencher: Bencher<'_, '_>) {
        bencher.with_inputs(copy).bench_local_values(|dir| {
            let ledger = later(0, dir.path());
            assert!(ledger.report().retained.trimmed >= 90_000);
            (ledger, dir)
        });
    }

    fn verify(dir: &Path) -> u64 {
        let checks = verify_segments(&layout(dir), Some(key().verifying_key())).unwrap();
        assert!(checks.iter().all(|check| check.findings().next().is_none()));
        checks.iter().map(|check| check.bytes.entries).sum()
    }

    #[divan::bench(sample_count = 10, sample_size = 1)]
    fn verify_in_one_database(bencher: Bencher<'_, '_>) {
        let dir = database().path();
        bencher.bench_local(|| verify(dir));
    }

    #[divan::bench(sample_count = 10, sample_size = 1)]
    fn verify_in_ten_archives(bencher: Bencher<'_, '_>) {
        let dir = archives().path();
        bencher.bench_local(|| verify(dir));
    }

    #[divan::bench(sample_count = 20, sample_size = 1)]
    fn prove_an_archived_entry(bencher: Bencher<'_, '_>) {
        let segment = Segment::open(&layout(archives().path()), 1).unwrap();
        let mut seq = 1;
        bencher.bench_local(|| {
            seq = (seq + 61_953) % 90_000;
            segment.prove(seq, &key()).unwrap()
        });
    }
}

mod million_entries {
    use super::*;

    #[divan::bench(sample_count = 5, sample_size = 1)]
    fn bare_read_and_two_hashes(bencher: Bencher<'_, '_>) {
        let path = layout(million().path()).segment(1);
        bencher.bench_local(|| {
            let connection = Connection::open(&path).unwrap();
            let mut statement =
                connection.prepare("SELECT intent, detail FROM entries ORDER BY seq").unwrap();
            let mut rows = statement.query([]).unwrap();
            let mut last = Digest::GENESIS;
            while let Some(row) = rows.next().unwrap() {
                let detail = row.get_ref(1).unwrap().as_blob().unwrap();
                let hash = Digest::of(detail);
                last = Digest::of_parts(&[last.as_bytes(), hash.as_bytes(), detail]);
            }
            last
        });
    }

    #[divan::bench(sample_count = 5, sample_size = 1)]
    fn verify_bytes_from_the_database(bencher: Bencher<'_, '_>) {
        let path = layout(million().path()).segment(1);
        bencher.bench_local(|| {
            let check = verify_bytes(&path).unwrap();
            assert!(check.findings.is_empty());
            check.entries
        });
    }

    #[divan::bench(sample_count = 5, sample_size = 1)]
    fn verify_protocol_from_the_database(bencher: Bencher<'_, '_>) {
        let path = layout(million().path()).segment(1);
        bencher.bench_local(|| assert!(verify_protocol(&path).unwrap().findings.is_empty()));
    }

    #[divan::bench(sample_count = 5, sample_size = 1)]
    fn verify_in_memory(bencher: Bencher<'_, '_>) {
        static BUNDLE: OnceLock<EvidenceBundle> = OnceLock::new();
        let bundle = BUNDLE.get_or_init(|| {
            let segment = Segment::open(&layout(million().path()), 1).unwrap();
            EvidenceBundle::collect(&segment, &key(), 0).unwrap()
        });
        bencher.bench_local(|| assert!(bundle.verify().is_empty()));
    }

    #[divan::bench(sample_count = 20, sample_size = 1)]
    fn open_the_ledger(bencher: Bencher<'_, '_>) {
        let dir = million().path();
        bencher.with_inputs(|| ()).bench_local_values(|()| {
            let ledger = open(dir);
            assert!(ledger.report().broken.is_none());
            // Closing is not opening: divan drops what is returned outside the clock.
            ledger
        });
    }

    #[divan::bench(sample_count = 1_000, sample_size = 100)]
    fn inclusion_proof(bencher: Bencher<'_, '_>) {
        let segment = Segment::open(&layout(million().path()), 1).unwrap();
        let mut seq = 0;
        bencher.bench_local(|| {
            seq = (seq + 611_953) % MILLION;
            segment.inclusion_path(seq).unwrap()
        });
    }
}

/// What going on with a session costs beside reading it: in a ledger of 100,000 entries, of which it has the last 2,000
/// or all.
mod going_on {
    use std::ops::ControlFlow;

    use super::*;

    const SIZE: u64 = 100_000;

    fn hundred_thousand() -> &'static TempDir {
        static DIR: OnceLock<TempDir> = OnceLock::new();
        DIR.get_or_init(|| {
            let (dir, mut ledger) = filled(SIZE);
            ledger.close().unwrap();
            dir
        })
    }

    #[divan::bench(sample_count = 20, sample_size = 1, args = [2_000, SIZE])]
    fn prove_the_last(bencher: Bencher<'_, '_>, entries: u64) {
        let (layout, key) = (layout(hundred_thousand().path()), key());
        bencher.bench_local(|| {
            let mut read = 0_u64;
            let proved = prove(&layout, key.verifying_key(), SIZE - entries, None, |entry| {
                read += u64::from(entry.input().is_some());
                ControlFlow::Continue(())
            });
            assert_eq!(proved.unwrap().unwrap().signed, SIZE);
            read
        });
    }

    #[divan::bench(sample_count = 20, sample_size = 1, args = [2_000, SIZE])]
    fn look_back_over(bencher: Bencher<'_, '_>, entries: u64) {
        let path = layout(hundred_thousand().path()).segment(1);
        bencher.bench_local(|| {
            let mut seen = 0;
            let looked = look_back(&path, |_| {
                seen += 1;
                if seen < entries { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            looked.unwrap();
        });
    }
}
