//! Puts the parts together: what was said and told scrolls up; below it the unfinished line, what is under way, the
//! question, the input, and the status.
//!
//! **Invariant.** What the kernel tells begins with a bar in the first column, what a person typed with `>`. What a model
//! says has two blanks there, so that none of its lines can pass for one of ours.

use fluffy_base::Excerpt;

use super::edit::Editor;
use super::markdown::Markdown;
use super::screen::{Screen, View};
use super::style::{Break, Frame, Span, Style, columns, cut, painted, wrapped};

/// What stands left of everything that the kernel tells.
const BAR: &str = "│ ";
/// What stands left of what is typed.
const PROMPT: &str = "> ";
/// What stands left of the other rows of it.
const INDENT: &str = "  ";
/// The most rows that the input takes.
const INPUT_ROWS: usize = 10;
/// The most rows that a list of words takes.
const MENU_ROWS: usize = 8;
/// How much of a text is told, in characters.
const TOLD: usize = 4000;
/// How wide a column of names is.
const NAMES: usize = 28;
/// How many rows are held back while something else is on the screen.
const HELD_ROWS: usize = 10_000;
/// Screens of at least so many rows have room for a blank one.
const ROOMY: usize = 10;

/// Who a finished row is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Typed,
    Told,
    Said,
}

/// Words to choose from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Menu {
    /// Each with what it means.
    pub(crate) words: Vec<(String, String)>,
    pub(crate) chosen: Option<usize>,
}

/// Everything that can be seen.
#[derive(Debug)]
pub(crate) struct Stage {
    colour: bool,
    width: usize,
    height: usize,
    markdown: Markdown,
    finished: Vec<String>,
    /// Rows that were given up, since too many were held back.
    given_up: usize,
    last: Option<Kind>,
    pub(crate) editor: Editor,
    /// What stands left of the input.
    pub(crate) prompt: String,
    /// What is under way.
    pub(crate) activity: String,
    /// What stands above the input: a question with its keys, messages that wait.
    pub(crate) notes: Vec<String>,
    pub(crate) status: String,
    pub(crate) menu: Menu,
}

impl Stage {
    /// An empty one.
    pub(crate) fn new(width: usize, height: usize, colour: bool) -> Self {
        Self {
            colour,
            width: width.max(4),
            height: height.max(1),
            markdown: Markdown::new(colour),
            finished: Vec::new(),
            given_up: 0,
            last: None,
            editor: Editor::new(),
            prompt: PROMPT.to_owned(),
            activity: String::new(),
            notes: Vec::new(),
            status: String::new(),
            menu: Menu::default(),
        }
    }

    /// Whether there are colours.
    pub(crate) fn colour(&self) -> bool {
        self.colour
    }

    /// How wide what the kernel tells may be.
    pub(crate) fn told_width(&self) -> usize {
        self.width.saturating_sub(BAR.chars().count())
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    /// A piece of what a model says.
    pub(crate) fn say(&mut self, text: &str) {
        if text.is_empty()
            || (self.markdown.is_empty() && text.trim().is_empty() && self.last != Some(Kind::Said))
        {
            return;
        }
        self.turn(Kind::Said);
        self.markdown.push(text, self.width, &mut self.finished);
    }

    /// It has said that.
    pub(crate) fn settle(&mut self) {
        self.markdown.finish(self.width, &mut self.finished);
    }

    /// A row that the kernel tells, harmless and made for [`Self::told_width`].
    pub(crate) fn tell(&mut self, row: &str) {
        self.settle();
        self.turn(Kind::Told);
        let row = row.strip_prefix(INDENT).unwrap_or(row);
        let bar = painted(Style::CODE.quiet(), BAR, self.colour);
        self.finished.push(format!("{bar}{row}"));
    }

    /// A text that the kernel tells, of any length; made harmless and broken here.
    pub(crate) fn tell_text(&mut self, text: &str) {
        self.tell_labelled("", Style::PLAIN, text);
    }

    /// Something went wrong: what, why, and what to do.
    pub(crate) fn tell_error(&mut self, what: &str, why: &str, fix: &str) {
        self.tell_labelled("ERROR: ", Style::BAD.bold(), what);
        self.tell_labelled("Reason: ", Style::STRONG, why);
        self.tell_labelled("Fix: ", Style::STRONG, fix);
    }

    fn tell_labelled(&mut self, label: &str, style: Style, text: &str) {
        let text = Excerpt::new(text, TOLD).to_string();
        let end = label.len() + text.len();
        let spans = [
            Span { text: label.to_owned(), style, end: label.len() },
            Span { text, style: Style::PLAIN, end },
        ];
        let room = self.told_width().saturating_sub(1 + INDENT.len()).max(1);
        let frame =
            Frame { first: "", others: INDENT, room, colour: self.colour, at: Break::Words };
        for row in wrapped(&spans, frame) {
            // Two blanks at the beginning are taken for the indent of others.
            let row = if row.text.starts_with(INDENT) {
                format!("{INDENT}{}", row.text)
            } else {
                row.text
            };
            self.tell(&row);
        }
    }

    /// A name, and what it means beside it, or below it where there is no room.
    pub(crate) fn tell_pair(&mut self, name: &str, meaning: &str) {
        let width = self.told_width().saturating_sub(1);
        let column = if width >= 2 * NAMES { NAMES } else { INDENT.len() };
        let gap = column.saturating_sub(columns(name));
        let name = painted(Style::STRONG, &cut(name, width), self.colour);
        let others = " ".repeat(column);
        let first = if gap > 1 { format!("{name}{}", " ".repeat(gap)) } else { others.clone() };
        if gap <= 1 {
            self.tell(&name);
        }
        let span = Span { text: meaning.to_owned(), style: Style::PLAIN, end: meaning.len() };
        let room = width.saturating_sub(column).max(1);
        let frame =
            Frame { first: &first, others: &others, room, colour: self.colour, at: Break::Words };
        for row in wrapped(&[span], frame) {
            self.tell(&format!("{INDENT}{}", row.text));
        }
    }

    /// A text of ours in rows that fit the screen.
    pub(crate) fn broken(&self, style: Style, text: &str) -> Vec<String> {
        let span = Span { text: Excerpt::new(text, TOLD).to_string(), style, end: text.len() };
        let room = self.width.saturating_sub(1 + INDENT.len()).max(1);
        let frame =
            Frame { first: "", others: INDENT, room, colour: self.colour, at: Break::Words };
        wrapped(&[span], frame).into_iter().map(|row| row.text).collect()
    }

    /// What a person sent.
    pub(crate) fn typed(&mut self, text: &str) {
        self.settle();
        self.turn(Kind::Typed);
        let prompt = painted(Style::STRONG, PROMPT, self.colour);
        for (number, line) in text.lines().enumerate() {
            let text = crate::inert::inert(line).into_owned();
            let end = text.len();
            let first = if number == 0 { &prompt } else { INDENT };
            let room = self.width.saturating_sub(PROMPT.len() + 1).max(1);
            let frame =
                Frame { first, others: INDENT, room, colour: self.colour, at: Break::Words };
            let rows = wrapped(&[Span { text, style: Style::STRONG, end }], frame);
            self.finished.extend(rows.into_iter().map(|row| row.text));
        }
    }

    /// The terminal has another size.
    pub(crate) fn resize(&mut self, width: usize, height: usize) {
        self.markdown.resized();
        (self.width, self.height) = (width.max(4), height.max(1));
    }

    /// Something else is on the screen: what is finished meanwhile is held back, the newest of it.
    pub(crate) fn hold_back(&mut self) {
        let over = self.finished.len().saturating_sub(HELD_ROWS);
        self.finished.drain(..over);
        self.given_up = self.given_up.saturating_add(over);
    }

    /// What is to be written.
    pub(crate) fn draw(&mut self, screen: &mut Screen) -> String {
        let view = self.view();
        let mut finished = std::mem::take(&mut self.finished);
        let given_up = std::mem::take(&mut self.given_up);
        if given_up > 0 {
            let row = format!("… {given_up} rows before this went by while you were reading");
            finished.insert(0, painted(Style::QUIET, &cut(&row, self.width - 1), self.colour));
        }
        screen.draw(&finished, view)
    }

    /// The live region as it is meant.
    pub(crate) fn view(&self) -> View {
        let most = self.height.saturating_sub(1).max(1);
        let room = self.width.saturating_sub(columns(&self.prompt) + 1).max(2);
        let layout = self.editor.layout(room, INPUT_ROWS.min(most.div_ceil(2)));
        let mut left = most - layout.rows.len().min(most);
        let notes: Vec<String> = self.notes.iter().take(left).map(|row| self.fitted(row)).collect();
        left -= notes.len();
        let activity: Vec<String> = [&self.activity]
            .into_iter()
            .filter(|it| !it.is_empty())
            .take(left)
            .map(|row| self.fitted(row))
            .collect();
        left -= activity.len();
        let below = self.below(left);
        left -= below.len();
        let stream = self.markdown.live(self.width);
        let gap = usize::from(self.height >= ROOMY && left > 0 && self.last.is_some());
        left -= gap;
        let mut rows = stream.get(stream.len().saturating_sub(left)..).unwrap_or_default().to_vec();
        rows.extend(std::iter::repeat_n(String::new(), gap));
        rows.extend(activity);
        rows.extend(notes);
        let row = rows.len() + layout.row;
        let before = format!("{}{}", self.before_row(layout.row, layout.above), layout.before);
        let input = layout.rows.iter().enumerate();
        rows.extend(input.map(|(at, row)| format!("{}{row}", self.before_row(at, layout.above))));
        rows.extend(below);
        View { rows, row, before, cursor: true }
    }

    /// What stands left of a row of the input.
    fn before_row(&self, number: usize, above: bool) -> String {
        match (number, above) {
            (0, false) => painted(Style::CODE.bold(), &self.prompt, self.colour),
            (0, true) => {
                let blanks = " ".repeat(columns(&self.prompt).saturating_sub(2));
                painted(Style::QUIET, &format!("{blanks}↑ "), self.colour)
            }
            _ => " ".repeat(columns(&self.prompt)),
        }
    }

    /// The words to choose from, or the status.
    fn below(&self, room: usize) -> Vec<String> {
        let Menu { words, chosen } = &self.menu;
        if words.is_empty() {
            let status = painted(Style::QUIET, &cut(&self.status, self.width - 1), self.colour);
            return [status].into_iter().filter(|_| !self.status.is_empty()).take(room).collect();
        }
        let most = MENU_ROWS.min(room);
        let first = chosen.map_or(0, |at| (at + 1).saturating_sub(most));
        let longest = words.iter().map(|(word, _)| columns(word)).max().unwrap_or_default();
        let line = |(at, (word, meaning)): (usize, &(String, String))| {
            let gap = " ".repeat(longest - columns(word) + 2);
            let text = cut(format!("{INDENT}{word}{gap}{meaning}").trim_end(), self.width - 1);
            let style = if *chosen == Some(at) { Style::INVERTED } else { Style::QUIET };
            painted(style, &text, self.colour)
        };
        words.iter().enumerate().skip(first).take(most).map(line).collect()
    }

    /// A painted row of ours that fits; one that does not loses its colours.
    fn fitted(&self, row: &str) -> String {
        let bare = super::table::bare(row);
        if columns(&bare) < self.width { row.to_owned() } else { cut(&bare, self.width - 1) }
    }

    /// Somebody else goes on.
    fn turn(&mut self, kind: Kind) {
        let is_new = self.last.is_some_and(|last| last != kind || kind == Kind::Typed);
        if is_new {
            self.finished.push(String::new());
        }
        self.last = Some(kind);
    }
}

#[cfg(test)]
mod tests;
