//! The kernel's process as its clients see it: one project, one piece of work at a time, any number of watchers.
//!
//! **Invariant.** Nothing here decides what may happen in the project: work is carried out by sessions of the kernel, which ask
//! its rules. What is decided here is who may drive, answer and stop what is under way, by what the socket says of a peer.

mod chat;
mod install;
mod plugin;
mod run;
mod skill;
mod work;

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fluffy_base::{ClientId, Event, Fault, FaultCode, Message, Observer as _};
use fluffy_kernel::{Kernel, Peer, Service};
use fluffy_provider::MAX_TRANSCRIPT_BYTES;
use fluffy_sandbox::{Health, ImageChoice, Runtime};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::chat::Talks;
pub(crate) use self::run::Run;
use crate::commands::run::Outcome;
use crate::environment::Environment;
use crate::explain::{CliError, Explained};
use crate::interrupt::How;
use crate::pending::{LOOK, Shown};
use crate::place::Place;
use crate::policy_source;
use crate::settings::Settings;
use crate::status::Status;
use crate::wire::{
    self, Attach, Bytes, End, Joined, ReviewResponse, StatusRequest, Steer, Steered, Submission,
    Surroundings, Work,
};

/// How long the first client may take.
const FIRST: Duration = Duration::from_secs(30);

/// The kernel's process at work.
pub(crate) struct Desk {
    place: Place,
    environment: Environment,
    /// What it was started in.
    surroundings: Surroundings,
    /// What makes the sandboxes.
    runtime: Mutex<Option<Made>>,
    inside: Mutex<Inside>,
    changed: Condvar,
}

/// What makes sandboxes, of this image.
struct Made {
    of: ImageChoice,
    runtime: Arc<dyn Runtime>,
    /// Whether one was made.
    is_ready: bool,
}

#[derive(Default)]
struct Inside {
    /// What is under way, or was last: whoever lost its connection at the end still learns how it ended.
    run: Option<Arc<Run>>,
    runs: u64,
    /// Parts of transcripts that were sent ahead, by client.
    parts: HashMap<ClientId, String>,
    /// Conversations, by client.
    talks: Talks,
    peers: usize,
    had_peers: bool,
    /// Counts what happened, so that idle time is measured from the last of it.
    moves: u64,
    hurried: bool,
    stopping: bool,
}

impl Desk {
    /// A desk for the work of one project.
    pub(crate) fn new(place: Place, environment: Environment, surroundings: Surroundings) -> Self {
        let (runtime, inside, changed) = (Mutex::default(), Mutex::default(), Condvar::new());
        Self { place, environment, surroundings, runtime, inside, changed }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody was here and nothing was under way for so long, or somebody wants it to stop.
    pub(crate) fn wait_for_idleness(&self, patience: Duration) {
        let mut inside = self.inside();
        while !inside.stopping {
            let moves = inside.moves;
            if !inside.is_idle() {
                let waited = self.changed.wait_while(inside, |inside| inside.moves == moves);
                inside = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let patience = match (inside.hurried, inside.had_peers) {
                (true, _) => Duration::ZERO,
                (false, true) => patience,
                // Whoever had it started is on the way.
                (false, false) => patience.max(FIRST),
            };
            let waited = self.changed.wait_timeout_while(inside, patience, |it| it.moves == moves);
            let (after, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            inside = after;
            if timeout.timed_out() && inside.is_idle() {
                inside.stopping = true;
            }
        }
    }

    /// Nobody would start the process again: it ends as soon as it is idle.
    pub(crate) fn hurry(&self) {
        self.moved(|inside| inside.hurried = true);
    }

    /// Ends what is under way, and then the process.
    pub(crate) fn stop(&self) {
        let run = self.moved(|inside| {
            inside.stopping = true;
            inside.run.clone()
        });
        if let Some(run) = run {
            run.cancel();
        }
    }

    /// Waits until nothing is under way.
    pub(crate) fn wait_for_work(&self) {
        let inside = self.inside();
        let waited = self.changed.wait_while(inside, |inside| inside.is_busy());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Writes down what became of guests after the last work had ended.
    pub(crate) fn write_down(&self) -> Result<(), CliError> {
        if self.place.witness().untold().is_empty() {
            return Ok(());
        }
        let settings = Settings::load(&self.place, &self.environment)?;
        let kernel = Kernel::boot(crate::commands::kernel(&self.place, &settings, None)?)?;
        Ok(kernel.close()?)
    }

    /// Reads the shipped policy and tries whether sandboxes can be made, before anybody asks. Where they cannot, the first
    /// work says why.
    pub(crate) fn make_ready(&self) {
        drop(policy_source::shipped());
        drop(self.runtime());
    }

    /// What makes the sandboxes, once it can: tried once for an image. Nothing runs outside of a sandbox, so no work begins
    /// without.
    fn runtime_for(&self, run: &Run) -> Result<Arc<dyn Runtime>, End> {
        let mut shown = Shown::default();
        loop {
            let made = self.runtime().map_err(|error| End::Error(error.explained()));
            let (runtime, health) = made?;
            let Health::Pending { reason, progress } = health else { return Ok(runtime) };
            if run.stop.is_wanted() {
                return Err(End::Task(Outcome::Cancelled));
            }
            if shown.is_news(&reason, progress) {
                run.notice(Event::SandboxPending { what: reason, progress });
            }
            runtime.wait_for_progress(LOOK);
        }
    }

    /// What makes the sandboxes, and whether it can by now.
    fn runtime(&self) -> Result<(Arc<dyn Runtime>, Health), CliError> {
        let mut kept = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        let environment = self.surroundings.within(&self.environment);
        let image = self.place.image(&environment)?;
        let made = match kept.take().filter(|made| made.of == image) {
            Some(made) => made,
            None => {
                let runtime = self.place.sandboxes(&environment)?;
                Made { of: image, runtime, is_ready: false }
            }
        };
        let runtime = Arc::clone(&made.runtime);
        // What fails here is opened anew the next time.
        let health = match made.is_ready {
            true => Health::Ready { notes: Vec::new() },
            false => runtime.ping()?,
        };
        let is_ready = matches!(health, Health::Ready { .. });
        *kept = Some(Made { is_ready, ..made });
        Ok((runtime, health))
    }

    fn moved<T>(&self, change: impl FnOnce(&mut Inside) -> T) -> T {
        let mut inside = self.inside();
        inside.moves += 1;
        let result = change(&mut inside);
        drop(inside);
        self.changed.notify_all();
        result
    }

    /// Begins a piece of work that this peer drives.
    fn submit(self: &Arc<Self>, peer: &Peer, mut submission: Submission) -> Result<Joined, Fault> {
        let is_chat = matches!(submission.work, Work::Chat(_));
        let at_terminal = is_chat && peer.has_terminal();
        let (run, before, seated) = self.moved(|inside| {
            let part = inside.parts.remove(&peer.id()).unwrap_or_default();
            submission.take_transcript(part);
            if inside.stopping {
                return Err(ending("the kernel is about to end"));
            }
            let before = inside.run.clone().filter(|run| !run.is_over());
            if before.as_ref().is_some_and(|run| !submission.work.takes_over(run)) {
                return Err(busy(
                    "another session is under way in this project; watch it with: fluffy session attach",
                ));
            }
            if !submission.surroundings.fit(&self.surroundings) {
                inside.stopping = true;
                return Err(ending("the kernel was started in other surroundings"));
            }
            inside.runs += 1;
            let run = Arc::new(Run::new(inside.runs, peer));
            inside.run = Some(Arc::clone(&run));
            let seated = is_chat.then(|| inside.talks.seat(&peer.id(), at_terminal));
            Ok((run, before, seated))
        })?;
        let number = run.number;
        let desk = Arc::clone(self);
        let working = std::thread::Builder::new().name("work".to_owned()).spawn(move || {
            if let Some(before) = before {
                let urgent = Arc::clone(&before);
                run.stop.calls(move |how| urgent.end(how));
                before.end(How::Gently);
                before.wait_for_end();
            }
            let end = match desk.runtime_for(&run) {
                Ok(made) => {
                    let Desk { place, environment, .. } = &*desk;
                    work::carry_out(place, environment, made, submission, seated, &run)
                }
                Err(end) => end,
            };
            run.finish(end);
            desk.moved(|_| ());
        });
        match working {
            Ok(_) => Ok(Joined { run: number, drives: true }),
            Err(error) => {
                self.moved(|inside| inside.run = None);
                Err(Fault::new(FaultCode::Internal, &format!("no thread can be started: {error}")))
            }
        }
    }

    fn attach(&self, peer: &Peer, wanted: &Attach) -> Result<Joined, Fault> {
        let run = self.inside().run.clone();
        let fits = |run: &Arc<Run>| match (&wanted.session, wanted.run) {
            (_, Some(number)) => run.number == number,
            (Some(session), None) => run.is_of(session),
            (None, None) => !run.is_over(),
        };
        let run = run.filter(fits);
        let run = run.ok_or_else(|| Fault::new(FaultCode::NotFound, "that is not under way"))?;
        Ok(run.join(peer, wanted.after, wanted.drive))
    }

    fn part(&self, peer: &Peer, params: &Value) -> Result<(), Fault> {
        let text = params.get("text").and_then(Value::as_str);
        let text = text.ok_or_else(|| Fault::new(FaultCode::BadParams, "a part is a text"))?;
        let longest = usize::try_from(MAX_TRANSCRIPT_BYTES).unwrap_or(usize::MAX);
        self.moved(|inside| {
            let part = inside.parts.entry(peer.id()).or_default();
            if part.len().saturating_add(text.len()) > longest {
                return Err(Fault::new(FaultCode::TooLarge, "what is sent is too long"));
            }
            part.push_str(text);
            Ok(())
        })
    }

    /// What is under way and driven by this peer.
    fn driven(&self, peer: &Peer) -> Result<Arc<Run>, Fault> {
        let run = self.inside().run.clone().filter(|run| !run.is_over());
        let run = run.ok_or_else(|| Fault::new(FaultCode::NotFound, "nothing is under way"))?;
        if run.is_driven_by(peer) {
            return Ok(run);
        }
        Err(Fault::new(FaultCode::NotYours, "another client drives this session"))
    }

    /// Halts what is under way; answered when it is on disk, from a thread of its own.
    fn halt(&self, peer: &Peer, id: u64, params: &Value) -> Result<(), Fault> {
        let reason = params.get("reason").and_then(Value::as_str).map(str::to_owned);
        let reason =
            reason.ok_or_else(|| Fault::new(FaultCode::BadParams, "a halt has a reason"))?;
        let run = self.inside().run.clone();
        let halt = run.and_then(|run| run.halt());
        let halt = halt.ok_or_else(|| Fault::new(FaultCode::NotFound, "nothing is under way"))?;
        answered_apart("halt", peer, id, move || {
            let answer = halt(&reason).map(|entry| json!({ "entry": entry }));
            answer.map_err(|why| Fault::new(FaultCode::Internal, &why))
        })
    }

    /// What is under way, if it is this session's.
    fn under_way(&self, session: Option<&str>) -> Result<Arc<Run>, Fault> {
        let run = self.inside().run.clone().filter(|run| !run.is_over());
        let run = run.filter(|run| session.is_none_or(|session| run.is_of(session)));
        run.ok_or_else(|| Fault::new(FaultCode::NotFound, "that is not under way"))
    }

    /// Where what is under way stands; found out in a thread of its own, as it reads the ledger.
    fn status(self: &Arc<Self>, peer: &Peer, id: u64, params: Value) -> Result<(), Fault> {
        let wanted: StatusRequest = parsed(params)?;
        let run = self.under_way(wanted.session.as_deref())?;
        let drives = run.is_driven_by(peer);
        let desk = Arc::clone(self);
        answered_apart("status", peer, id, move || {
            let unknown = || Fault::new(FaultCode::NotFound, "its session has not begun yet");
            let session = run.session().ok_or_else(unknown)?;
            let status = Status::under_way(&desk.place, &session, &run, drives);
            let failed = |error: CliError| {
                let Explained { what, why, .. } = error.explained();
                Fault::new(FaultCode::Internal, &format!("{what}: {why}"))
            };
            status.map(|status| json!(status)).map_err(failed)
        })
    }

    /// Does something to the session that this peer drives; in a thread of its own, as a person may be asked.
    fn steer(&self, peer: &Peer, id: u64, params: Value) -> Result<(), Fault> {
        let Steer { run: number, act } = parsed(params)?;
        let run = self.driven(peer)?;
        if run.number != number {
            return Err(Fault::new(FaultCode::NotFound, "that is not under way any more"));
        }
        if !act.fits_while_under_way() {
            return Err(busy("that waits for the end of what is under way"));
        }
        answered_apart("steer", peer, id, move || {
            let ending = || Fault::new(FaultCode::NotFound, "the session comes to its end");
            let done = run.steered(|session| act.on(session)).ok_or_else(ending)?;
            let refused = |error: CliError| {
                let Explained { what, why, .. } = error.explained();
                Fault::new(FaultCode::Denied, &format!("{what}: {why}"))
            };
            done.map(|shown| json!(Steered { shown: Bytes(shown) })).map_err(refused)
        })
    }

    fn stop_if_idle(&self) -> Result<Value, Fault> {
        self.moved(|inside| {
            if inside.is_busy() {
                return Err(busy("a session is under way"));
            }
            inside.stopping = true;
            Ok(json!({}))
        })
    }

    fn answer(self: &Arc<Self>, peer: &Peer, method: &str, params: Value) -> Result<Value, Fault> {
        match method {
            wire::SUBMIT => self.submit(peer, parsed(params)?).map(|joined| json!(joined)),
            wire::PART => self.part(peer, &params).map(|()| json!({})),
            wire::ATTACH => self.attach(peer, &parsed(params)?).map(|joined| json!(joined)),
            wire::CANCEL => {
                self.driven(peer)?.cancel();
                Ok(json!({}))
            }
            wire::REVIEWED => {
                let response: ReviewResponse = parsed(params)?;
                self.driven(peer)?.reviewed(peer, response).map(|()| json!({}))
            }
            wire::STOP => self.stop_if_idle(),
            other => {
                let name = fluffy_base::Excerpt::new(other, 80);
                Err(Fault::new(FaultCode::UnknownMethod, &format!("there is no method `{name}`")))
            }
        }
    }
}

impl Inside {
    fn is_busy(&self) -> bool {
        self.run.as_ref().is_some_and(|run| !run.is_over())
    }

    fn is_idle(&self) -> bool {
        self.peers == 0 && !self.is_busy()
    }
}

/// The desk as the transport's service.
pub(crate) struct Counter(pub(crate) Arc<Desk>);

impl Service for Counter {
    fn joined(&self, peer: &Peer) {
        self.0.moved(|inside| {
            inside.talks.joined(&peer.id());
            inside.peers += 1;
            inside.had_peers = true;
        });
    }

    fn received(&self, peer: &Peer, message: Message) {
        // Nothing is answered to what asks nothing.
        let Message::Request { id, method, params } = message else { return };
        let answer = match method.as_str() {
            wire::HALT => match self.0.halt(peer, id, &params) {
                Ok(()) => return,
                Err(fault) => Err(fault),
            },
            wire::STATUS => match self.0.status(peer, id, params) {
                Ok(()) => return,
                Err(fault) => Err(fault),
            },
            wire::STEER => match self.0.steer(peer, id, params) {
                Ok(()) => return,
                Err(fault) => Err(fault),
            },
            method => self.0.answer(peer, method, params),
        };
        // Who is gone needs no answer.
        let _gone = peer.answer(id, answer);
    }

    fn left(&self, peer: &Peer) {
        let run = self.0.moved(|inside| {
            inside.peers = inside.peers.saturating_sub(1);
            inside.parts.remove(&peer.id());
            inside.talks.left(&peer.id());
            inside.run.clone()
        });
        if let Some(run) = run {
            run.leave(peer);
        }
    }
}

/// Answers from a thread of its own.
fn answered_apart(
    name: &str,
    peer: &Peer,
    id: u64,
    answer: impl FnOnce() -> Result<Value, Fault> + Send + 'static,
) -> Result<(), Fault> {
    let peer = peer.clone();
    let answering = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        // Who is gone needs no answer.
        let _gone = peer.answer(id, answer());
    });
    answering.map(drop).map_err(|error| Fault::new(FaultCode::Internal, &error.to_string()))
}

/// A session takes its time: whoever asks again at once is told the same.
fn busy(message: &str) -> Fault {
    Fault { retryable: false, ..Fault::new(FaultCode::Busy, message) }
}

/// Another kernel is started for whoever asks again.
fn ending(message: &str) -> Fault {
    Fault::new(FaultCode::Stopping, message)
}

fn parsed<T: DeserializeOwned>(params: Value) -> Result<T, Fault> {
    // Serde's words name members and places, never values of ours that are secret: those are read as any text is.
    serde_json::from_value(params)
        .map_err(|error| Fault::new(FaultCode::BadParams, &fluffy_base::masked(&error.to_string())))
}
