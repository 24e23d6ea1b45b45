//! `test.run`: the project's tests, run by the kernel, and what they mean for the work.
//!
//! **Invariant.** Only what the kernel's own runs found counts. What was there before the task is found out by
//! running the project as it is, without the session's changes.
//!
//! **Invariant.** What the model chooses makes no test fail: where it gave a pattern or a time, a suite that told
//! nothing, because its runner could not read the one or had not enough of the other, makes the run none.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use fluffy_base::{Event as Told, Json, ProjectPath, Span, is_blank};
use fluffy_workflow::{
    Event, Extent, Lines, Outcome, PathKind, Pattern, Project, Runner, State, Suite, TestRun,
    Transition, detect, green, missing_manifest, propose_command,
};
use serde_json::{Value, json};

use super::{Views as _, arguments};
use crate::dependencies::BuildSubject;
use crate::environments::Environment;
use crate::files::{Found, Staged, StagedFiles, Tree, View};
use crate::session::{Desk, failed};
use crate::workshop::{Measured, Sight, TestPlan, Tested, TestsError};
use crate::{Clerk, Tool, ToolError, ToolSpec};

/// Where git keeps what it keeps.
const GIT: &str = ".git";

/// How many failures the event for watchers names.
const TOLD: usize = 100;

/// How many tests without a manifest the model is told.
const WAITING_TOLD: usize = 3;

/// Runs the project's tests.
pub(crate) struct RunTests(pub(crate) Arc<Desk>);

/// What is asked for.
struct Wanted {
    pattern: Option<Pattern>,
    timeout: Option<Span>,
    coverage: bool,
}

/// One look at the project: its files, its suites, and what a job must not see of it.
struct Look {
    layers: Vec<PathBuf>,
    suites: Vec<Suite>,
    files: BTreeSet<ProjectPath>,
    hidden: Vec<ProjectPath>,
    /// Tests that the session wrote and nothing can run yet, each with the manifest that is missing.
    waiting: Vec<(ProjectPath, ProjectPath)>,
    /// What to do where there is no suite: the setting, with a proposal from what is in the project.
    no_runner: Option<String>,
    /// Compiled dependencies that the suites are shown, in use as long as this lives.
    builds: Vec<Arc<Environment>>,
    /// Why a suite has to compile its dependencies itself.
    not_cached: Vec<String>,
}

impl Tool for RunTests {
    fn spec(&self) -> ToolSpec {
        let properties = json!({
            "pattern": { "type": "string" },
            "timeout_ms": { "type": "integer", "minimum": 1 },
            "coverage": { "type": "boolean" },
        });
        let summary = "Runs the project's tests, or those that match a pattern";
        arguments::acting("test.run", summary, properties, &[])
    }

    fn run(&self, params: &Json, clerk: &dyn Clerk) -> Result<Value, ToolError> {
        let wanted = Wanted::of(params)?;
        let desk = &*self.0;
        let (view, layer, state, known) = {
            let inside = desk.look();
            let known = inside.workflow.has_baseline();
            (inside.staging.view(), inside.staging.layer(), inside.workflow.state(), known)
        };
        let untouched = view.staged.is_empty();
        let wants_baseline =
            !known && matches!(state, State::Planning | State::TestWriting | State::Exploring);
        let mut look = desk.see(&view, vec![layer.path().to_owned()])?;
        desk.show_builds(&mut look, &view, clerk);
        let bare = (wants_baseline && !untouched).then(|| desk.see_before(&view, clerk));
        // Both at the same time: neither sees the other.
        let (tested, baseline) = std::thread::scope(|scope| {
            let baseline = bare.map(|look| {
                // How long it may take is not the model's to say: what it does not tell was not there before.
                let all = Wanted { pattern: None, timeout: None, coverage: false };
                scope.spawn(move || desk.test(&look?, &all))
            });
            let tested = desk.test(&look, &wanted);
            let baseline = baseline.map(|thread| {
                let crashed = |_| Err(ToolError("the run before the task crashed".to_owned()));
                thread.join().unwrap_or_else(crashed)
            });
            (tested, baseline)
        });
        drop(layer);
        if let Some(baseline) = baseline {
            desk.happened(clerk, Event::BaselineRan(before(&baseline?)?))?;
        }
        let tested = tested?;
        desk.tell(&tested, look.no_runner.as_deref());
        if tested.has_suite_without_result() && wanted.is_narrowed() {
            return Err(no_run(&tested));
        }
        if wants_baseline && untouched && tested.run.extent() == Extent::Whole {
            desk.happened(clerk, Event::BaselineRan(before(&tested)?))?;
        }
        let measured = wanted.coverage.then(|| {
            // What a part of the tests reaches says nothing about the whole.
            let whole = tested.run.extent() == Extent::Whole && !tested.has_suite_without_result();
            let lines = if whole { lines(&tested) } else { Err("not all tests ran".to_owned()) };
            desk.measured(view.staged.clone(), lines)
        });
        let transition = desk.happened(clerk, Event::TestsRan(tested.run.clone()))?;
        let mut told = answer(&tested, &transition, look.no_runner.as_deref());
        if let (Value::Object(members), Some(text)) = (&mut told, measured) {
            members.insert("coverage".to_owned(), text.into());
        }
        if let (Value::Object(members), false) = (&mut told, look.not_cached.is_empty()) {
            members.insert("build_cache".to_owned(), json!(look.not_cached));
        }
        Ok(told)
    }
}

impl Wanted {
    fn of(params: &Json) -> Result<Self, ToolError> {
        let get = |name: &str| params.value().get(name);
        let pattern = get("pattern").and_then(Value::as_str).map(Pattern::parse).transpose();
        Ok(Self {
            pattern: pattern.map_err(|error| ToolError(error.to_string()))?,
            timeout: get("timeout_ms").and_then(Value::as_u64).map(Span::from_ms),
            coverage: arguments::flag(params, "coverage"),
        })
    }

    /// Whether the model said which tests to run, or for how long.
    fn is_narrowed(&self) -> bool {
        self.pattern.is_some() || self.timeout.is_some()
    }
}

/// A run as one from before the task: where a suite told nothing, not every test that was there is in it.
fn before(tested: &Tested) -> Result<TestRun, ToolError> {
    if !tested.has_suite_without_result() {
        return Ok(tested.run.clone());
    }
    let cases = tested.run.cases().map(|(id, case)| (id.to_owned(), case.clone()));
    let silent = tested.run.suites_without_result().iter().cloned();
    let run = TestRun::new(Extent::Part, cases)
        .and_then(|run| run.with_suites_without_result(silent))
        .map_err(|error| failed(&error))?;
    let broken = tested.run.broken().cloned();
    Ok(match broken {
        Some(files) => run.broken_by(files),
        None => run,
    })
}

/// What the model is told of a run that tells nothing because of what it chose.
fn no_run(tested: &Tested) -> ToolError {
    ToolError(format!(
        "a test runner told nothing, so the run counts for nothing; call `test.run` without a pattern and \
         a time limit\n{}",
        tested.summary
    ))
}

impl Desk {
    /// Looks at the project as one view has it.
    fn see(&self, view: &View, layers: Vec<PathBuf>) -> Result<Look, ToolError> {
        let (files, texts) = view.manifests().map_err(|error| failed(&error))?;
        let suites = match &self.test_command {
            Some(argv) => {
                let suite = Suite::configured(argv.clone());
                let coverage = self.test_coverage.clone();
                vec![coverage.map_or(suite.clone(), |path| suite.leaving(path))]
            }
            None => detect(&Project { files: &files, texts: &texts }),
        };
        let no_runner = suites.is_empty().then(|| {
            no_runner(propose_command(&Project { files: &files, texts: &texts }).as_deref())
        });
        let hidden = self.hidden(view)?;
        let files: BTreeSet<ProjectPath> = files.into_iter().collect();
        let written = view.staged.iter().filter(|(_, staged)| matches!(staged, Staged::File(_)));
        let tests = written.filter(|(path, _)| self.conventions.kind(path) == PathKind::Test);
        let waiting =
            tests.filter_map(|(path, _)| Some((path.clone(), missing_manifest(path, &files)?)));
        let waiting = waiting.collect();
        let (builds, not_cached) = (Vec::new(), Vec::new());
        Ok(Look { layers, suites, files, hidden, waiting, no_runner, builds, not_cached })
    }

    /// What the rules do not let the model read, and so no job may see.
    pub(crate) fn hidden(&self, view: &View) -> Result<Vec<ProjectPath>, ToolError> {
        let mut files = view.all_files().map_err(|error| failed(&error))?.files;
        files.retain(|path| !self.may_read(path));
        files.extend(self.hidden_of_git(&view.tree));
        Ok(files)
    }

    /// The same of what git keeps: all of it where the contents of such a file are among it, or that is not known.
    fn hidden_of_git(&self, tree: &Tree) -> Option<ProjectPath> {
        let denied = |path: &ProjectPath| !self.may_read(path);
        let git = ProjectPath::parse(GIT).ok()?;
        if matches!(tree.look(&git), Ok(None)) {
            return None;
        }
        let keeps = *self.keeps_hidden.get_or_init(|| self.git.keeps(&denied).unwrap_or(true));
        let config = git.join("config").ok().filter(|config| {
            denied(config) && matches!(tree.look(config), Ok(Some(Found::File { .. })))
        });
        if keeps { Some(git) } else { config }
    }

    /// Looks at the project as it is without the session's changes.
    fn see_before(&self, view: &View, journal: &dyn Clerk) -> Result<Look, ToolError> {
        let (tree, blobs) = (Arc::clone(&view.tree), Arc::clone(&view.blobs));
        let bare = View::new(tree, blobs, StagedFiles::default());
        let mut look = self.see(&bare, Vec::new())?;
        self.show_builds(&mut look, &bare, journal);
        Ok(look)
    }

    /// Shows the suites of Cargo their compiled dependencies. Where there are none they compile them themselves.
    fn show_builds(&self, look: &mut Look, view: &View, journal: &dyn Clerk) {
        let Some(dependencies) = &self.dependencies else { return };
        for suite in look.suites.iter().filter(|suite| *suite.runner() == Runner::Cargo) {
            let root = suite.root();
            let (files, hidden) = (&look.files, &look.hidden);
            let subject = BuildSubject { view, files, hidden, root };
            match dependencies.build_environment(self, &subject, journal) {
                Ok(Some(build)) => {
                    look.layers.extend(build.layers());
                    look.builds.push(build);
                }
                Ok(None) => {}
                Err(ToolError(why)) => look.not_cached.push(format!(
                    "the dependencies are compiled in every run, because they cannot be compiled apart from the project: {why}"
                )),
            }
        }
    }

    fn test(&self, look: &Look, wanted: &Wanted) -> Result<Tested, ToolError> {
        let scratch = self.scratch();
        let sight = Sight { layers: &look.layers, hidden: &look.hidden, scratch: &scratch };
        let plan = TestPlan {
            suites: &look.suites,
            pattern: wanted.pattern.as_ref(),
            timeout: wanted.timeout,
            coverage: wanted.coverage,
            files: &look.files,
        };
        let watcher: Arc<dyn fluffy_sandbox::Watcher> = Arc::new(());
        let tested = match self.workshop.test(&sight, &plan, &watcher) {
            // A project without tests has none that could fail.
            Err(TestsError::NoSuite) => nothing(wanted),
            tested => tested.map_err(|error| failed(&error)),
        };
        let tested = tested?;
        if look.waiting.is_empty() {
            return Ok(tested);
        }
        match self.missing_cargo(look) {
            None => Ok(look.with_waiting(tested)),
            Some(why) => without_cargo(tested, why),
        }
    }

    /// Why cargo cannot be started, if it cannot: then a test that waits for a manifest is no failing test.
    fn missing_cargo(&self, look: &Look) -> Option<String> {
        let scratch = self.scratch();
        let sight = Sight { layers: &look.layers, hidden: &look.hidden, scratch: &scratch };
        let probe = [Suite::configured(vec!["cargo".to_owned(), "--version".to_owned()])];
        let plan = TestPlan {
            suites: &probe,
            pattern: None,
            timeout: None,
            coverage: false,
            files: &look.files,
        };
        let watcher: Arc<dyn fluffy_sandbox::Watcher> = Arc::new(());
        match self.workshop.test(&sight, &plan, &watcher) {
            Ok(tested) if green(None, None, &tested.run).is_ok() => None,
            Ok(tested) => Some(tested.summary.to_string()),
            Err(error) => Some(error.to_string()),
        }
    }

    /// The coverage of the project as it is, without the session's changes.
    pub(crate) fn coverage(&self) -> Result<Lines, String> {
        let view = self.view();
        let bare = View::new(view.tree, view.blobs, StagedFiles::default());
        let look = self.see(&bare, Vec::new()).map_err(|error| error.0)?;
        let wanted = Wanted { pattern: None, timeout: None, coverage: true };
        let tested = self.test(&look, &wanted).map_err(|error| error.0)?;
        lines(&tested)
    }

    /// Tells whoever watches, and remembers what a person has to do before there can be a result.
    fn tell(&self, tested: &Tested, no_runner: Option<&str>) {
        let advice = no_runner.map(str::to_owned);
        self.change().set(|inside| inside.progress.no_runner = advice.clone());
        let not_run = reasons_without_result(tested).into_iter().chain(advice).collect();
        let failed = tested.run.cases().filter(|(_, case)| case.outcome == Outcome::Failed);
        let failed = failed.map(|(id, _)| id.to_owned());
        let broken = broken(&tested.run).map(|file| format!("{file}: it cannot be built"));
        self.observer.notice(Told::TestsFinished {
            passed: tested.summary.passed,
            failed: failures(tested),
            skipped: tested.summary.skipped,
            ids_failed: broken.chain(failed).take(TOLD).collect(),
            not_run,
        });
    }
}

/// The lines of all suites together; one that tells none makes the rest worth nothing.
fn lines(tested: &Tested) -> Result<Lines, String> {
    let mut sum = Lines { covered: 0, total: 0 };
    for measured in &tested.coverage {
        let lines = match measured {
            Measured::Lines(coverage) => coverage.total().map_err(|error| error.to_string())?,
            Measured::Unknown { suite, why } => return Err(format!("{suite}: {why}")),
        };
        sum.covered = sum.covered.saturating_add(lines.covered);
        sum.total = sum.total.saturating_add(lines.total);
    }
    Ok(sum)
}

impl Look {
    /// A test that nothing can run yet is a test that cannot be built.
    fn with_waiting(&self, mut tested: Tested) -> Tested {
        if self.waiting.is_empty() {
            return tested;
        }
        let known = tested.run.broken().cloned().unwrap_or_default();
        let waiting = self.waiting.iter().map(|(test, _)| test.clone());
        tested.run = tested.run.broken_by(known.into_iter().chain(waiting));
        let told = self.waiting.iter().take(WAITING_TOLD).map(|(test, manifest)| {
            format!("`{test}` cannot be run: there is no `{manifest}` yet")
        });
        tested.summary.problems.extend(told);
        tested
    }
}

/// A run in which tests wait for a runner that is not there.
fn without_cargo(mut tested: Tested, why: String) -> Result<Tested, ToolError> {
    const SUITE: &str = "(cargo test)";
    let run = tested.run.with_suites_without_result([SUITE.to_owned()]);
    tested.run = run.map_err(|error| failed(&error))?;
    let why = format!("a person has to install Rust (https://rustup.rs): {why}");
    tested.summary.not_run.push((SUITE.to_owned(), why));
    Ok(tested)
}

/// Files that could not be built, so that none of their tests ran.
fn broken(run: &TestRun) -> impl Iterator<Item = &ProjectPath> {
    run.broken().into_iter().flatten()
}

/// What failed: a file that cannot be built counts as one.
fn failures(tested: &Tested) -> usize {
    tested.summary.failed + broken(&tested.run).count()
}

/// Suites that gave no result, each with the reason and the last words of its runner.
fn reasons_without_result(tested: &Tested) -> Vec<String> {
    let summary = &tested.summary;
    let suites = summary.not_run.iter().take(TOLD);
    let line = suites.map(|(id, why)| {
        let printed = summary.problems.iter().find(|problem| problem.starts_with(id.as_str()));
        let lines = printed.map(|text| text.lines().skip(1).filter(|line| !is_blank(line)));
        let last = lines.and_then(Iterator::last);
        let last = last.map(|line| format!(": {}", line.trim())).unwrap_or_default();
        format!("{id}: {why}{last}")
    });
    line.collect()
}

/// What to do in a project for which no test runner is known.
fn no_runner(proposal: Option<&[String]>) -> String {
    let head = "the project has no tests that are known here, and no test runner";
    match proposal {
        Some(words) => format!(
            "{head}; if `{}` runs its tests, the user can set it: `fluffy config set test.command '[{}]'`",
            words.join(" "),
            words.join(", ")
        ),
        None => format!(
            "{head}; write tests for a known runner, or the user can name the command that runs them: \
             `fluffy config set test.command '[PROGRAM, ARGUMENT]'`"
        ),
    }
}

/// The run of a project that has no tests.
fn nothing(wanted: &Wanted) -> Result<Tested, ToolError> {
    let extent = if wanted.pattern.is_some() { Extent::Part } else { Extent::Whole };
    let run = TestRun::new(extent, []).map_err(|error| failed(&error))?;
    let summary = crate::workshop::TestSummary::default();
    Ok(Tested { run, summary, coverage: Vec::new() })
}

/// What the model is told of a run.
fn answer(tested: &Tested, transition: &Transition, no_runner: Option<&str>) -> Value {
    let summary = &tested.summary;
    let mut told = json!({
        "passed": summary.passed,
        "failed": failures(tested),
        "skipped": summary.skipped,
        "state": transition.to.name(),
    });
    let Value::Object(members) = &mut told else { return told };
    if !summary.failures.is_empty() {
        // Messages are kept on one line, with their line ends written out.
        let failures =
            summary.failures.iter().map(|(id, message)| (id, message.replace("\\n", "\n")));
        let failures: Vec<Value> =
            failures.map(|(id, message)| json!({ "test": id, "message": message })).collect();
        members.insert("failures".to_owned(), failures.into());
    }
    if !summary.not_run.is_empty() {
        let suites = summary.not_run.iter();
        let suites: Vec<Value> =
            suites.map(|(id, why)| json!({ "suite": id, "why": why })).collect();
        members.insert("no_result".to_owned(), suites.into());
    }
    if !summary.problems.is_empty() {
        members.insert("problems".to_owned(), json!(summary.problems));
    }
    if let Some(advice) = no_runner.filter(|_| summary.problems.is_empty()) {
        members.insert("note".to_owned(), json!(advice));
    }
    if let Some(hindrance) = &transition.hindrance {
        members.insert("not_further".to_owned(), json!(hindrance.to_string()));
    }
    if transition.offers_debug {
        let text = "the tests failed several times in a row; the user may switch to debug mode";
        members.insert("hint".to_owned(), json!(text));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workshop::TestSummary;

    #[test]
    fn suite_without_result_is_named_with_reason_and_last_words() {
        let mut tested = Tested {
            run: TestRun::new(Extent::Whole, []).unwrap(),
            summary: TestSummary::default(),
            coverage: Vec::new(),
        };
        tested.summary.not_run = vec![("(pytest)".to_owned(), "no report".to_owned())];
        assert_eq!(reasons_without_result(&tested), ["(pytest): no report"]);
        let printed = "(pytest) printed at its end:\nTraceback\nNo module named pytest\n\n";
        tested.summary.problems.push(printed.to_owned());
        let expected = "(pytest): no report: No module named pytest";
        assert_eq!(reasons_without_result(&tested), [expected]);
    }
}
