//! Proofs that travel alone.

use fluffy_base::Digest;
use fluffy_ledger::{ConsistencyProof, InclusionProof, LedgerError};

use crate::support::{OURS, Session, THEIRS, at_every_size, key};

const LARGEST: u64 = 100;

fn other(digest: &Digest) -> Digest {
    Digest::of(digest.as_bytes())
}

#[test]
fn every_entry_is_proved_at_every_size() {
    at_every_size(LARGEST, |size, session| {
        let (segment, key) = (&session.segment(), &key(&OURS));
        for seq in 0..size {
            let proof = segment.prove(seq, key).unwrap();
            let text = serde_json::to_string(&proof).unwrap();
            let read: InclusionProof = serde_json::from_str(&text).unwrap();
            assert_eq!(read, proof);
            assert_eq!(read.verify(key.verifying_key()).unwrap().size, size);
        }
        let error = segment.prove(size, key).unwrap_err();
        assert!(matches!(error, LedgerError::NoSuchEntry { wanted, .. } if wanted == size));
    });
}

#[test]
fn every_earlier_state_is_continued_at_every_size() {
    let mut roots = vec![Digest::of(b"")];
    at_every_size(LARGEST, |size, session| {
        let (segment, key) = (&session.segment(), &key(&OURS));
        roots.push(segment.prove_since(size - 1, key).unwrap().old_root);
        for old in 0..=size {
            let proof = segment.prove_since(old, key).unwrap();
            let text = serde_json::to_string(&proof).unwrap();
            let read: ConsistencyProof = serde_json::from_str(&text).unwrap();
            assert_eq!(read, proof);
            let checkpoint = read.verify(key.verifying_key()).unwrap();
            assert_eq!(checkpoint.size, size);
            if let Some(root) = roots.get(usize::try_from(old).unwrap()) {
                assert_eq!(read.old_root, *root, "{old} of {size}");
            }
        }
        assert!(segment.prove_since(size + 1, key).is_err());
    });
}

#[test]
fn an_inclusion_proof_with_any_field_changed_is_refused() {
    let mut earlier = None;
    at_every_size(LARGEST, |size, session| {
        let (segment, key) = (&session.segment(), &key(&OURS));
        let seq = size * 5 / 7;
        let proof = segment.prove(seq, key).unwrap();
        let mut changed = Vec::new();
        for wrong in [seq + 1, seq.wrapping_sub(1), size, u64::MAX] {
            changed.push(InclusionProof { seq: wrong, ..proof.clone() });
        }
        changed.push(InclusionProof { entry_hash: other(&proof.entry_hash), ..proof.clone() });
        changed.extend(
            bad_paths(&proof.proof)
                .into_iter()
                .map(|path| InclusionProof { proof: path, ..proof.clone() }),
        );
        changed.extend(
            bad_notes(&proof.checkpoint)
                .into_iter()
                .map(|checkpoint| InclusionProof { checkpoint, ..proof.clone() }),
        );
        let before = earlier.replace(proof.checkpoint.clone());
        changed.extend(before.map(|checkpoint| InclusionProof { checkpoint, ..proof.clone() }));
        for proof in changed {
            assert!(proof.verify(key.verifying_key()).is_err(), "{size}: {proof:?}");
        }
        assert!(proof.verify(crate::support::key(&THEIRS).verifying_key()).is_err());
    });
}

#[test]
fn a_consistency_proof_with_any_field_changed_is_refused() {
    at_every_size(LARGEST, |size, session| {
        let (segment, key) = (&session.segment(), &key(&OURS));
        let old_size = (size * 5 / 7).max(1);
        let proof = segment.prove_since(old_size, key).unwrap();
        let mut changed =
            vec![ConsistencyProof { old_root: other(&proof.old_root), ..proof.clone() }];
        for wrong in [old_size + 1, old_size - 1, size + 1, u64::MAX] {
            changed.push(ConsistencyProof { old_size: wrong, ..proof.clone() });
        }
        changed.extend(
            bad_paths(&proof.proof)
                .into_iter()
                .map(|path| ConsistencyProof { proof: path, ..proof.clone() }),
        );
        changed.extend(
            bad_notes(&proof.checkpoint)
                .into_iter()
                .map(|checkpoint| ConsistencyProof { checkpoint, ..proof.clone() }),
        );
        for proof in changed {
            assert!(proof.verify(key.verifying_key()).is_err(), "{size}: {proof:?}");
        }
        assert!(proof.verify(crate::support::key(&THEIRS).verifying_key()).is_err());
    });
}

fn bad_paths(path: &[Digest]) -> Vec<Vec<Digest>> {
    let mut bad = vec![[path, &[Digest::GENESIS]].concat(), [&[Digest::GENESIS], path].concat()];
    for at in 0..path.len() {
        let mut changed = path.to_vec();
        changed[at] = other(&changed[at]);
        bad.push(changed);
        bad.push([&path[..at], &path[at + 1..]].concat());
    }
    for at in 1..path.len() {
        let mut changed = path.to_vec();
        changed.swap(at - 1, at);
        bad.push(changed);
    }
    bad
}

fn bad_notes(note: &str) -> Vec<String> {
    let (size, rest) = note.split_once('\n').unwrap();
    vec![
        String::new(),
        note.to_uppercase(),
        format!("{note}\n"),
        format!("x{note}"),
        format!("{size}\n1{rest}"),
        note.trim_end().to_owned(),
    ]
}

#[test]
fn a_proof_has_no_other_fields_and_no_other_spelling() {
    let session = Session::of(9);
    let segment = session.segment();
    let text = serde_json::to_string(&segment.prove(3, &key(&OURS)).unwrap()).unwrap();
    for (from, to) in [
        ("{\"seq\"", "{\"x\":1,\"seq\""),
        ("\"seq\":3", "\"seq\":-3"),
        ("\"seq\":3", "\"seq\":3,\"seq\":3"),
    ] {
        assert!(text.contains(from));
        assert!(
            serde_json::from_str::<InclusionProof>(&text.replacen(from, to, 1)).is_err(),
            "{to}"
        );
    }
    let upper = text.replacen("\"entry_hash\":\"", "\"entry_hash\":\"A", 1);
    assert!(serde_json::from_str::<InclusionProof>(&upper).is_err());
}
