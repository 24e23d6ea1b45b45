//! Google's `streamGenerateContent`: the answer, piece by piece.

use std::slice;

use serde_json::{Value, json};

use crate::adapters::complaint::complaint_in_stream;
use crate::adapters::partial_args::PartialArgs;
use crate::adapters::wire::{self, count, is_set, malformed, text};
use crate::{
    Decoder, Endpoint, Message, ModelRequest, Names, ProviderError, SseEvent, StopReason,
    StreamEvent, Usage,
};

/// What the ids of calls begin with that came without one. They are sent to nobody.
pub(crate) const OWN_ID: &str = "gemini-call-";

/// An answer that is being read.
#[derive(Debug)]
pub(crate) struct Reading {
    names: Names,
    origin: String,
    next_id: u64,
    calls: u32,
    /// A call whose arguments come in pieces.
    open: Option<(u32, PartialArgs)>,
    stop: Option<StopReason>,
}

impl Decoder for Reading {
    fn event(
        &mut self,
        event: &SseEvent,
        pieces: &mut Vec<StreamEvent>,
    ) -> Result<(), ProviderError> {
        let Some(data) = wire::read_event(event)? else { return Ok(()) };
        let chunks = data.as_array().map_or(slice::from_ref(&data), Vec::as_slice);
        for chunk in chunks {
            if chunk.get("error").is_some() {
                return Err(complaint_in_stream(&event.data));
            }
            self.chunk(chunk, pieces)?;
        }
        Ok(())
    }

    fn end(&mut self, pieces: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        let stop = match self.stop.ok_or_else(wire::cut)? {
            StopReason::End if self.open.is_some() => StopReason::MalformedCall,
            StopReason::End if self.calls > 0 => StopReason::Calls,
            stop => stop,
        };
        pieces.push(StreamEvent::Stop(stop));
        Ok(())
    }
}

impl Reading {
    /// Reads the answer to a request.
    pub(crate) fn new(request: &ModelRequest, endpoint: &Endpoint) -> Result<Self, ProviderError> {
        Ok(Self {
            names: Names::of(&request.tools)?,
            origin: endpoint.origin(&request.model),
            next_id: next_id(&request.messages),
            calls: 0,
            open: None,
            stop: None,
        })
    }

    fn chunk(&mut self, chunk: &Value, out: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        out.extend(chunk.get("usageMetadata").and_then(usage).map(StreamEvent::Usage));
        if let Some(reason) = text(chunk, "/promptFeedback/blockReason") {
            let why = text(chunk, "/promptFeedback/blockReasonMessage").unwrap_or_default();
            return Err(ProviderError::Filtered(format!("{reason} {why}").trim_end().to_owned()));
        }
        let candidates = chunk.get("candidates").and_then(Value::as_array).into_iter().flatten();
        for candidate in candidates.filter(|candidate| count(candidate, "/index") == 0) {
            let parts = candidate.pointer("/content/parts").and_then(Value::as_array);
            for part in parts.into_iter().flatten() {
                self.part(part, out)?;
            }
            if let Some(reason) = text(candidate, "/finishReason") {
                let stop = stop(reason)?;
                // Once it went wrong it stays so.
                self.stop = self.stop.filter(|stop| !stop.is_whole()).or(stop).or(self.stop);
            }
        }
        Ok(())
    }

    fn part(&mut self, part: &Value, out: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        let signature = text(part, "/thoughtSignature").filter(|signature| !signature.is_empty());
        let sealed = |block: Value| {
            let data = signed(block, Some(signature?.into())).to_string();
            Some(StreamEvent::ReasoningBlock { origin: self.origin.clone(), data })
        };
        if let Some(call) = part.get("functionCall") {
            out.extend(sealed(json!({})).filter(|_| text(call, "/name").is_some()));
            return self.call(call, out);
        }
        let words = text(part, "/text").unwrap_or_default();
        let said = Some(words.to_owned()).filter(|words| !words.is_empty());
        if is_set(part, "thought") {
            out.extend(said.map(StreamEvent::Reasoning));
            out.extend(sealed(json!({"thought": words})));
        } else {
            out.extend(sealed(json!({"text": words.len()})));
            out.extend(said.map(StreamEvent::Text));
        }
        Ok(())
    }

    /// A call, whole or a piece of it: what has a name begins, what has no more to come ends.
    fn call(&mut self, call: &Value, out: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        if let Some(name) = text(call, "/name").filter(|name| !name.is_empty()) {
            out.extend(self.close());
            let id = text(call, "/id").filter(|id| !id.is_empty()).map(str::to_owned);
            let id = id.unwrap_or_else(|| format!("{OWN_ID}{}", self.next_id));
            self.next_id = self.next_id.saturating_add(1);
            let (index, name) = (self.calls, self.names.inside(name));
            self.calls = self.calls.saturating_add(1);
            out.push(StreamEvent::CallStarted { index, id, name });
            self.open = Some((index, PartialArgs::default()));
        }
        let members = call.get("args").filter(|args| !args.is_null());
        let pieces = call.get("partialArgs").and_then(Value::as_array);
        if members.is_some() || pieces.is_some() {
            let open = self.open.as_mut().ok_or_else(|| malformed("arguments of no call"))?;
            members.map_or(Ok(()), |members| open.1.begin(members))?;
            pieces.into_iter().flatten().try_for_each(|piece| open.1.take(piece))?;
        }
        if !is_set(call, "willContinue") {
            out.extend(self.close());
        }
        Ok(())
    }

    fn close(&mut self) -> Option<StreamEvent> {
        let (index, args) = self.open.take()?;
        Some(StreamEvent::CallArguments { index, fragment: args.text() })
    }
}

/// A part with its signature, if it has one.
pub(crate) fn signed(mut part: Value, signature: Option<Value>) -> Value {
    if let (Some(part), Some(signature)) = (part.as_object_mut(), signature) {
        part.insert("thoughtSignature".to_owned(), signature);
    }
    part
}

/// The number of the next id of our own: none is in the conversation twice.
fn next_id(messages: &[Message]) -> u64 {
    let calls = messages.iter().flat_map(|message| match message {
        Message::Assistant { calls, .. } => calls.as_slice(),
        Message::User { .. } | Message::Results { .. } => &[],
    });
    let numbers = calls.filter_map(|call| call.id.strip_prefix(OWN_ID)?.parse::<u64>().ok());
    numbers.max().map_or(1, |last| last.saturating_add(1))
}

fn usage(usage: &Value) -> Option<Usage> {
    let thoughts = count(usage, "/thoughtsTokenCount");
    let prompt = count(usage, "/promptTokenCount");
    Some(Usage {
        input: prompt.saturating_add(count(usage, "/toolUsePromptTokenCount")),
        output: count(usage, "/candidatesTokenCount").saturating_add(thoughts),
        cached: count(usage, "/cachedContentTokenCount"),
        cache_written: 0,
        reasoning: thoughts,
    })
    .filter(|usage| usage.total() > 0)
}

fn stop(reason: &str) -> Result<Option<StopReason>, ProviderError> {
    Ok(Some(match reason {
        "" | "FINISH_REASON_UNSPECIFIED" => return Ok(None),
        // The second word is a gateway's.
        "STOP" | "FUNCTION_CALL" => StopReason::End,
        "MAX_TOKENS" | "CONTINUATION" => StopReason::Length,
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MALFORMED_RESPONSE" => StopReason::MalformedCall,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE"
        | "OTHER" | "NO_IMAGE" => StopReason::Refusal,
        image if image.starts_with("IMAGE_") => StopReason::Refusal,
        other => return Err(malformed(&format!("a turn that ends with `{other}`"))),
    }))
}
