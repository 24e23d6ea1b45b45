//! Integration tests: the proxy with real sockets and real clients on loopback.
//!
//! Every name leads to the host of the test, so that whatever the proxy lets through arrives there and is
//! seen.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests start clients, write files for them, and stop at the first surprise"
)]

mod attack;
mod carry;
mod clients;
mod inside;
mod lifetime;
mod packages;
mod scene;
mod upstream;
