//! Examples inside rules, checked when the file is read: a policy that does not do what it says it
//! does is refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use fluffy_base::{Json, KernelRequest, KernelState, PathError, ProjectPath};

use crate::builtin::BuiltIn;
use crate::calls::{SIDE_EFFECTS, shape_of};
use crate::capabilities::Capabilities;
use crate::capability::{Capability, Example, Expected};
use crate::condition::Condition;
use crate::facts::{Caller, Facts, Isolation, Subject};
use crate::rule::{Rule, decide, quoted};
use crate::verdict::Strength;
use crate::yaml::{PolicyProblem, Problem};

/// Checks every example against the built-in rules and those of the file.
pub(crate) fn check(capabilities: &Arc<Capabilities>) -> Result<(), Problem> {
    let built_in = BuiltIn::new([]);
    let rules: [&dyn Rule; 2] = [&built_in, capabilities];
    capabilities.rules().iter().try_for_each(|rule| {
        rule.examples.iter().try_for_each(|example| check_one(&rules, rule, example))
    })
}

fn check_one(rules: &[&dyn Rule], rule: &Capability, example: &Example) -> Result<(), Problem> {
    let refuse = |problem: String| {
        let what = PolicyProblem::Example(problem);
        Err(Problem { line: example.line, column: example.column, what })
    };
    let subject = match subject(rule, example) {
        Ok(subject) => subject,
        Err(problem) => return refuse(problem),
    };
    let actor = first(rule.condition.actors.as_ref()).unwrap_or("example");
    let params = Json::empty_object();
    let request = KernelRequest::call("example", actor, "example", &example.syscall, params);
    let caller = caller(rule);
    let facts = Facts::new(&request, KernelState::Idle).about(&subject).by(&caller);
    let verdict = decide(rules.iter().copied(), &facts).verdict;
    let (holds, promised) = match example.expected {
        Expected::Allows => (verdict.strength() == Strength::Allow, "is allowed"),
        Expected::Denies => (verdict.strength() == Strength::Deny, "is denied"),
    };
    if holds {
        return Ok(());
    }
    let on = example.path.as_deref().map(|path| format!(" on `{}`", quoted(path)));
    refuse(format!(
        "the example says that `{}`{} {promised}, but the rules say {verdict}",
        quoted(&example.syscall),
        on.unwrap_or_default(),
    ))
}

/// Somebody whom the rule is about: an example says which calls, the rule says whose.
fn caller(rule: &Capability) -> Caller {
    let Condition { caller_tags, modes, workflow_states, .. } = &rule.condition;
    let one = |names: &Option<BTreeSet<String>>| first(names.as_ref()).map(str::to_owned);
    Caller {
        tags: one(caller_tags).into_iter().collect(),
        mode: one(modes),
        workflow_state: one(workflow_states),
        token: None,
        wants_token: rule.constraints.require_capability_token,
    }
}

fn first(names: Option<&BTreeSet<String>>) -> Option<&str> {
    names.and_then(BTreeSet::first).map(String::as_str)
}

/// What the example's call acts on. It runs wherever its tool runs.
fn subject(rule: &Capability, example: &Example) -> Result<Subject, String> {
    let shape = shape_of(&example.syscall);
    let commands = rule.condition.commands.as_ref();
    let runs = shape.is_none_or(|shape| shape.command.is_some());
    let mut subject = Subject {
        isolation: shape.map_or(Isolation::Sandbox, |shape| shape.isolation),
        changes: shape.is_some_and(|shape| shape.changes),
        side_effect: first(rule.condition.side_effects.as_ref())
            .and_then(|name| SIDE_EFFECTS.into_iter().find(|class| *class == name)),
        command: commands.filter(|_| runs).and_then(|commands| commands.words.first().cloned()),
        ..Subject::default()
    };
    match example.path.as_deref().map(ProjectPath::parse) {
        Some(Ok(path)) => subject.paths.push(path),
        Some(Err(PathError::Root)) => subject.root = true,
        Some(Err(error)) => return Err(error.to_string()),
        None => subject.root = shape.is_some_and(|shape| shape.root_by_default),
    }
    Ok(subject)
}
