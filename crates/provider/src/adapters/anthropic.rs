//! Anthropic's messages.
//!
//! **Invariant.** A block of reasoning is handed back as it came and in its place, and only to the model that it
//! came from; no text without words is sent, and every call has its result in the message behind it.

use std::mem;

use serde_json::{Value, json};

use crate::adapters::anthropic_stream::{Reading, is_thought};
use crate::adapters::complaint::complaint;
use crate::adapters::sides::{Answered, Piece, Side, sides};
use crate::adapters::wire::{self, plain_id, said, text, words};
use crate::{
    Adapter, Answer, Ask, Decoder, Effort, Endpoint, ModelPage, ModelRequest, Names, ProviderError,
};

/// What models have in their names that are told how many tokens to think with. Later ones are told how hard to
/// think, and refuse a number.
const BUDGETED: [&str; 5] = ["claude-3", "-4-0", "-4-1", "-4-2025", "-4-5"];

/// The fewest tokens to think with.
const MIN_BUDGET: u64 = 1_024;

/// The protocol.
#[derive(Debug)]
pub(crate) struct Anthropic;

impl Adapter for Anthropic {
    fn turn(&self, request: &ModelRequest, endpoint: &Endpoint) -> Result<Ask, ProviderError> {
        let mut body = body(request, endpoint)?;
        if let Some(body) = body.as_object_mut() {
            body.insert("max_tokens".to_owned(), request.max_output_tokens.into());
            body.insert("stream".to_owned(), true.into());
        }
        Ok(ask(endpoint, "/messages", Some(&body)))
    }

    fn decoder(
        &self,
        request: &ModelRequest,
        endpoint: &Endpoint,
    ) -> Result<Box<dyn Decoder>, ProviderError> {
        let names = Names::of(&request.tools)?;
        Ok(Box::new(Reading::new(names, endpoint.origin(&request.model))))
    }

    fn refusal(&self, answer: &Answer) -> ProviderError {
        complaint(answer)
    }

    fn models(&self, endpoint: &Endpoint, after: Option<&str>) -> Ask {
        let after = after.map_or_else(String::new, |id| format!("&after_id={}", wire::encoded(id)));
        ask(endpoint, &format!("/models?limit=1000{after}"), None)
    }

    fn models_in(&self, body: &[u8]) -> Result<ModelPage, ProviderError> {
        let body = wire::read(body)?;
        let at = ["/id", "/display_name", "/max_input_tokens", "/max_tokens"];
        let next = text(&body, "/last_id").filter(|_| wire::is_set(&body, "has_more"));
        let next = next.map(str::to_owned);
        Ok(ModelPage { models: wire::models(&body, "data", at)?, next })
    }

    fn count(&self, request: &ModelRequest, at: &Endpoint) -> Result<Option<Ask>, ProviderError> {
        Ok(Some(ask(at, "/messages/count_tokens", Some(&body(request, at)?))))
    }

    fn counted(&self, body: &[u8]) -> Result<u64, ProviderError> {
        wire::tokens(body, "/input_tokens")
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-api-key", "")
    }
}

fn ask(endpoint: &Endpoint, path: &str, body: Option<&Value>) -> Ask {
    let version = endpoint.version.as_deref().unwrap_or("2023-06-01");
    Ask {
        path: wire::versioned(endpoint, "v1", path),
        headers: vec![("anthropic-version", version.to_owned())],
        body: body.map(|body| body.to_string().into_bytes()),
    }
}

fn body(request: &ModelRequest, endpoint: &Endpoint) -> Result<Value, ProviderError> {
    Names::of(&request.tools)?;
    let system = words(&request.system);
    let tools = request.tools.iter().map(|tool| wire::tool(tool, "input_schema"));
    let tools: Vec<_> = tools.collect();
    let sides = sides(&request.messages, &endpoint.origin(&request.model));
    let (thinking, output_config) = thinking(request, &sides, endpoint.effort);
    Ok(said(json!({
        "model": request.model,
        "messages": messages(&sides),
        "system": system.map(|system| cached(vec![json!({"type": "text", "text": system})])),
        "tools": (!tools.is_empty()).then(|| cached(tools)),
        "thinking": thinking,
        "output_config": output_config,
    })))
}

/// What thinking is asked for, in the words of the model. A budget is part of the answer's length: it leaves half
/// of it to words, and is not given where too little is left to think with.
fn thinking(
    request: &ModelRequest,
    sides: &[Side<'_>],
    effort: Option<Effort>,
) -> (Option<Value>, Option<Value>) {
    let (word, tokens) = match effort {
        None => return (None, None),
        Some(Effort::None) => return (Some(json!({"type": "disabled"})), None),
        Some(Effort::Low) => ("low", 2_048),
        Some(Effort::Medium) => ("medium", 8_192),
        Some(Effort::High) => ("high", 24_576),
    };
    if !BUDGETED.iter().any(|part| request.model.contains(part)) {
        return (Some(json!({"type": "adaptive"})), Some(json!({"effort": word})));
    }
    let budget = tokens.min(request.max_output_tokens / 2);
    let budget = Some(budget).filter(|budget| *budget >= MIN_BUDGET && begins_in_thought(sides));
    (budget.map(|budget| json!({"type": "enabled", "budget_tokens": budget})), None)
}

/// Whether what the model is in the midst of, calls and their results, began with a thought. What another model
/// began did not, and then a budget to think with is refused.
fn begins_in_thought(sides: &[Side<'_>]) -> bool {
    let mut sides = sides.iter().rev();
    let mut is_so = true;
    while let Some(Side::Person { results, .. }) = sides.next()
        && !results.is_empty()
        && let Some(Side::Model(pieces)) = sides.next()
    {
        is_so = matches!(pieces.first(), Some(Piece::Block(_)));
    }
    is_so
}

/// The conversation. Cached are the ends of the person's last two messages: the earlier one is where the request
/// before this one ended.
fn messages(sides: &[Side<'_>]) -> Vec<Value> {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for side in sides {
        let (role, mut content) = match side {
            Side::Model(pieces) => ("assistant", pieces.iter().filter_map(piece).collect()),
            Side::Person { results, texts } => {
                let texts = texts.iter().map(|text| json!({"type": "text", "text": text}));
                ("user", results.iter().map(result).chain(texts).collect::<Vec<_>>())
            }
        };
        // What ends in thoughts is refused.
        while content.pop_if(|block| is_thought(block)).is_some() {}
        match messages.last_mut() {
            Some((last, before)) if *last == role => before.extend(content),
            _ if content.is_empty() => {}
            _ => messages.push((role, content)),
        }
    }
    let persons = messages.iter_mut().rev().filter(|(role, _)| *role == "user").take(2);
    persons.for_each(|(_, content)| *content = cached(mem::take(content)));
    if let Some((_, content)) = messages.last_mut().filter(|(role, _)| *role == "assistant")
        && let Some(Value::String(text)) = content.last_mut().and_then(|b| b.get_mut("text"))
    {
        // So is a conversation that ends in blanks of the model's.
        text.truncate(text.trim_end().len());
    }
    messages.iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
}

fn piece(piece: &Piece<'_>) -> Option<Value> {
    match piece {
        Piece::Text(text) => words(text).map(|text| json!({"type": "text", "text": text})),
        Piece::Block(data) => serde_json::from_str(data).ok().filter(is_thought),
        Piece::Call(call) => {
            let (id, name) = (plain_id(&call.id), Names::outside(&call.name));
            Some(
                json!({"type": "tool_use", "id": id, "name": name, "input": wire::arguments(call)}),
            )
        }
    }
}

fn result(answered: &Answered<'_>) -> Value {
    let content = words(answered.content());
    said(json!({
        "type": "tool_result",
        "tool_use_id": plain_id(&answered.call.id),
        "content": content.map(|content| json!([{"type": "text", "text": content}])),
        "is_error": answered.is_error().then_some(true),
    }))
}

/// Has all up to the last of these cached.
fn cached(mut blocks: Vec<Value>) -> Vec<Value> {
    if let Some(last) = blocks.last_mut().and_then(Value::as_object_mut) {
        last.insert("cache_control".to_owned(), json!({"type": "ephemeral"}));
    }
    blocks
}
