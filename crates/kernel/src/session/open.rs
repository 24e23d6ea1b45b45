//! Begins a session, or goes on with one after its process died.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

use fluffy_base::{Json, KernelRequest, Observer, ProjectPath, ReceiptStatus, SessionId, is_blank};
use fluffy_workflow::{Access, Answer, Conventions, Event, Mode, Workflow};
use serde_json::json;

use super::archive::{ArchiveError, remove_archive, take_out};
use super::command_hosts::CommandHostsRule;
use super::desk::{Desk, Inside, Progress, Shared};
use super::left_changes::LeftChanges;
use super::restore::{RestoreError, StoredSession};
use super::rules::{
    CoverageRule, DependencyRule, Expected, MergeRule, OfferedRule, Proposal, Unmet, WorkflowRule,
};
use super::steering::Steering;
use super::{Entry, Merged, SET_MODE, SKILL, Session};
use crate::dependencies::{Dependencies, DependencyOptions, DependencyPolicyRule};
use crate::files::Tree;
use crate::git::{Git, GitOptions, HookPolicy, Identity, IdentityOverrides};
use crate::merge::{MergeError, recover};
use crate::staging::{Staging, StagingError};
use crate::tools;
use crate::workshop::{JobLimits, Workshop, WorkshopOptions};
use crate::{
    CallContext, Journal as _, Kernel, KernelConfig, KernelError, RegistryError, SessionStart,
    ToolError,
};

/// The longest task, in bytes.
const MAX_TASK: usize = 1 << 20;

/// What a session is made of.
pub struct SessionConfig {
    /// The kernel, without the session's own tools and rules. The skills and plugins that it knows are offered to the model.
    pub kernel: KernelConfig,
    /// Where jobs run.
    pub workshop: WorkshopOptions,
    /// Where sessions keep their files.
    pub sessions: PathBuf,
    /// Which files are tests, beside what languages have as their custom.
    pub conventions: Conventions,
    /// The command that runs the tests, where the project's files do not tell.
    pub test_command: Option<Vec<String>>,
    /// Whether a project without any file gets a repository for its first commit: it lies in no other.
    pub new_repository: bool,
    /// Where that command leaves its coverage.
    pub test_coverage: Option<ProjectPath>,
    /// How packages are installed, if they can be.
    pub dependencies: Option<DependencyOptions>,
    /// What git needs to know about the user.
    pub git: GitOptions,
    /// How commits are made.
    pub commits: CommitOptions,
    /// What the user's settings give commands and runs of tests.
    pub limits: JobLimits,
    /// Who watches.
    pub observer: Arc<dyn Observer>,
}

/// How commits are made.
#[derive(Debug, Clone)]
pub struct CommitOptions {
    /// What is done about the repository's hooks.
    pub hooks: HookPolicy,
    /// Whom they are by, if not by whoever the repository says.
    pub author: Option<Identity>,
    /// What the user's environment says.
    pub overrides: IdentityOverrides,
}

impl Default for CommitOptions {
    fn default() -> Self {
        let (author, overrides) = (None, IdentityOverrides::default());
        Self { hooks: HookPolicy::Run, author, overrides }
    }
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The task says nothing.
    #[error("the task is empty")]
    EmptyTask,
    /// The task is a book.
    #[error("the task has more than {MAX_TASK} bytes")]
    LongTask,
    /// The project cannot be opened.
    #[error("the project `{}` cannot be opened", path.display())]
    Project {
        /// Where it should be.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The session's own files cannot be used.
    #[error(transparent)]
    Staging(#[from] StagingError),
    /// A merge that was interrupted cannot be finished.
    #[error("an interrupted merge cannot be finished")]
    Merge(#[from] MergeError),
    /// The kernel cannot be had.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A tool cannot be registered.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The ledger does not give the session back.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// Something was not recorded, or not possible.
    #[error("{0}")]
    Step(String),
    /// There is nothing to take back.
    #[error("the session has no step that could be taken back")]
    NoStep,
    /// The mode was refused.
    #[error("{0}")]
    Mode(String),
    /// A file cannot be pinned.
    #[error("`{path}` cannot be pinned: {why}")]
    Pin {
        /// Which.
        path: String,
        /// Why not.
        why: String,
    },
    /// A file that the model may not read.
    #[error("`{path}` may not be pinned: {why}")]
    PinDenied {
        /// Which.
        path: String,
        /// Why not.
        why: String,
    },
    /// Its files cannot be had from the archive.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A message cannot be told from others.
    #[error("a message has an id of 1 to 64 letters, digits and `-`")]
    MessageId,
    /// There is no such grant.
    #[error("there is no grant {0} in this session")]
    NoGrant(u64),
    /// The file is not pinned.
    #[error("`{0}` is not pinned")]
    NotPinned(String),
    /// It has fewer turns.
    #[error("there is no turn {turn} to go on from: the session has {turns}")]
    NoTurn {
        /// The number that was asked for.
        turn: u64,
        /// How many there are.
        turns: u64,
    },
    /// The session came to its end before.
    #[error("session `{0}` is done")]
    Done(String),
}

/// Refuses words of a person's that say nothing, or far too much.
pub(super) fn check_words(text: &str) -> Result<(), SessionError> {
    if is_blank(text) {
        return Err(SessionError::EmptyTask);
    }
    if text.len() > MAX_TASK {
        return Err(SessionError::LongTask);
    }
    Ok(())
}

/// Has the kernel remember what becomes of the sandboxes of a session.
fn report_sandboxes(workshop: &Workshop, kernel: &Arc<Kernel>) {
    let told = Arc::downgrade(kernel);
    workshop.report_to(Box::new(move |life| match told.upgrade() {
        Some(kernel) => kernel.record(life.note()).map(drop).map_err(|error| error.0),
        None => Err("the session is over".to_owned()),
    }));
}

impl From<ToolError> for SessionError {
    fn from(error: ToolError) -> Self {
        Self::Step(error.0)
    }
}

/// The rules that look at where the work stands, and at what its policy lists.
fn rules_of(desk: &Arc<Desk>) -> [Box<dyn fluffy_policy::Rule>; 3] {
    [
        Box::new(WorkflowRule(Arc::clone(desk))),
        Box::new(CommandHostsRule(Arc::clone(desk))),
        Box::new(DependencyPolicyRule(Arc::clone(desk))),
    ]
}

impl Session {
    /// A session for a task, which is not begun yet.
    pub fn begin(
        config: SessionConfig,
        task: &str,
        mode: Mode,
        access: Access,
    ) -> Result<Self, SessionError> {
        check_words(task)?;
        let id = SessionId::fresh(&*config.kernel.ids).ok_or(KernelError::NoRandomness)?;
        let session = Self::open(config, id, access)?;
        session.desk.change().set(|inside| task.clone_into(&mut inside.progress.task));
        session.record(&Entry::Opened { mode, access, task: task.to_owned(), fork: None })?;
        if mode != Mode::Strict {
            session.set_mode(mode)?;
        }
        Ok(session)
    }

    /// The work begins.
    pub fn start(&self) -> Result<(), SessionError> {
        self.desk.happened(&*self.kernel, Event::TaskStarted)?;
        Ok(())
    }

    /// Goes on with a session; what the ledger knows of it is given back with it.
    pub fn resume(
        config: SessionConfig,
        id: SessionId,
    ) -> Result<(Self, StoredSession), SessionError> {
        let shown = id.to_string();
        Self::wake_if(config, id, |stored| match stored.done() {
            Some(_) => Err(SessionError::Done(shown)),
            None => Ok(()),
        })
    }

    /// The same for a session that may be done: a person looks after it, or says something more.
    pub fn wake(
        config: SessionConfig,
        id: SessionId,
    ) -> Result<(Self, StoredSession), SessionError> {
        Self::wake_if(config, id, |_| Ok(()))
    }

    fn wake_if(
        config: SessionConfig,
        id: SessionId,
        fits: impl FnOnce(&StoredSession) -> Result<(), SessionError>,
    ) -> Result<(Self, StoredSession), SessionError> {
        // Proved before anything is opened for writing: a history that does not hold is left as it is found.
        let (layout, key) = (&config.kernel.layout, config.kernel.key.verifying_key());
        let (stored, proved) = StoredSession::prove(layout, key, id.as_str())?;
        fits(&stored)?;
        if let Some(file) = stored.archived.and_then(|archived| archived.file) {
            take_out(&config.sessions, id.as_str(), &file)?;
        }
        stored.check_contents(&config.sessions.join(id.as_str()))?;
        let sessions = config.sessions.clone();
        let session = Self::open(config, id.clone(), Access::ReadOnly)?;
        let report = session.kernel.ledger_report();
        let stored = if report.broken.is_none() && report.entries == proved.size {
            stored
        } else {
            // Somebody wrote meanwhile.
            let ledger = &session.kernel.ledger;
            StoredSession::prove(ledger.layout(), &ledger.verifying_key(), id.as_str())?.0
        };
        if stored.archived.is_some() {
            session.record(&Entry::Unarchived)?;
            remove_archive(&sessions, &id)?;
        }
        session.restore(&stored)?;
        Ok((session, stored))
    }

    fn open(config: SessionConfig, id: SessionId, access: Access) -> Result<Self, SessionError> {
        let SessionConfig { mut kernel, workshop, sessions, conventions, .. } = config;
        let opened = Tree::open(&workshop.project);
        let failed = |source| SessionError::Project { path: workshop.project.clone(), source };
        let tree = Arc::new(opened.map_err(failed)?);
        let dir = sessions.join(id.as_str());
        let staging = Staging::open(&dir, Arc::clone(&tree))?;
        let workflow = Workflow::new(Mode::Strict, access);
        let exemptions = kernel.policy.exemptions().clone();
        let clock = Arc::clone(&kernel.clock);
        let dependencies = config.dependencies.map(|options| Dependencies::new(options, &kernel));
        let workshop = Arc::new(Workshop::new(workshop).with_limits(config.limits));
        let inside = Inside { workflow, staging, progress: Progress::default() };
        let desk = Arc::new(Desk {
            tree,
            git: Git::new(Arc::clone(&workshop), config.git),
            workshop,
            conventions,
            exemptions,
            observer: config.observer,
            dir,
            test_command: config.test_command,
            test_coverage: config.test_coverage,
            dependencies,
            new_repository: config.new_repository,
            commits: config.commits,
            keeps_hidden: OnceLock::new(),
            left_changes: LeftChanges::default(),
            shared: Shared::new(inside),
        });
        let (proposal, expected) = (Arc::new(Proposal::default()), Arc::new(Expected::default()));
        let unmet = Arc::new(Unmet::default());
        let names = kernel.registry.specs().map(|spec| spec.name.to_string());
        let skills = names.filter(|name| name.starts_with(SKILL));
        let plugins = kernel.registry.third_party().map(str::to_owned);
        let skills: Arc<[String]> = skills.chain(plugins).collect();
        tools::register(&mut kernel.registry, &desk)?;
        kernel.rules.extend(rules_of(&desk));
        kernel.rules.push(Box::new(DependencyRule(Arc::clone(&unmet))));
        kernel.rules.push(Box::new(OfferedRule { skills: Arc::clone(&skills) }));
        kernel.rules.push(Box::new(MergeRule(Arc::clone(&proposal))));
        kernel.rules.push(Box::new(CoverageRule(Arc::clone(&expected))));
        kernel.session = SessionStart::Named(id);
        let kernel = Arc::new(Kernel::boot(kernel)?);
        desk.attach(&kernel);
        kernel.witness.attend(&kernel);
        report_sandboxes(&desk.workshop, &kernel);
        Ok(Self {
            kernel,
            desk,
            skills,
            proposal,
            expected,
            unmet,
            clock,
            turns: AtomicU64::new(0),
            own: AtomicU64::new(0),
            cancelled: Arc::new(AtomicBool::new(false)),
            steering: Steering::default(),
        })
    }

    /// Puts the session where the ledger has it, and finishes a merge that was interrupted.
    fn restore(&self, stored: &StoredSession) -> Result<(), SessionError> {
        let (tree, dir) = (&self.desk.tree, &self.desk.dir);
        recover(tree, dir)?;
        let staging = stored.staging(dir, Arc::clone(tree))?;
        let changing = self.desk.change();
        changing.set(|inside| {
            inside.workflow = stored.workflow.clone();
            inside.staging = staging;
            inside.progress = stored.progress.clone();
        });
        self.turns.store(stored.turns.len() as u64, std::sync::atomic::Ordering::SeqCst);
        self.kernel.grants.keep(stored.last_grant, stored.grants.clone());
        self.show_environments(&stored.progress);
        drop(changing);
        let done = |files: &[Merged]| files.iter().all(|file| file.is_in(&self.desk.tree));
        if let Some((files, _plan)) = stored.merging.as_ref().filter(|(files, _)| done(files)) {
            self.record(&Entry::MergeDone)?;
            self.desk.merged(files.clone())?;
            self.desk.happened(&*self.kernel, Event::ReviewAnswered(Answer::Approved))?;
        }
        Ok(())
    }

    /// Shows what was installed, as far as it is still in the store. What is not, the model installs again.
    fn show_environments(&self, progress: &Progress) {
        let Some(dependencies) = &self.desk.dependencies else { return };
        for installed in &progress.installed {
            let found = installed.key.as_ref().and_then(|key| dependencies.stored(key));
            if let Some(environment) = found {
                self.desk.workshop.environments().show(environment, installed.root.clone());
            }
        }
    }

    /// Sets the mode, as a person asks for, between calls of the model. What untested work has cost is measured before there is more of it.
    pub fn set_mode(&self, mode: Mode) -> Result<(), SessionError> {
        let _between = self.steering.person();
        if !mode.is_test_first() && self.access() == Access::Write {
            self.measure_debt()?;
        }
        self.ask_for_mode(mode, &format!("work in {mode} mode"))
    }

    /// Asks for a mode in the person's name; where the gate wants it, the person is asked.
    pub(super) fn ask_for_mode(&self, mode: Mode, intent: &str) -> Result<(), SessionError> {
        let params = Json::new(json!({ "mode": mode.name() }));
        let params = params.map_err(|error| SessionError::Mode(error.to_string()))?;
        let mut request = KernelRequest::call(&self.own_id(), "user", intent, SET_MODE, params);
        request.ts_ms = i64::try_from(self.clock.now_ms()).unwrap_or(i64::MAX);
        let receipt = self.kernel.submit_from(&CallContext::default(), request);
        match receipt.status {
            ReceiptStatus::Accepted => Ok(()),
            ReceiptStatus::Rejected | ReceiptStatus::Failed => {
                let why = receipt.error.unwrap_or_else(|| "it was refused".to_owned());
                let debt = self.debt().map_or_else(String::new, |debt| format!(" ({debt})"));
                Err(SessionError::Mode(format!("{why}{debt}")))
            }
        }
    }
}
