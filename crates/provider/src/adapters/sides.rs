//! A conversation for vendors that want its two sides to take turns.
//!
//! **Invariant.** No side follows its own kind, and every call of the model is answered on the side behind it:
//! once, and in the order of the calls.

use std::mem;

use crate::adapters::wire::is_blank;
use crate::{Call, CallResult, Message, ReasoningBlock};

/// What one side says before the other speaks again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Side<'a> {
    /// The person, or the loop in their name.
    Person {
        /// What came of the calls of the side before, all of them.
        results: Vec<Answered<'a>>,
        /// What is said beside that.
        texts: Vec<&'a str>,
    },
    /// The model, in the order in which it spoke.
    Model(Vec<Piece<'a>>),
}

/// A call and what came of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answered<'a> {
    pub(crate) call: &'a Call,
    result: Option<&'a CallResult>,
}

/// A piece of what a model said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Words; never none.
    Text(&'a str),
    /// A call.
    Call(&'a Call),
    /// A block of its reasoning.
    Block(&'a str),
}

impl Answered<'_> {
    /// What the model reads.
    pub(crate) fn content(&self) -> &str {
        self.result.map_or("there is no result of this call", |result| result.content.as_str())
    }

    /// Whether it is told that something went wrong.
    pub(crate) fn is_error(&self) -> bool {
        self.result.is_none_or(|result| result.outcome.is_error())
    }
}

/// The sides of a conversation; of the reasoning only the blocks that came from `origin`. What nobody said, and
/// results of what nobody called, is left out.
pub(crate) fn sides<'a>(messages: &'a [Message], origin: &str) -> Vec<Side<'a>> {
    let mut sides = Vec::new();
    let mut open: Vec<&Call> = Vec::new();
    for message in messages {
        match message {
            Message::User { text } if is_blank(text) => {}
            Message::User { text } => person(&mut sides, Vec::new(), Some(text)),
            Message::Results { results } => answer(&mut sides, mem::take(&mut open), results),
            Message::Assistant { text, calls, reasoning } => {
                let said = pieces(text, calls, reasoning, origin);
                if said.iter().all(|piece| matches!(piece, Piece::Text(text) if is_blank(text))) {
                    continue;
                }
                answer(&mut sides, mem::take(&mut open), &[]);
                match sides.last_mut() {
                    Some(Side::Model(pieces)) => pieces.extend(said),
                    _ => sides.push(Side::Model(said)),
                }
                open.extend(calls);
            }
        }
    }
    answer(&mut sides, open, &[]);
    sides
}

fn person<'a>(sides: &mut Vec<Side<'a>>, more: Vec<Answered<'a>>, words: Option<&'a str>) {
    if let Some(Side::Person { results, texts }) = sides.last_mut() {
        results.extend(more);
        texts.extend(words);
    } else {
        sides.push(Side::Person { results: more, texts: words.into_iter().collect() });
    }
}

/// Answers these calls, each with the first result of its id that no call before it had.
fn answer<'a>(sides: &mut Vec<Side<'a>>, calls: Vec<&'a Call>, results: &'a [CallResult]) {
    if calls.is_empty() {
        return;
    }
    let mut results: Vec<_> = results.iter().map(Some).collect();
    let answered = calls.into_iter().map(|call| {
        let its = |result: &&mut Option<&CallResult>| {
            result.is_some_and(|result| result.call_id == call.id)
        };
        let result = results.iter_mut().find(its).and_then(Option::take);
        Answered { call, result }
    });
    person(sides, answered.collect(), None);
}

/// A turn in its order: each block in its place, and between blocks the words before the calls.
fn pieces<'a>(
    mut text: &'a str,
    mut calls: &'a [Call],
    reasoning: &'a [ReasoningBlock],
    origin: &str,
) -> Vec<Piece<'a>> {
    let mut pieces = Vec::new();
    let whole = (text.len(), calls.len());
    for block in reasoning.iter().filter(|block| block.origin == origin) {
        let said = whole.0 - text.len();
        let length = text.floor_char_boundary(block.place.text.saturating_sub(said));
        let (before, behind) = text.split_at(length);
        let called = whole.1 - calls.len();
        let count = block.place.calls.saturating_sub(called).min(calls.len());
        let (made, to_make) = calls.split_at(count);
        add(&mut pieces, before, made);
        pieces.push(Piece::Block(&block.data));
        (text, calls) = (behind, to_make);
    }
    add(&mut pieces, text, calls);
    pieces
}

fn add<'a>(pieces: &mut Vec<Piece<'a>>, text: &'a str, calls: &'a [Call]) {
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    pieces.extend(calls.iter().map(Piece::Call));
}
