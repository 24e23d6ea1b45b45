//! Follows a piece of work to its end, through lost connections and a lost kernel.

use std::sync::{Arc, Mutex, PoisonError};

use fluffy_base::{Event, Fault, FaultCode, Message, Observer, SystemWaiter, Waiter as _};
use fluffy_kernel::{CallError, ReceiveError};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Line, Link, refused, told, unanswered};
use crate::commands::run::{Done, Outcome};
use crate::drive::stored;
use crate::explain::CliError;
use crate::interrupt::Stop;
use crate::review::Answers;
use crate::wire::{
    self, Act, Attach, End, Ended, Joined, ReviewRequest, ReviewResponse, Steer, Steered,
    Submission, Told, Work,
};

/// How often a session goes on after its kernel was lost.
const RESTARTS: u32 = 3;
/// How often work is handed over before a kernel that is about to end is taken for one that does not.
const ENDING: u32 = 250;
const PAUSE_MS: u64 = 20;

/// Whoever watches and answers.
pub(crate) struct Watched<'a> {
    pub(crate) observer: &'a dyn Observer,
    pub(crate) reviewer: &'a dyn Answers,
    pub(crate) stop: &'a Stop,
}

/// Follows one piece of work.
pub(crate) struct Follower<'a> {
    link: &'a Link<'a>,
    watched: Watched<'a>,
    reach: Reach,
    run: u64,
    last: u64,
    session: Option<String>,
    restarts: u32,
    /// Whether what is under way without a driver is driven on as it is.
    joins: bool,
}

/// The connection of the moment and the run at its end, for whoever wants to end or to steer it from elsewhere.
#[derive(Clone, Default)]
pub(crate) struct Reach(Arc<Mutex<Option<(Line, u64)>>>);

impl Reach {
    fn now(&self) -> Option<(Line, u64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn cancel(&self) {
        // Where the connection is gone, the kernel ends the work by itself.
        let _asked = self.now().map(|(line, _)| line.call::<Value>(wire::CANCEL, &json!({})));
    }

    /// Does something to the session while it is under way; gives what is to be shown. Questions about it come to whoever
    /// follows, who must go on doing so.
    pub(crate) fn steer(&self, act: Act) -> Result<Vec<u8>, CliError> {
        let (line, run) = self.now().ok_or_else(nothing_under_way)?;
        let steered: Steered = line.call(wire::STEER, &Steer { run, act }).map_err(told)?;
        Ok(steered.shown.0)
    }
}

/// What follows from a message.
enum Heard {
    Nothing,
    End(End),
    Lost,
}

impl<'a> Follower<'a> {
    /// A follower of what is done by the kernel at the end of a link.
    pub(crate) fn new(link: &'a Link<'a>, watched: Watched<'a>) -> Self {
        let reach = Reach::default();
        Self { link, watched, reach, run: 0, last: 0, session: None, restarts: 0, joins: false }
    }

    /// The same, which drives a session on as it is if it is still under way: its client was lost.
    #[must_use]
    pub(crate) fn joining(mut self, joins: bool) -> Self {
        self.joins = joins;
        self
    }

    /// The same, which can be reached from elsewhere.
    #[must_use]
    pub(crate) fn reached_by(mut self, reach: &Reach) -> Self {
        self.reach = reach.clone();
        self
    }

    /// Has something done; gives its end.
    pub(crate) fn carry_out(mut self, mut submission: Submission) -> Result<End, CliError> {
        if let Work::Resume { session } | Work::Act { session, .. } | Work::Say { session, .. } =
            &submission.work
        {
            self.session = Some(session.clone());
        }
        let mut line = self.hand_over(&submission)?;
        let current = self.reach.clone();
        self.watched.stop.calls(move |_| current.cancel());
        loop {
            match self.listen(&line)? {
                Heard::End(end) => return Ok(end),
                Heard::Nothing => {}
                Heard::Lost => match self.regain(&line, &mut submission)? {
                    Regained::Line(again) => line = again,
                    Regained::End(end) => return Ok(end),
                },
            }
        }
    }

    /// Watches what another client drives; gives its end.
    pub(crate) fn watch(mut self, session: Option<String>) -> Result<End, CliError> {
        self.session = session;
        let mut line = self.link.existing()?.ok_or_else(nothing_under_way)?;
        self.look_on(&line)?;
        loop {
            match self.listen(&line)? {
                Heard::End(end) => return Ok(end),
                Heard::Nothing => {}
                Heard::Lost => line = self.look_on_again(&line)?,
            }
        }
    }

    fn look_on(&mut self, line: &Line) -> Result<(), CliError> {
        let (session, after) = (self.session.clone(), self.last);
        let attach = Attach { session, run: None, after, drive: false };
        let joined: Joined = line.call(wire::ATTACH, &attach).map_err(told)?;
        self.run = joined.run;
        Ok(())
    }

    /// Whoever drives has it go on, with another kernel if need be: then it is told from its new beginning.
    fn look_on_again(&mut self, lost: &Line) -> Result<Line, CliError> {
        let mut last = nothing_under_way();
        for _ in 0..ENDING {
            SystemWaiter.wait(PAUSE_MS, &|| false);
            let Some(line) = self.link.existing()? else { continue };
            let is_new = line.kernel != lost.kernel;
            if is_new {
                self.last = 0;
            }
            match self.look_on(&line) {
                Ok(()) => {
                    if is_new {
                        self.restarts += 1;
                        let attempt = self.restarts;
                        self.watched.observer.notice(Event::KernelRestarted { attempt });
                    }
                    return Ok(line);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Has the project's kernel take the work, another one if the first is about to end.
    fn hand_over(&mut self, submission: &Submission) -> Result<Line, CliError> {
        let mut attempt = 0;
        loop {
            let line = self.link.connect()?;
            let error = match self.join(&line).map_or_else(|| line.submit(submission), Ok) {
                Ok(joined) => {
                    (self.run, self.last) = (joined.run, 0);
                    self.now_at(&line);
                    return Ok(line);
                }
                Err(error) => error,
            };
            attempt += 1;
            // A kernel that says that it stops has taken nothing: what it takes it answers first.
            let stops = matches!(
                &error,
                CallError::Fault(fault) | CallError::Gone(ReceiveError::HungUp(fault))
                    if fault.code == FaultCode::Stopping
            );
            let lost = matches!(&error, CallError::Gone(_)) && submission.work.may_be_repeated();
            let ends = stops || lost;
            if !ends || attempt > ENDING {
                return Err(told(error));
            }
            SystemWaiter.wait(PAUSE_MS, &|| false);
        }
    }

    /// Takes a session over that is under way without a driver.
    fn join(&self, line: &Line) -> Option<Joined> {
        let session = self.session.clone().filter(|_| self.joins)?;
        let attach = Attach { session: Some(session), run: None, after: 0, drive: true };
        line.call::<Joined>(wire::ATTACH, &attach).ok().filter(|joined| joined.drives)
    }

    fn now_at(&self, line: &Line) {
        let now = Some((line.clone(), self.run));
        *self.reach.0.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// The next message, and what follows from it.
    fn listen(&mut self, line: &Line) -> Result<Heard, CliError> {
        let (method, params) = match line.client.receive(None) {
            Ok(Some(Message::Event { method, params })) => (method, params),
            Ok(_) => return Ok(Heard::Nothing),
            Err(_lost) => return Ok(Heard::Lost),
        };
        match method.as_str() {
            wire::STREAM => {
                let told: Told = understood(params)?;
                if told.run == self.run && told.seq > self.last {
                    self.last = told.seq;
                    if let Event::SessionStarted { session_id, .. } = &told.event {
                        self.session = Some(session_id.clone());
                    }
                    self.watched.observer.notice(told.event);
                }
            }
            wire::REVIEW => {
                let ReviewRequest { run, id, asked } = understood(params)?;
                let reply = self.watched.reviewer.answer(&asked);
                let response = ReviewResponse { run, id, reply };
                // An answer that is too late has been decided without it.
                let _late = line.call::<Value>(wire::REVIEWED, &response);
            }
            wire::COMPLETE | wire::ERROR => {
                let ended: Ended = understood(params)?;
                if ended.run == self.run {
                    return Ok(Heard::End(ended.end));
                }
            }
            _ => {}
        }
        Ok(Heard::Nothing)
    }

    /// The connection is gone: to the same kernel another one is made, and with a new one the session goes on.
    fn regain(&mut self, lost: &Line, submission: &mut Submission) -> Result<Regained, CliError> {
        lost.client.close();
        let line = self.link.connect()?;
        if line.kernel == lost.kernel {
            let attach =
                Attach { session: None, run: Some(self.run), after: self.last, drive: true };
            let joined: Joined = line.call(wire::ATTACH, &attach).map_err(told)?;
            if !joined.drives {
                return Err(unanswered("another client drives the session now"));
            }
            self.now_at(&line);
            if self.watched.stop.is_wanted() {
                // It did not get there before.
                let _asked = line.call::<Value>(wire::CANCEL, &json!({}));
            }
            return Ok(Regained::Line(line));
        }
        if self.watched.stop.is_wanted() {
            return Ok(Regained::End(End::Task(Outcome::Cancelled)));
        }
        if !submission.work.may_be_repeated() {
            return Err(unanswered(match &submission.work {
                Work::Skill(_) => "its process ended; what was done, `fluffy skill history` tells",
                Work::Plugin(_) => "its process ended; what was done, `fluffy plugin list` tells",
                Work::Chat(_) => {
                    "its process ended, and the conversation with it; what was done, `fluffy session list` and `fluffy skill log` tell"
                }
                _other => "its process ended; whether it was done, `fluffy session show` tells",
            }));
        }
        self.restarts += 1;
        if self.restarts > RESTARTS {
            return Err(unanswered("its process ended again and again"));
        }
        if let (Some(session), true) = (&self.session, submission.driver.is_some()) {
            let stored = stored(self.link.place, session)?;
            // What was not said before the kernel was lost is said again.
            let is_said = match &submission.work {
                Work::Say { message, .. } => {
                    stored.messages.iter().any(|known| known.id == *message)
                }
                _other => true,
            };
            if let Some(summary) = stored.done().filter(|_| is_said) {
                return Ok(Regained::End(End::Task(Outcome::Completed(Done {
                    summary: summary.to_owned(),
                    files_changed: stored.merged(),
                    turns: stored.turns.len() as u64,
                    ledger_root: String::new(),
                }))));
            }
            if is_said {
                submission.work = Work::Resume { session: session.clone() };
            }
        }
        self.watched.observer.notice(Event::KernelRestarted { attempt: self.restarts });
        self.hand_over(submission).map(Regained::Line)
    }
}

/// There is nothing to watch.
fn nothing_under_way() -> CliError {
    refused(Fault::new(FaultCode::NotFound, "no session is under way in this project"))
}

/// What became of a lost connection.
enum Regained {
    Line(Line),
    End(End),
}

fn understood<T: DeserializeOwned>(params: Value) -> Result<T, CliError> {
    serde_json::from_value(params).map_err(|error| unanswered(&error.to_string()))
}
