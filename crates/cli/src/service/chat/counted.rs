//! Counts the turns that a model is asked for: a transcript goes on where the turn before left it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fluffy_provider::{ModelRequest, Prices, Provider, ProviderError, StreamEvent};

use crate::providers::Chosen;

struct Counted {
    provider: Box<dyn Provider>,
    turns: Arc<AtomicUsize>,
}

/// The same, counted.
pub(super) fn counted(chosen: Chosen, turns: Arc<AtomicUsize>) -> Chosen {
    let Chosen { provider, spec } = chosen;
    Chosen { provider: Box::new(Counted { provider, turns }), spec }
}

impl Provider for Counted {
    fn name(&self) -> &str {
        self.provider.name()
    }

    fn model(&self) -> &str {
        self.provider.model()
    }

    fn prices(&self) -> Option<Prices> {
        self.provider.prices()
    }

    fn context_window(&self) -> u64 {
        self.provider.context_window()
    }

    fn max_output_tokens(&self) -> Option<u64> {
        self.provider.max_output_tokens()
    }

    fn count(
        &self,
        request: &ModelRequest,
        is_wanted: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Option<u64> {
        self.provider.count(request, is_wanted)
    }

    fn can_summarise(&self) -> bool {
        self.provider.can_summarise()
    }

    fn turn(
        &self,
        request: &ModelRequest,
        sink: &mut dyn FnMut(StreamEvent) -> ControlFlow<()>,
    ) -> Result<(), ProviderError> {
        let asked = self.provider.turn(request, sink);
        if !matches!(asked, Err(ProviderError::TranscriptEnded { .. })) {
            self.turns.fetch_add(1, Ordering::SeqCst);
        }
        asked
    }
}
