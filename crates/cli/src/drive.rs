//! Puts a task together: the kernel with its sandboxes, the session, the model's loop.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fluffy_agent::{Agent, Ended, Outcome as LoopOutcome, SessionBench, Spent};
use fluffy_base::{Event, Observer, SessionId, SystemWaiter};
use fluffy_kernel::{
    Cancel, CommitOptions, DependencyOptions, Driver, EnvironmentStore, GitOptions, Lab, Plugins,
    Reviewer, Session, SessionConfig, SessionError, StoredSession, WorkshopOptions,
};
use fluffy_provider::{Provider, ProviderError};
use fluffy_sandbox::Runtime;
use fluffy_workflow::{Access, Conventions, Mode};

use crate::commands::run::{Caps, Done, Ending, Outcome};
use crate::environment::Environment;
use crate::explain::{CliError, Explained};
use crate::forge::Forge;
use crate::interrupt::{How, Stop};
use crate::place::Place;
use crate::providers::{Chosen, GatewaySetup, ModelSource};
use crate::registries;
use crate::settings::Settings;
use crate::toolchains;
use crate::wire::Handed;

/// A task's surroundings.
pub(crate) struct Scene<'a> {
    pub(crate) place: &'a Place,
    pub(crate) environment: &'a Environment,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) reviewer: Arc<dyn Reviewer>,
    /// What makes the sandboxes.
    pub(crate) runtime: Arc<dyn Runtime>,
    /// What skills are given; once.
    pub(crate) handed: Mutex<Option<Handed>>,
    /// Where the session's skills run, once there are some.
    pub(crate) skills: OnceLock<Arc<Lab>>,
    /// The session's plugins, once there are some.
    pub(crate) plugins: OnceLock<Arc<Plugins>>,
    /// What is told of the session before anybody else is.
    pub(crate) met: &'a dyn Fn(&Arc<Session>),
    /// What is told before it is closed: nobody else holds it then.
    pub(crate) parted: &'a dyn Fn(),
}

/// What the person says after the task.
pub(crate) struct Said<'a> {
    /// What tells it from the same words said again.
    pub(crate) message: &'a str,
    /// The words.
    pub(crate) text: &'a str,
}

/// A task as it was meant.
pub(crate) struct Task<'a> {
    /// What is to be done.
    pub(crate) text: &'a str,
    /// How strictly to work.
    pub(crate) mode: Mode,
    /// Whether anything may be written.
    pub(crate) access: Access,
    /// Files to be kept before the model's eyes.
    pub(crate) pins: &'a [String],
}

/// Drives a new task to its end.
pub(crate) fn begin(
    task: &Task<'_>,
    caps: Caps,
    chosen: Chosen,
    scene: &Scene<'_>,
    stop: &Stop,
) -> Result<Outcome, CliError> {
    let provider = &*chosen.provider;
    let config = scene.with_plugins(scene.with_skills(scene.config()?)?)?;
    let session = match Session::begin(config, task.text, task.mode, task.access) {
        Err(SessionError::Mode(why)) => return Ok(mode_refused(&why)),
        begun => Arc::new(begun?),
    };
    if let Err(error) = task.pins.iter().try_for_each(|path| session.pin(path)) {
        scene.closed(session)?;
        return Err(error.into());
    }
    scene.introduce(&session, &chosen, stop)?;
    session.start()?;
    let bench = SessionBench::new(&session).priced(provider.prices());
    let mut conversation = bench.conversation();
    let agent = agent(&bench, provider, scene, caps, Spent::default());
    let ended = agent.run(&mut conversation, Some(task.text));
    // Its process ends before the session does, and is recorded.
    drop(chosen);
    finish(session, scene, ended)
}

/// Goes on with a session.
pub(crate) fn resume(
    id: &SessionId,
    model: ModelSource,
    caps: Caps,
    scene: &Scene<'_>,
    stop: &Stop,
) -> Result<Outcome, CliError> {
    let config = scene.with_plugins(scene.with_skills(scene.config()?)?)?;
    let resumed = Session::resume(config, id.clone())?;
    go_on(resumed, |played| model.open(scene.place, &scene.runtime, played), caps, scene, stop)
}

/// Goes on with a session because the person says something more. Whoever drives it is opened behind so many turns.
pub(crate) fn say(
    id: &SessionId,
    said: &Said<'_>,
    open: impl FnOnce(usize) -> Result<Chosen, CliError>,
    caps: Caps,
    scene: &Scene<'_>,
    stop: &Stop,
) -> Result<Outcome, CliError> {
    let config = scene.with_plugins(scene.with_skills(scene.config()?)?)?;
    let said = Session::say(config, id.clone(), said.message, said.text)?;
    go_on(said, open, caps, scene, stop)
}

fn go_on(
    (session, stored): (Session, StoredSession),
    open: impl FnOnce(usize) -> Result<Chosen, CliError>,
    caps: Caps,
    scene: &Scene<'_>,
    stop: &Stop,
) -> Result<Outcome, CliError> {
    let session = Arc::new(session);
    let chosen = open(stored.turns.len())?;
    let provider = &*chosen.provider;
    scene.introduce(&session, &chosen, stop)?;
    let bench = SessionBench::new(&session).priced(provider.prices());
    let resumed = bench.resume(&stored)?;
    let mut conversation = resumed.conversation;
    let agent = agent(&bench, provider, scene, caps, resumed.spent);
    let ended = agent.run(&mut conversation, None);
    drop(chosen);
    finish(session, scene, ended)
}

/// What a session of the ledger is, without waking it.
pub(crate) fn stored(place: &Place, id: &str) -> Result<StoredSession, CliError> {
    let key = place.existing_key()?.ok_or(CliError::NoLedger)?;
    Ok(StoredSession::prove(&place.layout(), key.verifying_key(), id)?.0)
}

fn agent<'a>(
    bench: &'a SessionBench<'a>,
    provider: &'a dyn Provider,
    scene: &'a Scene<'_>,
    caps: Caps,
    spent: Spent,
) -> Agent<'a> {
    let caps = caps.of_loop();
    Agent { bench, provider, observer: &*scene.observer, waiter: &SystemWaiter, caps, spent }
}

impl Scene<'_> {
    /// What a session is made of here.
    pub(crate) fn config(&self) -> Result<SessionConfig, CliError> {
        let (place, environment) = (self.place, self.environment);
        let runtime = Arc::clone(&self.runtime);
        let settings = Settings::load(place, environment)?;
        let mut kernel = crate::commands::kernel(place, &settings, None)?;
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
            test_command: settings.list("test.command").map(<[String]>::to_vec),
            test_coverage: settings.test_coverage(),
            dependencies: Some(self.dependencies()?),
            new_repository: self.is_outside_of_repositories(),
            git: GitOptions { program: None, home, config_home: None },
            commits: CommitOptions {
                hooks: settings.hooks(),
                author: settings.author(),
                overrides: environment.git_identity.clone(),
            },
            limits: settings.job_limits(),
            observer: Arc::clone(&self.observer),
        })
    }

    /// The local model, where the person chose it for conversation.
    pub(crate) fn take_talk(&self) -> Option<GatewaySetup> {
        let mut handed = self.handed.lock().unwrap_or_else(PoisonError::into_inner);
        handed.as_mut().and_then(|handed| handed.talk.take())
    }

    /// Whether the client found no repository around the project.
    fn is_outside_of_repositories(&self) -> bool {
        let handed = self.handed.lock().unwrap_or_else(PoisonError::into_inner);
        handed.as_ref().is_some_and(|handed| handed.outside_of_repositories)
    }

    /// How packages are installed in this piece of work.
    fn dependencies(&self) -> Result<DependencyOptions, CliError> {
        let mut registries = {
            let mut handed = self.handed.lock().unwrap_or_else(PoisonError::into_inner);
            handed.as_mut().map(|handed| std::mem::take(&mut handed.registries)).unwrap_or_default()
        };
        let proxy = registries.proxy.take();
        let lab = Arc::new(crate::forge::lab(self, &Handed { proxy, ..Handed::default() })?);
        let store = EnvironmentStore::new(self.place.environments());
        Ok(DependencyOptions { lab, registries: registries::settings(registries), store })
    }

    /// What skills are given in this piece of work.
    pub(crate) fn take_handed(&self) -> Handed {
        let mut handed = self.handed.lock().unwrap_or_else(PoisonError::into_inner);
        handed.take().unwrap_or_default()
    }

    /// The same with every trusted skill as a tool. One that cannot be used is left out; `fluffy skill doctor` names it.
    fn with_skills(&self, mut config: SessionConfig) -> Result<SessionConfig, CliError> {
        if !self.place.forge().is_dir() {
            return Ok(config);
        }
        let forge = Forge::open(self, self.take_handed())?;
        let (tools, _left_out) = forge.runs.tools()?;
        // A scene has one session, and a session one place for its skills.
        let _first = self.skills.set(forge.lab);
        for tool in tools {
            config.kernel.registry.register(Box::new(tool))?;
        }
        Ok(config)
    }

    /// The same with the tools of every plugin that can be registered. One that cannot is recorded as rejected.
    fn with_plugins(&self, mut config: SessionConfig) -> Result<SessionConfig, CliError> {
        if !self.place.plugins().is_dir() {
            return Ok(config);
        }
        let plugins = crate::plugins::open(self)?;
        plugins.register(&mut config.kernel.registry)?;
        // A scene has one session.
        let _first = self.plugins.set(plugins);
        Ok(config)
    }

    /// Closes a session that nobody else holds any more; gives the root of the ledger's tree.
    pub(crate) fn closed(&self, session: Arc<Session>) -> Result<String, CliError> {
        (self.parted)();
        if let Some(plugins) = self.plugins.get() {
            plugins.unload(session.kernel());
        }
        let session =
            Arc::try_unwrap(session).map_err(|_| CliError::Told(Explained::confused()))?;
        Ok(session.close()?)
    }

    /// Says who drives the session, in the ledger and to whoever watches.
    fn introduce(
        &self,
        session: &Arc<Session>,
        Chosen { provider, spec }: &Chosen,
        stop: &Stop,
    ) -> Result<(), CliError> {
        (self.met)(session);
        let model = provider.model().to_owned();
        session.driven_by(&Driver { provider: spec.to_string(), model })?;
        let plugins = self.plugins.get();
        if let Some(plugins) = plugins {
            plugins.announce(session.kernel()).map_err(SessionError::from)?;
        }
        let labs = self.skills.get().cloned().into_iter();
        let labs: Vec<_> = labs.chain(plugins.map(|plugins| plugins.lab())).collect();
        let cancel = session.cancel_handle();
        stop.calls(move |how| {
            end(&cancel, how);
            if how == How::Now {
                labs.iter().for_each(|lab| lab.close());
            }
        });
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

/// Ends what a session does.
pub(crate) fn end(cancel: &Cancel, how: How) {
    match how {
        How::Gently => cancel.cancel_after_this(),
        How::Now => cancel.cancel(),
    }
}

/// Ends a session in order; says how its task ended.
fn finish(session: Arc<Session>, scene: &Scene<'_>, ended: Ended) -> Result<Outcome, CliError> {
    let outcome = session.outcome();
    let turns = session.turns();
    let root = scene.closed(session)?;
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
