//! Bytes that a peer could send: `scripts/fuzz frames`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fluffy_testkit::fuzz::frames(bytes));
