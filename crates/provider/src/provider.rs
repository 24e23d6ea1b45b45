//! The seam to a model.

use std::ops::ControlFlow;

use crate::{ModelRequest, Prices, ProviderError, StreamEvent};

/// Somewhere a model can be asked. Every implementation keeps these promises:
///
/// 1. the pieces of a turn are handed to the sink in their order, each once, the last of them a
///    [`StreamEvent::Stop`] (a report of usage may follow it); where that is not so, the answer is an error;
/// 2. when the sink breaks, the connection is closed, nothing more is handed out, and the answer is
///    [`ProviderError::Cancelled`];
/// 3. while nothing comes, the sink is given [`StreamEvent::Waiting`] at least four times a second, and
///    after a time-out of the provider's own choice the answer is an error;
/// 4. nothing is retried: whoever asks decides about that, and knows whether a piece was already handed out;
/// 5. the names of tools, ids and arguments come out as the model wrote them, except that a name is mapped
///    back to the one in the request.
pub trait Provider: Send + Sync {
    /// The provider's name, such as `anthropic`.
    fn name(&self) -> &str;

    /// The model's name.
    fn model(&self) -> &str;

    /// What tokens cost, where that is known.
    fn prices(&self) -> Option<Prices>;

    /// How many tokens the model can see, its answer included.
    fn context_window(&self) -> u64;

    /// How many tokens the model answers with at most, where that is known.
    fn max_output_tokens(&self) -> Option<u64> {
        None
    }

    /// How many tokens a request has, where the provider counts them. It may ask over the network, so it is
    /// asked only where a cap is near; while nothing comes it asks whether the count is still wanted.
    fn count(
        &self,
        _: &ModelRequest,
        _is_wanted: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Option<u64> {
        None
    }

    /// Whether the model can be asked something beside the task, such as a summary. A transcript cannot: it
    /// has the turns of the task and no others.
    fn can_summarise(&self) -> bool {
        true
    }

    /// Asks for one turn and hands its pieces to the sink as they come. Blocks until the turn is over.
    fn turn(
        &self,
        request: &ModelRequest,
        sink: &mut dyn FnMut(StreamEvent) -> ControlFlow<()>,
    ) -> Result<(), ProviderError>;
}
