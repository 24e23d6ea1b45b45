//! A runtime whose sandboxes work when it is their turn.
//!
//! A job has its seat from its start to its end. A guest that waits to be spoken to has one while it is engaged: standing by
//! costs nobody a seat.
//!
//! **Invariant.** What is killed or taken away while it waits for its seat never starts.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fluffy_base::Excerpt;
use fluffy_sandbox::{
    Captured, Config, End, Health, Input, Inspection, Job, MadeOf, Outcome, Runtime, RuntimeError,
    Sandbox, Start, State, Store, Swept, Template, Volume, Watcher,
};

use super::door::Door;
use super::scheduler::{Scheduler, Work};
use super::task::{Ended, Priority, Why};

/// How much of a program's name is shown.
const SHOWN: usize = 60;

/// Nobody waits longer for a seat without being asked whether it still does.
const LONG: Duration = Duration::from_secs(3600);

/// A runtime whose sandboxes are scheduled.
pub(super) struct Scheduled {
    scheduler: Arc<Scheduler>,
    runtime: Arc<dyn Runtime>,
}

/// One of its sandboxes.
struct Seated {
    scheduler: Arc<Scheduler>,
    sandbox: Arc<dyn Sandbox>,
    work: Work,
    kind: Kind,
    /// Where it waits, or was let in.
    door: Mutex<Option<Arc<Door>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It works from its start to its end.
    Job,
    /// It waits to be spoken to.
    Guest,
    /// The same, and is only there to save time.
    Ready,
}

impl Scheduled {
    pub(super) fn new(scheduler: Arc<Scheduler>, runtime: Arc<dyn Runtime>) -> Self {
        Self { scheduler, runtime }
    }
}

impl Runtime for Scheduled {
    fn name(&self) -> &'static str {
        self.runtime.name()
    }

    fn ping(&self) -> Result<Health, RuntimeError> {
        self.runtime.ping()
    }

    fn wait_for_progress(&self, patience: Duration) {
        self.runtime.wait_for_progress(patience);
    }

    fn volume(&self, store: Store) -> Result<Volume, RuntimeError> {
        self.runtime.volume(store)
    }

    fn create(&self, config: Config, job: Job) -> Result<Box<dyn Sandbox>, RuntimeError> {
        let (work, kind) = (Work::of(&config, &job), Kind::of(&job));
        let sandbox: Arc<dyn Sandbox> = self.runtime.create(config, job)?.into();
        let (scheduler, door) = (Arc::clone(&self.scheduler), Mutex::default());
        Ok(Box::new(Seated { scheduler, sandbox, work, kind, door }))
    }

    fn made_of(&self) -> Result<Option<MadeOf>, RuntimeError> {
        self.runtime.made_of()
    }

    fn sweep(&self) -> Swept {
        self.runtime.sweep()
    }
}

impl Seated {
    fn door(&self) -> MutexGuard<'_, Option<Arc<Door>>> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a seat, in the place that it already has in line, if it has one.
    fn enter(&self, longest: Duration) -> Result<Option<Arc<Door>>, RuntimeError> {
        let mut kept = self.door();
        let door = match &*kept {
            Some(door) => Arc::clone(door),
            None => {
                let door = self.scheduler.submit(&self.work, &self.sandbox);
                *kept = Some(Arc::clone(&door));
                door
            }
        };
        drop(kept);
        match door.wait(longest) {
            Ok(true) => Ok(Some(door)),
            Ok(false) => Ok(None),
            Err(ended) => {
                self.door().take();
                Err(refused(ended))
            }
        }
    }

    /// Gives the seat back, or the place in line.
    fn leave(&self, ended: Ended) {
        if let Some(door) = self.door().take() {
            self.scheduler.leave(&door, ended);
        }
    }

    /// Has whoever waits for a seat wait no longer.
    fn give_up(&self) {
        let door = self.door().clone();
        if let Some(door) = door.filter(|door| door.is_waiting()) {
            self.scheduler.cancel(&door);
        }
    }

    /// What became of a job that has ended: its own outcome, unless it was made to end.
    fn judged(&self, outcome: Result<Outcome, RuntimeError>) -> Result<Outcome, RuntimeError> {
        let verdict = self.door().as_ref().and_then(|door| door.verdict());
        let ended = match &outcome {
            Ok(Outcome { end: End::Exited(_), .. }) => Ended::Completed,
            Ok(outcome) => Ended::Failed(Why::Itself(outcome.end.to_string())),
            Err(error) => Ended::Failed(Why::Itself(error.to_string())),
        };
        self.leave(ended);
        match (outcome, verdict) {
            (Ok(Outcome { end: End::Stopped, .. }), Some(Ended::Failed(why))) => {
                Err(RuntimeError::GaveWay(why.to_string()))
            }
            (outcome, _) => outcome,
        }
    }
}

impl Sandbox for Seated {
    fn id(&self) -> &str {
        self.sandbox.id()
    }

    fn start(&self, watcher: Arc<dyn Watcher>) -> Result<(), RuntimeError> {
        match self.kind {
            Kind::Guest => return self.sandbox.start(watcher),
            Kind::Ready => {
                let short = |used| RuntimeError::GaveWay(format!("memory is at {used}"));
                self.scheduler.keep_ready(&self.sandbox).map_err(short)?;
                return self.sandbox.start(watcher);
            }
            Kind::Job => {}
        }
        let door = loop {
            if let Some(door) = self.enter(LONG)? {
                break door;
            }
        };
        let started = self.sandbox.start(watcher);
        match &started {
            Ok(()) => door.begin(),
            Err(error) => self.leave(Ended::Failed(Why::Itself(error.to_string()))),
        }
        started
    }

    fn wait(&self) -> Result<Outcome, RuntimeError> {
        self.judged(self.sandbox.wait())
    }

    fn stop(&self, grace: Duration) {
        self.give_up();
        self.sandbox.stop(grace);
    }

    fn kill(&self) {
        self.give_up();
        self.sandbox.kill();
    }

    fn pause(&self) -> Result<(), RuntimeError> {
        self.sandbox.pause()
    }

    fn resume(&self) -> Result<(), RuntimeError> {
        self.sandbox.resume()
    }

    fn engage(&self, wait: Duration) -> Result<bool, RuntimeError> {
        match self.kind {
            Kind::Job => return Ok(true),
            Kind::Guest => {}
            Kind::Ready => self.scheduler.forget_ready(self.sandbox.id()),
        }
        let door = self.enter(wait)?;
        if let Some(door) = &door {
            door.begin();
        }
        Ok(door.is_some())
    }

    fn rest(&self) {
        if self.kind != Kind::Job {
            self.leave(Ended::Completed);
        }
    }

    fn inspect(&self) -> Inspection {
        self.sandbox.inspect()
    }

    fn logs(&self) -> (Captured, Captured) {
        self.sandbox.logs()
    }

    fn remove(&self) {
        self.give_up();
        self.sandbox.remove();
        self.scheduler.forget_ready(self.sandbox.id());
        self.leave(Ended::Cancelled);
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Why a sandbox did not start.
fn refused(ended: Ended) -> RuntimeError {
    match ended {
        Ended::Failed(why) => RuntimeError::GaveWay(why.to_string()),
        Ended::Cancelled | Ended::Completed => RuntimeError::State(State::Destroyed),
    }
}

impl Kind {
    /// Who reads from somebody waits to be spoken to.
    fn of(job: &Job) -> Self {
        match (&job.stdin, job.start) {
            (Input::Nothing | Input::Bytes(_), _) => Self::Job,
            (Input::From(_), Start::Executed) => Self::Guest,
            (Input::From(_), Start::Guest) => Self::Ready,
        }
    }
}

impl Work {
    /// What a job is called and how urgent it is: decisions wait for the policy's sandbox, and a model or a person for a
    /// provider and for a change of a file.
    fn of(config: &Config, job: &Job) -> Self {
        let template = config.template();
        let priority = match (template, job.start) {
            (Template::PolicySandbox, _) => Priority::System,
            (Template::AiProvider, _) | (_, Start::Guest) => Priority::Urgent,
            (Template::CodeExecutor | Template::IntegrationTest, Start::Executed) => {
                Priority::Normal
            }
        };
        let is_ours = priority != Priority::Normal;
        let program = Path::new(&job.program).file_name().unwrap_or(&job.program);
        let name = job.args.first().filter(|_| is_ours).map_or(program, |it| OsStr::new(it));
        let name = Excerpt::new(&name.to_string_lossy(), SHOWN).to_string();
        let lasts_ms = config.limits().duration.map(fluffy_base::Span::ms);
        Self { name, priority, template, lasts_ms }
    }
}
