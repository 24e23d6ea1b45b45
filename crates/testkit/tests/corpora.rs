//! What fuzzing found worth keeping, replayed.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

use std::path::Path;

/// Gives every file of a corpus to its target; says how many there were.
fn replayed(name: &str, target: fn(&[u8])) -> usize {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let files = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    files.map(|file| target(&std::fs::read(file).unwrap())).count()
}

#[test]
fn ipc_1_what_holds_of_frames_holds_of_every_kept_stream() {
    assert!(replayed("frames", fluffy_testkit::fuzz::frames) > 50);
}

#[test]
fn ker_1_what_holds_of_requests_holds_of_every_kept_line() {
    assert!(replayed("requests", fluffy_testkit::fuzz::requests) > 50);
}
