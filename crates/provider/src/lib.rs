//! Speaks to models: one normal form in, one out.
//!
//! A [`ModelRequest`] goes in, [`StreamEvent`]s come out, and an [`Assembler`] makes one [`Turn`] of them;
//! [`Provider`] is the seam behind which every vendor's protocol disappears. [`Replay`] is the provider that
//! reads a recorded conversation, [`Recorder`] writes one.
//!
//! **Invariant.** A provider only talks. It has no tools, sees no files of the project and decides nothing:
//! what it hands out is data that a hostile model wrote.

mod adapters;
mod endpoint;
mod error;
mod halves;
mod host;
mod host_protocol;
mod http;
mod message;
mod names;
mod provider;
mod record;
mod redact;
mod refusal;
mod remote;
mod replay;
mod sse;
mod stream;
mod tls;
mod transcript;
mod tunnel;
mod turn;
mod usage;

pub use adapters::{Adapter, Answer, Ask, Decoder, ModelInfo, ModelPage};
pub use endpoint::{BaseUrl, Effort, Endpoint, Patience, Protocol, UrlError};
pub use error::ProviderError;
pub use host::serve;
pub use host_protocol::{HostAnswer, HostMessage, MAX_HOST_FRAME_BYTES};
pub use message::{
    Call, CallOutcome, CallResult, EmbedRequest, Message, ModelRequest, Place, ReasoningBlock,
    ToolDefinition,
};
pub use names::Names;
pub use provider::Provider;
pub use record::{Recorder, header, to_line};
pub use remote::{Guest, GuestFailure, Guests, Model, Remote, Waiting};
pub use replay::Replay;
pub use sse::{SseDecoder, SseEvent};
pub use stream::{StopReason, StreamEvent};
pub use transcript::{
    Expectation, Expected, LineProblem, MAX_TRANSCRIPT_BYTES, Transcript, TranscriptError,
    TranscriptTurn,
};
pub use tunnel::Dial;
pub use turn::{Assembler, MAX_TURN_BYTES, MAX_TURN_CALLS, StreamFault, Turn};
pub use usage::{Prices, Usage};
