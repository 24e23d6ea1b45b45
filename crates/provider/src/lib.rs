//! Speaks to models: one normal form in, one out.
//!
//! A [`ModelRequest`] goes in, [`StreamEvent`]s come out, and an [`Assembler`] makes one [`Turn`] of them;
//! [`Provider`] is the seam behind which every vendor's protocol disappears. [`Replay`] is the provider that
//! reads a recorded conversation, [`Recorder`] writes one.
//!
//! **Invariant.** A provider only talks. It has no tools, sees no files of the project and decides nothing:
//! what it hands out is data that a hostile model wrote.

mod error;
mod message;
mod provider;
mod record;
mod replay;
mod stream;
mod transcript;
mod turn;
mod usage;

pub use error::ProviderError;
pub use message::{
    Call, CallOutcome, CallResult, Message, ModelRequest, Place, ReasoningBlock, ToolDefinition,
};
pub use provider::Provider;
pub use record::{Recorder, header, to_line};
pub use replay::Replay;
pub use stream::{StopReason, StreamEvent};
pub use transcript::{
    Expectation, Expected, LineProblem, MAX_TRANSCRIPT_BYTES, Transcript, TranscriptError,
    TranscriptTurn,
};
pub use turn::{Assembler, MAX_TURN_BYTES, MAX_TURN_CALLS, StreamFault, Turn};
pub use usage::{Prices, Usage};
