//! The kernel as a user of the library sees it: real ledgers in temporary directories, a clock that
//! moves when read, ids that repeat.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::panic, reason = "a test fails by panicking")]

mod bad_input;
mod effects;
mod extending;
mod failing_ledger;
mod grants;
mod halting;
mod invariants;
mod jurisdiction;
mod lab;
mod lessons;
mod notes;
mod policy_update;
mod privacy;
mod recorded;
mod retried;
mod reviews;
mod sessions;
mod threads;
mod variants;
