//! The conversation where nothing can be drawn: a dumb terminal, or an output that is no terminal. Line by line.

use std::io::{self, Write as _};

use fluffy_base::is_blank;
use fluffy_workflow::{Access, Mode};

use super::app::Lookup;
use super::command::{Misread, Verb, is_command, manual, parse};
use super::hands::{Home, Manner};
use crate::commands::run::{self, RunRequest, Stage, drive, watched};
use crate::commands::session;
use crate::explain::{CANCELLED, CliError, DONE};
use crate::inert::inert;
use crate::interrupt::Stop;
use crate::lines::{Line, read_line};
use crate::output::Output;
use crate::review::Said;
use crate::wire::Act;

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
}

/// Talks line by line.
pub(super) fn run(
    home: Home,
    manner: Manner,
    task: Task,
    output: &mut Output,
) -> Result<u8, CliError> {
    let stop = Stop::listen()?;
    let mut plain = Plain { home, manner, task, output, stop };
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
            Ok(typed) => self.command(typed.verb, typed.argument),
            Err(Misread { why, fix }) => {
                self.output.notice(format!("ERROR: this is no command\nReason: {why}\nFix: {fix}"));
                Ok(Next::Again)
            }
        }
    }

    fn send(&mut self, text: &str) -> Result<(), CliError> {
        let Manner { choice, caps } = self.manner.clone();
        let Task { mode, access, .. } = self.task;
        let pins = self.task.pins.clone();
        let request = RunRequest { task: text.to_owned(), mode, access, pins, choice, caps };
        let (place, environment) = (self.home.place, self.home.environment);
        let manner = run::Manner { json: false, said: Said::Nothing, stage: Stage::Stderr };
        watched(manner, environment, &self.stop, &|watched| {
            drive(&request, place, environment, watched)
        })?;
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
            Verb::Approve
            | Verb::Reject
            | Verb::Cancel
            | Verb::Verbose
            | Verb::Conversation
            | Verb::Clear => {
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
