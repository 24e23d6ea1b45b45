//! The crate as others use it: turns from pieces, transcripts read and written, servers asked.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod anthropic;
mod assembling;
mod conversations;
mod dialects;
mod gemini;
mod net;
mod openai;
mod recorded;
mod replaying;
mod sdk;

use std::ops::ControlFlow;

use fluffy_provider::{
    Assembler, CallOutcome, CallResult, Message, ModelRequest, Provider, ProviderError, Turn,
};

/// A request whose last turn was answered so.
fn answered(results: &[(&str, CallOutcome)]) -> ModelRequest {
    let results = results.iter().map(|(tool, outcome)| CallResult {
        call_id: "c".to_owned(),
        tool: (*tool).to_owned(),
        content: String::new(),
        outcome: *outcome,
    });
    ModelRequest {
        model: "m".to_owned(),
        system: String::new(),
        tools: Vec::new(),
        messages: vec![
            Message::User { text: "task".to_owned() },
            Message::Assistant { text: String::new(), calls: vec![], reasoning: vec![] },
            Message::Results { results: results.collect() },
        ],
        max_output_tokens: 100,
    }
}

/// The next turn of a provider.
fn turn(provider: &dyn Provider, request: &ModelRequest) -> Result<Turn, ProviderError> {
    let mut assembler = Assembler::new();
    provider.turn(request, &mut |event| {
        assembler.take(event).unwrap();
        ControlFlow::Continue(())
    })?;
    Ok(assembler.finish()?)
}
