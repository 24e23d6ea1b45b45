//! Integration tests: volumes with real files, real overlays in namespaces of their own, real git.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests make files, start programs, and stop at the first surprise"
)]

mod harvest;
mod overlay;
mod patch;
mod races;
mod slow_many;
mod trees;
