//! The words all other crates speak: ids, requests, receipts, paths, units, secrets, hashing,
//! clock and frames.
//!
//! **Invariant.** Nothing here does input or output. The wall clock and the system's randomness are
//! read behind the [`Clock`] and [`IdSource`] traits, and nowhere else.

mod clock;
mod event;
mod frame;
mod hash;
mod ids;
mod ipc;
mod json;
mod mask;
mod money;
mod path;
mod receipt;
mod request;
mod secret;
mod state;
mod text;
mod units;
mod wait;

pub use clock::{Clock, SystemClock, VirtualClock};
pub use event::{EVENT_VERSION, Event, MergedFile, Observer};
pub use frame::{FrameDecoder, FrameError, encode_frame};
pub use hash::{Digest, DigestError, Hasher};
pub use ids::{ClientId, IdSource, KernelId, SeededIds, SessionId, SystemIds};
pub use ipc::{API_VERSION, Fault, FaultCode, MAX_VALUES, Message, OLDEST_API_VERSION};
pub use json::{Json, JsonError, MAX_DEPTH};
pub use mask::{MASK, known_secrets, masked};
pub use money::Usd;
pub use path::{PathError, ProjectPath};
pub use receipt::{Decision, KernelReceipt, ReceiptStatus};
pub use request::{KernelRequest, RequestError, RequestProblem, ToolCall};
pub use secret::Secret;
pub use state::{KernelState, StateError, Transition};
pub use text::{Excerpt, is_blank, normalised, sanitised};
pub use units::{ByteSize, Span, UnitError};
pub use wait::{SystemWaiter, Waiter};
