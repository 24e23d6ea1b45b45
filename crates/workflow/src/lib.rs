//! Test results, the runners that give them, and the coverage budget.
//!
//! [`detect`] finds a project's [`Suite`]s; a suite tells the exact command to run; [`read`] makes a
//! [`Report`] per test of what the command left; [`Coverage`] and [`Budget`] do the same for coverage.
//!
//! **Invariant.** Nothing here does input or output, reads a clock or the environment.
//!
//! **Invariant.** Whatever is read was written by the model's own code, or beside it. What cannot be
//! read, or contradicts itself, is an error, and an error is never a pass.

mod coverage;
mod results;
mod runner;
mod xml;

pub use coverage::budget::{Baseline, BaselineError, Budget, Commit, Debt, Thresholds};
pub use coverage::{Coverage, CoverageError, CoverageFormat, Lines, MAX_COVERAGE_BYTES};
pub use results::{
    BuildFailure, Counts, MAX_OUTPUT_BYTES, Outcome, Report, ResultsError, Run, TestId, read,
};
pub use runner::detect::{Project, detect};
pub use runner::{Invocation, Pattern, PatternError, Runner, Suite, Support};
