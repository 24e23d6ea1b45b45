//! The kernel's own confinement: what it still can, what it cannot, and that sandboxes work inside it.
//!
//! Each test confines a program as the kernel is, as whoever runs the tests and once more as an ordinary user if that
//! is root. What it could reach before is the control: the same try by the same user, unconfined.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests make files, start programs and stop at the first surprise"
)]

mod attacks;
#[path = "../tester/confined.rs"]
mod confined;
mod files;
#[path = "../tester/listen.rs"]
mod listen;
mod nested;
mod scene;
#[path = "../tester/spec.rs"]
mod spec;
