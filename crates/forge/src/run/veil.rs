//! Secrets taken out of what is kept and handed on: as they are, and in the shapes that a line of code gives them
//! (turned round, in hex, in base 64).
//!
//! What else a skill does to a secret before it gives it back (cuts it, mixes it) cannot be recognised. That is why it is
//! given to skills alone that a person promoted with it.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use fluffy_base::{MASK, Secret, masked};
use serde_json::Value;

/// Shapes of a shorter secret would be found where nobody meant it.
const SHAPED: usize = 8;

/// The secrets of a run.
pub(super) struct Veil(Vec<Secret>);

impl Veil {
    /// Hides these, the longest first: one may hold another.
    pub(super) fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let texts = secrets.into_iter().flat_map(|secret| shapes(secret.expose()));
        let mut texts: Vec<_> = texts.filter(|text| !text.expose().is_empty()).collect();
        texts.sort_by_key(|text| std::cmp::Reverse(text.expose().len()));
        Self(texts)
    }

    /// A text without them.
    pub(super) fn text(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for secret in self.0.iter().map(Secret::expose).filter(|secret| text.contains(*secret)) {
            out = out.replace(secret, MASK);
        }
        masked(&out).into_owned()
    }

    /// A value without them; and whether it had any.
    pub(super) fn value(&self, value: &Value) -> (Value, bool) {
        let veiled = self.veiled(value);
        let had = veiled != *value;
        (veiled, had)
    }

    fn veiled(&self, value: &Value) -> Value {
        match value {
            Value::Null | Value::Bool(_) => value.clone(),
            Value::Number(number) => {
                let text = number.to_string();
                if self.0.iter().any(|secret| text.contains(secret.expose())) {
                    MASK.into()
                } else {
                    value.clone()
                }
            }
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.veiled(item)).collect(),
            Value::Object(members) => {
                members.iter().map(|(key, value)| (self.text(key), self.veiled(value))).collect()
            }
        }
    }
}

/// A secret as it is, and as a line of code makes it another text.
fn shapes(secret: &str) -> Vec<Secret> {
    let mut shapes = vec![secret.to_owned()];
    if secret.len() >= SHAPED {
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        shapes.push(secret.chars().rev().collect());
        shapes.push(hex.to_uppercase());
        shapes.push(hex);
        shapes.push(STANDARD_NO_PAD.encode(secret));
        shapes.push(URL_SAFE_NO_PAD.encode(secret));
    }
    shapes.into_iter().map(Secret::new).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_hidden_wherever_they_stand() {
        let secrets =
            ["hunter2".to_owned(), "hunter22-long".to_owned(), "4711".to_owned(), String::new()]
                .map(Secret::new);
        let veil = Veil::new(&secrets);
        let (value, had) = veil.value(&json!({
            "a": ["x hunter22-long y", 4711, 1.5, null], "hunter2": true, "b": "sk-abcdefghijklmnop1234",
        }));
        assert!(had);
        assert_eq!(value, json!({"a": ["x *** y", "***", 1.5, null], "***": true, "b": "sk-***"}));
        let shaped = json!(["gnol-22retnuh", "68756e74657232322d6c6f6e67", "aHVudGVyMjItbG9uZw=="]);
        assert_eq!(veil.value(&shaped).0, json!(["***", "***", "***=="]));
        let plain = json!({"a": [1, "two"]});
        assert_eq!(veil.value(&plain), (plain, false));
    }
}
