//! What can happen to a session's work.
//!
//! **Invariant.** An event tells what the kernel found out, never what a participant says of itself:
//! changes are those that were promoted, runs are the kernel's own, answers come from whoever may give
//! them. A recorded event holds all that its effect depends on, so that the same events always lead to
//! the same place.

use fluffy_base::ProjectPath;
use serde::{Deserialize, Serialize};

use crate::coverage::Lines;
use crate::exemption::ExemptionGrant;
use crate::paths::PathKind;
use crate::run::TestRun;
use crate::state::Mode;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// The user said what is to be done.
    TaskStarted,
    /// The tests ran on the project as it was before the task.
    BaselineRan(TestRun),
    /// The model has a plan.
    PlanCompleted,
    /// Files were changed.
    FilesChanged(Vec<Change>),
    /// Packages were installed, which changed these manifests and lock files: the kernel's own tool wrote them.
    DependenciesChanged(Vec<ProjectPath>),
    /// Files were exempted from test-first work.
    ExemptionGranted(ExemptionGrant),
    /// The model says that the tests are written.
    TestsCompleted,
    /// The tests ran.
    TestsRan(TestRun),
    /// The model says that the code is written.
    CodeCompleted,
    /// The merge was judged, by a person or by the rules for merging without one.
    ReviewAnswered(Answer),
    /// The commit is made.
    Committed,
    /// The model says that there is nothing to do any more.
    TaskCompleted,
    /// Another mode was asked for and the policy agreed.
    ModeSet {
        /// The mode.
        mode: Mode,
        /// Who agreed.
        consent: Consent,
    },
    /// What untested changes have cost so far was measured.
    DebtMeasured(Debt),
    /// The project's coverage baseline goes into the merge with the work: as many lines as these, or what
    /// the project has already.
    CoverageKept(Option<Lines>),
    /// The user gave the task up.
    Cancelled,
}

/// A file that was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The file.
    pub path: ProjectPath,
    /// What it is.
    pub kind: PathKind,
    /// Whether a [`TypeOnly`](crate::TypeOnly) found that nothing but types changed.
    pub type_only: bool,
}

/// The answer to a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Merge.
    Approved,
    /// Do not.
    Rejected,
    /// Not before it has tests.
    TestsFirst,
}

/// Who agreed to something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consent {
    /// The policy, which asked nobody.
    Policy,
    /// A person.
    Person,
}

/// Whether more untested changes can be afforded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Debt {
    /// They can.
    Within,
    /// They cannot: untested work is locked until strict work has won the coverage back.
    Exhausted,
}

impl Event {
    /// The words for it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::TaskStarted => "task started",
            Self::BaselineRan(_) => "baseline ran",
            Self::PlanCompleted => "plan completed",
            Self::FilesChanged(_) => "files changed",
            Self::DependenciesChanged(_) => "dependencies changed",
            Self::ExemptionGranted(_) => "exemption granted",
            Self::TestsCompleted => "tests completed",
            Self::TestsRan(_) => "tests ran",
            Self::CodeCompleted => "code completed",
            Self::ReviewAnswered(Answer::Approved) => "merge approved",
            Self::ReviewAnswered(Answer::Rejected) => "merge rejected",
            Self::ReviewAnswered(Answer::TestsFirst) => "tests wanted before the merge",
            Self::Committed => "committed",
            Self::TaskCompleted => "task completed",
            Self::ModeSet { mode: Mode::Strict, .. } => "mode set to strict",
            Self::ModeSet { mode: Mode::Explore, .. } => "mode set to explore",
            Self::ModeSet { mode: Mode::Debug, .. } => "mode set to debug",
            Self::DebtMeasured(_) => "debt measured",
            Self::CoverageKept(Some(_)) => "coverage baseline raised",
            Self::CoverageKept(None) => "coverage baseline left",
            Self::Cancelled => "cancelled",
        }
    }
}
