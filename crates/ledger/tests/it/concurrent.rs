//! Many appenders, one chain; one writer, many readers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fluffy_ledger::{Ledger, LedgerError, Page, Query, Segment, verify_bytes, verify_segments};

use crate::fixture::{Place, numbered, records, refused};

#[test]
fn aud_7_threads_that_append_together_write_one_chain() {
    const THREADS: u64 = 8;
    const EACH: u64 = 2_000;
    let place = Place::new();
    let mut ledger = place.started(1);
    let shared = &ledger;
    let mut acknowledged = HashMap::new();
    thread::scope(|scope| {
        let running: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let append = |n| {
                        let number = thread * EACH + n;
                        let durable = n % 500 == 499;
                        let record = if durable {
                            refused(shared, number)
                        } else {
                            numbered(shared, number)
                        };
                        (shared.append(record).unwrap(), format!("request-{number}"))
                    };
                    (0..EACH).map(append).collect::<Vec<_>>()
                })
            })
            .collect();
        for thread in running {
            let places = thread.join().unwrap();
            assert!(places.windows(2).all(|pair| pair[0].0.seq < pair[1].0.seq));
            for (appended, request) in places {
                let before = acknowledged.insert(appended.seq, (appended.entry_hash, request));
                assert_eq!(before, None, "number {} was given twice", appended.seq);
            }
        }
    });
    ledger.close().unwrap();
    let found = records(&place.db());
    assert_eq!(found.len() as u64, 2 + THREADS * EACH);
    assert_eq!(acknowledged.len() as u64, THREADS * EACH);
    for (seq, (hash, request)) in acknowledged {
        let entry = &found[seq as usize].entry;
        assert_eq!((entry.entry_hash, &entry.request_id), (hash, &request));
    }
    assert_eq!(place.findings(), []);
}

#[test]
fn a_second_writer_is_told_who_the_first_one_is() {
    let place = Place::new();
    let ledger = place.open();
    for _ in 0..2 {
        match Ledger::open(place.config(2)) {
            Err(LedgerError::Locked { pid }) => assert_eq!(pid, std::process::id().to_string()),
            other => panic!("{:?}", other.map(|ledger| ledger.size())),
        }
    }
    drop(ledger);
    assert_eq!(place.open().report().broken, None);
}

#[test]
fn readers_see_whole_states_while_a_writer_writes() {
    let place = Place::new();
    let ledger = place.started(1);
    let ended = AtomicBool::new(false);
    let rounds = thread::scope(|scope| {
        scope.spawn(|| {
            for n in 2..3_000 {
                let durable = n % 100 == 0;
                let record = if durable { refused(&ledger, n) } else { numbered(&ledger, n) };
                ledger.append(record).unwrap();
            }
            ended.store(true, Ordering::Release);
        });
        let mut rounds = 0;
        while !ended.load(Ordering::Acquire) || rounds == 0 {
            assert_eq!(place.findings(), []);
            let segment = Segment::active(&place.layout()).unwrap().unwrap();
            let last = segment.size() - 1;
            let proof = segment.prove(last, &place.key()).unwrap();
            assert_eq!(proof.verify(&place.public()).unwrap().size, segment.size());
            let since = segment.prove_since(1, &place.key()).unwrap();
            assert_eq!(since.verify(&place.public()).unwrap().size, segment.size());
            let newest = Page { limit: 1, offset: 0, newest_first: true };
            let found = Query::default().collect(segment.path(), newest).unwrap();
            assert!(found[0].entry.seq >= last);
            rounds += 1;
        }
        rounds
    });
    assert!(rounds > 0);
    let check = verify_bytes(ledger.path()).unwrap();
    assert_eq!((check.entries, check.head), (ledger.size(), ledger.head()));
    let segment = Segment::active(&place.layout()).unwrap().unwrap();
    assert_eq!((segment.size(), segment.head()), (ledger.size(), ledger.head()));
}

#[test]
fn checkpoints_asked_for_from_many_threads_never_go_back() {
    let place = Place::new();
    let ledger = place.started(1);
    thread::scope(|scope| {
        for thread in 0..4 {
            let ledger = &ledger;
            scope.spawn(move || {
                for n in 0..50 {
                    let seq = ledger.append(refused(ledger, thread * 50 + n)).unwrap().seq;
                    let note = ledger.checkpoint().unwrap();
                    let size: u64 = note.lines().nth(1).unwrap().parse().unwrap();
                    assert!(size > seq);
                }
            });
        }
        for _ in 0..100 {
            // Whatever moment it is, what is remembered is whole and not ahead.
            let checks = verify_segments(&place.layout(), Some(&place.public())).unwrap();
            assert_eq!(checks[0].memory, None);
        }
    });
    drop(ledger);
    assert_eq!(place.findings(), []);
    assert_eq!(place.open().report().broken, None);
}
