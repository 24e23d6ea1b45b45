//! Plugins in real sandboxes, through a real kernel: honest ones, and those that are not.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "tests write what plugins look at, and stop at the first surprise"
)]

mod honest;
mod hostile;
mod installing;
mod scene;
