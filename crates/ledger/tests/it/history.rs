//! Entries that are read to be gone on with: handed out if they are what was signed, and named if they are not.

use std::ops::ControlFlow;

use fluffy_ledger::{KeyName, Located, Problem, Proved, SigningKey, look_back, prove};
use proptest::prelude::*;

use crate::fixture::{Place, count, numbered, rechain};

const SIZE: u64 = 1_100;

/// What is proved from `first` on, and which entries were handed out.
fn proved(place: &Place, first: u64, until: Option<u64>) -> (Result<Proved, Located>, Vec<u64>) {
    let mut read = Vec::new();
    let proved = prove(&place.layout(), &place.public(), first, until, |entry| {
        read.push(entry.seq);
        ControlFlow::Continue(())
    });
    (proved.unwrap(), read)
}

/// A change to a ledger is found from the beginning and from nearby, at this place.
#[track_caller]
fn check(sql: &str, at: Option<u64>) {
    let place = Place::filled(SIZE);
    place.sql(sql);
    for first in [0, 30, at.unwrap_or(1_000)] {
        let (proved, _) = proved(&place, first, None);
        assert_eq!(proved.unwrap_err().seq, at, "{sql} from {first}");
    }
}

#[test]
fn entries_are_handed_out_once_and_in_order_from_wherever_they_begin() {
    let place = Place::filled(SIZE);
    for first in [0, 1, 31, 32, 33, 1_023, 1_024, 1_098, 1_099] {
        let (proved, read) = proved(&place, first, None);
        let proved = proved.unwrap();
        assert_eq!((proved.size, proved.signed), (SIZE, SIZE));
        assert_eq!(read, (first..SIZE).collect::<Vec<_>>());
    }
}

#[test]
fn a_changed_removed_or_moved_entry_is_named() {
    check("UPDATE entries SET intent = 'x' WHERE seq = 700", Some(700));
    check("UPDATE entries SET detail = x'7b7d' WHERE seq = 700", Some(700));
    check("UPDATE entries SET input = x'00' WHERE seq = 700", Some(700));
    check("UPDATE entries SET input = NULL WHERE seq = 700", Some(700));
    check("UPDATE entries SET input = x'00' WHERE seq = 701", Some(701));
    check("UPDATE entries SET decision = 9 WHERE seq = 700", Some(700));
    check("DELETE FROM entries WHERE seq = 700", Some(700));
    check("DELETE FROM entries WHERE seq >= 1050", Some(1_050));
    check("UPDATE entries SET entry_hash = zeroblob(32) WHERE seq = 700", Some(700));
    check(
        "UPDATE entries SET seq = -5 WHERE seq = 700; UPDATE entries SET seq = 700 WHERE seq = 701; \
         UPDATE entries SET seq = 701 WHERE seq = -5",
        Some(700),
    );
}

#[test]
fn a_past_that_is_forged_with_all_its_hashes_and_tiles_is_not_the_one_that_was_signed() {
    for at in [10, 700, 1_099] {
        let place = Place::filled(SIZE);
        place.tamper(|connection| {
            let sql = format!("UPDATE entries SET intent = 'x' WHERE seq = {at}");
            connection.execute_batch(&sql).unwrap();
            rechain(connection);
        });
        for first in [0, 600, 1_090] {
            let (proved, _) = proved(&place, first, None);
            let rewritten = Located { seq: None, problem: Problem::Rewritten { size: SIZE } };
            assert_eq!(proved, Err(rewritten), "{at} from {first}");
        }
    }
}

#[test]
fn what_lies_before_a_forged_entry_is_proved_without_it() {
    let place = Place::filled(SIZE);
    place.sql("UPDATE entries SET intent = 'x', entry_hash = zeroblob(32) WHERE seq = 700");
    assert!(proved(&place, 600, None).0.is_err());
    let (before, read) = proved(&place, 600, Some(690));
    before.unwrap();
    assert_eq!(read, (600..690).collect::<Vec<_>>());
    // And is not believed where it is the forged part.
    place.tamper(|connection| {
        connection.execute_batch("UPDATE entries SET intent = 'y' WHERE seq = 650").unwrap();
        rechain(connection);
    });
    assert!(proved(&place, 600, Some(690)).0.is_err());
}

#[test]
fn what_was_not_signed_yet_follows_link_by_link_and_another_key_signs_nothing() {
    let place = Place::new();
    let ledger = place.started(1);
    while ledger.size() < 50 {
        ledger.append(numbered(&ledger, ledger.size())).unwrap();
    }
    ledger.checkpoint().unwrap();
    while ledger.size() < 60 {
        ledger.append(numbered(&ledger, ledger.size())).unwrap();
    }
    let proved_now = proved(&place, 55, None).0.unwrap();
    assert!(proved_now.size == 60 && proved_now.signed >= 50, "{proved_now:?}");
    let other = SigningKey::from_seed(KeyName::LEDGER, &[99; 32]);
    let refused =
        prove(&place.layout(), other.verifying_key(), 0, None, |_| ControlFlow::Continue(()));
    assert!(matches!(refused.unwrap().unwrap_err().problem, Problem::CheckpointForged(_)));
}

#[test]
fn looking_back_passes_over_what_cannot_be_read_and_stops_when_told() {
    let place = Place::filled(100);
    place.sql(
        "UPDATE entries SET detail = x'00' WHERE seq = 98; DELETE FROM entries WHERE seq = 97",
    );
    let mut seen = Vec::new();
    look_back(&place.db(), |glimpse| {
        seen.push((glimpse.seq, glimpse.input().unwrap().is_some()));
        if seen.len() < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
    .unwrap();
    assert_eq!(seen, [(99, false), (96, false), (95, true)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_column_changed_in_any_entry_from_the_first_on_is_found(
        seq in 0_i64..200, column in 0_usize..6, first in 0_u64..200,
    ) {
        let place = Place::filled(200);
        let change = [
            "actor = actor || 'x'", "request_id = request_id || 'x'", "ts_ms = ts_ms + 1",
            "error = 'x'", "state_to = (state_to + 1) % 7", "params_hash = zeroblob(32)",
        ][column];
        place.tamper(|connection| {
            assert_eq!(count(connection, "entries"), 200);
            connection.execute_batch(&format!("UPDATE entries SET {change} WHERE seq = {seq}")).unwrap();
        });
        let (proved, _) = proved(&place, first, None);
        // What lies before a tile's beginning counts by its place in the tree, which has not changed.
        if seq.unsigned_abs() >= first / 32 * 32 {
            prop_assert_eq!(proved.unwrap_err().seq, Some(seq.unsigned_abs()));
        }
    }
}
