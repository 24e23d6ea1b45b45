//! The workflow as a rule among rules.
//!
//! **Invariant.** The gate only objects. What it has nothing against still needs a rule that allows it.

use fluffy_base::{Excerpt, ProjectPath};
use fluffy_policy::{Facts, Layer, Reason, Reasons, Rule, Verdict};
use serde_json::Value;

use crate::paths::{Conventions, PathKind};
use crate::state::{Access, Mode, State};
use crate::workflow::Workflow;
use crate::writable::{Frozen, Standing, Writable};

/// Which files may be written.
const WRITABLE: &str = "workflow.writable";
/// When there may be a commit.
const COMMIT: &str = "workflow.commit";
/// Who may run containers.
const CONTAINER: &str = "workflow.container";
/// Who may change the mode.
const MODE: &str = "workflow.mode";

/// How much of a stranger's word a reason repeats.
const SHOWN: usize = 100;

/// Judges requests by where the work stands.
#[derive(Debug, Clone, Copy)]
pub struct Gate<'a> {
    workflow: &'a Workflow,
    conventions: &'a Conventions,
}

impl<'a> Gate<'a> {
    /// The gate for a session's work as it stands.
    pub fn new(workflow: &'a Workflow, conventions: &'a Conventions) -> Self {
        Self { workflow, conventions }
    }

    /// Whether one file may be written: also what a sandbox left, file by file. A directory is judged by
    /// its own name alone, so whoever moves or removes one asks for every file in it.
    pub fn writable(&self, path: &ProjectPath) -> Writable {
        let kind = self.conventions.kind(path);
        self.workflow.standing().writable(kind, self.workflow.exempts(path))
    }

    fn writing(&self, facts: &Facts<'_>) -> Verdict {
        let subject = facts.subject;
        let of_path = |path: &ProjectPath| match self.writable(path) {
            Writable::Yes | Writable::IfTypeOnly => None,
            Writable::No(frozen) => Some(self.objection(path.as_str(), frozen)),
        };
        // Whoever changes the whole project, or does not say what, changes every kind of file.
        let unnamed = subject.root || subject.paths.is_empty();
        let whole = unnamed.then(|| self.whole()).flatten();
        let reasons = subject.paths.iter().filter_map(of_path).chain(whole);
        Reasons::collect(reasons).map_or(Verdict::Pass, Verdict::Deny)
    }

    fn whole(&self) -> Option<Reason> {
        let kinds = [PathKind::Test, PathKind::Lookalike, PathKind::Source, PathKind::Other];
        let standing = self.workflow.standing();
        kinds.into_iter().find_map(|kind| {
            match standing.writable(kind, crate::exemption::Exempt::No) {
                Writable::Yes | Writable::IfTypeOnly => None,
                Writable::No(frozen) => Some(self.objection(".", frozen)),
            }
        })
    }

    fn objection(&self, path: &str, frozen: Frozen) -> Reason {
        let Standing { state, mode, .. } = self.workflow.standing();
        let path = Excerpt::new(path, SHOWN);
        let text = format!("`{path}` is not writable in `{state}` ({mode} mode): {}", frozen.why);
        Reason::new(Layer::Workflow, WRITABLE, &text).with_hint(frozen.instead)
    }

    fn commit(&self) -> Verdict {
        let Standing { state, access, .. } = self.workflow.standing();
        if state == State::Committing && access == Access::Write {
            return Verdict::Pass;
        }
        let text =
            format!("there is nothing to commit in `{state}`: a merge must be approved first");
        let hint = "finish the work, so that its tests pass and its merge is approved";
        Verdict::deny(Reason::new(Layer::Workflow, COMMIT, &text).with_hint(hint))
    }

    fn container(&self) -> Verdict {
        let Standing { mode, access, .. } = self.workflow.standing();
        match (mode, access) {
            (Mode::Debug, Access::Write) => {
                let text = "a person has to agree to every container that is run";
                Verdict::review(Reason::new(Layer::Workflow, CONTAINER, text))
            }
            (Mode::Strict | Mode::Explore, _) | (Mode::Debug, Access::ReadOnly) => {
                let text =
                    format!("containers are only run in debug mode, and this is {mode} mode");
                let hint = "run the tests with `test.run`; the user may switch to debug mode";
                Verdict::deny(Reason::new(Layer::Workflow, CONTAINER, &text).with_hint(hint))
            }
        }
    }

    fn mode(&self, facts: &Facts<'_>) -> Verdict {
        let named = facts.tool_params().and_then(|params| params.value().get("mode"));
        let mode = named.and_then(Value::as_str).and_then(Mode::from_name);
        let Some(mode) = mode else {
            let text = "`mode` is not one of strict, explore, debug";
            return Verdict::deny(Reason::new(Layer::Workflow, MODE, text));
        };
        let begun = !matches!(self.workflow.standing().state, State::Idle | State::Planning);
        let text = match mode {
            Mode::Debug => "a person has to agree to debug mode",
            Mode::Explore if begun => "a person has to agree to leave tests behind during a task",
            Mode::Explore | Mode::Strict => return Verdict::Pass,
        };
        Verdict::review(Reason::new(Layer::Workflow, MODE, text))
    }
}

impl Rule for Gate<'_> {
    fn name(&self) -> &str {
        "workflow"
    }

    fn layer(&self) -> Layer {
        Layer::Workflow
    }

    fn judge(&self, facts: &Facts<'_>) -> Verdict {
        let by_tool = match facts.tool() {
            Some("git.commit") => self.commit(),
            Some("container.run") => self.container(),
            Some("session.set_mode") => self.mode(facts),
            Some(_) | None => Verdict::Pass,
        };
        if facts.subject.changes { by_tool.join(self.writing(facts)) } else { by_tool }
    }
}

#[cfg(test)]
mod tests;
