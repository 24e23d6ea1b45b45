//! Real processes under a bootstrap, made-up machines, and the bootstrap's own size.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests start processes, change files behind their backs, and fail by panicking"
)]

mod lines;
mod lives;
mod logs;
mod machines;
mod orphans;
mod others;
mod scene;
mod size;
