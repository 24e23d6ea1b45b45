//! Integration tests: the ledger with real files in temporary directories.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests tamper with files, start themselves as a child, and stop at the first surprise"
)]

mod append;
mod concurrent;
mod durable;
mod file_bytes;
mod fixture;
mod history;
mod opening;
mod rotation;
mod slow_kill;
mod tamper;
