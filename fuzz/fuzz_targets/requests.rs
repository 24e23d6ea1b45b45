//! A line that `fluffy kernel submit` could read: `scripts/fuzz requests`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fluffy_testkit::fuzz::requests(bytes));
