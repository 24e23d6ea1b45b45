//! Questions to the person, and their keys: of a rule in the middle of the work, or of the conversation before it.

use std::sync::mpsc::Sender;

use fluffy_kernel::Scope;

use super::{App, Effect, SEEN_MS, look};
use crate::review::{Asked, Reply};
use crate::shell::surface::Style;
use crate::wire::ChatWork;

/// How many rows of a change are shown before the rest is asked for.
const CHANGE_SHOWN: usize = 40;

/// A question that waits for its answer.
pub(super) struct Open {
    about: About,
    since_ms: u64,
}

/// What is asked.
enum About {
    /// Whether a call may be made.
    Call {
        asked: Box<Asked>,
        reply: Sender<Reply>,
        left_out: usize,
        /// Whether words for the model are being typed.
        wording: bool,
    },
    /// Whether what was planned may be done.
    Plan { pending: String },
}

/// What a key answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Yes(Scope),
    No,
    /// No, with words for the model.
    Words,
    Page,
}

impl App {
    pub(super) fn asked(&mut self, asked: Asked, reply: Sender<Reply>) {
        let (rows, left_out) = asked.rows(&look(&self.stage), CHANGE_SHOWN);
        rows.iter().for_each(|row| self.stage.tell(row));
        let about = About::Call { asked: Box::new(asked), reply, left_out, wording: false };
        self.open = Some(Open { about, since_ms: self.now() });
    }

    /// The conversation asks before it does something.
    pub(super) fn asked_before(&mut self, pending: String) {
        self.open = Some(Open { about: About::Plan { pending }, since_ms: self.now() });
    }

    /// Under which question a message was typed, if the question could be seen before.
    pub(super) fn answers(&mut self) -> Option<String> {
        let now = self.now();
        let open = self.open.take_if(|open| matches!(open.about, About::Plan { .. }))?;
        match open.about {
            About::Plan { pending } if now.saturating_sub(open.since_ms) >= SEEN_MS => {
                Some(pending)
            }
            About::Plan { .. } | About::Call { .. } => None,
        }
    }

    /// Whether a key answers; it does not while something is typed, nor before the question could be seen.
    pub(super) fn answer_of(&self, key: char) -> Option<Answer> {
        let open = self.open.as_ref()?;
        let is_seen = self.now().saturating_sub(open.since_ms) >= SEEN_MS;
        if !self.stage.editor.is_empty() || !is_seen {
            return None;
        }
        match &open.about {
            About::Plan { .. } => match key {
                'y' | 'Y' => Some(Answer::Yes(Scope::Once)),
                'n' | 'N' => Some(Answer::No),
                _ => None,
            },
            About::Call { asked, wording, .. } if asked.phrase().is_some() || *wording => None,
            About::Call { asked, .. } => match key {
                'y' | 'Y' => Some(Answer::Yes(Scope::Once)),
                's' | 'S' => Some(Answer::Yes(Scope::Session)),
                'r' | 'R' => Some(Answer::Yes(Scope::Rule)),
                'n' | 'N' => Some(Answer::No),
                'm' | 'M' => Some(Answer::Words),
                'd' | 'D' => Some(Answer::Page),
                _ => None,
            }
            .filter(|answer| match answer {
                Answer::Yes(scope) => asked.scopes.contains(scope),
                Answer::No | Answer::Words | Answer::Page => true,
            }),
        }
    }

    pub(super) fn answer(&mut self, answer: Answer) {
        if let Some(Open { about: About::Plan { pending }, .. }) = &self.open {
            let pending = pending.clone();
            let (what, work) = match answer {
                Answer::Yes(_) => ("doing it", ChatWork::Confirm { pending }),
                _ => ("leaving it", ChatWork::Decline { pending }),
            };
            self.open = None;
            self.begins(what, None);
            return self.effects.push(Effect::Turn(work));
        }
        match answer {
            Answer::Yes(scope) => self.reply(Reply::yes(scope)),
            Answer::No => self.reply(Reply::no(None)),
            Answer::Words => self.word(true),
            Answer::Page => {
                if let Some(Open { about: About::Call { asked, .. }, .. }) = &self.open {
                    let text = asked.whole();
                    self.page("what is asked", text);
                }
            }
        }
    }

    /// What a command says to the question; nothing is said where there is none.
    pub(super) fn answer_by_command(&mut self, yes: bool, words: &str) {
        match self.open.as_ref().map(|open| &open.about) {
            None => self.stage.tell_error(
                "there is nothing to answer",
                "no question is open",
                "wait until one is asked",
            ),
            Some(About::Call { asked, .. }) if yes && asked.phrase().is_some() => {
                let fix = format!("type `{}` and press Enter", asked.phrase().unwrap_or_default());
                let what = "this is not agreed to by a command";
                self.stage.tell_error(what, "a phrase is asked for", &fix);
            }
            Some(About::Call { .. }) if yes => self.reply(Reply::yes(Scope::Once)),
            Some(About::Call { .. }) => self.reply(Reply::no(Some(words.to_owned()))),
            Some(About::Plan { .. }) if yes => self.answer(Answer::Yes(Scope::Once)),
            Some(About::Plan { .. }) => self.answer(Answer::No),
        }
    }

    /// Takes a line that belongs to the question: its phrase, or words for the model. Gives back one that does not.
    pub(super) fn answered_by_line(&mut self, text: String) -> Option<String> {
        let Some(Open { about: About::Call { asked, wording, .. }, .. }) = &self.open else {
            return Some(text);
        };
        let typed = Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        if *wording {
            self.reply(Reply::no(typed));
        } else if asked.phrase().is_some() && !text.starts_with('/') {
            let (yes, scope) = (typed.is_some(), Scope::Once);
            self.reply(Reply::Typed { yes, phrase: typed, scope, words: None });
        } else {
            return Some(text);
        }
        None
    }

    /// Whether an empty line means something to the question.
    pub(super) fn wants_line(&self) -> bool {
        let about = self.open.as_ref().map(|open| &open.about);
        about.is_some_and(|about| match about {
            About::Call { asked, wording, .. } => *wording || asked.phrase().is_some(),
            About::Plan { .. } => false,
        })
    }

    /// Whether words for the model are being typed.
    pub(super) fn is_wording(&self) -> bool {
        let about = self.open.as_ref().map(|open| &open.about);
        about.is_some_and(|about| matches!(about, About::Call { wording: true, .. }))
    }

    /// Begins to type words for the model, or does not after all.
    pub(super) fn word(&mut self, begins: bool) {
        if let Some(Open { about: About::Call { wording, .. }, .. }) = &mut self.open {
            *wording = begins;
        }
    }

    fn reply(&mut self, reply: Reply) {
        if let Some(Open { about: About::Call { reply: to, .. }, .. }) = self.open.take() {
            // Who does not wait any more was answered for already.
            let _late = to.send(reply);
        }
    }

    /// The question's keys.
    pub(super) fn question(&self) -> Vec<String> {
        let Some(open) = &self.open else { return Vec::new() };
        let text = match &open.about {
            About::Call { wording: true, .. } => {
                "? no, and the model is told: (Esc: back)".to_owned()
            }
            About::Call { asked, .. } if asked.phrase().is_some() => {
                format!(
                    "? to agree, type `{}`; /reject refuses",
                    asked.phrase().unwrap_or_default()
                )
            }
            _ if !self.stage.editor.is_empty() => {
                "? agree?  /approve or /reject, or clear the line for single keys".to_owned()
            }
            About::Plan { .. } => "? agree?  y yes · n no".to_owned(),
            About::Call { asked, left_out, .. } => {
                let mut keys = vec!["y once".to_owned()];
                if asked.scopes.contains(&Scope::Session) {
                    keys.push("s for this session".to_owned());
                }
                if asked.scopes.contains(&Scope::Rule) {
                    keys.push("r as a rule".to_owned());
                }
                keys.extend(["n no".to_owned(), "m no, with words".to_owned()]);
                keys.push(match left_out {
                    0 => "d page it".to_owned(),
                    rows => format!("d page it ({rows} more rows)"),
                });
                format!("? agree?  {}", keys.join(" · "))
            }
        };
        self.stage.broken(Style::CAUTION.bold(), &text)
    }
}
