//! Keys: editing, completion, earlier messages, paging.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{App, Effect, TWICE_MS};
use crate::shell::complete::common;
use crate::shell::keys::{Action, Paged, action, paged};
use crate::shell::surface::{Menu, Style, cut, painted};

/// How many messages that wait are shown.
const WAITING_SHOWN: usize = 3;

/// Words that a word may become.
pub(super) struct Completing {
    from: usize,
    words: Vec<(String, String)>,
    chosen: Option<usize>,
}

/// Earlier messages are searched; what is typed is looked for.
pub(super) struct Search {
    draft: String,
    found: Option<(usize, String)>,
}

impl App {
    pub(super) fn key(&mut self, key: KeyEvent) {
        if let Some(pager) = &mut self.pager {
            match paged(key, pager.is_typing()) {
                Paged::Press(page) => pager.press(page),
                Paged::Leave => self.pager = None,
                Paged::Nothing => {}
            }
            return;
        }
        let plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        if let (KeyCode::Char(c), true, None) = (key.code, plain, &self.search)
            && let Some(answer) = self.answer_of(c)
        {
            return self.answer(answer);
        }
        let Some(action) = action(key) else { return };
        if action != Action::Interrupt {
            self.interrupted_ms = None;
        }
        if self.search.is_some() && self.search_key(action) {
            return;
        }
        if !matches!(action, Action::Complete | Action::CompleteBack) {
            self.completing = None;
        }
        self.act_on(action);
    }

    pub(super) fn paste(&mut self, text: &str) {
        if self.pager.is_some() {
            return;
        }
        self.completing = None;
        self.history.rest();
        self.stage.editor.insert(text);
        self.searched();
    }

    fn act_on(&mut self, action: Action) {
        let editor = &mut self.stage.editor;
        match action {
            Action::Insert(c) => editor.insert(c.encode_utf8(&mut [0; 4])),
            Action::Newline => editor.insert("\n"),
            Action::Left => editor.left(),
            Action::Right => editor.right(),
            Action::WordLeft => editor.word_left(),
            Action::WordRight => editor.word_right(),
            Action::Home => editor.home(),
            Action::End => editor.end(),
            Action::Backspace => editor.backspace(),
            Action::Delete => editor.delete(),
            Action::KillWordLeft => editor.kill_word_left(),
            Action::KillWordRight => editor.kill_word_right(),
            Action::KillToBlank => editor.kill_to_blank(),
            Action::KillToStart => editor.kill_to_start(),
            Action::KillToEnd => editor.kill_to_end(),
            Action::Yank => editor.yank(),
            Action::Transpose => editor.transpose(),
            Action::Undo => editor.undo(),
            Action::Redo => editor.redo(),
            Action::DeleteOrLeave if editor.is_empty() => self.effects.push(Effect::Leave),
            Action::DeleteOrLeave => editor.delete(),
            Action::Up => self.up(),
            Action::Down => self.down(),
            Action::Submit => self.submit(),
            Action::Complete => self.complete(true),
            Action::CompleteBack => self.complete(false),
            Action::Escape => self.word(false),
            Action::Search => self.begin_search(),
            Action::Clear => self.effects.push(Effect::Clear),
            Action::Interrupt => self.interrupt(),
            Action::Suspend => self.effects.push(Effect::Suspend),
        }
    }

    fn submit(&mut self) {
        let wants_line = self.wants_line();
        let editor = &mut self.stage.editor;
        let slashes = editor.text().chars().rev().take_while(|c| *c == '\\').count();
        if slashes % 2 == 1 && editor.at() == editor.text().len() {
            editor.backspace();
            editor.insert("\n");
            return;
        }
        if editor.text().trim().is_empty() && !wants_line {
            editor.take();
            return;
        }
        let text = self.stage.editor.take();
        if let Some(text) = self.answered_by_line(text.trim_end().to_owned()) {
            self.line(text);
        }
    }

    /// Ctrl-C: clears the line, or ends what is under way, or leaves if it is pressed twice.
    fn interrupt(&mut self) {
        if self.is_wording() {
            self.word(false);
            drop(self.stage.editor.take());
            return;
        }
        if !self.stage.editor.is_empty() {
            self.history.rest();
            drop(self.stage.editor.take());
            return;
        }
        let now = self.now();
        let twice = self.interrupted_ms.is_some_and(|at| now.saturating_sub(at) <= TWICE_MS);
        self.interrupted_ms = Some(now);
        if twice {
            self.effects.push(Effect::Leave);
        } else if self.is_busy() {
            self.cancel();
        }
    }

    fn up(&mut self) {
        if self.stage.editor.up() {
            return;
        }
        let typed = self.stage.editor.text().to_owned();
        if let Some(text) = self.history.older(&typed) {
            self.stage.editor.set(text);
        }
    }

    fn down(&mut self) {
        if self.stage.editor.down() {
            return;
        }
        if let Some(text) = self.history.newer() {
            self.stage.editor.set(text);
        }
    }

    fn complete(&mut self, forwards: bool) {
        if let Some(completing) = &mut self.completing {
            let count = completing.words.len();
            let next = match (completing.chosen, forwards) {
                (None, true) => 0,
                (None, false) => count - 1,
                (Some(at), true) => (at + 1) % count,
                (Some(at), false) => (at + count - 1) % count,
            };
            completing.chosen = Some(next);
            if let Some((word, _)) = completing.words.get(next) {
                self.stage.editor.replace(completing.from, word);
            }
            return;
        }
        let editor = &mut self.stage.editor;
        let found = self.words.complete(editor.text(), editor.at());
        let typed = editor.text().get(found.from..editor.at()).unwrap_or_default().to_owned();
        match found.words.as_slice() {
            [] => {}
            [(word, _)] => {
                let gap = if word.ends_with('/') { "" } else { " " };
                editor.replace(found.from, &format!("{word}{gap}"));
            }
            words => {
                let shared = common(words);
                if shared.len() > typed.len() && shared.starts_with(&typed) {
                    editor.replace(found.from, &shared);
                }
                let (from, words) = (found.from, found.words);
                self.completing = Some(Completing { from, words, chosen: None });
            }
        }
    }

    /// The words that are offered: those that are gone through, or what a command or a path may become.
    pub(super) fn menu(&self) -> Menu {
        if let Some(Completing { words, chosen, .. }) = &self.completing {
            return Menu { words: words.clone(), chosen: *chosen };
        }
        let editor = &self.stage.editor;
        let before = editor.text().get(..editor.at()).unwrap_or_default();
        let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        let is_offered =
            (word.len() == before.len() && word.starts_with('/')) || word.starts_with('@');
        if self.search.is_some() || !is_offered {
            return Menu::default();
        }
        let mut words = self.words.complete(editor.text(), editor.at()).words;
        if matches!(words.as_slice(), [(only, _)] if only == word) && !word.starts_with('/') {
            words.clear();
        }
        Menu { words, chosen: None }
    }

    fn begin_search(&mut self) {
        let draft = self.stage.editor.take();
        self.search = Some(Search { draft, found: None });
    }

    /// A key while earlier messages are searched; whether it is done with.
    fn search_key(&mut self, action: Action) -> bool {
        let Some(search) = &mut self.search else { return false };
        match action {
            Action::Insert(_) | Action::Backspace | Action::KillToStart | Action::KillToBlank => {
                self.act_on(action);
                self.searched();
                true
            }
            Action::Search => {
                let before = search.found.as_ref().map_or(self.history.len(), |(at, _)| *at);
                let wanted = self.stage.editor.text().to_owned();
                let found = self.history.find(&wanted, before);
                if let Some((at, text)) = found {
                    search.found = Some((at, text.to_owned()));
                }
                true
            }
            Action::Escape | Action::Interrupt => {
                let draft = std::mem::take(&mut search.draft);
                self.search = None;
                self.stage.editor.set(&draft);
                true
            }
            _ => {
                let text =
                    search.found.take().map_or_else(|| search.draft.clone(), |(_, text)| text);
                self.search = None;
                self.stage.editor.set(&text);
                // What was found is looked at before it is sent.
                matches!(action, Action::Submit | Action::Complete)
            }
        }
    }

    fn searched(&mut self) {
        let Some(search) = &mut self.search else { return };
        let wanted = self.stage.editor.text();
        let found = self.history.find(wanted, self.history.len());
        search.found = found.map(|(at, text)| (at, text.to_owned()));
    }

    pub(super) fn prompt(&self) -> String {
        if self.search.is_some() { "search: ".to_owned() } else { "> ".to_owned() }
    }

    /// What stands above the input.
    pub(super) fn notes(&self, now: u64) -> Vec<String> {
        let colour = self.stage.colour();
        let (width, _) = self.stage.size();
        let quiet = |text: &str| painted(Style::QUIET, &cut(text, width.saturating_sub(1)), colour);
        let one_line = |text: &str| {
            let first = text.lines().next().unwrap_or_default();
            let more = if text.lines().nth(1).is_some() { " …" } else { "" };
            crate::inert::inert(&format!("{first}{more}")).into_owned()
        };
        let mut notes: Vec<String> = Vec::new();
        for text in self.waiting.iter().take(WAITING_SHOWN) {
            notes.push(quiet(&format!("  waits: {}", one_line(text))));
        }
        if self.waiting.len() > WAITING_SHOWN {
            notes.push(quiet(&format!("  and {} more", self.waiting.len() - WAITING_SHOWN)));
        }
        notes.extend(self.question());
        if let Some(search) = &self.search {
            let found = search.found.as_ref();
            let text = found.map_or_else(|| "nothing found".to_owned(), |(_, text)| one_line(text));
            notes.push(quiet(&format!("  {text}")));
        }
        if self.interrupted_ms.is_some_and(|at| now.saturating_sub(at) <= TWICE_MS) {
            notes.push(quiet("  Ctrl-C again leaves"));
        }
        notes
    }
}
