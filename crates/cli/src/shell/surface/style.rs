//! Styles, widths, and text broken into rows.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// How many columns a tab is worth.
const TAB: &str = "    ";

/// How a piece of text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Style {
    marks: u8,
    colour: Option<u8>,
}

impl Style {
    const BOLD: u8 = 1;
    const DIM: u8 = 2;
    const ITALIC: u8 = 4;
    const UNDERLINE: u8 = 8;
    const REVERSE: u8 = 16;
    const STRIKE: u8 = 32;
    /// Which code each mark is.
    const CODES: [(u8, &'static str); 6] = [
        (Self::BOLD, "1"),
        (Self::DIM, "2"),
        (Self::ITALIC, "3"),
        (Self::UNDERLINE, "4"),
        (Self::REVERSE, "7"),
        (Self::STRIKE, "9"),
    ];

    pub(crate) const PLAIN: Self = Self { marks: 0, colour: None };
    pub(crate) const STRONG: Self = Self { marks: Self::BOLD, colour: None };
    pub(crate) const QUIET: Self = Self { marks: Self::DIM, colour: None };
    pub(crate) const INVERTED: Self = Self { marks: Self::REVERSE, colour: None };
    pub(crate) const CODE: Self = Self { marks: 0, colour: Some(36) };
    pub(crate) const GOOD: Self = Self { marks: 0, colour: Some(32) };
    pub(crate) const BAD: Self = Self { marks: 0, colour: Some(31) };
    pub(crate) const CAUTION: Self = Self { marks: 0, colour: Some(33) };

    pub(crate) const fn bold(self) -> Self {
        Self { marks: self.marks | Self::BOLD, ..self }
    }

    pub(crate) const fn italic(self) -> Self {
        Self { marks: self.marks | Self::ITALIC, ..self }
    }

    pub(crate) const fn underlined(self) -> Self {
        Self { marks: self.marks | Self::UNDERLINE, ..self }
    }

    pub(crate) const fn struck(self) -> Self {
        Self { marks: self.marks | Self::STRIKE, ..self }
    }

    pub(crate) const fn quiet(self) -> Self {
        Self { marks: self.marks | Self::DIM, ..self }
    }

    /// Writes a text in this style. The text is harmless already.
    pub(crate) fn write(self, text: &str, colour: bool, out: &mut String) {
        if !colour || self == Self::PLAIN || text.is_empty() {
            out.push_str(text);
            return;
        }
        out.push_str("\x1b[");
        let mut first = true;
        for (mark, code) in Self::CODES {
            if self.marks & mark != 0 {
                if !first {
                    out.push(';');
                }
                out.push_str(code);
                first = false;
            }
        }
        if let Some(colour) = self.colour {
            if !first {
                out.push(';');
            }
            out.push_str(&colour.to_string());
        }
        out.push('m');
        out.push_str(text);
        out.push_str("\x1b[0m");
    }
}

/// A text in a style.
pub(crate) fn painted(style: Style, text: &str, colour: bool) -> String {
    let mut out = String::with_capacity(text.len() + 10);
    style.write(text, colour, &mut out);
    out
}

/// A harmless text in one style, with where it ends in what it was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) text: String,
    pub(crate) style: Style,
    /// Up to where it goes in its source, in bytes.
    pub(crate) end: usize,
}

/// How many columns a harmless text takes at the most: terminals disagree about joined characters, and the larger
/// number never overflows.
pub(crate) fn columns(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    let apart = text.chars().map(|c| c.width().unwrap_or_default()).sum::<usize>();
    apart.max(text.width())
}

/// At most so many columns of a harmless text.
pub(crate) fn cut(text: &str, room: usize) -> String {
    if columns(text) <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        used += columns(grapheme);
        if used + 1 > room {
            break;
        }
        kept.push_str(grapheme);
    }
    if room > 0 {
        kept.push('…');
    }
    kept
}

/// How rows are broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Break {
    /// Between words.
    Words,
    /// Anywhere: every blank stands where it stood.
    Anywhere,
}

/// A row, and up to where it goes in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) text: String,
    pub(crate) end: usize,
}

/// Where a text is broken, and how it is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'a> {
    /// What stands before the first row, and before the others; as wide as each other, painted already.
    pub(crate) first: &'a str,
    pub(crate) others: &'a str,
    /// How many columns the text itself has, beside those.
    pub(crate) room: usize,
    pub(crate) colour: bool,
    pub(crate) at: Break,
}

/// A text in rows; always at least one.
pub(crate) fn wrapped<'a>(spans: &'a [Span], frame: Frame<'a>) -> Vec<Row> {
    let mut rows = Rows { frame, done: Vec::new(), row: Vec::new(), used: 0, end: 0 };
    for span in spans {
        let mut at = span.end.saturating_sub(span.text.len());
        for grapheme in span.text.graphemes(true) {
            at += grapheme.len();
            let grapheme = if grapheme == "\t" { TAB } else { grapheme };
            rows.push(grapheme, span.style, at.min(span.end));
        }
    }
    rows.finish()
}

struct Rows<'a> {
    frame: Frame<'a>,
    done: Vec<Row>,
    row: Vec<(&'a str, Style, usize)>,
    used: usize,
    end: usize,
}

impl<'a> Rows<'a> {
    fn push(&mut self, grapheme: &'a str, style: Style, end: usize) {
        let width = columns(grapheme);
        if self.used + width > self.frame.room.max(1) && !self.row.is_empty() {
            let is_blank = grapheme.starts_with(' ');
            if self.frame.at == Break::Words && is_blank {
                // A blank at the end of a row is the break.
                self.end = end;
                self.break_here(self.row.len());
                return;
            }
            let at = match self.frame.at {
                Break::Words => self.last_blank(),
                Break::Anywhere => None,
            };
            self.break_here(at.unwrap_or(self.row.len()));
        }
        if self.frame.at == Break::Words
            && self.row.is_empty()
            && !self.done.is_empty()
            && grapheme.starts_with(' ')
        {
            self.end = end;
            return;
        }
        self.row.push((grapheme, style, end));
        self.used += width;
        self.end = end;
    }

    /// Behind the last blank of the row that has a word before it.
    fn last_blank(&self) -> Option<usize> {
        let at = self.row.iter().rposition(|(text, ..)| text.starts_with(' '))?;
        let word_before = self.row.iter().take(at).any(|(text, ..)| !text.starts_with(' '));
        word_before.then_some(at + 1)
    }

    fn break_here(&mut self, at: usize) {
        let rest = self.row.split_off(at.min(self.row.len()));
        let row = std::mem::replace(&mut self.row, rest);
        let end = row.last().map_or(self.end, |(_, _, end)| *end);
        let end = if self.row.is_empty() { self.end.max(end) } else { end };
        let text = self.written(&row);
        self.done.push(Row { text, end });
        self.used = self.row.iter().map(|(text, ..)| columns(text)).sum();
    }

    fn written(&self, row: &[(&str, Style, usize)]) -> String {
        let kept = row.iter().rposition(|(text, ..)| text.trim() != "").map_or(0, |at| at + 1);
        let kept = if self.frame.at == Break::Words { kept } else { row.len() };
        let indent = if self.done.is_empty() { self.frame.first } else { self.frame.others };
        let mut out = indent.to_owned();
        let mut run = String::new();
        let mut last = Style::PLAIN;
        for (text, style, _) in row.iter().take(kept) {
            if *style != last {
                last.write(&run, self.frame.colour, &mut out);
                run.clear();
                last = *style;
            }
            run.push_str(text);
        }
        last.write(&run, self.frame.colour, &mut out);
        out
    }

    fn finish(mut self) -> Vec<Row> {
        if !self.row.is_empty() || self.done.is_empty() {
            self.break_here(self.row.len());
        }
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Vec<Span> {
        vec![Span { text: text.to_owned(), style: Style::PLAIN, end: text.len() }]
    }

    fn rows(text: &str, room: usize, at: Break) -> Vec<String> {
        let frame = Frame { first: "", others: "", room, colour: false, at };
        wrapped(&plain(text), frame).into_iter().map(|row| row.text).collect()
    }

    #[test]
    fn rows_are_broken_between_words_and_long_words_anywhere() {
        assert_eq!(rows("the quick brown fox", 10, Break::Words), ["the quick", "brown fox"]);
        assert_eq!(rows("abcdefghijkl mn", 5, Break::Words), ["abcde", "fghij", "kl mn"]);
        assert_eq!(rows("    indented code", 12, Break::Words), ["    indented", "code"]);
        assert_eq!(rows("a  b   c", 3, Break::Anywhere), ["a  ", "b  ", " c"]);
        assert_eq!(rows("", 5, Break::Words), [""]);
    }

    #[test]
    fn wide_and_joined_characters_are_never_cut_in_two() {
        assert_eq!(rows("日本語文", 5, Break::Anywhere), ["日本", "語文"]);
        assert_eq!(rows("e\u{301}e\u{301}e\u{301}", 2, Break::Anywhere).len(), 2);
        for room in 4..12 {
            for row in rows("日本語 👩\u{200d}🚀👩\u{200d}🚀 text", room, Break::Words) {
                assert!(columns(&row) <= room, "{row:?}");
            }
        }
    }

    #[test]
    fn a_row_knows_where_it_ends_in_the_source() {
        let text = "the quick brown fox jumps";
        let frame = Frame { first: "", others: "", room: 10, colour: false, at: Break::Words };
        let rows = wrapped(&plain(text), frame);
        let starts: Vec<&str> = rows.iter().map(|row| &text[row.end..]).collect();
        assert_eq!(starts, ["brown fox jumps", "jumps", ""]);
    }

    #[test]
    fn styles_are_written_once_a_run_and_end_with_the_row() {
        let spans = vec![
            Span { text: "a ".to_owned(), style: Style::PLAIN, end: 2 },
            Span { text: "bb cc".to_owned(), style: Style::STRONG, end: 7 },
        ];
        let frame = Frame { first: "", others: "", room: 4, colour: true, at: Break::Words };
        let rows: Vec<_> = wrapped(&spans, frame).into_iter().map(|row| row.text).collect();
        assert_eq!(rows, ["a \x1b[1mbb\x1b[0m", "\x1b[1mcc\x1b[0m"]);
    }
}
