//! What any participant asks of the kernel.

use serde_json::Value;

use crate::json::parse_strict;
use crate::text::Excerpt;
use crate::{Json, JsonError};

/// A request as it came: well-formed JSON of the right types, not yet checked for meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelRequest {
    /// Chosen by the sender, repeated in the receipt; means nothing to the kernel.
    pub request_id: String,
    /// The sender's time in milliseconds since the epoch.
    pub ts_ms: i64,
    /// Who asks.
    pub actor: String,
    /// What for, in words.
    pub intent: String,
    /// The tool to run, if any.
    pub tool_call: Option<ToolCall>,
    /// What the sender wants to say beside the call, such as `constraints`.
    pub params: Option<Json>,
    /// A reference to what justifies the request.
    pub evidence: Option<String>,
}

/// The tool to run. Its parameters are the only ones that are checked, hashed, run and recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The registered name.
    pub name: String,
    /// Its parameters.
    pub params: Json,
}

/// Why a text is not a request. The id is kept where it could be read, for the receipt.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{problem}")]
pub struct RequestError {
    /// The request's id, if the text had one.
    pub request_id: Option<String>,
    /// What is wrong with it.
    pub problem: RequestProblem,
}

/// What is wrong with a text that should be a request.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RequestProblem {
    /// Not acceptable JSON.
    #[error("the request is not valid JSON: {0}")]
    Json(#[from] JsonError),
    /// JSON, but not an object.
    #[error("the request is not a JSON object")]
    NotAnObject,
    /// A key that requests do not have.
    #[error(
        "unknown field `{0}`: a request has request_id, ts_ms, actor, intent, tool_call, params, evidence"
    )]
    UnknownField(String),
    /// A key whose value is of the wrong type.
    #[error("`{field}` must be {expected}")]
    WrongType {
        /// The key.
        field: &'static str,
        /// What stands there in a request.
        expected: &'static str,
    },
}

impl KernelRequest {
    /// A request that runs a tool.
    pub fn call(id: &str, actor: &str, intent: &str, tool: &str, params: Json) -> Self {
        let tool_call = Some(ToolCall { name: tool.to_owned(), params });
        Self { tool_call, ..Self::intent_only(id, actor, intent) }
    }

    /// A request that says something and runs nothing.
    pub fn intent_only(id: &str, actor: &str, intent: &str) -> Self {
        Self {
            request_id: id.to_owned(),
            ts_ms: 0,
            actor: actor.to_owned(),
            intent: intent.to_owned(),
            tool_call: None,
            params: None,
            evidence: None,
        }
    }

    /// Reads a request from JSON. Unknown fields, duplicate keys and wrong types are errors; absent
    /// texts are empty, and the kernel's validation names them all at once.
    pub fn parse(text: &[u8]) -> Result<Self, RequestError> {
        let value =
            parse_strict(text).map_err(|e| RequestError { request_id: None, problem: e.into() })?;
        let request_id = value.get("request_id").and_then(Value::as_str).map(str::to_owned);
        Self::from_value(value).map_err(|problem| RequestError { request_id, problem })
    }

    /// The request as one RFC 8785 text: what is kept, so that its decision can be taken again.
    pub fn canonical(&self) -> String {
        let text = |text: &str| Value::from(text).to_string();
        let mut out = format!("{{\"actor\":{}", text(&self.actor));
        if let Some(evidence) = &self.evidence {
            out += &format!(",\"evidence\":{}", text(evidence));
        }
        out += &format!(",\"intent\":{}", text(&self.intent));
        if let Some(params) = &self.params {
            out += &format!(",\"params\":{}", params.canonical());
        }
        out += &format!(",\"request_id\":{}", text(&self.request_id));
        if let Some(call) = &self.tool_call {
            let (name, params) = (text(&call.name), call.params.canonical());
            out += &format!(",\"tool_call\":{{\"name\":{name},\"params\":{params}}}");
        }
        out += &format!(",\"ts_ms\":{}}}", self.ts_ms);
        out
    }

    fn from_value(value: Value) -> Result<Self, RequestProblem> {
        let Value::Object(members) = value else { return Err(RequestProblem::NotAnObject) };
        let mut request = Self::intent_only("", "", "");
        let mut has_time = false;
        for (key, value) in members {
            match key.as_str() {
                "request_id" => request.request_id = text("request_id", value)?,
                "actor" => request.actor = text("actor", value)?,
                "intent" => request.intent = text("intent", value)?,
                "ts_ms" => {
                    has_time = true;
                    request.ts_ms = value.as_i64().ok_or_else(wrong_time)?;
                }
                "tool_call" => request.tool_call = tool_call(value)?,
                "params" => request.params = optional(value)?,
                "evidence" if value.is_null() => request.evidence = None,
                "evidence" => request.evidence = Some(text("evidence", value)?),
                _ => return Err(unknown(&key)),
            }
        }
        if has_time { Ok(request) } else { Err(wrong_time()) }
    }
}

fn wrong_time() -> RequestProblem {
    let expected = "an integer: milliseconds since the epoch";
    RequestProblem::WrongType { field: "ts_ms", expected }
}

fn unknown(key: &str) -> RequestProblem {
    RequestProblem::UnknownField(Excerpt::new(key, 100).to_string())
}

fn text(field: &'static str, value: Value) -> Result<String, RequestProblem> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(RequestProblem::WrongType { field, expected: "a string" }),
    }
}

fn optional(value: Value) -> Result<Option<Json>, RequestProblem> {
    if value.is_null() { Ok(None) } else { Ok(Some(Json::new(value)?)) }
}

fn tool_call(value: Value) -> Result<Option<ToolCall>, RequestProblem> {
    let mut members = match value {
        Value::Null => return Ok(None),
        Value::Object(members) => members,
        _ => {
            let expected = "an object with `name` and `params`";
            return Err(RequestProblem::WrongType { field: "tool_call", expected });
        }
    };
    let name = text("tool_call.name", members.remove("name").unwrap_or_default())?;
    let params = match members.remove("params") {
        None => Json::empty_object(),
        Some(value) => Json::new(value)?,
    };
    match members.keys().next() {
        Some(key) => Err(unknown(&format!("tool_call.{key}"))),
        None => Ok(Some(ToolCall { name, params })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        KernelRequest::parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_request_is_read_and_written_back() {
        let text = r#"{"request_id":"r","ts_ms":1,"actor":"a","intent":"i",
            "tool_call":{"name":"add","params":{"b":1.0,"a":2}},"params":{"z":-0.0},"evidence":null}"#;
        let request = KernelRequest::parse(text.as_bytes()).unwrap();
        let canonical = request.canonical();
        let expected = r#"{"actor":"a","intent":"i","params":{"z":0},"request_id":"r","tool_call":{"name":"add","params":{"a":2,"b":1}},"ts_ms":1}"#;
        assert_eq!(canonical, expected);
        assert_eq!(KernelRequest::parse(canonical.as_bytes()).unwrap(), request);
        let general = Json::parse(canonical.as_bytes()).unwrap();
        assert_eq!(general.canonical(), canonical);
    }

    #[test]
    fn wrong_shapes_are_named() {
        assert_eq!(refusal("[]"), "the request is not a JSON object");
        assert_eq!(refusal("null"), "the request is not a JSON object");
        assert!(refusal(r#"{"ts_ms":1,"tool":1}"#).starts_with("unknown field `tool`"));
        assert!(refusal(r#"{"ts_ms":1.5}"#).starts_with("`ts_ms` must be an integer"));
        assert!(refusal(r#"{"actor":"a"}"#).starts_with("`ts_ms` must be an integer"));
        assert_eq!(refusal(r#"{"ts_ms":1,"actor":7}"#), "`actor` must be a string");
        assert_eq!(refusal(r#"{"ts_ms":1,"tool_call":{}}"#), "`tool_call.name` must be a string");
        assert!(
            refusal(r#"{"ts_ms":1,"tool_call":{"name":"x","arguments":{}}}"#)
                .contains("tool_call.arguments")
        );
    }

    #[test]
    fn the_id_of_a_refused_request_is_kept() {
        let error = KernelRequest::parse(br#"{"request_id":"r7","nope":1}"#).unwrap_err();
        assert_eq!(error.request_id.as_deref(), Some("r7"));
    }

    #[test]
    fn parameters_that_are_no_object_stay_visible_for_the_ambiguity_check() {
        let text = br#"{"ts_ms":1,"tool_call":{"name":"echo","params":[1]}}"#;
        let call = KernelRequest::parse(text).unwrap().tool_call.unwrap();
        assert_eq!(call.params.canonical(), "[1]");
    }
}
