//! Runs of skills in real sandboxes, through a real kernel: honest ones, and hostile ones.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "tests write what skills look at, and stop at the first surprise"
)]

mod honest;
mod hostile;
mod lessons;
mod network;
mod scene;
mod tools;
