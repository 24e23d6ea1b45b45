//! Test-first: where a session stands, what it may write there, and what takes it further.
//!
//! A [`Workflow`] is where the work stands; [`Workflow::apply`] takes an [`Event`] and gives a
//! [`Transition`]. [`Gate`] is the workflow as a rule among the policy's rules. [`TestRun`] is what a run of tests found; [`red`] and [`green`] decide what it means.
//! [`Conventions`] tell tests from code, an [`ExemptionRequest`] asks to change files without a test,
//! and [`TypeOnly`] finds out whether a change touches nothing but types.
//!
//! **Invariant.** Nothing here does input or output, reads a clock or the environment: texts, times and
//! results are arguments.

mod colour;
mod event;
mod exemption;
mod gate;
mod paths;
mod record;
mod run;
mod state;
mod type_only;
mod workflow;
mod writable;

pub use colour::{Named, NotGreen, NotRed, Red, green, red};
pub use event::{Answer, Change, Consent, Debt, Event};
pub use exemption::{
    Exempt, ExemptionError, ExemptionGrant, ExemptionRequest, MAX_EXEMPT_PATHS,
    MAX_EXEMPTION_REASON_BYTES,
};
pub use gate::Gate;
pub use paths::{Conventions, PathKind};
pub use record::RecordError;
pub use run::{Extent, MAX_TEST_ID_BYTES, MAX_TESTS, Outcome, RunError, TestCase, TestRun};
pub use state::{Access, Mode, State};
pub use type_only::{Languages, MAX_TYPED_BYTES, NotTypeOnly, Rust, TypeOnly, TypeScript, Version};
pub use workflow::{
    FAILURES_BEFORE_OFFER, Hindrance, InvalidTransition, MAX_GRANTS, Transition, Workflow,
};
pub use writable::{Frozen, Standing, Writable};
