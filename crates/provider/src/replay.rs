//! A provider that reads a recorded conversation.
//!
//! It gives the next turn whatever was answered. Where a turn has `expect`, the results of the turn before
//! are held against it first: every expected result must be found among them, in the order of the list;
//! results that the list does not name may stand before, between and after. So `expect` with one entry says
//! that this happened, and not that nothing else did.

use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use fluffy_base::Excerpt;

use crate::transcript::{Transcript, TranscriptError, TranscriptTurn};
use crate::{
    CallResult, Expected, MAX_TRANSCRIPT_BYTES, ModelRequest, Prices, Provider, ProviderError,
    StreamEvent,
};

/// The window of a model that has none.
const CONTEXT_WINDOW: u64 = 200_000;

/// How many results of a turn a difference shows.
const SHOWN: usize = 20;

/// The provider that reads a transcript.
#[derive(Debug)]
pub struct Replay {
    transcript: Transcript,
    next: AtomicUsize,
}

impl Replay {
    /// Reads a transcript from a file.
    pub fn open(path: &Path) -> Result<Self, TranscriptError> {
        Self::parse(&Self::read(path)?)
    }

    /// The text of a transcript's file.
    pub fn read(path: &Path) -> Result<String, TranscriptError> {
        let mut bytes = Vec::new();
        File::open(path)?.take(MAX_TRANSCRIPT_BYTES + 1).read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).map_or(true, |read| read > MAX_TRANSCRIPT_BYTES) {
            return Err(TranscriptError::TooLarge);
        }
        String::from_utf8(bytes).map_err(|_| TranscriptError::Encoding)
    }

    /// Reads a transcript from a text.
    pub fn parse(text: &str) -> Result<Self, TranscriptError> {
        Ok(Self { transcript: Transcript::parse(text)?, next: AtomicUsize::new(0) })
    }

    /// Goes on behind the first `turns` turns: a resumed task had those already.
    #[must_use]
    pub fn skip(self, turns: usize) -> Self {
        self.next.store(turns, Ordering::SeqCst);
        self
    }

    /// How many turns are left.
    pub fn remaining(&self) -> usize {
        self.transcript.turns.len().saturating_sub(self.next.load(Ordering::SeqCst))
    }

    fn take(&self) -> Result<(usize, &TranscriptTurn), ProviderError> {
        // Not counted beyond the end: asked again, the end is still the end.
        let turns = self.transcript.turns.len();
        let step = |next: usize| (next < turns).then_some(next.saturating_add(1));
        let ended = ProviderError::TranscriptEnded { turns };
        let number = self.next.fetch_update(Ordering::SeqCst, Ordering::SeqCst, step);
        let number = number.map_err(|_| ended.clone())?;
        Ok((number, self.transcript.turns.get(number).ok_or(ended)?))
    }
}

impl Provider for Replay {
    fn name(&self) -> &str {
        "replay"
    }

    fn model(&self) -> &str {
        "transcript"
    }

    fn prices(&self) -> Option<Prices> {
        None
    }

    fn context_window(&self) -> u64 {
        CONTEXT_WINDOW
    }

    fn can_summarise(&self) -> bool {
        false
    }

    fn turn(
        &self,
        request: &ModelRequest,
        sink: &mut dyn FnMut(StreamEvent) -> ControlFlow<()>,
    ) -> Result<(), ProviderError> {
        let (number, turn) = self.take()?;
        check(number, &turn.expect, request.last_results())?;
        for event in turn.events(&format!("call_{number}_")) {
            if sink(event).is_break() {
                return Err(ProviderError::Cancelled);
            }
        }
        Ok(())
    }
}

/// Holds what is expected against what was answered.
fn check(number: usize, expect: &[Expected], results: &[CallResult]) -> Result<(), ProviderError> {
    let mut left = results.iter();
    let missing = expect.iter().find(|expected| !left.any(|result| expected.is_met_by(result)));
    let Some(missing) = missing else { return Ok(()) };
    let expected: Vec<_> = expect.iter().take(SHOWN).map(Expected::to_string).collect();
    let mut found: Vec<_> = results.iter().take(SHOWN).map(shown).collect();
    if results.len() > SHOWN {
        found.push(format!("and {} more", results.len() - SHOWN));
    }
    if found.is_empty() {
        found.push("no calls".to_owned());
    }
    Err(ProviderError::Expectation(format!(
        "turn {} of the transcript expects {}, but {missing} did not happen: the turn before had {}",
        number.saturating_add(1),
        expected.join(", "),
        found.join(", "),
    )))
}

fn shown(result: &CallResult) -> String {
    format!("`{}` {}", Excerpt::new(&result.tool, 100), result.outcome.name())
}
