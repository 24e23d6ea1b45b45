//! Skills built by builders of every kind, each in a real sandbox with the real program as its first process.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests write projects, play hostile builders, and stop at the first surprise"
)]

mod builders;
mod faults;
mod hostile;
mod ledger;
mod lessons;
mod scene;
mod shelf;
