//! The whole way of a skill with the real tools in real sandboxes: what is shipped, what fails and is tried again, what is
//! hostile, and what happens when the process dies on the way.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests look at what is left on disk, and stop at the first surprise"
)]

mod corpus;
mod failures;
mod killed;
mod scene;
mod server;
mod shipped;
mod subjects;
