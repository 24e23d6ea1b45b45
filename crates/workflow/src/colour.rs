//! Decides whether a run of tests is red, and later whether it is green.
//!
//! Both are tied together by the identity of tests. A run is red for tests that fail because of this
//! task's tests; it is green once exactly those tests pass and no other got worse. So `assert false` is
//! red and can never be green, since tests are frozen while code is written, and a test that is
//! deleted, renamed, skipped or left out of the run keeps it from being green.
//!
//! Tests that the project had and that fail before the task are red as well, if the task adds none of its own:
//! whoever asks for them to pass has written the tests first. They count only where they stand in files that are
//! frozen while code is written, and file by file: what is begun in a file has to be finished there.
//!
//! **Invariant.** A suite that gave no result (its runner is missing, a limit was reached, its sandbox failed) makes no
//! run red and no run green.
//!
//! **Invariant.** What is not known counts against the session: without a run from before the task, a
//! failing test is new only if it is known to stand in a test file that the task wrote, and no failing
//! test is excused.

use std::collections::BTreeSet;
use std::fmt;

use fluffy_base::{Excerpt, ProjectPath};
use serde::{Deserialize, Serialize};

use crate::paths::{Conventions, PathKind};
use crate::run::{Extent, Outcome, TestCase, TestRun};

/// How many tests or files a reason names.
const NAMED: usize = 3;
/// How much of each it repeats.
const SHOWN: usize = 80;

/// The proof that tests of this task fail, and what green has to be held against.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Red {
    /// The run itself.
    pub(crate) run: TestRun,
    /// Tests that have to pass.
    pub(crate) failing: BTreeSet<String>,
    /// Test files that could not be built; tests of each have to run and pass.
    pub(crate) broken: BTreeSet<ProjectPath>,
    /// Who wrote the tests.
    #[serde(default)]
    pub(crate) by: By,
}

/// Who wrote the tests that fail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum By {
    /// The task: all of them have to pass.
    #[default]
    Task,
    /// Somebody before the task: those of some files have to pass, and of no file only a part.
    Others,
}

/// Why a run is not red.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotRed {
    /// The task has no test of its own.
    #[error("no test file was written for this task")]
    NoTestWritten,
    /// The task has no test of its own, and there are others that fail.
    #[error(
        "no test file was written for this task, but tests fail that were there before: write code to make \
         them pass, or first a test of your own ({0})"
    )]
    OthersFail(Named),
    /// The run found no test.
    #[error("the run found no test")]
    NoTestRan,
    /// A suite gave no result, and nothing else fails because of the task.
    #[error("a test suite gave no result, which is no failing test: {0}")]
    NoResult(Named),
    /// Nothing fails.
    #[error("no test fails")]
    NothingFails,
    /// What fails has nothing to do with the task's tests.
    #[error("only tests fail that failed before, or that are not known to be of this task: {0}")]
    OnlyOthersFail(Named),
    /// What cannot be built has nothing to do with the task's tests.
    #[error("the build fails, but in no test file that this task wrote{0}")]
    BuildFailsElsewhere(Named),
}

/// Why a run is not green.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotGreen {
    /// Tests that fail and did not fail before the task.
    #[error("tests fail: {0}")]
    Failing(Named),
    /// Tests that were red and did not pass, or did not run.
    #[error("tests that were red did not run and pass: {0}")]
    StillRed(Named),
    /// Tests that ran before and are skipped now.
    #[error("tests are skipped that ran before: {0}")]
    Skipped(Named),
    /// Tests that were there before and are not any more.
    #[error("tests are gone: {0}")]
    Gone(Named),
    /// Test files that could not be built, of which no test has run and passed.
    #[error("no test ran and passed of files that could not be built before: {0}")]
    NotRun(Named),
    /// Suites of which nothing is known.
    #[error("a test suite gave no result: {0}")]
    NoResult(Named),
    /// It could not be built.
    #[error("the build fails{0}")]
    BuildFails(Named),
    /// It left tests out.
    #[error("the run covers only a part of the tests")]
    Part,
}

/// The first few of some tests or files, and how many there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    first: Vec<String>,
    count: usize,
    after_colon: bool,
}

impl Red {
    /// The tests that have to pass.
    pub fn failing(&self) -> &BTreeSet<String> {
        &self.failing
    }

    /// The test files that could not be built, of which tests have to run and pass.
    pub fn broken(&self) -> &BTreeSet<ProjectPath> {
        &self.broken
    }

    /// What fails in a run from before the task, in files that are frozen while code is written.
    pub(crate) fn by_others(before: &TestRun) -> Option<Self> {
        if before.extent() != Extent::Whole {
            return None;
        }
        let conventions = Conventions::default();
        let is_test = |file: &ProjectPath| conventions.kind(file) == PathKind::Test;
        let failing = before.cases().filter(|(_, case)| {
            case.outcome == Outcome::Failed && case.place.as_ref().is_some_and(is_test)
        });
        let failing: BTreeSet<String> = failing.map(|(id, _)| id.to_owned()).collect();
        let broken = before.broken().into_iter().flatten().filter(|file| is_test(file));
        let broken: BTreeSet<ProjectPath> = broken.cloned().collect();
        let some = !failing.is_empty() || !broken.is_empty();
        some.then(|| Self { run: before.clone(), failing, broken, by: By::Others })
    }

    fn names(&self) -> Named {
        let files = self.broken.iter().map(ProjectPath::as_str);
        Named::of(files.chain(self.failing.iter().map(String::as_str)))
    }

    /// The tests that have to pass in this run.
    fn must_pass(&self, run: &TestRun) -> Vec<&str> {
        let all = self.failing.iter().map(String::as_str);
        let place = |id: &str| self.run.place(id);
        let begun: BTreeSet<_> = match self.by {
            By::Task => return all.collect(),
            By::Others => all.clone().filter(|id| passed(run, id)).filter_map(place).collect(),
        };
        let begun_elsewhere = || self.broken.iter().any(|file| has_run(None, file, run));
        if begun.is_empty() && !begun_elsewhere() {
            return all.collect();
        }
        all.filter(|id| place(id).is_some_and(|place| begun.contains(place))).collect()
    }

    /// The files of which tests have to run and pass in this run.
    fn must_run<'a>(&'a self, run: &TestRun) -> impl Iterator<Item = &'a ProjectPath> {
        let is_left = |file: &ProjectPath| match self.by {
            By::Task => false,
            By::Others => run.broken().is_some_and(|files| files.contains(file)),
        };
        let all_left = self.failing.is_empty() && self.broken.iter().all(is_left);
        self.broken
            .iter()
            .filter(move |file| all_left || !is_left(file))
            .collect::<Vec<_>>()
            .into_iter()
    }
}

fn passed(run: &TestRun, id: &str) -> bool {
    run.outcome(id) == Some(Outcome::Passed)
}

/// Whether a run is red: a test of this task fails, or a test file of this task cannot be built.
///
/// `before` is a run from before the task's first change, `written` the test files that the task
/// changed. A test that passed before and fails now is the task's as well: nothing but tests could have
/// been changed so far.
pub fn red(
    before: Option<&TestRun>,
    run: &TestRun,
    written: &BTreeSet<ProjectPath>,
) -> Result<Red, NotRed> {
    if written.is_empty() {
        let others = before.and_then(Red::by_others);
        return Err(others.map_or(NotRed::NoTestWritten, |red| NotRed::OthersFail(red.names())));
    }
    let failing: Vec<_> = run.cases().filter(|(_, case)| case.outcome == Outcome::Failed).collect();
    let of_task = failing.iter().filter(|(id, case)| is_of_task(before, id, case, written));
    let of_task: BTreeSet<String> = of_task.map(|(id, _)| (*id).to_owned()).collect();
    let was_broken = |file: &ProjectPath| {
        before.and_then(TestRun::broken).is_some_and(|files| files.contains(file))
    };
    let files = run.broken().into_iter().flatten();
    let broken: BTreeSet<_> =
        files.filter(|file| written.contains(*file) && !was_broken(file)).cloned().collect();
    let by = By::Task;
    if !of_task.is_empty() || !broken.is_empty() {
        return Ok(Red { run: run.clone(), failing: of_task, broken, by });
    }
    // Tests that failed before, in files that the task has written again.
    let again = failing.iter().filter(|(_, case)| is_in(written, case));
    let again: BTreeSet<String> = again.map(|(id, _)| (*id).to_owned()).collect();
    let broken: BTreeSet<_> = run
        .broken()
        .into_iter()
        .flatten()
        .filter(|file| written.contains(*file))
        .cloned()
        .collect();
    if !again.is_empty() || !broken.is_empty() {
        return Ok(Red { run: run.clone(), failing: again, broken, by });
    }
    let silent = run.suites_without_result();
    Err(match run.broken() {
        _ if !silent.is_empty() => NotRed::NoResult(Named::of(silent.iter().map(String::as_str))),
        Some(files) => {
            NotRed::BuildFailsElsewhere(Named::tail(files.iter().map(ProjectPath::as_str)))
        }
        None if run.cases().next().is_none() => NotRed::NoTestRan,
        None if failing.is_empty() => NotRed::NothingFails,
        None => NotRed::OnlyOthersFail(Named::of(failing.iter().map(|(id, _)| *id))),
    })
}

/// Whether a run is green: all of the tests ran, what was red passes, and nothing got worse.
///
/// Without `red`, as in a task that did not begin with tests, only the tests from before count.
pub fn green(before: Option<&TestRun>, red: Option<&Red>, run: &TestRun) -> Result<(), NotGreen> {
    let was_broken = |file: &ProjectPath| {
        before.and_then(TestRun::broken).is_some_and(|files| files.contains(file))
    };
    if let Some(files) = run.broken() {
        // What could not be built before the task is not held against it; what is red has to be built.
        let worse = files.is_empty() || red.is_none() || !files.iter().all(was_broken);
        if worse {
            return Err(NotGreen::BuildFails(Named::tail(files.iter().map(ProjectPath::as_str))));
        }
    }
    // A suite that could not be run before the task is not the task's to repair; what is red has to pass.
    let known =
        |suite: &&String| !before.is_some_and(|run| run.suites_without_result().contains(*suite));
    let silent = run.suites_without_result().iter().filter(known).map(String::as_str);
    refuse(silent, NotGreen::NoResult)?;
    let must_pass = red.into_iter().flat_map(|red| red.must_pass(run));
    refuse(must_pass.filter(|id| !passed(run, id)), NotGreen::StillRed)?;
    let excused = |id: &str| before.and_then(|run| run.outcome(id)) == Some(Outcome::Failed);
    let failing = run.cases().filter(|(_, case)| case.outcome == Outcome::Failed);
    refuse(failing.map(|(id, _)| id).filter(|id| !excused(id)), NotGreen::Failing)?;
    if run.extent() == Extent::Part {
        return Err(NotGreen::Part);
    }
    let earlier = || before.into_iter().chain(red.map(|red| &red.run)).flat_map(TestRun::cases);
    let gone = earlier().map(|(id, _)| id).filter(|id| run.outcome(id).is_none());
    refuse(gone, NotGreen::Gone)?;
    let ran = earlier().filter(|(_, case)| case.outcome != Outcome::Skipped);
    let skipped = ran.filter(|(id, _)| run.outcome(id) == Some(Outcome::Skipped));
    refuse(skipped.map(|(id, _)| id), NotGreen::Skipped)?;
    let broken = red.into_iter().flat_map(|red| red.must_run(run));
    let not_run = broken.filter(|file| !has_run(before, file, run));
    refuse(not_run.map(ProjectPath::as_str), NotGreen::NotRun)
}

fn is_of_task(
    before: Option<&TestRun>,
    id: &str,
    case: &TestCase,
    written: &BTreeSet<ProjectPath>,
) -> bool {
    match before.map(|run| (run.outcome(id), knows_all(run))) {
        Some((Some(Outcome::Failed), _)) => false,
        Some((Some(Outcome::Passed | Outcome::Skipped), _) | (None, true)) => true,
        Some((None, false)) | None => is_in(written, case),
    }
}

fn is_in(files: &BTreeSet<ProjectPath>, case: &TestCase) -> bool {
    case.place.as_ref().is_some_and(|place| files.contains(place))
}

/// Whether a test that is not in the run was not there.
fn knows_all(run: &TestRun) -> bool {
    let is_complete = run.broken().is_none() && run.suites_without_result().is_empty();
    run.extent() == Extent::Whole && is_complete
}

/// Whether a file was built, tests of it have run, and none of them failed. Some may be skipped: exercises come with
/// most of their tests switched off, and what could not be built could not say so. Where the runner only
/// knows a test's directory, the test must not have been there before the task.
fn has_run(before: Option<&TestRun>, file: &ProjectPath, run: &TestRun) -> bool {
    let directory = file.parent();
    let is_new = |id: &str| before.is_some_and(|run| knows_all(run) && run.outcome(id).is_none());
    let of_file = |(id, case): &(&str, &TestCase)| match &case.place {
        Some(place) if place == file => true,
        place => place.is_some() && *place == directory && is_new(id),
    };
    let has = |outcome| run.cases().filter(of_file).any(|(_, case)| case.outcome == outcome);
    let is_broken = run.broken().is_some_and(|files| files.contains(file));
    !is_broken && has(Outcome::Passed) && !has(Outcome::Failed)
}

fn refuse<'a>(
    found: impl Iterator<Item = &'a str>,
    why: impl FnOnce(Named) -> NotGreen,
) -> Result<(), NotGreen> {
    let found: BTreeSet<&str> = found.collect();
    if found.is_empty() { Ok(()) } else { Err(why(Named::of(found.into_iter()))) }
}

impl Named {
    fn of<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let (mut first, mut count) = (Vec::new(), 0);
        for name in names {
            count += 1;
            if first.len() < NAMED {
                first.push(Excerpt::new(name, SHOWN).to_string());
            }
        }
        Self { first, count, after_colon: false }
    }

    /// The same with a colon before it, or nothing at all where there is nothing to name.
    fn tail<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        Self { after_colon: true, ..Self::of(names) }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.after_colon && self.count > 0 {
            f.write_str(": ")?;
        }
        for (at, name) in self.first.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}`{name}`")?;
        }
        match self.count.saturating_sub(self.first.len()) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests;
