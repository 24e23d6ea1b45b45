//! Finds out what is wanted by the words alone.
//!
//! It is total: any text gives an intent, the same one every time. Where the words do not decide, it says so and calls it talk;
//! a model may then be asked.

mod code;
mod explicit;
mod notes;
mod refer;
mod words;

use crate::intent::{Change, Command, Given, Intent, Part, Reference};
use crate::present::missing;
use crate::skill::Known;

/// The longest message that is looked at word by word, in bytes; a longer one names a skill, or is talk or a task.
const LONGEST: usize = 16 << 10;

/// How many places are tried at which a message may be two.
const MOST_SEAMS: usize = 16;

/// What the words say.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// What is wanted.
    pub intent: Intent,
    /// Whether the words leave no doubt.
    pub sure: bool,
}

/// Parses a message. The days are yesterday, today and tomorrow.
pub fn parse(message: &str, known: &[Known], days: &[String; 3]) -> Parsed {
    let sure = |intent| Parsed { intent, sure: true };
    let message = message.trim();
    if fluffy_base::is_blank(message) {
        let question = "Say what you want: `/help` shows what I understand.".to_owned();
        return sure(Intent::Clarify { question });
    }
    if let Some(command) = command(message) {
        return sure(Intent::Meta(command));
    }
    let plain = words::plain(message);
    let named = explicit::parse(message, known).or_else(|| explicit::parse(&plain, known));
    let short = message.len() <= LONGEST;
    let natural = || {
        refer::parse(&plain)
            .or_else(|| chain(&plain, known, days))
            .or_else(|| notes::parse(&plain, known, days))
    };
    if let Some(intent) = named.or_else(|| short.then(natural).flatten()) {
        return sure(intent);
    }
    if code::is_task(&plain) {
        return sure(Intent::Code);
    }
    let sure = crate::present::small_talk(message).is_some();
    Parsed { intent: Intent::Talk, sure }
}

/// A command about the conversation: `/help`. A path is none.
fn command(message: &str) -> Option<Command> {
    let rest = message.strip_prefix('/')?;
    let mut parts = rest.split_whitespace();
    let name = parts.next()?;
    if !name.chars().all(|c| c.is_ascii_alphabetic() || c == '-') {
        return None;
    }
    Some(match (name.to_ascii_lowercase().as_str(), parts.next()) {
        ("help", _) => Command::Help,
        ("skills", _) => Command::Skills,
        ("verbose", Some("on")) => Command::Verbose(Some(true)),
        ("verbose", Some("off")) => Command::Verbose(Some(false)),
        ("verbose", _) => Command::Verbose(None),
        ("anchors" | "refs", _) => Command::Anchors,
        ("history", _) => Command::History,
        ("forget" | "clear", _) => Command::Forget,
        (other, _) => Command::Other(other.to_owned()),
    })
}

/// Two things in one message, the second about the first: `search notes for tea and summarize it`.
fn chain(text: &str, known: &[Known], days: &[String; 3]) -> Option<Intent> {
    let lower = text.to_ascii_lowercase();
    let seams = [" and then ", ", then ", " then ", ", and ", " and "];
    // The last seam that fits: what is searched for may have an `and` in it.
    let places = seams.iter().flat_map(|seam| lower.rmatch_indices(seam));
    places.take(MOST_SEAMS).find_map(|(at, seam)| {
        let (left, right) = (text.get(..at)?, text.get(at + seam.len()..)?);
        let first = explicit::parse(left, known).or_else(|| notes::parse(left, known, days))?;
        match (first, follow(right)?) {
            (Intent::Skills(mut steps), (name, input)) => {
                let Some(wanted) = notes::wanted(name, input, known) else {
                    return Some(Intent::Clarify { question: missing(name) });
                };
                steps.push(wanted);
                Some(Intent::Skills(steps))
            }
            // What the first would need is not there.
            (clarify @ Intent::Clarify { .. }, _) => Some(clarify),
            _other => None,
        }
    })
}

/// What is to be done with what the step before gives.
fn follow(text: &str) -> Option<(&'static str, Vec<(String, Given)>)> {
    match refer::parse(text) {
        Some(Intent::Transform { of: Reference::Last, change: Change::Summarise }) => {
            let input = vec![("note".to_owned(), Given::Of(Reference::Before, Part::Note))];
            Some((notes::SUMMARIZE_NOTE, input))
        }
        Some(_) => None,
        None => Some((notes::WRITE_NOTE, notes::saved(text, Some(&Reference::Before))?)),
    }
}
