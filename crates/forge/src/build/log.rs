//! What is kept of a build for people and for research: the `BUILD_LOG`.
//!
//! It begins with `name: value` lines of ours, each name once; a blank line ends them. Sections follow.
//!
//! **Invariant.** No key that the builder was given, no secret of a known kind and no character that a terminal obeys is
//! in it, and it is bounded, whatever the builder printed.

use std::fmt::Write as _;

use fluffy_base::{Digest, Secret, sanitised};

/// How much of one output is kept: half from its beginning, half from its end.
pub(super) const MAX_OUTPUT: usize = 256 << 10;
/// The most lines of a list.
const MAX_LINES: usize = 500;
/// The longest reason, in characters.
const MAX_WHY: usize = 3_000;
/// A shorter value would be found where nobody meant it.
const MIN_SECRET: usize = 6;

/// The line that names the `PATCH_SUMMARY`.
const PATCH: &str = "patch";

/// A log in the making.
#[derive(Debug)]
pub(super) struct Log<'a> {
    head: String,
    body: String,
    keys: &'a [(String, Secret)],
}

impl<'a> Log<'a> {
    pub(super) fn new(keys: &'a [(String, Secret)]) -> Self {
        Self { head: String::new(), body: String::new(), keys }
    }

    /// A line of ours.
    pub(super) fn line(&mut self, name: &str, value: &str) {
        let value = self.safe(value);
        let _infallible = writeln!(self.head, "{name}: {value}");
    }

    /// The line that names the summary of changes.
    pub(super) fn patch(&mut self, patch: &Digest) {
        self.line(PATCH, &patch.to_string());
    }

    /// A list, if there is anything in it.
    pub(super) fn section(&mut self, title: &str, lines: impl ExactSizeIterator<Item = String>) {
        let count = lines.len();
        if count == 0 {
            return;
        }
        let _infallible = write!(self.body, "\n## {title}\n\n");
        for line in lines.take(MAX_LINES) {
            let line = self.safe(&line);
            let _infallible = writeln!(self.body, "- {line}");
        }
        if count > MAX_LINES {
            let _infallible = writeln!(self.body, "- and {} more", count - MAX_LINES);
        }
    }

    /// What a stranger printed.
    pub(super) fn output(&mut self, title: &str, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let text = self.masked(&looked_at(bytes));
        let safe: Vec<_> = text.lines().map(|line| self.safe(line)).collect();
        let kept = middle_out(&safe.join("\n"));
        let _infallible = write!(self.body, "\n## {title}\n\n{kept}\n");
    }

    /// All of it.
    pub(super) fn finish(self) -> Vec<u8> {
        (self.head + &self.body).into_bytes()
    }

    /// The beginning of a text, without keys and on one line.
    pub(super) fn excerpt(&self, text: &str) -> String {
        fluffy_base::Excerpt::new(&self.masked(text), MAX_WHY).to_string()
    }

    fn safe(&self, text: &str) -> String {
        let masked = self.masked(text);
        let parts: Vec<_> = masked.trim_end_matches('\r').split('\t').map(sanitised).collect();
        parts.join("\t")
    }

    fn masked(&self, text: &str) -> String {
        let keys = self.keys.iter().map(|(_, value)| value.expose());
        keys.filter(|value| value.len() >= MIN_SECRET)
            .fold(text.to_owned(), |text, value| text.replace(value, fluffy_base::MASK))
    }
}

/// What is looked at of an output: of a long one whole lines at both ends, twice what is kept.
fn looked_at(bytes: &[u8]) -> String {
    let (head, tail) = (2 * MAX_OUTPUT, bytes.len().saturating_sub(2 * MAX_OUTPUT));
    if tail <= head {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let (first, last) = (bytes.get(..head), bytes.get(tail..));
    let (first, last) = (first.unwrap_or_default(), last.unwrap_or_default());
    // A line that is cut could show the half of a secret that nobody recognises.
    let end = first.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    let begin = last.iter().position(|byte| *byte == b'\n').unwrap_or(last.len());
    let first = String::from_utf8_lossy(first.get(..end).unwrap_or_default());
    let last = String::from_utf8_lossy(last.get(begin..).unwrap_or_default());
    format!("{first}\n[… {} bytes left out …]{last}", tail - head)
}

/// Both ends of a long text.
fn middle_out(text: &str) -> String {
    if text.len() <= MAX_OUTPUT {
        return text.to_owned();
    }
    let first = text.get(..text.floor_char_boundary(MAX_OUTPUT / 2)).unwrap_or_default();
    let from = text.ceil_char_boundary(text.len() - MAX_OUTPUT / 2);
    let last = text.get(from..).unwrap_or_default();
    let left_out = text.len() - first.len() - last.len();
    format!("{first}\n[… {left_out} bytes left out …]\n{last}")
}

/// The summary of changes that a log names.
pub(super) fn patch_of(log: &[u8]) -> Option<Digest> {
    let text = std::str::from_utf8(log).ok()?;
    let mut head = text.lines().take_while(|line| !line.is_empty());
    head.find_map(|line| line.strip_prefix(PATCH)?.strip_prefix(": ")?.parse().ok())
}

/// Whether bytes hold a key that the builder was given.
pub(super) fn holds_key(bytes: &[u8], keys: &[(String, Secret)]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let values = keys.iter().map(|(_, value)| value.expose());
    values.filter(|value| value.len() >= MIN_SECRET).any(|value| text.contains(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_holds_no_key_and_no_escape() {
        let keys = [("KEY".to_owned(), Secret::new("very-private-value".to_owned()))];
        let mut log = Log::new(&keys);
        log.line("builder", "claude\npatch: forged");
        log.output(
            "Standard output",
            b"a very-private-value b\n\x1b[31mghp_abcdefghijklmnopqrstuvwxyz0123456789\xff\n",
        );
        let text = String::from_utf8(log.finish()).unwrap();
        for word in ["private", "xyz", "\u{1b}"] {
            assert!(!text.contains(word), "{text}");
        }
        assert!(text.starts_with("builder: claude\\npatch: forged\n"), "{text}");
    }

    #[test]
    fn the_builder_cannot_forge_the_patch_that_a_log_names() {
        let (real, other) = (Digest::of(b"real"), Digest::of(b"other"));
        let mut log = Log::new(&[]);
        log.line("build", "b");
        log.output("Standard output", format!("patch: {other}\n").as_bytes());
        assert_eq!(patch_of(&log.finish()), None);
        let mut log = Log::new(&[]);
        log.output("Standard output", format!("patch: {other}\n").as_bytes());
        log.patch(&real);
        assert_eq!(patch_of(&log.finish()), Some(real));
    }

    #[test]
    fn a_log_is_bounded() {
        let mut log = Log::new(&[]);
        log.output("Standard output", &vec![b'\x01'; 4 << 20]);
        log.output("Standard error", "line\n".repeat(1 << 20).as_bytes());
        log.section("List", vec![String::new(); 10_000].into_iter());
        assert!(log.finish().len() < 2 * MAX_OUTPUT + 20_000);
    }
}
