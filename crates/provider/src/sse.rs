//! Server-sent events: a stream of bytes, cut anywhere, becomes its events.
//!
//! After the living standard: lines end in LF, CRLF or CR, a line that begins with a colon is a comment, several
//! `data` lines are one text, an empty line ends an event, and what the end of the stream cuts off is no event. Some
//! servers leave out the last empty line: what is whole without it is taken, see [`SseDecoder::finish`].
//!
//! **Invariant.** How the stream is cut into pieces changes nothing, and an event never holds more than the limit.

use std::mem;

use memchr::memchr2;

use crate::ProviderError;
use crate::halves::Halves;

/// How long one event may be. Models write less in a whole turn.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// What kind it says it is; may be empty.
    pub kind: String,
    /// Its text.
    pub data: String,
}

/// Cuts a stream of bytes into events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseDecoder {
    line: Vec<u8>,
    /// A CR ended the last line: an LF directly behind belongs to it.
    after_cr: bool,
    begun: bool,
    event: SseEvent,
    has_data: bool,
    halves: Halves,
}

impl SseDecoder {
    /// Takes the next bytes and hands out the events that they complete.
    pub fn take(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), ProviderError> {
        let mut rest = bytes;
        while let Some((&first, behind)) = rest.split_first() {
            if mem::take(&mut self.after_cr) && first == b'\n' {
                rest = behind;
                continue;
            }
            let end = memchr2(b'\n', b'\r', rest);
            let (piece, behind) = rest.split_at(end.unwrap_or(rest.len()));
            if self.line.len() + piece.len() + self.event.data.len() > MAX_EVENT_BYTES {
                let said = format!("an event of more than {MAX_EVENT_BYTES} bytes");
                return Err(ProviderError::Malformed(said));
            }
            self.line.extend_from_slice(piece);
            let Some((&ending, behind)) = behind.split_first() else { break };
            self.after_cr = ending == b'\r';
            let line = mem::take(&mut self.line);
            events.extend(self.line(&line));
            rest = behind;
        }
        Ok(())
    }

    /// The stream is over: hands out the event that only lacks its last empty line. Whether it is whole is seen by
    /// its data, since the beginning of a JSON object is none.
    pub fn finish(&mut self) -> Option<SseEvent> {
        let line = mem::take(&mut self.line);
        if !line.is_empty() {
            self.line(&line);
        }
        let event = self.line(b"")?;
        let is_json = event.data.trim_start().starts_with(['{', '['])
            && serde_json::from_str::<serde::de::IgnoredAny>(&event.data).is_ok();
        (is_json || event.data == "[DONE]").then_some(event)
    }

    /// Whether the stream may end here: between two events.
    pub fn is_between_events(&self) -> bool {
        self.line.is_empty() && !self.has_data
    }

    fn line(&mut self, line: &[u8]) -> Option<SseEvent> {
        let line = if mem::replace(&mut self.begun, true) {
            line
        } else {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        };
        if line.is_empty() {
            let SseEvent { kind, data } = mem::take(&mut self.event);
            let is_event = mem::take(&mut self.has_data);
            return is_event.then(|| SseEvent { kind, data: self.halves.mended(data) });
        }
        let text = String::from_utf8_lossy(line);
        let (field, value) = text.split_once(':').unwrap_or((&text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.kind),
            "data" => {
                if mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            // Comments, ids, times to reconnect, and what a later standard may add.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests;
