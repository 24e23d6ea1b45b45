//! How vendors' JSON is read and written, and the paths it goes to.

use std::fmt::Write as _;

use fluffy_base::Digest;
use serde_json::{Map, Value, json};

use crate::{
    Call, Endpoint, MAX_TURN_BYTES, ModelInfo, Names, ProviderError, SseEvent, StreamFault,
    ToolDefinition,
};

/// Reads what a vendor sent.
pub(crate) fn read(bytes: &[u8]) -> Result<Value, ProviderError> {
    serde_json::from_slice(bytes).map_err(|error| ProviderError::Malformed(error.to_string()))
}

/// Reads an event; nothing where it says nothing.
pub(crate) fn read_event(event: &SseEvent) -> Result<Option<Value>, ProviderError> {
    match event.data.trim() {
        "" | "[DONE]" => Ok(None),
        data => read(data.as_bytes()).map(Some),
    }
}

/// Reads a list of models: where the list is, and where in each of its members the name, the title, the window and
/// the longest answer are.
pub(crate) fn models(
    body: &Value,
    list: &str,
    at: [&str; 4],
) -> Result<Vec<ModelInfo>, ProviderError> {
    let list = body.get(list).and_then(Value::as_array);
    let list = list.ok_or_else(|| malformed("no list of models"))?;
    let [id, title, window, longest] = at;
    let models = list.iter().filter_map(|model| {
        Some(ModelInfo {
            id: text(model, id)?.to_owned(),
            title: text(model, title).map(str::to_owned),
            context_window: model.pointer(window).and_then(Value::as_u64),
            max_output_tokens: model.pointer(longest).and_then(Value::as_u64),
        })
    });
    Ok(models.collect())
}

/// Reads how many tokens a vendor counted.
pub(crate) fn tokens(body: &[u8], pointer: &str) -> Result<u64, ProviderError> {
    let tokens = read(body)?.pointer(pointer).and_then(Value::as_u64);
    tokens.ok_or_else(|| malformed("no count of tokens"))
}

/// What makes no sense.
pub(crate) fn malformed(what: &str) -> ProviderError {
    ProviderError::Malformed(what.to_owned())
}

/// The stream ended and the turn did not: the connection broke, whatever it looks like.
pub(crate) fn cut() -> ProviderError {
    ProviderError::Network(StreamFault::Unfinished.to_string())
}

/// Adds to what a reader of an answer holds until a later piece; an endless answer must not fill the memory.
pub(crate) fn hold(held: &mut usize, more: usize) -> Result<(), ProviderError> {
    *held = held.saturating_add(more);
    if *held > MAX_TURN_BYTES { Err(StreamFault::TooLarge.into()) } else { Ok(()) }
}

/// The text at a pointer such as `/error/message`.
pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str)
}

/// The count at a pointer; what is not there is none.
pub(crate) fn count(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

/// Whether the member of this name is there and true.
pub(crate) fn is_set(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool) == Some(true)
}

/// An object without the members that are null: what is not said is not sent.
pub(crate) fn said(mut value: Value) -> Value {
    if let Some(members) = value.as_object_mut() {
        members.retain(|_, member| !member.is_null());
    }
    value
}

/// Whether a text says nothing. Some vendors refuse such texts.
pub(crate) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// The text, if it says something.
pub(crate) fn words(text: &str) -> Option<&str> {
    Some(text).filter(|text| !is_blank(text))
}

/// The arguments of a past call for vendors that want an object: none where the model wrote none.
pub(crate) fn arguments(call: &Call) -> Map<String, Value> {
    serde_json::from_str(&call.arguments).unwrap_or_default()
}

/// A tool as vendors are told of it, the schema of its arguments under this name: an object, without alternatives
/// at its top, which are refused. What that lets through beyond the tool's own schema is refused when it is called.
pub(crate) fn tool(tool: &ToolDefinition, arguments: &str) -> Value {
    let mut schema = tool.schema.as_object().cloned().unwrap_or_default();
    for key in ["$ref", "allOf", "anyOf", "oneOf"] {
        schema.remove(key);
    }
    schema.insert("type".to_owned(), "object".into());
    let (name, summary) = (Names::outside(&tool.name), words(&tool.summary));
    said(json!({"name": name, "description": summary, arguments: schema}))
}

/// The id of a call in letters, digits, `_` and `-`: another vendor's may have to be written differently.
pub(crate) fn plain_id(id: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !id.is_empty() && id.chars().all(fits) {
        return id.to_owned();
    }
    format!("call_{}", Digest::of(id.as_bytes()))
}

/// A path of this version of a protocol, unless the address of the endpoint itself says a version:
/// `https://host` and `https://host/v1` are both understood.
pub(crate) fn versioned(endpoint: &Endpoint, version: &str, path: &str) -> String {
    let is_version = |part: &str| {
        let number = part.strip_prefix('v');
        number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
    };
    if endpoint.url.path().split('/').any(is_version) {
        return path.to_owned();
    }
    format!("/{}{path}", encoded(version))
}

/// A text as one part of a path or a query, whatever is in it.
pub(crate) fn encoded(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            plain.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            _ = write!(plain, "%{byte:02X}");
        }
    }
    plain
}
