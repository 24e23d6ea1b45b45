//! Markdown as it streams: finished rows are handed out, the line that has not ended is shown as it stands.
//!
//! **Invariant.** Every row begins with [`GUTTER`], two blanks: what a model says never stands where marks of ours do.
//!
//! **Invariant.** What is kept is bounded, however long a line is; and all work is linear in what comes.

use crate::inert::inert;

use super::inline::inline;
use super::style::{Break, Frame, Row, Span, Style, columns, wrapped};
use super::table::{is_row, table};

/// What stands left of everything that a model says.
const GUTTER: &str = "  ";
/// What indents code.
const CODE_INDENT: &str = "    ";
/// The longest line that is kept whole, in bytes; a longer one goes on as if it had been broken there.
const LONGEST: usize = 4096;
/// The most that is kept of a table, in bytes.
const MAX_TABLE: usize = 128 << 10;
/// The narrowest text.
const NARROWEST: usize = 4;
/// How wide a rule is drawn at the most.
const RULE: usize = 40;

/// Markdown under way.
#[derive(Debug)]
pub(crate) struct Markdown {
    colour: bool,
    /// The line that has not ended.
    pending: String,
    /// How many of its rows are out, and up to where they go.
    shown: usize,
    shown_to: usize,
    /// Whether it goes on with a line that was too long.
    continues: bool,
    fence: Option<Fence>,
    table: Vec<String>,
    table_bytes: usize,
    last: Last,
}

/// What the last row was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Blank,
    Text,
}

/// A block of code that has not ended.
#[derive(Debug)]
struct Fence {
    mark: char,
    length: usize,
    indent: usize,
}

/// A line by its kind.
struct Block<'a> {
    first: String,
    others: String,
    /// Columns of what stands before the text.
    taken: usize,
    body: &'a str,
    style: Style,
}

impl Markdown {
    /// Nothing yet.
    pub(crate) fn new(colour: bool) -> Self {
        Self {
            colour,
            pending: String::new(),
            shown: 0,
            shown_to: 0,
            continues: false,
            fence: None,
            table: Vec::new(),
            table_bytes: 0,
            last: Last::Nothing,
        }
    }

    /// Whether anything waits to be finished.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.table.is_empty()
    }

    /// The next piece; rows that are finished go to `out`.
    pub(crate) fn push(&mut self, text: &str, width: usize, out: &mut Vec<String>) {
        let mut rest = text;
        while !rest.is_empty() {
            let room = (LONGEST + 4).saturating_sub(self.pending.len()).max(4);
            let part = rest.get(..rest.floor_char_boundary(room)).unwrap_or(rest);
            match part.find('\n') {
                Some(end) => {
                    self.pending.push_str(part.get(..end).unwrap_or_default());
                    rest = rest.get(end + 1..).unwrap_or_default();
                    self.end_line(width, out);
                }
                None => {
                    self.pending.push_str(part);
                    rest = rest.get(part.len()..).unwrap_or_default();
                    if self.pending.len() >= LONGEST {
                        self.break_line(width, out);
                    }
                }
            }
        }
        self.hand_out(width, out);
    }

    /// The rows of what has not ended.
    pub(crate) fn live(&self, width: usize) -> Vec<String> {
        let mut rows = match self.table.is_empty() {
            true => Vec::new(),
            false => self.table_rows(width),
        };
        if !self.pending.is_empty() {
            let (line, _) = self.rows(&self.pending, width);
            rows.extend(line.into_iter().skip(self.shown).map(|row| row.text));
        }
        rows
    }

    /// Everything has been said.
    pub(crate) fn finish(&mut self, width: usize, out: &mut Vec<String>) {
        if !self.pending.is_empty() {
            self.end_line(width, out);
        }
        self.end_table(width, out);
        self.fence = None;
        self.continues = false;
        self.last = Last::Nothing;
    }

    /// The screen is about to have another width: what is out of the line stays as it is.
    pub(crate) fn resized(&mut self) {
        if self.shown > 0 {
            let end = self.pending.floor_char_boundary(self.shown_to);
            self.pending.drain(..end);
            (self.shown, self.shown_to, self.continues) = (0, 0, true);
        }
    }

    /// The rows that cannot change any more.
    fn hand_out(&mut self, width: usize, out: &mut Vec<String>) {
        if columns(&self.pending) < width || !self.table.is_empty() || is_row(&self.pending) {
            return;
        }
        let (rows, settled) = self.rows(&self.pending, width);
        let whole = rows.len().saturating_sub(1);
        let is_settled = |row: &&Row| row.end <= settled;
        for row in rows.iter().take(whole).skip(self.shown).take_while(is_settled) {
            out.push(row.text.clone());
            self.shown += 1;
            self.shown_to = row.end;
            self.last = Last::Text;
        }
    }

    fn end_line(&mut self, width: usize, out: &mut Vec<String>) {
        let line = std::mem::take(&mut self.pending);
        let line = line.strip_suffix('\r').unwrap_or(&line);
        if self.fence.is_none() && !self.continues && is_row(line) {
            self.table_bytes += line.len();
            self.table.push(line.to_owned());
            if self.table_bytes > MAX_TABLE {
                self.end_table(width, out);
            }
            return;
        }
        self.end_table(width, out);
        if !self.fence_line(line, out) {
            self.line_out(line, width, out);
        }
        (self.shown, self.shown_to, self.continues) = (0, 0, false);
    }

    /// A line that is too long is broken where a word ends, if one does.
    fn break_line(&mut self, width: usize, out: &mut Vec<String>) {
        self.end_table(width, out);
        let half = self.pending.ceil_char_boundary(LONGEST / 2);
        let tail = self.pending.get(half..).unwrap_or_default();
        let at = tail.rfind(' ').map_or(self.pending.len(), |at| half + at + 1);
        let rest = self.pending.split_off(at);
        let line = std::mem::replace(&mut self.pending, rest);
        self.line_out(&line, width, out);
        (self.shown, self.shown_to, self.continues) = (0, 0, true);
    }

    fn line_out(&mut self, line: &str, width: usize, out: &mut Vec<String>) {
        if line.trim().is_empty() && self.fence.is_none() {
            if self.last == Last::Text {
                out.push(String::new());
                self.last = Last::Blank;
            }
            return;
        }
        let (rows, _) = self.rows(line, width);
        out.extend(rows.into_iter().skip(self.shown).map(|row| row.text));
        self.last = Last::Text;
    }

    /// Whether a line begins or ends a block of code.
    fn fence_line(&mut self, line: &str, out: &mut Vec<String>) -> bool {
        if self.continues {
            return false;
        }
        let text = line.trim_start();
        let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'));
        let Some(mark) = mark else { return false };
        let length = text.chars().take_while(|c| *c == mark).count();
        let label = text.get(length..).unwrap_or_default().trim();
        if length < 3 {
            return false;
        }
        match &self.fence {
            Some(open) if open.mark == mark && length >= open.length && label.is_empty() => {
                self.fence = None;
                true
            }
            None if !label.contains(mark) => {
                let indent = line.len() - text.len();
                self.fence = Some(Fence { mark, length, indent });
                if !label.is_empty() {
                    let label: String = inert(label).chars().take(20).collect();
                    let mut row = CODE_INDENT.to_owned();
                    Style::QUIET.write(&label, self.colour, &mut row);
                    out.push(row);
                    self.last = Last::Text;
                }
                true
            }
            Some(_) | None => false,
        }
    }

    fn end_table(&mut self, width: usize, out: &mut Vec<String>) {
        if self.table.is_empty() {
            return;
        }
        out.extend(self.table_rows(width));
        self.table.clear();
        self.table_bytes = 0;
        self.last = Last::Text;
    }

    fn table_rows(&self, width: usize) -> Vec<String> {
        let room = width.saturating_sub(GUTTER.len() + 1).max(NARROWEST);
        table(&self.table, GUTTER, room, self.colour).unwrap_or_else(|| {
            let line = |line: &String| self.text_rows(line, width).0;
            self.table.iter().flat_map(line).map(|row| row.text).collect()
        })
    }

    /// The rows of a line, and up to where they are settled.
    fn rows(&self, line: &str, width: usize) -> (Vec<Row>, usize) {
        match &self.fence {
            Some(fence) => (self.code_rows(line, fence, width), line.len()),
            None => self.text_rows(line, width),
        }
    }

    fn code_rows(&self, line: &str, fence: &Fence, width: usize) -> Vec<Row> {
        let blank = line.bytes().take_while(|byte| *byte == b' ').count();
        let from = if self.continues { 0 } else { blank.min(fence.indent) };
        let text = inert(line.get(from..).unwrap_or_default()).into_owned();
        let spans = [Span { text, style: Style::CODE, end: line.len() }];
        let room = width.saturating_sub(CODE_INDENT.len() + 1).max(NARROWEST);
        let at = Break::Anywhere;
        let (first, others) = (CODE_INDENT, CODE_INDENT);
        wrapped(&spans, Frame { first, others, room, colour: self.colour, at })
    }

    fn text_rows(&self, line: &str, width: usize) -> (Vec<Row>, usize) {
        let room = width.saturating_sub(GUTTER.len() + 1).max(NARROWEST);
        let (first, others) = (GUTTER.to_owned(), GUTTER.to_owned());
        let plain = Block { first, others, taken: 0, body: line, style: Style::PLAIN };
        if self.continues {
            return self.block_rows(line, plain, room);
        }
        if is_rule(line) {
            let mut text = GUTTER.to_owned();
            Style::QUIET.write(&"─".repeat(room.min(RULE)), self.colour, &mut text);
            return (vec![Row { text, end: line.len() }], line.len());
        }
        self.block_rows(line, self.quoted(plain, room), room)
    }

    fn block_rows(&self, line: &str, block: Block<'_>, room: usize) -> (Vec<Row>, usize) {
        let offset = line.len() - block.body.len();
        let parsed = inline(block.body, block.style);
        let mut spans = parsed.spans;
        for span in &mut spans {
            span.end += offset;
        }
        let frame = Frame {
            first: &block.first,
            others: &block.others,
            room: room.saturating_sub(block.taken).max(NARROWEST),
            colour: self.colour,
            at: Break::Words,
        };
        (wrapped(&spans, frame), parsed.settled + offset)
    }

    /// Takes the marks of quotations off, and then those of the rest.
    fn quoted<'a>(&self, mut block: Block<'a>, room: usize) -> Block<'a> {
        while let Some(rest) = block.body.trim_start().strip_prefix('>') {
            if block.taken + 2 > room / 2 {
                break;
            }
            block.body = rest.strip_prefix(' ').unwrap_or(rest);
            block.taken += 2;
            for side in [&mut block.first, &mut block.others] {
                Style::QUIET.write("▎ ", self.colour, side);
            }
            block.style = Style::QUIET;
        }
        self.headed(block, room)
    }

    fn headed<'a>(&self, mut block: Block<'a>, room: usize) -> Block<'a> {
        let text = block.body.trim_start();
        let level = text.bytes().take_while(|byte| *byte == b'#').count();
        if let (1..=6, Some(title)) = (level, text.get(level..).and_then(|it| it.strip_prefix(' ')))
        {
            block.style = if level == 1 { Style::STRONG.underlined() } else { Style::STRONG };
            // Without colours the marks are what tells a heading from a line.
            block.body = if self.colour { title.trim_start() } else { text };
            return block;
        }
        self.listed(block, room)
    }

    fn listed<'a>(&self, mut block: Block<'a>, room: usize) -> Block<'a> {
        let text = block.body.trim_start();
        let indent = block.body.get(..block.body.len() - text.len()).unwrap_or_default();
        let indent = columns(&indent.replace('\t', "    ")).min(room / 3);
        let (mark, rest) = match item(text) {
            Some((mark, rest)) => (mark, rest),
            None => (String::new(), text),
        };
        if block.taken + indent + columns(&mark) + NARROWEST > room {
            block.body = text;
            return block;
        }
        let blanks = " ".repeat(indent);
        block.first.push_str(&blanks);
        block.others.push_str(&blanks);
        Style::QUIET.write(&mark, self.colour, &mut block.first);
        block.others.push_str(&" ".repeat(columns(&mark)));
        block.taken += indent + columns(&mark);
        block.body = rest;
        block
    }
}

/// Whether a line is a rule across the page.
fn is_rule(line: &str) -> bool {
    let mut marks = line.trim().chars().filter(|c| *c != ' ');
    let Some(first) = marks.next().filter(|c| matches!(c, '-' | '*' | '_')) else { return false };
    let rest: Vec<char> = marks.collect();
    rest.len() >= 2 && rest.iter().all(|c| *c == first)
}

/// The mark of an item of a list as it is shown, and the item.
fn item(text: &str) -> Option<(String, &str)> {
    for mark in ["- ", "* ", "+ "] {
        let Some(rest) = text.strip_prefix(mark) else { continue };
        let boxes = [("[ ] ", "☐ "), ("[x] ", "☑ "), ("[X] ", "☑ ")];
        let boxed =
            boxes.into_iter().find_map(|(typed, shown)| Some((shown, rest.strip_prefix(typed)?)));
        return Some(
            boxed.map_or(("• ".to_owned(), rest), |(shown, rest)| (shown.to_owned(), rest)),
        );
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let after = text.get(digits..)?;
    let rest = after.strip_prefix(". ").or_else(|| after.strip_prefix(") "))?;
    let mark = text.get(..text.len() - rest.len())?;
    ((1..=9).contains(&digits)).then(|| (mark.to_owned(), rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::table::bare;
    use super::*;

    const PAGE: &str = "# Title\n\nSome **bold** and `code` text that is long enough to be wrapped.\n\n\n- one\n- two with a long text that goes on and on\n  1. nested\n- [x] done\n> quoted *text*\n\n```rust\nfn main() {\n    println!(\"a very long line of code_that must be broken somewhere\");\n}\n```\n---\n| a | b |\n|---|---|\n| 1 | 2 |\nend";

    fn shown(text: &str, width: usize, colour: bool, chunk: usize) -> Vec<String> {
        let mut markdown = Markdown::new(colour);
        let mut out = Vec::new();
        let letters: Vec<char> = text.chars().collect();
        for piece in letters.chunks(chunk) {
            markdown.push(&piece.iter().collect::<String>(), width, &mut out);
        }
        markdown.finish(width, &mut out);
        out
    }

    #[test]
    fn cli_2_a_page_of_markdown_reads_well() {
        insta::assert_snapshot!(shown(PAGE, 44, false, 7).join("\n"), @r#"
          # Title

          Some bold and code text that is long
          enough to be wrapped.

          • one
          • two with a long text that goes on and
            on
            1. nested
          ☑ done
          ▎ quoted text

            rust
            fn main() {
                println!("a very long line of code_
            that must be broken somewhere");
            }
          ────────────────────────────────────────
          a  b
          ─  ─
          1  2
          end
        "#);
    }

    #[test]
    fn the_rows_are_the_same_however_the_text_came() {
        for colour in [false, true] {
            let whole = shown(PAGE, 40, colour, usize::MAX);
            for chunk in [1, 2, 3, 5, 17] {
                assert_eq!(shown(PAGE, 40, colour, chunk), whole, "{chunk}");
            }
        }
    }

    #[test]
    fn what_is_live_is_what_will_be_out() {
        let mut markdown = Markdown::new(false);
        let mut out = Vec::new();
        markdown.push("a line that is not yet ended but wide", 20, &mut out);
        assert_eq!(out, ["  a line that is", "  not yet ended but"]);
        assert_eq!(markdown.live(20), ["  wide"]);
    }

    #[test]
    fn bold_that_is_not_closed_is_not_handed_out() {
        let mut markdown = Markdown::new(true);
        let mut out = Vec::new();
        markdown.push("**bold text that goes over more than one row", 20, &mut out);
        assert!(out.is_empty(), "{out:?}");
        markdown.push("** and then", 20, &mut out);
        assert!(out[0].contains("\x1b[1m"), "{out:?}");
    }

    #[test]
    fn a_line_of_ten_megabytes_is_shown_in_bounded_memory() {
        let mut markdown = Markdown::new(true);
        let mut out = Vec::new();
        let (mut rows, mut letters) = (0, 0);
        for _ in 0..160 {
            markdown.push(&"x".repeat(64 << 10), 80, &mut out);
            rows += out.len();
            letters += out.iter().map(|row| bare(row).trim().len()).sum::<usize>();
            out.clear();
            assert!(markdown.pending.len() <= 2 * LONGEST && markdown.live(80).len() < 120);
        }
        markdown.finish(80, &mut out);
        letters += out.iter().map(|row| bare(row).trim().len()).sum::<usize>();
        assert!(rows > 100_000, "{rows}");
        assert!(letters >= 10 << 20, "nothing is lost: {letters}");
    }

    #[test]
    fn another_width_in_the_middle_of_a_line_loses_nothing() {
        let text = "one two three four five six seven eight nine ten eleven twelve";
        let mut markdown = Markdown::new(false);
        let mut out = Vec::new();
        markdown.push(text.get(..30).unwrap(), 16, &mut out);
        markdown.resized();
        markdown.push(text.get(30..).unwrap(), 24, &mut out);
        markdown.finish(24, &mut out);
        let read: Vec<&str> = out.iter().flat_map(|row| row.split_whitespace()).collect();
        assert_eq!(read.join(" "), text);
    }

    proptest! {
        #[test]
        fn any_text_fits_any_screen_behind_the_gutter(
            text in "([ab *_`|#>~\\-\\[\\]()日\u{1b}\u{202e}\u{9b}\n]|🦀|```\n){0,200}",
            width in 10_usize..60,
            chunk in 1_usize..40,
            colour in any::<bool>(),
        ) {
            for row in shown(&text, width, colour, chunk) {
                let bare = bare(&row);
                prop_assert!(columns(&bare) < width, "{row:?}");
                prop_assert!(bare.is_empty() || bare.starts_with(GUTTER), "{row:?}");
                prop_assert!(!bare.contains(|c: char| c.is_control() || c == '\u{202e}'), "{row:?}");
            }
        }
    }
}
