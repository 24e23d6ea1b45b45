//! What is wanted of something that came before.

use super::words::{after, strip_end};
use crate::intent::{Change, Intent, Reference};

/// Words for the newest.
const NEWEST: [&str; 14] = [
    "that",
    "it",
    "this",
    "them",
    "last",
    "the last",
    "the last one",
    "the result",
    "the results",
    "the last result",
    "that one",
    "the answer",
    "the best",
    "the first one",
];
/// Words for the same once more.
const AGAIN: [&str; 12] = [
    "again",
    "do it again",
    "do that again",
    "once more",
    "repeat",
    "repeat that",
    "repeat it",
    "run it again",
    "run that again",
    "one more time",
    "try again",
    "same again",
];
/// Verbs that turn a text into another one.
const CHANGES: [&str; 12] = [
    "translate ",
    "rewrite ",
    "rephrase ",
    "explain ",
    "simplify ",
    "expand on ",
    "format ",
    "paraphrase ",
    "condense ",
    "proofread ",
    "turn ",
    "convert ",
];

/// The intent, if the message is one about something earlier and about nothing else.
pub(super) fn parse(text: &str) -> Option<Intent> {
    let text = text.trim().trim_end_matches('?').trim_end();
    let lower = text.to_ascii_lowercase();
    again(&lower)
        .or_else(|| summary(&lower))
        .or_else(|| size(&lower).map(|change| changed(Reference::Last, change)))
        .or_else(|| sized(&lower))
        .or_else(|| other(text))
        .or_else(|| bare(&lower))
}

fn changed(of: Reference, change: Change) -> Intent {
    Intent::Transform { of, change }
}

/// What a few words refer to, if they refer to something and say nothing else.
pub(super) fn referent(words: &str) -> Option<Reference> {
    let words = words.trim().to_ascii_lowercase();
    if NEWEST.contains(&words.as_str()) {
        return Some(Reference::Last);
    }
    Reference::parse(&words)
}

/// `again`, `do it again but shorter`, `repeat last_search`, `run exec:ab12 again`.
fn again(text: &str) -> Option<Intent> {
    if AGAIN.contains(&text) {
        return Some(changed(Reference::Last, Change::Again));
    }
    for seam in [" but ", ", but ", ", ", " and make it ", " only "] {
        if let Some((head, tail)) = text.split_once(seam)
            && AGAIN.contains(&head)
        {
            let change = size(tail).unwrap_or_else(|| Change::Other(tail.to_owned()));
            return Some(changed(Reference::Last, change));
        }
    }
    let named = after(text, &["repeat ", "redo "])
        .or_else(|| after(text, &["run ", "do "]).and_then(|rest| strip_end(rest, " again")));
    let named = named.or_else(|| after(text, &["again "]));
    referent(named?).map(|of| changed(of, Change::Again))
}

/// `summarize that`, `tl;dr of last_search`, `give me a summary of it`.
fn summary(text: &str) -> Option<Intent> {
    if matches!(text, "summarize" | "summarise" | "tldr" | "tl;dr" | "sum up") {
        return Some(changed(Reference::Last, Change::Summarise));
    }
    let beginnings = [
        "summarize ",
        "summarise ",
        "sum up ",
        "give me a summary of ",
        "a summary of ",
        "summary of ",
        "tldr of ",
        "tl;dr of ",
        "tl;dr ",
        "tldr ",
    ];
    let rest = after(text, &beginnings)?;
    let rest = strip_end(rest, " up").unwrap_or(rest);
    referent(rest).map(|of| changed(of, Change::Summarise))
}

/// `shorter`, `make it shorter`, `a bit longer`.
fn size(text: &str) -> Option<Change> {
    let text = after(text, &["make it ", "make that ", "say it ", "make this "]).unwrap_or(text);
    let text = after(text, &["a bit ", "a little ", "much ", "even ", "in "]).unwrap_or(text);
    match text {
        "shorter" | "briefer" | "more briefly" | "shorten" | "shorten it" | "shorten that"
        | "short" | "less long" | "fewer words" => Some(Change::Shorter),
        "longer" | "more detailed" | "more detail" | "in more detail" | "with more detail"
        | "more words" => Some(Change::Longer),
        _ => None,
    }
}

/// `make last_search shorter`.
fn sized(text: &str) -> Option<Intent> {
    let rest = after(text, &["make "])?;
    let (of, how) = rest.split_once(' ')?;
    let of = Reference::parse(of)?;
    size(how).map(|change| changed(of, change))
}

/// `translate that to German`, `rewrite last_talk as a poem`.
fn other(text: &str) -> Option<Intent> {
    let rest = after(text, &CHANGES)?;
    let mut ends = rest.match_indices(' ').map(|(at, _)| at).chain([rest.len()]);
    let of = ends.find_map(|end| referent(rest.get(..end)?))?;
    Some(changed(of, Change::Other(text.to_owned())))
}

/// A reference and nothing else: it is said once more, or explained.
fn bare(text: &str) -> Option<Intent> {
    let of = Reference::parse(text).filter(|of| *of != Reference::Last)?;
    Some(changed(of, Change::Again))
}
