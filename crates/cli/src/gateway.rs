//! The forge's gateway to a local model: a provider's guest that is asked for one answer at a time.
//!
//! **Invariant.** The server is spoken with by a process in a sandbox that reaches that one host and port; what it
//! says is cut off at its limits, in length and in time, and is text of a stranger ever after.

use std::ops::ControlFlow;

use fluffy_base::Clock;
use fluffy_forge::{
    Gateway, GatewayError, MAX_ANSWER_CHARS, answer_fits, prompt_fits, texts_fit, vectors_fit,
};
use fluffy_provider::{
    Assembler, EmbedRequest, Message, ModelRequest, Provider as _, ProviderError, Remote,
    StopReason, StreamFault, Turn,
};

/// The longest answer that is asked for, in tokens: what a model thinks before it counts, too.
const MAX_TOKENS: u64 = 8_192;

/// No character has more bytes.
const CHAR_BYTES: usize = 4;

/// How much may be thought and sent around an answer.
const AROUND_BYTES: usize = 1 << 20;

/// A local model behind a provider's guest.
pub(crate) struct LocalGateway {
    remote: Remote,
    timeout_ms: u64,
    clock: Box<dyn Clock>,
}

/// Why an answer was hung up on.
enum Enough {
    Late,
    TooLong,
    Fault(StreamFault),
}

impl LocalGateway {
    /// The model of a provider, asked with this much patience.
    pub(crate) fn new(remote: Remote, timeout_ms: u64, clock: Box<dyn Clock>) -> Self {
        Self { remote, timeout_ms, clock }
    }

    fn until(&self) -> u64 {
        self.clock.now_ms().saturating_add(self.timeout_ms)
    }

    /// Whether time is up.
    fn is_late(&self, until: u64) -> bool {
        self.clock.now_ms() >= until
    }

    fn late(&self) -> GatewayError {
        GatewayError::Late { waited_ms: self.timeout_ms }
    }

    fn turn(&self, request: &ModelRequest) -> Result<Turn, GatewayError> {
        let (until, mut assembler, mut enough) = (self.until(), Assembler::new(), None);
        let asked = self.remote.turn(request, &mut |piece| {
            let taken = assembler.take(piece).map_err(Enough::Fault);
            let most = MAX_ANSWER_CHARS * CHAR_BYTES + AROUND_BYTES;
            let short = if assembler.bytes() > most { Err(Enough::TooLong) } else { Ok(()) };
            let soon = if self.is_late(until) { Err(Enough::Late) } else { Ok(()) };
            match taken.and(short).and(soon) {
                Ok(()) => ControlFlow::Continue(()),
                Err(why) => {
                    enough = Some(why);
                    ControlFlow::Break(())
                }
            }
        });
        match (enough, asked) {
            (Some(Enough::Late), _) => Err(self.late()),
            (Some(Enough::TooLong), _) => {
                Err(GatewayError::AnswerTooLong { most: MAX_ANSWER_CHARS })
            }
            (Some(Enough::Fault(fault)), _) => Err(GatewayError::Garbled(fault.to_string())),
            (None, Err(error)) => Err(failure(error)),
            (None, Ok(())) => {
                assembler.finish().map_err(|fault| GatewayError::Garbled(fault.to_string()))
            }
        }
    }
}

impl Gateway for LocalGateway {
    fn generate(&self, prompt: &str) -> Result<String, GatewayError> {
        prompt_fits(prompt)?;
        let turn = self.turn(&ModelRequest {
            model: self.remote.model().to_owned(),
            system: String::new(),
            tools: Vec::new(),
            messages: vec![Message::User { text: prompt.to_owned() }],
            max_output_tokens: MAX_TOKENS,
        })?;
        let cut = "the answer was cut off before its end".to_owned();
        match turn.stop {
            StopReason::End => {}
            StopReason::Length | StopReason::Pause => return Err(GatewayError::Garbled(cut)),
            StopReason::Refusal => {
                return Err(GatewayError::Declined("the model declined to answer".to_owned()));
            }
            StopReason::Calls | StopReason::MalformedCall => {
                return Err(GatewayError::Garbled("it called a tool, and has none".to_owned()));
            }
        }
        // What was not UTF-8 was made this by whoever read it.
        if turn.text.contains(char::REPLACEMENT_CHARACTER) {
            return Err(GatewayError::Garbled("it is not all UTF-8".to_owned()));
        }
        answer_fits(turn.text)
    }

    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, GatewayError> {
        texts_fit(texts)?;
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let until = self.until();
        let request = EmbedRequest { model: self.remote.model().to_owned(), texts: texts.to_vec() };
        let asked = self.remote.embed(request, &mut || {
            if self.is_late(until) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let vectors = asked.map_err(|error| match error {
            ProviderError::Cancelled => self.late(),
            error => failure(error),
        })?;
        vectors_fit(vectors, texts.len())
    }
}

/// The same in a gateway's words.
fn failure(error: ProviderError) -> GatewayError {
    let said = error.to_string();
    match error {
        ProviderError::Network(_)
        | ProviderError::Blocked(_)
        | ProviderError::Untrusted(_)
        | ProviderError::Guest(_)
        | ProviderError::Cancelled => GatewayError::Unreachable(said),
        ProviderError::TimedOut { waited_ms } => GatewayError::Late { waited_ms },
        ProviderError::BadKey(_)
        | ProviderError::NoSuchModel(_)
        | ProviderError::RateLimited { .. }
        | ProviderError::QuotaExhausted(_)
        | ProviderError::ContextTooLong(_)
        | ProviderError::Overloaded { .. }
        | ProviderError::Filtered(_)
        | ProviderError::Refused(_) => GatewayError::Declined(said),
        ProviderError::Malformed(_)
        | ProviderError::TranscriptEnded { .. }
        | ProviderError::Expectation(_) => GatewayError::Garbled(said),
    }
}
