//! The state machine of a session's work.
//!
//! [`Workflow::apply`] takes what happened and says where the work stands now, or why that cannot have
//! happened. It is a function of the events alone: the same events lead to the same place, whether they
//! are applied in one go or over a restart.
//!
//! **Invariant.** A refused event changes nothing.
//!
//! **Invariant.** In strict mode code is written only after a run that was red, and reviewed only after
//! one that is green for the same tests. Failing opens no other way: after three failures in a row debug
//! mode is offered to the person, and nothing else changes.

use std::collections::{BTreeMap, BTreeSet};

use fluffy_base::ProjectPath;
use serde::{Deserialize, Serialize};

use crate::colour::{NotGreen, NotRed, Red, green, red};
use crate::coverage::Lines;
use crate::event::{Answer, Change, Consent, Debt, Event};
use crate::exemption::{Exempt, ExemptionGrant};
use crate::paths::PathKind;
use crate::run::TestRun;
use crate::state::{Access, Mode, State};
use crate::writable::{Standing, Writable};

/// After how many failures in a row debug mode is offered.
pub const FAILURES_BEFORE_OFFER: u32 = 3;

/// The most exemptions of one task.
pub const MAX_GRANTS: usize = 64;

/// Files that no program takes an order from: what is left out of commits, images and packages, how an editor indents, and
/// under which terms the project may be used. They need no test and no exemption.
const WITHOUT_CEREMONY: [&str; 9] = [
    ".gitignore",
    ".gitkeep",
    ".dockerignore",
    ".npmignore",
    ".prettierignore",
    ".editorconfig",
    "LICENSE",
    "LICENSE.md",
    "LICENSE.txt",
];

/// Where the work of a session stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workflow {
    pub(crate) state: State,
    pub(crate) mode: Mode,
    pub(crate) access: Access,
    pub(crate) debt: Debt,
    pub(crate) task: Task,
}

/// What is known of the present task; nothing between tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Task {
    pub(crate) changes: BTreeMap<ProjectPath, Changed>,
    pub(crate) grants: Vec<ExemptionGrant>,
    /// A run from before the task's first change.
    pub(crate) before: Option<TestRun>,
    pub(crate) red: Option<Red>,
    /// Runs in a row that were not green.
    pub(crate) failures: u32,
}

/// How a file was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Changed {
    pub(crate) kind: PathKind,
    pub(crate) how: How,
}

/// What stands behind a change, from the most to the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum How {
    /// An exemption.
    Exempt,
    /// Test-first work.
    TestFirst,
    /// Nothing; it adds to the debt.
    Untested,
}

/// A step of the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// Where the work stood.
    pub from: State,
    /// The state that it passed through, if it did.
    pub via: Option<State>,
    /// Where it stands.
    pub to: State,
    /// Why a run of tests did not take it further, if it did not.
    pub hindrance: Option<Hindrance>,
    /// Whether the person should be offered debug mode.
    pub offers_debug: bool,
}

/// Why a run of tests did not take the work further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Hindrance {
    /// Code may not be written yet.
    #[error(transparent)]
    NotRed(#[from] NotRed),
    /// The work may not be reviewed yet.
    #[error(transparent)]
    NotGreen(#[from] NotGreen),
    /// All tests pass, and nothing was done for it.
    #[error("the tests pass, but no code was changed")]
    NoCode,
}

/// An event that cannot have happened where the work stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{event}` is not possible in `{state}` ({mode} mode): {why}")]
pub struct InvalidTransition {
    /// Where the work stands.
    pub state: State,
    /// How strictly it is done.
    pub mode: Mode,
    /// What was told.
    pub event: &'static str,
    /// Why it is not possible.
    pub why: String,
    /// What to do instead.
    pub fix: &'static str,
}

/// Where an event leads.
struct Step {
    via: Option<State>,
    to: State,
    hindrance: Option<Hindrance>,
}

/// Why an event leads nowhere: why, and what to do instead.
struct Refused(String, &'static str);

type Answered = Result<Step, Refused>;

impl Workflow {
    /// The work of a new session.
    pub fn new(mode: Mode, access: Access) -> Self {
        Self { state: State::Idle, mode, access, debt: Debt::Within, task: Task::default() }
    }

    /// The work of a session to which all this has happened.
    pub fn restore(
        mode: Mode,
        access: Access,
        events: impl IntoIterator<Item = Event>,
    ) -> Result<Self, InvalidTransition> {
        let mut workflow = Self::new(mode, access);
        for event in events {
            workflow.apply(event)?;
        }
        Ok(workflow)
    }

    /// Takes note of what happened.
    pub fn apply(&mut self, event: Event) -> Result<Transition, InvalidTransition> {
        let (from, mode, name) = (self.state, self.mode, event.name());
        let step = self.step(event);
        let step = step.map_err(|Refused(why, fix)| InvalidTransition {
            state: from,
            mode,
            event: name,
            why,
            fix,
        })?;
        self.state = step.to;
        if step.to == State::Idle {
            self.task = Task::default();
        }
        let Step { via, to, hindrance } = step;
        Ok(Transition { from, via, to, hindrance, offers_debug: self.offers_debug() })
    }

    /// Where the work stands, as far as writing is concerned.
    pub fn standing(&self) -> Standing {
        Standing { state: self.state, mode: self.mode, access: self.access }
    }

    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What the task's exemptions say of a file.
    pub fn exempts(&self, path: &ProjectPath) -> Exempt {
        if WITHOUT_CEREMONY.contains(&path.file_name()) {
            return Exempt::Yes;
        }
        let said = self.task.grants.iter().map(|grant| grant.exempts(path));
        said.max().unwrap_or(Exempt::No)
    }

    /// What has to become green, while it is known.
    pub fn red(&self) -> Option<&Red> {
        self.task.red.as_ref()
    }

    /// Whether tests that were there before the task fail, and the task has none of its own: the code for
    /// them may be written once the model says that no test is to come ([`Event::TestsCompleted`]).
    pub fn has_failing_tests_of_others(&self) -> bool {
        self.red_by_others().is_some()
    }

    fn red_by_others(&self) -> Option<Red> {
        let waits = self.state == State::TestWriting
            && self.access == Access::Write
            && self.written_tests().is_empty();
        self.task.before.as_ref().filter(|_| waits).and_then(Red::by_others)
    }

    /// Whether there is a run from before the task to hold others against. Without one, tests that
    /// were there before and are taken out before the first failing run are not missed; the project's
    /// own tree can be run for it at any time before code is written.
    pub fn has_baseline(&self) -> bool {
        self.task.before.is_some()
    }

    /// Whether the task has changes that no test came before and no exemption covers: its merge is to
    /// be marked as unverified, and it is paid for by the coverage budget.
    pub fn is_unverified(&self) -> bool {
        self.task.changes.values().any(|changed| changed.how == How::Untested)
    }

    /// Whether the work has failed so often in a row that the person should be offered debug mode.
    pub fn offers_debug(&self) -> bool {
        self.mode != Mode::Debug && self.task.failures >= FAILURES_BEFORE_OFFER
    }

    fn step(&mut self, event: Event) -> Answered {
        match event {
            Event::TaskStarted => self.task_started(),
            Event::BaselineRan(run) => self.baseline_ran(run),
            Event::PlanCompleted => self.plan_completed(),
            Event::FilesChanged(changes) => self.files_changed(changes),
            Event::DependenciesChanged(paths) => self.dependencies_changed(paths),
            Event::ExemptionGranted(grant) => self.exemption_granted(grant),
            Event::TestsCompleted => self.tests_completed(),
            Event::TestsRan(run) => Ok(self.tests_ran(&run)),
            Event::CodeCompleted => self.code_completed(),
            Event::ReviewAnswered(answer) => self.review_answered(answer),
            Event::Committed => self.committed(),
            Event::TaskCompleted => self.task_completed(),
            Event::ModeSet { mode, consent } => self.mode_set(mode, consent),
            Event::DebtMeasured(debt) => {
                self.debt = debt;
                Ok(Step::to(self.state))
            }
            Event::CoverageKept(lines) => self.coverage_kept(lines),
            Event::Cancelled => Ok(Step::to(State::Idle)),
        }
    }

    fn task_started(&self) -> Answered {
        match self.state {
            State::Idle => Ok(Step::to(State::Planning)),
            _under_way => refuse("a task is under way", "finish it, or cancel it"),
        }
    }

    fn baseline_ran(&mut self, run: TestRun) -> Answered {
        match self.state {
            State::Planning | State::TestWriting | State::Exploring
                if self.task.before.is_none() =>
            {
                self.task.before = Some(run);
                Ok(Step::to(self.state))
            }
            State::Planning | State::TestWriting | State::Exploring => {
                refuse("there is a run from before this task already", "go on")
            }
            State::Idle => refuse("there is no task", START),
            State::CodeWriting
            | State::Validating
            | State::Reviewing
            | State::Committing
            | State::RetroactiveTesting => refuse(
                "what later runs are held against is settled by now",
                "run the tests before the code is written",
            ),
        }
    }

    fn plan_completed(&self) -> Answered {
        match (self.state, self.mode) {
            (State::Planning, Mode::Strict) => Ok(Step::to(State::TestWriting)),
            (State::Planning, Mode::Explore | Mode::Debug) => Ok(Step::to(State::Exploring)),
            // Exempt files turned out not to be all that the task needs.
            (State::Exploring, Mode::Strict) => Ok(Step::to(State::TestWriting)),
            (State::Idle, _) => refuse("there is no task", START),
            _later => refuse("the plan is already completed", "go on with the work"),
        }
    }

    fn files_changed(&mut self, changes: Vec<Change>) -> Answered {
        let mut changed = self.task.changes.clone();
        for Change { path, kind, type_only } in changes {
            let exempt = self.exempts(&path);
            match self.standing().writable(kind, exempt) {
                Writable::Yes => {}
                Writable::IfTypeOnly if type_only => {}
                Writable::IfTypeOnly => {
                    let why = format!("`{path}` is exempt for changes of types, and this is more");
                    return Err(Refused(why, "change nothing but types, or write a test first"));
                }
                Writable::No(frozen) => {
                    let why = format!("`{path}` may not be written: {}", frozen.why);
                    return Err(Refused(why, frozen.instead));
                }
            }
            let is_exempt = match exempt {
                Exempt::Yes => true,
                Exempt::IfTypeOnly => type_only,
                Exempt::No => false,
            };
            let how = match self.mode {
                _any if is_exempt && !kind.is_frozen_with_tests() => How::Exempt,
                Mode::Strict => How::TestFirst,
                Mode::Explore | Mode::Debug => How::Untested,
            };
            let known = changed.entry(path).or_insert(Changed { kind, how });
            known.how = known.how.max(how);
        }
        self.task.changes = changed;
        Ok(Step::to(self.state))
    }

    /// What a package manager writes needs no test of its own: what the tests find is judged as always.
    fn dependencies_changed(&mut self, paths: Vec<ProjectPath>) -> Answered {
        match self.state {
            State::Planning
            | State::TestWriting
            | State::CodeWriting
            | State::Exploring
            | State::RetroactiveTesting => {}
            State::Idle => return refuse("there is no task", START),
            State::Validating | State::Reviewing | State::Committing => {
                return refuse("nothing is installed here", "install when the work goes on");
            }
        }
        if self.access == Access::ReadOnly {
            return refuse("the session is read-only", "read and explain");
        }
        for path in paths {
            let exempt = Changed { kind: PathKind::Other, how: How::Exempt };
            let known = self.task.changes.entry(path).or_insert(exempt);
            known.how = known.how.max(How::Exempt);
        }
        Ok(Step::to(self.state))
    }

    fn exemption_granted(&mut self, grant: ExemptionGrant) -> Answered {
        match self.state {
            State::Planning
            | State::TestWriting
            | State::CodeWriting
            | State::Exploring
            | State::RetroactiveTesting => {}
            State::Idle => return refuse("there is no task", START),
            State::Validating | State::Reviewing | State::Committing => {
                return refuse("nothing is written here", "ask again when the work goes on");
            }
        }
        if self.access == Access::ReadOnly {
            return refuse("the session is read-only", "read and explain");
        }
        if self.task.grants.len() >= MAX_GRANTS {
            return refuse("the task has too many exemptions", "name more files in one request");
        }
        grant.request.check_form().map_err(|error| Refused(error.to_string(), "ask again"))?;
        self.task.grants.push(grant);
        Ok(Step::to(self.state))
    }

    fn tests_completed(&mut self) -> Answered {
        if let Some(red) = self.red_by_others() {
            self.task.red = Some(red);
            return Ok(Step::to(State::CodeWriting));
        }
        match self.state {
            State::RetroactiveTesting if self.has_changed(PathKind::Test) => {
                Ok(Step::to(State::Validating))
            }
            State::RetroactiveTesting => refuse("no test was written", "write the tests"),
            State::TestWriting => refuse(
                "tests must exist, have been run, and at least one must fail",
                "call `test.run`: a run in which a test of this task fails opens the code",
            ),
            State::Idle
            | State::Planning
            | State::CodeWriting
            | State::Validating
            | State::Reviewing
            | State::Committing
            | State::Exploring => refuse("no tests are being written", "go on with the work"),
        }
    }

    fn code_completed(&self) -> Answered {
        match self.state {
            State::CodeWriting if self.has_changed_code() => Ok(Step::to(State::Validating)),
            State::Exploring if !self.task.changes.is_empty() => Ok(Step::to(State::Validating)),
            State::CodeWriting | State::Exploring => {
                refuse("no code was changed", "write the code, then say so")
            }
            State::TestWriting if self.is_all_exempt() => {
                Ok(Step { via: Some(State::Exploring), ..Step::to(State::Validating) })
            }
            State::TestWriting => refuse(
                "tests must exist, have been run, and at least one must fail",
                "write a test for the change and run it with `test.run`",
            ),
            State::Idle => refuse("there is no task", START),
            State::Planning => refuse("there is no plan yet", "call `plan.complete`"),
            State::Validating => refuse("the code is already complete", "call `test.run`"),
            State::RetroactiveTesting => {
                refuse("tests are being added", "write them and call `tests.complete`")
            }
            State::Reviewing | State::Committing => {
                refuse("the work is already validated", "wait for the answer")
            }
        }
    }

    fn review_answered(&self, answer: Answer) -> Answered {
        if self.state != State::Reviewing {
            return refuse("nothing is under review", "finish the work, so that its tests pass");
        }
        match answer {
            Answer::Approved if self.is_unverified() && self.debt == Debt::Exhausted => {
                refuse(LOCKED, "add tests before the merge, or cancel and work in strict mode")
            }
            Answer::Approved => Ok(Step::to(State::Committing)),
            Answer::Rejected => Ok(Step::to(self.workplace())),
            Answer::TestsFirst if self.mode.is_test_first() => {
                refuse("strict work has its tests", "approve the merge, or reject it")
            }
            Answer::TestsFirst => Ok(Step::to(State::RetroactiveTesting)),
        }
    }

    fn committed(&self) -> Answered {
        match self.state {
            State::Committing => Ok(Step::to(State::Idle)),
            _earlier => refuse(
                "the merge must be approved before committing",
                "finish the work, so that its merge is approved",
            ),
        }
    }

    /// Untested work raises nothing; whatever was to be raised can be left as it is.
    fn coverage_kept(&self, lines: Option<Lines>) -> Answered {
        match (self.state, lines) {
            (State::Reviewing, Some(_)) if !self.mode.is_test_first() => refuse(
                "only work with tests first raises the coverage baseline",
                "work in strict mode",
            ),
            (State::Reviewing, _) => Ok(Step::to(self.state)),
            _elsewhere => refuse(
                "the coverage baseline is a part of finished work",
                "finish the work, so that its tests pass",
            ),
        }
    }

    fn task_completed(&self) -> Answered {
        match self.state {
            State::Idle => refuse("there is no task", START),
            _any if self.task.changes.is_empty() => Ok(Step::to(State::Idle)),
            _any => refuse(
                "changes of this task are not committed",
                "bring them to the end: tests, code, review, commit",
            ),
        }
    }

    /// Whether a file of this kind was changed.
    fn has_changed(&self, kind: PathKind) -> bool {
        self.task.changes.values().any(|changed| changed.kind == kind)
    }

    fn has_changed_code(&self) -> bool {
        self.has_changed(PathKind::Source) || self.has_changed(PathKind::Other)
    }

    /// Whether there are changes, and exemptions cover all of them.
    fn is_all_exempt(&self) -> bool {
        let mut changes = self.task.changes.values();
        !self.task.changes.is_empty() && changes.all(|changed| changed.how == How::Exempt)
    }

    /// Where files are written in this task, once the work goes back there.
    fn workplace(&self) -> State {
        match self.mode {
            Mode::Strict if self.task.red.is_some() => State::CodeWriting,
            Mode::Strict | Mode::Explore | Mode::Debug => State::Exploring,
        }
    }
}

/// What runs of tests mean.
impl Workflow {
    fn tests_ran(&mut self, run: &TestRun) -> Step {
        match self.state {
            State::TestWriting => self.ran_before_code(run),
            State::CodeWriting => self.ran_with_code(run),
            State::Validating => self.ran_to_validate(run),
            State::Idle
            | State::Planning
            | State::Reviewing
            | State::Committing
            | State::Exploring
            | State::RetroactiveTesting => Step::to(self.state),
        }
    }

    fn ran_before_code(&mut self, run: &TestRun) -> Step {
        match red(self.task.before.as_ref(), run, &self.written_tests()) {
            Ok(red) => {
                self.task.red = Some(red);
                Step::to(State::CodeWriting)
            }
            Err(why) => Step::hindered(State::TestWriting, why),
        }
    }

    fn ran_with_code(&mut self, run: &TestRun) -> Step {
        match self.judged(run) {
            Ok(()) if self.has_changed_code() => {
                Step { via: Some(State::Validating), ..Step::to(State::Reviewing) }
            }
            Ok(()) => Step::hindered(State::CodeWriting, Hindrance::NoCode),
            Err(why) => Step::hindered(State::CodeWriting, why),
        }
    }

    fn ran_to_validate(&mut self, run: &TestRun) -> Step {
        match self.judged(run) {
            Ok(()) => Step::to(State::Reviewing),
            // Nothing is known to be wrong; the rest of the tests is still to be run.
            Err(NotGreen::Part) => Step::hindered(State::Validating, NotGreen::Part),
            Err(why) => Step::hindered(self.workplace(), why),
        }
    }

    /// Whether a run is green, counting failures in a row.
    fn judged(&mut self, run: &TestRun) -> Result<(), NotGreen> {
        let answer = match self.mode {
            Mode::Strict => green(self.task.before.as_ref(), self.task.red.as_ref(), run),
            Mode::Explore | Mode::Debug => green(self.untouched_before().as_ref(), None, run),
        };
        match &answer {
            Ok(()) => self.task.failures = 0,
            Err(NotGreen::Part) => {}
            Err(_worse) => self.task.failures = self.task.failures.saturating_add(1),
        }
        answer
    }

    /// What was there before, but for tests of files that this task changed: tests may be taken out
    /// where they may be written, and the coverage budget notices.
    fn untouched_before(&self) -> Option<TestRun> {
        let written = self.written_tests();
        self.task.before.clone().map(|run| run.without(&written))
    }

    fn written_tests(&self) -> BTreeSet<ProjectPath> {
        let tests = self.task.changes.iter().filter(|(_, it)| it.kind == PathKind::Test);
        tests.map(|(path, _)| path.clone()).collect()
    }
}

/// Changes of mode.
impl Workflow {
    fn mode_set(&mut self, mode: Mode, consent: Consent) -> Answered {
        if mode == self.mode {
            return Ok(Step::to(self.state));
        }
        if mode == Mode::Debug && consent != Consent::Person {
            return refuse("a person has to agree to debug mode", "ask the user");
        }
        if !mode.is_test_first() && self.debt == Debt::Exhausted {
            return refuse(LOCKED, "work in strict mode until the coverage is won back");
        }
        let to = match (self.state, mode.is_test_first()) {
            (State::Idle | State::Planning, _) => self.state,
            (State::TestWriting | State::CodeWriting | State::Exploring, false) => {
                if self.mode.is_test_first() && consent != Consent::Person {
                    let why = "a person has to agree to leave tests behind during a task";
                    return refuse(why, "ask the user");
                }
                State::Exploring
            }
            (State::Exploring, true) if self.task.changes.is_empty() || self.is_all_exempt() => {
                State::TestWriting
            }
            (State::TestWriting | State::CodeWriting | State::Exploring, true) => {
                return refuse("code was written without tests", "finish the task, or cancel it");
            }
            (
                State::Validating
                | State::Reviewing
                | State::Committing
                | State::RetroactiveTesting,
                _,
            ) => {
                return refuse(
                    "finished work is judged by the mode it was done in",
                    "wait until it is committed or rejected, or cancel it",
                );
            }
        };
        self.mode = mode;
        self.leave_behind();
        Ok(Step::to(to))
    }

    /// What was begun in one mode is not finished in another: what was red will not be green, so
    /// what came after it is untested.
    fn leave_behind(&mut self) {
        self.task.failures = 0;
        self.task.red = None;
        let begun = self.task.changes.values_mut().filter(|it| it.how == How::TestFirst);
        begun.for_each(|changed| changed.how = How::Untested);
    }
}

const START: &str = "wait for the user to say what is to be done";
const LOCKED: &str = "coverage has dropped too far for more untested changes";

fn refuse<T>(why: &str, fix: &'static str) -> Result<T, Refused> {
    Err(Refused(why.to_owned(), fix))
}

impl Step {
    fn to(to: State) -> Self {
        Self { via: None, to, hindrance: None }
    }

    fn hindered(to: State, why: impl Into<Hindrance>) -> Self {
        Self { via: None, to, hindrance: Some(why.into()) }
    }
}

#[cfg(test)]
mod tests;
