//! The stream of a response.
//!
//! **Invariant.** What an answer says twice is handed out once: pieces as they come, and of what is repeated as a
//! whole (an item's end, the answer's end) only what did not come before.

use serde_json::{Map, Value};

use crate::adapters::openai::{self, at, list, text};
use crate::adapters::openai_calls::OpenCalls;
use crate::adapters::openai_refusal::{error_in, truncated};
use crate::adapters::wire::count;
use crate::{
    Decoder, MAX_TURN_CALLS, Names, ProviderError, SseEvent, StopReason, StreamEvent, Usage,
};

/// What comes between two summaries of reasoning.
const BETWEEN: &str = "\n\n";

/// What ties an item to the reasoning before it; without them it is refused beside that.
const TIES: [&str; 3] = ["type", "id", "phase"];

type Pieces = Vec<StreamEvent>;
type Taken = Result<(), ProviderError>;

/// Reads an answer.
#[derive(Debug, Default)]
pub(crate) struct ResponseStream {
    origin: String,
    names: Names,
    items: Vec<Item>,
    calls: OpenCalls,
    /// Reasoning came that cannot be sent back: then what followed it must not be tied to it.
    loose: bool,
    refused: bool,
    cut: bool,
    /// The longest answer that was asked for. Some servers say of what ends there that it is complete.
    longest: u64,
    over: bool,
}

#[derive(Debug)]
struct Item {
    kind: Kind,
    index: Option<u64>,
    id: String,
    /// What came of its text.
    came: String,
    /// Which call it is, if it is one.
    call: usize,
    /// Whether its beginning came: some servers send pieces of what they never began.
    begun: bool,
    done: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Message,
    Call,
    Reasoning,
}

impl Decoder for ResponseStream {
    fn event(&mut self, event: &SseEvent, pieces: &mut Pieces) -> Taken {
        if self.over || event.data.trim() == "[DONE]" {
            return Ok(());
        }
        openai::values(event)?.iter().try_for_each(|value| match text(value, "/type") {
            "" if text(value, "/object") == "response" => self.finish("", value, pieces),
            "" => self.take(&event.kind, value, pieces),
            kind => self.take(kind, value, pieces),
        })
    }

    fn end(&mut self, _: &mut Pieces) -> Taken {
        if self.over { Ok(()) } else { Err(truncated()) }
    }
}

impl ResponseStream {
    /// Reads an answer of so many tokens at most, whose reasoning is `origin`'s, to a request with these tools.
    pub(crate) fn new(origin: String, names: Names, longest: u64) -> Self {
        Self { origin, names, longest, ..Self::default() }
    }

    fn take(&mut self, kind: &str, value: &Value, pieces: &mut Pieces) -> Taken {
        if let Some(error) = error_in(value) {
            return Err(error);
        }
        let delta = text(value, "/delta");
        match kind {
            "response.output_item.added" => self.item(value, false, pieces),
            "response.output_item.done" => self.item(value, true, pieces),
            "response.output_text.delta" => self.extend(Kind::Message, value, delta, pieces),
            "response.refusal.delta" => {
                self.refused = true;
                self.extend(Kind::Message, value, delta, pieces)
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.extend(Kind::Reasoning, value, delta, pieces)
            }
            "response.reasoning_summary_part.added" if count(value, "/summary_index") > 0 => {
                self.extend(Kind::Reasoning, value, BETWEEN, pieces)
            }
            "response.function_call_arguments.delta" => {
                self.extend(Kind::Call, value, delta, pieces)
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
                self.finish(kind, at(value, "/response"), pieces)
            }
            _ => Ok(()),
        }
    }

    /// An item begins, or is over.
    fn item(&mut self, value: &Value, over: bool, pieces: &mut Pieces) -> Taken {
        let (item, index) = (at(value, "/item"), at(value, "/output_index").as_u64());
        let Some(kind) = kind_of(item) else { return Ok(()) };
        let found = self.find(kind, index, text(item, "/id"));
        let is_new = |at: &usize| self.items.get(*at).is_some_and(|known| !known.begun);
        let known = found.filter(|at| over || is_new(at));
        let place = self.begin(known, (kind, index), item, pieces)?;
        if over { self.complete(place, item, pieces) } else { Ok(()) }
    }

    /// The open item of a kind that is meant, by its id or number; some servers have a new id in every event.
    fn find(&self, kind: Kind, index: Option<u64>, id: &str) -> Option<usize> {
        let find = |is: &dyn Fn(&Item) -> bool| {
            self.items.iter().rposition(|item| item.kind == kind && !item.done && is(item))
        };
        let by_id = find(&|item| item.id == id && !id.is_empty());
        by_id.or_else(|| find(&|item| index.is_none() || item.index == index))
    }

    fn open(&mut self, kind: Kind, index: Option<u64>, id: &str) -> Result<usize, ProviderError> {
        if self.items.len() >= MAX_TURN_CALLS {
            return Err(ProviderError::Malformed("the turn has too many items".to_owned()));
        }
        let call = if kind == Kind::Call { self.calls.open(index) } else { 0 };
        let (id, came) = (id.to_owned(), String::new());
        self.items.push(Item { kind, index, id, came, call, begun: false, done: false });
        Ok(self.items.len() - 1)
    }

    fn begin(
        &mut self,
        known: Option<usize>,
        (kind, index): (Kind, Option<u64>),
        item: &Value,
        pieces: &mut Pieces,
    ) -> Result<usize, ProviderError> {
        let id = text(item, "/id");
        let place = known.map_or_else(|| self.open(kind, index, id), Ok)?;
        let known = self.items.get_mut(place).filter(|known| !known.begun);
        let Some(known) = known else { return Ok(place) };
        known.begun = true;
        let call = known.call;
        let tied = !self.loose && !id.is_empty();
        if kind != Kind::Reasoning && (tied || !text(item, "/phase").is_empty()) {
            let kept = |key: &str| TIES.contains(&key) && (tied || key != "id");
            self.keep(item, &|key, value| kept(key) && value.is_string(), pieces);
        }
        if kind == Kind::Call {
            let name = self.names.inside(text(item, "/name"));
            self.calls.extend(call, (text(item, "/call_id"), &name), "", pieces)?;
        }
        Ok(place)
    }

    /// More of an item.
    fn extend(&mut self, kind: Kind, value: &Value, piece: &str, pieces: &mut Pieces) -> Taken {
        let (index, id) = (at(value, "/output_index").as_u64(), text(value, "/item_id"));
        let found = self.find(kind, index, id);
        let place = found.map_or_else(|| self.open(kind, index, id), Ok)?;
        let item = self.items.get_mut(place).filter(|_| !piece.is_empty());
        let Some(item) = item else { return Ok(()) };
        item.came.push_str(piece);
        match kind {
            Kind::Call => return self.calls.extend(item.call, ("", ""), piece, pieces),
            Kind::Message => pieces.push(StreamEvent::Text(piece.to_owned())),
            Kind::Reasoning => pieces.push(StreamEvent::Reasoning(piece.to_owned())),
        }
        Ok(())
    }

    /// An item as a whole: what did not come before is handed out.
    fn complete(&mut self, place: usize, item: &Value, pieces: &mut Pieces) -> Taken {
        let known = self.items.get_mut(place).filter(|known| !known.done);
        let Some(known) = known else { return Ok(()) };
        known.done = true;
        match known.kind {
            Kind::Call => {
                self.cut |= text(item, "/status") == "incomplete";
                let name = self.names.inside(text(item, "/name"));
                let named = (text(item, "/call_id"), name.as_str());
                self.calls.complete(known.call, named, text(item, "/arguments"), pieces)?;
            }
            Kind::Message => {
                let refusals = texts(item, "/content", "/refusal");
                self.refused |= !refusals.is_empty();
                let whole = texts(item, "/content", "/text").concat() + &refusals.concat();
                let rest = whole.strip_prefix(&known.came).filter(|rest| !rest.is_empty());
                pieces.extend(rest.map(|rest| StreamEvent::Text(rest.to_owned())));
            }
            Kind::Reasoning => {
                let mut shown = texts(item, "/summary", "/text");
                if shown.is_empty() {
                    shown = texts(item, "/content", "/text");
                }
                if known.came.is_empty() && !shown.is_empty() {
                    pieces.push(StreamEvent::Reasoning(shown.join(BETWEEN)));
                }
                let content = list(item, "/content");
                if text(item, "/encrypted_content").is_empty() && content.is_empty() {
                    self.loose = true;
                } else {
                    // Servers send members that are null, and do not take them back.
                    self.keep(item, &|_, value| !value.is_null(), pieces);
                }
            }
        }
        Ok(())
    }

    /// Keeps members of an item for the requests to come.
    fn keep(&self, item: &Value, which: &dyn Fn(&str, &Value) -> bool, pieces: &mut Pieces) {
        let members =
            item.as_object().into_iter().flatten().filter(|(key, value)| which(key, value));
        let kept: Map<_, _> = members.map(|(key, value)| (key.clone(), value.clone())).collect();
        let (origin, data) = (self.origin.clone(), Value::Object(kept).to_string());
        pieces.push(StreamEvent::ReasoningBlock { origin, data });
    }

    fn finish(&mut self, kind: &str, response: &Value, pieces: &mut Pieces) -> Taken {
        error_in(response).map_or(Ok(()), Err)?;
        let status = text(response, "/status");
        if kind == "response.failed" || matches!(status, "failed" | "cancelled") {
            let message = "the answer failed without a word".to_owned();
            return Err(ProviderError::Overloaded { message, retry_after_ms: None });
        }
        self.repeat(list(response, "/output"), pieces)?;
        pieces.extend(usage(at(response, "/usage")).map(StreamEvent::Usage));
        let full = at(response, "/usage/output_tokens").as_u64() == Some(self.longest);
        let incomplete = kind == "response.incomplete" || status == "incomplete" || full;
        let stop = match text(response, "/incomplete_details/reason") {
            "content_filter" => StopReason::Refusal,
            _ if incomplete || self.cut => StopReason::Length,
            _ if self.refused => StopReason::Refusal,
            _ if self.calls.is_empty() => StopReason::End,
            _ => StopReason::Calls,
        };
        if stop.is_whole() && !self.calls.all_begun() {
            return Err(ProviderError::Malformed("a call has no name".to_owned()));
        }
        self.over = true;
        pieces.push(StreamEvent::Stop(stop));
        Ok(())
    }

    /// All items once more, at the end. The first of a kind is the first that came, whatever their ids say.
    fn repeat(&mut self, items: &[Value], pieces: &mut Pieces) -> Taken {
        let mut seen = Vec::new();
        for item in items {
            let Some(kind) = kind_of(item) else { continue };
            let number = seen.iter().filter(|other| **other == kind).count();
            seen.push(kind);
            let came = self.items.iter().enumerate().filter(|(_, item)| item.kind == kind);
            let known = came.map(|(place, _)| place).nth(number);
            let place = self.begin(known, (kind, None), item, pieces)?;
            self.complete(place, item, pieces)?;
        }
        Ok(())
    }
}

fn kind_of(item: &Value) -> Option<Kind> {
    match text(item, "/type") {
        "message" => Some(Kind::Message),
        "function_call" => Some(Kind::Call),
        "reasoning" => Some(Kind::Reasoning),
        _ => None,
    }
}

/// The texts of an item's parts.
fn texts<'a>(item: &'a Value, place: &str, key: &str) -> Vec<&'a str> {
    let texts = list(item, place).iter().map(|part| text(part, key));
    texts.filter(|text| !text.is_empty()).collect()
}

fn usage(usage: &Value) -> Option<Usage> {
    usage.as_object()?;
    Some(Usage {
        input: count(usage, "/input_tokens"),
        output: count(usage, "/output_tokens"),
        cached: count(usage, "/input_tokens_details/cached_tokens"),
        cache_written: count(usage, "/input_tokens_details/cache_write_tokens"),
        reasoning: count(usage, "/output_tokens_details/reasoning_tokens"),
    })
}
