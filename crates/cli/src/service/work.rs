//! Carries a piece of work out, in the kernel's process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use fluffy_base::{Observer, SessionId};
use fluffy_kernel::{Reviewer, Session};
use fluffy_sandbox::Runtime;

use super::chat::Seated;
use super::run::Run;
use crate::drive::{self, Scene};
use crate::environment::Environment;
use crate::explain::{CliError, Explained, FAILED};
use crate::place::Place;
use crate::providers::ModelSource;
use crate::wire::{
    Act, BuilderSource, Bytes, Driver, End, PluginWork, SkillWork, Submission, Work,
};

/// The most that is shown of what a person did: a message has room for it.
const MAX_SHOWN: usize = 20 << 20;

/// Carries it out to its end, whatever that is.
pub(crate) fn carry_out(
    place: &Place,
    environment: &Environment,
    runtime: Arc<dyn Runtime>,
    submission: Submission,
    seated: Option<Seated>,
    run: &Arc<Run>,
) -> End {
    let environment = submission.surroundings.within(environment);
    let observer: Arc<dyn Observer> = Arc::clone(run) as Arc<dyn Observer>;
    let reviewer: Arc<dyn Reviewer> = Arc::clone(run) as Arc<dyn Reviewer>;
    let met = |session: &Arc<Session>| {
        run.works_with(session);
        let kernel = session.kernel_handle();
        run.halted_by(Arc::new(move |reason: &str| match kernel.upgrade() {
            Some(kernel) => kernel.halt(reason).map(|entry| entry.seq).map_err(|it| it.to_string()),
            None => Err("it has come to its end".to_owned()),
        }));
    };
    let mut submission = submission;
    let handed = std::sync::Mutex::new(Some(std::mem::take(&mut submission.handed)));
    let environment = &environment;
    let scene = Scene {
        place,
        environment,
        observer,
        reviewer,
        runtime,
        handed,
        skills: std::sync::OnceLock::new(),
        plugins: std::sync::OnceLock::new(),
        met: &met,
        parted: &|| run.parts(),
    };
    let guard = Arc::clone(run);
    // Where no thread can be had, the work goes on without anybody who would stop it for want of a driver.
    let _watching =
        std::thread::Builder::new().name("guard".to_owned()).spawn(move || guard.guard());
    // Unwind safety: what a panic left is dropped with the session; its ledger is whole, or says what is missing.
    let done = catch_unwind(AssertUnwindSafe(|| worked(submission, seated, &scene, run)));
    run.parts();
    match done {
        Ok(Ok(end)) => end,
        Ok(Err(error)) => End::Error(error.explained()),
        Err(_panic) => End::Error(Explained {
            what: "the kernel failed".to_owned(),
            why:
                "a part of it stopped in the middle of its work; this is an error of the program's"
                    .to_owned(),
            fix: "go on with: fluffy session resume; and report what was done".to_owned(),
            code: FAILED,
        }),
    }
}

fn worked(
    submission: Submission,
    seated: Option<Seated>,
    scene: &Scene<'_>,
    run: &Run,
) -> Result<End, CliError> {
    let driver = |driver: Option<Driver>| driver.ok_or(CliError::NoProvider);
    match submission.work {
        Work::Begin { task, mode, access, pins } => {
            let Driver { model, caps } = driver(submission.driver)?;
            let task = drive::Task { text: &task, mode, access, pins: &pins };
            let chosen = model.open(scene.place, &scene.runtime, 0)?;
            drive::begin(&task, caps, chosen, scene, &run.stop).map(End::Task)
        }
        Work::Resume { session } => {
            let Driver { model, caps } = driver(submission.driver)?;
            let id = known(&session)?;
            run.works_on(&session);
            drive::resume(&id, model, caps, scene, &run.stop).map(End::Task)
        }
        Work::Say { session, message, text } => {
            let Driver { model, caps } = driver(submission.driver)?;
            let id = known(&session)?;
            run.works_on(&session);
            let said = drive::Said { message: &message, text: &text };
            let open = |played| model.open(scene.place, &scene.runtime, played);
            drive::say(&id, &said, open, caps, scene, &run.stop).map(End::Task)
        }
        Work::Act { session, act } => {
            let id = known(&session)?;
            run.works_on(&session);
            acted(id, act, scene, run).map(|shown| End::Done(Bytes(shown)))
        }
        Work::Skill(work) => {
            let answer = super::skill::carry_out(work, submission.driver, scene, run)?;
            Ok(End::Skill(Box::new(answer)))
        }
        Work::Plugin(work) => {
            let answer = super::plugin::carry_out(work, scene, run)?;
            Ok(End::Plugin(Box::new(answer)))
        }
        Work::Chat(work) => {
            let seated = seated.ok_or_else(|| CliError::Told(Explained::confused()))?;
            let reply = super::chat::carry_out(work, submission.driver, &seated, scene, run)?;
            Ok(End::Chat(Box::new(reply)))
        }
    }
}

fn known(session: &str) -> Result<SessionId, CliError> {
    let shown = || fluffy_base::Excerpt::new(session, 80).to_string();
    SessionId::named(session).ok_or_else(|| CliError::UnknownSession(shown()))
}

/// What a person does to a session, and what is shown of it.
fn acted(id: SessionId, act: Act, scene: &Scene<'_>, run: &Run) -> Result<Vec<u8>, CliError> {
    let (session, _stored) = match &act {
        // These are for what the person says next, too.
        Act::Mode(_) | Act::Pin(_) | Act::Unpin(_) | Act::Revoke(_) => {
            Session::wake(scene.config()?, id)?
        }
        _of_open_work => Session::resume(scene.config()?, id)?,
    };
    let session = Arc::new(session);
    (scene.met)(&session);
    let cancel = session.cancel_handle();
    run.stop.calls(move |how| drive::end(&cancel, how));
    let done = act.on(&session);
    scene.closed(session)?;
    done.and_then(|shown| match shown.len() {
        0..=MAX_SHOWN => Ok(shown),
        size => Err(CliError::Told(Explained {
            what: "the answer is too long to be shown".to_owned(),
            why: format!("it has {size} bytes, more than {MAX_SHOWN}"),
            fix: "have it merged and look at it with git, or take steps back".to_owned(),
            code: FAILED,
        })),
    })
}

impl Act {
    /// Does it; what is to be shown.
    pub(super) fn on(&self, session: &Session) -> Result<Vec<u8>, CliError> {
        let line = |text: String| Ok((text + "\n").into_bytes());
        match *self {
            Self::Diff => Ok(session.diff()?.patch().to_vec()),
            Self::Undo => line(format!("step {} is taken back", session.undo()?)),
            Self::Rewind(step) => {
                session.rewind(step)?;
                line(format!("the session is as it was after step {step}"))
            }
            Self::Mode(mode) => {
                let is_set = session.mode() == mode;
                if !is_set {
                    session.set_mode(mode)?;
                }
                let since = if is_set { "works in" } else { "now works in" };
                line(format!("session {} {since} {mode} mode", session.id()))
            }
            Self::Pin(ref path) => {
                session.pin(path)?;
                line(format!("{} is pinned", fluffy_base::sanitised(path)))
            }
            Self::Unpin(ref path) => {
                session.unpin(path)?;
                line(format!("{} is pinned no more", fluffy_base::sanitised(path)))
            }
            Self::Revoke(number) => {
                session.revoke(number)?;
                line(format!("grant {number} is revoked"))
            }
            Self::Budget => line(session.budget()?.to_string()),
            Self::GiveUp => {
                session.give_up()?;
                Ok(Vec::new())
            }
        }
    }
}

impl Work {
    /// Whether it goes on with what is under way there, whose driver was lost.
    pub(super) fn takes_over(&self, run: &Run) -> bool {
        matches!(self, Self::Resume { session } if run.is_of(session) && run.is_abandoned())
    }
}

impl Submission {
    /// What was sent of a transcript or a plugin ahead of the work.
    pub(super) fn take_transcript(&mut self, sent: String) {
        if let Work::Skill(SkillWork::Build {
            builder: BuilderSource::Transcript { text, .. },
            ..
        }) = &mut self.work
        {
            *text = sent;
        } else if let Work::Plugin(PluginWork::Install { package }) = &mut self.work {
            *package = sent;
        } else if let Some(Driver { model: ModelSource::Replay { text, .. }, .. }) =
            &mut self.driver
        {
            *text = sent;
        }
    }
}
