//! OpenAI's chat completions, and the dialects of them that other servers speak.

use serde_json::{Map, Value, json};

use crate::adapters::openai::{self, CallIds};
use crate::adapters::openai_chat_stream::ChatStream;
use crate::adapters::openai_embed;
use crate::adapters::openai_refusal::refusal;
use crate::{
    Adapter, Answer, Ask, Call, Decoder, EmbedRequest, Endpoint, Message, ModelPage, ModelRequest,
    Names, ProviderError, ReasoningBlock, ToolDefinition,
};

/// The fields in which servers show reasoning. The first that has words counts, since some send two.
pub(crate) const THOUGHTS: [&str; 3] = ["reasoning_content", "reasoning", "thinking"];

/// Reasoning as gateways send it: in pieces, some of them sealed.
pub(crate) const DETAILS: &str = "reasoning_details";

/// What calls carry beside their names and arguments, as some vendors want it back: on which call, and what.
pub(crate) const EXTRAS: &str = "extra_content";

/// The protocol.
#[derive(Debug)]
pub(crate) struct OpenaiChat {
    /// Whether the server is another vendor's.
    pub(crate) compatible: bool,
}

impl Adapter for OpenaiChat {
    fn turn(&self, request: &ModelRequest, endpoint: &Endpoint) -> Result<Ask, ProviderError> {
        Names::of(&request.tools)?;
        let messages = self.messages(request, &endpoint.origin(&request.model));
        let mut body = Map::new();
        let mut set = |key: &str, value: Value| body.insert(key.to_owned(), value);
        set("model", json!(request.model));
        set("messages", json!(messages));
        set("stream", json!(true));
        // Mistral refuses members that it does not know, and counts without being asked.
        if !endpoint.url.host().ends_with("mistral.ai") {
            set("stream_options", json!({"include_usage": true}));
        }
        if self.compatible {
            set("max_tokens", json!(request.max_output_tokens));
        } else {
            set("max_completion_tokens", json!(request.max_output_tokens));
            set("store", json!(false));
            set("prompt_cache_key", json!(openai::cache_key(request)));
        }
        if let Some(effort) = endpoint.effort {
            set("reasoning_effort", json!(openai::effort(effort)));
        }
        if !request.tools.is_empty() {
            set("tools", request.tools.iter().map(function).collect());
        }
        Ok(openai::post(endpoint, "/chat/completions", &Value::Object(body)))
    }

    fn decoder(
        &self,
        request: &ModelRequest,
        endpoint: &Endpoint,
    ) -> Result<Box<dyn Decoder>, ProviderError> {
        let names = Names::of(&request.tools)?;
        let origin = endpoint.origin(&request.model);
        Ok(Box::new(ChatStream::new(origin, names)))
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

    fn embed(&self, request: &EmbedRequest, endpoint: &Endpoint) -> Result<Ask, ProviderError> {
        Ok(openai_embed::ask(request, endpoint))
    }

    fn embedded(&self, body: &[u8], texts: usize) -> Result<Vec<Vec<f32>>, ProviderError> {
        openai_embed::read(body, texts)
    }
}

impl OpenaiChat {
    fn messages(&self, request: &ModelRequest, origin: &str) -> Vec<Value> {
        // OpenAI itself takes no longer ones; others hand out longer ones.
        let mut ids = CallIds::new(if self.compatible { 256 } else { 40 });
        let mut messages = Vec::new();
        if !request.system.is_empty() {
            let role = if self.compatible { "system" } else { "developer" };
            messages.push(json!({"role": role, "content": request.system}));
        }
        for message in &request.messages {
            let results = match message {
                Message::Results { results } => results.as_slice(),
                Message::User { .. } | Message::Assistant { .. } => &[],
            };
            messages.extend(ids.answers(results).into_iter().map(tool));
            match message {
                Message::User { text } => messages.push(json!({"role": "user", "content": text})),
                Message::Assistant { text, calls, reasoning } => {
                    let block = block(reasoning, origin);
                    let mut said = Map::new();
                    if !calls.is_empty() {
                        said.extend(thoughts(&block));
                    }
                    said.insert("role".to_owned(), json!("assistant"));
                    if !text.is_empty() || calls.is_empty() {
                        said.insert("content".to_owned(), json!(text));
                    }
                    if !calls.is_empty() {
                        let calls = calls.iter().enumerate().map(|(place, call)| {
                            extended(self.call(call, &ids.call(call)), place, &block)
                        });
                        said.insert("tool_calls".to_owned(), calls.collect());
                    }
                    messages.push(Value::Object(said));
                }
                Message::Results { .. } => {}
            }
        }
        messages.extend(ids.answers(&[]).into_iter().map(tool));
        messages
    }

    /// A call of the past. Other servers parse its arguments, and fail where they are no object.
    fn call(&self, call: &Call, id: &str) -> Value {
        let is_object = || serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok();
        let arguments = match call.arguments.trim() {
            "" => "{}",
            _ if self.compatible && !is_object() => "{}",
            _ => &call.arguments,
        };
        let function = json!({"name": Names::outside(&call.name), "arguments": arguments});
        json!({"id": id, "type": "function", "function": function})
    }
}

fn tool((id, content): (String, String)) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": content})
}

fn function(tool: &ToolDefinition) -> Value {
    let (name, parameters) = (Names::outside(&tool.name), openai::schema(tool));
    let function = json!({"name": name, "description": tool.summary, "parameters": parameters});
    json!({"type": "function", "function": function})
}

/// What this very model said beside its words and calls.
fn block(blocks: &[ReasoningBlock], origin: &str) -> Value {
    let block = blocks.iter().find(|block| block.origin == origin);
    block.and_then(|block| serde_json::from_str(&block.data).ok()).unwrap_or_default()
}

/// The fields of reasoning that a message had.
fn thoughts(block: &Value) -> Map<String, Value> {
    let mut fields = block.as_object().cloned().unwrap_or_default();
    fields.retain(|key, _| THOUGHTS.contains(&key.as_str()) || key == DETAILS);
    fields
}

/// A call with what it carried.
fn extended(mut call: Value, place: usize, block: &Value) -> Value {
    let extra = block.get(EXTRAS).and_then(|extras| extras.get(place.to_string()));
    if let (Some(call), Some(extra)) = (call.as_object_mut(), extra) {
        call.insert(EXTRAS.to_owned(), extra.clone());
    }
    call
}
