//! Whether what goes in and comes out is what was proposed.

use fluffy_base::{Excerpt, Json};
use jsonschema::Validator;
use serde_json::Value;

use super::{RunError, RunFailure};
use crate::{Proposal, SkillName};

/// The largest input.
const MAX_INPUT: usize = 1 << 20;

/// How many objections are told.
const SHOWN: usize = 5;

/// The input's schema as tools have it: an object without members that are not named.
pub(super) fn closed(proposal: &Proposal) -> Result<Value, RunError> {
    let unusable = |why: &str| unusable(&proposal.name, "input", why);
    let Value::Object(mut members) = proposal.input.clone() else {
        return Err(unusable("it is no object"));
    };
    if members.get("type").and_then(Value::as_str) != Some("object") {
        return Err(unusable("its type is not `object`"));
    }
    members.insert("additionalProperties".to_owned(), false.into());
    Ok(Value::Object(members))
}

/// Refuses what is not of the form, members that nobody named included.
pub fn check_input(proposal: &Proposal, input: &Json) -> Result<(), RunError> {
    if input.canonical().len() > MAX_INPUT {
        return Err(RunError::Input(format!("it has more than {} KiB", MAX_INPUT >> 10)));
    }
    let validator = validator(&proposal.name, "input", &closed(proposal)?)?;
    objections(&validator, input.value()).map_or(Ok(()), |why| Err(RunError::Input(why)))
}

/// The output, if it is of the form.
pub(super) fn check_output(proposal: &Proposal, output: Json) -> Result<Json, RunFailure> {
    let refuse = |why| Err(RunFailure::Output { why });
    if output.as_object().is_none() {
        return refuse("it is no object".to_owned());
    }
    let validator = match validator(&proposal.name, "output", &proposal.output) {
        Ok(validator) => validator,
        Err(error) => return refuse(error.to_string()),
    };
    match objections(&validator, output.value()) {
        None => Ok(output),
        Some(why) => refuse(why),
    }
}

fn validator(name: &SkillName, which: &'static str, schema: &Value) -> Result<Validator, RunError> {
    jsonschema::validator_for(schema).map_err(|error| unusable(name, which, &error.to_string()))
}

fn unusable(name: &SkillName, which: &'static str, why: &str) -> RunError {
    let why = Excerpt::new(why, 300).to_string();
    RunError::Schema { name: name.clone(), which, why }
}

/// What a schema has against a value, without repeating the value.
fn objections(validator: &Validator, value: &Value) -> Option<String> {
    if validator.is_valid(value) {
        return None;
    }
    let errors = validator.iter_errors(value).take(SHOWN).map(|error| {
        let place = error.instance_path().to_string();
        let text = Excerpt::new(&error.masked_with("value").to_string(), 200).to_string();
        if place.is_empty() { text } else { format!("{text} (at {})", Excerpt::new(&place, 60)) }
    });
    Some(errors.collect::<Vec<_>>().join("; "))
}
