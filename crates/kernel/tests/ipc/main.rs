//! Kernel and clients over real sockets: good clients, and those that do everything wrong.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]

mod crowd;
mod flood;
mod frames;
mod lab;
mod others;
mod place;
mod talking;
