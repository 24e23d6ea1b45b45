//! Real programs do real work in a sandbox, under every profile: a sandbox that is too tight is switched off.
//!
//! Each test writes a small project of its own and works on it as a person would. They need the programs
//! that `scripts/test` looks for.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests write projects, ask where programs are, and stop at the first surprise"
)]

mod c;
mod files;
mod git;
mod node;
mod profiles;
mod python;
mod rust;
mod scene;
mod shell;
