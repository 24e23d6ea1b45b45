//! Listens to one answer of a provider: passes on what is said, and looks at every piece whether someone
//! wants it to stop.

use std::ops::ControlFlow;

use fluffy_base::{Event, Observer};
use fluffy_provider::{
    Assembler, ModelRequest, Provider, ProviderError, StreamEvent, StreamFault, Turn, Usage,
};

use crate::Bench;
use crate::estimate::{BYTES_PER_TOKEN, Estimate, request_bytes};

/// What became of asking for a turn.
#[derive(Debug)]
pub(crate) struct Heard {
    /// The turn, or why there is none.
    pub(crate) turn: Result<Turn, ProviderError>,
    /// Whether something had been said: whoever looks on is told that it does not count.
    pub(crate) began: bool,
    /// Whether anything came at all: then it is paid for.
    pub(crate) paid: bool,
    /// What it used, as counted by the provider or else as guessed.
    pub(crate) usage: Usage,
    /// Whether the provider counted it.
    pub(crate) counted: bool,
}

/// Asks for one turn. The observer, if any, is told what is said.
pub(crate) fn listen(
    provider: &dyn Provider,
    bench: &dyn Bench,
    observer: Option<&dyn Observer>,
    request: &ModelRequest,
    estimate: Estimate,
) -> Heard {
    let mut assembler = Assembler::new();
    let (mut began, mut paid) = (false, false);
    let mut end = None;
    let answer = provider.turn(request, &mut |event| {
        // A provider that goes on after a break is not listened to.
        if end.is_some() || bench.is_cancelled() {
            end.get_or_insert(ProviderError::Cancelled);
            return ControlFlow::Break(());
        }
        paid |= !matches!(event, StreamEvent::Waiting);
        began |= !matches!(event, StreamEvent::Waiting | StreamEvent::Usage(_));
        if let (Some(observer), StreamEvent::Text(text)) = (observer, &event) {
            observer.notice(Event::TextDelta { text: text.clone() });
        }
        match assembler.take(event) {
            Ok(()) => ControlFlow::Continue(()),
            Err(fault) => {
                end = Some(fault.into());
                ControlFlow::Break(())
            }
        }
    });
    let counted = assembler.usage().filter(|usage| usage.input > 0);
    let usage = counted.unwrap_or_else(|| guess(request, &assembler, estimate));
    let turn = match (end, answer) {
        (Some(error), _) | (None, Err(error)) => Err(error),
        (None, Ok(())) => assembler.finish().map_err(|fault: StreamFault| fault.into()),
    };
    Heard { turn, began, paid, usage, counted: counted.is_some() }
}

/// What an answer used that nobody counted.
fn guess(request: &ModelRequest, assembler: &Assembler, estimate: Estimate) -> Usage {
    let output = u64::try_from(assembler.bytes()).unwrap_or(u64::MAX).div_ceil(BYTES_PER_TOKEN);
    let counted = assembler.usage().unwrap_or_default();
    let guess = Usage { input: estimate.tokens(request_bytes(request)), output, ..counted };
    counted.joined(guess)
}
