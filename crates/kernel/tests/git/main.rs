//! Git as a session has it: real repositories, the real git, real sandboxes.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests write projects, run git on them, and stop at the first surprise"
)]

mod committing;
mod hooks;
mod hostile;
mod kinds;
mod reading;
mod scene;
