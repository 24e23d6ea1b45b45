//! The two gates that read Python, on corpora of hostile and honest files and on whatever bytes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod corpus;
mod lessons;
mod properties;
mod reading;
mod rules;
mod skill;
mod structure;
