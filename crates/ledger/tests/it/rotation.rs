//! Replacing the signing key, whole and interrupted.

use std::fs;
use std::path::PathBuf;

use fluffy_ledger::{
    Appended, DetailView, EventType, Ledger, LedgerConfig, LedgerError, Problem, RotationError,
    SigningKey, VerifyingKey, load_or_create_key, rotate, verify_protocol, verify_rotation,
    verify_segments,
};

use crate::fixture::{Place, event, numbered, records, start};

const OLD: [u8; 32] = [7; 32];
const NEW: [u8; 32] = [8; 32];

fn key_file(place: &Place) -> PathBuf {
    place.project.state().join("keys").join("ledger")
}

/// Opens the ledger with the key that is in the file.
fn open(place: &Place, session: u64) -> Ledger {
    let key = load_or_create_key(&key_file(place), OLD).unwrap();
    let ledger = Ledger::open(LedgerConfig { key, ..place.config(session) }).unwrap();
    start(&ledger);
    ledger
}

fn in_file(place: &Place) -> VerifyingKey {
    SigningKey::load(&key_file(place)).unwrap().unwrap().verifying_key().clone()
}

fn public(seed: [u8; 32]) -> VerifyingKey {
    SigningKey::from_seed(fluffy_ledger::KeyName::LEDGER, &seed).verifying_key().clone()
}

fn rotate_to(place: &Place, ledger: &Ledger, seed: [u8; 32]) -> Result<Appended, LedgerError> {
    ledger.rotate_key(&key_file(place), seed, event(ledger, 9_000, EventType::KeyRotation))
}

#[track_caller]
fn is_intact(place: &Place, key: &VerifyingKey) {
    let checks = verify_segments(&place.layout(), Some(key)).unwrap();
    let findings: Vec<_> = checks.iter().flat_map(|check| check.findings()).collect();
    assert!(findings.is_empty(), "{findings:?}");
}

fn rotations(place: &Place) -> Vec<String> {
    let all = records(&place.db());
    let details = all.iter().map(|record| DetailView::parse(&record.detail).unwrap());
    let rotations = details.filter(|detail| detail.event == "key_rotation");
    rotations.map(|detail| detail.metadata["rotation"].clone().into_owned()).collect()
}

#[test]
fn a_rotation_is_an_entry_that_both_keys_signed() {
    let place = Place::new();
    let ledger = open(&place, 1);
    let appended = rotate_to(&place, &ledger, NEW).unwrap();
    assert!(ledger.synced() > appended.seq);
    let statement = rotations(&place).pop().unwrap();
    assert_eq!(verify_rotation(&statement, &public(OLD)), Ok(public(NEW)));
    assert_eq!(in_file(&place), public(NEW));
    is_intact(&place, &public(NEW));
    ledger.append(numbered(&ledger, 5)).unwrap();
    drop(ledger);

    let reopened = open(&place, 2);
    assert_eq!(reopened.report().broken, None);
    drop(reopened);
    is_intact(&place, &public(NEW));
    let checks = verify_segments(&place.layout(), Some(&public(OLD))).unwrap();
    let memory = checks[0].memory.as_ref().unwrap();
    assert!(matches!(memory.problem, Problem::CheckpointForged(_)), "the old key is superseded");
}

#[test]
fn keys_can_be_rotated_again_and_again() {
    let place = Place::new();
    for n in 0..4 {
        let ledger = open(&place, u64::from(n));
        rotate_to(&place, &ledger, [100 + n; 32]).unwrap();
        rotate_to(&place, &ledger, [200 + n; 32]).unwrap();
    }
    assert_eq!(rotations(&place).len(), 8);
    assert_eq!(in_file(&place), public([203; 32]));
    is_intact(&place, &public([203; 32]));
}

#[test]
fn a_key_does_not_replace_itself_nor_one_that_is_not_in_the_file() {
    let place = Place::new();
    let ledger = open(&place, 1);
    let before = ledger.size();
    let same = rotate_to(&place, &ledger, OLD);
    assert!(matches!(same, Err(LedgerError::Rotation(RotationError::SameId))), "{same:?}");
    let record = event(&ledger, 9_000, EventType::KeyRotation);
    let elsewhere = place.project.state().join("other");
    let other = ledger.rotate_key(&elsewhere, NEW, record);
    assert!(matches!(other, Err(LedgerError::Rotation(RotationError::OtherOldKey))), "{other:?}");
    assert_eq!((ledger.size(), in_file(&place)), (before, public(OLD)));
    rotate_to(&place, &ledger, NEW).unwrap();
}

#[test]
fn a_rotation_that_fails_before_the_key_changed_never_happened() {
    let place = Place::new();
    let ledger = open(&place, 1);
    // The new key cannot be put down: its name is taken by a directory.
    let blocked = key_file(&place).with_file_name("ledger.new");
    fs::create_dir(&blocked).unwrap();
    assert!(matches!(rotate_to(&place, &ledger, NEW), Err(LedgerError::File { .. })));
    assert_eq!(in_file(&place), public(OLD));
    ledger.append(numbered(&ledger, 5)).unwrap();
    drop(ledger);
    is_intact(&place, &public(OLD));
    assert!(rotations(&place).is_empty());
    fs::remove_dir(blocked).unwrap();
    rotate_to(&place, &open(&place, 2), NEW).unwrap();
    is_intact(&place, &public(NEW));
}

/// A ledger as an interrupted rotation leaves it: with the statement, a checkpoint of both keys, and
/// this key in the file.
fn interrupted(seed: [u8; 32]) -> Place {
    let place = Place::new();
    drop(open(&place, 1));
    let key = |seed| SigningKey::from_seed(fluffy_ledger::KeyName::LEDGER, &seed);
    let statement = rotate(&key(OLD), &key(NEW)).unwrap();
    fs::write(place.layout().dir().join("rotation"), statement).unwrap();
    let note = fs::read_to_string(place.layout().remembered()).unwrap();
    let segment = fluffy_ledger::Segment::active(&place.layout()).unwrap().unwrap();
    let by_new = segment.checkpoint(&key(NEW)).unwrap();
    let both = format!("{note}{}\n", by_new.lines().last().unwrap());
    fs::write(place.layout().remembered(), both).unwrap();
    fs::remove_file(key_file(&place)).unwrap();
    SigningKey::create(&key_file(&place), seed).unwrap();
    place
}

#[test]
fn a_rotation_interrupted_before_the_key_changed_is_forgotten() {
    let place = interrupted(OLD);
    let ledger = open(&place, 2);
    assert_eq!(ledger.report().broken, None);
    drop(ledger);
    assert!(rotations(&place).is_empty());
    assert!(!place.layout().dir().join("rotation").exists());
    is_intact(&place, &public(OLD));
}

#[test]
fn a_rotation_interrupted_after_the_key_changed_is_finished() {
    let place = interrupted(NEW);
    let ledger = open(&place, 2);
    assert_eq!(ledger.report().broken, None);
    drop(ledger);
    assert_eq!(rotations(&place).len(), 1);
    assert!(!place.layout().dir().join("rotation").exists());
    is_intact(&place, &public(NEW));
}

#[test]
fn a_rotation_interrupted_after_its_entry_is_not_entered_twice() {
    let place = interrupted(NEW);
    let statement = fs::read_to_string(place.layout().dir().join("rotation")).unwrap();
    drop(open(&place, 2));
    fs::write(place.layout().dir().join("rotation"), statement).unwrap();
    drop(open(&place, 3));
    assert_eq!(rotations(&place).len(), 1);
    is_intact(&place, &public(NEW));
}

#[test]
fn a_statement_that_is_none_is_taken_away() {
    for text in ["", "garbage\n", "fluffy-key-rotation-v1\nx\ny\n"] {
        let place = Place::new();
        drop(open(&place, 1));
        fs::write(place.layout().dir().join("rotation"), text).unwrap();
        drop(open(&place, 2));
        assert!(rotations(&place).is_empty());
        assert!(!place.layout().dir().join("rotation").exists());
        is_intact(&place, &public(OLD));
    }
}

#[test]
fn an_entry_that_only_claims_a_rotation_is_found() {
    let place = Place::new();
    let ledger = open(&place, 1);
    let mut record = event(&ledger, 9_000, EventType::KeyRotation);
    record.detail.metadata.insert("rotation", "believe me".to_owned());
    let seq = ledger.append(record).unwrap().seq;
    let findings = verify_protocol(ledger.path()).unwrap().findings;
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].seq, Some(seq));
}
