//! What is signed, and that no part of a signature can be taken away or made by somebody else.

use fluffy_base::Digest;
use fluffy_ledger::{Problem, Signer};

use crate::support::{Desk, OURS, Parts, Session, THEIRS, is_signed, json, key, lines, signed};

/// Hash of an entry by the formula's own fields: the last one of a list.
fn last_hash(lines: &[String]) -> String {
    let entry: serde_json::Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    entry["entry_hash"].as_str().unwrap().to_owned()
}

/// The bundle without its last `count` entries, made consistent in all that needs no key.
fn cut(session: &Session, count: usize) -> Parts {
    let mut parts = session.parts();
    let left = parts.chained.len() - count;
    parts.each_list(|list| list.truncate(left));
    parts.details.as_mut().unwrap().truncate(left);
    let root = last_hash(&parts.chained);
    parts.set("root_hash", &json(&root));
    parts
}

#[test]
fn lesson_l04_a_cut_tail_is_found_by_the_checkpoint() {
    let session = Session::of(12);
    for count in 1..11 {
        let mut parts = cut(&session, count);
        parts.seal(&OURS);
        let check = Desk::new().check(&parts.bytes());
        let found = 12 - count as u64;
        assert_eq!(check.findings.len(), 1, "{}", lines(&check.findings));
        assert_eq!(check.findings[0].seq, Some(found));
        assert_eq!(check.findings[0].problem, Problem::Truncated { found, promised: 12 });
        assert_eq!(check.signer, Signer::Nobody);
    }
}

#[test]
fn entries_beyond_the_signed_size_are_found() {
    let session = Session::of(6);
    let checkpoint = session.parts().head.pop().unwrap().1;
    let ledger = session.open();
    (0..3).for_each(|_| session.step(&ledger));
    drop(ledger);
    let mut parts = session.parts();
    parts.set("checkpoint", &checkpoint);
    parts.seal(&OURS);
    let found = Desk::new().refused(&parts.bytes());
    assert_eq!(found, "entry 6: the ledger has 9 entries, but had 6 when it was last signed\n");
}

#[test]
fn a_rewritten_chain_is_found_by_the_checkpoint() {
    let mut parts = Session::of(6).parts();
    parts.sign_all(&OURS, &Digest::of(b"another tree"));
    let found = Desk::new().refused(&parts.bytes());
    assert_eq!(found, "the first 6 entries are not those that were signed\n");
}

#[test]
fn no_part_of_the_signature_can_be_stripped_unnoticed() {
    let (desk, session) = (Desk::new(), Session::of(5));
    let names = ["seal", "checkpoint", "public_key", "version", "details"];
    for chosen in 1_u32..32 {
        let mut parts = session.parts();
        let stripped = (0..5).filter(|bit| chosen >> bit & 1 == 1);
        stripped.for_each(|bit| parts.strip(names[bit]));
        let check = desk.check(&parts.bytes());
        assert_eq!(check.signer, Signer::Nobody, "{chosen:05b}");
        // Only without any trace of a signature does it pass, for what it then is: unsigned.
        assert_eq!(check.findings.is_empty(), chosen == 31, "{chosen:05b}");
        let check = desk.check_pinned(&parts.bytes(), key(&OURS).verifying_key());
        assert!(!check.findings.is_empty(), "{chosen:05b}");
        // The owner of the key does not vouch for half a bundle either.
        if chosen & 1 == 0 {
            parts.seal(&OURS);
            assert!(!desk.check(&parts.bytes()).findings.is_empty(), "{chosen:05b}");
        }
    }
}

#[test]
fn details_without_a_seal_are_refused_even_if_there_are_none() {
    let (desk, session) = (Desk::new(), Session::of(4));
    let mut parts = session.parts();
    for name in ["seal", "checkpoint", "public_key", "version"] {
        parts.strip(name);
    }
    let found = desk.refused(&parts.bytes());
    assert!(found.contains("the bundle is not signed, or has lost its signature\n"), "{found}");
    parts.details = Some(Vec::new());
    desk.refused(&parts.bytes());
}

#[test]
fn a_bundle_sealed_by_another_key_fails_under_the_pin_and_says_so() {
    let desk = Desk::new();
    let session = Session::of(5);
    let root = root_of(&session);
    let mut parts = session.parts();
    parts.sign_all(&THEIRS, &root);
    // Consistent in itself: who does not know the key cannot tell.
    assert!(is_signed(&desk.check(&parts.bytes()), &THEIRS));
    let check = desk.check_pinned(&parts.bytes(), key(&OURS).verifying_key());
    let (ours, theirs) = (key(&OURS), key(&THEIRS));
    let expected = format!(
        "the bundle is signed by `{}`, not by `{}`\n",
        theirs.verifying_key(),
        ours.verifying_key()
    );
    assert_eq!(lines(&check.findings), expected);
    assert_eq!(check.signer, Signer::Key(Box::new(theirs.verifying_key().clone())));
}

fn root_of(session: &Session) -> Digest {
    let proof = session.segment().prove_since(session.segment().size(), &key(&OURS)).unwrap();
    proof.old_root
}

#[test]
fn a_seal_or_a_checkpoint_by_another_key_than_the_named_one_is_refused() {
    let (desk, session) = (Desk::new(), Session::of(5));
    let mut parts = session.parts();
    parts.seal(&THEIRS);
    assert!(
        desk.refused(&parts.bytes()).contains("the seal does not hold: the note is not signed by")
    );
    let mut parts = session.parts();
    parts.sign_all(&THEIRS, &root_of(&session));
    parts.set("public_key", &json(&key(&OURS).verifying_key().to_string()));
    parts.seal(&OURS);
    assert!(desk.refused(&parts.bytes()).contains("the checkpoint does not hold: "));
    for text in [
        "",
        "fluffy-ledger",
        "a+b+c",
        "fluffy-ledger+00000000+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4",
    ] {
        let mut parts = session.parts();
        parts.set("public_key", &json(text));
        parts.seal(&OURS);
        assert!(desk.refused(&parts.bytes()).contains("the bundle's public key is not a key: "));
    }
}

#[test]
fn a_note_of_another_kind_is_no_seal() {
    let session = Session::of(4);
    let mut parts = session.parts();
    parts.seal = Some(parts.head.last().unwrap().1.clone());
    let found = Desk::new().refused(&parts.bytes());
    assert_eq!(found, "the bundle was changed after it was sealed\n");
}

#[test]
fn nothing_can_be_written_into_the_seal() {
    let (desk, session) = (Desk::new(), Session::of(4));
    let seal = session.parts().seal.unwrap();
    let stranger = signed("x\n", &THEIRS);
    let line = stranger.split("\\n\\n").nth(1).unwrap().trim_end_matches('"');
    let cosigned = format!("{}{line}\"", seal.trim_end_matches('"'));
    let escaped = seal.replacen('f', "\\u0066", 1);
    let spaced = format!(" {seal}");
    for (seal, expected) in [
        (cosigned, "the seal has more than one signature\n"),
        (escaped, "the seal does not end the bundle\n"),
        (spaced, "the seal does not end the bundle\n"),
    ] {
        let mut parts = session.parts();
        parts.seal = Some(seal);
        assert_eq!(desk.refused(&parts.bytes()), expected);
    }
}

#[test]
fn a_seal_in_the_middle_is_not_a_seal() {
    let text = String::from_utf8(Session::of(4).bundle()).unwrap();
    let (rest, seal) = text.rsplit_once(",\"seal\":").unwrap();
    let seal = seal.strip_suffix("}\n").unwrap();
    let moved = format!("{{\"seal\":{seal},{}}}\n", rest.strip_prefix('{').unwrap());
    assert_eq!(Desk::new().refused(moved.as_bytes()), "the seal does not end the bundle\n");
}
