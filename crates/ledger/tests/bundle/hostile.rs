//! Files that were made to harm the verifier.

use fluffy_ledger::{Signer, verify_bundle};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Desk, Dice, OURS, Parts, Session, is_signed, lines};

fn parts() -> Parts {
    Session::of(4).parts()
}

#[test]
fn deep_nesting_is_refused() {
    let desk = Desk::new();
    for depth in [200, 10_000, 1_000_000] {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        let deep = format!("{open}{close}");
        desk.refused(deep.as_bytes());
        desk.refused(open.as_bytes());
        desk.refused("{\"a\":".repeat(depth).as_bytes());
        for field in ["kernel_id", "exported_at_ms", "version"] {
            let mut changed = parts();
            changed.set(field, &deep);
            desk.refused(&changed.bytes());
        }
        let mut changed = parts();
        changed.chained[2] = changed.chained[2].replacen(
            "\"permit_nonce\":null",
            &format!("\"permit_nonce\":{deep}"),
            1,
        );
        changed.seal(&OURS);
        let found = desk.refused(&changed.bytes());
        assert!(found.starts_with("entry 2: "), "{found}");
        let mut changed = parts();
        changed.details.as_mut().unwrap()[1] = format!("\"a\":{deep}");
        changed.seal(&OURS);
        let found = desk.refused(&changed.bytes());
        assert!(found.contains("entry 1: the bundle cannot be read: "), "{found}");
    }
}

#[test]
fn no_key_stands_twice_anywhere() {
    let desk = Desk::new();
    for name in ["version", "root_hash", "kernel_id", "variant", "public_key", "checkpoint"] {
        let mut changed = parts();
        let field = changed.head.iter().find(|(known, _)| known == name).cloned().unwrap();
        changed.head.push(field);
        changed.seal(&OURS);
        let found = desk.refused(&changed.bytes());
        assert!(found.contains(&format!("`{name}` stands twice")), "{found}");
    }
    for (from, to) in [
        ("{\"ledger_seq\":1,", "{\"ledger_seq\":1,\"ledger_seq\":1,"),
        ("\"permit_nonce\":null", "\"permit_nonce\":{\"a\":[{\"b\":1,\"b\":2}]}"),
    ] {
        let mut changed = parts();
        changed.each_list(|list| list[1] = list[1].replacen(from, to, 1));
        changed.seal(&OURS);
        let found = desk.refused(&changed.bytes());
        assert!(found.contains("entry 1: ") && found.contains("stands twice"), "{found}");
    }
    let text = String::from_utf8(parts().bytes()).unwrap();
    let doubled = text.replacen(",\"details\":{", ",\"details\":{},\"details\":{", 1);
    assert!(desk.refused(doubled.as_bytes()).contains("`details` stands twice"));
}

#[test]
fn numbers_that_are_no_integers_are_refused_at_their_entry() {
    let desk = Desk::new();
    for number in [
        "1e3",
        "1.0",
        "1e400",
        "-0",
        "18446744073709551616",
        "0x10",
        "01",
        "NaN",
        "1E2",
        &"9".repeat(5000),
    ] {
        let mut changed = parts();
        let stamp = "\"ts_ms\":1700000000102";
        changed.each_list(|list| {
            assert!(list[2].contains(stamp));
            list[2] = list[2].replacen(stamp, &format!("\"ts_ms\":{number}"), 1);
        });
        changed.seal(&OURS);
        let found = desk.refused(&changed.bytes());
        assert!(found.contains("entry 2: "), "{number}: {found}");
    }
}

#[test]
fn an_entry_has_exactly_its_fields() {
    let (desk, whole) = (Desk::new(), parts());
    let entry: Value = serde_json::from_str(&whole.chained[1]).unwrap();
    let names: Vec<_> = entry.as_object().unwrap().keys().cloned().collect();
    assert_eq!(names.len(), 22);
    for name in &names {
        let mut entry = entry.clone();
        entry.as_object_mut().unwrap().remove(name);
        let found = with_entry(&desk, &whole, &entry);
        assert!(found.starts_with("entry 1: "), "{name}: {found}");
        // A stranger in its place does not make up for it.
        entry["note"] = Value::Null;
        let found = with_entry(&desk, &whole, &entry);
        assert!(found.starts_with("entry 1: "), "{name}: {found}");
    }
    let mut entry = entry;
    entry["note"] = Value::Null;
    let found = with_entry(&desk, &whole, &entry);
    assert!(found.starts_with("entry 1: field `note` is under no hash\n"), "{found}");
}

fn with_entry(desk: &Desk, whole: &Parts, entry: &Value) -> String {
    let mut changed = whole.clone();
    changed.each_list(|list| list[1] = entry.to_string());
    changed.seal(&OURS);
    desk.refused(&changed.bytes())
}

#[test]
fn entries_that_are_no_objects_are_found_at_their_place() {
    let (desk, whole) = (Desk::new(), parts());
    for entry in
        [json!(null), json!(7), json!("x"), json!([]), json!({}), json!([[{}]]), json!(true)]
    {
        let found = with_entry(&desk, &whole, &entry);
        assert!(found.starts_with("entry 1: "), "{entry}: {found}");
    }
}

#[test]
fn what_is_no_utf8_is_refused_wherever_it_stands() {
    let (desk, bundle) = (Desk::new(), parts().bytes());
    let text = String::from_utf8(bundle.clone()).unwrap();
    for place in ["kernel-of-tests", "SYSTEM", "alice", "\\\"event\\\"", "— fluffy"] {
        for (at, _) in text.match_indices(place) {
            for bad in [&b"\xff"[..], b"\xc3", b"\xed\xa0\x80", b"\xf5\x80\x80\x80"] {
                let changed = [&bundle[..at], bad, &bundle[at..]].concat();
                let found = desk.refused(&changed);
                assert!(found.contains("the bundle cannot be read: "), "{at} {bad:?}: {found}");
            }
        }
    }
}

#[test]
fn half_a_surrogate_pair_is_no_text() {
    let mut changed = parts();
    changed.each_list(|list| list[1] = list[1].replacen("SYSTEM", "\\ud83d", 1));
    changed.seal(&OURS);
    let found = Desk::new().refused(&changed.bytes());
    assert!(found.contains("entry 1: the bundle cannot be read: "), "{found}");
}

#[test]
fn a_hundred_findings_are_enough() {
    let session = Session::of(400);
    let mut parts = session.parts();
    parts.each_list(|list| list.iter_mut().for_each(|line| *line = line.replace("ALLOW", "HALT")));
    let check = Desk::new().check(&parts.bytes());
    assert_eq!((check.findings.len(), check.signer), (100, Signer::Nobody));
    assert!(!lines(&check.findings).contains("cannot be read"), "stopping early is no damage");
}

/// Each of these leaves a reader with something to say that nobody wants to hear, or the judge with
/// something to hear that nobody says. That they end at all is what is tested.
#[test]
fn slow_no_reader_waits_for_one_that_is_done() {
    let desk = Desk::new();
    let session = Session::of(1500);
    let whole = session.parts();
    assert!(is_signed(&desk.check(&whole.bytes()), &OURS));
    let details = whole.details.clone().unwrap();
    let many: Vec<_> = (0..6000).map(|n| format!("\"{n:064x}\":\"{}\"", "x".repeat(200))).collect();
    let with = |chained: &[String], details: Vec<String>| {
        let mut parts = whole.clone();
        parts.chained = chained.to_vec();
        parts.details = Some(details);
        desk.refused(&parts.bytes())
    };
    let reversed = details.iter().rev().cloned().collect();
    assert!(with(&whole.chained, reversed).contains("entry 0: the detail at its place"));
    assert!(with(&whole.chained, Vec::new()).contains("entry 0: its detail is missing"));
    assert!(
        with(&whole.chained, details[..700].to_vec()).contains("entry 700: its detail is missing")
    );
    assert!(with(&[], many.clone()).contains("there are details that no entry names"));
    assert!(
        with(&whole.chained, [details.clone(), many.clone()].concat()).contains("no entry names")
    );
    assert!(with(&whole.chained, many).contains("entry 0: the detail at its place"));
    let mut broken = details.clone();
    broken[1000] = "\"x\" \"y\"".to_owned();
    assert!(with(&whole.chained, broken).contains("entry 1000: the bundle cannot be read: "));
    let mut broken = whole.chained.clone();
    broken[900] = "{\"x\" 7}".to_owned();
    assert!(with(&broken, details.clone()).contains("entry 900: the bundle cannot be read: "));
    let mut broken = whole.chained.clone();
    broken.iter_mut().for_each(|line| *line = "0".to_owned());
    assert!(with(&broken, details).starts_with("entry 0: "));
}

#[test]
fn slow_details_before_entries_and_lists_in_any_order_are_read() {
    let desk = Desk::new();
    let text = String::from_utf8(Session::of(900).bundle()).unwrap();
    let whole: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
    let (_, rest) = text.split_once(",\"details\":").unwrap();
    let details = rest.split_once("\n},\"seal\"").unwrap().0;
    let entries = whole["ledger_entries"].to_string();
    let head = "\"kernel_id\":\"a\",\"variant\":\"b\",\"exported_at_ms\":1";
    let root = &whole["root_hash"];
    // None is signed, so all are refused for that, and for nothing else.
    let signature = "the bundle is not of version 1\nthe bundle is not signed, or has lost its signature\nthe bundle has lost its details\n";
    for order in [
        format!(
            "{{\"details\":{details}\n}},\"ledger_entries\":{entries},\"entries\":{entries},\"root_hash\":{root},{head}}}"
        ),
        format!(
            "{{\"entries\":{entries},{head},\"details\":{details}\n}},\"root_hash\":{root},\"ledger_entries\":{entries}}}"
        ),
        format!(
            "{{{head},\"entries\":{entries},\"ledger_entries\":{entries},\"details\":{details}\n}},\"root_hash\":{root}}}"
        ),
    ] {
        let found = desk.refused(order.as_bytes());
        assert!(signature.starts_with(&found), "{found}");
    }
}

#[test]
fn slow_a_huge_piece_is_refused_and_a_large_one_is_not() {
    let desk = Desk::new();
    for (bytes, readable) in [(1 << 20, true), (17 << 20, false)] {
        let long = "x".repeat(bytes);
        for (name, place) in [("kernel_id", ""), ("chained", "entry 1: "), ("details", "entry 1: ")]
        {
            let mut changed = parts();
            match name {
                "kernel_id" => changed.set(name, &format!("\"{long}\"")),
                "chained" => changed.chained[1] = format!("\"{long}\""),
                _ => changed.details.as_mut().unwrap()[1] = format!("\"x\":\"{long}\""),
            }
            let found = desk.refused(&changed.bytes());
            let expected =
                format!("{place}the bundle cannot be read: a piece of it is longer than 16 MiB");
            assert_eq!(found.contains(&expected), !readable, "{name}: {found}");
        }
    }
}

/// Some other JSON value in the place of a random one.
fn mutate(value: &mut Value, dice: &Dice) {
    match value {
        Value::Object(members) if !members.is_empty() && dice.below(8) > 0 => {
            let at = dice.below(members.len());
            mutate(members.values_mut().nth(at).unwrap(), dice);
        }
        Value::Array(items) if !items.is_empty() && dice.below(8) > 0 => {
            let at = dice.below(items.len());
            mutate(&mut items[at], dice);
        }
        other => {
            let values = [
                json!(null),
                json!(true),
                json!(-1),
                json!(0),
                json!(u64::MAX),
                json!(1.5),
                json!(""),
                json!("é\u{0}"),
                json!([]),
                json!({}),
                json!([null]),
                json!({"a": {"b": []}}),
                json!("0".repeat(64)),
                json!(i64::MIN),
            ];
            *other = values[dice.below(values.len())].clone();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn wrong_types_are_findings_and_never_a_panic(seed in any::<u64>(), count in 1..4) {
        thread_local! {
            static WHOLE: Value = serde_json::from_slice(&Session::of(5).bundle()).unwrap();
            static DESK: Desk = Desk::new();
        }
        let (dice, whole) = (Dice::new(seed), WHOLE.with(Clone::clone));
        let mut changed = whole.clone();
        (0..count).for_each(|_| mutate(&mut changed, &dice));
        if changed != whole {
            let check = DESK.with(|desk| verify_bundle(desk.put(changed.to_string().as_bytes()), None));
            prop_assert!(!check.unwrap().findings.is_empty());
        }
    }

    #[test]
    fn any_bytes_are_judged_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(!Desk::new().check(&bytes).findings.is_empty());
    }
}
