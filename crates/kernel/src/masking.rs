//! Known secrets in JSON values are masked text by text.
//!
//! Masking the canonical text instead would miss a secret behind an escape: in `"\nsk-…"` the letter
//! `n` stands before it.

use std::borrow::Cow;

use fluffy_base::{Json, JsonError, masked};
use serde_json::Value;

/// The value with its secrets masked; `None` where it has none.
pub(crate) fn masked_json(json: &Json) -> Option<Result<Json, JsonError>> {
    if !holds_secret(json.value()) {
        return None;
    }
    let mut value = json.value().clone();
    mask(&mut value);
    Some(Json::new(value))
}

fn is_secret(text: &str) -> bool {
    matches!(masked(text), Cow::Owned(_))
}

fn holds_secret(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => is_secret(text),
        Value::Array(items) => items.iter().any(holds_secret),
        Value::Object(members) => members.iter().any(|(key, v)| is_secret(key) || holds_secret(v)),
    }
}

fn mask(value: &mut Value) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => *text = masked(text).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Object(members) => {
            let old = std::mem::take(members);
            for (key, mut value) in old {
                mask(&mut value);
                members.insert(masked(&key).into_owned(), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(value: Value, expected: Option<&str>) {
        let json = Json::new(value).unwrap();
        let masked = masked_json(&json).map(|masked| masked.unwrap().canonical().to_owned());
        assert_eq!(masked.as_deref(), expected);
    }

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        let key = "sk-abcdefghijklmnop1234";
        check(json!({"a": [1, true, null, "plain"]}), None);
        check(json!({"a": [{"b": key}]}), Some(r#"{"a":[{"b":"sk-***"}]}"#));
        check(json!({key: 1}), Some(r#"{"sk-***":1}"#));
        check(json!(format!("first\n{key}")), Some(r#""first\nsk-***""#));
    }
}
