//! Results and summaries without secrets, in JSON values.
//!
//! Secrets are masked text by text. Masking the canonical text instead would miss a secret behind an
//! escape: in `"\nsk-…"` the letter `n` stands before it.

use fluffy_base::{Json, JsonError};
use fluffy_policy::Sanitiser;
use serde_json::Value;

/// The value with its secrets masked; `None` where it has none.
pub(crate) fn masked_json(sanitiser: &Sanitiser, json: &Json) -> Option<Result<Json, JsonError>> {
    if !holds_secret(sanitiser, json.value()) {
        return None;
    }
    let mut value = json.value().clone();
    mask(sanitiser, &mut value);
    Some(Json::new(value))
}

/// A tool's result as it is handed on: masked, and cut to the tool's limit. What is too long only as
/// a whole is handed on as a cut text. `None` where nothing has to change.
pub(crate) fn sanitised_json(
    sanitiser: &Sanitiser,
    tool: &str,
    json: &Json,
) -> Option<Result<Json, JsonError>> {
    let masked = match masked_json(sanitiser, json) {
        Some(Err(error)) => return Some(Err(error)),
        Some(Ok(masked)) => Some(masked),
        None => None,
    };
    let whole = masked.as_ref().unwrap_or(json);
    let text = match whole.value() {
        Value::String(text) => text,
        _ => whole.canonical(),
    };
    let cut = sanitiser.text(tool, text);
    if cut.left_out.is_some() {
        return Some(Json::new(Value::String(cut.text.into_owned())));
    }
    masked.map(Ok)
}

fn is_secret(sanitiser: &Sanitiser, text: &str) -> bool {
    sanitiser.masked(text).1 > 0
}

fn holds_secret(sanitiser: &Sanitiser, value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => is_secret(sanitiser, text),
        Value::Array(items) => items.iter().any(|item| holds_secret(sanitiser, item)),
        Value::Object(members) => {
            members.iter().any(|(key, v)| is_secret(sanitiser, key) || holds_secret(sanitiser, v))
        }
    }
}

fn mask(sanitiser: &Sanitiser, value: &mut Value) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => *text = sanitiser.masked(text).0.into_owned(),
        Value::Array(items) => items.iter_mut().for_each(|item| mask(sanitiser, item)),
        Value::Object(members) => {
            let old = std::mem::take(members);
            for (key, mut value) in old {
                mask(sanitiser, &mut value);
                members.insert(sanitiser.masked(&key).0.into_owned(), value);
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
        let masked = masked_json(&Sanitiser::default(), &json)
            .map(|masked| masked.unwrap().canonical().to_owned());
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

    #[test]
    fn a_long_result_is_cut_and_says_so() {
        let sanitiser = Sanitiser::default();
        let handed_on = |value: Value| {
            let json = Json::new(value).unwrap();
            sanitised_json(&sanitiser, "test.run", &json).map(|json| json.unwrap())
        };
        assert!(handed_on(json!({"a": "short"})).is_none());
        let long = format!("{}the end", "x".repeat(100_000));
        for value in [json!(long), json!({"out": long})] {
            let cut = handed_on(value).unwrap();
            let text = cut.value().as_str().unwrap();
            assert!(text.len() <= 12_000 && text.contains("left out"), "{}", text.len());
            assert!(text.contains("the end"), "of a test run the end is kept");
        }
    }
}
