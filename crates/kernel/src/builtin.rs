//! The two tools every kernel has.

use fluffy_base::Json;
use fluffy_policy::Shape;
use serde_json::{Value, json};

use crate::{Clerk, Effect, Tool, ToolError, ToolSpec};

/// Gives back a text.
#[derive(Debug, Clone, Copy)]
pub struct Echo;

/// Adds two integers.
#[derive(Debug, Clone, Copy)]
pub struct Add;

impl Tool for Echo {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "echo".into(),
            summary: "Gives back a text".into(),
            schema: json!({
                "type": "object",
                "properties": { "text": { "type": "string" } },
                "required": ["text"],
                "additionalProperties": false,
            }),
            effect: Effect::None,
            shape: Shape::PLAIN,
        }
    }

    fn run(&self, params: &Json, _: &dyn Clerk) -> Result<Value, ToolError> {
        let text = params.value().get("text").and_then(Value::as_str);
        text.map(Value::from).ok_or_else(|| ToolError("`text` is missing".to_owned()))
    }
}

impl Tool for Add {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "add".into(),
            summary: "Adds two integers".into(),
            schema: json!({
                "type": "object",
                "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } },
                "required": ["a", "b"],
                "additionalProperties": false,
            }),
            effect: Effect::None,
            shape: Shape::PLAIN,
        }
    }

    fn run(&self, params: &Json, _: &dyn Clerk) -> Result<Value, ToolError> {
        let number = |name: &str| params.value().get(name).and_then(Value::as_i64);
        let (Some(a), Some(b)) = (number("a"), number("b")) else {
            return Err(ToolError("`a` and `b` must be integers of at most 64 bits".to_owned()));
        };
        a.checked_add(b)
            .map(Value::from)
            .ok_or_else(|| ToolError("the sum is too large".to_owned()))
    }
}
