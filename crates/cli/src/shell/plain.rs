//! The conversation where nothing can be drawn: a dumb terminal, or an output that is no terminal. Line by line.

use std::io::{self, Write as _};

use fluffy_base::is_blank;
use fluffy_workflow::{Access, Mode};
use rustix::termios::{QueueSelector, tcflush};

use super::app::Lookup;
use super::command::{Misread, Verb, is_command, manual, parse};
use super::hands::{Home, Manner};
use crate::client::{Line as Connection, Link};
use crate::commands::chat::{Turn, submission};
use crate::commands::session;
use crate::explain::{CANCELLED, CliError, DONE};
use crate::inert::inert;
use crate::interrupt::Stop;
use crate::lines::{Line, read_line};
use crate::output::Output;
use crate::review::Said;
use crate::wire::{Act, ChatWork, Say};

/// The longest message.
const MAX_LINE: usize = 1 << 20;

/// What a line asks for.
enum Next {
    Again,
    Leave,
}

/// How messages are worked on.
pub(super) struct Task {
    pub(super) mode: Mode,
    pub(super) access: Access,
    pub(super) pins: Vec<String>,
}

struct Plain<'a> {
    home: Home,
    manner: Manner,
    task: Task,
    output: &'a mut Output,
    stop: Stop,
    link: Link<'static>,
    /// As long as there is a connection, the kernel remembers the conversation.
    kept: Option<Connection>,
    /// What was asked last, by its id.
    asked: Option<String>,
    verbose: bool,
}

/// Talks line by line.
pub(super) fn run(
    home: Home,
    manner: Manner,
    task: Task,
    output: &mut Output,
) -> Result<u8, CliError> {
    let stop = Stop::listen()?;
    let link = Link::new(home.place, home.environment);
    let (kept, asked, verbose) = (None, None, false);
    let mut plain = Plain { home, manner, task, output, stop, link, kept, asked, verbose };
    let mut input = io::stdin().lock();
    loop {
        plain.output.flush()?;
        // The prompt is no part of what is written for others.
        let _unseen = write!(io::stderr(), "> ");
        match read_line(&mut input, MAX_LINE)? {
            Line::End => return Ok(DONE),
            Line::TooLong(_) => plain.output.notice("ERROR: the line is too long"),
            Line::Text(bytes) => match plain.line(&String::from_utf8_lossy(&bytes)) {
                Ok(Next::Leave) => return Ok(DONE),
                Ok(Next::Again) => {}
                Err(error) => drop(plain.output.explain(&error)),
            },
        }
        if plain.stop.is_wanted() {
            return Ok(CANCELLED);
        }
    }
}

impl Plain<'_> {
    fn line(&mut self, line: &str) -> Result<Next, CliError> {
        let line = line.trim();
        if is_blank(line) {
            return Ok(Next::Again);
        }
        if !is_command(line) {
            return self.send(line).map(|()| Next::Again);
        }
        match parse(line) {
            Ok(typed) if typed.verb == Verb::Conversation => self.send(line).map(|()| Next::Again),
            Ok(typed) => self.command(typed.verb, typed.argument),
            Err(Misread { why, fix }) => {
                self.output.notice(format!("ERROR: this is no command\nReason: {why}\nFix: {fix}"));
                Ok(Next::Again)
            }
        }
    }

    /// A line becomes a turn of the conversation.
    fn send(&mut self, text: &str) -> Result<(), CliError> {
        let Manner { choice, caps } = self.manner.clone();
        let say = Say {
            text: text.to_owned(),
            answers: self.asked.take(),
            confirmed: false,
            verbose: self.verbose,
            mode: self.task.mode,
            access: self.task.access,
            pins: self.task.pins.clone(),
            no_model: None,
        };
        let (place, environment) = (self.home.place, self.home.environment);
        let work = ChatWork::Say(Box::new(say));
        let submission = submission(place, environment, &choice, caps, work)?;
        let turn = Turn { link: &self.link, environment, stop: &self.stop, said: Said::Nothing };
        let reply = turn.for_people(submission, self.output);
        // Where there is no kernel any more, there is nothing to be remembered.
        self.kept = self.link.existing().ok().flatten();
        self.asked = reply?.pending.map(|pending| pending.id);
        if self.asked.is_some() {
            // What was typed before the question was there is no answer to it.
            let _kept = tcflush(io::stdin(), QueueSelector::IFlush);
        }
        Ok(())
    }

    fn command(&mut self, verb: Verb, argument: &str) -> Result<Next, CliError> {
        match verb {
            Verb::Quit => return Ok(Next::Leave),
            Verb::Strict => self.set_mode(Mode::Strict)?,
            Verb::Explore => self.set_mode(Mode::Explore)?,
            Verb::Debug => self.set_mode(Mode::Debug)?,
            Verb::Status | Verb::Cost => self.look(&Lookup::Status(None))?,
            Verb::Skills => self.look(&Lookup::Skills)?,
            Verb::Plugins => self.look(&Lookup::Plugins)?,
            Verb::Sessions => self.look(&Lookup::Sessions)?,
            Verb::Budget => self.act(Act::Budget)?,
            Verb::Undo => self.act(Act::Undo)?,
            Verb::Diff => self.act(Act::Diff)?,
            Verb::Pin => {
                let pins = &mut self.task.pins;
                pins.extend(Some(argument.to_owned()).filter(|path| !path.is_empty()));
                self.output.line(inert(&format!("pinned: {}", pins.join(", "))))?;
            }
            Verb::New => self.task.pins.clear(),
            Verb::Grants => self.look(&Lookup::Grants(None))?,
            Verb::Help => self.output.line(manual())?,
            Verb::Verbose => {
                self.verbose = !self.verbose;
                self.output.line(if self.verbose { "more is shown" } else { "less is shown" })?;
            }
            Verb::Approve | Verb::Reject | Verb::Cancel | Verb::Conversation | Verb::Clear => {
                self.output.notice("this terminal cannot do that: questions are answered when they are asked, and Ctrl-C ends what is under way");
            }
        }
        Ok(Next::Again)
    }

    fn set_mode(&mut self, mode: Mode) -> Result<(), CliError> {
        self.task.mode = mode;
        self.output.line(format!("your messages will be worked on in {mode} mode"))
    }

    fn look(&mut self, lookup: &Lookup) -> Result<(), CliError> {
        for line in self.home.found(lookup)? {
            self.output.line(inert(&line))?;
        }
        Ok(())
    }

    fn act(&mut self, act: Act) -> Result<(), CliError> {
        let (place, environment) = (self.home.place, self.home.environment);
        let id = session::meant(place, None)?;
        let shown = session::acted(place, environment, &id, act, &self.stop)?;
        self.output.line(inert(String::from_utf8_lossy(&shown).trim_end()))
    }
}
