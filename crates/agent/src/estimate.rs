//! How many tokens a text has, before anyone has counted them.
//!
//! Three bytes are a token until the provider says better: its own counts correct the guess, within bounds
//! that no wrong count can leave.

use fluffy_provider::{Message, ModelRequest};

/// How many bytes are a token, to begin with. Most text has four, so the guess errs on the safe side.
pub(crate) const BYTES_PER_TOKEN: u64 = 3;

/// What a message or a call costs beside its text, in bytes.
pub(crate) const FRAME_BYTES: usize = 16;

/// The correction in thousandths, and how far it may go.
const PLAIN: u64 = 1_000;
const LEAST: u64 = 500;
const MOST: u64 = 4_000;

/// Guesses tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Estimate {
    thousandths: u64,
    /// What a provider's complaint has taught; counts do not go below it.
    floor: u64,
}

impl Estimate {
    pub(crate) fn new() -> Self {
        Self { thousandths: PLAIN, floor: LEAST }
    }

    /// The tokens of so many bytes.
    pub(crate) fn tokens(&self, bytes: usize) -> u64 {
        let plain = u64::try_from(bytes).unwrap_or(u64::MAX).div_ceil(BYTES_PER_TOKEN);
        plain.saturating_mul(self.thousandths).div_ceil(PLAIN)
    }

    /// The bytes that so many tokens have.
    pub(crate) fn bytes(&self, tokens: u64) -> usize {
        let bytes = tokens.saturating_mul(BYTES_PER_TOKEN).saturating_mul(PLAIN);
        usize::try_from(bytes / self.thousandths.max(1)).unwrap_or(usize::MAX)
    }

    /// Takes the provider's count for a request.
    pub(crate) fn learn(&mut self, request: &ModelRequest, counted: u64) {
        let plain = Self::new().tokens(request_bytes(request)).max(1);
        let ratio = counted.saturating_mul(PLAIN) / plain;
        self.thousandths = ratio.clamp(self.floor, MOST);
    }

    /// The provider says that it was too much, although the guess said otherwise.
    pub(crate) fn tighten(&mut self) {
        self.floor = (self.thousandths.saturating_mul(3) / 2).min(MOST);
        self.thousandths = self.floor;
    }
}

/// A message's bytes with what the protocol adds.
pub(crate) fn message_bytes(message: &Message) -> usize {
    let frames = match message {
        Message::User { .. } => 1,
        Message::Assistant { calls, .. } => calls.len().saturating_add(1),
        Message::Results { results } => results.len(),
    };
    message.bytes().saturating_add(frames.saturating_mul(FRAME_BYTES))
}

/// A request's bytes with what the protocol adds.
pub(crate) fn request_bytes(request: &ModelRequest) -> usize {
    let messages = request.messages.iter().map(message_bytes);
    let tools = request.tools.iter().map(|tool| tool.bytes().saturating_add(FRAME_BYTES));
    messages.chain(tools).fold(request.system.len(), usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(bytes: usize) -> ModelRequest {
        ModelRequest {
            model: String::new(),
            system: "x".repeat(bytes),
            tools: vec![],
            messages: vec![],
            max_output_tokens: 0,
        }
    }

    #[test]
    fn a_count_corrects_the_guess_within_bounds() {
        let mut estimate = Estimate::new();
        assert_eq!(estimate.tokens(3_000), 1_000);
        estimate.learn(&request(3_000), 750);
        assert_eq!(estimate.tokens(3_000), 750);
        assert_eq!(estimate.bytes(750), 3_000);
        estimate.learn(&request(3_000), 1);
        assert_eq!(estimate.tokens(3_000), 500);
        estimate.learn(&request(3_000), u64::MAX);
        assert_eq!(estimate.tokens(3_000), 4_000);
    }

    #[test]
    fn a_complaint_is_not_forgotten() {
        let mut estimate = Estimate::new();
        estimate.tighten();
        estimate.learn(&request(3_000), 700);
        assert_eq!(estimate.tokens(3_000), 1_500);
    }

    #[test]
    fn no_size_overflows() {
        let mut estimate = Estimate::new();
        estimate.tighten();
        assert!(estimate.tokens(usize::MAX) > 0);
        assert!(estimate.bytes(u64::MAX) > 0);
    }
}
