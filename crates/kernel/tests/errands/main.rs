//! Errands in real sandboxes: what they see, what they leave, what they cannot do.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests write what errands look at, and stop at the first surprise"
)]

mod leaving;
mod network;
mod scene;
mod seeing;
