//! Files edited, commands and tests run, each in a real sandbox with the real program as its guest.
//!
//! They need the programs that `scripts/test` looks for.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests write projects, ask where programs are, and stop at the first surprise"
)]

mod commands;
mod edits;
mod hostile_tests;
mod more_suites;
mod scene;
mod slow_go;
mod slow_javascript;
mod slow_jvm;
mod suites;
