//! What a session's tools and rules share: where the work stands, and what it has produced.
//!
//! **Invariant.** Whatever changes here is in the ledger first, and nobody else changes anything meanwhile.
//! Readers never wait for a disk: the ledger is written before the change is made visible.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, Weak};

use fluffy_base::{Event as Told, Observer, ProjectPath};
use fluffy_ledger::Checkpoint;
use fluffy_policy::Exemptions;
use fluffy_workflow::{
    Change, Conventions, Event, ExemptionRequest, Gate, Languages, Standing, State, Transition,
    TypeOnly as _, Workflow, Writable,
};

use super::advance::next_step;
use super::budget::{Account, Measurement};
use super::entry::{Entry, Merged};
use super::left_changes::LeftChanges;
use super::open::CommitOptions;
use super::pins::Pin;
use crate::dependencies::{Dependencies, InstalledEnvironment};
use crate::files::{Staged, StagedFiles, Tree, View};
use crate::git::Git;
use crate::staging::{Layer, SCRATCH, Staging, Step, StepChange};
use crate::tools::Views;
use crate::workshop::{Produced, Workshop};
use crate::{Clerk, Journal, Kernel, May, ToolError};

/// What a session's tools and rules share.
pub(crate) struct Desk {
    pub(crate) tree: Arc<Tree>,
    pub(crate) workshop: Arc<Workshop>,
    pub(crate) conventions: Conventions,
    pub(crate) exemptions: Exemptions,
    pub(crate) observer: Arc<dyn Observer>,
    /// Where the session keeps its files.
    pub(crate) dir: PathBuf,
    /// The command that runs the tests, where the project's files do not tell.
    pub(crate) test_command: Option<Vec<String>>,
    /// Where that command leaves its coverage.
    pub(crate) test_coverage: Option<ProjectPath>,
    /// Whether a project without any file gets a repository for its first commit.
    pub(crate) new_repository: bool,
    /// How packages are installed, if they can be.
    pub(crate) dependencies: Option<Dependencies>,
    /// The project's repository.
    pub(crate) git: Git,
    /// How commits are made.
    pub(crate) commits: CommitOptions,
    /// Whether the repository keeps files that must not be read, once that was asked.
    pub(crate) keeps_hidden: OnceLock<bool>,
    /// Changes that a command left and that a person is being asked about.
    pub(crate) left_changes: LeftChanges,
    /// What changes while the session goes on.
    pub(crate) shared: Shared,
}

/// What of a desk changes while the session goes on.
pub(crate) struct Shared {
    /// The kernel that runs the tools, which holds them: it must not be held back.
    kernel: OnceLock<Weak<Kernel>>,
    /// Held by whoever changes something, from looking to done.
    changing: Mutex<()>,
    inside: RwLock<Inside>,
}

/// Where the work stands.
pub(crate) struct Inside {
    pub(crate) workflow: Workflow,
    pub(crate) staging: Staging,
    pub(crate) progress: Progress,
}

/// What became of the task so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    /// What the person wants, word by word.
    pub(crate) task: String,
    /// What the person keeps before the model's eyes.
    pub(crate) pins: Vec<Pin>,
    /// The environments that were installed, in order.
    pub(crate) installed: Vec<InstalledEnvironment>,
    /// What is in the project by now.
    pub(crate) merged: Vec<Merged>,
    /// How much of that was there before the person last said something.
    pub(crate) merged_before: usize,
    /// The merge that waits for its commit.
    pub(crate) uncommitted: Vec<Merged>,
    /// The commits that were made.
    pub(crate) commits: Vec<String>,
    /// How many changes were refused, or failed.
    pub(crate) refused: u64,
    /// Why the last merge was not agreed to, until one is.
    pub(crate) rejected: Option<String>,
    /// What it would have merged: nobody is asked the same twice.
    pub(crate) refused_work: Option<StagedFiles>,
    /// How coverage stands, as it was last measured.
    pub(crate) debt: Option<Account>,
    /// The last run that measured coverage.
    pub(crate) measured: Option<Measurement>,
    /// Whether debug mode was offered for the present row of failures.
    pub(crate) offered: bool,
    /// What kept the work from its end when that was last tried.
    pub(crate) stuck: Option<String>,
    /// What to do about a project whose test runner is not known, after a run that found none.
    pub(crate) no_runner: Option<String>,
    /// What the model says was done, once it is.
    pub(crate) done: Option<String>,
}

impl Inside {
    /// Whether something waits to be merged or committed.
    pub(crate) fn has_changes(&self) -> bool {
        !self.staging.files().is_empty() || !self.progress.uncommitted.is_empty()
    }

    /// Why this very work was not agreed to, if it was not.
    pub(crate) fn refusal(&self) -> Option<&str> {
        let same = self.progress.refused_work.as_ref() == Some(&self.staging.files());
        self.progress.rejected.as_deref().filter(|_| same)
    }

    /// What keeps the task from being done, in words for the model.
    pub(crate) fn missing(&self) -> Option<String> {
        let Standing { state, mode, .. } = self.workflow.standing();
        if let Some(why) = &self.progress.rejected {
            return Some(format!("the merge was not agreed to: {why}"));
        }
        let begun =
            !matches!(state, State::Idle | State::Planning | State::TestWriting | State::Exploring);
        if begun || self.has_changes() {
            if let Some(why) = &self.progress.stuck {
                return Some(why.clone());
            }
            let why = format!("the work stands in `{state}`: {}", next_step(state, mode));
            return Some(self.with_runner_advice(why));
        }
        let Progress { refused, merged, merged_before, .. } = &self.progress;
        let nothing = *refused > 0 && merged.len() <= *merged_before;
        nothing.then(|| "every change was refused, and nothing was done".to_owned())
    }

    /// Why the work is not done, with what a person has to do first where no test runner is known.
    pub(crate) fn with_runner_advice(&self, why: String) -> String {
        let advice = self.progress.no_runner.as_ref().filter(|_| {
            self.workflow.mode().is_test_first() && self.workflow.state() == State::TestWriting
        });
        match advice {
            Some(advice) => format!("{why}; {advice}"),
            None => why,
        }
    }
}

/// The right to change something.
pub(crate) struct Changing<'a> {
    desk: &'a Desk,
    _one: std::sync::MutexGuard<'a, ()>,
}

impl Shared {
    /// Of a session that stands here.
    pub(crate) fn new(inside: Inside) -> Self {
        Self { kernel: OnceLock::new(), changing: Mutex::default(), inside: RwLock::new(inside) }
    }
}

impl Desk {
    /// Tells the desk which kernel runs the tools. Until then nothing may be read or written.
    pub(crate) fn attach(&self, kernel: &Arc<Kernel>) {
        let _once = self.shared.kernel.set(Arc::downgrade(kernel));
        self.workshop.record_network(&kernel.witness);
    }

    /// The kernel, while the session lasts.
    pub(super) fn kernel(&self) -> Option<Arc<Kernel>> {
        self.shared.kernel.get().and_then(Weak::upgrade)
    }

    /// The hosts that the policy in force lists.
    pub(super) fn listed_hosts(&self) -> Option<Arc<[String]>> {
        Some(Arc::clone(&self.kernel()?.policy.in_force().hosts))
    }

    /// What the rules say of a file; see [`Kernel::may`].
    pub(crate) fn may(&self, tool: &'static str, path: &ProjectPath) -> May {
        let kernel = self.kernel();
        kernel.map_or(May::No, |kernel| kernel.may(tool, path))
    }

    /// What the ledger is now, signed and remembered.
    pub(crate) fn checkpoint(&self) -> Result<Checkpoint, ToolError> {
        let kernel = self.kernel();
        let kernel = kernel.ok_or_else(|| ToolError("the session is over".to_owned()))?;
        kernel.checkpoint().map_err(|error| failed(&error))
    }

    /// Where layers for one job are made.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.dir.join(SCRATCH)
    }

    /// Where the work stands, to look at. Not to be held while waiting for anything.
    pub(crate) fn look(&self) -> RwLockReadGuard<'_, Inside> {
        self.shared.inside.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the right to change something.
    pub(crate) fn change(&self) -> Changing<'_> {
        let one = self.shared.changing.lock().unwrap_or_else(PoisonError::into_inner);
        Changing { desk: self, _one: one }
    }

    /// The state.
    pub(crate) fn state(&self) -> State {
        self.look().workflow.state()
    }

    /// The session's changes as a directory to be laid over the project, to be held while a job sees it.
    pub(crate) fn layer(&self) -> Arc<Layer> {
        self.look().staging.layer()
    }

    /// Whether a file may be written where the work stands.
    pub(crate) fn writable(&self, path: &ProjectPath) -> Writable {
        Gate::new(&self.look().workflow, &self.conventions).writable(path)
    }

    /// Something happened to the work.
    pub(crate) fn happened(
        &self,
        journal: &dyn Journal,
        event: Event,
    ) -> Result<Transition, ToolError> {
        self.change().apply(journal, event, None)
    }

    /// Takes what a job produced as one step, if the rules and the state of the work let it.
    pub(crate) fn take(
        &self,
        clerk: &dyn Clerk,
        produced: &[Produced],
    ) -> Result<Option<Step>, ToolError> {
        let changing = self.change();
        let Some((step, changes)) = self.prepare_step(clerk, produced)? else { return Ok(None) };
        changing.apply(clerk, Event::FilesChanged(changes), Some(step.clone()))?;
        Ok(Some(step))
    }

    /// Says whether the state of the work would let this be taken, before a person is asked about it.
    pub(crate) fn check_step(
        &self,
        clerk: &dyn Clerk,
        produced: &[Produced],
    ) -> Result<(), ToolError> {
        let Some((_, changes)) = self.prepare_step(clerk, produced)? else { return Ok(()) };
        let mut workflow = self.look().workflow.clone();
        let tried = workflow.apply(Event::FilesChanged(changes)).map(drop);
        tried.map_err(|error| ToolError(format!("{error}; {}", error.fix)))
    }

    /// What a job produced as one step, with what the workflow has to know of its files; nothing where nothing changes.
    fn prepare_step(
        &self,
        clerk: &dyn Clerk,
        produced: &[Produced],
    ) -> Result<Option<(Step, Vec<Change>)>, ToolError> {
        let prepared = self.look().staging.prepare(clerk.request_id(), produced);
        let Some(step) = prepared.map_err(|error| failed(&error))? else { return Ok(None) };
        let view = self.view();
        if let Some(change) = step.changes.iter().find(|change| is_built(&view, &change.path)) {
            let path = &change.path;
            return Err(ToolError(format!(
                "`{path}` lies where Cargo builds, and what tests find there must be what was built"
            )));
        }
        let changes = step.changes.iter().map(|change| self.judged(&view, change));
        let changes: Vec<Change> = changes.collect::<Result<_, _>>()?;
        Ok(Some((step, changes)))
    }

    /// Takes the manifests and lock files that the kernel's own tool changed as one step.
    pub(crate) fn take_dependencies(
        &self,
        clerk: &dyn Clerk,
        produced: &[Produced],
    ) -> Result<Option<u64>, ToolError> {
        let changing = self.change();
        let prepared = self.look().staging.prepare(clerk.request_id(), produced);
        let Some(step) = prepared.map_err(|error| failed(&error))? else { return Ok(None) };
        let paths = step.changes.iter().map(|change| change.path.clone()).collect();
        let number = step.number;
        changing.apply(clerk, Event::DependenciesChanged(paths), Some(step))?;
        Ok(Some(number))
    }

    /// Files are in the project: nothing is staged any more.
    pub(crate) fn merged(&self, files: Vec<Merged>) -> Result<(), ToolError> {
        self.change().set(|inside| {
            inside.progress.merge(files);
            inside.staging.clear().map_err(|error| failed(&error))
        })
    }

    /// Judges an exemption by the policy.
    pub(crate) fn exempt(
        &self,
        journal: &dyn Journal,
        request: ExemptionRequest,
    ) -> Result<Transition, ToolError> {
        let grant = request
            .judge(&self.exemptions, &self.conventions, &Languages)
            .map_err(|error| ToolError(format!("the exemption is refused: {error}")))?;
        self.happened(journal, Event::ExemptionGranted(grant))
    }

    fn judged(&self, view: &View, change: &StepChange) -> Result<Change, ToolError> {
        let path = change.path.clone();
        let kind = self.conventions.kind(&path);
        let type_only = match self.writable(&path) {
            Writable::IfTypeOnly => self.is_type_only(view, change)?,
            Writable::Yes | Writable::No(_) => false,
        };
        Ok(Change { path, kind, type_only })
    }

    fn is_type_only(&self, view: &View, change: &StepChange) -> Result<bool, ToolError> {
        let blobs = &view.blobs;
        let before = match view.look(&change.path).map_err(|error| failed(&error))? {
            None => Vec::new(),
            Some(_) => {
                let limit = fluffy_workflow::MAX_TYPED_BYTES + 1;
                view.read(&change.path, limit as u64).map_err(|error| failed(&error))?
            }
        };
        let after = match change.after {
            Some(Staged::File(stored)) => blobs.get(&stored).map_err(|error| failed(&error))?,
            Some(Staged::Deleted) | None => Vec::new(),
        };
        let texts = (String::from_utf8(before), String::from_utf8(after));
        Ok(match texts {
            (Ok(before), Ok(after)) => Languages.check(&change.path, &before, &after).is_ok(),
            _not_text => false,
        })
    }
}

impl Views for Desk {
    fn view(&self) -> View {
        self.look().staging.view()
    }

    fn may_read(&self, path: &ProjectPath) -> bool {
        self.may("fs.read", path) == May::Yes
    }
}

impl Changing<'_> {
    /// Applies an event, with the step that it is about: recorded, then done, then told.
    pub(crate) fn apply(
        &self,
        journal: &dyn Journal,
        event: Event,
        step: Option<Step>,
    ) -> Result<Transition, ToolError> {
        let mut workflow = self.desk.look().workflow.clone();
        let transition = workflow
            .apply(event.clone())
            .map_err(|error| ToolError(format!("{error}; {}", error.fix)))?;
        let entry = Entry::Happened { event, step: step.clone() };
        journal.record(entry.transition(&transition)?)?;
        self.set(|inside| {
            inside.workflow = workflow;
            step.map_or(Ok(()), |step| inside.staging.promote(step).map_err(|error| failed(&error)))
        })?;
        self.tell(&transition);
        Ok(transition)
    }

    /// Makes a change visible that is in the ledger already.
    pub(crate) fn set<T>(&self, change: impl FnOnce(&mut Inside) -> T) -> T {
        let shared = &self.desk.shared;
        change(&mut shared.inside.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn tell(&self, transition: &Transition) {
        let Transition { from, via, to, .. } = *transition;
        let mut at = from;
        for next in via.into_iter().chain([to]) {
            if next != at {
                let (from, to) = (at.name().to_owned(), next.name().to_owned());
                self.desk.observer.notice(Told::StateChanged { from, to });
            }
            at = next;
        }
    }
}

/// Whether a path lies where Cargo builds. Planted there, a file could make a run of tests say what is not so. What
/// other languages install or compile has names of its own, which the workflow's gate knows.
fn is_built(view: &View, path: &ProjectPath) -> bool {
    let mut above = std::iter::successors(path.parent(), ProjectPath::parent);
    above.any(|directory| {
        let beside = match directory.parent() {
            None => ProjectPath::parse("Cargo.toml"),
            Some(parent) => parent.join("Cargo.toml"),
        };
        let builds = |manifest| matches!(view.look(&manifest), Ok(Some(_)));
        directory.file_name() == "target" && beside.is_ok_and(builds)
    })
}

/// An error with all its causes, as a tool tells it.
pub(crate) fn failed(error: &(dyn std::error::Error + 'static)) -> ToolError {
    ToolError(crate::kernel::causes(error))
}
