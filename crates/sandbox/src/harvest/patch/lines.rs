//! The lines of a patch, and a file that is rebuilt by them.

use fluffy_base::ProjectPath;

use super::PatchError;

/// What is left of a patch. Every line ends with a line feed.
pub(super) struct Lines<'a> {
    rest: &'a [u8],
    /// The number of the line that was read last.
    pub(super) number: usize,
}

/// A file between its old and its new state. Goes through the old text once and keeps no list of lines,
/// since a file may have millions of empty ones.
pub(super) struct Rebuilt<'a> {
    path: &'a ProjectPath,
    base: &'a [u8],
    /// Lines of the old text that were passed.
    passed: u64,
    out: Vec<u8>,
    /// Lines of the new text that were written.
    written: u64,
    hunks: usize,
}

/// Which lines a hunk is about.
struct Span {
    start: u64,
    count: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn of(patch: &'a [u8]) -> Result<Self, PatchError> {
        if patch.is_empty() || patch.ends_with(b"\n") {
            return Ok(Self { rest: patch, number: 0 });
        }
        let line = patch.iter().filter(|byte| **byte == b'\n').count() + 1;
        Err(PatchError::Syntax { line, what: "the patch ends in the middle of a line" })
    }

    /// The next line without its end; nothing at the end of the patch.
    pub(super) fn peek(&self) -> Option<&'a [u8]> {
        first_line(self.rest).map(|(line, _)| line.strip_suffix(b"\n").unwrap_or(line))
    }

    pub(super) fn advance(&mut self) {
        if let Some((_, rest)) = first_line(self.rest) {
            self.rest = rest;
            self.number += 1;
        }
    }

    /// The next line with its end, or without if the line after it says that there is none.
    fn text(&mut self) -> Option<&'a [u8]> {
        let (line, rest) = first_line(self.rest)?;
        self.rest = rest;
        self.number += 1;
        if self.peek().is_some_and(|next| next.starts_with(b"\\ ")) {
            self.advance();
            return Some(line.strip_suffix(b"\n").unwrap_or(line));
        }
        Some(line)
    }

    pub(super) fn error(&self, what: &'static str) -> PatchError {
        PatchError::Syntax { line: self.number, what }
    }
}

impl<'a> Rebuilt<'a> {
    pub(super) fn of(path: &'a ProjectPath, base: &'a [u8]) -> Self {
        Self { path, base, passed: 0, out: Vec::new(), written: 0, hunks: 0 }
    }

    /// Applies the hunk that comes next in the patch.
    pub(super) fn hunk(&mut self, lines: &mut Lines<'_>) -> Result<(), PatchError> {
        let (old, new) = read_spans(lines)?;
        self.hunks += 1;
        let start = old.first().ok_or_else(|| lines.error("the hunk starts before line 1"))?;
        if start < self.passed {
            return Err(lines.error("the hunk lies before the end of the one above it"));
        }
        while self.passed < start {
            let line = self.pass()?;
            self.write(line, lines)?;
        }
        if new.first() != Some(self.written) {
            return Err(lines.error("the hunk's new line number does not follow from the old one"));
        }
        self.body(old.count, new.count, lines)
    }

    fn body(&mut self, old: u64, new: u64, lines: &mut Lines<'_>) -> Result<(), PatchError> {
        let (mut old, mut new) = (old, new);
        let mut changes = false;
        while old > 0 || new > 0 {
            let line = lines.text().ok_or_else(|| lines.error("the hunk is cut off"))?;
            let (sign, text) = match line.split_first() {
                // Some tools leave out the space in front of an empty line.
                Some((b'\n', _)) => (b' ', line),
                Some((sign, text)) => (*sign, text),
                None => return Err(lines.error("the hunk is cut off")),
            };
            if text.is_empty() {
                return Err(lines.error("a line without text and without end is no line"));
            }
            let (takes, gives) = match sign {
                b' ' => (1, 1),
                b'-' => (1, 0),
                b'+' => (0, 1),
                _ => return Err(lines.error("a line in a hunk starts with ` `, `+` or `-`")),
            };
            let miscounted = || lines.error("the hunk has other lines than its head says");
            old = old.checked_sub(takes).ok_or_else(miscounted)?;
            new = new.checked_sub(gives).ok_or_else(miscounted)?;
            changes |= takes != gives;
            if takes > 0 && self.pass()? != text {
                self.passed -= 1;
                return Err(self.mismatch());
            }
            if gives > 0 {
                self.write(text, lines)?;
            }
        }
        if changes { Ok(()) } else { Err(lines.error("the hunk changes nothing")) }
    }

    /// The new text, once no more hunks follow.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, PatchError> {
        if !self.base.is_empty() && !self.is_at_line() {
            return Err(self.mismatch());
        }
        self.out.extend_from_slice(self.base);
        Ok(self.out)
    }

    /// The next line of the old text.
    fn pass(&mut self) -> Result<&'a [u8], PatchError> {
        let (line, rest) = first_line(self.base).ok_or_else(|| self.mismatch())?;
        self.base = rest;
        self.passed += 1;
        Ok(line)
    }

    fn write(&mut self, line: &[u8], lines: &Lines<'_>) -> Result<(), PatchError> {
        if !self.is_at_line() {
            return Err(lines.error("text follows a line without end"));
        }
        self.out.extend_from_slice(line);
        self.written += 1;
        Ok(())
    }

    /// Whether the new text could go on with another line.
    fn is_at_line(&self) -> bool {
        self.out.last().is_none_or(|byte| *byte == b'\n')
    }

    fn mismatch(&self) -> PatchError {
        PatchError::Mismatch { path: self.path.clone(), hunk: self.hunks, line: self.passed + 1 }
    }
}

impl Span {
    /// How many lines stand before it. A span of no lines names the line after which it stands.
    fn first(&self) -> Option<u64> {
        if self.count == 0 { Some(self.start) } else { self.start.checked_sub(1) }
    }
}

/// `@@ -1,3 +1,4 @@`, and whatever the tool says about where that is.
fn read_spans(lines: &mut Lines<'_>) -> Result<(Span, Span), PatchError> {
    let head = lines.peek().unwrap_or_default();
    lines.advance();
    let spans = || {
        let (old, rest) = read_span(head.strip_prefix(b"@@ -")?)?;
        let (new, rest) = read_span(rest.strip_prefix(b" +")?)?;
        let rest = rest.strip_prefix(b" @@")?;
        matches!(rest.first(), None | Some(b' ')).then_some((old, new))
    };
    spans().ok_or_else(|| lines.error("a hunk starts with `@@ -line,count +line,count @@`"))
}

fn read_span(text: &[u8]) -> Option<(Span, &[u8])> {
    let (start, rest) = read_number(text)?;
    match rest.strip_prefix(b",") {
        Some(rest) => {
            let (count, rest) = read_number(rest)?;
            Some((Span { start, count }, rest))
        }
        None => Some((Span { start, count: 1 }, rest)),
    }
}

fn read_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((str::from_utf8(digits).ok()?.parse().ok()?, rest))
}

/// A line with its end, and what follows it.
fn first_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if text.is_empty() {
        return None;
    }
    let end = text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |at| at + 1);
    text.split_at_checked(end)
}
