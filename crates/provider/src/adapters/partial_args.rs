//! Arguments of a call that come in pieces, each with the path of its value: how Vertex streams them.

use serde_json::{Map, Value};

use crate::ProviderError;
use crate::adapters::wire::{self, malformed};

/// How deep arguments may be nested.
const MAX_DEPTH: usize = 64;

/// Arguments of which some are there.
#[derive(Debug, Default)]
pub(crate) struct PartialArgs {
    /// An object, or nothing yet.
    value: Value,
    /// The text that the next piece goes on with.
    unfinished: Option<String>,
    held: usize,
}

/// A step of a path.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    Item(usize),
}

impl PartialArgs {
    /// Takes arguments that come at once.
    pub(crate) fn begin(&mut self, args: &Value) -> Result<(), ProviderError> {
        if !args.is_object() {
            return Err(malformed("arguments that are no object"));
        }
        self.value = args.clone();
        Ok(())
    }

    /// Takes a piece: `{"jsonPath": "$.a[0]", "stringValue": "…", "willContinue": true}`.
    pub(crate) fn take(&mut self, piece: &Value) -> Result<(), ProviderError> {
        let path = piece.get("jsonPath").and_then(Value::as_str).unwrap_or_default();
        let steps = steps(path).ok_or_else(|| odd(path))?;
        let text = piece.get("stringValue").and_then(Value::as_str);
        wire::hold(&mut self.held, path.len() + text.map_or(0, str::len) + 64)?;
        let goes_on = self.unfinished.take().is_some_and(|unfinished| unfinished == path);
        let place = place(&mut self.value, &steps).ok_or_else(|| odd(path))?;
        match (place, text) {
            (Value::String(begun), Some(text)) if goes_on => begun.push_str(text),
            (place, Some(text)) => *place = Value::from(text),
            (place, None) => {
                let plain = ["numberValue", "boolValue"].iter().find_map(|key| piece.get(*key));
                *place = plain.cloned().unwrap_or_default();
            }
        }
        if wire::is_set(piece, "willContinue") {
            self.unfinished = Some(path.to_owned());
        }
        Ok(())
    }

    /// The arguments as text.
    pub(crate) fn text(&self) -> String {
        if self.value.is_null() { "{}".to_owned() } else { self.value.to_string() }
    }
}

fn odd(path: &str) -> ProviderError {
    malformed(&format!("an argument at `{path}`"))
}

/// The steps of a path, the first of them to a member.
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() && steps.len() < MAX_DEPTH {
        let quoted = |quote: &str| {
            let (name, rest) = rest.strip_prefix('[')?.strip_prefix(quote)?.split_once(quote)?;
            Some((Step::Member(name.to_owned()), rest.strip_prefix(']')?))
        };
        let (step, behind) = if let Some(name) = rest.strip_prefix('.') {
            let (name, behind) = name.split_at(name.find(['.', '[']).unwrap_or(name.len()));
            (Step::Member(name.to_owned()), behind)
        } else if let Some(found) = quoted("'").or_else(|| quoted("\"")) {
            found
        } else {
            let (number, behind) = rest.strip_prefix('[')?.split_once(']')?;
            (Step::Item(number.parse().ok()?), behind)
        };
        steps.push(step);
        rest = behind;
    }
    (rest.is_empty() && matches!(steps.first(), Some(Step::Member(_)))).then_some(steps)
}

/// Where a path leads, made on the way; nowhere where it contradicts what is there, or leaves items out.
fn place<'v>(mut value: &'v mut Value, steps: &[Step]) -> Option<&'v mut Value> {
    for step in steps {
        value = match step {
            Step::Member(name) => {
                if value.is_null() {
                    *value = Value::Object(Map::new());
                }
                value.as_object_mut()?.entry(name.as_str()).or_insert(Value::Null)
            }
            Step::Item(index) => {
                if value.is_null() {
                    *value = Value::Array(Vec::new());
                }
                let items = value.as_array_mut()?;
                if *index == items.len() {
                    items.push(Value::Null);
                }
                items.get_mut(*index)?
            }
        };
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn args(pieces: &[Value]) -> Result<String, ProviderError> {
        let mut args = PartialArgs::default();
        for piece in pieces {
            args.take(piece)?;
        }
        Ok(args.text())
    }

    #[test]
    fn values_go_where_their_paths_say_and_unfinished_texts_go_on() {
        let pieces = [
            json!({"jsonPath": "$.a", "stringValue": "one", "willContinue": true}),
            json!({"jsonPath": "$.a", "stringValue": " two", "willContinue": true}),
            json!({"jsonPath": "$.a", "stringValue": ""}),
            json!({"jsonPath": "$.b.c[0].d", "numberValue": 1.5}),
            json!({"jsonPath": "$.b.c[1]", "boolValue": true}),
            json!({"jsonPath": "$['e.f'][\"g\"]", "nullValue": "NULL_VALUE"}),
        ];
        let expected = json!({"a": "one two", "b": {"c": [{"d": 1.5}, true]}, "e.f": {"g": null}});
        assert_eq!(args(&pieces).unwrap(), expected.to_string());
    }

    #[test]
    fn a_text_that_was_finished_is_replaced_and_not_continued() {
        let piece = |text| json!({"jsonPath": "$.a", "stringValue": text});
        assert_eq!(args(&[piece("x"), piece("y")]).unwrap(), r#"{"a":"y"}"#);
    }

    #[test]
    fn a_path_that_leads_nowhere_is_an_error() {
        for path in ["", "$", "a", "$a", "$.a[", "$[0]", "$.a[1]", "$.a[-1]", "$.a[4294967295]"] {
            assert!(args(&[json!({"jsonPath": path, "stringValue": "x"})]).is_err(), "{path}");
        }
        let deep = format!("${}", ".a".repeat(100_000));
        assert!(args(&[json!({"jsonPath": deep, "stringValue": "x"})]).is_err());
        let first = json!({"jsonPath": "$.a", "stringValue": "x"});
        assert!(args(&[first, json!({"jsonPath": "$.a.b", "boolValue": true})]).is_err());
    }
}
