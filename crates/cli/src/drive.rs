//! Puts a task together: the kernel with its sandboxes, the session, the model's loop.

use std::sync::Arc;

use fluffy_agent::{Agent, Caps as AgentCaps, Ended, Outcome as LoopOutcome, SessionBench, Spent};
use fluffy_base::{Event, Observer, SessionId, SystemWaiter};
use fluffy_kernel::{
    CommitOptions, Driver, GitOptions, Reviewer, Session, SessionConfig, SessionError,
    StoredSession, WorkshopOptions,
};
use fluffy_provider::{Provider, ProviderError};
use fluffy_sandbox::Runtime;
use fluffy_workflow::Conventions;

use crate::commands::run::{Caps, Done, Ending, Outcome, RunRequest};
use crate::environment::Environment;
use crate::explain::CliError;
use crate::interrupt::Stop;
use crate::place::Place;
use crate::project_config::ProjectConfig;
use crate::providers::{Choice, Chosen};
use crate::toolchains;

/// A task's surroundings.
pub(crate) struct Scene<'a> {
    pub(crate) place: &'a Place,
    pub(crate) environment: &'a Environment,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) reviewer: Arc<dyn Reviewer>,
}

/// Drives a new task to its end.
pub(crate) fn drive(
    request: &RunRequest,
    scene: &Scene<'_>,
    stop: &Stop,
) -> Result<Outcome, CliError> {
    let chosen = request.choice.open(scene.place, scene.environment, 0)?;
    let provider = &*chosen.provider;
    let config = scene.config()?;
    let session = match Session::begin(config, &request.task, request.mode, request.access) {
        Err(SessionError::Mode(why)) => return Ok(mode_refused(&why)),
        begun => begun?,
    };
    if let Err(error) = request.pins.iter().try_for_each(|path| session.pin(path)) {
        session.close()?;
        return Err(error.into());
    }
    scene.introduce(&session, &chosen, stop)?;
    session.start()?;
    let bench = SessionBench::new(&session).priced(provider.prices());
    let mut conversation = bench.conversation();
    let agent = agent(&bench, provider, scene, request.caps, Spent::default());
    let ended = agent.run(&mut conversation, Some(&request.task));
    finish(session, ended)
}

/// Goes on with a session.
pub(crate) fn resume(
    id: &SessionId,
    choice: Choice,
    caps: Caps,
    scene: &Scene<'_>,
    stop: &Stop,
) -> Result<Outcome, CliError> {
    let (session, stored) = Session::resume(scene.config()?, id.clone())?;
    let choice = match &stored.driver {
        Some(driver) => choice.or_recorded(&driver.provider, &driver.model),
        None => choice,
    };
    let chosen = choice.open(scene.place, scene.environment, stored.turns.len())?;
    let provider = &*chosen.provider;
    scene.introduce(&session, &chosen, stop)?;
    let bench = SessionBench::new(&session).priced(provider.prices());
    let resumed = bench.resume(&stored)?;
    let mut conversation = resumed.conversation;
    let agent = agent(&bench, provider, scene, caps, resumed.spent);
    let ended = agent.run(&mut conversation, None);
    finish(session, ended)
}

/// What a session of the ledger is, without waking it.
pub(crate) fn stored(place: &Place, id: &str) -> Result<StoredSession, CliError> {
    Ok(StoredSession::read(&crate::commands::ledger_file(place)?, id)?)
}

fn agent<'a>(
    bench: &'a SessionBench<'a>,
    provider: &'a dyn Provider,
    scene: &'a Scene<'_>,
    caps: Caps,
    spent: Spent,
) -> Agent<'a> {
    let caps = AgentCaps { turns: caps.turns, tokens: caps.tokens, cost: caps.cost_micros };
    Agent { bench, provider, observer: &*scene.observer, waiter: &SystemWaiter, caps, spent }
}

impl Scene<'_> {
    /// What a session is made of here.
    pub(crate) fn config(&self) -> Result<SessionConfig, CliError> {
        let (place, environment) = (self.place, self.environment);
        let runtime: Arc<dyn Runtime> = Arc::new(place.sandboxes(environment)?);
        // Nothing runs outside of a sandbox, so a task does not begin without one.
        runtime.ping()?;
        let settings = ProjectConfig::find(place)?;
        let mut kernel = crate::commands::kernel(place, None)?;
        kernel.reviewer = Some(Box::new(Arc::clone(&self.reviewer)));
        let home = environment.home.clone();
        Ok(SessionConfig {
            kernel,
            workshop: WorkshopOptions {
                runtime,
                project: place.project().to_owned(),
                home: home.clone(),
                shown: toolchains::of(environment),
                program: place.executable()?,
            },
            sessions: place.sessions(),
            conventions: Conventions::with(settings.test_files()?),
            test_command: settings.test_command(),
            test_coverage: settings.test_coverage()?,
            git: GitOptions { program: None, home, config_home: None },
            commits: CommitOptions {
                hooks: settings.hooks(),
                author: settings.author()?,
                overrides: environment.git_identity.clone(),
            },
            observer: Arc::clone(&self.observer),
        })
    }

    /// Says who drives the session, in the ledger and to whoever watches.
    fn introduce(
        &self,
        session: &Session,
        Chosen { provider, spec }: &Chosen,
        stop: &Stop,
    ) -> Result<(), CliError> {
        let model = provider.model().to_owned();
        session.driven_by(&Driver { provider: spec.to_string(), model })?;
        let cancel = session.cancel_handle();
        stop.calls(move || cancel.cancel());
        let pins = session.pins().into_iter().map(|pin| pin.path.to_string());
        let notes = session.outline().notes.into_iter().map(|(path, _)| path);
        self.observer.notice(Event::SessionStarted {
            session_id: session.id().to_string(),
            mode: session.mode().name().to_owned(),
            provider: provider.name().to_owned(),
            model: provider.model().to_owned(),
            policy: session.kernel().policy_digest().to_string(),
            notes: notes.chain(pins).collect(),
        });
        Ok(())
    }
}

/// Ends a session in order; says how its task ended.
fn finish(session: Session, ended: Ended) -> Result<Outcome, CliError> {
    let outcome = session.outcome();
    let turns = session.turns();
    let root = session.close()?;
    let ending = |what: &str, why: String, fix: &str| Ending {
        what: what.to_owned(),
        why,
        fix: fix.to_owned(),
    };
    Ok(match ended.outcome {
        LoopOutcome::Completed { summary, .. } => Outcome::Completed(Done {
            summary,
            files_changed: outcome.files_changed,
            turns,
            ledger_root: root,
        }),
        LoopOutcome::Failed(failure) => match outcome.rejected {
            Some(why) => Outcome::Denied(ending(
                "the merge was not agreed to",
                why,
                "look at it: fluffy session diff; take it back: fluffy session undo; \
                     or go on: fluffy session resume",
            )),
            None => {
                Outcome::Failed(Ending { what: failure.what, why: failure.why, fix: failure.fix })
            }
        },
        LoopOutcome::CapReached(cap) => Outcome::CapReached(ending(
            "the task was stopped",
            format!("another turn would pass the cap of {cap}"),
            "go on with a higher cap: fluffy session resume",
        )),
        LoopOutcome::Cancelled => Outcome::Cancelled,
        LoopOutcome::Provider(error) => Outcome::ProviderFailed(provider_ending(&error)),
        LoopOutcome::Bench(error) => Outcome::Failed(ending(
            "the task could not go on",
            error.to_string(),
            "see what the ledger says: fluffy audit verify",
        )),
    })
}

fn mode_refused(why: &str) -> Outcome {
    Outcome::Denied(Ending {
        what: "the task did not begin in this mode".to_owned(),
        why: why.to_owned(),
        fix: "work in strict mode, or do what the reason says".to_owned(),
    })
}

fn provider_ending(error: &ProviderError) -> Ending {
    Ending { what: error.to_string(), why: error.why().to_owned(), fix: error.fix().to_owned() }
}
