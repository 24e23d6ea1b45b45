//! Whatever is changed in a bundle is found, and found where it is.

use proptest::prelude::*;

use crate::support::{Desk, Dice, OURS, Session, in_parallel, is_signed, lines};

fn small() -> Vec<u8> {
    Session::of(3).bundle()
}

#[test]
fn slow_every_offset_of_a_small_bundle_counts() {
    let bundle = small();
    in_parallel(bundle.len(), |desk, at| {
        let mut changed = bundle.clone();
        changed[at] ^= 1 << (at % 8);
        assert!(!desk.check(&changed).findings.is_empty(), "offset {at}");
    });
    assert!(is_signed(&Desk::new().check(&bundle), &OURS));
}

#[test]
fn slow_a_small_bundle_cut_anywhere_is_refused() {
    let bundle = small();
    in_parallel(bundle.len(), |desk, length| {
        assert!(!desk.check(&bundle[..length]).findings.is_empty(), "length {length}");
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_byte_changed_anywhere_is_found(at in any::<prop::sample::Index>(), xor in 1_u8..) {
        thread_local! {
            static BUNDLE: Vec<u8> = Session::of(20).bundle();
            static DESK: Desk = Desk::new();
        }
        let (found, at) = BUNDLE.with(|bundle| {
            let mut changed = bundle.clone();
            let at = at.index(changed.len());
            changed[at] ^= xor;
            (DESK.with(|desk| desk.check(&changed).findings), at)
        });
        prop_assert!(!found.is_empty(), "offset {at} xor {xor}");
    }

    #[test]
    fn bytes_put_in_or_taken_out_are_found(
        at in any::<prop::sample::Index>(), put in prop::collection::vec(any::<u8>(), 0..3),
        take in 0_usize..3,
    ) {
        thread_local! {
            static BUNDLE: Vec<u8> = Session::of(6).bundle();
            static DESK: Desk = Desk::new();
        }
        let unchanged = BUNDLE.with(|bundle| {
            let mut changed = bundle.clone();
            let at = at.index(changed.len());
            let end = changed.len().min(at + take);
            changed.splice(at..end, put.iter().copied());
            changed == *bundle || !DESK.with(|desk| desk.check(&changed).findings.is_empty())
        });
        prop_assert!(unchanged);
    }
}

#[test]
fn bytes_after_the_end_are_found() {
    let (desk, bundle) = (Desk::new(), small());
    for tail in [&b"\n"[..], b" ", b"{}", b"\0", b"x"] {
        desk.refused(&[&bundle, tail].concat());
    }
}

/// Makes a change to the chosen lists of a bundle of eight entries; gives what was found.
fn found(
    desk: &Desk,
    session: &Session,
    lists: [bool; 3],
    change: impl Fn(&mut Vec<String>),
) -> String {
    let mut parts = session.parts();
    let details = parts.details.as_mut().unwrap();
    for (list, chosen) in [&mut parts.chained, &mut parts.repeated, details].into_iter().zip(lists)
    {
        if chosen {
            change(list);
        }
    }
    let sealed_again = {
        let mut parts = parts.clone();
        parts.seal(&OURS);
        parts
    };
    // Even the owner of the key cannot seal what the checkpoint does not cover.
    desk.refused(&sealed_again.bytes());
    desk.refused(&parts.bytes())
}

const LISTS: [[bool; 3]; 5] = [
    [true, false, false],
    [false, true, false],
    [false, false, true],
    [true, true, false],
    [true, true, true],
];

#[test]
fn dropped_items_are_found_where_they_were() {
    let (desk, session) = (Desk::new(), Session::of(8));
    for lists in LISTS {
        for at in 0..7 {
            let found = found(&desk, &session, lists, |list| drop(list.remove(at)));
            assert!(found.contains(&format!("entry {at}: ")), "{lists:?} {at}: {found}");
        }
        let found = found(&desk, &session, lists, |list| drop(list.pop()));
        assert!(!found.is_empty());
    }
}

#[test]
fn repeated_items_are_found_where_they_are() {
    let (desk, session) = (Desk::new(), Session::of(8));
    for lists in LISTS {
        for at in 0..7 {
            let found = found(&desk, &session, lists, |list| list.insert(at, list[at].clone()));
            let place = format!("entry {}: ", at + 1);
            assert!(found.contains(&place), "{lists:?} {at}: {found}");
        }
        let found = found(&desk, &session, lists, |list| list.extend(list.last().cloned()));
        assert!(!found.is_empty());
    }
}

#[test]
fn swapped_items_are_found_where_they_are() {
    let (desk, session) = (Desk::new(), Session::of(8));
    for lists in LISTS {
        for a in 0..8 {
            for b in a + 1..8 {
                let found = found(&desk, &session, lists, |list| list.swap(a, b));
                assert!(found.contains(&format!("entry {a}: ")), "{lists:?} {a} {b}: {found}");
            }
        }
    }
}

#[test]
fn a_changed_field_of_any_entry_is_found_at_that_entry() {
    let (desk, session, dice) = (Desk::new(), Session::of(20), Dice::new(5));
    let fields: serde_json::Value = serde_json::from_str(&session.parts().chained[0]).unwrap();
    for field in fields.as_object().unwrap().keys() {
        for value in ["\"forged\"", "null", "7", "[]", "{}", "true", "-1", "0.5"] {
            let at = dice.below(20);
            let mut parts = session.parts();
            let mut entry: serde_json::Value = serde_json::from_str(&parts.chained[at]).unwrap();
            let value: serde_json::Value = serde_json::from_str(value).unwrap();
            if entry[field] == value {
                continue;
            }
            entry[field] = value;
            parts.each_list(|list| list[at] = entry.to_string());
            parts.seal(&OURS);
            let check = desk.check(&parts.bytes());
            let found = lines(&check.findings);
            assert_eq!(check.findings[0].seq, Some(at as u64), "{field}: {found}");
            assert!(found.contains(&format!("entry {at}: in `entries`: ")), "{field}: {found}");
        }
    }
}

#[test]
fn lesson_l03_a_forged_actor_is_found_at_its_entry() {
    let mut parts = Session::of(12).parts();
    parts.each_list(|list| list[7] = list[7].replacen("m\\u00e4llory", "alice", 1));
    parts.seal(&OURS);
    let found = Desk::new().refused(&parts.bytes());
    assert!(found.starts_with("entry 7: the entry's hash is "), "{found}");
}

#[test]
fn lesson_l03_a_list_under_another_name_is_not_a_list_of_nothing() {
    let text = String::from_utf8(small()).unwrap();
    for (name, expected) in [
        ("audit_entries", "`audit_entries` is not a field of a bundle"),
        ("Ledger_entries", "`Ledger_entries` is not a field of a bundle"),
        ("seal", "invalid type: sequence, expected a string"),
        ("entries", "`entries` stands twice"),
    ] {
        let changed = text.replacen("\"ledger_entries\"", &format!("\"{name}\""), 1);
        let found = Desk::new().refused(changed.as_bytes());
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn lesson_l03_no_entries_under_a_root_are_a_failure() {
    let mut parts = Session::of(4).parts();
    let root = fluffy_base::Digest::of(b"");
    parts.each_list(Vec::clear);
    parts.details = Some(Vec::new());
    parts.sign_all(&OURS, &root);
    let found = Desk::new().refused(&parts.bytes());
    assert_eq!(found, "the root hash is not that of the last entry\n");
    // Nothing, honestly signed as nothing, is what it says it is.
    parts.set("root_hash", &format!("\"{}\"", "0".repeat(64)));
    parts.sign_all(&OURS, &root);
    let check = Desk::new().check(&parts.bytes());
    assert!(is_signed(&check, &OURS), "{}", lines(&check.findings));
    assert_eq!(check.entries, 0);
}

#[test]
fn lesson_l04_relabelling_is_found() {
    let (desk, session) = (Desk::new(), Session::of(6));
    for (name, value) in [
        ("kernel_id", "\"kernel-of-somebody\""),
        ("variant", "\"permissive\""),
        ("exported_at_ms", "1700000009001"),
        ("version", "2"),
    ] {
        let mut parts = session.parts();
        parts.set(name, value);
        let found = desk.refused(&parts.bytes());
        assert!(found.contains("the bundle was changed after it was sealed\n"), "{name}: {found}");
    }
    let mut parts = session.parts();
    parts.each_list(|list| list[3] = list[3].replacen("\"ledger_seq\":3", "\"ledger_seq\":4", 1));
    parts.seal(&OURS);
    let found = desk.refused(&parts.bytes());
    assert!(found.starts_with("entry 3: `ledger_seq` is not its place in the list\n"), "{found}");
}
