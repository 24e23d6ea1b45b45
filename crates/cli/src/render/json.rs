//! Events for programs: one JSON object a line, each handed on at once.
//!
//! **Invariant.** A line is valid JSON and holds no character that a terminal obeys: whoever looks at the
//! stream with their own eyes is as safe as any other reader.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use fluffy_base::{Clock, EVENT_VERSION, Event, Observer};
use serde_json::{Map, Value};

/// Writes events as JSON lines.
pub(crate) struct JsonLines {
    clock: Arc<dyn Clock>,
    stream: Mutex<Stream>,
}

struct Stream {
    out: Box<dyn Write + Send>,
    seq: u64,
    failed: Option<io::Error>,
}

impl JsonLines {
    /// Lines that are written there.
    pub(crate) fn new(out: Box<dyn Write + Send>, clock: Arc<dyn Clock>) -> Self {
        Self { clock, stream: Mutex::new(Stream { out, seq: 0, failed: None }) }
    }

    /// Writes one more object in the form of an event: what a command answers with at its end.
    pub(crate) fn tell(&self, kind: &str, members: Map<String, Value>) {
        self.line(|seq, ts_ms| {
            let mut all = Map::new();
            all.insert("v".to_owned(), EVENT_VERSION.into());
            all.insert("seq".to_owned(), seq.into());
            all.insert("ts_ms".to_owned(), ts_ms.into());
            all.insert("type".to_owned(), kind.into());
            all.extend(members);
            Value::Object(all).to_string()
        });
    }

    fn line(&self, text: impl FnOnce(u64, u64) -> String) {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        if stream.failed.is_some() {
            return;
        }
        stream.seq += 1;
        let mut line = escaped(&text(stream.seq, self.clock.now_ms()));
        line.push('\n');
        let written = stream.out.write_all(line.as_bytes()).and_then(|()| stream.out.flush());
        stream.failed = written.err();
    }

    /// Why events were lost, if they were. The task goes on without a reader: what it does is recorded.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner).failed.take()
    }
}

impl Observer for JsonLines {
    fn notice(&self, event: Event) {
        self.line(|seq, ts_ms| event.line(seq, ts_ms));
    }
}

/// The same JSON, without characters that JSON allows and terminals or people are fooled by. They can
/// stand only in strings, where an escape means the same.
pub(crate) fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        match c {
            '\u{7f}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => {
                // Writing to a string does not fail.
                let _ok = write!(out, "\\u{:04x}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    out
}
