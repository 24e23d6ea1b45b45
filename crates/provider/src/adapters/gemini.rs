//! Google's `streamGenerateContent`.
//!
//! A signature belongs to the part that it came with. A block of reasoning here is a signature and what it is of:
//! `{"thoughtSignature": …}` of the next call, with `"text": n` of the next `n` bytes of text, with `"thought": …`
//! of a thought.
//!
//! **Invariant.** A signature is handed back on its own part, and only to the model that it came from.

use std::mem;

use serde_json::{Value, json};

use crate::adapters::complaint::complaint;
use crate::adapters::gemini_stream::{OWN_ID, Reading, signed};
use crate::adapters::sides::{Answered, Piece, Side, sides};
use crate::adapters::wire::{self, said, text, words};
use crate::{
    Adapter, Answer, Ask, Call, Decoder, Effort, Endpoint, ModelPage, ModelRequest, Names,
    ProviderError,
};

/// Stands where a signature has to, on a call that another model made.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The protocol.
#[derive(Debug)]
pub(crate) struct Gemini;

impl Adapter for Gemini {
    fn turn(&self, request: &ModelRequest, endpoint: &Endpoint) -> Result<Ask, ProviderError> {
        let path = format!("/{}:streamGenerateContent?alt=sse", resource(&request.model));
        Ok(ask(endpoint, &path, Some(&body(request, endpoint)?)))
    }

    fn decoder(
        &self,
        request: &ModelRequest,
        endpoint: &Endpoint,
    ) -> Result<Box<dyn Decoder>, ProviderError> {
        Ok(Box::new(Reading::new(request, endpoint)?))
    }

    fn refusal(&self, answer: &Answer) -> ProviderError {
        complaint(answer)
    }

    fn models(&self, endpoint: &Endpoint, after: Option<&str>) -> Ask {
        let after =
            after.map_or_else(String::new, |at| format!("&pageToken={}", wire::encoded(at)));
        ask(endpoint, &format!("/models?pageSize=1000{after}"), None)
    }

    fn models_in(&self, body: &[u8]) -> Result<ModelPage, ProviderError> {
        let mut body = wire::read(body)?;
        if let Some(models) = body.get_mut("models").and_then(Value::as_array_mut) {
            models.retain(speaks);
        }
        let at = ["/name", "/displayName", "/inputTokenLimit", "/outputTokenLimit"];
        let mut models = wire::models(&body, "models", at)?;
        for model in &mut models {
            model.id = model.id.trim_start_matches("models/").to_owned();
        }
        let next = text(&body, "/nextPageToken").filter(|next| !next.is_empty());
        Ok(ModelPage { models, next: next.map(str::to_owned) })
    }

    fn count(&self, request: &ModelRequest, at: &Endpoint) -> Result<Option<Ask>, ProviderError> {
        let resource = resource(&request.model);
        let mut whole = body(request, at)?;
        if let Some(whole) = whole.as_object_mut() {
            whole.insert("model".to_owned(), resource.as_str().into());
        }
        let body = json!({"generateContentRequest": whole});
        Ok(Some(ask(at, &format!("/{resource}:countTokens"), Some(&body))))
    }

    fn counted(&self, body: &[u8]) -> Result<u64, ProviderError> {
        wire::tokens(body, "/totalTokens")
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-goog-api-key", "")
    }
}

fn ask(endpoint: &Endpoint, path: &str, body: Option<&Value>) -> Ask {
    let version = endpoint.version.as_deref().unwrap_or("v1beta");
    let body = body.map(|body| body.to_string().into_bytes());
    Ask { path: wire::versioned(endpoint, version, path), headers: Vec::new(), body }
}

/// A model in a path: `x` and `models/x` are the same.
fn resource(model: &str) -> String {
    match model.strip_prefix("tunedModels/") {
        Some(name) => format!("tunedModels/{}", wire::encoded(name)),
        None => format!("models/{}", wire::encoded(model.trim_start_matches("models/"))),
    }
}

/// Whether a model of the list can be spoken with; those of which nothing is said can.
fn speaks(model: &Value) -> bool {
    let methods = model.get("supportedGenerationMethods").and_then(Value::as_array);
    methods.is_none_or(|methods| methods.iter().any(|method| method == "generateContent"))
}

/// The first part of the number in a name such as `gemini-2.5-flash`.
fn generation(model: &str) -> Option<u32> {
    let (_, number) = model.split_once("gemini-")?;
    number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn body(request: &ModelRequest, endpoint: &Endpoint) -> Result<Value, ProviderError> {
    Names::of(&request.tools)?;
    let tools = request.tools.iter().map(|tool| wire::tool(tool, "parametersJsonSchema"));
    let tools: Vec<_> = tools.collect();
    let system = words(&request.system);
    Ok(said(json!({
        "contents": contents(request, endpoint),
        "systemInstruction": system.map(|text| json!({"parts": [{"text": text}]})),
        "tools": (!tools.is_empty()).then(|| json!([{"functionDeclarations": tools}])),
        "generationConfig": said(json!({
            "maxOutputTokens": request.max_output_tokens,
            "thinkingConfig": endpoint.effort.map(|effort| thinking(&request.model, effort)),
        })),
    })))
}

/// What thinking is asked for: of the second generation a number of tokens, of later ones a level. Models called
/// `pro` always think.
fn thinking(model: &str, effort: Effort) -> Value {
    let pro = model.contains("pro");
    let (level, budget) = match effort {
        Effort::None if pro => ("LOW", 128),
        Effort::None => ("MINIMAL", 0),
        Effort::Low => ("LOW", 2_048),
        Effort::Medium => ("MEDIUM", 8_192),
        Effort::High => ("HIGH", 24_576),
    };
    let shown = (effort != Effort::None).then_some(true);
    said(match generation(model) {
        Some(..3) => json!({"thinkingBudget": budget, "includeThoughts": shown}),
        _ => json!({"thinkingLevel": level, "includeThoughts": shown}),
    })
}

/// The conversation. What is said beside results comes in a content of its own: as many parts answer as called.
fn contents(request: &ModelRequest, endpoint: &Endpoint) -> Vec<Value> {
    let mut contents = Vec::new();
    for side in sides(&request.messages, &endpoint.origin(&request.model)) {
        match side {
            Side::Model(pieces) => contents.push(("model", parts(&pieces, &request.model))),
            Side::Person { results, texts } => {
                contents.push(("user", results.iter().map(result).collect()));
                contents.push(("user", texts.iter().map(|text| json!({"text": text})).collect()));
            }
        }
    }
    contents.retain(|(_, parts)| !parts.is_empty());
    contents.iter().map(|(role, parts)| json!({"role": role, "parts": parts})).collect()
}

/// What the model said, each signature on its part. Later models want the first call of a turn to have one.
fn parts(pieces: &[Piece<'_>], model: &str) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut of_text = (0, None);
    let mut of_call = (generation(model) >= Some(3)).then(|| NO_SIGNATURE.into());
    for piece in pieces {
        match piece {
            Piece::Block(data) => {
                let block: Value = serde_json::from_str(data).unwrap_or_default();
                let signature = block.get("thoughtSignature").cloned();
                match (block.get("text").and_then(Value::as_u64), text(&block, "/thought")) {
                    (Some(0), _) => parts.push(signed(json!({"text": ""}), signature)),
                    (Some(length), _) => of_text = (length, signature),
                    (None, Some(thought)) => {
                        let thought = json!({"text": thought, "thought": true});
                        parts.push(signed(thought, signature));
                    }
                    (None, None) => of_call = signature.or(of_call),
                }
            }
            Piece::Text(text) => {
                let (length, signature) = mem::take(&mut of_text);
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                let (its, plain) = text.split_at(text.floor_char_boundary(length));
                let both = [(its, signature), (plain, None)];
                let both = both.into_iter().filter(|(text, _)| !text.is_empty());
                parts.extend(both.map(|(text, its)| signed(json!({"text": text}), its)));
            }
            Piece::Call(call) => {
                let (name, args) = (Names::outside(&call.name), wire::arguments(call));
                let call = said(json!({"name": name, "args": args, "id": id(call)}));
                parts.push(signed(json!({"functionCall": call}), of_call.take()));
            }
        }
    }
    parts
}

fn result(answered: &Answered<'_>) -> Value {
    let response = match answered.is_error() {
        true => json!({"error": answered.content()}),
        false => json!({"output": answered.content()}),
    };
    let (name, id) = (Names::outside(&answered.call.name), id(answered.call));
    json!({"functionResponse": said(json!({"name": name, "id": id, "response": response}))})
}

/// The id of a call, if the vendor gave it one.
fn id(call: &Call) -> Option<&str> {
    Some(call.id.as_str()).filter(|id| !id.is_empty() && !id.starts_with(OWN_ID))
}
