//! Where the session goes on by itself: finished work is reviewed, merged and committed.
//!
//! **Invariant.** Each of these steps is a request like the model's own. What the session adds is that nobody has
//! to ask for it.

use fluffy_base::{Json, KernelReceipt, ProjectPath, ReceiptStatus};
use fluffy_workflow::{Access, Answer, Event, Mode, State};
use serde_json::{Map, Value, json};

use super::budget::BASELINE;
use super::desk::Progress;
use super::rules::Proposed;
use super::{Entry, MERGE, Session, TaskStatus};
use crate::clerk::May;
use crate::files::Staged;
use crate::git::{GitError, HookAnswer};
use crate::merge::Plan;

/// More changed lines than this are looked at by a person.
const LINES_WITHOUT_A_PERSON: u64 = 500;

/// The longest first line of a commit message that the session makes by itself.
const SUBJECT: usize = 72;

/// Enough for the longest way from any state to the end.
const MOST_STEPS: usize = 8;

impl Session {
    /// Takes the work further after a call, where its guards are met; what the model is told of it.
    pub(super) fn go_on(&self) -> Option<Map<String, Value>> {
        (self.state() == State::Reviewing).then(|| self.review())
    }

    /// A call that begins something new while the last piece of work waits to be committed, or is committed.
    pub(super) fn reopen(&self) {
        if self.state() == State::Committing {
            let _committed = self.commit(None);
        }
        if self.state() == State::Idle && self.is_done().is_none() {
            let _moved = self.desk.happened(&*self.kernel, Event::TaskStarted);
        }
    }

    /// Brings the work to its end, as far as that is possible now: validated, reviewed, merged, committed.
    pub fn bring_to_end(&self, summary: &str) -> TaskStatus {
        let status = match self.go_to_end(summary) {
            TaskStatus::Working { missing } => {
                TaskStatus::Working { missing: self.desk.look().with_runner_advice(missing) }
            }
            done @ TaskStatus::Done { .. } => done,
        };
        let stuck = match &status {
            TaskStatus::Working { missing } => Some(missing.clone()),
            TaskStatus::Done { .. } => None,
        };
        self.desk.change().set(|inside| inside.progress.stuck = stuck);
        status
    }

    fn go_to_end(&self, summary: &str) -> TaskStatus {
        self.desk.change().set(|inside| inside.progress.stuck = None);
        if let Some(missing) = self.refusal() {
            return TaskStatus::Working { missing };
        }
        for _step in 0..MOST_STEPS {
            let before = self.state();
            let moved = match before {
                State::Idle => break,
                State::Planning if self.has_changes() => self.happens(Event::PlanCompleted),
                State::Planning => break,
                State::TestWriting | State::CodeWriting | State::Exploring
                    if self.has_changes() =>
                {
                    self.happens(Event::CodeCompleted)
                }
                State::TestWriting | State::CodeWriting | State::Exploring => break,
                State::RetroactiveTesting => self.happens(Event::TestsCompleted),
                State::Validating => self.validate(),
                State::Reviewing => {
                    self.review();
                    self.refusal().map_or(Ok(()), Err)
                }
                State::Committing => self.commit(Some(summary)),
            };
            if let Err(missing) = moved {
                return TaskStatus::Working { missing };
            }
            // Work that failed to be validated went back, and would fail again.
            if matches!(before, State::Validating) && self.state() != State::Reviewing {
                break;
            }
            if self.state() == before {
                break;
            }
        }
        self.how_far(summary)
    }

    /// The model has nothing more to ask for: the work is brought to its end, and the task is done or not.
    pub fn finish(&self, text: &str) -> TaskStatus {
        let _at_work = self.steering.model();
        let status = self.bring_to_end(text);
        if matches!(status, TaskStatus::Working { .. }) {
            return status;
        }
        let completed = Json::new(json!({ "summary": text })).map_err(|error| error.to_string());
        let completed = completed
            .and_then(|params| accepted(self.submit(&self.own_id(), "task.complete", params)));
        match completed {
            Ok(_) => status,
            Err(missing) => TaskStatus::Working { missing },
        }
    }

    /// How far the task is.
    fn how_far(&self, summary: &str) -> TaskStatus {
        match self.desk.look().missing() {
            Some(missing) => TaskStatus::Working { missing },
            None => TaskStatus::Done { summary: summary.to_owned() },
        }
    }

    fn has_changes(&self) -> bool {
        self.desk.look().has_changes()
    }

    /// What the session does by itself. Whoever asked for the end is told what is missing, and not which step
    /// was tried.
    fn happens(&self, event: Event) -> Result<(), String> {
        let tried = self.desk.look().workflow.clone().apply(event.clone());
        if let Err(error) = tried {
            return Err(format!("{}; {}", error.why, error.fix));
        }
        self.desk.happened(&*self.kernel, event).map(drop).map_err(|error| error.0)
    }

    /// Runs the tests once. What keeps the work from going further is told, and not tried again.
    fn validate(&self) -> Result<(), String> {
        // Untested work is paid for by coverage, so it is measured where the project keeps account of it.
        let paid = !self.mode().is_test_first();
        let paid = paid && self.desk.budget().is_ok_and(|budget| budget.baseline().is_some());
        let params = if paid { json!({ "coverage": true }) } else { json!({}) };
        let params = Json::new(params).map_err(|error| error.to_string())?;
        let found = accepted(self.submit(&self.own_id(), "test.run", params))?;
        let hindrance = found.as_ref().and_then(|found| found.value().get("not_further"));
        match hindrance.and_then(Value::as_str) {
            Some(why) => Err(format!("the tests were run, and the work is not done: {why}")),
            None => Ok(()),
        }
    }

    /// Has the finished work judged, and merges it if the answer is yes.
    pub(super) fn review(&self) -> Map<String, Value> {
        let mut told = match self.propose() {
            Ok(files) => json!({ "merged": files }),
            Err(why) => {
                self.reject(&why);
                json!({ "rejected": why })
            }
        };
        let (state, mode) = (self.state(), self.mode());
        if let Value::Object(members) = &mut told {
            members.insert("next".to_owned(), json!(next_step(state, mode)));
        }
        let members = [("merge".to_owned(), told), ("state".to_owned(), json!(state.name()))];
        members.into_iter().collect()
    }

    /// Why this very work was not agreed to, if it was not; only other work is tried again.
    fn refusal(&self) -> Option<String> {
        let inside = self.desk.look();
        inside.refusal().map(|why| format!("the merge was not agreed to: {why}"))
    }

    fn propose(&self) -> Result<Vec<String>, String> {
        if let Some(why) = self.desk.look().refusal() {
            return Err(why.to_owned());
        }
        self.settle_baseline()?;
        let (plan, mut reasons) = self.plan()?;
        self.hooks_agree()?;
        let paths = plan.operations().iter().map(|operation| operation.path.to_string());
        let paths: Vec<String> = paths.collect();
        let digest = plan.digest().to_string();
        let params = json!({ "plan": digest, "paths": paths });
        let params = Json::new(params).map_err(|error| error.to_string())?;
        reasons.sort();
        self.proposal.set(Some(Proposed { plan: digest, reasons }));
        let receipt = self.submit(&self.own_id(), MERGE, params);
        self.proposal.set(None);
        accepted(receipt).map(|_result| paths)
    }

    /// What would be merged, and why a person has to look at it.
    fn plan(&self) -> Result<(Plan, Vec<String>), String> {
        let coverage = self.coverage_warning();
        let inside = self.desk.look();
        let plan = Plan::of(&inside.staging).map_err(|error| crate::kernel::causes(&error))?;
        if let Some(conflict) = plan.conflicts().first() {
            return Err(format!(
                "`{}` was changed in the project meanwhile, in the same place: the project's \
                 version stays, and the session keeps its own (`fluffy session diff` shows it)",
                conflict.path
            ));
        }
        let mut reasons = Vec::new();
        let diff =
            plan.diff(inside.staging.blobs()).map_err(|error| crate::kernel::causes(&error))?;
        let shown = |path: &ProjectPath| {
            let staged = inside.staging.files().get(path);
            staged.is_some_and(|staged| is_shown(&inside.progress, path, staged))
        };
        // What a person has agreed to when packages were installed need not be read again.
        let unseen = diff.files().iter().filter(|file| !shown(&file.path));
        let lines: u64 = unseen.map(|file| file.size).sum();
        if !diff.is_whole() || diff.files().iter().any(|file| file.opaque) {
            reasons.push("not all of the change can be shown as lines of text".to_owned());
        }
        if lines > LINES_WITHOUT_A_PERSON {
            reasons.push(format!(
                "the change has {lines} lines, and more than {LINES_WITHOUT_A_PERSON} are looked at"
            ));
        }
        if inside.workflow.is_unverified() {
            reasons.push("code was written without a failing test before it".to_owned());
            reasons.extend(coverage);
        }
        for path in plan.rebased() {
            reasons.push(format!(
                "`{path}` was changed in the project meanwhile; both changes are put together, and \
                 were not tested together"
            ));
        }
        // The session's own, which was settled right before: no other call can change it.
        let is_work = |path: &ProjectPath| path.as_str() != BASELINE;
        for (path, staged) in inside.staging.files().iter().filter(|(path, _)| is_work(path)) {
            let tool = match staged {
                Staged::File(_) => "fs.write",
                Staged::Deleted => "fs.delete",
            };
            match self.kernel.may(tool, path) {
                May::Yes => {}
                // A person has agreed to this very content when packages were installed.
                May::Ask if is_shown(&inside.progress, path, staged) => {}
                May::Ask => {
                    reasons.push(format!("`{path}` is one of the files that a person looks at"))
                }
                May::No => return Err(format!("the policy does not let `{path}` be changed")),
            }
        }
        Ok((plan, reasons))
    }

    /// Whether the repository's own hook has nothing against the work.
    fn hooks_agree(&self) -> Result<(), String> {
        let layer = self.desk.layer();
        let paths: Vec<_> =
            self.desk.look().staging.files().iter().map(|(path, _)| path.clone()).collect();
        let layers = [layer.path().to_owned()];
        match self.desk.git.pre_commit(self.desk.commits.hooks, &layers, &paths) {
            Ok(HookAnswer::Refused { ended, output }) => {
                Err(format!("the repository's pre-commit hook {ended}: {output}"))
            }
            Ok(HookAnswer::None | HookAnswer::Skipped | HookAnswer::Passed { .. }) => Ok(()),
            // Without a repository there is no hook to ask.
            Err(GitError::NotARepository | GitError::NoGit) => Ok(()),
            Err(error) => Err(crate::kernel::causes(&error)),
        }
    }

    fn reject(&self, why: &str) {
        let entry = Entry::MergeRejected { why: why.to_owned() };
        // What cannot be recorded halts the kernel, and the next request says so.
        let _recorded = self.record(&entry);
        self.desk.change().set(|inside| {
            inside.progress.rejected = Some(why.to_owned());
            inside.progress.refused_work = Some(inside.staging.files());
        });
        let _moved = self.happens(Event::ReviewAnswered(Answer::Rejected));
    }

    /// Commits what was merged, with a message of the session's own.
    fn commit(&self, summary: Option<&str>) -> Result<(), String> {
        let given = summary.filter(|text| !fluffy_base::is_blank(text));
        let task = self.desk.look().progress.task.clone();
        let text = given.unwrap_or(&task);
        let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("fluffy");
        let mut subject: String = first.chars().take(SUBJECT).collect();
        if first.chars().nth(SUBJECT).is_some() {
            subject.pop();
            subject.push('…');
        }
        let rest = (subject.as_str() != text.trim()).then(|| format!("\n\n{}", text.trim()));
        let message = subject + &rest.unwrap_or_default();
        let params = Json::new(json!({ "message": message })).map_err(|error| error.to_string())?;
        accepted(self.submit(&self.own_id(), "git.commit", params)).map(drop)
    }
}

/// Whether a person was shown what is staged for a file when packages were installed.
fn is_shown(progress: &Progress, path: &ProjectPath, staged: Staged) -> bool {
    match staged {
        Staged::File(stored) => progress.was_shown(path, &stored.digest),
        Staged::Deleted => false,
    }
}

fn accepted(receipt: KernelReceipt) -> Result<Option<Json>, String> {
    match receipt.status {
        ReceiptStatus::Accepted => Ok(receipt.tool_result),
        ReceiptStatus::Rejected | ReceiptStatus::Failed => {
            Err(receipt.error.unwrap_or_else(|| "it was refused".to_owned()))
        }
    }
}

/// What to do next, in words for the model.
pub(super) const fn next_step(state: State, mode: Mode) -> &'static str {
    match (state, mode) {
        (State::Idle, _) => "nothing is left to do; call `task.complete`",
        (State::Planning, Mode::Strict) => "read what you need, then write a failing test",
        (State::Planning, _) => "read what you need, then write the change",
        (State::TestWriting, _) => {
            "write tests for the task and call `test.run`: at least one must fail"
        }
        (State::CodeWriting, _) => {
            "write the code until `test.run` passes; the tests are read-only now"
        }
        (State::Validating, _) => "call `test.run` without a pattern",
        (State::Reviewing, _) => "wait for the review",
        (State::Committing, _) => "call `git.commit` or `task.complete`",
        (State::Exploring, Mode::Strict) => "change the exempt files, then call `task.complete`",
        (State::Exploring, _) => "write the change, run the tests, then call `task.complete`",
        (State::RetroactiveTesting, _) => "add tests for the change, then call `tests.complete`",
    }
}

/// Whether a tool can do something where the work stands.
pub(super) fn is_of_use(tool: &str, state: State, access: Access) -> bool {
    let writes = access == Access::Write;
    match tool {
        "fs.write" | "fs.edit" | "fs.delete" => {
            writes && !matches!(state, State::Validating | State::Reviewing | State::Committing)
        }
        "deps.install" => {
            writes && !matches!(state, State::Validating | State::Reviewing | State::Committing)
        }
        "git.commit" => writes && state == State::Committing,
        "plan.complete" => state == State::Planning,
        "tests.complete" => writes && state == State::RetroactiveTesting,
        "code.complete" => writes && matches!(state, State::CodeWriting | State::Exploring),
        "workflow.request_exemption" => {
            writes && !matches!(state, State::Validating | State::Reviewing | State::Committing)
        }
        _always => true,
    }
}

/// What came of a call, in a few words for whoever watches.
pub(super) fn result_summary(tool: &str, content: &Value) -> String {
    let number = |name: &str| content.get(name).and_then(Value::as_u64);
    let text = |name: &str| content.get(name).and_then(Value::as_str);
    if content.get("error").is_some() {
        return String::new();
    }
    match tool {
        "fs.read" => {
            number("total_lines").map_or_else(String::new, |lines| format!("{lines} lines"))
        }
        "fs.write" | "fs.edit" | "fs.delete" => number("step")
            .map_or_else(|| "nothing changed".to_owned(), |step| format!("step {step}")),
        "test.run" => {
            let counted = |name: &str| number(name).unwrap_or_default();
            format!("{} passed, {} failed", counted("passed"), counted("failed"))
        }
        "shell.run" => {
            let end = text("end").unwrap_or_default();
            match content.get("not_taken") {
                Some(_) => format!("{end}; its files were not taken"),
                None => end.to_owned(),
            }
        }
        "deps.install" => number("packages").map_or_else(String::new, |count| match count {
            1 => "1 package".to_owned(),
            count => format!("{count} packages"),
        }),
        "search.grep" | "search.glob" => {
            number("count").map_or_else(String::new, |count| format!("{count} found"))
        }
        "git.commit" => text("commit").unwrap_or("not committed").chars().take(12).collect(),
        _other => String::new(),
    }
}
