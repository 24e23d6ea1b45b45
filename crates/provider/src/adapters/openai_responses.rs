//! OpenAI's responses, stateless: every item of the conversation is sent again, reasoning sealed.

use std::mem;

use serde_json::{Map, Value, json};

use crate::adapters::openai::{self, CallIds};
use crate::adapters::openai_refusal::refusal;
use crate::adapters::openai_responses_stream::ResponseStream;
use crate::{
    Adapter, Answer, Ask, Call, Decoder, Endpoint, Message, ModelPage, ModelRequest, Names, Place,
    ProviderError, ReasoningBlock, ToolDefinition,
};

/// How long the id of a call may be.
const LONGEST_ID: usize = 64;

/// The protocol.
#[derive(Debug)]
pub(crate) struct OpenaiResponses;

impl Adapter for OpenaiResponses {
    fn turn(&self, request: &ModelRequest, endpoint: &Endpoint) -> Result<Ask, ProviderError> {
        Names::of(&request.tools)?;
        let mut body = Map::new();
        let mut set = |key: &str, value: Value| body.insert(key.to_owned(), value);
        set("model", json!(request.model));
        set("input", json!(input(request, &endpoint.origin(&request.model))));
        set("stream", json!(true));
        set("store", json!(false));
        set("max_output_tokens", json!(request.max_output_tokens));
        set("prompt_cache_key", json!(openai::cache_key(request)));
        if !request.system.is_empty() {
            set("instructions", json!(request.system));
        }
        if endpoint.effort.is_some() || can_think(&request.model) {
            set("include", json!(["reasoning.encrypted_content"]));
        }
        if let Some(effort) = endpoint.effort {
            set("reasoning", json!({"effort": openai::effort(effort)}));
        }
        if !request.tools.is_empty() {
            set("tools", request.tools.iter().map(function).collect());
        }
        Ok(openai::post(endpoint, "/responses", &Value::Object(body)))
    }

    fn decoder(
        &self,
        request: &ModelRequest,
        endpoint: &Endpoint,
    ) -> Result<Box<dyn Decoder>, ProviderError> {
        let (origin, names) = (endpoint.origin(&request.model), Names::of(&request.tools)?);
        Ok(Box::new(ResponseStream::new(origin, names, request.max_output_tokens)))
    }

    fn refusal(&self, answer: &Answer) -> ProviderError {
        refusal(answer)
    }

    fn models(&self, endpoint: &Endpoint, _: Option<&str>) -> Ask {
        openai::get(endpoint, "/models")
    }

    fn models_in(&self, body: &[u8]) -> Result<ModelPage, ProviderError> {
        openai::models_in(body)
    }
}

/// Whether a model may be asked for its sealed reasoning: those that never reason refuse the request.
fn can_think(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.strip_prefix("ft:").unwrap_or(name);
    !["gpt-3", "gpt-4", "chatgpt"].iter().any(|old| name.starts_with(old))
        && !name.contains("-chat")
}

fn function(tool: &ToolDefinition) -> Value {
    // Not strict: a strict schema has no optional arguments.
    json!({
        "type": "function", "name": Names::outside(&tool.name), "description": tool.summary,
        "parameters": openai::schema(tool), "strict": false,
    })
}

fn input(request: &ModelRequest, origin: &str) -> Vec<Value> {
    let mut ids = CallIds::new(LONGEST_ID);
    let mut items = Vec::new();
    for message in &request.messages {
        let results = match message {
            Message::Results { results } => results.as_slice(),
            Message::User { .. } | Message::Assistant { .. } => &[],
        };
        items.extend(ids.answers(results).into_iter().map(output));
        match message {
            Message::User { text } => {
                let content = json!([{"type": "input_text", "text": text}]);
                items.push(json!({"type": "message", "role": "user", "content": content}));
            }
            Message::Assistant { text, calls, reasoning } => {
                let blocks = reasoning.iter().filter(|block| block.origin == origin);
                items.extend(said(text, calls, blocks, &mut ids));
            }
            Message::Results { .. } => {}
        }
    }
    items.extend(ids.answers(&[]).into_iter().map(output));
    items
}

fn output((id, content): (String, String)) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": content})
}

/// A turn of the past, as the items it came in.
fn said<'a>(
    text: &str,
    calls: &[Call],
    blocks: impl Iterator<Item = &'a ReasoningBlock>,
    ids: &mut CallIds,
) -> Vec<Value> {
    let (mut items, mut before) = (Vec::new(), Place::default());
    let (mut message, mut call) = (Map::new(), Map::new());
    let blocks =
        blocks.map(|block| (block.place, serde_json::from_str(&block.data).unwrap_or_default()));
    let end = Place { text: text.len(), calls: calls.len() };
    for (place, mut block) in blocks.chain([(end, Map::new())]) {
        let place = Place {
            text: text.floor_char_boundary(place.text.max(before.text)),
            calls: place.calls.clamp(before.calls, calls.len()),
        };
        let words = text.get(before.text..place.text).filter(|words| !words.is_empty());
        items.extend(words.map(|words| spoken(mem::take(&mut message), words)));
        for asked in calls.get(before.calls..place.calls).unwrap_or_default() {
            items.push(called(mem::take(&mut call), asked, &ids.call(asked)));
        }
        before = place;
        match block.get("type").and_then(Value::as_str) {
            Some("reasoning") => {
                block.entry("summary").or_insert_with(|| json!([]));
                items.push(Value::Object(block));
            }
            Some("message") => message = block,
            Some("function_call") => call = block,
            _ => {}
        }
    }
    // Where the answer was cut off behind its reasoning, nothing came of that, and alone it is refused.
    while items.last().is_some_and(|item| openai::text(item, "/type") == "reasoning") {
        items.pop();
    }
    items
}

/// What was said. Without an id it is told in the short form, which has none.
fn spoken(mut known: Map<String, Value>, words: &str) -> Value {
    let content = if known.contains_key("id") {
        known.insert("status".to_owned(), json!("completed"));
        json!([{"type": "output_text", "text": words, "annotations": []}])
    } else {
        json!(words)
    };
    known.insert("type".to_owned(), json!("message"));
    known.insert("role".to_owned(), json!("assistant"));
    known.insert("content".to_owned(), content);
    Value::Object(known)
}

fn called(mut known: Map<String, Value>, call: &Call, id: &str) -> Value {
    let arguments = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
    known.insert("type".to_owned(), json!("function_call"));
    known.insert("call_id".to_owned(), json!(id));
    known.insert("name".to_owned(), json!(Names::outside(&call.name)));
    known.insert("arguments".to_owned(), json!(arguments));
    Value::Object(known)
}
