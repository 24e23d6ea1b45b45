//! What a vendor's protocol is: a request written its way, and its answer read.
//!
//! Everything here is a function of bytes: adapters know nothing of sockets, keys or time. They run in the
//! provider's sandbox, since what they read was written by a stranger.

pub(crate) mod anthropic;
mod anthropic_stream;
mod complaint;
pub(crate) mod gemini;
mod gemini_stream;
mod openai;
mod openai_calls;
pub(crate) mod openai_chat;
mod openai_chat_stream;
mod openai_embed;
mod openai_refusal;
pub(crate) mod openai_responses;
mod openai_responses_stream;
mod partial_args;
mod sides;
mod wire;

use serde::{Deserialize, Serialize};

use crate::{EmbedRequest, Endpoint, ModelRequest, ProviderError, SseEvent, StreamEvent};

/// One vendor's protocol. To add one is to implement this in a file of its own and to name it in
/// [`Protocol`](crate::Protocol).
pub trait Adapter: Send + Sync {
    /// The request for one turn, streamed.
    fn turn(&self, request: &ModelRequest, endpoint: &Endpoint) -> Result<Ask, ProviderError>;

    /// What reads the answer to it.
    fn decoder(
        &self,
        request: &ModelRequest,
        endpoint: &Endpoint,
    ) -> Result<Box<dyn Decoder>, ProviderError>;

    /// What an answer says that is no success.
    fn refusal(&self, answer: &Answer) -> ProviderError;

    /// The request for the list of models; `after` is where the page before ended.
    fn models(&self, endpoint: &Endpoint, after: Option<&str>) -> Ask;

    /// Reads one page of the list.
    fn models_in(&self, body: &[u8]) -> Result<ModelPage, ProviderError>;

    /// The request that has the vendor count the tokens of a turn, where it does that.
    fn count(&self, _: &ModelRequest, _: &Endpoint) -> Result<Option<Ask>, ProviderError> {
        Ok(None)
    }

    /// Reads the count.
    fn counted(&self, _body: &[u8]) -> Result<u64, ProviderError> {
        Err(ProviderError::Malformed("this protocol counts no tokens".to_owned()))
    }

    /// The request for the numbers that stand for texts, where the vendor has them.
    fn embed(&self, _: &EmbedRequest, _: &Endpoint) -> Result<Ask, ProviderError> {
        Err(ProviderError::Refused("this protocol has no numbers for texts".to_owned()))
    }

    /// Reads them: for each of so many texts, in the order of the texts.
    fn embedded(&self, _body: &[u8], _texts: usize) -> Result<Vec<Vec<f32>>, ProviderError> {
        Err(ProviderError::Malformed("this protocol has no numbers for texts".to_owned()))
    }

    /// How the key is sent: the header's name, and what stands before the key in it.
    fn key_header(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }
}

/// Reads one streamed answer.
pub trait Decoder: Send {
    /// Takes an event and hands out the pieces of the turn in it. Unknown kinds of events are passed over.
    fn event(
        &mut self,
        event: &SseEvent,
        pieces: &mut Vec<StreamEvent>,
    ) -> Result<(), ProviderError>;

    /// The stream is over. What it did not bring to an end is an error, never a guess.
    fn end(&mut self, pieces: &mut Vec<StreamEvent>) -> Result<(), ProviderError>;
}

/// A request to a vendor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Behind the endpoint's address, beginning with `/`; with the query, if any.
    pub path: String,
    /// Headers beside those that every request has and the key.
    pub headers: Vec<(&'static str, String)>,
    /// What is posted; nothing is a `GET`.
    pub body: Option<Vec<u8>>,
}

/// An answer that is no success.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, up to a limit.
    pub body: Vec<u8>,
}

/// A model, as its vendor lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelInfo {
    /// The name to ask for it by.
    pub id: String,
    /// What people call it.
    pub title: Option<String>,
    /// How many tokens it can see.
    pub context_window: Option<u64>,
    /// How many it can answer with.
    pub max_output_tokens: Option<u64>,
}

/// A part of the list of models.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelPage {
    /// The models.
    pub models: Vec<ModelInfo>,
    /// Where to go on, if there are more.
    pub next: Option<String>,
}

impl Answer {
    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }
}
