//! The loop as others use it: a scripted bench and a scripted provider.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod abort;
mod broken_models;
mod caps;
mod context;
mod first_request;
mod looping;
mod retrying;
mod scripted;
