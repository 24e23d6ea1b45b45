//! The arguments of a call, as a tool reads them. The schema was checked before; what it cannot say is
//! checked here.

use std::error::Error as _;

use fluffy_base::{Excerpt, Json, PathError, ProjectPath};
use fluffy_policy::{Shape, shape_of};
use serde_json::{Map, Value, json};

use crate::{Effect, Failure, ToolError, ToolSpec, TreeError};

/// What is known of a tool of ours that changes nothing.
pub(super) fn reading(
    name: &'static str,
    summary: &'static str,
    properties: Value,
    required: &[&str],
) -> ToolSpec {
    ToolSpec { effect: Effect::None, ..acting(name, summary, properties, required) }
}

/// What is known of a tool of ours that changes something, or runs something.
pub(super) fn acting(
    name: &'static str,
    summary: &'static str,
    properties: Value,
    required: &[&str],
) -> ToolSpec {
    // Every name here stands in the table; should one not, its calls would be judged as touching nothing,
    // which no rule about files allows.
    let shape = shape_of(name).copied().unwrap_or(Shape::PLAIN);
    let schema = closed(properties, required);
    let (name, summary) = (name.into(), summary.into());
    ToolSpec { name, summary, schema, effect: Effect::Some, shape }
}

/// The schema of an object with these members and no others.
pub(super) fn closed(properties: Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// The argument `path`: nothing is the project's root.
pub(super) fn directory(params: &Json) -> Result<Option<ProjectPath>, ToolError> {
    directory_named(params, "path")
}

/// A directory by the name of its argument: nothing is the project's root.
pub(crate) fn directory_named(params: &Json, name: &str) -> Result<Option<ProjectPath>, ToolError> {
    let Some(text) = params.value().get(name).and_then(Value::as_str) else { return Ok(None) };
    match ProjectPath::parse(text) {
        Ok(path) => Ok(Some(path)),
        Err(PathError::Root) => Ok(None),
        Err(error) => Err(ToolError(error.to_string())),
    }
}

/// A text that must be there.
pub(super) fn text<'a>(params: &'a Json, name: &str) -> Result<&'a str, ToolError> {
    let text = params.value().get(name).and_then(Value::as_str);
    text.ok_or_else(|| ToolError(format!("`{name}` is missing")))
}

/// A yes or no; no, if it is not there.
pub(super) fn flag(params: &Json, name: &str) -> bool {
    params.value().get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// A number from 1, if it is there.
pub(super) fn number(params: &Json, name: &str) -> Result<Option<u64>, ToolError> {
    match params.value().get(name) {
        None => Ok(None),
        Some(value) => match value.as_u64() {
            Some(number) if number > 0 => Ok(Some(number)),
            Some(_) | None => Err(ToolError(format!("`{name}` must be a number from 1"))),
        },
    }
}

/// A failure with its cause, what to do instead, and whether it may pass.
pub(super) fn told(error: &TreeError) -> Failure {
    let cause = error
        .source()
        .map_or_else(String::new, |cause| format!(": {}", Excerpt::new(&cause.to_string(), 200)));
    let advice = match error {
        TreeError::Link { .. } => "; ask for the target by its own path",
        TreeError::TooMany(_) => "; name a directory by `path`",
        TreeError::Missing(_)
        | TreeError::NotAFile(_)
        | TreeError::NotADirectory(_)
        | TreeError::Changed(_)
        | TreeError::Large { .. }
        | TreeError::Io { .. } => "",
    };
    let told = ToolError(format!("{error}{cause}{advice}"));
    if error.may_pass() { Failure::Passing(told) } else { Failure::Lasting(told) }
}

/// A path for the model; `.` is the root.
pub(super) fn shown(path: Option<&ProjectPath>) -> &str {
    path.map_or(".", ProjectPath::as_str)
}

/// Says how many there are of something, unless there are none.
pub(super) fn count(answer: &mut Map<String, Value>, name: &str, number: usize) {
    if number > 0 {
        answer.insert(name.to_owned(), number.into());
    }
}
