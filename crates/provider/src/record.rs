//! Writes conversations down, in the form that [`Replay`](crate::Replay) reads.
//!
//! What a transcript keeps of a turn is what the loop acts on: text, calls, usage, and how it ended. Ids and
//! sealed reasoning belong to the provider they came from and stay out.

use std::io::{self, Write};

use fluffy_base::Json;
use serde_json::{Map, Value, json};

use crate::Turn;
use crate::transcript::{Expected, KIND, TranscriptTurn, VERSION};

/// Writes a transcript, a line a turn.
#[derive(Debug)]
pub struct Recorder<W> {
    out: W,
}

impl<W: Write> Recorder<W> {
    /// Begins a transcript.
    pub fn new(mut out: W) -> io::Result<Self> {
        writeln!(out, "{}", header())?;
        Ok(Self { out })
    }

    /// Writes a turn, with what the turn before is expected to have been answered with.
    pub fn record(&mut self, turn: &Turn, expect: &[Expected]) -> io::Result<()> {
        writeln!(self.out, "{}", to_line(turn, expect))
    }

    /// Hands back what was written to.
    pub fn into_inner(self) -> W {
        self.out
    }
}

/// The first line of a transcript, without its end.
pub fn header() -> String {
    json!({ "v": VERSION, "kind": KIND }).to_string()
}

/// A turn as a line of a transcript, without the line's end.
pub fn to_line(turn: &Turn, expect: &[Expected]) -> String {
    let turn = TranscriptTurn::of(turn, expect.to_vec());
    let line = line(&turn, Arguments::AsObjects);
    // A line nests arguments deeper than they were: those at the limit are written as a text.
    if Json::new(line.clone()).is_ok() { line } else { self::line(&turn, Arguments::AsText) }
        .to_string()
}

/// How arguments are written.
#[derive(Clone, Copy)]
enum Arguments {
    /// Objects where they are, texts where they are something else.
    AsObjects,
    /// Always as the text that the model wrote.
    AsText,
}

fn line(turn: &TranscriptTurn, form: Arguments) -> Value {
    let mut members = Map::new();
    members.insert("text".to_owned(), turn.text.as_str().into());
    if !turn.calls.is_empty() {
        let calls = turn.calls.iter().map(|(name, arguments)| {
            json!({ "name": name, "arguments": self::arguments(arguments, form) })
        });
        members.insert("tool_calls".to_owned(), calls.collect());
    }
    if let Some(usage) = turn.usage {
        members.insert("usage".to_owned(), json!(usage));
    }
    if turn.stop != TranscriptTurn::plain_stop(turn.calls.len()) {
        members.insert("stop".to_owned(), json!(turn.stop));
    }
    if !turn.expect.is_empty() {
        members.insert("expect".to_owned(), json!(turn.expect));
    }
    Value::Object(members)
}

fn arguments(text: &str, form: Arguments) -> Value {
    let parsed = match form {
        Arguments::AsObjects => Json::parse(text.as_bytes()).ok(),
        Arguments::AsText => None,
    };
    match parsed {
        Some(json) if json.as_object().is_some() => json.value().clone(),
        Some(_) | None => text.into(),
    }
}
