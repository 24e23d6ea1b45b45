//! Breaks streamed text between words, as it comes.

use unicode_width::UnicodeWidthChar as _;

/// The longest word that is waited for, in bytes; a longer one is broken anywhere.
const LONGEST: usize = 4096;
/// How many columns a tab is worth.
const TAB: usize = 4;

/// Where a stream of text stands on its line.
#[derive(Debug, Default)]
pub(crate) struct Wrap {
    column: usize,
    spaces: usize,
    word: String,
    word_width: usize,
}

impl Wrap {
    /// The next piece of text as it is to be written; what may be half a word is kept back.
    pub(crate) fn push(&mut self, text: &str, width: Option<usize>, out: &mut String) {
        for c in text.chars() {
            match c {
                '\n' => {
                    self.flush(width, out);
                    out.push('\n');
                    (self.column, self.spaces) = (0, 0);
                }
                ' ' | '\t' => {
                    self.flush(width, out);
                    self.spaces += if c == ' ' { 1 } else { TAB };
                }
                _ => self.letter(c, width, out),
            }
        }
        if width.is_none() {
            self.flush(width, out);
        }
    }

    /// Hands out the word that was kept back.
    pub(crate) fn flush(&mut self, width: Option<usize>, out: &mut String) {
        if self.word.is_empty() {
            return;
        }
        let end = self.column.saturating_add(self.spaces).saturating_add(self.word_width);
        if self.column > 0 && width.is_some_and(|width| end > width) {
            out.push('\n');
            self.column = 0;
        } else {
            let spaces = width.map_or(self.spaces, |width| self.spaces.min(width / 2));
            out.extend(std::iter::repeat_n(' ', spaces));
            self.column += spaces;
        }
        out.push_str(&self.word);
        self.column += self.word_width;
        self.word.clear();
        (self.spaces, self.word_width) = (0, 0);
    }

    /// In which column the text stands; 0 at the beginning of a line.
    pub(crate) fn column(&self) -> usize {
        self.column
    }

    /// Begins a line.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    fn letter(&mut self, c: char, width: Option<usize>, out: &mut String) {
        let columns = c.width().unwrap_or_default();
        let full = width.is_some_and(|width| self.word_width + columns > width);
        if full || self.word.len() > LONGEST {
            self.flush(width, out);
        }
        self.word.push(c);
        self.word_width += columns;
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    fn wrapped(text: &str, width: Option<usize>, chunk: usize) -> String {
        let mut wrap = Wrap::default();
        let mut out = String::new();
        let letters: Vec<char> = text.chars().collect();
        for piece in letters.chunks(chunk) {
            wrap.push(&piece.iter().collect::<String>(), width, &mut out);
        }
        wrap.flush(width, &mut out);
        out
    }

    #[test]
    fn lines_are_broken_between_words_however_the_text_came() {
        let text = "the quick brown fox\n    indented code stays\n";
        for chunk in 1..8 {
            let expected = "the quick\nbrown fox\n    indented\ncode stays\n";
            assert_eq!(wrapped(text, Some(12), chunk), expected);
            assert_eq!(wrapped(text, None, chunk), text);
        }
    }

    #[test]
    fn no_line_is_wider_than_the_screen() {
        let text = format!("日本語の文章 {} 🦀🦀🦀 {}x\t\ty", "long".repeat(30), " ".repeat(200));
        for width in [20, 21, 33] {
            for line in wrapped(&text, Some(width), 3).lines() {
                assert!(line.width() <= width, "{line:?}");
            }
        }
    }

    #[test]
    fn a_word_without_width_or_end_is_not_waited_for() {
        let mut wrap = Wrap::default();
        let mut out = String::new();
        wrap.push(&"\u{301}".repeat(100_000), Some(80), &mut out);
        assert!(out.len() > 190_000);
    }
}
