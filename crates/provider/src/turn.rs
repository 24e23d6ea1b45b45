//! One turn, put together from its pieces.
//!
//! **Invariant.** No piece is lost and none is doubled: the turn's text is all pieces of text in their order,
//! and the arguments of a call are all its fragments in theirs. What contradicts itself is an error, never a
//! guess.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Deserialize, Serialize};

use crate::{Call, Message, Place, ProviderError, ReasoningBlock, StopReason, StreamEvent, Usage};

/// How large a turn may be, all its pieces together. Far beyond what models can write; an endless stream
/// must not fill the memory.
pub const MAX_TURN_BYTES: usize = 16 << 20;

/// How many calls a turn may have.
pub const MAX_TURN_CALLS: usize = 4096;

/// What a block weighs beside its text: empty ones must come to an end, too.
const BLOCK_BYTES: usize = 64;

/// What a model said in one turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// What it said.
    pub text: String,
    /// What it showed of its thoughts.
    pub thoughts: String,
    /// What it asked for.
    pub calls: Vec<Call>,
    /// What has to be handed back.
    pub reasoning: Vec<ReasoningBlock>,
    /// What it used, if the provider says so.
    pub usage: Option<Usage>,
    /// Why it ended.
    pub stop: StopReason,
}

/// Why pieces do not make a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StreamFault {
    /// Two calls with the same number.
    #[error("call {0} begins twice")]
    CallTwice(u32),
    /// Arguments of a call that never began.
    #[error("arguments for call {0}, which never began")]
    UnknownCall(u32),
    /// More pieces after the end.
    #[error("more comes after the end of the turn")]
    AfterStop,
    /// The stream ended and the turn did not.
    #[error("the stream ended before the turn did")]
    Unfinished,
    /// Too much.
    #[error("the turn is larger than {MAX_TURN_BYTES} bytes")]
    TooLarge,
    /// Too many calls.
    #[error("the turn has more than {MAX_TURN_CALLS} calls")]
    TooManyCalls,
}

/// Makes a [`Turn`] of [`StreamEvent`]s.
#[derive(Debug, Default)]
pub struct Assembler {
    text: String,
    thoughts: String,
    calls: Vec<Call>,
    /// Where in `calls` the call with this number is.
    positions: BTreeMap<u32, usize>,
    reasoning: Vec<ReasoningBlock>,
    usage: Option<Usage>,
    stop: Option<StopReason>,
    bytes: usize,
}

impl Assembler {
    /// A turn of which nothing is there yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece.
    pub fn take(&mut self, event: StreamEvent) -> Result<(), StreamFault> {
        let late = matches!(event, StreamEvent::Usage(_) | StreamEvent::Waiting);
        if self.stop.is_some() && !late {
            return Err(StreamFault::AfterStop);
        }
        if event != StreamEvent::Waiting {
            // Empty pieces must come to an end, too.
            self.weigh(1)?;
        }
        match event {
            StreamEvent::Text(piece) => {
                self.weigh(piece.len())?;
                self.text.push_str(&piece);
            }
            StreamEvent::Reasoning(piece) => {
                self.weigh(piece.len())?;
                self.thoughts.push_str(&piece);
            }
            StreamEvent::ReasoningBlock { origin, data } => self.block(origin, data)?,
            StreamEvent::CallStarted { index, id, name } => self.begin(index, id, name)?,
            StreamEvent::CallArguments { index, fragment } => self.extend(index, &fragment)?,
            StreamEvent::Usage(usage) => {
                self.usage = Some(self.usage.unwrap_or_default().joined(usage));
            }
            StreamEvent::Stop(reason) => self.stop = Some(reason),
            StreamEvent::Waiting => {}
        }
        Ok(())
    }

    /// How many bytes came up to now, and a little more.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What the turn used, as far as it is known.
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// The turn, if it came to its end.
    pub fn finish(self) -> Result<Turn, StreamFault> {
        let stop = self.stop.ok_or(StreamFault::Unfinished)?;
        Ok(Turn {
            text: self.text,
            thoughts: self.thoughts,
            calls: self.calls,
            reasoning: self.reasoning,
            usage: self.usage,
            stop,
        })
    }

    fn block(&mut self, origin: String, data: String) -> Result<(), StreamFault> {
        self.weigh(origin.len().saturating_add(data.len()).saturating_add(BLOCK_BYTES))?;
        let place = Place { text: self.text.len(), calls: self.calls.len() };
        self.reasoning.push(ReasoningBlock { origin, data, place });
        Ok(())
    }

    fn begin(&mut self, index: u32, id: String, name: String) -> Result<(), StreamFault> {
        self.weigh(id.len().saturating_add(name.len()))?;
        if self.calls.len() >= MAX_TURN_CALLS {
            return Err(StreamFault::TooManyCalls);
        }
        let Entry::Vacant(place) = self.positions.entry(index) else {
            return Err(StreamFault::CallTwice(index));
        };
        place.insert(self.calls.len());
        self.calls.push(Call { id, name, arguments: String::new() });
        Ok(())
    }

    fn extend(&mut self, index: u32, fragment: &str) -> Result<(), StreamFault> {
        self.weigh(fragment.len())?;
        let position = self.positions.get(&index);
        let call = position.and_then(|position| self.calls.get_mut(*position));
        call.ok_or(StreamFault::UnknownCall(index))?.arguments.push_str(fragment);
        Ok(())
    }

    fn weigh(&mut self, bytes: usize) -> Result<(), StreamFault> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_TURN_BYTES { Err(StreamFault::TooLarge) } else { Ok(()) }
    }
}

impl Turn {
    /// The turn as the message it becomes.
    pub fn message(&self) -> Message {
        Message::Assistant {
            text: self.text.clone(),
            calls: self.calls.clone(),
            reasoning: self.reasoning.clone(),
        }
    }
}

impl From<StreamFault> for ProviderError {
    fn from(fault: StreamFault) -> Self {
        Self::Malformed(fault.to_string())
    }
}
