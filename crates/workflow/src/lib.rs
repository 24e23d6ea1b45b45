//! Test-first: where a session stands, what it may write there, and what takes it further.
//!
//! [`TestRun`] is what a run of tests found; [`red`] and [`green`] decide what it means.
//! [`Conventions`] tell tests from code, an [`ExemptionRequest`] asks to change files without a test,
//! and [`TypeOnly`] finds out whether a change touches nothing but types.
//!
//! **Invariant.** Nothing here does input or output, reads a clock or the environment: texts, times and
//! results are arguments.

mod colour;
mod exemption;
mod paths;
mod run;
mod state;
mod type_only;

pub use colour::{Named, NotGreen, NotRed, Red, green, red};
pub use exemption::{
    Exempt, ExemptionError, ExemptionGrant, ExemptionRequest, MAX_EXEMPT_PATHS,
    MAX_EXEMPTION_REASON_BYTES,
};
pub use paths::{Conventions, PathKind};
pub use run::{Extent, MAX_TEST_ID_BYTES, MAX_TESTS, Outcome, RunError, TestCase, TestRun};
pub use state::{Access, Mode, State};
pub use type_only::{Languages, MAX_TYPED_BYTES, NotTypeOnly, Rust, TypeOnly, TypeScript, Version};
