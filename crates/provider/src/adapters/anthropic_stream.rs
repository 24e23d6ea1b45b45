//! Anthropic's messages: the answer, piece by piece.

use std::collections::BTreeMap;
use std::mem;

use serde_json::{Value, json};

use crate::adapters::complaint::complaint_in_stream;
use crate::adapters::wire::{self, count, malformed, text};
use crate::{Decoder, Names, ProviderError, SseEvent, StopReason, StreamEvent, Usage};

/// What one event says.
type Said = Result<Option<StreamEvent>, ProviderError>;

/// An answer that is being read.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    names: Names,
    origin: String,
    open: BTreeMap<Option<u64>, Block>,
    held: usize,
    calls: u32,
    used: Usage,
    /// The message's own name, and whether any part of it has come.
    id: String,
    begun: bool,
    stop: Option<StopReason>,
    is_over: bool,
}

/// A part of the answer that has begun.
#[derive(Debug)]
enum Block {
    Text,
    Thought {
        thinking: String,
        signature: String,
    },
    /// A call; and its arguments, if they came at once.
    Call(u32, Option<String>),
    /// None of ours: a tool that the vendor runs, its results, and whatever there will be.
    Other,
}

impl Decoder for Reading {
    fn event(
        &mut self,
        event: &SseEvent,
        pieces: &mut Vec<StreamEvent>,
    ) -> Result<(), ProviderError> {
        let Some(data) = wire::read_event(event)?.filter(|_| !self.is_over) else { return Ok(()) };
        let at = data.get("index").and_then(Value::as_u64);
        let part = |name: &str| data.get(name).unwrap_or(&Value::Null);
        let piece = match text(&data, "/type").unwrap_or(&event.kind) {
            "message_start" => {
                wire::hold(&mut self.held, event.data.len())?;
                self.message(part("message"), pieces)?;
                None
            }
            "content_block_start" => {
                wire::hold(&mut self.held, event.data.len())?;
                self.begin(at, part("content_block"))?
            }
            "content_block_delta" => self.extend(at, part("delta"))?,
            "content_block_stop" => self.open.remove(&at).and_then(|block| self.close(block)),
            "message_delta" => {
                self.stop = text(&data, "/delta/stop_reason").map(stop).transpose()?.or(self.stop);
                let why = text(&data, "/delta/stop_details/explanation");
                let why = why.filter(|_| self.stop == Some(StopReason::Refusal));
                pieces.extend(why.map(|why| StreamEvent::Text(why.to_owned())));
                data.get("usage").map(|usage| self.usage(usage))
            }
            "message_stop" => {
                self.is_over = true;
                let open = mem::take(&mut self.open).into_values();
                pieces.extend(open.filter_map(|block| self.close(block)));
                let stop = self.stop.ok_or_else(|| malformed("a turn that ends for no reason"))?;
                let calls = stop == StopReason::End && self.calls > 0;
                Some(StreamEvent::Stop(if calls { StopReason::Calls } else { stop }))
            }
            "error" => return Err(complaint_in_stream(&event.data)),
            _ => None,
        };
        pieces.extend(piece);
        Ok(())
    }

    fn end(&mut self, _: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        self.is_over.then_some(()).ok_or_else(wire::cut)
    }
}

impl Reading {
    /// Reads an answer to a request with tools of these names.
    pub(crate) fn new(names: Names, origin: String) -> Self {
        Self { names, origin, ..Self::default() }
    }

    /// A message begins. What does not stream may have everything here. Some gateways say it twice; those that
    /// ask again in the midst of an answer begin another, and what came before is not known to be part of it.
    fn message(
        &mut self,
        message: &Value,
        pieces: &mut Vec<StreamEvent>,
    ) -> Result<(), ProviderError> {
        let id = text(message, "/id").unwrap_or_default();
        if self.begun && id != self.id {
            return Err(malformed("a second message in the midst of the first"));
        }
        id.clone_into(&mut self.id);
        pieces.extend(message.get("usage").map(|usage| self.usage(usage)));
        self.stop = text(message, "/stop_reason").map(stop).transpose()?.or(self.stop);
        let whole = message.get("content").and_then(Value::as_array).filter(|_| !self.begun);
        for block in whole.into_iter().flatten() {
            pieces.extend(self.begin(None, block)?);
            pieces.extend(self.open.remove(&None).and_then(|block| self.close(block)));
        }
        Ok(())
    }

    fn begin(&mut self, at: Option<u64>, block: &Value) -> Said {
        self.begun = true;
        let part = |pointer: &str| text(block, pointer).unwrap_or_default().to_owned();
        let some = |pointer: &str| text(block, pointer).filter(|text| !text.is_empty());
        let (begun, piece) = match text(block, "/type") {
            Some("text") => {
                (Block::Text, some("/text").map(|text| StreamEvent::Text(text.to_owned())))
            }
            Some("thinking") => {
                let (thinking, signature) = (part("/thinking"), part("/signature"));
                let piece = some("/thinking").map(|text| StreamEvent::Reasoning(text.to_owned()));
                (Block::Thought { thinking, signature }, piece)
            }
            Some("redacted_thinking") => (Block::Other, Some(self.sealed(block))),
            Some("tool_use") => {
                let (index, id, name) = (self.calls, part("/id"), part("/name"));
                self.calls = self.calls.saturating_add(1);
                let input = block.get("input").and_then(Value::as_object);
                let input = input.filter(|input| !input.is_empty()).map(|input| json!(input));
                let name = self.names.inside(&name);
                let piece = StreamEvent::CallStarted { index, id, name };
                (Block::Call(index, input.map(|input| input.to_string())), Some(piece))
            }
            _ => (Block::Other, None),
        };
        match self.open.insert(at, begun) {
            None => Ok(piece),
            Some(_) => Err(malformed("a part that begins twice")),
        }
    }

    fn extend(&mut self, at: Option<u64>, delta: &Value) -> Said {
        let part = |pointer: &str| text(delta, pointer).unwrap_or_default().to_owned();
        let block = self.open.get_mut(&at);
        let block = block.ok_or_else(|| malformed("a piece of what never began"))?;
        Ok(match (block, text(delta, "/type")) {
            (Block::Text, Some("text_delta")) => Some(StreamEvent::Text(part("/text"))),
            (Block::Thought { thinking, .. }, Some("thinking_delta")) => {
                let piece = part("/thinking");
                wire::hold(&mut self.held, piece.len())?;
                thinking.push_str(&piece);
                Some(StreamEvent::Reasoning(piece))
            }
            (Block::Thought { signature, .. }, Some("signature_delta")) => {
                *signature = part("/signature");
                wire::hold(&mut self.held, signature.len())?;
                None
            }
            (Block::Call(index, input), Some("input_json_delta")) => {
                let (index, fragment) = (*index, part("/partial_json"));
                if fragment.is_empty() {
                    return Ok(None);
                }
                *input = None;
                Some(StreamEvent::CallArguments { index, fragment })
            }
            _ => None,
        })
    }

    /// What comes of a part when it is whole. Thoughts without a signature, cut off, would not be taken back.
    fn close(&self, block: Block) -> Option<StreamEvent> {
        match block {
            Block::Thought { thinking, signature } => (!signature.is_empty()).then(|| {
                let kind = "thinking";
                self.sealed(&json!({"type": kind, "thinking": thinking, "signature": signature}))
            }),
            Block::Call(index, input) => {
                input.map(|fragment| StreamEvent::CallArguments { index, fragment })
            }
            Block::Text | Block::Other => None,
        }
    }

    /// What was used. The last count leaves out what the vendor itself took out of the conversation meanwhile, or
    /// what the first one said.
    fn usage(&mut self, usage: &Value) -> StreamEvent {
        let cached = count(usage, "/cache_read_input_tokens").max(self.used.cached);
        let written = count(usage, "/cache_creation_input_tokens").max(self.used.cache_written);
        let plain = count(usage, "/input_tokens");
        let reasoning = count(usage, "/output_tokens_details/thinking_tokens");
        self.used = Usage {
            input: plain.saturating_add(cached).saturating_add(written).max(self.used.input),
            output: count(usage, "/output_tokens").max(self.used.output),
            cached,
            cache_written: written,
            reasoning: reasoning.max(self.used.reasoning),
        };
        StreamEvent::Usage(self.used)
    }

    fn sealed(&self, block: &Value) -> StreamEvent {
        StreamEvent::ReasoningBlock { origin: self.origin.clone(), data: block.to_string() }
    }
}

/// Whether a block is reasoning, shown or sealed.
pub(crate) fn is_thought(block: &Value) -> bool {
    matches!(text(block, "/type"), Some("thinking" | "redacted_thinking"))
}

fn stop(reason: &str) -> Result<StopReason, ProviderError> {
    match reason {
        "end_turn" | "stop_sequence" | "tool_use" => Ok(StopReason::End),
        "max_tokens" | "model_context_window_exceeded" => Ok(StopReason::Length),
        "pause_turn" => Ok(StopReason::Pause),
        "refusal" => Ok(StopReason::Refusal),
        other => Err(malformed(&format!("a turn that ends with `{other}`"))),
    }
}
