//! `fluffy policy check`: what is wrong with a policy, and what is probably not meant.

use fluffy_policy::{PolicyError, PolicyProblem, Warning};
use serde_json::{Value, json};

use crate::args::CheckArgs;
use crate::explain::{CliError, DONE, FAILED, USAGE};
use crate::output::{Output, Tone};
use crate::place::Place;
use crate::policy_source::PolicySource;

pub(crate) fn run(place: &Place, args: &CheckArgs, output: &mut Output) -> Result<u8, CliError> {
    match PolicySource::find(place, args.file.as_deref()) {
        Err(CliError::Policy(error)) => {
            show_error(&error, args.json, output)?;
            Ok(USAGE)
        }
        Err(error) => Err(error),
        Ok(source) => {
            // Rule files are part of the policy: what is wrong with one is an error here.
            source.rules(place)?;
            let warnings = source.policy.warnings();
            if args.json {
                output.line(report(&source, warnings))?;
            } else {
                show(&source, warnings, output)?;
            }
            let strict = args.deny_warnings && !warnings.is_empty();
            Ok(if strict { FAILED } else { DONE })
        }
    }
}

fn show_error(error: &PolicyError, json: bool, output: &mut Output) -> Result<(), CliError> {
    let PolicyError { file, line, column, problem } = error;
    let fix = fix(problem);
    if json {
        let error = json!({
            "file": file, "line": line, "column": column,
            "problem": problem.to_string(), "fix": fix,
        });
        return output.line(json!({ "ok": false, "errors": [error], "warnings": [] }));
    }
    let word = output.paint(Tone::Bad, "error");
    output.line(format!("{file}:{line}:{column}: {word}: {problem}"))?;
    output.line(format!("  fix: {fix}"))
}

fn show(source: &PolicySource, warnings: &[Warning], output: &mut Output) -> Result<(), CliError> {
    for warning in warnings {
        let word = output.paint(Tone::Strong, "warning");
        let Warning { place, column, rule, text } = warning;
        let at = place.as_ref().map_or_else(String::new, |place| format!("{place}:{column}: "));
        output.line(format!("{at}{word}: rule `{rule}`: {text}"))?;
        output.line(format!("  fix: {WARNING_FIX}"))?;
    }
    let policy = &source.policy;
    let rules = policy.capabilities().map_or(0, |rules| rules.summaries().count());
    let word = output.paint(Tone::Good, "ok");
    let warned = match warnings.len() {
        0 => String::new(),
        1 => ", 1 warning".to_owned(),
        many => format!(", {many} warnings"),
    };
    output.line(format!("{}: {word}: {rules} rules{warned}", policy.name()))
}

fn report(source: &PolicySource, warnings: &[Warning]) -> Value {
    let warning = |warning: &Warning| {
        let place = warning.place.as_ref();
        json!({
            "file": place.map(|place| &*place.file),
            "line": place.map(|place| place.line),
            "column": warning.column,
            "rule": warning.rule,
            "problem": warning.text,
            "fix": WARNING_FIX,
        })
    };
    let policy = &source.policy;
    json!({
        "ok": true,
        "file": policy.name(),
        "digest": policy.digest().to_string(),
        "rules": policy.capabilities().map_or(0, |rules| rules.summaries().count()),
        "errors": [],
        "warnings": warnings.iter().map(warning).collect::<Vec<_>>(),
    })
}

const WARNING_FIX: &str = "change the rule so that it can take effect, or remove it";

/// What to do about a problem.
fn fix(problem: &PolicyProblem) -> &'static str {
    match problem {
        PolicyProblem::TooLarge { .. } => "leave out what the rules do not need",
        PolicyProblem::Syntax(_) => "write plain YAML there; quote texts with special characters",
        PolicyProblem::DuplicateKey { .. } => "remove one of the two",
        PolicyProblem::UnknownKey { .. } => {
            "correct the key or remove it; `fluffy policy schema` has all keys"
        }
        PolicyProblem::Missing { .. } => "add the key",
        PolicyProblem::Expected { .. } => "write what is expected there",
        PolicyProblem::Example(_) => "correct the rules, or the example if the rules are right",
        PolicyProblem::Invalid { .. } => "write a value that means something there",
    }
}
