//! What a run of tests found, test by test.
//!
//! **Invariant.** A [`TestRun`] is what the kernel's own run reported. It holds each identity once: of
//! two reports on one test, the worse counts.

use std::collections::{BTreeMap, BTreeSet};

use fluffy_base::{Excerpt, ProjectPath, is_blank};
use serde::{Deserialize, Serialize};

/// The most tests of one run. More would be a record that nobody can keep.
pub const MAX_TESTS: usize = 100_000;

/// The longest identity of a test, in bytes.
pub const MAX_TEST_ID_BYTES: usize = 1024;

/// How much of an identity an error repeats.
const SHOWN: usize = 80;

/// How one test ended, the worse the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It ran and held.
    Passed,
    /// It did not run. Never counts as passed.
    Skipped,
    /// It ran and did not hold, or did not come to an end.
    Failed,
}

/// What is known of one test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestCase {
    /// How it ended.
    pub outcome: Outcome,
    /// The file that it is written in; where the runner knows no more, the directory of its package.
    pub place: Option<ProjectPath>,
}

/// How much of a project's tests a run covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// All of them.
    Whole,
    /// Those that a pattern names. Such a run can be red and is never green.
    Part,
}

/// What a run of tests found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Report", into = "Report")]
pub struct TestRun {
    extent: Extent,
    cases: BTreeMap<String, TestCase>,
    broken: Option<BTreeSet<ProjectPath>>,
    without_result: BTreeSet<String>,
}

/// Why a report is no run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// More tests than can be kept.
    #[error("the run has more than {MAX_TESTS} tests")]
    TooMany,
    /// A test without a name.
    #[error("a test of the run has no name")]
    Nameless,
    /// A test whose name is too long to be kept.
    #[error("the name of test `{0}` has more than {MAX_TEST_ID_BYTES} bytes")]
    LongName(String),
}

/// A run as it is written.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    extent: Extent,
    cases: BTreeMap<String, TestCase>,
    broken: Option<BTreeSet<ProjectPath>>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    without_result: BTreeSet<String>,
}

impl TestRun {
    /// A run that reported these tests.
    pub fn new(
        extent: Extent,
        tests: impl IntoIterator<Item = (String, TestCase)>,
    ) -> Result<Self, RunError> {
        let mut cases = BTreeMap::<String, TestCase>::new();
        for (id, case) in tests {
            check_id(&id)?;
            let kept = cases.entry(id).or_insert_with(|| case.clone());
            if kept.outcome < case.outcome {
                *kept = case;
            }
            if cases.len() > MAX_TESTS {
                return Err(RunError::TooMany);
            }
        }
        Ok(Self { extent, cases, broken: None, without_result: BTreeSet::new() })
    }

    /// The same run, in which these suites gave no result: the runner is missing, a limit was reached, the sandbox
    /// failed or the report cannot be believed. Such a suite is never a failing test, and never a passing one.
    pub fn with_suites_without_result(
        mut self,
        suites: impl IntoIterator<Item = String>,
    ) -> Result<Self, RunError> {
        for suite in suites {
            check_id(&suite)?;
            self.cases.remove(&suite);
            self.without_result.insert(suite);
        }
        Ok(self)
    }

    /// The same run, which could not be built, or not all of it. The compiler named these files.
    #[must_use]
    pub fn broken_by(self, files: impl IntoIterator<Item = ProjectPath>) -> Self {
        Self { broken: Some(files.into_iter().collect()), ..self }
    }

    /// The same run without the tests of these files.
    #[must_use]
    pub(crate) fn without(mut self, files: &BTreeSet<ProjectPath>) -> Self {
        let is_in = |case: &TestCase| case.place.as_ref().is_some_and(|it| files.contains(it));
        self.cases.retain(|_, case| !is_in(case));
        self
    }

    /// How much of the project's tests it covers.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// The tests by identity.
    pub fn cases(&self) -> impl Iterator<Item = (&str, &TestCase)> {
        self.cases.iter().map(|(id, case)| (id.as_str(), case))
    }

    /// How a test ended, if it is in the run.
    pub fn outcome(&self, id: &str) -> Option<Outcome> {
        self.cases.get(id).map(|case| case.outcome)
    }

    /// Where a test stands, if that is known.
    pub(crate) fn place(&self, id: &str) -> Option<&ProjectPath> {
        self.cases.get(id).and_then(|case| case.place.as_ref())
    }

    /// The suites that gave no result, of which nothing is known.
    pub fn suites_without_result(&self) -> &BTreeSet<String> {
        &self.without_result
    }

    /// The files that kept it from being built; nothing if it was built.
    pub fn broken(&self) -> Option<&BTreeSet<ProjectPath>> {
        self.broken.as_ref()
    }
}

impl TryFrom<Report> for TestRun {
    type Error = RunError;

    fn try_from(report: Report) -> Result<Self, RunError> {
        let run = Self::new(report.extent, report.cases)?;
        let run = run.with_suites_without_result(report.without_result)?;
        Ok(Self { broken: report.broken, ..run })
    }
}

impl From<TestRun> for Report {
    fn from(run: TestRun) -> Self {
        let TestRun { extent, cases, broken, without_result } = run;
        Self { extent, cases, broken, without_result }
    }
}

fn check_id(id: &str) -> Result<(), RunError> {
    if is_blank(id) {
        return Err(RunError::Nameless);
    }
    if id.len() > MAX_TEST_ID_BYTES {
        return Err(RunError::LongName(Excerpt::new(id, SHOWN).to_string()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(outcome: Outcome) -> TestCase {
        TestCase { outcome, place: None }
    }

    #[test]
    fn of_two_reports_on_one_test_the_worse_counts() {
        for order in [[Outcome::Passed, Outcome::Failed], [Outcome::Failed, Outcome::Passed]] {
            let tests = order.map(|outcome| ("a".to_owned(), case(outcome)));
            let run = TestRun::new(Extent::Whole, tests).unwrap();
            assert_eq!(run.outcome("a"), Some(Outcome::Failed));
        }
    }

    #[test]
    fn suite_without_result_is_kept_apart_from_tests() {
        let tests = [("(pytest)".to_owned(), case(Outcome::Failed))];
        let run = TestRun::new(Extent::Whole, tests).unwrap();
        let run = run.with_suites_without_result(["(pytest)".to_owned()]).unwrap();
        assert_eq!(run.outcome("(pytest)"), None);
        let text = serde_json::to_string(&run).unwrap();
        assert_eq!(serde_json::from_str::<TestRun>(&text).unwrap(), run, "{text}");
    }

    #[test]
    fn a_test_without_a_name_or_with_a_long_one_is_refused() {
        let run = |id: &str| TestRun::new(Extent::Whole, [(id.to_owned(), case(Outcome::Passed))]);
        assert_eq!(run(" "), Err(RunError::Nameless));
        assert!(matches!(run(&"x".repeat(MAX_TEST_ID_BYTES + 1)), Err(RunError::LongName(_))));
    }

    #[test]
    fn a_record_with_an_unknown_field_is_no_run() {
        let read = |text: &str| serde_json::from_str::<TestRun>(text).is_ok();
        assert!(read(r#"{"extent":"whole","cases":{},"broken":null}"#));
        assert!(!read(r#"{"extent":"whole","cases":{},"broken":null,"green":true}"#));
        assert!(!read(r#"{"extent":"whole","cases":{},"broken":null,"without_result":[""]}"#));
        assert!(!read(
            r#"{"extent":"whole","cases":{"":{"outcome":"passed","place":null}},"broken":null}"#
        ));
    }
}
