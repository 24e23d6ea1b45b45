//! Staging and merging with real sandboxes, real deaths and real full disks.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests start themselves as somebody else, and stop at the first surprise"
)]

mod full_disk;
mod killed;
mod layers;
mod scene;
