//! The crate as others use it, on recorded output of real runners.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod budget;
mod coverage;
mod detection;
mod fixtures;
mod properties;
mod results;
