//! The conversation: what keys, events and questions do to what is seen, and what is to be done then.
//!
//! **Invariant.** Nothing is decided here. Messages, commands and answers become works and replies; what follows is told.
//!
//! **Invariant.** A key answers a question only if the question was seen: the line is empty, and it has been on the screen
//! for [`SEEN_MS`]. Whoever was typing when it came goes on typing.

mod asking;
mod commanding;
mod telling;
mod typing;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use crossterm::event::Event as Input;
use fluffy_base::{Clock, Event};
use fluffy_workflow::{Access, Mode};

use self::asking::Open;
use self::telling::{Status, Teller, Under};
use self::typing::{Completing, Search};
use super::complete::Words;
use super::history::History;
use super::surface::{Pager, Stage};
use crate::explain::{CliError, Explained};
use crate::render::{Look, Screen};
use crate::review::{Asked, Reply};
use crate::wire::{Act, ChatWork, End};

/// How long a question is on the screen before a key answers it.
const SEEN_MS: u64 = 400;
/// Within what time a second Ctrl-C leaves.
const TWICE_MS: u64 = 2000;
/// How often something that turns is drawn.
pub(crate) const TICK_MS: u64 = 100;

/// Something that happened.
pub(crate) enum Message {
    /// At the keyboard, or to the window.
    Input(Input),
    /// In the work.
    Told(Event),
    /// A person is asked; the answer goes back there.
    Asked(Box<Asked>, Sender<Reply>),
    /// The work came to its end.
    Ended(Result<Box<End>, CliError>),
    /// Something was done to the session that is under way.
    Steered(Act, Result<Vec<u8>, CliError>),
    /// What was looked up is there.
    Found(Result<Vec<String>, CliError>),
    /// What there is to be named.
    Words(Words),
    /// The program was suspended and goes on.
    Resumed,
    /// The terminal is gone, or somebody asked for the end.
    Hangup,
}

/// Something that is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// A message, or a yes or no to what the conversation asked, becomes work.
    Turn(ChatWork),
    /// Something is done to the session that is under way.
    Steer(Act),
    /// Something is done to the session.
    Act {
        session: Option<String>,
        act: Act,
    },
    /// Something is looked up.
    Look(Lookup),
    /// What is under way is ended.
    Cancel,
    Suspend,
    Clear,
    Leave,
}

/// What can be looked up without a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lookup {
    Status(Option<String>),
    Grants(Option<String>),
    Skills,
    Plugins,
    Sessions,
}

/// What a conversation begins with.
pub(crate) struct Setup {
    pub(crate) size: (usize, usize),
    pub(crate) colour: bool,
    pub(crate) mode: Mode,
    pub(crate) access: Access,
    pub(crate) pins: Vec<String>,
    pub(crate) history: History,
    pub(crate) clock: Arc<dyn Clock>,
}

/// A conversation.
pub(crate) struct App {
    pub(crate) stage: Stage,
    pub(crate) pager: Option<Pager>,
    clock: Arc<dyn Clock>,
    history: History,
    words: Words,
    completing: Option<Completing>,
    search: Option<Search>,
    teller: Teller,
    status: Status,
    under: Option<Under>,
    open: Option<Open>,
    waiting: VecDeque<String>,
    mode: Mode,
    access: Access,
    pins: Vec<String>,
    session: Option<String>,
    verbose: bool,
    /// When Ctrl-C was pressed last with nothing to clear.
    interrupted_ms: Option<u64>,
    effects: Vec<Effect>,
}

impl App {
    /// A new conversation.
    pub(crate) fn new(setup: Setup) -> Self {
        let (width, height) = setup.size;
        let stage = Stage::new(width, height, setup.colour);
        let look = look(&stage);
        Self {
            stage,
            pager: None,
            history: setup.history,
            words: Words::default(),
            completing: None,
            search: None,
            teller: Teller::new(look, Arc::clone(&setup.clock)),
            status: Status::new(setup.mode),
            under: None,
            open: None,
            waiting: VecDeque::new(),
            mode: setup.mode,
            access: setup.access,
            pins: setup.pins,
            session: None,
            verbose: false,
            interrupted_ms: None,
            effects: Vec::new(),
            clock: setup.clock,
        }
    }

    /// Something happened; gives what is to be done then.
    pub(crate) fn on(&mut self, message: Message) -> Vec<Effect> {
        match message {
            Message::Input(Input::Key(key)) => self.key(key),
            Message::Input(Input::Paste(text)) => self.paste(&text),
            Message::Input(Input::Resize(width, height)) => {
                self.resize(width.into(), height.into())
            }
            Message::Input(_) => {}
            Message::Told(event) => self.told(event),
            Message::Asked(asked, reply) => self.asked(*asked, reply),
            Message::Ended(end) => self.ended(end),
            Message::Steered(act, Ok(shown)) => self.acted(Some(&act), &shown),
            Message::Steered(_, Err(error)) => self.fail(&error),
            Message::Found(found) => self.found(found),
            Message::Words(words) => self.words = words,
            Message::Resumed => {}
            Message::Hangup => self.effects.push(Effect::Leave),
        }
        std::mem::take(&mut self.effects)
    }

    /// The work came to its end when the person had left already: nothing is sent after it.
    pub(crate) fn last(&mut self, end: Box<End>) {
        self.waiting.clear();
        self.ended(Ok(end));
    }

    /// Whether something turns, so that it has to be drawn again soon.
    pub(crate) fn is_turning(&self) -> bool {
        self.under.is_some() || self.interrupted_ms.is_some()
    }

    /// Whether something is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.under.is_some()
    }

    /// Brings everything that is seen up to date.
    pub(crate) fn refresh(&mut self) {
        let now = self.now();
        if self.interrupted_ms.is_some_and(|at| now.saturating_sub(at) > TWICE_MS) {
            self.interrupted_ms = None;
        }
        self.stage.activity = self.activity(now);
        self.stage.status = self.status_line();
        self.stage.prompt = self.prompt();
        self.stage.notes = self.notes(now);
        self.stage.menu = self.menu();
    }

    /// Greets whoever begins.
    pub(crate) fn greet(&mut self, text: &str) {
        self.stage.tell(text);
    }

    /// Tells an error of ours: what, why and how to go on.
    pub(crate) fn fail(&mut self, error: &CliError) {
        self.explain(&error.explained());
    }

    fn explain(&mut self, explained: &Explained) {
        let Explained { what, why, fix, .. } = explained;
        self.stage.tell_error(what, why, fix);
    }

    fn now(&self) -> u64 {
        self.clock.now_ms()
    }

    fn resize(&mut self, width: usize, height: usize) {
        self.stage.resize(width, height);
        self.teller.fit(look(&self.stage));
        if let Some(pager) = &mut self.pager {
            pager.resize(width, height);
        }
    }

    /// Pages a text.
    fn page(&mut self, title: &str, text: String) {
        let mut pager = Pager::new(title, text, telling::diff_style, self.stage.colour());
        let (width, height) = self.stage.size();
        pager.resize(width, height);
        self.pager = Some(pager);
    }
}

/// What can be shown beside the bar.
fn look(stage: &Stage) -> Look {
    Look { colour: stage.colour(), screen: Some(Screen::Columns(stage.told_width())) }
}

#[cfg(test)]
mod tests;
