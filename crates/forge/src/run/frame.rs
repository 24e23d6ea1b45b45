//! What is said between the kernel and a skill's process.
//!
//! **Invariant.** What comes back is a stranger's: bounded, strict JSON of one form, or nothing.

use std::collections::BTreeMap;

use fluffy_base::{Excerpt, Json};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The largest frame, either way.
pub(super) const MAX_FRAME: usize = 8 << 20;

/// How many values a message may have.
const MAX_VALUES: usize = 200_000;

/// How much of an error's words is kept.
const MAX_WORDS: usize = 2_000;

/// What a run is told, once.
#[derive(Debug, Serialize)]
pub(super) struct Told<'a> {
    pub(super) modules: BTreeMap<String, String>,
    pub(super) module: &'a str,
    pub(super) class: String,
    pub(super) input: &'a Value,
    pub(super) folders: BTreeMap<String, String>,
    pub(super) secrets: BTreeMap<&'a str, &'a str>,
    pub(super) hosts: &'a [String],
    pub(super) model: bool,
}

/// What a run says.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    /// It is done, and this is what it gives.
    Output(Json),
    /// It failed.
    Raised(Raised),
    /// It asks the model.
    Generate(String),
    /// It asks the model for vectors.
    Embed(Vec<String>),
}

/// An exception of a skill's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raised {
    /// Its class.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it says.
    pub message: String,
    /// The line, if it is one of the skill's.
    pub line: Option<u32>,
    /// The module of that line.
    pub module: Option<String>,
}

impl Said {
    /// Reads a message; the error says what is wrong with it.
    pub(super) fn read(payload: &[u8]) -> Result<Self, String> {
        let said = Json::parse_within(payload, MAX_VALUES).map_err(|error| error.to_string())?;
        let Value::Object(mut members) = said.value().clone() else {
            return Err("it is no object".to_owned());
        };
        let only = members.len() == 1;
        match (members.remove("output"), members.remove("error"), members.get("ask")) {
            (Some(output), None, None) if only => {
                Json::new(output).map(Self::Output).map_err(|error| error.to_string())
            }
            (None, Some(error), None) if only => raised(error),
            (None, None, Some(Value::String(_))) => asked(members),
            _ => Err("it is neither an output nor an error nor a question".to_owned()),
        }
    }
}

fn raised(error: Value) -> Result<Said, String> {
    let mut raised: Raised = serde_json::from_value(error).map_err(|error| error.to_string())?;
    raised.kind = Excerpt::new(&raised.kind, 100).to_string();
    raised.message = raised.message.chars().take(MAX_WORDS).collect();
    raised.module = raised.module.map(|module| Excerpt::new(&module, 100).to_string());
    Ok(Said::Raised(raised))
}

fn asked(members: Map<String, Value>) -> Result<Said, String> {
    #[derive(Deserialize)]
    #[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
    enum Asked {
        Generate { prompt: String },
        Embed { texts: Vec<String> },
    }
    match serde_json::from_value(Value::Object(members)).map_err(|error| error.to_string())? {
        Asked::Generate { prompt } => Ok(Said::Generate(prompt)),
        Asked::Embed { texts } => Ok(Said::Embed(texts)),
    }
}

/// The answer to a question.
pub(super) fn answer(answer: Result<Value, String>) -> Vec<u8> {
    let message = match answer {
        Ok(answer) => json!({ "answer": answer }),
        Err(why) => json!({ "unavailable": why }),
    };
    message.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_of_the_one_form_is_nothing() {
        for text in [
            "",
            "[]",
            "null",
            "{}",
            r#"{"output":1,"output":2}"#,
            r#"{"output":{},"error":{}}"#,
            r#"{"output":{},"x":1}"#,
            r#"{"output":{"x":NaN}}"#,
            r#"{"output":{"x":1e999}}"#,
            r#"{"output":{"x":9223372036854775809}}"#,
            r#"{"output":{"x":"\ud800"}}"#,
            "{\"output\":{\"x\":\"\u{0}\"}}",
            r#"{"error":"x"}"#,
            r#"{"error":{"type":"X","message":"m","line":-1,"module":null}}"#,
            r#"{"ask":"generate"}"#,
            r#"{"ask":"generate","prompt":"x","hosts":["a"]}"#,
            r#"{"ask":"run","prompt":"x"}"#,
            r#"{"ask":1}"#,
            r#"{"output":{}} {"output":{}}"#,
        ] {
            Said::read(text.as_bytes()).unwrap_err();
        }
        Said::read(&[0xff, 0xfe]).unwrap_err();
        let many = format!(r#"{{"output":[{}0]}}"#, "0,".repeat(MAX_VALUES));
        Said::read(many.as_bytes()).unwrap_err();
        let deep = format!(r#"{{"output":{}{}}}"#, "[".repeat(100), "]".repeat(100));
        Said::read(deep.as_bytes()).unwrap_err();
        let output = Json::new(json!({"x": "\u{7f}\u{202e}é"})).unwrap();
        let text = format!(r#"{{"output":{}}}"#, output.canonical());
        assert_eq!(Said::read(text.as_bytes()), Ok(Said::Output(output)));
    }
}
