//! What the kernel and the policy host say to each other: JSON in frames, one answer to each message,
//! in turn.
//!
//! **Invariant.** Whatever is not exactly one of these messages is refused, on both sides.

use fluffy_base::{FrameError, encode_frame};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::answer::RuleAnswer;
use super::source::RuleProblem;

/// The largest message to the host; a request with more in it cannot be judged by rule files.
pub const MAX_HOST_MESSAGE_BYTES: usize = 8 << 20;

/// The largest answer of the host.
pub const MAX_HOST_ANSWER_BYTES: usize = 64 << 10;

/// From the kernel to the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum HostMessage {
    /// Load a rule file; the first is rule 0, and so on.
    Load {
        /// The file's name without `.ts`.
        name: String,
        /// Its TypeScript.
        text: String,
    },
    /// Ask a rule.
    Evaluate {
        /// Which.
        rule: usize,
        /// The request, as `ExtensionInput` writes it.
        input: String,
    },
}

/// From the host to the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum HostAnswer {
    /// The rule file was taken.
    Loaded,
    /// The rule file was not taken.
    Refused(RuleProblem),
    /// What the rule said.
    Judged(RuleAnswer),
    /// The message was none.
    NotUnderstood(String),
}

/// Why a message cannot be sent or understood.
#[derive(Debug, thiserror::Error)]
pub enum ProtocolError {
    /// Larger than the receiver takes, or empty.
    #[error("the message does not fit into a frame")]
    Frame(#[from] FrameError),
    /// Not one of the messages.
    #[error("the message is not understood: {0}")]
    Message(String),
}

impl HostMessage {
    /// The frame that carries the message.
    pub fn frame(&self) -> Result<Vec<u8>, ProtocolError> {
        frame(self, MAX_HOST_MESSAGE_BYTES)
    }

    /// The message in a frame's payload.
    pub fn read(payload: &[u8]) -> Result<Self, ProtocolError> {
        read(payload)
    }
}

impl HostAnswer {
    /// The frame that carries the answer.
    pub fn frame(&self) -> Result<Vec<u8>, ProtocolError> {
        frame(self, MAX_HOST_ANSWER_BYTES)
    }

    /// The answer in a frame's payload.
    pub fn read(payload: &[u8]) -> Result<Self, ProtocolError> {
        read(payload)
    }
}

fn frame(message: &impl Serialize, limit: usize) -> Result<Vec<u8>, ProtocolError> {
    let payload =
        serde_json::to_vec(message).map_err(|error| ProtocolError::Message(error.to_string()))?;
    Ok(encode_frame(&payload, limit)?)
}

fn read<T: DeserializeOwned>(payload: &[u8]) -> Result<T, ProtocolError> {
    serde_json::from_slice(payload).map_err(|error| ProtocolError::Message(error.to_string()))
}

#[cfg(test)]
mod tests {
    use fluffy_base::FrameDecoder;

    use super::*;

    #[test]
    fn a_message_comes_out_as_it_went_in() {
        let message = HostMessage::Evaluate { rule: 3, input: "{\"a\":\"\\n\"}".to_owned() };
        let frame = message.frame().unwrap();
        let payload = FrameDecoder::new(MAX_HOST_MESSAGE_BYTES)
            .next_frame(&mut frame.as_slice())
            .unwrap()
            .unwrap();
        assert_eq!(HostMessage::read(&payload).unwrap(), message);
    }

    #[test]
    fn lesson_l18_what_is_no_message_is_refused() {
        for payload in [
            &b"null"[..],
            b"",
            b"{}",
            b"[]",
            b"\xff",
            b"{\"evaluate\":{\"rule\":-1,\"input\":\"\"}}",
            b"{\"evaluate\":{\"rule\":0,\"input\":\"\",\"more\":1}}",
            b"{\"load\":{\"name\":\"a\",\"text\":\"b\"},\"evaluate\":{}}",
        ] {
            assert!(HostMessage::read(payload).is_err(), "{payload:?}");
            assert!(HostAnswer::read(payload).is_err(), "{payload:?}");
        }
    }
}
