//! The scheduler over real sandboxes: limits, pauses, memory, guests, and who gives up.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests let jobs go by a file, and stop at the first surprise"
)]

mod guests;
mod jobs;
mod memory;
mod scene;
