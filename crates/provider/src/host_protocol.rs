//! What the kernel's process and the provider's sandbox say to each other: one frame, one message.
//!
//! **Invariant.** Secrets go one way, in [`HostMessage::Open`], which is written here and printed nowhere.

use fluffy_base::{FrameError, Secret, encode_frame};
use serde::{Deserialize, Serialize};

use crate::{EmbedRequest, Endpoint, ModelInfo, ModelRequest, ProviderError, StreamEvent};

/// The largest message in either direction.
pub const MAX_HOST_FRAME_BYTES: usize = 32 << 20;

/// To the provider's process. The first is `Open`; each of the others is answered before the next is sent.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum HostMessage {
    /// Where to ask, and the headers that open the door there.
    Open {
        /// Where.
        endpoint: Endpoint,
        /// Headers of every request: the key among them.
        headers: Vec<(String, Secret)>,
    },
    /// Ask for a turn: pieces, then `Done` or `Failed`.
    Turn(ModelRequest),
    /// List the models: `Models` or `Failed`.
    Models,
    /// Count the tokens of a request: `Counted` or `Failed`.
    Count(ModelRequest),
    /// Ask for the numbers that stand for texts: `Embedded` or `Failed`.
    Embed(EmbedRequest),
}

/// From the provider's process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum HostAnswer {
    /// A piece of the turn.
    Piece(StreamEvent),
    /// The turn is over.
    Done,
    /// What was asked for did not come.
    Failed(ProviderError),
    /// The models.
    Models(Vec<ModelInfo>),
    /// The tokens, where the provider counts them.
    Counted(Option<u64>),
    /// The numbers, for each text in the order of the texts.
    Embedded(Vec<Vec<f32>>),
}

impl HostMessage {
    /// The message as a frame; the one place where the headers' values are written out.
    pub fn frame(&self) -> Result<Vec<u8>, ProviderError> {
        let value = match self {
            Self::Open { endpoint, headers } => {
                let headers: Vec<(&str, &str)> =
                    headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
                serde_json::json!({"open": {"endpoint": endpoint, "headers": headers}})
            }
            Self::Turn(request) => serde_json::json!({"turn": request}),
            Self::Models => serde_json::json!("models"),
            Self::Count(request) => serde_json::json!({"count": request}),
            Self::Embed(request) => serde_json::json!({"embed": request}),
        };
        framed(&value)
    }
}

impl HostAnswer {
    /// The message as a frame.
    pub fn frame(&self) -> Result<Vec<u8>, ProviderError> {
        framed(self)
    }
}

fn framed(message: &impl Serialize) -> Result<Vec<u8>, ProviderError> {
    let text = serde_json::to_vec(message)
        .map_err(|error| ProviderError::Malformed(format!("cannot be written: {error}")))?;
    encode_frame(&text, MAX_HOST_FRAME_BYTES).map_err(|error: FrameError| {
        ProviderError::Refused(format!("the request is too large to be sent: {error}"))
    })
}
