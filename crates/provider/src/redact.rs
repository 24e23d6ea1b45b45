//! Takes secrets out of what a provider says, also where one is spread over several pieces.
//!
//! A server that echoes the key does so in a message of an error, or has the model repeat a header. What is held
//! back is only an end of the text that could be the beginning of a secret, until the next piece shows whether it
//! is.
//!
//! **Invariant.** In no run of text, of thoughts or of one call's arguments does a secret come out whole, however
//! it was cut; and what comes out is what went in, in its order, but for the secrets.

use std::collections::BTreeMap;
use std::mem;

use fluffy_base::{MASK, Secret};
use zeroize::Zeroizing;

use crate::{HostAnswer, ProviderError, StreamEvent};

/// Shorter ones are words like `none` or `ollama`, given where a server wants some key: to mask them would spoil
/// what the model writes and hide nothing.
const SHORTEST: usize = 8;

/// From here on a value of an ordinary header may be a key by its looks.
const SHORTEST_ODD: usize = 16;

/// Parts of names of headers that carry secrets.
const SECRET_NAMES: [&str; 7] =
    ["auth", "cookie", "credential", "key", "password", "secret", "token"];

/// Masks the secrets of one endpoint.
#[derive(Default)]
pub(crate) struct Redactor {
    secrets: Vec<Zeroizing<String>>,
    text: Held,
    thoughts: Held,
    arguments: BTreeMap<u32, Held>,
}

/// The end of a text that could begin a secret.
#[derive(Default)]
struct Held(String);

impl Redactor {
    /// Masks what these headers hold.
    pub(crate) fn of(headers: &[(String, Secret)]) -> Self {
        let mut secrets = Vec::new();
        for (name, value) in headers {
            // The key alone, without the `Bearer` before it.
            let words = value.expose().split_whitespace();
            let secret = words.filter(|word| is_secret(name, word));
            secrets.extend(secret.map(|word| Zeroizing::new(word.to_owned())));
        }
        // Where one holds another, the longer is looked for first.
        secrets.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        secrets.dedup();
        Self { secrets, ..Self::default() }
    }

    /// The text without the secrets.
    pub(crate) fn masked(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((at, length)) = self.first(rest) {
            out.push_str(rest.get(..at).unwrap_or_default());
            out.push_str(MASK);
            rest = rest.get(at + length..).unwrap_or_default();
        }
        out.push_str(rest);
        out
    }

    /// An answer without the secrets, for answers that are no pieces of a turn.
    pub(crate) fn answer(&self, answer: HostAnswer) -> HostAnswer {
        if self.secrets.is_empty() {
            return answer;
        }
        match answer {
            HostAnswer::Failed(error) => HostAnswer::Failed(self.error(error)),
            HostAnswer::Models(mut models) => {
                for model in &mut models {
                    model.id = self.masked(&model.id);
                    model.title = model.title.take().map(|title| self.masked(&title));
                }
                HostAnswer::Models(models)
            }
            other @ (HostAnswer::Piece(_)
            | HostAnswer::Done
            | HostAnswer::Counted(_)
            | HostAnswer::Embedded(_)) => other,
        }
    }

    /// The pieces that may go out once this one has come.
    pub(crate) fn take(&mut self, piece: StreamEvent, out: &mut Vec<StreamEvent>) {
        if self.secrets.is_empty() {
            out.push(piece);
            return;
        }
        match piece {
            StreamEvent::Text(text) => {
                if !text.is_empty() {
                    self.end_thoughts(out);
                }
                let held = mem::take(&mut self.text).0 + &text;
                let (shown, held) = self.cut(&held);
                self.text = Held(held);
                push(out, shown, StreamEvent::Text);
            }
            StreamEvent::Reasoning(text) => {
                if !text.is_empty() {
                    self.end_text(out);
                }
                let held = mem::take(&mut self.thoughts).0 + &text;
                let (shown, held) = self.cut(&held);
                self.thoughts = Held(held);
                push(out, shown, StreamEvent::Reasoning);
            }
            StreamEvent::CallArguments { index, fragment } => {
                let held = self.arguments.remove(&index).unwrap_or_default().0 + &fragment;
                let (fragment, held) = self.cut(&held);
                self.arguments.insert(index, Held(held));
                push(out, fragment, |fragment| StreamEvent::CallArguments { index, fragment });
            }
            StreamEvent::CallStarted { index, id, name } => {
                self.end_runs(out);
                let (id, name) = (self.masked(&id), self.masked(&name));
                out.push(StreamEvent::CallStarted { index, id, name });
            }
            StreamEvent::ReasoningBlock { origin, data } => {
                self.end_runs(out);
                let data = self.masked(&data);
                out.push(StreamEvent::ReasoningBlock { origin, data });
            }
            StreamEvent::Stop(reason) => {
                self.end(out);
                out.push(StreamEvent::Stop(reason));
            }
            other @ (StreamEvent::Usage(_) | StreamEvent::Waiting) => out.push(other),
        }
    }

    /// Nothing more comes: what was held back is let go.
    pub(crate) fn end(&mut self, out: &mut Vec<StreamEvent>) {
        self.end_runs(out);
        for (index, held) in mem::take(&mut self.arguments) {
            let rest = self.released(held);
            push(out, rest, |fragment| StreamEvent::CallArguments { index, fragment });
        }
    }

    /// What is shown of an end that was held back and is not continued. The larger part of a secret is not: a
    /// stream that breaks off in the middle of one would else give most of it away.
    fn released(&self, held: Held) -> String {
        let most = |secret: &Zeroizing<String>| {
            secret.starts_with(&held.0) && held.0.len() >= SHORTEST.max(secret.len() / 2)
        };
        if self.secrets.iter().any(most) { MASK.to_owned() } else { held.0 }
    }

    fn end_runs(&mut self, out: &mut Vec<StreamEvent>) {
        self.end_text(out);
        self.end_thoughts(out);
    }

    fn end_text(&mut self, out: &mut Vec<StreamEvent>) {
        let held = mem::take(&mut self.text);
        push(out, self.released(held), StreamEvent::Text);
    }

    fn end_thoughts(&mut self, out: &mut Vec<StreamEvent>) {
        let held = mem::take(&mut self.thoughts);
        push(out, self.released(held), StreamEvent::Reasoning);
    }

    /// What of a text may be shown, and what has to wait.
    fn cut(&self, text: &str) -> (String, String) {
        let masked = self.masked(text);
        let could_begin = |at: usize| {
            let end = masked.get(at..).unwrap_or_default();
            self.secrets.iter().any(|secret| secret.starts_with(end))
        };
        let longest = self.secrets.first().map_or(0, |secret| secret.len());
        let mut ends = masked.char_indices().map(|(at, _)| at);
        let from = masked.len().saturating_sub(longest);
        let held = ends.find(|at| *at >= from && could_begin(*at)).unwrap_or(masked.len());
        let (shown, held) = masked.split_at(held);
        (shown.to_owned(), held.to_owned())
    }

    /// Where the first secret stands, and how long it is.
    fn first(&self, text: &str) -> Option<(usize, usize)> {
        let found = self
            .secrets
            .iter()
            .filter_map(|secret| Some((text.find(secret.as_str())?, secret.len())));
        found.min_by(|one, other| one.0.cmp(&other.0).then(other.1.cmp(&one.1)))
    }

    fn error(&self, error: ProviderError) -> ProviderError {
        use ProviderError as E;
        let clean = |text: String| self.masked(&text);
        match error {
            E::BadKey(text) => E::BadKey(clean(text)),
            E::NoSuchModel(text) => E::NoSuchModel(clean(text)),
            E::RateLimited { message, retry_after_ms } => {
                E::RateLimited { message: clean(message), retry_after_ms }
            }
            E::QuotaExhausted(text) => E::QuotaExhausted(clean(text)),
            E::ContextTooLong(text) => E::ContextTooLong(clean(text)),
            E::Overloaded { message, retry_after_ms } => {
                E::Overloaded { message: clean(message), retry_after_ms }
            }
            E::Network(text) => E::Network(clean(text)),
            E::Blocked(text) => E::Blocked(clean(text)),
            E::Untrusted(text) => E::Untrusted(clean(text)),
            E::Filtered(text) => E::Filtered(clean(text)),
            E::Refused(text) => E::Refused(clean(text)),
            E::Malformed(text) => E::Malformed(clean(text)),
            E::Guest(text) => E::Guest(clean(text)),
            E::Expectation(text) => E::Expectation(clean(text)),
            other @ (E::TimedOut { .. } | E::TranscriptEnded { .. } | E::Cancelled) => other,
        }
    }
}

fn push(out: &mut Vec<StreamEvent>, text: String, piece: impl FnOnce(String) -> StreamEvent) {
    if !text.is_empty() {
        out.push(piece(text));
    }
}

/// Whether a word of a header's value is a secret. Every value of a header that is named like one is; of others
/// (an address to refer to, the name of a team) only what looks like a key: to mask ordinary words would spoil what
/// the model writes.
fn is_secret(name: &str, word: &str) -> bool {
    let name = name.to_ascii_lowercase();
    if SECRET_NAMES.iter().any(|part| name.contains(part)) {
        return word.len() >= SHORTEST;
    }
    let has = |is: fn(&u8) -> bool| word.bytes().any(|byte| is(&byte));
    word.len() >= SHORTEST_ODD
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
        && !word.contains('/')
}

#[cfg(test)]
mod tests;
