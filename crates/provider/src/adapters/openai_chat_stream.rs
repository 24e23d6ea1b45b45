//! The stream of a chat completion, in the dialects of it that servers speak.
//!
//! **Invariant.** The end is said once, when the stream says that it is over: a server may send words, calls and
//! counts behind the reason it gives for ending. Without a reason there is no end.

use serde_json::{Map, Value, json};

use crate::adapters::openai::{self, at, list, text};
use crate::adapters::openai_calls::OpenCalls;
use crate::adapters::openai_chat::{DETAILS, EXTRAS, THOUGHTS};
use crate::adapters::openai_refusal::{error_in, truncated};
use crate::adapters::wire::{count, hold};
use crate::{Decoder, Names, ProviderError, SseEvent, StopReason, StreamEvent, Usage};

/// The error of a server that found a call not to fit its tool: the model's fault, which it may mend.
const BROKEN_CALL: &str = "tool_use_failed";

/// Reads an answer.
#[derive(Debug, Default)]
pub(crate) struct ChatStream {
    origin: String,
    names: Names,
    calls: OpenCalls,
    thoughts: String,
    /// The field that the thoughts came in.
    field: &'static str,
    details: Vec<Map<String, Value>>,
    /// What calls carry beside their names and arguments, by their places: seals of some vendors.
    extras: Map<String, Value>,
    held: usize,
    /// Whether anything came: a whole message behind its pieces says nothing new.
    spoke: bool,
    refused: bool,
    finish: Option<String>,
    over: bool,
}

impl Decoder for ChatStream {
    fn event(
        &mut self,
        event: &SseEvent,
        pieces: &mut Vec<StreamEvent>,
    ) -> Result<(), ProviderError> {
        if self.over {
            return Ok(());
        }
        if event.data.trim() == "[DONE]" {
            return self.stop(pieces);
        }
        openai::values(event)?.iter().try_for_each(|chunk| self.chunk(chunk, pieces))
    }

    fn end(&mut self, pieces: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        if self.over { Ok(()) } else { self.stop(pieces) }
    }
}

impl ChatStream {
    /// Reads an answer whose reasoning is `origin`'s, to a request with tools of these names.
    pub(crate) fn new(origin: String, names: Names) -> Self {
        Self { origin, names, ..Self::default() }
    }

    fn chunk(&mut self, chunk: &Value, pieces: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        if text(chunk, "/error/code") == BROKEN_CALL {
            self.finish = Some(BROKEN_CALL.to_owned());
            return Ok(());
        }
        if let Some(error) = error_in(chunk) {
            return Err(error);
        }
        let mut choices = list(chunk, "/choices").iter();
        // Ollama's own form has the message where others have the choices.
        let choice = choices.find(|choice| count(choice, "/index") == 0).unwrap_or(chunk);
        match (at(choice, "/delta"), at(choice, "/message")) {
            (delta @ Value::Object(_), _) => self.said(delta, pieces)?,
            (_, message) if at(choice, "/done").is_boolean() || !self.spoke => {
                self.said(message, pieces)?;
            }
            _ => {}
        }
        let reasons = [text(choice, "/finish_reason"), text(choice, "/done_reason")];
        if let Some(reason) = reasons.into_iter().find(|reason| !reason.is_empty()) {
            self.finish = Some(reason.to_owned());
        }
        let places =
            [at(chunk, "/usage"), at(choice, "/usage"), at(chunk, "/x_groq/usage"), choice];
        pieces.extend(places.into_iter().find_map(usage).map(StreamEvent::Usage));
        Ok(())
    }

    fn said(&mut self, said: &Value, pieces: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        let details = list(said, "/reasoning_details");
        let shown =
            THOUGHTS.into_iter().filter_map(|field| Some((field, said.get(field)?.as_str()?)));
        match shown.into_iter().find(|(_, thought)| !thought.is_empty()) {
            Some((field, thought)) => {
                self.field = field;
                self.thought(thought, pieces);
            }
            None => details.iter().for_each(|detail| {
                self.thought(text(detail, "/text"), pieces);
                self.thought(text(detail, "/summary"), pieces);
            }),
        }
        details.iter().filter_map(Value::as_object).for_each(|detail| self.detail(detail));
        // Some servers send a list of parts, thoughts among them.
        for part in list(said, "/content") {
            let thoughts = list(part, "/thinking").iter();
            thoughts.for_each(|thought| self.thought(text(thought, "/text"), pieces));
            self.text(text(part, "/text"), pieces);
        }
        self.text(text(said, "/content"), pieces);
        self.refused |= !text(said, "/refusal").is_empty();
        self.text(text(said, "/refusal"), pieces);
        if at(said, "/function_call").is_object() {
            self.call(&json!({"index": 0, "function": at(said, "/function_call")}), pieces)?;
        }
        list(said, "/tool_calls").iter().try_for_each(|call| self.call(call, pieces))
    }

    fn text(&mut self, text: &str, pieces: &mut Vec<StreamEvent>) {
        if !text.is_empty() {
            self.spoke = true;
            pieces.push(StreamEvent::Text(text.to_owned()));
        }
    }

    fn thought(&mut self, thought: &str, pieces: &mut Vec<StreamEvent>) {
        if !thought.is_empty() {
            self.spoke = true;
            self.thoughts.push_str(thought);
            pieces.push(StreamEvent::Reasoning(thought.to_owned()));
        }
    }

    /// A piece of reasoning goes behind the one before, if it goes on with it.
    fn detail(&mut self, detail: &Map<String, Value>) {
        let same = |last: &&mut Map<String, Value>| {
            ["type", "index"].iter().all(|key| last.get(*key) == detail.get(*key))
        };
        let Some(last) = self.details.last_mut().filter(same) else {
            return self.details.push(detail.clone());
        };
        for (key, value) in detail.iter().filter(|(_, value)| !value.is_null()) {
            match (last.get_mut(key), value) {
                (Some(Value::String(before)), Value::String(more))
                    if matches!(key.as_str(), "text" | "summary" | "data") =>
                {
                    before.push_str(more);
                }
                _ => _ = last.insert(key.clone(), value.clone()),
            }
        }
    }

    fn call(&mut self, piece: &Value, pieces: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        self.spoke = true;
        let index = at(piece, "/index").as_u64().or_else(|| at(piece, "/function/index").as_u64());
        let (id, name) = (text(piece, "/id"), text(piece, "/function/name"));
        let fragment = match at(piece, "/function/arguments") {
            Value::Null => String::new(),
            Value::String(fragment) => fragment.clone(),
            whole => whole.to_string(),
        };
        let place = self.calls.place(index, id, name);
        if let extra @ Value::Object(_) = at(piece, "/extra_content") {
            hold(&mut self.held, extra.to_string().len())?;
            self.extras.insert(place.to_string(), extra.clone());
        }
        self.calls.extend(place, (id, &self.names.inside(name)), &fragment, pieces)
    }

    fn stop(&mut self, pieces: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        let stop = self.reason()?;
        if stop.is_whole() && !self.calls.all_begun() {
            return Err(ProviderError::Malformed("a call has no name".to_owned()));
        }
        if let Some(data) = self.block() {
            pieces.push(StreamEvent::ReasoningBlock { origin: self.origin.clone(), data });
        }
        self.over = true;
        pieces.push(StreamEvent::Stop(stop));
        Ok(())
    }

    /// What has to be sent back with the calls, if there is such.
    fn block(&self) -> Option<String> {
        let mut block = match (self.details.is_empty(), self.field) {
            (false, _) => Map::from_iter([(DETAILS.to_owned(), json!(self.details))]),
            (true, "") => Map::new(),
            (true, field) => Map::from_iter([(field.to_owned(), json!(self.thoughts))]),
        };
        if !self.extras.is_empty() {
            block.insert(EXTRAS.to_owned(), json!(self.extras));
        }
        let is_wanted = !self.calls.is_empty() && !block.is_empty();
        is_wanted.then(|| Value::Object(block).to_string())
    }

    /// Why it ended. Calls may run only where the reason is known, and is none that cuts them off.
    fn reason(&self) -> Result<StopReason, ProviderError> {
        let reason = self.finish.as_deref().ok_or_else(truncated)?;
        let has_calls = !self.calls.is_empty();
        Ok(match reason.to_ascii_lowercase().as_str() {
            "length" | "max_tokens" | "model_length" => StopReason::Length,
            BROKEN_CALL => StopReason::MalformedCall,
            "content_filter" | "safety" | "sensitive" => StopReason::Refusal,
            "error" | "abort" | "network_error" | "insufficient_system_resource" => {
                let message = format!("the server ended the answer: {reason}");
                return Err(ProviderError::Overloaded { message, retry_after_ms: None });
            }
            _ if self.refused => StopReason::Refusal,
            "stop" | "tool_calls" | "function_call" | "tool_use" | "end_turn" | "eos"
                if has_calls =>
            {
                StopReason::Calls
            }
            "tool_calls" | "function_call" | "tool_use" => StopReason::MalformedCall,
            _ if has_calls => {
                let said = format!("calls, and the unknown reason `{reason}` for ending");
                return Err(ProviderError::Malformed(said));
            }
            _ => StopReason::End,
        })
    }
}

fn usage(usage: &Value) -> Option<Usage> {
    // Ollama's own form.
    if let Some(output) = at(usage, "/eval_count").as_u64() {
        return Some(Usage {
            input: count(usage, "/prompt_eval_count"),
            output,
            ..Usage::default()
        });
    }
    at(usage, "/prompt_tokens").as_u64().or_else(|| at(usage, "/completion_tokens").as_u64())?;
    let input = count(usage, "/prompt_tokens");
    // Some servers count reasoning in the total only.
    let rest = count(usage, "/total_tokens").saturating_sub(input);
    let cached = count(usage, "/prompt_tokens_details/cached_tokens");
    Some(Usage {
        input,
        output: count(usage, "/completion_tokens").max(rest),
        cached: cached.max(count(usage, "/prompt_cache_hit_tokens")),
        cache_written: count(usage, "/prompt_tokens_details/cache_write_tokens"),
        reasoning: count(usage, "/completion_tokens_details/reasoning_tokens"),
    })
}
