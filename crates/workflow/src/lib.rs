//! Test-first: where a session stands, what it may write there, and what takes it further.
//!
//! A [`Workflow`] is where the work stands; [`Workflow::apply`] takes an [`Event`] and gives a
//! [`Transition`]. [`Gate`] is the workflow as a rule among the policy's rules. [`TestRun`] is what a run of
//! tests found; [`red`] and [`green`] decide what it means. [`Conventions`] tell tests from code, an
//! [`ExemptionRequest`] asks to change files without a test, and [`TypeOnly`] finds out whether a change
//! touches nothing but types.
//!
//! [`detect`] finds a project's [`Suite`]s; a suite tells the exact command to run; [`read`] makes a
//! [`Report`] per test of what the command left; [`Coverage`] and [`Budget`] do the same for coverage.
//!
//! **Invariant.** Nothing here does input or output, reads a clock or the environment: texts, times and
//! results are arguments.
//!
//! **Invariant.** What a runner left was written by the model's own code, or beside it. What cannot be read,
//! or contradicts itself, is an error, and an error is never a pass.

mod colour;
mod coverage;
mod dependency;
mod event;
mod exemption;
mod gate;
mod paths;
mod record;
mod results;
mod run;
mod runner;
mod state;
mod type_only;
mod workflow;
mod writable;
mod xml;

pub use colour::{Named, NotGreen, NotRed, Red, green, red};
pub use coverage::budget::{Baseline, BaselineError, Budget, Commit, Shortfall, Thresholds};
pub use coverage::{Coverage, CoverageError, CoverageFormat, Lines, MAX_COVERAGE_BYTES};
pub use dependency::Part;
pub use event::{Answer, Change, Consent, Debt, Event};
pub use exemption::{
    Exempt, ExemptionError, ExemptionGrant, ExemptionRequest, MAX_EXEMPT_PATHS,
    MAX_EXEMPTION_REASON_BYTES,
};
pub use gate::Gate;
pub use paths::{Conventions, PathKind};
pub use record::RecordError;
pub use results::{
    BuildFailure, Counts, MAX_OUTPUT_BYTES, Report, ResultsError, Run, TestId, TestResult,
    missing_package, read,
};
pub use run::{Extent, MAX_TEST_ID_BYTES, MAX_TESTS, Outcome, RunError, TestCase, TestRun};
pub use runner::detect::{Project, detect, is_manifest, missing_manifest};
pub use runner::profile::Profile;
pub use runner::proposal::propose_command;
pub use runner::{Invocation, Pattern, PatternError, Runner, ScatteredReports, Suite, Support};
pub use state::{Access, Mode, State};
pub use type_only::{Languages, MAX_TYPED_BYTES, NotTypeOnly, Rust, TypeOnly, TypeScript, Version};
pub use workflow::{
    FAILURES_BEFORE_OFFER, Hindrance, InvalidTransition, MAX_GRANTS, Transition, Workflow,
};
pub use writable::{Frozen, Standing, Writable};
