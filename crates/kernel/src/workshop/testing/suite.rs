//! Runs one suite and reads what its runner left.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fluffy_base::{ByteSize, ProjectPath, Span};
use fluffy_sandbox::harvest::{Change, HarvestLimits, Kind, harvest};
use fluffy_sandbox::{End, Job, Limits, Outcome, RuntimeError, Store, Volume, Watcher};
use fluffy_workflow::{
    Coverage, Invocation, MAX_COVERAGE_BYTES, MAX_OUTPUT_BYTES, Report, ResultsError, Run, Runner,
    Suite, read,
};

use super::identity::suite_id;
use super::install::install_hint;
use super::{Attempt, Failure, Measured, SuiteRun, TestPlan, TestsError};
use crate::workshop::layer::{Layer, fresh};
use crate::workshop::printed::tail;
use crate::workshop::sight::{ENVIRONMENT, Sight, SightError};
use crate::workshop::{LimitedJob, Order, Ran, Workshop, WorkshopError, setting_hint};

/// How much of what a runner printed is told where it told nothing else.
const TAIL_BYTES: usize = 1_200;

/// Manifests that have built files beside them.
const BUILD_MANIFESTS: [&str; 5] =
    ["pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"];

/// The most report files of one run.
const MAX_REPORTS: usize = 2_000;

/// Virtual environments that a project may have, from the suite's root or its own.
const ENVIRONMENTS: [&str; 2] = [".venv", "venv"];

/// One way of running a suite.
struct Trial<'a> {
    suite: &'a Suite,
    call: Invocation,
    /// The directory for reports, from the project's root.
    reports: ProjectPath,
    /// Where the runner finds the project.
    root: &'a str,
    limits: Limits,
    watcher: &'a Arc<dyn Watcher>,
    /// Directories of built files that the run must not see.
    built: Vec<ProjectPath>,
}

impl Workshop {
    /// Runs one suite, with coverage if it was asked for and can be had.
    pub(super) fn suite(
        &self,
        sight: &Sight<'_>,
        plan: &TestPlan<'_>,
        suite: &Suite,
        limit: Span,
        watcher: &Arc<dyn Watcher>,
    ) -> Result<Attempt, TestsError> {
        let root = self.project().to_str().ok_or(TestsError::NotText)?;
        let reports = self.reports_name(sight);
        let at = format!("{root}/{reports}");
        let limits = Limits { duration: Some(limit), ..self.job_limits(LimitedJob::Test) };
        let trial = |call: Invocation| {
            let built = built_directories(suite, call.built, plan.files);
            Trial { suite, call, reports: reports.clone(), root, limits, watcher, built }
        };
        let plain = match plan.pattern {
            Some(pattern) => suite.matching(pattern, &at).unwrap_or_else(|| suite.all(&at)),
            None => suite.all(&at),
        };
        if limit.ms() == 0 {
            let why = Failure("it was not run: the time for all suites was used up".to_owned());
            return Ok(not_run(suite, &plain, why));
        }
        if !plan.coverage || plan.pattern.is_some() {
            return self.attempt(sight, &trial(plain));
        }
        let Some(call) = suite.with_coverage(&at) else {
            let unknown = unknown(suite, "its runner measures none that can be read");
            return Ok(Attempt { coverage: Some(unknown), ..self.attempt(sight, &trial(plain))? });
        };
        let measured = self.attempt(sight, &trial(call))?;
        // Most likely what measures is not installed; whether tests pass is known without it.
        let useless = |report: &Report| report.tests().is_empty() && report.build().is_some();
        if measured.result.as_ref().is_ok_and(|report| !useless(report)) {
            return Ok(measured);
        }
        let why = format!("the run that measures it failed: {}", measured.tail);
        let again = self.attempt(sight, &trial(plain))?;
        Ok(Attempt { coverage: Some(unknown(suite, &why)), ..again })
    }

    fn attempt(&self, sight: &Sight<'_>, trial: &Trial<'_>) -> Result<Attempt, TestsError> {
        let hidden = [sight.hidden, &trial.built].concat();
        let layer = self.layer(&Sight { hidden: &hidden, ..*sight })?;
        trial.prepare(&layer).map_err(SightError::from)?;
        let mut layers = sight.layers.to_vec();
        layers.push(layer.dir().to_owned());
        let ran = self.run(Order {
            layers: &layers,
            store: Some(Store::Disk),
            shown: &[],
            user_limits: self.user_limits(LimitedJob::Test),
            limits: Some(trial.limits),
            job: self.job(sight, trial),
            watcher: Arc::clone(trial.watcher),
        });
        match ran {
            Ok(ran) => Ok(trial.settle(&ran)),
            Err(WorkshopError::Runtime(RuntimeError::Program { program, source })) => {
                let why = format!(
                    "`{program}` cannot be run in the sandbox ({source}): {}",
                    install_hint(trial.suite)
                );
                Ok(not_run(trial.suite, &trial.call, Failure(why)))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn job(&self, sight: &Sight<'_>, trial: &Trial<'_>) -> Job {
        let mut words = trial.call.argv.iter();
        let named = words.next().cloned().unwrap_or_default();
        let python = (named == "python3").then(|| self.python(sight, trial.suite)).flatten();
        let php = (named == "phpunit").then(|| self.phpunit(sight, trial.suite)).flatten();
        let program = python.or(php).map_or_else(|| named.into(), PathBuf::into_os_string);
        let mut job = Job::new(program).args(words);
        job.env = ENVIRONMENT.map(|(name, value)| (name.into(), value.into())).into();
        if let Some(home) = self.options.home.as_ref().filter(|_| trial.call.reports.is_some()) {
            // Gradle reads what is already there and writes beside the report.
            let cache = home.join(".gradle/caches").into_os_string();
            job.env.push(("GRADLE_RO_DEP_CACHE".into(), cache));
        }
        job.cwd = trial.suite.root().map(|root| self.project().join(root.as_str()));
        job
    }

    /// The interpreter of the project's own virtual environment: the user's, which no session has touched,
    /// and only if the sandbox shows what it leads to.
    fn python(&self, sight: &Sight<'_>, suite: &Suite) -> Option<PathBuf> {
        if let Some(installed) = self.environments().python(suite.root()) {
            return Some(self.project().join(installed));
        }
        let roots = [suite.root().map_or("", ProjectPath::as_str), ""];
        let places =
            roots.iter().flat_map(|root| ENVIRONMENTS.map(|name| Path::new(root).join(name)));
        places.into_iter().find_map(|place| {
            let touched = |layer: &PathBuf| std::fs::symlink_metadata(layer.join(&place)).is_ok();
            if sight.layers.iter().any(touched) {
                return None;
            }
            let python = self.project().join(&place).join("bin/python3");
            let leads_to = std::fs::canonicalize(&python).ok()?;
            let shown = self.options.shown.iter().map(PathBuf::as_path);
            let mut seen = shown.chain([self.project(), Path::new("/usr")]);
            seen.any(|top| leads_to.starts_with(top)).then_some(python)
        })
    }

    /// PHPUnit as Composer installed it for the project, unless the session touched what is installed.
    fn phpunit(&self, sight: &Sight<'_>, suite: &Suite) -> Option<PathBuf> {
        let installed = Path::new(suite.root().map_or("", ProjectPath::as_str)).join("vendor");
        let touched = |layer: &PathBuf| std::fs::symlink_metadata(layer.join(&installed)).is_ok();
        let program = self.project().join(installed.join("bin/phpunit"));
        let leads_to = std::fs::canonicalize(&program).ok()?;
        let is_own = leads_to.starts_with(self.project()) && !sight.layers.iter().any(touched);
        is_own.then_some(program)
    }

    /// A name for the directory of reports that nothing has.
    fn reports_name(&self, sight: &Sight<'_>) -> ProjectPath {
        loop {
            let Ok(name) = ProjectPath::parse(&format!(".fluffy-run-{}", fresh())) else {
                continue;
            };
            let taken = |top: &&Path| std::fs::symlink_metadata(top.join(name.as_str())).is_ok();
            if !self.below(sight).iter().any(taken) {
                return name;
            }
        }
    }
}

impl Trial<'_> {
    /// Makes the directory for reports, with what the runner needs in it.
    fn prepare(&self, layer: &Layer) -> std::io::Result<()> {
        layer.directory(&self.reports, &[])?;
        if let Some(support) = self.call.support
            && let Ok(file) = self.reports.join(support.name)
        {
            layer.file(&file, support.text)?;
        }
        Ok(())
    }

    /// What the runner left, read.
    fn settle(&self, ran: &Ran) -> Attempt {
        let outcome = &ran.outcome;
        let volume = ran.volume.as_ref();
        let report = self.call.report.as_deref();
        let report = report.and_then(|file| self.left(volume, file, MAX_OUTPUT_BYTES));
        let run = Run {
            stdout: &outcome.stdout.bytes,
            stderr: &outcome.stderr.bytes,
            exit: match outcome.end {
                End::Exited(code) => Some(code),
                End::Signalled(_) | End::Limit(_) | End::Stopped => None,
            },
            report: report.as_deref(),
            reports: &self.scattered_reports(volume),
            root: self.root,
        };
        let result = read(self.suite, &run).map_err(|error| self.failure(&error, outcome));
        let result = result.and_then(|report| within_limits(report, outcome));
        let spoken = [&outcome.stderr.bytes, &outcome.stdout.bytes];
        let spoken = spoken.into_iter().find(|bytes| !bytes.trim_ascii().is_empty());
        let told = result.as_ref().is_ok_and(|report| report.build().is_none());
        let tail = spoken.filter(|_| !told).map(|bytes| tail(bytes, TAIL_BYTES));
        let ms = u64::try_from(outcome.usage.wall.as_millis()).unwrap_or(u64::MAX);
        Attempt {
            result,
            ran: SuiteRun {
                end: outcome.end.to_string(),
                duration: Span::from_ms(ms),
                sandbox: Some(ran.sandbox.clone()),
                ..SuiteRun::of(self.suite, &self.call)
            },
            tail: tail.unwrap_or_default(),
            coverage: self.coverage(volume),
        }
    }

    /// The reports that the runner wrote in this run where it puts them; together no more than one may have.
    fn scattered_reports(&self, volume: Option<&Volume>) -> Vec<Vec<u8>> {
        let Some(names) = self.call.reports else { return Vec::new() };
        let limits = HarvestLimits {
            file: ByteSize::from_bytes(MAX_OUTPUT_BYTES as u64),
            ..HarvestLimits::default()
        };
        let other = |path: &ProjectPath| path.components().next() == Some(".git");
        let content = volume.and_then(Volume::content);
        let found = content.and_then(|it| harvest(it, Kind::Overlay, &limits, &other).ok());
        let Some(found) = found else { return Vec::new() };
        let mut left = MAX_OUTPUT_BYTES;
        let mut reports = Vec::new();
        for change in found.changes() {
            let Change::Write(written) = change else { continue };
            if !names.has(written.path().as_str()) || reports.len() >= MAX_REPORTS {
                continue;
            }
            let Ok(bytes) = found.read(written) else { continue };
            left = left.saturating_sub(bytes.len());
            if left == 0 {
                break;
            }
            reports.push(bytes);
        }
        reports
    }

    fn failure(&self, error: &ResultsError, outcome: &Outcome) -> Failure {
        if let ResultsError::NoReport { exit, output } = error {
            if is_missing(self.suite, *exit, output) {
                return Failure(format!(
                    "its runner is not installed: {}",
                    install_hint(self.suite)
                ));
            }
            // The end of what it printed is told beside.
            return Failure(format!("its runner ended with code {exit} and wrote no report"));
        }
        if let ResultsError::MissingTool(_) = error {
            return Failure(format!("{error}; {}", install_hint(self.suite)));
        }
        match &outcome.end {
            End::Exited(_) => Failure(error.to_string()),
            End::Limit(limit) => {
                let hint = setting_hint(LimitedJob::Test, *limit, &self.limits);
                let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                Failure(format!("{error}: it {}{hint}", outcome.end))
            }
            end => Failure(format!("{error}: it {end}")),
        }
    }

    fn coverage(&self, volume: Option<&Volume>) -> Option<Measured> {
        let (format, file) = self.call.coverage.as_ref()?;
        let Some(bytes) = self.left(volume, file, MAX_COVERAGE_BYTES) else {
            return Some(unknown(self.suite, "the run wrote none"));
        };
        // What lies among the reports is ours.
        let is_projects =
            |path: &ProjectPath| path.components().next() != Some(self.reports.as_str());
        let found = Coverage::parse(*format, &bytes, self.root, self.suite.root())
            .and_then(|coverage| coverage.filtered(is_projects));
        Some(found.map_or_else(|error| unknown(self.suite, &error.to_string()), Measured::Lines))
    }

    /// A file that the runner left, by its absolute path or from the project's root: a regular one with one name,
    /// or none. One that was there before and that it did not touch is not in the volume.
    fn left(&self, volume: Option<&Volume>, file: &str, limit: usize) -> Option<Vec<u8>> {
        let file = match file.strip_prefix(self.root) {
            Some(inside) => inside.strip_prefix('/')?,
            None => file,
        };
        let top = file.split('/').next();
        let limits =
            HarvestLimits { file: ByteSize::from_bytes(limit as u64), ..HarvestLimits::default() };
        let elsewhere = |path: &ProjectPath| path.components().next() != top;
        let found = harvest(volume?.content()?, Kind::Overlay, &limits, &elsewhere).ok()?;
        let written = found.changes().iter().find_map(|change| match change {
            Change::Write(written) if written.path().as_str() == file => Some(written),
            Change::Write(_) | Change::Delete(_) | Change::Replace(_) => None,
        })?;
        found.read(written).ok()
    }
}

/// The directories of built files beside every manifest of the suite. Whatever lies there was made by another run, or
/// planted: the run makes its own.
fn built_directories(
    suite: &Suite,
    names: &[&str],
    files: &BTreeSet<ProjectPath>,
) -> Vec<ProjectPath> {
    if names.is_empty() {
        return Vec::new();
    }
    let is_manifest = |file: &&ProjectPath| {
        let name = file.file_name();
        BUILD_MANIFESTS.contains(&name) || name.ends_with("proj")
    };
    let below = |folder: &Option<ProjectPath>| match (suite.root(), folder) {
        (None, _) => true,
        (Some(root), Some(folder)) => {
            folder == root || folder.as_str().starts_with(&format!("{root}/"))
        }
        (Some(_), None) => false,
    };
    let folders: BTreeSet<Option<ProjectPath>> =
        files.iter().filter(is_manifest).map(ProjectPath::parent).filter(below).collect();
    let join = |folder: &Option<ProjectPath>, name: &str| match folder {
        Some(folder) => folder.join(name).ok(),
        None => ProjectPath::parse(name).ok(),
    };
    folders
        .iter()
        .flat_map(|folder| names.iter().filter_map(move |name| join(folder, name)))
        .collect()
}

impl SuiteRun {
    fn of(suite: &Suite, call: &Invocation) -> Self {
        Self {
            suite: suite_id(suite),
            command: call.argv.join(" "),
            end: "not run".to_owned(),
            duration: Span::from_ms(0),
            sandbox: None,
        }
    }
}

fn not_run(suite: &Suite, call: &Invocation, why: Failure) -> Attempt {
    let ran = SuiteRun::of(suite, call);
    Attempt { result: Err(why), ran, tail: String::new(), coverage: None }
}

/// A failure beside a limit may be the limit's doing, and proves nothing. What is green despite it is green.
fn within_limits(report: Report, outcome: &Outcome) -> Result<Report, Failure> {
    match outcome.reached.first() {
        Some(limit) if !report.is_green() => {
            Err(Failure(format!("{limit} while the tests ran, so that what failed proves nothing")))
        }
        Some(_) | None => Ok(report),
    }
}

fn unknown(suite: &Suite, why: &str) -> Measured {
    Measured::Unknown { suite: suite_id(suite), why: why.to_owned() }
}

/// Whether a runner that wrote no report was not there at all.
fn is_missing(suite: &Suite, exit: i32, output: &str) -> bool {
    match suite.runner() {
        Runner::Pytest => output.contains("No module named pytest"),
        // npx speaks where it should have started the runner.
        Runner::Jest | Runner::Vitest => {
            exit == 127 || output.starts_with("npm error") || output.starts_with("npm ERR!")
        }
        Runner::Cargo
        | Runner::Node
        | Runner::Go { .. }
        | Runner::Profiled(_)
        | Runner::Command { .. } => exit == 127,
    }
}
