//! Entries that were read from the database, judged together.
//!
//! A row is overwritten by the next one, so what is hashed of it is copied; the copies of a few dozen
//! rows are hashed side by side, in half the time.
//!
//! **Invariant.** What is found, where, and in which order is the same as for one entry after another.

use std::ops::Range;

use fluffy_base::Digest;
use rusqlite::Row;

use crate::Problem;
use crate::store::{self, Link, RowError};
use crate::verify::kept_problem;

/// More bytes than this are judged before the tile is complete.
const FULL: usize = 256 << 10;

/// Entries that were read and are still to be judged.
#[derive(Default)]
pub(crate) struct Batch {
    entries: Vec<Read>,
    /// What they are hashed from: details, inputs and texts, one after another.
    bytes: Vec<u8>,
}

/// One entry that was read.
struct Read {
    link: Link,
    /// `None` where the row could not be read.
    pieces: Option<Pieces>,
    /// Why it, or its input, could not be read.
    unreadable: Option<Problem>,
}

/// Where the parts of an entry are among the bytes.
struct Pieces {
    detail: Range<usize>,
    input: Option<Range<usize>>,
    /// The text under the entry's hash; `None` where the hash before it is not known.
    text: Option<Range<usize>>,
    /// Where in it the hash of the detail belongs.
    evidence: usize,
}

impl Batch {
    /// Takes what has to be judged out of a row, which the next one will overwrite.
    pub(crate) fn take(
        &mut self,
        link: Link,
        row: &Row<'_>,
        prev: Option<Digest>,
    ) -> Result<(), RowError> {
        let problem = |error: RowError| match error {
            RowError::Kind(_) => Ok(Problem::Database(error.to_string())),
            error @ RowError::Database(_) => Err(error),
        };
        let entry = match link.rest_of(row) {
            Ok(entry) => entry,
            Err(error) => {
                let unreadable = Some(problem(error)?);
                self.entries.push(Read { link, pieces: None, unreadable });
                return Ok(());
            }
        };
        let (input, unreadable) = match store::input_column(row) {
            Ok(input) => (input, None),
            Err(error) => (None, Some(problem(error)?)),
        };
        let detail = self.keep(entry.detail);
        let input = input.map(|input| self.keep(input));
        let start = self.bytes.len();
        let place = prev.map(|prev| entry.columns.encode_ahead(&prev, &mut self.bytes));
        let text = place.map(|_| start..self.bytes.len());
        let pieces = Pieces { detail, input, text, evidence: place.unwrap_or(start) };
        self.entries.push(Read { link, pieces: Some(pieces), unreadable });
        Ok(())
    }

    /// Whether it is better not to read more before these are judged.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() > FULL
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    fn at(&self, range: &Range<usize>) -> &[u8] {
        self.bytes.get(range.clone()).unwrap_or_default()
    }

    /// The hashes of some pieces of all entries, in order.
    fn hashes<'a>(
        &'a self,
        pieces: impl Fn(&'a Pieces) -> Option<&'a Range<usize>>,
    ) -> std::vec::IntoIter<Digest> {
        let all = self.entries.iter().filter_map(|read| pieces(read.pieces.as_ref()?));
        Digest::of_each(&all.map(|range| self.at(range)).collect::<Vec<_>>()).into_iter()
    }

    /// Everything that is wrong with the entries, in order; forgets them, and gives their hashes.
    pub(crate) fn judge(&mut self, mut find: impl FnMut(u64, Problem)) -> Vec<Digest> {
        let mut details = self.hashes(|pieces| Some(&pieces.detail));
        for read in &self.entries {
            let Some(pieces) = &read.pieces else { continue };
            let (Some(detail), Some(_)) = (details.next(), &pieces.text) else { continue };
            let place = pieces.evidence..pieces.evidence + 64;
            if let Some(place) = self.bytes.get_mut(place) {
                place.copy_from_slice(&detail.hex());
            }
        }
        let mut inputs = self.hashes(|pieces| pieces.input.as_ref());
        let mut texts = self.hashes(|pieces| pieces.text.as_ref());
        for Read { link, pieces, unreadable } in &self.entries {
            let Some(pieces) = pieces else {
                unreadable.iter().for_each(|problem| find(link.seq, problem.clone()));
                continue;
            };
            let stored = link.entry_hash;
            let computed = pieces.text.as_ref().and_then(|_| texts.next());
            if let Some(computed) = computed.filter(|computed| *computed != stored) {
                find(link.seq, Problem::EntryHash { stored, computed });
            }
            let kept = pieces.input.as_ref().and_then(|_| inputs.next());
            let problem = match unreadable {
                Some(problem) => Some(problem.clone()),
                None => kept_problem(self.at(&pieces.detail), kept),
            };
            problem.into_iter().for_each(|problem| find(link.seq, problem));
        }
        let hashes = self.entries.drain(..).map(|read| read.link.entry_hash).collect();
        self.bytes.clear();
        self.bytes.shrink_to(2 * FULL);
        hashes
    }
}
