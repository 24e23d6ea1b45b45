//! What a test run showed, test by test.
//!
//! [`read`] turns what a runner printed and the report it wrote into a [`Report`]. All of it is hostile:
//! the code under test runs in, or beside, the process that reports. So for each runner the command (see
//! [`Suite`]) is the one that is hardest to forge, the report must agree with itself and with the exit
//! code, and only what the form of the report demands is believed.
//!
//! What stays forgeable, because a process can always lie about itself:
//!
//! | runner | believed | who could still forge |
//! |---|---|---|
//! | cargo | cargo's messages, then libtest's blocks on standard output | a test binary that writes the whole rest of its own block and ends with code 0 |
//! | pytest | a JUnit file written at the end | code that writes the file itself and ends the process |
//! | node:test | a file written by our reporter in the parent process | a test file that speaks the private protocol to its parent |
//! | jest, vitest | a JSON file written at the end by the parent process | as node:test; before jest 29, as pytest |
//! | go test | the stream of `go test -json` | before Go 1.20 a test's output may pass for events; most of that contradicts itself |
//! | unittest, Django, minitest | a JUnit file that our script writes at the end | as pytest |
//! | Maven, Gradle, PHPUnit, RSpec, dotnet | files that the runner writes | as pytest, where tests run in the process that reports |
//! | CTest | a JUnit file by `ctest`, which starts each test as a process | a test that writes the file after `ctest` did |
//! | command | the exit code, with TAP on standard output or JUnit files that agree with it | whatever the command runs |
//!
//! A forgery needs the code under test to attack its own runner, which stands in the diff that a person
//! reviews. A careless or lucky print is no forgery.
//!
//! **Invariant.** A report is green only if the runner ended with code 0, nothing failed, everything was
//! built and at least one test passed.

mod cargo;
mod go;
mod jest;
mod junit;
mod missing;
mod node;
mod profiled;
mod rspec;
mod tap;
mod trx;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use fluffy_base::{Excerpt, ProjectPath, sanitised};

pub use self::missing::missing_package;
use crate::runner::{Runner, Suite};

/// The largest output or report that is read.
pub const MAX_OUTPUT_BYTES: usize = 32 << 20;

const MAX_TESTS: usize = 100_000;
const MAX_NAME_BYTES: usize = 4096;
const MAX_MESSAGE_CHARS: usize = 2000;

/// How much of the end of an output is searched for a program that is missing.
const SEARCHED_BYTES: usize = 64 << 10;

/// What a runner left behind.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// Standard output.
    pub stdout: &'a [u8],
    /// Standard error.
    pub stderr: &'a [u8],
    /// The exit code; none if it was ended from outside.
    pub exit: Option<i32>,
    /// The report file the command line asked for, if it exists.
    pub report: Option<&'a [u8]>,
    /// Report files that lie where the runner puts them, one for each part of the tests.
    pub reports: &'a [Vec<u8>],
    /// The project's root as the runner saw it, absolute.
    pub root: &'a str,
}

/// Which test: the same one in every run, whatever its outcome.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TestId {
    place: String,
    name: String,
}

impl TestId {
    /// The file that holds the test, from the project's root, or what is nearest to it: the root file of
    /// a Rust target, the directory of a Go package, `.` for a command.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The name as the runner tells it, with what encloses it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the test may have come from this file: it is the file, or the file is a module of the
    /// Rust target (the module's name is then in the test's) or a test file of the Go package.
    pub fn may_come_from(&self, file: &ProjectPath) -> bool {
        let path = file.as_str();
        if self.place == path {
            return true;
        }
        let (folder, base) = path.rsplit_once('/').unwrap_or((".", path));
        if base.ends_with("_test.go") {
            return self.place == folder;
        }
        let Some(module) = path.strip_suffix(".rs") else { return false };
        let Some((root, target)) = self.place.rsplit_once('/') else { return false };
        let inside = module.strip_prefix(root).and_then(|rest| rest.strip_prefix('/'));
        let inside = inside.filter(|_| target.ends_with(".rs"));
        let Some(inside) = inside else { return false };
        let module = inside.strip_suffix("/mod").unwrap_or(inside).replace('/', "::");
        let test = self.name.rsplit_once(' ').map_or(self.name.as_str(), |(_, test)| test);
        test.strip_prefix(module.as_str()).is_some_and(|rest| rest.starts_with("::"))
    }
}

impl fmt::Display for TestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", sanitised(&self.place), sanitised(&self.name))
    }
}

/// How a test ended, in order of weight: of two results of one test, the heavier counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TestResult {
    /// It ran and passed.
    Passed,
    /// It did not run, or its result does not count.
    Skipped,
    /// It ran and did not pass, or did not finish.
    Failed {
        /// What the runner says, shortened, on one line.
        message: String,
    },
}

/// Code that could not be built or loaded, so that its tests did not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildFailure {
    /// The files that are named as the cause, as far as they are the project's.
    pub files: BTreeSet<ProjectPath>,
    /// What the builder says, shortened, on one line.
    pub message: String,
}

/// How many tests ended how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Passed.
    pub passed: usize,
    /// Failed.
    pub failed: usize,
    /// Skipped.
    pub skipped: usize,
}

impl Counts {
    fn add(&mut self, outcome: &TestResult) {
        match outcome {
            TestResult::Passed => self.passed += 1,
            TestResult::Skipped => self.skipped += 1,
            TestResult::Failed { .. } => self.failed += 1,
        }
    }
}

/// The results of one run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    tests: BTreeMap<TestId, TestResult>,
    build: Option<BuildFailure>,
    ended: BTreeSet<TestId>,
}

impl Report {
    /// Every test the runner reported.
    pub fn tests(&self) -> &BTreeMap<TestId, TestResult> {
        &self.tests
    }

    /// What is around tests and came to its end: files, packages, binaries of which a test passed. Where one does
    /// not, it is told as a test that failed, of the same name; so it can be red, and green later.
    pub fn ended(&self) -> &BTreeSet<TestId> {
        &self.ended
    }

    /// What could not be built, if anything.
    pub fn build(&self) -> Option<&BuildFailure> {
        self.build.as_ref()
    }

    /// The sums.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        self.tests.values().for_each(|outcome| counts.add(outcome));
        counts
    }

    /// Everything was built, something passed and nothing failed.
    pub fn is_green(&self) -> bool {
        let counts = self.counts();
        self.build.is_none() && counts.failed == 0 && counts.passed > 0
    }

    /// Whether this test ran and passed.
    pub fn passed(&self, test: &TestId) -> bool {
        matches!(self.tests.get(test), Some(TestResult::Passed))
    }

    fn add(&mut self, place: &str, name: &str, outcome: TestResult) -> Result<(), ResultsError> {
        if place.len() > MAX_NAME_BYTES || name.len() > MAX_NAME_BYTES {
            return Err(ResultsError::malformed("a test's name is too long"));
        }
        let id = TestId { place: place.to_owned(), name: name.to_owned() };
        let kept = self.tests.entry(id).or_insert(TestResult::Passed);
        if outcome > *kept {
            *kept = outcome;
        }
        if self.tests.len() > MAX_TESTS {
            return Err(ResultsError::malformed("there are too many tests"));
        }
        Ok(())
    }

    /// Notes that what is around some tests came to its end.
    fn add_end<'a>(
        &mut self,
        place: &str,
        name: &str,
        mut tests: impl Iterator<Item = &'a TestResult>,
    ) {
        if tests.any(|test| *test == TestResult::Passed) {
            self.ended.insert(TestId { place: place.to_owned(), name: name.to_owned() });
        }
    }

    /// Notes that a file could not be loaded. What it imports in vain may be somebody else's fault.
    fn add_load_failure(&mut self, file: Option<ProjectPath>, message: &str, places: &Places<'_>) {
        self.add_build(missing::cause_of_import(message, file, places), message);
    }

    fn add_build(&mut self, file: Option<ProjectPath>, message: &str) {
        let message = shown(message);
        let build = self.build.get_or_insert(BuildFailure { files: BTreeSet::new(), message });
        build.files.extend(file);
    }
}

/// Why a run gives no report. It counts as not passed.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum ResultsError {
    /// Output or report over [`MAX_OUTPUT_BYTES`].
    #[error("the test run left more than {MAX_OUTPUT_BYTES} bytes")]
    TooLarge,
    /// Ended by a signal or a limit.
    #[error("the test run was ended before it finished")]
    Ended,
    /// The runner, or a program that it calls, is not there.
    #[error("a program that the tests need cannot be started: {0}")]
    MissingTool(String),
    /// The runner wrote no report, most likely because it did not get to its end.
    #[error("the test runner ended with code {exit} and wrote no report: {output}")]
    NoReport {
        /// The exit code.
        exit: i32,
        /// The end of what it printed, shortened.
        output: String,
    },
    /// The report is not of its form.
    #[error("the report cannot be read: {0}")]
    Malformed(String),
    /// Two parts of what the runner left cannot both be true.
    #[error("the output contradicts itself: {0}")]
    Contradiction(String),
}

impl ResultsError {
    fn malformed(why: impl fmt::Display) -> Self {
        Self::Malformed(shown(&why.to_string()))
    }

    fn contradiction(why: impl fmt::Display) -> Self {
        Self::Contradiction(shown(&why.to_string()))
    }
}

/// What `run`, made by a command of `suite`, showed.
pub fn read(suite: &Suite, run: &Run<'_>) -> Result<Report, ResultsError> {
    let scattered = run.reports.iter().map(Vec::len).sum::<usize>();
    let report = run.report.map_or(0, <[u8]>::len);
    let largest = run.stdout.len().max(run.stderr.len()).max(report).max(scattered);
    if largest > MAX_OUTPUT_BYTES {
        return Err(ResultsError::TooLarge);
    }
    let exit = run.exit.ok_or(ResultsError::Ended)?;
    let places = Places { root: run.root, suite: suite.root() };
    let report = match suite.runner() {
        Runner::Cargo => cargo::read(run, exit, &places)?,
        Runner::Pytest => junit::read(file(run, exit)?, &places)?,
        Runner::Node => node::read(file(run, exit)?, &places)?,
        Runner::Jest | Runner::Vitest => jest::read(file(run, exit)?, &places)?,
        Runner::Go { module } => go::read(run, module, &places)?,
        Runner::Profiled(profile) => profiled::read(run, exit, *profile, &places)?,
        Runner::Command { argv } => command(argv, run, exit, &places)?,
    };
    agrees(suite.runner(), &report, exit)?;
    Ok(report)
}

/// The report file as text; a report that is not UTF-8 is none.
fn file<'a>(run: &Run<'a>, exit: i32) -> Result<&'a str, ResultsError> {
    let Some(bytes) = run.report else {
        let output = if run.stderr.trim_ascii().is_empty() { run.stdout } else { run.stderr };
        return Err(ResultsError::NoReport { exit, output: tail(output) });
    };
    std::str::from_utf8(bytes).map_err(|_| ResultsError::malformed("it is not UTF-8"))
}

/// A command that is only known to the user: JUnit files or TAP if it leaves them, and else its exit code.
fn command(
    argv: &[String],
    run: &Run<'_>,
    exit: i32,
    places: &Places<'_>,
) -> Result<Report, ResultsError> {
    let (name, place) = (argv.join(" "), places.directory(""));
    let mut report = Report::default();
    for bytes in run.reports {
        let text = std::str::from_utf8(bytes);
        let text = text.map_err(|_| ResultsError::malformed("a report is not UTF-8"))?;
        // Other tools leave files of such names as well.
        if text.contains("<testsuite") {
            junit::read_into(text, places, &mut report)?;
        }
    }
    if report.tests.is_empty() && report.build.is_none() {
        for (test, outcome) in tap::read(run.stdout)?.into_iter().flatten() {
            report.add(&place, &test, outcome)?;
        }
    }
    if !report.tests.is_empty() {
        // The command itself is the test of a run that tells of no others.
        report.ended.insert(TestId { place, name });
        return Ok(report);
    }
    let outcome = if exit == 0 {
        TestResult::Passed
    } else {
        refuse_missing_tool(run, exit)?;
        let output = if run.stderr.trim_ascii().is_empty() { run.stdout } else { run.stderr };
        TestResult::Failed { message: format!("ended with code {exit}: {}", tail(output)) }
    };
    report.add(&place, &name, outcome)?;
    Ok(report)
}

/// A command that could not start what it needs has tested nothing.
fn refuse_missing_tool(run: &Run<'_>, exit: i32) -> Result<(), ResultsError> {
    let found = [run.stderr, run.stdout].into_iter().find_map(|bytes| {
        let start = bytes.len().saturating_sub(SEARCHED_BYTES);
        let text = String::from_utf8_lossy(bytes.get(start..).unwrap_or_default());
        missing::missing_tool(exit, &text)
    });
    found.map_or(Ok(()), |what| Err(ResultsError::MissingTool(what)))
}

/// Code 0 and a clean report go together, for every runner.
fn agrees(runner: &Runner, report: &Report, exit: i32) -> Result<(), ResultsError> {
    let clean = report.build.is_none() && report.counts().failed == 0;
    // pytest has a code of its own for a run that found no test.
    let none_found = *runner == Runner::Pytest && exit == 5 && report.tests.is_empty();
    match (exit == 0, clean) {
        (true, true) | (false, false) => Ok(()),
        (false, true) if none_found => Ok(()),
        (true, false) => Err(ResultsError::contradiction("it ended with code 0 and has failures")),
        (false, true) => {
            let why = format!("it ended with code {exit} and reports no failure");
            Err(ResultsError::contradiction(why))
        }
    }
}

/// Turns what runners call a file into a file of the project.
struct Places<'a> {
    root: &'a str,
    suite: Option<&'a ProjectPath>,
}

impl Places<'_> {
    /// The file that the runner calls `text`, if it is the project's.
    fn file(&self, text: &str) -> Option<ProjectPath> {
        let text = text.strip_prefix("file://").unwrap_or(text);
        if text.starts_with('/') {
            let inside = text.strip_prefix(self.root.trim_end_matches('/'))?;
            return ProjectPath::parse(inside.strip_prefix('/')?).ok();
        }
        match self.suite {
            Some(suite) => suite.join(text).ok(),
            None => ProjectPath::parse(text).ok(),
        }
    }

    /// The same, or the text itself: an identity needs some place.
    fn place(&self, text: &str) -> String {
        self.file(text).map_or_else(|| text.to_owned(), |path| path.as_str().to_owned())
    }

    /// A directory below the suite's root; `.` is the project's.
    fn directory(&self, below: &str) -> String {
        let path = match (self.suite, below) {
            (Some(suite), "") => Some(suite.clone()),
            (Some(suite), below) => suite.join(below).ok(),
            (None, below) => ProjectPath::parse(below).ok(),
        };
        path.map_or_else(|| ".".to_owned(), |path| path.as_str().to_owned())
    }
}

fn failed(message: &str) -> TestResult {
    TestResult::Failed { message: shown(message) }
}

fn shown(text: &str) -> String {
    Excerpt::new(text.trim(), MAX_MESSAGE_CHARS).to_string()
}

/// The end of an output, where runners say what went wrong.
fn tail(bytes: &[u8]) -> String {
    let start = bytes.len().saturating_sub(MAX_MESSAGE_CHARS);
    shown(&String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()))
}
