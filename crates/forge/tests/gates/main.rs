//! The gates with the real tools in real sandboxes: what passes, what each gate finds, and what hostile tests cannot do.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests look at what is left on disk, and stop at the first surprise"
)]

mod defects;
mod forged;
mod hostile;
mod scene;
