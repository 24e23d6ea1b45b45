//! A long text, a screenful at a time. Only what is seen is looked at, however long the text is.

use fluffy_base::{masked, sanitised};
use unicode_segmentation::UnicodeSegmentation as _;

use super::style::{Style, columns, cut};

/// What indents the rest of a line that is wider than the screen.
const FURTHER: &str = "  ";

/// A text that is paged.
pub(crate) struct Pager {
    title: String,
    text: String,
    /// Where lines begin.
    starts: Vec<usize>,
    /// The line at the top, and which of its rows.
    line: usize,
    part: usize,
    size: (usize, usize),
    colour: bool,
    style: fn(&str) -> Style,
    /// What is looked for, and whether it is still being typed.
    wanted: String,
    typing: bool,
    missed: bool,
}

/// A key of the pager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    Down,
    Up,
    Further,
    Back,
    HalfDown,
    HalfUp,
    Top,
    End,
    Search,
    Next,
    Previous,
    /// A letter of what is looked for.
    Letter(char),
    Erase,
    Enter,
    Escape,
}

impl Pager {
    /// Pages a text; `style` says how a line of it looks.
    pub(crate) fn new(title: &str, text: String, style: fn(&str) -> Style, colour: bool) -> Self {
        // As a whole: a key that is cut by the edge of the screen is none any more.
        let text = match masked(&text) {
            std::borrow::Cow::Borrowed(_) => text,
            std::borrow::Cow::Owned(masked) => masked,
        };
        let mut starts = vec![0];
        starts.extend(
            text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1),
        );
        if starts.last() == Some(&text.len()) && starts.len() > 1 {
            starts.pop();
        }
        Self {
            title: sanitised(title).into_owned(),
            text,
            starts,
            line: 0,
            part: 0,
            size: (80, 24),
            colour,
            style,
            wanted: String::new(),
            typing: false,
            missed: false,
        }
    }

    /// The screen has this size: columns and rows.
    pub(crate) fn resize(&mut self, columns: usize, rows: usize) {
        self.size = (columns.max(4), rows.max(2));
        self.part = 0;
        self.stay_inside();
    }

    /// Whether letters are what is looked for.
    pub(crate) fn is_typing(&self) -> bool {
        self.typing
    }

    /// A key was pressed.
    pub(crate) fn press(&mut self, key: Page) {
        self.missed = false;
        let screen = self.room().saturating_sub(1).max(1);
        match key {
            Page::Down => self.down(1),
            Page::Up => self.up(1),
            Page::Further => self.down(screen),
            Page::Back => self.up(screen),
            Page::HalfDown => self.down(self.room().div_ceil(2)),
            Page::HalfUp => self.up(self.room().div_ceil(2)),
            Page::Top => (self.line, self.part) = (0, 0),
            Page::End => self.to_end(),
            Page::Search => {
                self.typing = true;
                self.wanted.clear();
            }
            Page::Letter(c) => self.wanted.push(c),
            Page::Erase => {
                self.typing = self.wanted.pop().is_some();
            }
            Page::Enter => {
                self.typing = false;
                self.find(self.line, true);
            }
            Page::Escape => self.typing = false,
            Page::Next => self.find(self.line + 1, true),
            Page::Previous => match self.line.checked_sub(1) {
                Some(line) => self.find(line, false),
                None => self.missed = true,
            },
        }
    }

    /// What is seen: as many rows as the screen has.
    pub(crate) fn rows(&self) -> Vec<String> {
        let room = self.room();
        let mut rows = Vec::with_capacity(room + 1);
        let mut skip = self.part;
        for number in self.line..self.starts.len() {
            if rows.len() >= room {
                break;
            }
            let line = self.line_at(number);
            let style = (self.style)(line);
            let parts = self.folded(line).skip(skip).take(room - rows.len());
            rows.extend(parts.map(|part| self.paint(style, &part)));
            skip = 0;
        }
        rows.resize(room, String::new());
        rows.push(self.status());
        rows
    }

    fn paint(&self, style: Style, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + 8);
        let found =
            (!self.wanted.is_empty() && !self.typing).then(|| text.find(&self.wanted)).flatten();
        match found.and_then(|at| Some((text.get(..at)?, text.get(at + self.wanted.len()..)?))) {
            Some((before, after)) => {
                style.write(before, self.colour, &mut out);
                Style::INVERTED.write(&self.wanted, self.colour, &mut out);
                style.write(after, self.colour, &mut out);
            }
            None => style.write(text, self.colour, &mut out),
        }
        out
    }

    fn status(&self) -> String {
        let (wide, _) = self.size;
        let text = if self.typing {
            format!("/{}", sanitised(&self.wanted))
        } else if self.missed {
            format!("`{}` is not there", sanitised(&self.wanted))
        } else {
            let total = self.starts.len();
            let at = (self.line + 1).min(total);
            let part = if self.is_at_end() { 100 } else { at * 100 / total.max(1) };
            format!("{} · line {at} of {total} · {part} %   space b j k g G / n q", self.title)
        };
        let mut out = String::new();
        Style::INVERTED.write(&cut(&text, wide - 1), self.colour, &mut out);
        out
    }

    /// How many rows the text has on the screen.
    fn room(&self) -> usize {
        self.size.1 - 1
    }

    fn line_at(&self, number: usize) -> &str {
        let Some(start) = self.starts.get(number) else { return "" };
        let end = self.starts.get(number + 1).map_or(self.text.len(), |next| next - 1);
        let line = self.text.get(*start..end).unwrap_or_default();
        line.strip_suffix('\n').unwrap_or(line)
    }

    /// A line in rows that fit: each is made when it is asked for.
    fn folded<'a>(&self, line: &'a str) -> Folded<'a> {
        let (wide, _) = self.size;
        Folded { rest: line, room: wide.saturating_sub(1 + FURTHER.len()).max(1), first: true }
    }

    fn parts(&self, number: usize) -> usize {
        self.folded(self.line_at(number)).count()
    }

    fn down(&mut self, rows: usize) {
        for _ in 0..rows {
            if self.part + 1 < self.parts(self.line) {
                self.part += 1;
            } else if self.line + 1 < self.starts.len() {
                (self.line, self.part) = (self.line + 1, 0);
            }
        }
        self.stay_inside();
    }

    fn up(&mut self, rows: usize) {
        for _ in 0..rows {
            if self.part > 0 {
                self.part -= 1;
            } else if self.line > 0 {
                self.line -= 1;
                self.part = self.parts(self.line).saturating_sub(1);
            }
        }
    }

    fn to_end(&mut self) {
        let (line, part) = self.last_top();
        (self.line, self.part) = (line, part);
    }

    /// What is at the top when the end is at the bottom.
    fn last_top(&self) -> (usize, usize) {
        let mut left = self.room();
        for number in (0..self.starts.len()).rev() {
            let parts = self.parts(number);
            if parts >= left {
                return (number, parts - left);
            }
            left -= parts;
        }
        (0, 0)
    }

    fn is_at_end(&self) -> bool {
        (self.line, self.part) >= self.last_top()
    }

    fn stay_inside(&mut self) {
        // Only near the end is there anything to look at.
        if self.line + self.room() >= self.starts.len() {
            let last = self.last_top();
            if (self.line, self.part) > last {
                (self.line, self.part) = last;
            }
        }
    }

    fn find(&mut self, from: usize, forwards: bool) {
        if self.wanted.is_empty() {
            return;
        }
        let has = |number: &usize| self.line_at(*number).contains(&self.wanted);
        let found = match forwards {
            true => (from..self.starts.len()).find(has),
            false => (0..=from).rev().find(has),
        };
        match found {
            Some(number) => {
                (self.line, self.part) = (number, 0);
                self.stay_inside();
            }
            None => self.missed = true,
        }
    }
}

/// The rows of one line.
struct Folded<'a> {
    rest: &'a str,
    room: usize,
    first: bool,
}

impl Iterator for Folded<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        if self.rest.is_empty() && !self.first {
            return None;
        }
        let mut row = if self.first { String::new() } else { FURTHER.to_owned() };
        self.first = false;
        // Enough for a row, whatever is in it; masking is done for what is cut here as a whole.
        let near = self.rest.floor_char_boundary(self.room.saturating_mul(8).saturating_add(64));
        let piece = self.rest.get(..near).unwrap_or(self.rest);
        let (mut used, mut taken) = (0, 0);
        for grapheme in piece.graphemes(true) {
            let shown = if grapheme == "\t" { "    ".into() } else { sanitised(grapheme) };
            let width = columns(&shown);
            if used + width > self.room && taken > 0 {
                break;
            }
            row.push_str(&shown);
            used += width;
            taken += grapheme.len();
        }
        self.rest = self.rest.get(taken..).unwrap_or_default();
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pager(lines: usize) -> Pager {
        let text: String = (1..=lines).map(|n| format!("line {n}\n")).collect();
        let mut pager = Pager::new("diff", text, |_| Style::PLAIN, false);
        pager.resize(30, 6);
        pager
    }

    fn first(pager: &Pager) -> String {
        pager.rows().remove(0)
    }

    #[test]
    fn keys_page_through_a_text_of_a_hundred_thousand_lines() {
        let mut pager = pager(100_000);
        assert_eq!(pager.rows().len(), 6);
        assert_eq!(first(&pager), "line 1");
        pager.press(Page::Further);
        assert_eq!(first(&pager), "line 5");
        pager.press(Page::Down);
        pager.press(Page::Back);
        assert_eq!(first(&pager), "line 2");
        pager.press(Page::End);
        assert_eq!(pager.rows()[4], "line 100000");
        pager.press(Page::Further);
        assert_eq!(pager.rows()[4], "line 100000", "behind the end is nothing");
        pager.press(Page::Top);
        assert_eq!(first(&pager), "line 1");
        pager.press(Page::Up);
        assert_eq!(first(&pager), "line 1");
        assert!(pager.rows()[5].starts_with("diff · line 1 of 100000"), "{:?}", pager.rows());
    }

    #[test]
    fn what_is_looked_for_is_found_or_said_to_be_absent() {
        let mut pager = pager(1000);
        pager.press(Page::Search);
        assert!(pager.is_typing());
        "77".chars().for_each(|c| pager.press(Page::Letter(c)));
        pager.press(Page::Enter);
        assert_eq!(first(&pager), "line 77");
        pager.press(Page::Next);
        assert_eq!(first(&pager), "line 177");
        pager.press(Page::Previous);
        assert_eq!(first(&pager), "line 77");
        pager.press(Page::Previous);
        assert!(pager.rows()[5].contains("not there"));
        assert_eq!(first(&pager), "line 77");
    }

    #[test]
    fn a_line_wider_than_the_screen_is_read_to_its_end() {
        let text = format!("+harmless(){}evil()\nnext\n", " ".repeat(500));
        let mut pager = Pager::new("x", text, |_| Style::PLAIN, false);
        pager.resize(20, 4);
        let mut seen = String::new();
        for _ in 0..40 {
            seen.push_str(&pager.rows().concat());
            pager.press(Page::Down);
        }
        assert!(seen.contains("evil()"));
        assert!(pager.rows().iter().all(|row| columns(row) < 20));
    }

    #[test]
    fn nothing_in_the_text_acts() {
        let mut pager = Pager::new(
            "t\u{1b}]0;x\u{7}",
            "a\u{1b}[2J\u{202e}b\u{0}".to_owned(),
            |_| Style::PLAIN,
            false,
        );
        pager.resize(60, 3);
        assert!(pager.rows().iter().all(|row| !row.contains(|c: char| c.is_control())));
        let empty = Pager::new("x", String::new(), |_| Style::PLAIN, false);
        assert_eq!(empty.rows().len(), 24);
    }
}
