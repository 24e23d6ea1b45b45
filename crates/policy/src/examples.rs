//! Examples inside rules, checked when the file is read: a policy that does not do what it says it
//! does is refused.

use std::sync::Arc;

use fluffy_base::{Json, KernelRequest, KernelState, ProjectPath};

use crate::builtin::BuiltIn;
use crate::calls::shape_of;
use crate::capabilities::Capabilities;
use crate::capability::{Example, Expected};
use crate::facts::{Facts, Isolation, Subject};
use crate::rule::{Rule, decide, quoted};
use crate::verdict::Strength;
use crate::yaml::{PolicyProblem, Problem};

/// Checks every example against the built-in rules and those of the file.
pub(crate) fn check(capabilities: &Arc<Capabilities>) -> Result<(), Problem> {
    let built_in = BuiltIn::new([]);
    let rules: [&dyn Rule; 2] = [&built_in, capabilities];
    let of_rule = |rule: &crate::capability::Capability| rule.examples.clone();
    let examples = capabilities.rules().iter().flat_map(of_rule);
    examples.into_iter().try_for_each(|example| check_one(&rules, &example))
}

fn check_one(rules: &[&dyn Rule], example: &Example) -> Result<(), Problem> {
    let refuse = |problem: String| {
        let what = PolicyProblem::Example(problem);
        Err(Problem { line: example.line, column: example.column, what })
    };
    let subject = match subject(example) {
        Ok(subject) => subject,
        Err(problem) => return refuse(problem),
    };
    let request = KernelRequest::call(
        "example",
        "example",
        "example",
        &example.syscall,
        Json::empty_object(),
    );
    let facts = Facts::new(&request, KernelState::Idle).about(&subject);
    let verdict = decide(rules.iter().copied(), &facts).verdict;
    let holds = match example.expected {
        Expected::Allows => verdict.strength() == Strength::Allow,
        Expected::Denies => verdict.strength() == Strength::Deny,
    };
    if holds {
        return Ok(());
    }
    let promised = match example.expected {
        Expected::Allows => "is allowed",
        Expected::Denies => "is denied",
    };
    let on = example.path.as_deref().map(|path| format!(" on `{}`", quoted(path)));
    refuse(format!(
        "the example says that `{}`{} {promised}, but the rules say {verdict}",
        quoted(&example.syscall),
        on.unwrap_or_default(),
    ))
}

/// What the example's call acts on. It runs wherever its tool runs.
fn subject(example: &Example) -> Result<Subject, String> {
    let shape = shape_of(&example.syscall);
    let mut subject = Subject {
        isolation: shape.map_or(Isolation::Sandbox, |shape| shape.isolation),
        changes: shape.is_some_and(|shape| shape.changes),
        ..Subject::default()
    };
    if let Some(path) = &example.path {
        subject.paths.push(ProjectPath::parse(path).map_err(|error| error.to_string())?);
    }
    Ok(subject)
}
