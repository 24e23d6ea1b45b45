//! The line that is typed: a text of any number of lines, with a cursor between graphemes.
//!
//! **Invariant.** The cursor stands between two graphemes; no edit leaves half of one.
//!
//! **Invariant.** What is kept is bounded: the text by [`MAX_TEXT`], what can be undone by [`MAX_UNDO`].

use unicode_segmentation::UnicodeSegmentation as _;

use crate::inert::inert;

use super::style::columns;

/// The longest text: what a task may have.
const MAX_TEXT: usize = 1 << 20;
/// How much is kept to be undone, in bytes.
const MAX_UNDO: usize = 4 << 20;
/// How much of a long line around the cursor is looked at.
const WINDOW: usize = 8192;

/// What an edit does to the text; consecutive edits of one kind are undone together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    Nothing,
    Typing,
    Erasing,
    Killing,
    Other,
}

/// A text being typed.
#[derive(Debug)]
pub(crate) struct Editor {
    text: String,
    at: usize,
    killed: String,
    undo: Vec<(String, usize)>,
    redo: Vec<(String, usize)>,
    last: Edit,
}

/// The part of a text that is shown, and where the cursor stands in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Rows without a prompt, harmless.
    pub(crate) rows: Vec<String>,
    /// The cursor's row among them, and what stands before the cursor there.
    pub(crate) row: usize,
    pub(crate) before: String,
    /// Whether there is more above and below.
    pub(crate) above: bool,
    pub(crate) below: bool,
}

impl Editor {
    /// Nothing is typed yet.
    pub(crate) fn new() -> Self {
        let (undo, redo) = (Vec::new(), Vec::new());
        let (text, killed) = (String::new(), String::new());
        Self { text, at: 0, killed, undo, redo, last: Edit::Nothing }
    }

    /// What is typed.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Where the cursor stands, in bytes.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Whether nothing is typed.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Takes everything, and begins anew.
    pub(crate) fn take(&mut self) -> String {
        let text = std::mem::take(&mut self.text);
        self.at = 0;
        self.undo.clear();
        self.redo.clear();
        self.last = Edit::Nothing;
        text
    }

    /// Has another text, with the cursor at its end.
    pub(crate) fn set(&mut self, text: &str) {
        self.remember(Edit::Other);
        self.text = clean(text);
        self.at = self.text.len();
    }

    /// Replaces a part before the cursor.
    pub(crate) fn replace(&mut self, from: usize, with: &str) {
        if from > self.at || !self.text.is_char_boundary(from) {
            return;
        }
        self.remember(Edit::Other);
        let with = clean(with);
        self.text.replace_range(from..self.at, &with);
        self.at = from + with.len();
    }

    /// Types something; what is pasted may have many lines.
    pub(crate) fn insert(&mut self, typed: &str) {
        let typed = clean(typed);
        let room = MAX_TEXT.saturating_sub(self.text.len());
        let typed = typed.get(..typed.floor_char_boundary(room)).unwrap_or_default();
        if typed.is_empty() {
            return;
        }
        let is_letter = typed.chars().nth(1).is_none() && !typed.contains(char::is_whitespace);
        self.remember(if is_letter { Edit::Typing } else { Edit::Other });
        self.text.insert_str(self.at, typed);
        self.at += typed.len();
        // What was typed may have joined the grapheme that follows.
        self.at = self.ceiling(self.at);
    }

    /// Moves by a grapheme.
    pub(crate) fn left(&mut self) {
        self.last = Edit::Nothing;
        self.at = self.before(self.at);
    }

    /// Moves by a grapheme.
    pub(crate) fn right(&mut self) {
        self.last = Edit::Nothing;
        self.at = self.after(self.at);
    }

    /// Moves to the beginning of the word.
    pub(crate) fn word_left(&mut self) {
        self.last = Edit::Nothing;
        self.at = self.word_before();
    }

    /// Moves to the end of the word.
    pub(crate) fn word_right(&mut self) {
        self.last = Edit::Nothing;
        self.at = self.word_after();
    }

    /// Moves to the beginning of the line, and then of the text.
    pub(crate) fn home(&mut self) {
        self.last = Edit::Nothing;
        self.at = if self.line_start() == self.at { 0 } else { self.line_start() };
    }

    /// Moves to the end of the line, and then of the text.
    pub(crate) fn end(&mut self) {
        self.last = Edit::Nothing;
        self.at = if self.line_end() == self.at { self.text.len() } else { self.line_end() };
    }

    /// Moves to the line above; whether there is one.
    pub(crate) fn up(&mut self) -> bool {
        let start = self.line_start();
        if start == 0 {
            return false;
        }
        let column = self.column();
        let above =
            self.text.get(..start - 1).map_or(0, |it| it.rfind('\n').map_or(0, |at| at + 1));
        self.go_to_column(above, column);
        true
    }

    /// Moves to the line below; whether there is one.
    pub(crate) fn down(&mut self) -> bool {
        let end = self.line_end();
        if end == self.text.len() {
            return false;
        }
        let column = self.column();
        self.go_to_column(end + 1, column);
        true
    }

    /// Erases the grapheme before the cursor.
    pub(crate) fn backspace(&mut self) {
        let from = self.before(self.at);
        self.erase(from, self.at, Edit::Erasing);
    }

    /// Erases the grapheme behind the cursor.
    pub(crate) fn delete(&mut self) {
        let to = self.after(self.at);
        self.erase(self.at, to, Edit::Erasing);
    }

    /// Cuts the word before the cursor.
    pub(crate) fn kill_word_left(&mut self) {
        self.kill(self.word_before(), self.at);
    }

    /// Cuts the word behind the cursor.
    pub(crate) fn kill_word_right(&mut self) {
        self.kill(self.at, self.word_after());
    }

    /// Cuts to the blank before the cursor.
    pub(crate) fn kill_to_blank(&mut self) {
        let before = self.text.get(..self.at).unwrap_or_default();
        let word = before.trim_end_matches(char::is_whitespace);
        let from = word.rfind(char::is_whitespace);
        let from = from.map_or(0, |at| {
            at + word.get(at..).and_then(|it| it.chars().next()).map_or(1, char::len_utf8)
        });
        self.kill(from, self.at);
    }

    /// Cuts to the beginning of the line.
    pub(crate) fn kill_to_start(&mut self) {
        let start = self.line_start();
        let from = if start == self.at { self.before(self.at) } else { start };
        self.kill(from, self.at);
    }

    /// Cuts to the end of the line.
    pub(crate) fn kill_to_end(&mut self) {
        let end = self.line_end();
        let to = if end == self.at { self.after(self.at) } else { end };
        self.kill(self.at, to);
    }

    /// Puts back what was cut last.
    pub(crate) fn yank(&mut self) {
        let killed = self.killed.clone();
        self.last = Edit::Nothing;
        self.insert(&killed);
        self.last = Edit::Other;
    }

    /// Swaps the graphemes around the cursor.
    pub(crate) fn transpose(&mut self) {
        let middle = if self.at == self.text.len() { self.before(self.at) } else { self.at };
        let (from, to) = (self.before(middle), self.after(middle));
        let (Some(one), Some(two)) = (self.text.get(from..middle), self.text.get(middle..to))
        else {
            return;
        };
        if one.is_empty() || two.is_empty() || one == "\n" || two == "\n" {
            return;
        }
        let swapped = format!("{two}{one}");
        self.remember(Edit::Other);
        self.text.replace_range(from..to, &swapped);
        self.at = self.ceiling(to);
    }

    /// Takes the last edit back.
    pub(crate) fn undo(&mut self) {
        if let Some((text, at)) = self.undo.pop() {
            let now =
                (std::mem::replace(&mut self.text, text), std::mem::replace(&mut self.at, at));
            self.redo.push(now);
        }
        self.last = Edit::Nothing;
    }

    /// Does again what was taken back.
    pub(crate) fn redo(&mut self) {
        if let Some((text, at)) = self.redo.pop() {
            let now =
                (std::mem::replace(&mut self.text, text), std::mem::replace(&mut self.at, at));
            self.undo.push(now);
        }
        self.last = Edit::Nothing;
    }

    /// At most `most` rows of `room` columns around the cursor.
    pub(crate) fn layout(&self, room: usize, most: usize) -> Layout {
        let room = room.max(2);
        let (from, to) = self.window();
        let text = self.text.get(from..to).unwrap_or_default();
        let mut rows = vec![String::new()];
        let (mut used, mut row, mut before) = (0, 0, String::new());
        let mut at = from;
        for grapheme in text.graphemes(true) {
            if at == self.at {
                (row, before) = (rows.len() - 1, rows.last().cloned().unwrap_or_default());
            }
            at += grapheme.len();
            if grapheme == "\n" {
                rows.push(String::new());
                used = 0;
                continue;
            }
            let shown = shown(grapheme);
            let width = columns(&shown);
            if used + width > room {
                if at - grapheme.len() == self.at {
                    (row, before) = (rows.len(), String::new());
                }
                rows.push(String::new());
                used = 0;
            }
            used += width;
            rows.iter_mut().last().into_iter().for_each(|row| row.push_str(&shown));
        }
        if at == self.at {
            if used >= room {
                rows.push(String::new());
            }
            (row, before) = (rows.len() - 1, rows.last().cloned().unwrap_or_default());
        }
        let (above, below) = (from > 0, to < self.text.len());
        Layout { rows, row, before, above, below }.fitted(most.max(1))
    }

    /// The part of the text around the cursor that is looked at.
    fn window(&self) -> (usize, usize) {
        if self.text.len() <= 2 * WINDOW {
            return (0, self.text.len());
        }
        let from = self.text.floor_char_boundary(self.at.saturating_sub(WINDOW));
        let to = self.text.ceil_char_boundary(self.at.saturating_add(WINDOW));
        // From the beginning of a line, where there is one: rows do not dance while the cursor moves.
        let line = self.text.get(from..self.at).and_then(|it| it.find('\n'));
        (if from == 0 { 0 } else { line.map_or(from, |at| from + at + 1) }, to)
    }

    fn remember(&mut self, edit: Edit) {
        let goes_on = edit == self.last && matches!(edit, Edit::Typing | Edit::Erasing);
        self.last = edit;
        self.redo.clear();
        if goes_on {
            return;
        }
        self.undo.push((self.text.clone(), self.at));
        let mut bytes: usize = self.undo.iter().map(|(text, _)| text.len() + 32).sum();
        while bytes > MAX_UNDO && self.undo.len() > 1 {
            bytes -= self.undo.remove(0).0.len() + 32;
        }
    }

    fn erase(&mut self, from: usize, to: usize, edit: Edit) {
        if from >= to {
            return;
        }
        self.remember(edit);
        self.text.replace_range(from..to, "");
        self.at = self.ceiling(from);
    }

    fn kill(&mut self, from: usize, to: usize) {
        let Some(cut) = self.text.get(from..to).filter(|cut| !cut.is_empty()) else { return };
        let cut = cut.to_owned();
        let goes_on = self.last == Edit::Killing;
        match (goes_on, to == self.at) {
            (false, _) => self.killed = cut,
            (true, true) => self.killed.insert_str(0, &cut),
            (true, false) => self.killed.push_str(&cut),
        }
        self.erase(from, to, Edit::Killing);
    }

    fn line_start(&self) -> usize {
        self.text.get(..self.at).and_then(|it| it.rfind('\n')).map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        let rest = self.text.get(self.at..).and_then(|it| it.find('\n'));
        rest.map_or(self.text.len(), |at| self.at + at)
    }

    fn column(&self) -> usize {
        let line = self.text.get(self.line_start()..self.at).unwrap_or_default();
        line.graphemes(true).map(|grapheme| columns(&shown(grapheme))).sum()
    }

    fn go_to_column(&mut self, start: usize, column: usize) {
        self.last = Edit::Nothing;
        let line = self.text.get(start..).unwrap_or_default();
        let line = line.split('\n').next().unwrap_or_default();
        let (mut at, mut used) = (start, 0);
        for grapheme in line.graphemes(true) {
            used += columns(&shown(grapheme));
            if used > column {
                break;
            }
            at += grapheme.len();
        }
        self.at = at;
    }

    /// Where the grapheme before a place begins.
    fn before(&self, at: usize) -> usize {
        let near = self.text.floor_char_boundary(at.saturating_sub(256));
        let text = self.text.get(near..at).unwrap_or_default();
        text.grapheme_indices(true).next_back().map_or(0, |(start, _)| near + start)
    }

    /// Where the grapheme behind a place ends.
    fn after(&self, at: usize) -> usize {
        let text = self.text.get(at..).unwrap_or_default();
        at + text.graphemes(true).next().map_or(0, str::len)
    }

    /// The next place between two graphemes.
    fn ceiling(&self, at: usize) -> usize {
        let mut start = self.text.get(..at).and_then(|it| it.rfind('\n')).map_or(0, |at| at + 1);
        start = start.max(self.text.floor_char_boundary(at.saturating_sub(256)));
        while start < at {
            start = self.after(start);
        }
        start
    }

    fn word_before(&self) -> usize {
        let text = self.text.get(..self.at).unwrap_or_default();
        let mut words = text.split_word_bound_indices().rev();
        words.find(|(_, word)| is_word(word)).map_or(0, |(at, _)| at)
    }

    fn word_after(&self) -> usize {
        let text = self.text.get(self.at..).unwrap_or_default();
        let mut words = text.split_word_bound_indices();
        let word = words.find(|(_, word)| is_word(word));
        word.map_or(self.text.len(), |(at, word)| self.at + at + word.len())
    }
}

impl Layout {
    /// At most so many rows, the cursor's among them.
    fn fitted(mut self, most: usize) -> Self {
        if self.rows.len() <= most {
            return self;
        }
        let first = (self.row + 1).saturating_sub(most).max(self.row.saturating_sub(most / 2));
        let first = first.min(self.rows.len() - most);
        let last = first + most;
        self.above |= first > 0;
        self.below |= last < self.rows.len();
        self.rows = self.rows.drain(first..last).collect();
        self.row -= first;
        self
    }
}

fn is_word(word: &str) -> bool {
    word.chars().any(char::is_alphanumeric)
}

/// A grapheme as it is shown.
fn shown(grapheme: &str) -> String {
    if grapheme == "\t" { "    ".to_owned() } else { inert(grapheme).into_owned() }
}

/// What may be typed or pasted: line ends of one kind, and no control characters but those and tabs.
fn clean(typed: &str) -> String {
    let typed = typed.replace("\r\n", "\n").replace('\r', "\n");
    typed.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text with a bar where the cursor stands.
    fn told(editor: &Editor) -> String {
        let (before, after) = editor.text.split_at(editor.at);
        format!("{before}|{after}")
    }

    fn typed(text: &str) -> Editor {
        let mut editor = Editor::new();
        editor.insert(text);
        editor
    }

    #[test]
    fn graphemes_are_moved_over_and_erased_whole() {
        let mut editor = typed("e\u{301}👩\u{200d}🚀日");
        editor.left();
        editor.left();
        assert_eq!(told(&editor), "e\u{301}|👩\u{200d}🚀日");
        editor.delete();
        assert_eq!(told(&editor), "e\u{301}|日");
        editor.backspace();
        assert_eq!(told(&editor), "|日");
        editor.backspace();
        editor.right();
        editor.right();
        assert_eq!(told(&editor), "日|");
    }

    #[test]
    fn words_are_moved_over_cut_and_put_back() {
        let mut editor = typed("fix the parse_config() bug");
        editor.word_left();
        editor.word_left();
        assert_eq!(told(&editor), "fix the |parse_config() bug");
        editor.word_right();
        assert_eq!(told(&editor), "fix the parse_config|() bug");
        editor.kill_word_left();
        assert_eq!(told(&editor), "fix the |() bug");
        editor.home();
        editor.yank();
        assert_eq!(told(&editor), "parse_config|fix the () bug");
        editor.kill_to_end();
        assert_eq!(told(&editor), "parse_config|");
        editor.kill_to_start();
        editor.yank();
        assert_eq!(told(&editor), "parse_configfix the () bug|", "what is cut in a row is one");
        editor.kill_to_blank();
        assert_eq!(told(&editor), "parse_configfix the () |");
    }

    #[test]
    fn a_text_of_many_lines_is_walked_by_column() {
        let mut editor = typed("a long line\n日本\nend here");
        assert!(editor.up());
        assert_eq!(told(&editor), "a long line\n日本|\nend here");
        assert!(editor.up());
        assert_eq!(told(&editor), "a lo|ng line\n日本\nend here");
        assert!(!editor.up());
        editor.end();
        assert!(editor.down() && editor.down() && !editor.down());
        editor.home();
        assert_eq!(told(&editor), "a long line\n日本\n|end here");
        editor.home();
        assert_eq!(editor.at(), 0);
        editor.end();
        editor.end();
        assert_eq!(editor.at(), editor.text().len());
    }

    #[test]
    fn edits_are_taken_back_and_done_again() {
        let mut editor = Editor::new();
        "hello".chars().for_each(|c| editor.insert(&c.to_string()));
        editor.insert(" ");
        "you".chars().for_each(|c| editor.insert(&c.to_string()));
        editor.undo();
        assert_eq!(editor.text(), "hello ");
        editor.undo();
        editor.undo();
        editor.undo();
        assert_eq!(editor.text(), "");
        editor.redo();
        assert_eq!(editor.text(), "hello");
        editor.transpose();
        assert_eq!(editor.text(), "helol");
    }

    #[test]
    fn what_is_pasted_is_one_text_without_anything_that_acts() {
        let editor = typed("a\r\nb\rc\u{1b}[201~\u{7}\td\u{9b}");
        assert_eq!(editor.text(), "a\nb\nc[201~\td");
        let mut editor = typed(&"x".repeat(MAX_TEXT + 5));
        assert_eq!(editor.text().len(), MAX_TEXT);
        editor.insert("y");
        assert_eq!(editor.text().len(), MAX_TEXT);
    }

    #[test]
    fn the_shown_part_holds_the_cursor() {
        let mut editor = typed("one two three\nfour");
        let layout = editor.layout(8, 5);
        assert_eq!(layout.rows, ["one two ", "three", "four"]);
        assert_eq!((layout.row, layout.before.as_str()), (2, "four"));
        let layout = editor.layout(4, 2);
        assert_eq!((layout.rows.len(), layout.above, layout.below), (2, true, false));
        assert_eq!(layout.rows[layout.row], layout.before);
        editor.home();
        editor.home();
        let layout = editor.layout(8, 2);
        assert_eq!((layout.row, layout.before.as_str(), layout.below), (0, "", true));
    }

    #[test]
    fn a_huge_paste_is_laid_out_around_the_cursor_only() {
        let mut editor = typed(&"a line of text\n".repeat(60_000));
        let layout = editor.layout(80, 10);
        assert_eq!((layout.rows.len(), layout.row), (10, 9));
        editor.home();
        editor.home();
        assert_eq!(editor.layout(80, 10).row, 0);
    }

    #[derive(Debug, Clone)]
    enum Key {
        Type(String),
        Do(usize),
    }

    fn keys() -> impl Strategy<Value = Vec<Key>> {
        let letters = "[ab \n_日]|e\u{301}|\u{301}|🦀|👩\u{200d}🚀|\u{200d}|א";
        let key = prop_oneof![letters.prop_map(Key::Type), (0_usize..20).prop_map(Key::Do)];
        prop::collection::vec(key, 0..60)
    }

    proptest! {
        #[test]
        fn no_sequence_of_keys_leaves_the_cursor_inside_a_grapheme(keys in keys(), room in 2_usize..20) {
            let mut editor = Editor::new();
            let acts: [fn(&mut Editor); 20] = [
                Editor::left, Editor::right, Editor::word_left, Editor::word_right, Editor::home,
                Editor::end, |it| _ = it.up(), |it| _ = it.down(), Editor::backspace,
                Editor::delete, Editor::kill_word_left, Editor::kill_word_right,
                Editor::kill_to_blank, Editor::kill_to_start, Editor::kill_to_end, Editor::yank,
                Editor::transpose, Editor::undo, Editor::redo, |it| it.set("x日"),
            ];
            for key in keys {
                match key {
                    Key::Type(text) => editor.insert(&text),
                    Key::Do(number) => acts[number](&mut editor),
                }
                let mut ends = vec![0];
                ends.extend(editor.text.grapheme_indices(true).map(|(at, it)| at + it.len()));
                prop_assert!(ends.contains(&editor.at), "{}", told(&editor));
                let layout = editor.layout(room, 4);
                prop_assert!(layout.rows.len() <= 4 && layout.row < layout.rows.len());
                prop_assert!(layout.rows[layout.row].starts_with(&layout.before), "{layout:?}");
            }
        }
    }
}
