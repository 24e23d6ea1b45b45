//! Evidence in memory.

use fluffy_base::{Decision, Digest, KernelId, KernelState};
use fluffy_ledger::{AuditEntry, EvidenceBundle, Problem};

use crate::support::{OURS, Session, THEIRS, at_every_size, key, lines};

fn evidence(size: u64) -> EvidenceBundle {
    EvidenceBundle::collect(&Session::of(size).segment(), &key(&OURS), 17).unwrap()
}

#[test]
fn collected_evidence_verifies() {
    at_every_size(70, |size, session| {
        let bundle = EvidenceBundle::collect(&session.segment(), &key(&OURS), 17).unwrap();
        assert_eq!(lines(&bundle.verify()), "", "{size}");
        assert_eq!(bundle.entries.len() as u64, size);
        assert_eq!(bundle.exported_at_ms, 17);
    });
}

type Change<T> = fn(&mut T);

const CHANGES: [(&str, Change<AuditEntry>); 14] = [
    ("seq", |entry| entry.seq = u64::MAX),
    ("prev_hash", |entry| entry.prev_hash = Digest::of(b"x")),
    ("entry_hash", |entry| entry.entry_hash = Digest::of(b"x")),
    ("ts_ms", |entry| entry.ts_ms += 1),
    ("request_id", |entry| entry.request_id.push('x')),
    ("actor", |entry| entry.actor = "forged".to_owned()),
    ("intent", |entry| entry.intent.clear()),
    ("decision", |entry| entry.decision = Decision::Halt),
    ("state_from", |entry| entry.state_from = KernelState::Executing),
    ("state_to", |entry| entry.state_to = KernelState::Halted),
    ("tool_name", |entry| entry.tool_name = Some("shell.run".to_owned())),
    ("params_hash", |entry| entry.params_hash = Some(Digest::of(b"x"))),
    ("evidence_hash", |entry| entry.evidence_hash = None),
    ("error", |entry| entry.error = Some(String::new())),
];

#[test]
fn every_changed_field_of_an_entry_is_found_there() {
    let whole = evidence(40);
    for at in 0..40 {
        for (name, change) in CHANGES {
            let mut bundle = whole.clone();
            change(&mut bundle.entries[at]);
            let found = bundle.verify();
            assert_eq!(found[0].seq, Some(at as u64), "{name}: {}", lines(&found));
        }
        let mut bundle = whole.clone();
        bundle.details[at].push(b' ');
        assert_eq!(
            lines(&bundle.verify()),
            format!("entry {at}: the entry's detail was changed\n")
        );
    }
}

#[test]
fn every_changed_field_of_the_bundle_is_found() {
    let whole = evidence(20);
    let changes: [(&str, Change<EvidenceBundle>); 11] = [
        ("root_hash", |bundle| bundle.root_hash = Digest::GENESIS),
        ("exported_at_ms", |bundle| bundle.exported_at_ms += 1),
        ("kernel_id", |bundle| bundle.kernel_id = KernelId::named("x").unwrap()),
        ("checkpoint", |bundle| bundle.checkpoint = bundle.checkpoint.replacen("20", "21", 1)),
        ("no checkpoint", |bundle| bundle.checkpoint.clear()),
        ("public_key", |bundle| bundle.public_key = key(&THEIRS).verifying_key().clone()),
        ("seal", |bundle| bundle.seal = bundle.checkpoint.clone()),
        ("no seal", |bundle| bundle.seal.clear()),
        ("more details", |bundle| bundle.details.push(Vec::new())),
        ("fewer details", |bundle| drop(bundle.details.pop())),
        ("swapped", |bundle| bundle.entries.swap(3, 9)),
    ];
    for (name, change) in changes {
        let mut bundle = whole.clone();
        change(&mut bundle);
        assert!(!bundle.verify().is_empty(), "{name}");
    }
}

#[test]
fn a_cut_tail_is_found_by_the_checkpoint() {
    let mut bundle = evidence(20);
    bundle.entries.truncate(15);
    bundle.details.truncate(15);
    bundle.root_hash = bundle.entries[14].entry_hash;
    let found = bundle.verify();
    let cut = Problem::Truncated { found: 15, promised: 20 };
    assert!(found.iter().any(|found| found.seq == Some(15) && found.problem == cut));
}

#[test]
fn evidence_of_nothing_is_found_wanting() {
    let mut bundle = evidence(4);
    bundle.entries.clear();
    bundle.details.clear();
    assert!(lines(&bundle.verify()).starts_with("the root hash is not that of the last entry\n"));
    bundle.root_hash = Digest::GENESIS;
    assert!(!bundle.verify().is_empty());
}

#[test]
fn a_hundred_findings_are_enough() {
    let mut bundle = evidence(300);
    bundle.details.iter_mut().for_each(Vec::clear);
    assert_eq!(bundle.verify().len(), 100);
}
