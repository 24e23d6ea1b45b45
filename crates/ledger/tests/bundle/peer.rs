//! The bundle of a recorded session of the independent Python system.

use fluffy_ledger::{Problem, Signer};
use serde_json::{Value, json};

use crate::support::{Desk, OURS, key, lines};

/// The bundle as recorded.
pub(crate) fn recorded() -> Value {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/kernels/strict-session.json");
    let session: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    session["bundle"].clone()
}

fn changed(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut bundle = recorded();
    change(&mut bundle);
    bundle.to_string().into_bytes()
}

#[test]
fn the_recorded_bundle_of_the_peer_verifies_and_nobody_signed_it() {
    let check = Desk::new().check(&changed(|_| ()));
    assert_eq!(lines(&check.findings), "");
    assert_eq!((check.entries, check.signer), (10, Signer::Nobody));
    assert_eq!(check.root_hash.to_string(), recorded()["root_hash"]);
    assert!(check.protocol.is_none());
    let twice = changed(|bundle| bundle["entries"] = bundle["ledger_entries"].clone());
    assert_eq!(lines(&Desk::new().check(&twice).findings), "");
}

#[test]
fn an_unsigned_bundle_fails_where_a_key_is_wanted() {
    let check = Desk::new().check_pinned(&changed(|_| ()), key(&OURS).verifying_key());
    assert!(
        lines(&check.findings).contains("the bundle is not signed, or has lost its signature\n")
    );
}

#[test]
fn every_changed_field_of_every_entry_is_found_there() {
    let desk = Desk::new();
    for at in 0..10 {
        for field in recorded()["ledger_entries"][at].as_object().unwrap().keys() {
            let bundle = changed(|bundle| bundle["ledger_entries"][at][field] = json!("forged"));
            let check = desk.check(&bundle);
            assert_eq!(check.findings[0].seq, Some(at as u64), "{field}");
        }
    }
}

#[test]
fn one_change_is_one_finding() {
    let check = Desk::new().check(&changed(|b| b["ledger_entries"][3]["actor"] = json!("bea")));
    assert_eq!(check.findings.len(), 1);
    assert!(matches!(check.findings[0].problem, Problem::EntryHash { .. }));
}

type Edit = fn(&mut Vec<Value>, usize);

#[test]
fn dropped_repeated_and_swapped_entries_are_found_where_they_are() {
    let desk = Desk::new();
    let list = |bundle: &mut Value| bundle["ledger_entries"].as_array().unwrap().clone();
    for at in 0..9 {
        let edits: [(Edit, usize); 3] = [
            (|list, at| drop(list.remove(at)), at),
            (|list, at| list.insert(at, list[at].clone()), at + 1),
            (|list, at| list.swap(at, at + 1), at),
        ];
        for (edit, expected) in edits {
            let bundle = changed(|bundle| {
                let mut entries = list(bundle);
                edit(&mut entries, at);
                bundle["ledger_entries"] = json!(entries);
            });
            assert_eq!(desk.check(&bundle).findings[0].seq, Some(expected as u64));
        }
    }
}

#[test]
fn an_end_that_was_cut_is_found_by_the_root() {
    let bundle = changed(|bundle| drop(bundle["ledger_entries"].as_array_mut().unwrap().pop()));
    assert_eq!(Desk::new().refused(&bundle), "the root hash is not that of the last entry\n");
}

#[test]
fn the_head_is_whole() {
    let desk = Desk::new();
    for name in ["root_hash", "exported_at_ms", "kernel_id", "variant"] {
        let bundle = changed(|bundle| drop(bundle.as_object_mut().unwrap().remove(name)));
        assert_eq!(desk.refused(&bundle), format!("the bundle has no `{name}`\n"));
        let bundle = changed(|bundle| bundle[name] = json!(null));
        assert!(desk.refused(&bundle).contains("the bundle cannot be read: invalid type: null"));
    }
    let bundle = changed(|bundle| drop(bundle.as_object_mut().unwrap().remove("ledger_entries")));
    assert!(desk.refused(&bundle).contains("the bundle has no `ledger_entries`"));
}

#[test]
fn a_second_list_that_differs_is_found_where_it_does() {
    let desk = Desk::new();
    let bundle = changed(|bundle| {
        bundle["entries"] = bundle["ledger_entries"].clone();
        bundle["entries"][6]["intent"] = json!("something else");
    });
    assert!(desk.refused(&bundle).starts_with("entry 6: in `entries`: the entry's hash is "));
    let bundle = changed(|bundle| {
        bundle["entries"] = bundle["ledger_entries"].clone();
        bundle["entries"].as_array_mut().unwrap().pop();
    });
    assert_eq!(desk.refused(&bundle), "`entries` and `ledger_entries` differ\n");
}
