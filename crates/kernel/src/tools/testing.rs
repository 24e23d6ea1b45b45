//! `test.run`: the project's tests, run by the kernel, and what they mean for the work.
//!
//! **Invariant.** Only what the kernel's own runs found counts. What was there before the task is found out by
//! running the project as it is, without the session's changes.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use fluffy_base::{Event as Told, Json, ProjectPath, Span};
use fluffy_workflow::{
    Event, Extent, Lines, Outcome, Pattern, Project, State, Suite, TestRun, Transition, detect,
};
use serde_json::{Value, json};

use super::Views as _;
use crate::files::{StagedFiles, View};
use crate::session::{Desk, failed};
use crate::workshop::{Measured, Sight, TestPlan, Tested, TestsError};
use crate::{Clerk, Effect, May, Tool, ToolError, ToolSpec};

/// How many failures the event for watchers names.
const TOLD: usize = 100;

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
}

impl Tool for RunTests {
    fn spec(&self) -> ToolSpec {
        let name = "test.run";
        ToolSpec {
            name,
            summary: "Runs the project's tests, or those that match a pattern",
            schema: json!({
                "type": "object",
                "properties": {
                    "pattern": { "type": "string" },
                    "timeout_ms": { "type": "integer", "minimum": 1 },
                    "coverage": { "type": "boolean" },
                },
                "additionalProperties": false,
            }),
            effect: Effect::Some,
            shape: super::shape(name),
        }
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
        let look = desk.see(&view, vec![layer.path().to_owned()])?;
        let before = (wants_baseline && !untouched).then(|| {
            let bare =
                View::new(Arc::clone(&view.tree), Arc::clone(&view.blobs), StagedFiles::default());
            desk.see(&bare, Vec::new())
        });
        // Both at the same time: neither sees the other.
        let (tested, baseline) = std::thread::scope(|scope| {
            let baseline = before.map(|look| {
                let all = Wanted { pattern: None, timeout: wanted.timeout, coverage: false };
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
            desk.happened(clerk, Event::BaselineRan(baseline?.run))?;
        }
        let tested = tested?;
        desk.tell(&tested);
        if wants_baseline && untouched && tested.run.extent() == Extent::Whole {
            desk.happened(clerk, Event::BaselineRan(tested.run.clone()))?;
        }
        let transition = desk.happened(clerk, Event::TestsRan(tested.run.clone()))?;
        Ok(answer(&tested, &transition))
    }
}

impl Wanted {
    fn of(params: &Json) -> Result<Self, ToolError> {
        let get = |name: &str| params.value().get(name);
        let pattern = get("pattern").and_then(Value::as_str).map(Pattern::parse).transpose();
        Ok(Self {
            pattern: pattern.map_err(|error| ToolError(error.to_string()))?,
            timeout: get("timeout_ms").and_then(Value::as_u64).map(Span::from_ms),
            coverage: get("coverage").and_then(Value::as_bool).unwrap_or(false),
        })
    }
}

impl Desk {
    /// Looks at the project as one view has it.
    fn see(&self, view: &View, layers: Vec<PathBuf>) -> Result<Look, ToolError> {
        let (files, texts) = view.manifests().map_err(|error| failed(&error))?;
        let suites = match &self.test_command {
            Some(argv) => vec![Suite::configured(argv.clone())],
            None => detect(&Project { files: &files, texts: &texts }),
        };
        let hidden = self.hidden(view)?;
        Ok(Look { layers, suites, files: files.into_iter().collect(), hidden })
    }

    /// What the rules do not let the model read, and so no job may see.
    pub(crate) fn hidden(&self, view: &View) -> Result<Vec<ProjectPath>, ToolError> {
        let mut files = view.all_files().map_err(|error| failed(&error))?.files;
        files.retain(|path| self.may("fs.read", path) != May::Yes);
        Ok(files)
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
        match self.workshop.test(&sight, &plan, &watcher) {
            // A project without tests has none that could fail.
            Err(TestsError::NoSuite) => nothing(wanted),
            tested => tested.map_err(|error| failed(&error)),
        }
    }

    /// The coverage of the project as it is, without the session's changes.
    pub(crate) fn coverage(&self) -> Result<Lines, String> {
        let view = self.view();
        let bare = View::new(view.tree, view.blobs, StagedFiles::default());
        let look = self.see(&bare, Vec::new()).map_err(|error| error.0)?;
        let wanted = Wanted { pattern: None, timeout: None, coverage: true };
        let tested = self.test(&look, &wanted).map_err(|error| error.0)?;
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

    fn tell(&self, tested: &Tested) {
        let failed = tested.run.cases().filter(|(_, case)| case.outcome == Outcome::Failed);
        let failed = failed.map(|(id, _)| id.to_owned());
        let broken = broken(&tested.run).map(|file| format!("{file}: it cannot be built"));
        self.observer.notice(Told::TestsFinished {
            passed: tested.summary.passed,
            failed: failures(tested),
            skipped: tested.summary.skipped,
            ids_failed: broken.chain(failed).take(TOLD).collect(),
        });
    }
}

/// Files that could not be built, so that none of their tests ran.
fn broken(run: &TestRun) -> impl Iterator<Item = &ProjectPath> {
    run.broken().into_iter().flatten()
}

/// What failed: a file that cannot be built counts as one.
fn failures(tested: &Tested) -> usize {
    tested.summary.failed + broken(&tested.run).count()
}

/// The run of a project that has no tests.
fn nothing(wanted: &Wanted) -> Result<Tested, ToolError> {
    let extent = if wanted.pattern.is_some() { Extent::Part } else { Extent::Whole };
    let run = TestRun::new(extent, []).map_err(|error| failed(&error))?;
    Ok(Tested { run, summary: crate::workshop::TestSummary::default(), coverage: Vec::new() })
}

/// What the model is told of a run.
fn answer(tested: &Tested, transition: &Transition) -> Value {
    let summary = &tested.summary;
    let mut told = json!({
        "passed": summary.passed,
        "failed": failures(tested),
        "skipped": summary.skipped,
        "state": transition.to.name(),
    });
    let Value::Object(members) = &mut told else { return told };
    if !summary.failures.is_empty() {
        let failures = summary.failures.iter();
        let failures: Vec<Value> =
            failures.map(|(id, message)| json!({ "test": id, "message": message })).collect();
        members.insert("failures".to_owned(), failures.into());
    }
    if !summary.problems.is_empty() {
        members.insert("problems".to_owned(), json!(summary.problems));
    }
    if summary.suites.is_empty() {
        members.insert("note".to_owned(), json!("the project has no tests that are known here"));
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
