//! The test runners that are known, and how each is called.
//!
//! The command line decides how hard a result is to forge, so it is ours: never the project's script, and
//! a pattern from the model can be nothing but a pattern.
//!
//! **Invariant.** No word of a command comes from the model except the [`Pattern`], which is always the
//! value of an option or stands where no option is read.

mod customs;
pub(crate) mod detect;
pub(crate) mod profile;
pub(crate) mod proposal;
mod script;

use fluffy_base::{Excerpt, ProjectPath};

use self::profile::{Profile, ReportPlace};
use crate::coverage::CoverageFormat;

/// Coverage is measured; how much there has to be is not asked here, and would fail the run.
const VITEST_COVERAGE: [&str; 6] = [
    "--coverage.enabled=true",
    "--coverage.thresholds.100=false",
    "--coverage.thresholds.branches=0",
    "--coverage.thresholds.functions=0",
    "--coverage.thresholds.lines=0",
    "--coverage.thresholds.statements=0",
];

/// The reporter that node:test is started with; see [`Invocation::support`].
const NODE_REPORTER: &str = include_str!("results/node_reporter.cjs");
const NODE_REPORTER_NAME: &str = "node_reporter.cjs";
const MAX_PATTERN_CHARS: usize = 500;

/// jest runs a few files in the process that reports on them, where a test could write the report and leave
/// with code 0. It does not if it has to watch how much memory its workers take. Before version 29 it ignores
/// the option.
const JEST_WORKERS: [&str; 2] = ["--workerIdleMemoryLimit=512MB", "--maxWorkers=2"];

/// A kind of test runner.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Runner {
    /// `cargo test`.
    Cargo,
    /// pytest.
    Pytest,
    /// Node's own runner.
    Node,
    /// jest.
    Jest,
    /// vitest.
    Vitest,
    /// `go test`.
    Go {
        /// The module's path, with which its packages begin.
        module: String,
    },
    /// A runner of the table.
    Profiled(Profile),
    /// Whatever the user configured, or a script nobody understands: only its exit code counts,
    /// and what it tells as TAP or JUnit XML.
    Command {
        /// The command.
        argv: Vec<String>,
    },
}

/// Tests of one directory that one runner runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suite {
    runner: Runner,
    root: Option<ProjectPath>,
    reason: String,
    /// Words of the project's own script that the runner needs, such as a loader.
    extra: Vec<String>,
    /// Words before the command, such as those of a package manager that shows it the project's packages.
    prefix: &'static [&'static str],
    /// Where a configured command leaves its coverage.
    coverage: Option<ProjectPath>,
}

/// What to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Invocation {
    /// The command with its arguments, to be started in the suite's root.
    pub argv: Vec<String>,
    /// The report it will write, to be handed to [`crate::read`].
    pub report: Option<String>,
    /// The reports it will write where the runner puts them, to be handed to [`crate::read`] as well.
    pub reports: Option<ScatteredReports>,
    /// Names of directories that the run must not see, because it builds them itself.
    pub built: &'static [&'static str],
    /// The coverage it will write: beside the report, or at a path from the project's root.
    pub coverage: Option<(CoverageFormat, String)>,
    /// A file that must exist before it starts.
    pub support: Option<Support>,
}

/// Report files in a directory of this name, or where that is none in any, with such names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScatteredReports {
    directory: Option<&'static str>,
    beginnings: &'static [&'static str],
    endings: &'static [&'static str],
}

/// Names of JUnit files that commands leave.
const JUNIT_NAMES: ScatteredReports = ScatteredReports {
    directory: None,
    beginnings: &["junit", "TEST-", "test-results", "test-report", "report"],
    endings: &[".xml"],
};

impl ScatteredReports {
    /// Whether this file, by its path, is one of the reports.
    pub fn has(&self, path: &str) -> bool {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let is_in = |directory: &str| {
            folder
                .strip_suffix(directory)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        self.directory.is_none_or(is_in)
            && self.endings.iter().any(|ending| name.ends_with(ending))
            && (self.beginnings.is_empty()
                || self.beginnings.iter().any(|start| name.starts_with(start)))
    }
}

/// A file that a command needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Support {
    /// Its name in the directory for reports.
    pub name: &'static str,
    /// Its content.
    pub text: &'static str,
}

/// Which tests to run: a part of their names. pytest reads it as its own expression; in the others `|` stands
/// between alternatives, `^` and `$` for the ends of a name and `.*` for anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

/// Why a text is no pattern.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum PatternError {
    /// Nothing but white space.
    #[error("the test pattern is empty")]
    Empty,
    /// Would be read as an option.
    #[error("the test pattern `{0}` begins with `-`")]
    Option(String),
    /// Holds a control character.
    #[error("the test pattern `{0}` holds a control character")]
    Control(String),
    /// Longer than a name.
    #[error("the test pattern has more than {MAX_PATTERN_CHARS} characters")]
    Long,
}

impl Pattern {
    /// Checks a pattern.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let shown = || Excerpt::new(text, 80).to_string();
        let text = text.trim();
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        if text.starts_with('-') {
            return Err(PatternError::Option(shown()));
        }
        if text.chars().any(char::is_control) {
            return Err(PatternError::Control(shown()));
        }
        if text.chars().count() > MAX_PATTERN_CHARS {
            return Err(PatternError::Long);
        }
        Ok(Self(text.to_owned()))
    }

    /// The pattern.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The pattern as a regular expression that every runner can read. One that it cannot read would fail every
    /// file, as if its tests could not be loaded, and pass for red.
    fn expression(&self) -> String {
        // Names are told with what encloses them, and matched with a space between.
        let parts: Vec<_> = self.0.split('|').collect();
        let parts = parts.iter().map(|part| {
            let (part, start) = part.strip_prefix('^').map_or((*part, ""), |rest| (rest, "^"));
            let (part, end) = part.strip_suffix('$').map_or((part, ""), |rest| (rest, "$"));
            let inner: Vec<_> =
                part.split(" > ").flat_map(|it| it.split(".*")).map(escaped).collect();
            format!("{start}{}{end}", inner.join(".*"))
        });
        parts.collect::<Vec<_>>().join("|")
    }
}

/// A text as a regular expression for itself, in the dialects of JavaScript and of Go. A slash stays: for Go it
/// stands between a test and its subtest.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for char in text.chars() {
        if "\\^$.*+?()[]{}|".contains(char) {
            escaped.push('\\');
        }
        escaped.push(char);
    }
    escaped
}

impl Suite {
    /// The suite that the user configured.
    pub fn configured(argv: Vec<String>) -> Self {
        Self::new(Runner::Command { argv }, None, "configured by the user")
    }

    /// The same suite, whose command leaves its coverage at this path of the project.
    #[must_use]
    pub fn leaving(self, coverage: ProjectPath) -> Self {
        Self { coverage: Some(coverage), ..self }
    }

    fn new(runner: Runner, root: Option<ProjectPath>, reason: impl Into<String>) -> Self {
        Self { runner, root, reason: reason.into(), extra: Vec::new(), prefix: &[], coverage: None }
    }

    /// The runner.
    pub fn runner(&self) -> &Runner {
        &self.runner
    }

    /// Where it is started; none is the project's root.
    pub fn root(&self) -> Option<&ProjectPath> {
        self.root.as_ref()
    }

    /// Why it was chosen.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The command for all tests. `reports` is a directory outside the project, absolute, that is empty
    /// before every run: a report that an earlier run left would be believed.
    pub fn all(&self, reports: &str) -> Invocation {
        self.invocation(None, reports)
    }

    /// The command for the tests that match. None for a configured command, which cannot choose.
    pub fn matching(&self, pattern: &Pattern, reports: &str) -> Option<Invocation> {
        match self.runner {
            Runner::Command { .. } => None,
            _ => Some(self.invocation(Some(pattern), reports)),
        }
    }

    /// The command for all tests with coverage. None where the runner writes no format that is read.
    pub fn with_coverage(&self, reports: &str) -> Option<Invocation> {
        let mut call = self.invocation(None, reports);
        let (format, name, words) = match &self.runner {
            Runner::Cargo => {
                let file = format!("{reports}/coverage.json");
                call.argv.insert(1, "llvm-cov".to_owned());
                (
                    CoverageFormat::LlvmCov,
                    file.clone(),
                    vec![format!("--output-path={file}"), "--json".to_owned()],
                )
            }
            Runner::Pytest => {
                let file = format!("{reports}/coverage.info");
                let report = format!("--cov-report=lcov:{file}");
                // What nothing imports is looked for in packages only, and `src` is none. How much has to be
                // covered is not asked here, and would fail the run.
                let mut all = words(&["--cov=.", "--cov=src", "--cov-fail-under=0"]);
                all.push(report);
                (CoverageFormat::Lcov, file, all)
            }
            Runner::Node => {
                let file = format!("{reports}/coverage.info");
                let target = format!("--test-reporter-destination={file}");
                let first = "--experimental-test-coverage".to_owned();
                call.argv.splice(1..1, [first, "--test-reporter=lcov".to_owned(), target]);
                (CoverageFormat::Lcov, file, Vec::new())
            }
            Runner::Jest => {
                let file = format!("{reports}/coverage-final.json");
                let folder = format!("--coverageDirectory={reports}");
                let form = "--coverageReporters=json".to_owned();
                let all = words(&["--coverage", "--coverageThreshold={}"]);
                (CoverageFormat::Istanbul, file, [all, vec![form, folder]].concat())
            }
            Runner::Vitest => {
                let file = format!("{reports}/coverage/coverage-final.json");
                let folder = format!("--coverage.reportsDirectory={reports}/coverage");
                let form = "--coverage.reporter=json".to_owned();
                let all = words(&VITEST_COVERAGE);
                (CoverageFormat::Istanbul, file, [all, vec![form, folder]].concat())
            }
            Runner::Command { .. } => {
                let path = self.coverage.as_ref()?;
                (CoverageFormat::of_file(path.file_name()), path.to_string(), Vec::new())
            }
            Runner::Go { .. } | Runner::Profiled(_) => return None,
        };
        call.argv.extend(words);
        call.coverage = Some((format, name));
        Some(call)
    }

    fn invocation(&self, pattern: Option<&Pattern>, reports: &str) -> Invocation {
        let named = |option: &str| pattern.map(|pattern| format!("{option}{}", pattern.0));
        let chosen = |option: &str| pattern.map(|it| format!("{option}{}", it.expression()));
        let mut call = Invocation::default();
        match &self.runner {
            Runner::Cargo => {
                call.argv = words(&["cargo", "test", "--workspace", "--no-fail-fast"]);
                call.argv.extend(words(&["--color=never", "--message-format=json"]));
                call.argv.extend(named("").into_iter().flat_map(|name| ["--".to_owned(), name]));
            }
            Runner::Pytest => {
                call.argv =
                    words(&["python3", "-m", "pytest", "-p", "no:cacheprovider", "--color=no"]);
                // A file that cannot be imported keeps the others from running otherwise.
                call.argv.push("--continue-on-collection-errors".to_owned());
                call.argv.extend(words(&["-o", "junit_family=xunit1", "-o", "junit_logging=no"]));
                let report = format!("{reports}/report.xml");
                call.argv.push(format!("--junitxml={report}"));
                call.argv.extend(named("-k="));
                call.report = Some(report);
            }
            Runner::Node => {
                let report = format!("{reports}/report.jsonl");
                call.argv = words(&["node", "--test"]);
                call.argv.push(format!("--require={reports}/{NODE_REPORTER_NAME}"));
                call.argv.push(format!("--test-reporter={reports}/{NODE_REPORTER_NAME}"));
                call.argv.push(format!("--test-reporter-destination={report}"));
                // Between slashes node would read an expression with flags.
                let names = chosen("--test-name-pattern=").map(|it| it.replace('/', "\\/"));
                call.argv.extend(names);
                call.argv.extend(self.extra.iter().cloned());
                call.report = Some(report);
                call.support = Some(Support { name: NODE_REPORTER_NAME, text: NODE_REPORTER });
            }
            Runner::Jest => {
                let report = format!("{reports}/report.json");
                call.argv = words(&["npx", "--no-install", "jest", "--ci", "--json"]);
                call.argv.extend(words(&JEST_WORKERS));
                call.argv.push(format!("--outputFile={report}"));
                call.argv.extend(chosen("--testNamePattern="));
                call.report = Some(report);
            }
            Runner::Vitest => {
                let report = format!("{reports}/report.json");
                call.argv = words(&["npx", "--no-install", "vitest", "run", "--reporter=json"]);
                call.argv.push(format!("--outputFile={report}"));
                call.argv.extend(chosen("--testNamePattern="));
                call.report = Some(report);
            }
            Runner::Go { .. } => {
                // A cached result was not made by this run.
                call.argv = words(&["go", "test", "-json", "-count=1"]);
                call.argv.extend(chosen("-run="));
                call.argv.push("./...".to_owned());
            }
            Runner::Command { argv } => {
                call.argv = argv.clone();
                call.reports = Some(JUNIT_NAMES);
            }
            Runner::Profiled(profile) => self.profiled(*profile, pattern, reports, &mut call),
        }
        call
    }

    fn profiled(
        &self,
        profile: Profile,
        pattern: Option<&Pattern>,
        reports: &str,
        call: &mut Invocation,
    ) {
        let Some(row) = profile.data() else { return };
        call.argv = words(self.prefix);
        call.argv.extend(row.argv(&self.extra, pattern, reports));
        call.support = row.support();
        call.built = row.built;
        match row.place {
            ReportPlace::File(name) => call.report = Some(format!("{reports}/{name}")),
            ReportPlace::Scattered { directory, endings } => {
                call.reports =
                    Some(ScatteredReports { directory: Some(directory), beginnings: &[], endings });
            }
        }
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
