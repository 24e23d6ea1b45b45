//! What was said, and what of it the model is shown.
//!
//! A conversation is a list of items: words of the person, prompts of the loop, and exchanges. When it gets
//! too long, the oldest items are left out and a summary stands in their place.
//!
//! **Invariant.** An exchange is what the model said together with the answers to all its calls. It stays or
//! goes as a whole, so calls and results are never parted.
//!
//! **Invariant.** The person's own words and what they pinned are never left out, cut or reworded.

use std::collections::{BTreeSet, HashMap, VecDeque};

use fluffy_provider::{Call, CallOutcome, CallResult, Message, StopReason, Turn};

use crate::clip::{Keep, clipped};
use crate::estimate::{Estimate, FRAME_BYTES, message_bytes};
use crate::facts::Facts;
use crate::summary;

/// From how many hundredths of the room on a summary takes the place of what is old.
const FULL: u64 = 70;

/// How many hundredths of the room stay filled then.
const KEPT: u64 = 45;

/// What stands for a name that is no tool's name: protocols refuse a history with anything else in it.
const NO_NAME: &str = "unknown";

/// What stands before what the person pinned.
const PIN: &str = "Pinned by the person:\n";

/// The longest id that is kept as it came.
const MAX_ID_BYTES: usize = 200;

/// To what the parts of an exchange are cut, one after the other, where nothing else can make room.
const SQUEEZES: [usize; 3] = [4_000, 1_000, 200];

/// A conversation with a model.
#[derive(Debug, Default)]
pub struct Conversation {
    /// Words of the person from before the summary.
    told: Vec<String>,
    /// What stands for what was left out.
    summary: Option<String>,
    /// What the model itself last said about it.
    words: Option<String>,
    facts: Facts,
    items: VecDeque<Item>,
    pins: Vec<String>,
    ids: BTreeSet<String>,
}

/// Something that was said.
#[derive(Debug, Clone)]
pub(crate) enum Item {
    /// By the person.
    Person(String),
    /// By the loop.
    Prompt(String),
    /// By the model, and what it was answered.
    Exchange(Exchange),
}

/// What a model said in a turn, and what it was answered.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    /// Where the work stood.
    pub(crate) state: String,
    pub(crate) turn: Turn,
    pub(crate) results: Vec<CallResult>,
    /// What it takes of the room; counted once, since it is asked for at every turn.
    bytes: usize,
}

impl Conversation {
    /// A conversation in which nothing was said.
    pub fn new() -> Self {
        Self::default()
    }

    /// A conversation that goes on. Calls that were never answered are answered now: nobody knows what
    /// became of them.
    pub fn resumed(messages: Vec<Message>) -> Self {
        let mut conversation = Self::new();
        let mut messages = messages.into_iter().peekable();
        while let Some(message) = messages.next() {
            match message {
                Message::User { text } => conversation.say(text),
                Message::Assistant { text, calls, reasoning } => {
                    let stop = StopReason::End;
                    let (thoughts, usage) = (String::new(), None);
                    let turn = Turn { text, thoughts, calls, reasoning, usage, stop };
                    let next = messages.next_if(|next| matches!(next, Message::Results { .. }));
                    let results = match next {
                        Some(Message::Results { results }) => results,
                        _ => Vec::new(),
                    };
                    conversation.add("", turn, results);
                }
                // Results of nothing that was asked for.
                Message::Results { .. } => {}
            }
        }
        conversation
    }

    /// The person says something.
    pub fn say(&mut self, words: String) {
        self.items.push_back(Item::Person(words));
    }

    /// The person wants this to be before the model's eyes as long as the conversation lasts.
    pub fn pin(&mut self, words: String) {
        self.pins.push(words);
    }

    /// This is what the person wants to be before the model's eyes now.
    pub(crate) fn set_pins(&mut self, pins: Vec<String>) {
        self.pins = pins;
    }

    /// The loop says something.
    pub(crate) fn prompt(&mut self, words: String) {
        self.items.push_back(Item::Prompt(words));
    }

    /// Gives every call an id that no other call of the conversation has: its own, where it can be kept.
    pub(crate) fn name_calls(&mut self, calls: &mut [Call]) {
        for call in calls {
            let fits = !call.id.is_empty()
                && call.id.len() <= MAX_ID_BYTES
                && !call.id.chars().any(char::is_control);
            if !(fits && self.ids.insert(call.id.clone())) {
                call.id = self.new_id();
            }
        }
    }

    /// Adds what the model said and what it was answered: one result for each call, in the order of the
    /// calls, whatever the results are.
    pub(crate) fn add(&mut self, state: &str, mut turn: Turn, results: Vec<CallResult>) {
        let mut answers = HashMap::new();
        for result in results {
            answers.entry(result.call_id.clone()).or_insert(result);
        }
        let results =
            turn.calls.iter().map(|call| answer(call, answers.remove(&call.id))).collect();
        turn.thoughts = String::new();
        for call in turn.calls.iter_mut().filter(|call| !is_name(&call.name)) {
            call.name = NO_NAME.to_owned();
        }
        self.ids.extend(turn.calls.iter().map(|call| call.id.clone()));
        let mut exchange = Exchange { state: state.to_owned(), turn, results, bytes: 0 };
        exchange.count();
        self.items.push_back(Item::Exchange(exchange));
    }

    /// The conversation as the model is shown it; `notes` stand before it.
    pub(crate) fn messages(&self, notes: &str) -> Vec<Message> {
        let user = |text: &str| Message::User { text: text.to_owned() };
        let mut messages = Vec::new();
        if !notes.is_empty() {
            messages.push(user(notes));
        }
        messages.extend(self.pins.iter().map(|pin| user(&format!("{PIN}{pin}"))));
        messages.extend(self.told.iter().map(|words| user(words)));
        messages.extend(self.summary.as_deref().map(user));
        for item in &self.items {
            item.messages(&mut messages);
        }
        messages
    }

    /// The bytes of what the person said and pinned.
    pub(crate) fn person_bytes(&self) -> usize {
        let items = self.items.iter().filter_map(|item| match item {
            Item::Person(words) => Some(words),
            Item::Prompt(_) | Item::Exchange(_) => None,
        });
        items.chain(&self.told).chain(&self.pins).map(String::len).fold(0, usize::saturating_add)
    }

    /// Leaves out the oldest items when what is shown fills too much of the room, in tokens. What was left
    /// out is handed back, for a better summary than the facts alone.
    pub(crate) fn fit(&mut self, room: u64, estimate: Estimate) -> Vec<Exchange> {
        let full = estimate.bytes(room.saturating_mul(FULL) / 100);
        let kept = estimate.bytes(room.saturating_mul(KEPT) / 100);
        if self.bytes() <= full {
            return Vec::new();
        }
        let left_out = self.leave_out(kept.saturating_sub(summary::MAX_SUMMARY_BYTES));
        if !left_out.is_empty() {
            self.summary = Some(summary::text(&self.facts, self.words.as_deref()));
        }
        self.squeeze(estimate.bytes(room));
        left_out
    }

    /// Puts the model's own summary beside the facts.
    pub(crate) fn summarise(&mut self, words: String) {
        self.summary = Some(summary::text(&self.facts, Some(&words)));
        self.words = Some(words);
    }

    /// What stands for what was left out.
    pub(crate) fn summary(&self) -> Option<&str> {
        self.summary.as_deref()
    }

    fn bytes(&self) -> usize {
        let user = |text: &String| text.len().saturating_add(FRAME_BYTES);
        let pins = self.pins.iter().map(|pin| user(pin).saturating_add(PIN.len()));
        let before = self.told.iter().chain(&self.summary).map(user);
        let items = self.items.iter().map(Item::bytes);
        pins.chain(before).chain(items).fold(0, usize::saturating_add)
    }

    /// Leaves out the oldest items but the last exchange and what follows it, until the rest has this size.
    fn leave_out(&mut self, size: usize) -> Vec<Exchange> {
        let mut bytes = self.bytes();
        let is_exchange = |item: &Item| matches!(item, Item::Exchange(_));
        let mut left = self.items.iter().rposition(is_exchange).unwrap_or(0);
        let mut left_out = Vec::new();
        while bytes > size && left > 0 {
            left -= 1;
            match self.items.pop_front() {
                Some(Item::Person(words)) => self.told.push(words),
                Some(item) => {
                    bytes = bytes.saturating_sub(item.bytes());
                    if let Item::Exchange(exchange) = item {
                        let Exchange { state, turn, results, .. } = &exchange;
                        self.facts.absorb(state, &turn.text, &turn.calls, results);
                        left_out.push(exchange);
                    }
                }
                None => break,
            }
        }
        left_out
    }

    /// Cuts what is long in the exchanges that stay, the oldest first, until everything fits.
    fn squeeze(&mut self, room: usize) {
        let mut bytes = self.bytes();
        for most in SQUEEZES {
            for item in &mut self.items {
                if bytes <= room {
                    return;
                }
                let before = item.bytes();
                if let Item::Exchange(exchange) = item {
                    exchange.squeeze(most);
                }
                bytes = bytes.saturating_sub(before.saturating_sub(item.bytes()));
            }
        }
    }

    fn new_id(&mut self) -> String {
        let mut number = self.ids.len();
        loop {
            let id = format!("call_x{number}");
            if self.ids.insert(id.clone()) {
                return id;
            }
            number = number.saturating_add(1);
        }
    }
}

impl Item {
    fn messages(&self, messages: &mut Vec<Message>) {
        match self {
            Self::Person(text) | Self::Prompt(text) => {
                messages.push(Message::User { text: text.clone() });
            }
            Self::Exchange(exchange) => exchange.messages(messages),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Person(text) | Self::Prompt(text) => text.len().saturating_add(FRAME_BYTES),
            Self::Exchange(exchange) => exchange.bytes,
        }
    }
}

impl Exchange {
    fn count(&mut self) {
        let mut messages = Vec::new();
        self.messages(&mut messages);
        self.bytes = messages.iter().map(message_bytes).fold(0, usize::saturating_add);
    }

    fn messages(&self, messages: &mut Vec<Message>) {
        let mut said = self.turn.message();
        // Protocols refuse a message with nothing in it.
        if let Message::Assistant { text, calls, .. } = &mut said
            && calls.is_empty()
            && text.trim().is_empty()
        {
            *text = "(nothing)".to_owned();
        }
        messages.push(said);
        if !self.results.is_empty() {
            messages.push(Message::Results { results: self.results.clone() });
        }
    }

    fn squeeze(&mut self, most: usize) {
        for result in &mut self.results {
            result.content = clipped(&result.content, most, Keep::Ends);
        }
        for call in self.turn.calls.iter_mut().filter(|call| call.arguments.len() > most) {
            call.arguments = format!("{{\"left_out_bytes\":{}}}", call.arguments.len());
        }
        if self.turn.text.len() > most {
            self.turn.text = clipped(&self.turn.text, most, Keep::Ends);
            // Places count bytes of the text that was.
            for block in &mut self.turn.reasoning {
                block.place.text = self.turn.text.floor_char_boundary(block.place.text);
            }
        }
        self.count();
    }
}

/// Whether a text can be the name of a tool.
pub(crate) fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=128).contains(&name.len()) && name.chars().all(fits)
}

/// The answer to a call, or what is said where there is none.
fn answer(call: &Call, result: Option<CallResult>) -> CallResult {
    let mut result = result.unwrap_or_else(|| CallResult {
        call_id: call.id.clone(),
        tool: call.name.clone(),
        content: "no answer came; it is not known what became of this call".to_owned(),
        outcome: CallOutcome::Failed,
    });
    if !is_name(&result.tool) {
        result.tool = NO_NAME.to_owned();
    }
    result
}

#[cfg(test)]
mod tests;
