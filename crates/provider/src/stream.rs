//! What a model says, piece by piece.

use serde::{Deserialize, Serialize};

use crate::Usage;

/// One piece of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamEvent {
    /// More of what the model says.
    Text(String),
    /// More of what it thinks, where it shows that. For people; never handed back to the model.
    Reasoning(String),
    /// Something that has to be handed back as it came; its place is where it comes in the stream.
    ReasoningBlock {
        /// The provider it comes from.
        origin: String,
        /// The block, in whatever form the adapter chose.
        data: String,
    },
    /// A call begins.
    CallStarted {
        /// Its number within the turn, which later pieces name.
        index: u32,
        /// The provider's id; may be empty.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// More of a call's arguments.
    CallArguments {
        /// Which call.
        index: u32,
        /// The piece, to be put behind those before.
        fragment: String,
    },
    /// What the turn has used up to now; what a later report says replaces what an earlier one said.
    Usage(Usage),
    /// The turn is over. Only a report of usage may follow.
    Stop(StopReason),
    /// Nothing new. Sent while the provider waits, so that its caller can break off.
    Waiting,
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model has said what it had to say.
    End,
    /// It waits for the results of its calls.
    Calls,
    /// The answer was cut at the limit of its length: the last of it is incomplete.
    Length,
    /// The provider interrupted it; sent again, it goes on.
    Pause,
    /// The model, or a filter before it, declined to answer.
    Refusal,
    /// The provider says that it could not make a call of what the model wrote.
    MalformedCall,
}

impl StopReason {
    /// Whether what was said is whole: only then may calls of the turn run.
    pub const fn is_whole(self) -> bool {
        match self {
            Self::End | Self::Calls | Self::Pause => true,
            Self::Length | Self::Refusal | Self::MalformedCall => false,
        }
    }
}
