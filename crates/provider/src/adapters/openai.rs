//! What OpenAI's two protocols share: addresses, tools, ids of calls, the list of models.

use std::collections::BTreeSet;
use std::mem;

use fluffy_base::Digest;
use serde_json::{Value, json};

use crate::{
    Ask, Call, CallResult, Effort, Endpoint, ModelInfo, ModelPage, ModelRequest, ProviderError,
    SseEvent, ToolDefinition,
};

/// What a model is told of a call that nobody answered.
const NO_ANSWER: &str = "no answer came; it is not known what became of this call";

/// Posts a body. Under a server's bare address the protocol is at `/v1`.
pub(crate) fn post(endpoint: &Endpoint, path: &str, body: &Value) -> Ask {
    Ask { body: Some(body.to_string().into_bytes()), ..get(endpoint, path) }
}

/// Gets a path.
pub(crate) fn get(endpoint: &Endpoint, path: &str) -> Ask {
    let version = if endpoint.url.path().is_empty() { "/v1" } else { "" };
    Ask { path: format!("{version}{path}"), headers: Vec::new(), body: None }
}

/// What sends the requests of one session to where their beginning is remembered.
pub(crate) fn cache_key(request: &ModelRequest) -> String {
    let tools =
        request.tools.iter().map(|tool| format!("\0{}\0{}", tool.name, tool.schema.canonical()));
    let begin: String = [request.system.clone()].into_iter().chain(tools).collect();
    Digest::of(begin.as_bytes()).to_string().chars().take(32).collect()
}

/// How long to think, in the protocols' word.
pub(crate) const fn effort(effort: Effort) -> &'static str {
    match effort {
        Effort::None => "none",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    }
}

/// The schema of a tool's arguments as every server takes it: an object, without alternatives at its top. What
/// that lets through beyond the tool's own schema is refused when the call comes.
pub(crate) fn schema(tool: &ToolDefinition) -> Value {
    let mut schema = tool.schema.as_object().cloned().unwrap_or_default();
    for key in ["$ref", "$schema", "allOf", "anyOf", "const", "enum", "not", "oneOf"] {
        schema.remove(key);
    }
    schema.insert("type".to_owned(), json!("object"));
    schema.entry("properties").or_insert_with(|| json!({}));
    Value::Object(schema)
}

/// The ids of a conversation's calls, as they are sent: their own where that can be, and no two the same.
#[derive(Debug)]
pub(crate) struct CallIds {
    longest: usize,
    used: BTreeSet<String>,
    /// Calls without an answer: the id they have, and the one that is sent.
    open: Vec<(String, String)>,
}

impl CallIds {
    /// Ids of at most so many bytes.
    pub(crate) fn new(longest: usize) -> Self {
        Self { longest, used: BTreeSet::new(), open: Vec::new() }
    }

    /// The id of the next call.
    pub(crate) fn call(&mut self, call: &Call) -> String {
        let fits = (1..=self.longest).contains(&call.id.len())
            && call.id.chars().all(|c| c.is_ascii_graphic())
            && !self.used.contains(&call.id);
        let made = || (self.used.len()..).map(|number| format!("call_{number}"));
        let id =
            if fits { Some(call.id.clone()) } else { made().find(|id| !self.used.contains(id)) };
        let id = id.unwrap_or_default();
        self.used.insert(id.clone());
        self.open.push((call.id.clone(), id.clone()));
        id
    }

    /// One answer for each call since the last answers, in their order: the id and the words.
    pub(crate) fn answers(&mut self, results: &[CallResult]) -> Vec<(String, String)> {
        let mut left: Vec<&CallResult> = results.iter().collect();
        let open = mem::take(&mut self.open).into_iter();
        open.map(|(given, sent)| {
            let found = left.iter().position(|result| result.call_id == given);
            let said = found.map(|at| answer(left.remove(at)));
            (sent, said.unwrap_or_else(|| NO_ANSWER.to_owned()))
        })
        .collect()
    }
}

/// The words of a result. The protocols have no sign for an error but the words.
fn answer(result: &CallResult) -> String {
    if result.outcome.is_error() {
        return format!("[{}] {}", result.outcome.name(), result.content);
    }
    result.content.clone()
}

/// The JSON texts of an event: one, or one a line.
pub(crate) fn values(event: &SseEvent) -> Result<Vec<Value>, ProviderError> {
    let values = serde_json::Deserializer::from_str(&event.data).into_iter();
    values
        .collect::<Result<_, _>>()
        .map_err(|error| ProviderError::Malformed(format!("an event is no JSON: {error}")))
}

/// What stands at a place, such as `/error/code`; null where nothing does.
pub(crate) fn at<'a>(value: &'a Value, place: &str) -> &'a Value {
    value.pointer(place).unwrap_or(&Value::Null)
}

/// The text at a place; empty where there is none.
pub(crate) fn text<'a>(value: &'a Value, place: &str) -> &'a str {
    at(value, place).as_str().unwrap_or_default()
}

/// The elements of the list at a place; none where there is no list.
pub(crate) fn list<'a>(value: &'a Value, place: &str) -> &'a [Value] {
    at(value, place).as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Reads a list of models, with what servers add to it.
pub(crate) fn models_in(body: &[u8]) -> Result<ModelPage, ProviderError> {
    let body: Value = serde_json::from_slice(body)
        .map_err(|error| ProviderError::Malformed(format!("the list of models: {error}")))?;
    if !body.is_array() && body.get("data").is_none() {
        return Err(ProviderError::Malformed(
            "there is no list of models in the answer".to_owned(),
        ));
    }
    let models = list(&body, if body.is_array() { "" } else { "/data" });
    Ok(ModelPage { models: models.iter().filter_map(model).collect(), next: None })
}

fn model(model: &Value) -> Option<ModelInfo> {
    let number = |places: &[&str]| places.iter().find_map(|place| at(model, place).as_u64());
    let id = text(model, "/id");
    let title = ["/display_name", "/name"].into_iter().map(|place| text(model, place));
    let title = title.into_iter().find(|title| !title.is_empty() && *title != id);
    let window = [
        "/max_model_len",
        "/context_length",
        "/context_window",
        "/max_context_length",
        "/meta/n_ctx",
        "/meta/n_ctx_train",
    ];
    let longest =
        ["/max_output_tokens", "/max_completion_tokens", "/top_provider/max_completion_tokens"];
    (!id.is_empty()).then(|| ModelInfo {
        id: id.to_owned(),
        title: title.map(str::to_owned),
        context_window: number(&window),
        max_output_tokens: number(&longest),
    })
}
