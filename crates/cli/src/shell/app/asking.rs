//! Questions to the person, and their keys.

use std::sync::mpsc::Sender;

use super::{App, SEEN_MS, look};
use crate::review::{Asked, Reply};
use crate::shell::surface::{Style, painted};

/// How many rows of a change are shown before the rest is asked for.
const CHANGE_SHOWN: usize = 40;

/// A question that waits for its answer.
pub(super) struct Open {
    asked: Asked,
    reply: Sender<Reply>,
    since_ms: u64,
    left_out: usize,
}

/// What a key answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
    Page,
}

impl App {
    pub(super) fn asked(&mut self, asked: Asked, reply: Sender<Reply>) {
        let (rows, left_out) = asked.rows(&look(&self.stage), CHANGE_SHOWN);
        rows.iter().for_each(|row| self.stage.tell(row));
        self.open = Some(Open { asked, reply, since_ms: self.now(), left_out });
    }

    /// Whether a key answers; it does not while something is typed, nor before the question could be seen.
    pub(super) fn answer_of(&self, key: char) -> Option<Answer> {
        let open = self.open.as_ref()?;
        let is_seen = self.now().saturating_sub(open.since_ms) >= SEEN_MS;
        if open.asked.phrase().is_some() || !self.stage.editor.is_empty() || !is_seen {
            return None;
        }
        match key {
            'y' | 'Y' => Some(Answer::Yes),
            'n' | 'N' => Some(Answer::No),
            'd' | 'D' => Some(Answer::Page),
            _ => None,
        }
    }

    pub(super) fn answer(&mut self, answer: Answer) {
        match answer {
            Answer::Yes => self.reply(Reply::Typed { yes: true, phrase: None }),
            Answer::No => self.reply(Reply::Typed { yes: false, phrase: None }),
            Answer::Page => {
                let text = self.open.as_ref().map(|open| open.asked.whole());
                self.page("the change", text.unwrap_or_default());
            }
        }
    }

    /// What a command says to the question; nothing is asked where there is none.
    pub(super) fn answer_by_command(&mut self, yes: bool) {
        match self.open.as_ref().map(|open| open.asked.phrase().map(str::to_owned)) {
            None => self.stage.tell_error(
                "there is nothing to answer",
                "no question is open",
                "wait until one is asked",
            ),
            Some(Some(phrase)) if yes => self.stage.tell_error(
                "this is not agreed to by a command",
                "a phrase is asked for",
                &format!("type `{phrase}` and press Enter"),
            ),
            Some(_) => self.reply(Reply::Typed { yes, phrase: None }),
        }
    }

    /// Whether a phrase is asked for, which is typed as a line.
    pub(super) fn wants_phrase(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.asked.phrase().is_some())
    }

    pub(super) fn reply(&mut self, reply: Reply) {
        if let Some(open) = self.open.take() {
            // Who does not wait any more was answered for already.
            let _late = open.reply.send(reply);
        }
    }

    /// The question's keys.
    pub(super) fn question(&self) -> Vec<String> {
        let Some(open) = &self.open else { return Vec::new() };
        let text = if let Some(phrase) = open.asked.phrase() {
            format!("? to agree, type `{phrase}`; /reject refuses")
        } else if self.stage.editor.is_empty() {
            let more = match open.left_out {
                0 => "d pages it".to_owned(),
                rows => format!("d pages all of it ({rows} more rows)"),
            };
            format!("? agree?  y yes, once · n no · {more}")
        } else {
            "? agree?  /approve or /reject, or clear the line for y and n".to_owned()
        };
        vec![painted(Style::CAUTION.bold(), &text, self.stage.colour())]
    }
}
