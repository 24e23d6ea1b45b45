//! From the model's calls to requests and back.
//!
//! Calls of one turn run at the same time unless they touch the same files; what is neither a read nor a write
//! of named files runs alone. Their order is that of the turn wherever it could matter.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use fluffy_base::{
    Decision, Event as Told, Excerpt, Json, KernelReceipt, KernelRequest, ProjectPath,
    ReceiptStatus,
};
use fluffy_policy::Subject;
use fluffy_workflow::{Event, Exempt, Part, Standing, State};
use serde_json::{Value, json};

use super::installations::{Installations, installations_of};
use super::{CallAnswer, Entry, ModelCall, OFFERED, RESOLVE, Session};
use crate::clerk::MODEL;
use crate::dependencies::INSTALL;
use crate::{CallContext, Effect};

/// How many calls run at a time.
const AT_A_TIME: usize = 8;

/// What a new project says about itself first.
const MANIFESTS: [&str; 8] = [
    "package.json",
    "tsconfig.json",
    "Cargo.toml",
    "pyproject.toml",
    "requirements.txt",
    "requirements-dev.txt",
    "go.mod",
    "composer.json",
];

/// How much of a call a summary repeats.
const SHOWN: usize = 80;

/// What a call touches.
#[derive(Debug, PartialEq, Eq)]
enum Touch {
    /// Reads these files, or the whole project.
    Reads(Vec<ProjectPath>, bool),
    /// Writes these files.
    Writes(Vec<ProjectPath>),
    /// Anything.
    Anything,
}

impl Touch {
    /// Whether two calls must not run at the same time.
    fn conflicts(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Anything, _) | (_, Self::Anything) => true,
            (Self::Reads(..), Self::Reads(..)) => false,
            (Self::Reads(_, true), Self::Writes(_)) | (Self::Writes(_), Self::Reads(_, true)) => {
                true
            }
            (Self::Reads(a, false) | Self::Writes(a), Self::Reads(b, false) | Self::Writes(b)) => {
                a.iter().any(|a| b.iter().any(|b| overlap(a, b)))
            }
        }
    }
}

/// Whether one path is the other, or lies in it.
fn overlap(a: &ProjectPath, b: &ProjectPath) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

impl Session {
    /// Answers the calls of one turn, each in its place.
    pub fn call(&self, calls: &[ModelCall]) -> Vec<CallAnswer> {
        let _at_work = self.steering.model();
        let mut answers = Vec::with_capacity(calls.len());
        let mut rest = calls;
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(self.batch(rest));
            match batch {
                [call] => answers.push(self.in_order(call, calls, &answers)),
                batch => answers.extend(self.at_the_same_time(batch)),
            }
            rest = after;
        }
        answers
    }

    /// A call that was not understood: it is recorded and told, and nothing runs.
    pub fn refuse(&self, id: &str, tool: &str, why: &str) -> CallAnswer {
        let tool = Excerpt::new(tool, SHOWN).to_string();
        let (call_id, summary) = (id.to_owned(), String::new());
        self.desk.observer.notice(Told::ToolStarted { call_id, tool: tool.clone(), summary });
        let receipt = self.kernel.refuse_unread(&format!("a call of `{tool}`: {why}"));
        let content = json!({ "error": "not understood", "reason": why });
        let (allowed, success) = (false, false);
        let answer =
            CallAnswer { id: id.to_owned(), tool: tool.clone(), allowed, success, content };
        self.answered(&answer, &receipt, 0);
        answer
    }

    /// Calls of a turn whose answers were lost with the process that made them: what has had its effect is not
    /// done again.
    pub fn call_again(&self, calls: &[ModelCall]) -> Vec<CallAnswer> {
        let _at_work = self.steering.model();
        let again = calls.iter().map(|call| {
            let id = self.request_id(call);
            let step = self
                .desk
                .look()
                .staging
                .steps()
                .iter()
                .find(|it| it.origin == id)
                .map(|it| it.number);
            let Some(step) = step else { return self.one(call) };
            let content =
                json!({ "step": step, "note": "done before the session was interrupted" });
            let (id, tool) = (call.id.clone(), call.tool.clone());
            let answer = CallAnswer { id, tool, allowed: true, success: true, content };
            // What cannot be recorded halts the kernel, and the next request says so.
            let _recorded =
                self.record(&Entry::Answered { call: call.id.clone(), answer: answer.clone() });
            answer
        });
        again.collect()
    }

    /// How many of the next calls can run at the same time.
    fn batch(&self, calls: &[ModelCall]) -> usize {
        let mut touched: Vec<Touch> = Vec::new();
        for call in calls {
            let touch = self.touch(call);
            if touched.iter().any(|earlier| earlier.conflicts(&touch)) {
                break;
            }
            touched.push(touch);
        }
        touched.len().max(1)
    }

    fn touch(&self, call: &ModelCall) -> Touch {
        let found = self.kernel.registry.find(fluffy_policy::canonical_call(&call.tool));
        // What is not known will be refused, and touches nothing.
        let Some(found) = found else { return Touch::Reads(Vec::new(), false) };
        match (found.subject(&call.arguments), found.effect()) {
            // It may take the work further, which what stands after it in the turn is judged by.
            (Ok(subject), _) if is_change(&call.tool) && self.is_early_code(&subject) => {
                Touch::Anything
            }
            (Err(_), _) => Touch::Reads(Vec::new(), false),
            (Ok(subject), Effect::None) => Touch::Reads(subject.paths, subject.root),
            (Ok(subject), Effect::Some) if subject.changes && !subject.root => {
                Touch::Writes(subject.paths)
            }
            (Ok(_), _) => Touch::Anything,
        }
    }

    /// A call that runs alone, behind those of its turn that were answered. If one of these was no success and it depends on
    /// it, that is what it is judged by.
    fn in_order(&self, call: &ModelCall, calls: &[ModelCall], before: &[CallAnswer]) -> CallAnswer {
        let mode = self.desk.look().workflow.standing().mode;
        let part = self.part(call);
        let failed = calls.iter().zip(before).filter(|(_, answer)| !answer.success);
        let mut failed = failed.map(|(earlier, _)| earlier);
        let on = failed.find(|earlier| part.depends_on(self.part(earlier), mode));
        let Some(on) = on else { return self.one(call) };
        let request = self.request_id(call);
        let tool = Excerpt::new(&on.tool, SHOWN);
        self.unmet.set(&request, format!("`{tool}` {} of the same turn", self.summary(on)));
        let answer = self.one(call);
        self.unmet.clear(&request);
        answer
    }

    /// What a call is to the work. Code is what must not be written yet: where it may be, nothing has to come before it.
    fn part(&self, call: &ModelCall) -> Part {
        let subject = self.subject(&call.tool, &call.arguments);
        match (call.tool.as_str(), subject) {
            ("plan.complete", _) => Part::Plan,
            (tool, Some(subject)) if is_change(tool) => {
                let is_test =
                    |path: &ProjectPath| self.desk.conventions.kind(path).is_frozen_with_tests();
                match self.is_early_code(&subject) {
                    true => Part::Code,
                    false if subject.paths.iter().all(is_test) => Part::Test,
                    false => Part::Other,
                }
            }
            _any => Part::Other,
        }
    }

    fn at_the_same_time(&self, calls: &[ModelCall]) -> Vec<CallAnswer> {
        let next = Mutex::new(0_usize);
        let answers: Vec<Mutex<Option<CallAnswer>>> =
            calls.iter().map(|_| Mutex::default()).collect();
        std::thread::scope(|scope| {
            for _worker in 0..calls.len().min(AT_A_TIME) {
                scope.spawn(|| {
                    loop {
                        let at = {
                            let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
                            let at = *next;
                            *next += 1;
                            at
                        };
                        let (Some(call), Some(slot)) = (calls.get(at), answers.get(at)) else {
                            return;
                        };
                        let answer = self.one(call);
                        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
                    }
                });
            }
        });
        let taken = answers.into_iter().zip(calls).map(|(slot, call)| {
            let answer = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
            // A worker that died has said nothing, which is told.
            answer.unwrap_or_else(|| lost(call))
        });
        taken.collect()
    }

    /// One call; what of a command installs packages is carried out as the requests that it is.
    fn one(&self, call: &ModelCall) -> CallAnswer {
        let Some(Installations { requests, rest }) = self.installations(call) else {
            return self.carried_out(call);
        };
        let mut installed = Vec::new();
        for (number, arguments) in requests.into_iter().enumerate() {
            // The last one answers the call, unless there is more of the command.
            let id = match number {
                0 if rest.is_none() => call.id.clone(),
                number => format!("{}.{number}", call.id),
            };
            let request = ModelCall { id, tool: INSTALL.to_owned(), arguments };
            let answer = self.carried_out(&request);
            let success = answer.success;
            installed.push(answer);
            if !success {
                break;
            }
        }
        let all = installed.iter().all(|answer| answer.success);
        let contents: Vec<Value> = installed.iter().map(|answer| answer.content.clone()).collect();
        match (rest, installed.pop()) {
            (Some(arguments), _) if all => {
                let rest = ModelCall { arguments, ..call.clone() };
                let mut answer = self.carried_out(&rest);
                if let Value::Object(members) = &mut answer.content {
                    members.insert("installed".to_owned(), contents.into());
                }
                answer
            }
            (_, Some(mut answer)) => {
                answer.id.clone_from(&call.id);
                if let Value::Object(members) = &mut answer.content {
                    members.insert("carried_out_as".to_owned(), INSTALL.into());
                }
                let entry = Entry::Answered { call: call.id.clone(), answer: answer.clone() };
                // What cannot be recorded halts the kernel, and the next request says so.
                let _recorded = self.record(&entry);
                answer
            }
            (_, None) => self.carried_out(call),
        }
    }

    /// The installations that a command begins with, and what is left of it; nothing where it begins with none.
    fn installations(&self, call: &ModelCall) -> Option<Installations> {
        let is_command = fluffy_policy::canonical_call(&call.tool) == "shell.run";
        if !is_command || self.desk.dependencies.is_none() {
            return None;
        }
        installations_of(call.arguments.value())
    }

    /// One call: asked, answered, told, and the work taken further where that is possible now.
    fn carried_out(&self, call: &ModelCall) -> CallAnswer {
        let tool = Excerpt::new(&call.tool, SHOWN).to_string();
        let (call_id, summary) = (call.id.clone(), self.summary(call));
        self.desk.observer.notice(Told::ToolStarted { call_id, tool, summary });
        let started = self.clock.now_ms();
        self.prepare(call);
        let receipt = self.submit(&self.request_id(call), &call.tool, call.arguments.clone());
        if receipt.status != ReceiptStatus::Accepted && is_change(&call.tool) {
            self.desk.change().set(|inside| inside.progress.refused += 1);
        }
        let mut answer = CallAnswer::of(call, &receipt, || self.standing());
        if answer.success
            && let Some(more) = self.go_on()
            && let Value::Object(members) = &mut answer.content
        {
            members.extend(more);
        }
        if let (Some(more), Value::Object(members)) =
            (self.offer_debug(&call.tool), &mut answer.content)
        {
            members.extend(more);
        }
        self.answered(&answer, &receipt, self.clock.now_ms().saturating_sub(started));
        if answer.success && is_change(&call.tool) {
            // More will follow, once the model has thought.
            self.desk.workshop.stand_by(self.desk.layer());
        }
        answer
    }

    /// What the session does by itself before a call is judged.
    fn prepare(&self, call: &ModelCall) {
        if self.unmet.of(&self.request_id(call)).is_some() {
            return;
        }
        if is_beginning(&call.tool) {
            self.reopen();
        }
        if is_change(&call.tool) {
            self.exempt_new_manifests(call);
            self.leave_planning(call);
        }
        if call.tool == INSTALL {
            // What it means is found out first; what came of that, the call itself is judged by.
            let receipt = self.submit(&self.own_id(), RESOLVE, call.arguments.clone());
            let denied = receipt.status == ReceiptStatus::Rejected;
            if let (true, Some(dependencies)) = (denied, &self.desk.dependencies) {
                dependencies.refuse(&call.arguments, &receipt.error.unwrap_or_default());
            }
        }
        if call.tool == "task.complete" {
            // What is ready is brought to its end first; what is not, the tool itself will say.
            let summary = call.arguments.value().get("summary").and_then(Value::as_str);
            let _status = self.bring_to_end(summary.unwrap_or_default());
        }
    }

    /// Records what a call was answered, and tells whoever watches.
    fn answered(&self, answer: &CallAnswer, receipt: &KernelReceipt, duration_ms: u64) {
        let entry = Entry::Answered { call: answer.id.clone(), answer: answer.clone() };
        // What cannot be recorded halts the kernel, and the next request says so.
        let _recorded = self.record(&entry);
        self.tell(answer, receipt, duration_ms);
    }

    /// The id of the request that a call becomes.
    fn request_id(&self, call: &ModelCall) -> String {
        let turn = self.turns.load(Ordering::SeqCst);
        format!("{turn}.{}", Excerpt::new(&call.id, SHOWN))
    }

    /// Submits a request of the model's.
    pub(super) fn submit(&self, id: &str, tool: &str, arguments: Json) -> KernelReceipt {
        let name = Excerpt::new(tool, SHOWN);
        let paths = self.subject(tool, &arguments).map(|subject| subject.paths).unwrap_or_default();
        let intent = match paths.as_slice() {
            [] => format!("call {name}"),
            [path] => format!("{name} {path}"),
            several => format!("{name} of {} files", several.len()),
        };
        let mut request = KernelRequest::call(id, MODEL, &intent, tool, arguments);
        request.ts_ms = i64::try_from(self.clock.now_ms()).unwrap_or(i64::MAX);
        let Standing { state, mode, .. } = self.desk.look().workflow.standing();
        let context = CallContext {
            mode: Some(mode.name().to_owned()),
            workflow_state: Some(state.name().to_owned()),
            ..CallContext::default()
        };
        self.kernel.submit_from(&context, request)
    }

    /// A number for a request that the session makes by itself.
    pub(super) fn own_id(&self) -> String {
        format!("session.{}", self.own.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// The manifest that a new project begins with needs no test and cannot have one: the exemption that the policy grants for
    /// such files is asked for in the model's name. Whether it may be written is judged as always.
    fn exempt_new_manifests(&self, call: &ModelCall) {
        let Some(subject) = self.subject(&call.tool, &call.arguments) else { return };
        let is_new = |path: &ProjectPath| {
            MANIFESTS.contains(&path.file_name()) && matches!(self.desk.tree.look(path), Ok(None))
        };
        let exempt = |path: &ProjectPath| self.desk.look().workflow.exempts(path) != Exempt::No;
        let paths = &subject.paths;
        if paths.is_empty() || !paths.iter().all(is_new) || paths.iter().all(exempt) {
            return;
        }
        let request = fluffy_workflow::ExemptionRequest {
            category: "config_change".to_owned(),
            paths: paths.iter().cloned().collect(),
            reason: "the manifest of a new project".to_owned(),
        };
        // Without the exemption, the gate says what has to come first.
        let _granted = self.desk.exempt(&*self.kernel, request);
    }

    /// A model that begins to write has planned. Only what is exempt is written while planning.
    fn leave_planning(&self, call: &ModelCall) {
        let Some(subject) = self.subject(&call.tool, &call.arguments) else { return };
        let leaves = {
            let inside = self.desk.look();
            let exempt = |path: &ProjectPath| inside.workflow.exempts(path) != Exempt::No;
            inside.workflow.state() == State::Planning && !subject.paths.iter().all(exempt)
        };
        if leaves {
            // Should it fail, the gate says why nothing is written while planning.
            let _moved = self.desk.happened(&*self.kernel, Event::PlanCompleted);
        }
        // A model that begins with code where tests fail already has no test to add.
        let has_tests = self.desk.look().workflow.has_failing_tests_of_others();
        if has_tests && self.is_early_code(&subject) {
            let _moved = self.desk.happened(&*self.kernel, Event::TestsCompleted);
        }
    }

    /// Whether this is code, and not exempt, before any code may be written.
    fn is_early_code(&self, subject: &Subject) -> bool {
        let inside = self.desk.look();
        let is_code = |path: &ProjectPath| {
            !self.desk.conventions.kind(path).is_frozen_with_tests()
                && inside.workflow.exempts(path) == Exempt::No
        };
        matches!(inside.workflow.state(), State::Planning | State::TestWriting)
            && subject.paths.iter().any(is_code)
    }

    fn subject(&self, tool: &str, arguments: &Json) -> Option<Subject> {
        let found = self.kernel.registry.find(fluffy_policy::canonical_call(tool))?;
        found.subject(arguments).ok()
    }

    fn path_of(&self, tool: &str, arguments: &Json) -> Option<ProjectPath> {
        self.subject(tool, arguments)?.paths.into_iter().next()
    }

    /// Where the work stands and what can be done there, for a model that was told no.
    pub fn standing(&self) -> Value {
        let (Standing { state, mode, .. }, warning) = {
            let inside = self.desk.look();
            let debt = inside.progress.debt.as_ref();
            let warning = debt.and_then(|account| account.warning().map(str::to_owned));
            (inside.workflow.standing(), warning)
        };
        let mut told = json!({
            "state": state.name(),
            "mode": mode.name(),
            "next": super::advance::next_step(state, mode),
            "tools": self.available(),
        });
        if let (Value::Object(members), Some(warning)) = (&mut told, warning) {
            members.insert("warning".to_owned(), warning.into());
        }
        told
    }

    /// The tools that can do something where the work stands.
    pub fn available(&self) -> Vec<&str> {
        let Standing { state, access, .. } = self.desk.look().workflow.standing();
        let offered = OFFERED.into_iter().chain(self.skills.iter().map(String::as_str));
        offered.filter(|tool| super::advance::is_of_use(tool, state, access)).collect()
    }

    fn summary(&self, call: &ModelCall) -> String {
        let arguments = &call.arguments;
        let text = |name: &str| arguments.value().get(name).and_then(Value::as_str);
        let shown = |text: &str| Excerpt::new(text, SHOWN).to_string();
        match call.tool.as_str() {
            "search.grep" | "search.glob" | "test.run" => {
                text("pattern").map_or_else(String::new, shown)
            }
            "shell.run" | "shell.exec" => {
                let args = arguments.value().get("args").and_then(Value::as_array);
                let args = args.into_iter().flatten().filter_map(Value::as_str);
                let words: Vec<&str> = text("command").into_iter().chain(args).collect();
                shown(&words.join(" "))
            }
            "git.commit" => text("message").map_or_else(String::new, shown),
            "task.complete" | "plan.complete" => text("summary").map_or_else(String::new, shown),
            tool => {
                self.path_of(tool, arguments).map_or_else(String::new, |path| shown(path.as_str()))
            }
        }
    }

    fn tell(&self, answer: &CallAnswer, receipt: &KernelReceipt, duration_ms: u64) {
        let tool = Excerpt::new(&answer.tool, SHOWN).to_string();
        let denied = receipt.decision != Decision::Allow;
        let error = receipt.error.clone();
        self.desk.observer.notice(Told::ToolFinished {
            call_id: answer.id.clone(),
            summary: super::advance::result_summary(&tool, &answer.content),
            tool,
            decision: if denied { "denied" } else { "allowed" }.to_owned(),
            rule: receipt.rule.clone(),
            reason: error.clone().filter(|_| denied),
            success: receipt.status == ReceiptStatus::Accepted,
            duration_ms,
            error: error.filter(|_| !denied),
            entry: receipt.evidence_hash.map(|hash| hash.to_string()),
        });
    }
}

/// The answer of a worker that died and said nothing.
fn lost(call: &ModelCall) -> CallAnswer {
    let content = json!({ "error": "failed", "reason": "the call could not be made" });
    let (id, tool) = (call.id.clone(), call.tool.clone());
    CallAnswer { id, tool, allowed: false, success: false, content }
}

/// Whether a call changes files that it names.
pub(super) fn is_change(tool: &str) -> bool {
    matches!(tool, "fs.write" | "fs.edit" | "fs.delete")
}

/// Whether a call begins a piece of work, where none is under way.
fn is_beginning(tool: &str) -> bool {
    is_change(tool) || matches!(tool, "plan.complete" | "workflow.request_exemption")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> ProjectPath {
        ProjectPath::parse(text).unwrap()
    }

    #[test]
    fn writes_conflict_with_what_touches_the_same_file_or_its_directory() {
        let writes = |text: &str| Touch::Writes(vec![path(text)]);
        let reads = |text: &str| Touch::Reads(vec![path(text)], false);
        assert!(!writes("a/b").conflicts(&writes("a/c")));
        assert!(writes("a/b").conflicts(&writes("a/b")));
        assert!(writes("a/b").conflicts(&writes("a")));
        assert!(writes("a/b").conflicts(&reads("a")));
        assert!(!writes("a/b").conflicts(&reads("a/bc")));
        assert!(!reads("a").conflicts(&reads("a")));
        assert!(writes("a").conflicts(&Touch::Reads(Vec::new(), true)));
        assert!(Touch::Anything.conflicts(&reads("a")));
    }
}
