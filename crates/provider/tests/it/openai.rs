//! OpenAI's two protocols and the servers that speak like them.

#![expect(clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod dialects;
mod recordings;
mod refusals;
mod requests;
mod sdk;

use fluffy_base::Json;
use fluffy_provider::{
    Assembler, Endpoint, Message, ModelRequest, Patience, Protocol, ProviderError, SseDecoder,
    SseEvent, StreamEvent, ToolDefinition, Turn,
};
use serde_json::Value;

fn endpoint(protocol: Protocol) -> Endpoint {
    Endpoint {
        provider: "test".to_owned(),
        protocol,
        url: "https://api.example.org/v1".parse().unwrap(),
        version: None,
        effort: None,
        certificates: None,
        patience: Patience::default(),
    }
}

fn tool(name: &str, summary: &str, schema: Value) -> ToolDefinition {
    let (name, summary) = (name.to_owned(), summary.to_owned());
    ToolDefinition { name, summary, schema: Json::new(schema).unwrap() }
}

fn request(tools: Vec<ToolDefinition>, messages: Vec<Message>) -> ModelRequest {
    let (model, system) = ("model-1".to_owned(), "Be short.".to_owned());
    ModelRequest { model, system, tools, messages, max_output_tokens: 1_000 }
}

fn user(text: &str) -> Message {
    Message::User { text: text.to_owned() }
}

/// The body that a request is sent with.
fn body(protocol: Protocol, request: &ModelRequest) -> Value {
    let asked = protocol.adapter().turn(request, &endpoint(protocol)).unwrap();
    serde_json::from_slice(&asked.body.unwrap()).unwrap()
}

/// The events of a stream that comes in pieces.
fn events<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<SseEvent> {
    let (mut sse, mut events) = (SseDecoder::default(), Vec::new());
    pieces.into_iter().for_each(|piece| sse.take(piece, &mut events).unwrap());
    events
}

/// What a model said up to the end of the stream, or up to an error.
fn heard(
    protocol: Protocol,
    request: &ModelRequest,
    events: &[SseEvent],
) -> (Vec<StreamEvent>, Result<(), ProviderError>) {
    let mut decoder = protocol.adapter().decoder(request, &endpoint(protocol)).unwrap();
    let mut pieces = Vec::new();
    let taken = events.iter().try_for_each(|event| decoder.event(event, &mut pieces));
    let ended = taken.and_then(|()| decoder.end(&mut pieces));
    (pieces, ended)
}

fn assembled(pieces: Vec<StreamEvent>) -> Turn {
    let mut assembler = Assembler::new();
    pieces.into_iter().for_each(|piece| assembler.take(piece).unwrap());
    assembler.finish().unwrap()
}
