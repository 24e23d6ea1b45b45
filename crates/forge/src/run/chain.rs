//! Several skills one after another, each given what those before it gave.
//!
//! A text that begins with `$` stands for a value: `$input.x` of what the chain is given, `$prev.text` of the step before,
//! `$steps.0.items.1.name` of any earlier step. `$$` is a plain `$`.
//!
//! **Invariant.** A step can only name earlier steps, so that there are no cycles; skills and names are checked before the
//! first one starts.

use fluffy_base::Json;
use fluffy_kernel::Kernel;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Finished, RunError, RunOrder, Runs};
use crate::SkillName;

/// The most steps.
const MAX_STEPS: usize = 32;

/// The longest way into a value.
const MAX_PARTS: usize = 32;

/// Skills in a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// The steps, the first first.
    pub steps: Vec<Step>,
}

/// One skill of a chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Which skill.
    pub skill: SkillName,
    /// What it is given: values, and names of values.
    #[serde(default)]
    pub input: Map<String, Value>,
}

/// What became of a chain.
#[derive(Debug)]
pub struct ChainRun {
    /// The steps that ran, the first first. The last may have failed.
    pub finished: Vec<Finished>,
    /// Why the rest did not run; nothing if every step did what it should.
    pub stopped: Option<ChainError>,
}

/// Why a chain does not start, or stops.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    /// It has no steps, or too many.
    #[error("a chain has between one and {MAX_STEPS} steps, and this one has {0}")]
    Steps(usize),
    /// A name of a value that is none.
    #[error(
        "step {step}: `{name}` names no value: use `$input.…`, `$prev.…`, `$steps.N.…` of an earlier step, or `$$` for a plain `$`"
    )]
    Name {
        /// Which step, from zero.
        step: usize,
        /// The name.
        name: String,
    },
    /// Nothing is there.
    #[error("step {step}: there is nothing at `{name}`")]
    Nothing {
        /// Which step.
        step: usize,
        /// The name.
        name: String,
    },
    /// A step cannot be run.
    #[error("step {step} (`{skill}`) cannot be run")]
    Run {
        /// Which step.
        step: usize,
        /// Its skill.
        skill: SkillName,
        /// Why not.
        source: Box<RunError>,
    },
    /// A step failed.
    #[error("step {step} (`{skill}`) failed: {why}")]
    Failed {
        /// Which step.
        step: usize,
        /// Its skill.
        skill: SkillName,
        /// Why.
        why: String,
    },
    /// What a step would be given is no JSON that can be kept.
    #[error("step {step}: {source}")]
    Input {
        /// Which step.
        step: usize,
        /// Why not.
        source: fluffy_base::JsonError,
    },
}

/// Where a value comes from.
enum Origin<'a> {
    Input,
    Step(usize),
    /// It is a text after all.
    Plain(&'a str),
}

impl Runs {
    /// Runs a chain. What cannot work is refused before its first step.
    pub fn chain(
        &self,
        kernel: &Kernel,
        chain: &Chain,
        input: &Json,
    ) -> Result<ChainRun, ChainError> {
        self.check_chain(chain)?;
        let (mut finished, mut outputs): (Vec<Finished>, Vec<Json>) = (Vec::new(), Vec::new());
        for (step, Step { skill, input: wanted }) in chain.steps.iter().enumerate() {
            let given = given(step, wanted, input, &outputs);
            let parent = finished.last().map(|last| last.record.execution.clone());
            let ran = given.and_then(|given| {
                let order = RunOrder { parent, ..RunOrder::new(skill.clone(), given) };
                let failed = |source| ChainError::Run {
                    step,
                    skill: skill.clone(),
                    source: Box::new(source),
                };
                self.run(kernel, order).map_err(failed)
            });
            let ran = match ran {
                Ok(ran) => ran,
                Err(error) => return Ok(ChainRun { finished, stopped: Some(error) }),
            };
            let output = ran.output.clone();
            let why = ran.record.error.as_ref().map(ToString::to_string);
            finished.push(ran);
            let Some(output) = output else {
                let (skill, why) = (skill.clone(), why.unwrap_or_default());
                let stopped = Some(ChainError::Failed { step, skill, why });
                return Ok(ChainRun { finished, stopped });
            };
            outputs.push(output);
        }
        Ok(ChainRun { finished, stopped: None })
    }

    fn check_chain(&self, chain: &Chain) -> Result<(), ChainError> {
        if chain.steps.is_empty() || chain.steps.len() > MAX_STEPS {
            return Err(ChainError::Steps(chain.steps.len()));
        }
        for (step, Step { skill, input }) in chain.steps.iter().enumerate() {
            let trusted = self.options.shelf.trusted(skill);
            let failed = |source: crate::ShelfError| ChainError::Run {
                step,
                skill: skill.clone(),
                source: Box::new(source.into()),
            };
            trusted.map_err(failed)?;
            input.values().try_for_each(|value| check_names(step, value, 0))?;
        }
        Ok(())
    }
}

/// Whether every name in a value names something that there can be.
fn check_names(step: usize, value: &Value, depth: usize) -> Result<(), ChainError> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        Value::String(text) => origin(step, text).map(drop),
        // What is nested deeper is refused when it is made a request.
        Value::Array(_) | Value::Object(_) if depth > fluffy_base::MAX_DEPTH => Ok(()),
        Value::Array(items) => items.iter().try_for_each(|item| check_names(step, item, depth + 1)),
        Value::Object(members) => {
            members.values().try_for_each(|value| check_names(step, value, depth + 1))
        }
    }
}

/// Where a text of a step's input comes from, and the way to it from there.
fn origin(step: usize, text: &str) -> Result<(Origin<'_>, Vec<&str>), ChainError> {
    let Some(name) = text.strip_prefix('$') else { return Ok((Origin::Plain(text), Vec::new())) };
    if name.starts_with('$') {
        return Ok((Origin::Plain(name), Vec::new()));
    }
    let unnamed =
        || ChainError::Name { step, name: fluffy_base::Excerpt::new(text, 100).to_string() };
    let mut parts: Vec<&str> = name.split('.').collect();
    if parts.len() > MAX_PARTS || parts.iter().any(|part| part.is_empty()) {
        return Err(unnamed());
    }
    let first = parts.remove(0);
    let earlier = match first {
        "input" => return Ok((Origin::Input, parts)),
        "prev" => step.checked_sub(1),
        "steps" if !parts.is_empty() => index(parts.remove(0)).filter(|number| *number < step),
        _ => None,
    };
    earlier.map(|number| (Origin::Step(number), parts)).ok_or_else(unnamed)
}

/// A number in its one spelling.
fn index(text: &str) -> Option<usize> {
    text.parse().ok().filter(|number: &usize| number.to_string() == text)
}

fn given(
    step: usize,
    wanted: &Map<String, Value>,
    input: &Json,
    outputs: &[Json],
) -> Result<Json, ChainError> {
    let members = wanted.iter().map(|(name, value)| {
        resolved(step, value, input, outputs, 0).map(|value| (name.clone(), value))
    });
    let members: Map<String, Value> = members.collect::<Result<_, _>>()?;
    Json::new(Value::Object(members)).map_err(|source| ChainError::Input { step, source })
}

fn resolved(
    step: usize,
    value: &Value,
    input: &Json,
    outputs: &[Json],
    depth: usize,
) -> Result<Value, ChainError> {
    let deeper = |value: &Value| resolved(step, value, input, outputs, depth + 1);
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.clone()),
        Value::Array(_) | Value::Object(_) if depth > fluffy_base::MAX_DEPTH => Ok(value.clone()),
        Value::Array(items) => items.iter().map(deeper).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| Ok((key.clone(), deeper(value)?))).collect()
        }
        Value::String(text) => {
            let nothing = || ChainError::Nothing { step, name: text.clone() };
            let (origin, way) = origin(step, text)?;
            let from = match origin {
                Origin::Plain(text) => return Ok(text.into()),
                Origin::Input => Some(input.value()),
                Origin::Step(number) => outputs.get(number).map(Json::value),
            };
            let found = way.iter().try_fold(from.ok_or_else(nothing)?, |at, part| match at {
                Value::Array(items) => index(part).and_then(|index| items.get(index)),
                Value::Object(members) => members.get(*part),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
            });
            found.cloned().ok_or_else(nothing)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resolve(step: usize, text: &str) -> Result<Value, String> {
        let input = Json::new(json!({"x": {"y": [1, 2]}, "": 3})).unwrap();
        let outputs = [json!({"text": "first"}), json!({"items": [{"name": "a"}, {"name": "b"}]})]
            .map(|value| Json::new(value).unwrap());
        let outputs = outputs.get(..step.min(2)).unwrap();
        check_names(step, &text.into(), 0).map_err(|error| error.to_string())?;
        resolved(step, &json!([text]), &input, outputs, 0)
            .map(|found| found[0].clone())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn names_lead_to_values_of_earlier_steps_and_of_the_input() {
        for (step, text, expected) in [
            (0, "plain", json!("plain")),
            (0, "$$prev.text", json!("$prev.text")),
            (0, "$input", json!({"x": {"y": [1, 2]}, "": 3})),
            (0, "$input.x.y.1", json!(2)),
            (1, "$prev.text", json!("first")),
            (2, "$steps.0.text", json!("first")),
            (2, "$steps.1.items.1.name", json!("b")),
            (2, "$prev.items", json!([{"name": "a"}, {"name": "b"}])),
        ] {
            assert_eq!(resolve(step, text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_name_of_nothing_and_of_what_comes_later_is_refused() {
        for (step, text) in [
            (0, "$prev.text"),
            (0, "$steps.0.text"),
            (1, "$steps.1.text"),
            (1, "$steps.00.text"),
            (1, "$steps.-1.text"),
            (1, "$steps.text"),
            (1, "$steps"),
            (1, "$next.x"),
            (1, "$"),
            (1, "$input..x"),
            (1, "$input."),
        ] {
            assert!(resolve(step, text).unwrap_err().contains("names no value"), "{text}");
        }
        for text in ["$input.z", "$input.x.y.2", "$input.x.y.01", "$prev.text.0", "$prev.nothing"] {
            assert!(resolve(1, text).unwrap_err().contains("there is nothing at"), "{text}");
        }
    }
}
