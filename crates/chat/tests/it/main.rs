//! Conversations from what is said to what is replied, without anything being done.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod confirming;
mod conversations;
mod lessons;
mod modelled;
mod parsing;
mod properties;
mod scene;
