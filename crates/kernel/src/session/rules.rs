//! What a session adds to the rules: the workflow's gate, what calls of a turn depend on, which tools the model is
//! offered, and when work may be merged without asking anybody.
//!
//! **Invariant.** A merge is judged by what the kernel found out about it, never by what its request says; and
//! the request must name the very plan that was looked at.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use fluffy_base::Json;
use fluffy_policy::{Facts, Layer, Reason, Reasons, Rule, Source, Verdict};
use fluffy_workflow::Gate;
use serde_json::Value;

use super::desk::Desk;
use super::{KEEP_COVERAGE, MERGE, OFFERED, RESOLVE, SET_MODE};
use crate::clerk::MODEL;

/// The workflow among the rules.
pub(crate) struct WorkflowRule(pub(crate) Arc<Desk>);

impl Rule for WorkflowRule {
    fn name(&self) -> &str {
        "workflow"
    }

    fn layer(&self) -> Layer {
        Layer::Workflow
    }

    fn judge(&self, facts: &Facts<'_>) -> Verdict {
        let inside = self.0.look();
        Gate::new(&inside.workflow, &self.0.conventions).judge(facts)
    }
}

/// The model gets what it is offered; the person may set the mode.
pub(crate) struct OfferedRule {
    /// The tools of skills and plugins among it.
    pub(crate) skills: Arc<[String]>,
}

impl OfferedRule {
    fn offers(&self, tool: &str) -> bool {
        OFFERED.contains(&tool) || self.skills.iter().any(|skill| skill == tool)
    }
}

impl Rule for OfferedRule {
    fn name(&self) -> &str {
        "session.tools"
    }

    fn layer(&self) -> Layer {
        Layer::Workflow
    }

    fn judge(&self, facts: &Facts<'_>) -> Verdict {
        let Some(tool) = facts.tool() else { return Verdict::Pass };
        match (facts.actor(), tool) {
            // Whether it may be set is the gate's to say.
            ("user", SET_MODE) => Verdict::Allow(Source::new(self.layer(), self.name())),
            // These are judged by what the session is about to do.
            (MODEL, MERGE | KEEP_COVERAGE | RESOLVE) => Verdict::Pass,
            (MODEL, tool) if !self.offers(tool) => {
                let tool = fluffy_base::Excerpt::new(tool, 100);
                let text = format!("`{tool}` is not a tool of this session");
                let skills = self.skills.iter().map(String::as_str);
                let names: Vec<_> = OFFERED.into_iter().chain(skills).collect();
                let hint = format!("the tools are: {}", names.join(", "));
                Verdict::deny(Reason::new(self.layer(), self.name(), &text).with_hint(&hint))
            }
            _any => Verdict::Pass,
        }
    }
}

/// Calls of the turn that is being answered on which others depend, and which were not made: by the request that waits for them.
#[derive(Debug, Default)]
pub(crate) struct Unmet(Mutex<BTreeMap<String, String>>);

impl Unmet {
    pub(crate) fn set(&self, request: &str, on: String) {
        self.all().insert(request.to_owned(), on);
    }

    pub(crate) fn clear(&self, request: &str) {
        self.all().remove(request);
    }

    /// What a request depends on in vain.
    pub(crate) fn of(&self, request: &str) -> Option<String> {
        self.all().get(request).cloned()
    }

    fn all(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What depends on a call that was not made is not made either.
pub(crate) struct DependencyRule(pub(crate) Arc<Unmet>);

impl Rule for DependencyRule {
    fn name(&self) -> &str {
        "session.dependency"
    }

    fn layer(&self) -> Layer {
        Layer::Workflow
    }

    fn judge(&self, facts: &Facts<'_>) -> Verdict {
        let Some(on) = self.0.of(&facts.request.request_id) else { return Verdict::Pass };
        let text = format!("dependency failed: {on}");
        let hint = "make that call again first, and this one when it was a success";
        Verdict::deny(Reason::new(self.layer(), self.name(), &text).with_hint(hint))
    }
}

/// What was found out about the merge that is being asked for.
#[derive(Debug, Clone)]
pub(crate) struct Proposed {
    /// The plan's digest.
    pub(crate) plan: String,
    /// Why a person has to look at it; nothing if nobody has to.
    pub(crate) reasons: Vec<String>,
}

/// The merge that is being asked for, if one is.
#[derive(Debug, Default)]
pub(crate) struct Proposal(Mutex<Option<Proposed>>);

impl Proposal {
    pub(crate) fn set(&self, proposed: Option<Proposed>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = proposed;
    }

    fn get(&self) -> Option<Proposed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The parameters of the call that the session is about to make by itself, if it is.
#[derive(Debug, Default)]
pub(crate) struct Expected(Mutex<Option<Json>>);

impl Expected {
    pub(crate) fn set(&self, params: Option<Json>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = params;
    }

    fn is(&self, params: Option<&Json>) -> bool {
        let expected = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        expected.is_some() && expected.as_ref() == params
    }
}

/// The coverage baseline is what the session found out, and goes with what it merges.
pub(crate) struct CoverageRule(pub(crate) Arc<Expected>);

impl Rule for CoverageRule {
    fn name(&self) -> &str {
        "session.coverage"
    }

    fn layer(&self) -> Layer {
        Layer::Workflow
    }

    fn judge(&self, facts: &Facts<'_>) -> Verdict {
        if facts.tool() != Some(KEEP_COVERAGE) {
            return Verdict::Pass;
        }
        if self.0.is(facts.tool_params()) {
            return Verdict::Allow(Source::new(self.layer(), self.name()));
        }
        let text = "the coverage baseline is what the session itself measures";
        let hint = "call `test.run` with `coverage` on finished work";
        Verdict::deny(Reason::new(self.layer(), self.name(), text).with_hint(hint))
    }
}

/// Whether work may be merged: at once, or after a person agreed.
pub(crate) struct MergeRule(pub(crate) Arc<Proposal>);

impl Rule for MergeRule {
    fn name(&self) -> &str {
        "session.merge"
    }

    fn layer(&self) -> Layer {
        Layer::Workflow
    }

    fn judge(&self, facts: &Facts<'_>) -> Verdict {
        if facts.tool() != Some(MERGE) {
            return Verdict::Pass;
        }
        let reason = |text: &str| Reason::new(self.layer(), self.name(), text);
        let named = facts.tool_params().and_then(|params| params.value().get("plan"));
        let named = named.and_then(Value::as_str);
        let Some(proposed) = self.0.get().filter(|it| Some(it.plan.as_str()) == named) else {
            let text = "this is not the merge that the work is ready for";
            return Verdict::deny(
                reason(text).with_hint("finish the work, so that its tests pass"),
            );
        };
        let reasons = proposed.reasons.iter().map(|text| reason(text));
        match Reasons::collect(reasons) {
            Some(reasons) => Verdict::Review(reasons),
            None => Verdict::Allow(Source::new(self.layer(), self.name())),
        }
    }
}
