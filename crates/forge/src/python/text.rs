//! Bytes to text, exactly as Python reads them or not at all.

use ruff_text_size::TextSize;

/// The largest file.
const MAX_BYTES: usize = 256 * 1024;

/// Spellings of the one encoding that a file may name.
const UTF_8: [&str; 3] = ["utf-8", "utf8", "utf_8"];

/// Why bytes are not taken as text, and on which line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Odd {
    pub(super) line: Option<u32>,
    pub(super) why: &'static str,
}

/// The text of a file, without its byte order mark.
pub(super) fn decode(bytes: &[u8]) -> Result<&str, Odd> {
    if bytes.len() > MAX_BYTES {
        return Err(Odd { line: None, why: "it has more than 256 KiB" });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        Odd { line: Some(line_after(before)), why: "it is not UTF-8" }
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match odd(text) {
        None => Ok(text),
        Some(odd) => Err(odd),
    }
}

/// What in a text Python and its readers could take for different things.
pub(super) fn odd(text: &str) -> Option<Odd> {
    strange_character(text).or_else(|| other_encoding(text)).or_else(|| lone_continuation(text))
}

/// Control characters (a form feed moves indentation, a lone carriage return ends a line for some readers and not for
/// others) and characters that turn the direction of what people see.
fn strange_character(text: &str) -> Option<Odd> {
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let why = match c {
            '\t' | '\n' | ' '..='~' => continue,
            '\r' if characters.peek().is_some_and(|(_, next)| *next == '\n') => continue,
            '\r' => "it has a carriage return that ends no line",
            '\0' => "it has a NUL",
            '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => "it has a character that turns the direction of writing",
            '\u{feff}' => "it has a byte order mark inside",
            c if c.is_control() => "it has a control character",
            _ => continue,
        };
        let before = text.as_bytes().get(..at).unwrap_or_default();
        return Some(Odd { line: Some(line_after(before)), why });
    }
    None
}

/// A coding line (PEP 263) that names anything but UTF-8. Python looks at the second line only behind a comment; here both
/// count always.
fn other_encoding(text: &str) -> Option<Odd> {
    for (number, line) in (1..).zip(text.lines().take(2)) {
        let Some((_, comment)) = line.split_once('#') else { continue };
        let named = comment.match_indices("coding").filter_map(|(at, word)| {
            let rest = comment.get(at + word.len()..)?;
            let rest = rest.strip_prefix([':', '='])?.trim_start_matches([' ', '\t']);
            let end = rest.find(|c: char| !(c.is_alphanumeric() || "-_.".contains(c)));
            rest.get(..end.unwrap_or(rest.len())).filter(|name| !name.is_empty())
        });
        let mut named = named.map(str::to_ascii_lowercase);
        if named.any(|name| !UTF_8.contains(&name.as_str())) {
            return Some(Odd { line: Some(number), why: "it names an encoding other than UTF-8" });
        }
    }
    None
}

/// A line with nothing but a back slash: Python takes the next line's indentation from it, other readers do not.
fn lone_continuation(text: &str) -> Option<Odd> {
    let mut lines = (1..).zip(text.lines());
    let (line, _) = lines.find(|(_, line)| line.trim() == "\\")?;
    Some(Odd { line: Some(line), why: "it has a line that is continued before it begins" })
}

fn line_after(before: &[u8]) -> u32 {
    let ends = before.iter().filter(|byte| **byte == b'\n').count();
    u32::try_from(ends).unwrap_or(u32::MAX - 1) + 1
}

/// Where the lines of a text begin.
#[derive(Debug)]
pub(super) struct Lines {
    starts: Vec<u32>,
}

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let ends = (1_u32..).zip(text.bytes()).filter(|(_, byte)| *byte == b'\n');
        Self { starts: ends.map(|(after, _)| after).collect() }
    }

    /// The line of a place, from one.
    pub(super) fn line(&self, place: TextSize) -> u32 {
        let before = self.starts.partition_point(|start| *start <= place.to_u32());
        u32::try_from(before).unwrap_or(u32::MAX - 1) + 1
    }
}
