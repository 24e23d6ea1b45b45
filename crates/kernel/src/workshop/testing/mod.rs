//! Runs a project's tests: each suite in a sandbox of its own, and nothing of it is kept but the results.
//!
//! The report that a runner writes lies in a directory that exists only in a layer of ours and in the volume;
//! its name begins with a dot, which no runner looks into for tests.
//!
//! **Invariant.** A suite that does not tell what it found gives no result: it hung, died, reached a limit, wrote no
//! report or one that contradicts itself, or its runner is not there. Such a suite is neither a failing test nor a
//! passing one.
//!
//! **Invariant.** What tests change is gone with their sandbox.

mod identity;
mod install;
mod suite;
mod summary;

use std::collections::BTreeSet;
use std::sync::Arc;

use fluffy_base::{ProjectPath, Span};
use fluffy_sandbox::Watcher;
use fluffy_workflow::{
    Coverage, Extent, Outcome, Pattern, Report, RunError, Suite, TestCase, TestResult, TestRun,
};

use self::identity::{Places, suite_id, test_id};
use self::install::package_hint;
pub use self::summary::{SuiteRun, TestSummary};
use super::sight::{Sight, SightError};
use super::{LimitedJob, Workshop, WorkshopError};

/// The most suites that one run runs.
const MAX_SUITES: usize = 64;

/// How long all suites of a run may take together.
const ALL_SUITES: Span = Span::from_ms(30 * 60 * 1000);

/// How much of a build failure is told, in characters.
const BUILD_CHARS: usize = 2_000;

/// Which tests to run, and how.
#[derive(Debug, Clone, Copy)]
pub struct TestPlan<'a> {
    /// The project's suites.
    pub suites: &'a [Suite],
    /// Only the tests that match; a command that cannot choose is run as a whole.
    pub pattern: Option<&'a Pattern>,
    /// How long one suite may take; never longer than its sandbox gives.
    pub timeout: Option<Span>,
    /// Whether coverage is measured. Only a run of all tests measures any.
    pub coverage: bool,
    /// Every file of the session's view.
    pub files: &'a BTreeSet<ProjectPath>,
}

/// What a run of tests found.
#[derive(Debug)]
pub struct Tested {
    /// Test by test, for the workflow.
    pub run: TestRun,
    /// In words, for the model.
    pub summary: TestSummary,
    /// By suite, if it was asked for.
    pub coverage: Vec<Measured>,
}

impl Tested {
    /// Whether a suite gave no result.
    pub fn has_suite_without_result(&self) -> bool {
        !self.run.suites_without_result().is_empty()
    }
}

/// The coverage of one suite.
#[derive(Debug)]
pub enum Measured {
    /// Lines of the project's files.
    Lines(Coverage),
    /// It is not known.
    Unknown {
        /// Which suite.
        suite: String,
        /// Why not.
        why: String,
    },
}

/// Why no tests were run. It is not a pass.
#[derive(Debug, thiserror::Error)]
pub enum TestsError {
    /// There is nothing to run.
    #[error("no test suite was found; write tests, or configure the command that runs them")]
    NoSuite,
    /// There is too much to run.
    #[error("the project has {0} test suites, and {MAX_SUITES} are run at most")]
    TooMany(usize),
    /// The project lies where runners could not be told to report to.
    #[error("the project's path is not UTF-8")]
    NotText,
    /// What they see could not be prepared.
    #[error(transparent)]
    Sight(#[from] SightError),
    /// They did not run.
    #[error(transparent)]
    Workshop(#[from] WorkshopError),
    /// What they found cannot be kept.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// What one suite gave.
struct Attempt {
    result: Result<Report, Failure>,
    ran: SuiteRun,
    /// The end of what it printed.
    tail: String,
    coverage: Option<Measured>,
}

/// Why a suite gave no results.
struct Failure(String);

impl Workshop {
    /// Runs tests on the project as `sight` shows it.
    pub fn test(
        &self,
        sight: &Sight<'_>,
        plan: &TestPlan<'_>,
        watcher: &Arc<dyn Watcher>,
    ) -> Result<Tested, TestsError> {
        match plan.suites.len() {
            0 => return Err(TestsError::NoSuite),
            count if count > MAX_SUITES => return Err(TestsError::TooMany(count)),
            _ => {}
        }
        let (places, mut findings) = (Places::new(plan.files), Findings::default());
        let longest = self.job_limits(LimitedJob::Test).duration.unwrap_or(ALL_SUITES);
        let mut left = ALL_SUITES.max(longest);
        for suite in plan.suites {
            let limit = longest.min(plan.timeout.unwrap_or(left)).min(left);
            let attempt = self.suite(sight, plan, suite, limit, watcher)?;
            left = Span::from_ms(left.ms().saturating_sub(attempt.ran.duration.ms()));
            findings.enter(suite, attempt, &places);
        }
        let extent = if plan.pattern.is_some() { Extent::Part } else { Extent::Whole };
        let run = TestRun::new(extent, findings.cases)?;
        let mut run = run.with_suites_without_result(findings.without_result)?;
        if let Some(files) = findings.broken {
            run = run.broken_by(files);
        }
        let Findings { summary, coverage, .. } = findings;
        Ok(Tested { run, summary, coverage })
    }
}

/// What all suites together found.
#[derive(Default)]
struct Findings {
    cases: Vec<(String, TestCase)>,
    broken: Option<BTreeSet<ProjectPath>>,
    summary: TestSummary,
    coverage: Vec<Measured>,
    without_result: Vec<String>,
}

impl Findings {
    fn enter(&mut self, suite: &Suite, attempt: Attempt, places: &Places<'_>) {
        let id = suite_id(suite);
        match &attempt.result {
            Ok(report) => {
                self.cases.extend(places.cases(suite, report));
                self.count(suite, report);
                self.build(&id, report, &attempt.tail);
                let case = TestCase { outcome: Outcome::Passed, place: None };
                self.cases.push((id, case));
            }
            Err(Failure(why)) => {
                self.summary.add_not_run(&id, why);
                if !attempt.tail.is_empty() {
                    self.problem(&format!("{id} printed at its end:"), &attempt.tail);
                }
                self.without_result.push(id);
            }
        }
        self.coverage.extend(attempt.coverage);
        self.summary.suites.push(attempt.ran);
    }

    fn count(&mut self, suite: &Suite, report: &Report) {
        for (id, result) in report.tests() {
            match result {
                TestResult::Passed => self.summary.passed += 1,
                TestResult::Skipped => self.summary.skipped += 1,
                TestResult::Failed { message } => self.summary.fail(&test_id(suite, id), message),
            }
        }
    }

    fn build(&mut self, id: &str, report: &Report, tail: &str) {
        let Some(build) = report.build() else { return };
        self.broken.get_or_insert_default().extend(build.files.iter().cloned());
        let text: String = build.message.chars().take(BUILD_CHARS).collect();
        // Messages are on one line, with their line ends written out.
        let text = text.replace("\\n", "\n");
        let files: Vec<_> = build.files.iter().take(10).map(ProjectPath::as_str).collect();
        let head = format!("{id}: the build failed ({})\n{text}", files.join(", "));
        self.problem(&head, if text.contains(tail) { "" } else { tail });
        let hint = package_hint(build.message.as_str(), &build.files);
        self.summary.problems.extend(hint.map(|hint| format!("{id}: {hint}")));
    }

    fn problem(&mut self, head: &str, tail: &str) {
        let tail = if tail.is_empty() { String::new() } else { format!("\n{tail}") };
        self.summary.problems.push(format!("{head}{tail}"));
    }
}
