//! `fluffy` at a terminal: a conversation, of which every message is governed work.
//!
//! One thread draws. Keys, events of the work, questions and what was looked up reach it through one channel, so that a token
//! or a letter is on the screen as soon as it is there; nothing is polled. Finished output scrolls up as ordinary lines; below
//! it a small region is drawn again where it changed.
//!
//! **Invariant.** Nothing is decided here: see [`crate::client`].

mod app;
mod command;
mod complete;
mod hands;
mod history;
mod keys;
mod plain;
mod surface;
mod tty;

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crossterm::event::{Event as Input, read};
use fluffy_base::SystemClock;
use fluffy_workflow::{Access, Mode};

pub(crate) use self::command::manual;

use self::app::{App, Effect, Message, Setup, TICK_MS};
use self::hands::{Hands, Home, Manner};
use self::history::History;
use self::surface::Screen;
use self::tty::{Tty, write};
use crate::args::{CapArgs, ChatArgs, ModeName, TaskArgs};
use crate::commands::run::Caps;
use crate::environment::Environment;
use crate::explain::{CANCELLED, CliError, DONE};
use crate::interrupt;
use crate::output::Output;
use crate::place::{Place, private_directory};
use crate::providers::Choice;
use crate::settings::Settings;

/// How much waits to be drawn before whoever sends it waits, too.
const QUEUE: usize = 1024;
/// How much is taken in before it is drawn.
const AT_ONCE: usize = 256;
/// How long what is under way may take to end when the person leaves.
const FAREWELL: Duration = Duration::from_secs(3);

/// What was typed with the command.
pub(crate) struct Wanted<'a> {
    pub(crate) provider: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
    pub(crate) mode: Option<Mode>,
    pub(crate) access: Access,
    pub(crate) pins: &'a [String],
    pub(crate) caps: &'a CapArgs,
}

impl<'a> Wanted<'a> {
    /// What `fluffy` was given, without a task.
    pub(crate) fn of_task(args: &'a TaskArgs) -> Self {
        Self {
            provider: args.provider.as_deref(),
            model: args.model.as_deref(),
            mode: args.mode.map(ModeName::mode),
            access: if args.read_only { Access::ReadOnly } else { Access::Write },
            pins: &args.pins,
            caps: &args.caps,
        }
    }

    /// What `fluffy chat` was given, without a message.
    pub(crate) fn of_chat(args: &'a ChatArgs) -> Self {
        Self {
            provider: args.provider.as_deref(),
            model: args.model.as_deref(),
            mode: None,
            access: Access::Write,
            pins: &[],
            caps: &args.caps,
        }
    }
}

/// Begins a conversation, and gives the exit code when it is over.
pub(crate) fn run(
    place: Place,
    environment: &'static Environment,
    settings: Settings,
    wanted: Wanted<'_>,
    output: &mut Output,
) -> Result<u8, CliError> {
    let choice = Choice::typed(wanted.provider, wanted.model)?;
    let settings = settings.typed("mode", wanted.mode.map(Mode::name))?;
    let mode = settings.mode(false)?;
    let caps = Caps::of(wanted.caps, settings)?;
    let (access, pins) = (wanted.access, wanted.pins.to_vec());
    let manner = Manner { choice, caps };
    // It is needed as long as the program runs, by threads that nobody waits for.
    let place: &'static Place = Box::leak(Box::new(place));
    let home = Home { place, environment };
    if environment.dumb_terminal || !io::stdout().is_terminal() {
        return plain::run(home, manner, plain::Task { mode, access, pins }, output);
    }
    let (post, messages) = sync_channel(QUEUE);
    listen_for_signals(&post)?;
    private_directory(place.layout().dir())?;
    let history = History::load(place.layout().dir().join("history"));
    let size = crossterm::terminal::size()
        .map_or((80, 24), |(width, height)| (width.into(), height.into()));
    let tty = Tty::enter()?;
    listen_for_keys(post.clone())?;
    let setup = Setup {
        size,
        colour: !environment.no_color,
        mode,
        access,
        pins,
        history,
        clock: Arc::new(SystemClock),
    };
    let hands = Hands::new(home, manner, post);
    let (app, screen) = (App::new(setup), Screen::default());
    let mut shell = Shell { app, screen, tty, hands, messages, hung_up: false };
    shell.greet();
    Ok(shell.talk()?)
}

/// The end of the terminal, a polite kill, and going on after a stop.
fn listen_for_signals(post: &SyncSender<Message>) -> Result<(), CliError> {
    let (hangup, resumed) = (post.clone(), post.clone());
    interrupt::whenever(libc::SIGCONT, move || {
        let _gone = resumed.send(Message::Resumed);
    })?;
    interrupt::instead(move || {
        let _gone = hangup.send(Message::Hangup);
    })?;
    Ok(())
}

fn listen_for_keys(post: SyncSender<Message>) -> io::Result<()> {
    let listen = move || {
        while let Ok(input) = read() {
            if post.send(Message::Input(input)).is_err() {
                return;
            }
        }
        let _gone = post.send(Message::Hangup);
    };
    thread::Builder::new().name("keys".to_owned()).spawn(listen)?;
    Ok(())
}

struct Shell {
    app: App,
    screen: Screen,
    tty: Tty,
    hands: Hands,
    messages: Receiver<Message>,
    /// Whether it is not the person who leaves.
    hung_up: bool,
}

impl Shell {
    fn greet(&mut self) {
        let version = env!("CARGO_PKG_VERSION");
        self.app
            .greet(&format!("fluffy {version}  what is to be done? /help lists commands and keys"));
        self.hands.gather();
    }

    /// Until the person leaves; gives the exit code.
    fn talk(&mut self) -> io::Result<u8> {
        loop {
            self.draw()?;
            let first = match self.app.is_turning() {
                true => self.messages.recv_timeout(Duration::from_millis(TICK_MS)),
                false => self.messages.recv().map_err(|_gone| RecvTimeoutError::Disconnected),
            };
            let mut next = match first {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(DONE),
            };
            let mut taken = 0;
            while let Some(message) = next {
                if self.take(message)? {
                    return self.leave();
                }
                taken += 1;
                next = if taken < AT_ONCE { self.messages.try_recv().ok() } else { None };
            }
        }
    }

    /// Something happened; whether it is the end.
    fn take(&mut self, message: Message) -> io::Result<bool> {
        let resized = match &message {
            Message::Input(Input::Resize(width, _)) => Some(usize::from(*width)),
            _ => None,
        };
        if let Some(width) = resized {
            self.screen.resized(width);
        }
        if matches!(message, Message::Resumed) {
            self.tty.take()?;
            self.screen.forget();
        }
        self.hung_up |= matches!(message, Message::Hangup);
        let ended = matches!(message, Message::Ended(_));
        let effects = self.app.on(message);
        if ended {
            self.hands.gather();
        }
        for effect in effects {
            match effect {
                Effect::Turn(work) => self.hands.turn(work),
                Effect::Steer(act) => self.hands.steer(act),
                Effect::Act { session, act } => self.hands.act(session, act),
                Effect::Look(lookup) => self.hands.look(lookup),
                Effect::Cancel => self.hands.cancel(),
                Effect::Clear => self.clear()?,
                Effect::Suspend => self.suspend()?,
                Effect::Leave => return Ok(true),
            }
        }
        if resized.is_some() {
            // Before the next one: where the cursor stands is known from what was drawn.
            self.draw()?;
        }
        Ok(false)
    }

    fn draw(&mut self) -> io::Result<()> {
        self.app.refresh();
        if let Some(pager) = &self.app.pager {
            self.app.stage.hold_back();
            self.tty.page(true)?;
            let mut text = "\x1b[?2026h\x1b[?25l\x1b[?7l\x1b[H".to_owned();
            for (number, row) in pager.rows().iter().enumerate() {
                if number > 0 {
                    text.push_str("\r\n");
                }
                text.push_str(row);
                text.push_str("\x1b[K");
            }
            text.push_str("\x1b[J\x1b[?7h\x1b[?2026l");
            return write(&text);
        }
        self.tty.page(false)?;
        let text = self.app.stage.draw(&mut self.screen);
        if text.is_empty() { Ok(()) } else { write(&text) }
    }

    fn clear(&mut self) -> io::Result<()> {
        self.screen.forget();
        write("\x1b[H\x1b[2J")
    }

    fn suspend(&mut self) -> io::Result<()> {
        write(&self.screen.leave())?;
        self.tty.suspend()?;
        self.screen.forget();
        Ok(())
    }

    /// Ends what is under way, and gives the terminal back. Who was not let finish is told so by the exit code.
    fn leave(&mut self) -> io::Result<u8> {
        let is_cut_off = self.app.is_busy() && self.end_work()?;
        self.tty.page(false)?;
        write(&self.screen.leave())?;
        self.tty.give_back();
        if is_cut_off {
            write("It was ended. Go on with: fluffy session resume\n")?;
        }
        Ok(if is_cut_off || self.hung_up { CANCELLED } else { DONE })
    }

    /// Has what is under way end; whether that was before it was done.
    fn end_work(&mut self) -> io::Result<bool> {
        self.hands.cancel();
        while let Ok(message) = self.messages.recv_timeout(FAREWELL) {
            match message {
                // It may have been done in the same moment: then that is what is told.
                Message::Ended(Ok(end)) if !end.is_cancelled() => {
                    self.app.last(end);
                    return self.draw().map(|()| false);
                }
                Message::Ended(_) => break,
                told @ Message::Told(_) => drop(self.app.on(told)),
                // Whoever asked is answered by this, as nobody listens any more.
                _ => {}
            }
        }
        Ok(true)
    }
}
