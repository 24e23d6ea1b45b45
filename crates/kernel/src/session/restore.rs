//! A session from its entries in the ledger.
//!
//! **Invariant.** What is restored is what the entries say, in their order; an entry that cannot be read ends the
//! restoring, because half of a session is another one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use fluffy_base::{Digest, ProjectPath};
use fluffy_ledger::{Layout, LedgerError, Located, Proved, VerifyingKey};
use fluffy_workflow::{Access, Event, InvalidTransition, Mode, State, Workflow};
use serde_json::Value;

use super::chronicle::{self, Chronicle};
use super::desk::Progress;
use super::router::is_change;
use super::{CallAnswer, Entry, ForkedFrom, Merged, Message, Pin};
use crate::Grant;
use crate::dependencies::InstalledEnvironment;
use crate::files::{Blobs, Staged, Stored, Tree};
use crate::staging::{Staging, StagingError, Step};

/// A turn of the model with what its calls were answered.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnRecord {
    /// What the model said and asked for.
    pub turn: Value,
    /// What its calls were answered, by their ids.
    pub answers: BTreeMap<String, CallAnswer>,
}

/// A session as the ledger has it.
#[derive(Debug, Clone)]
pub struct StoredSession {
    /// When it began.
    pub started_ms: u64,
    /// What the person wants.
    pub task: String,
    /// Who drove it last, if anybody did.
    pub driver: Option<Driver>,
    /// The conversation.
    pub turns: Vec<TurnRecord>,
    /// What the person said after the task itself.
    pub messages: Vec<Message>,
    /// What the person agreed to for as long as it lasts; under which policy, each says.
    pub grants: Vec<Grant>,
    /// The session that it goes on from, if it is a fork.
    pub forked: Option<ForkedFrom>,
    /// Since when it is archived, if it is.
    pub archived: Option<Archived>,
    pub(crate) workflow: Workflow,
    pub(crate) steps: Vec<Step>,
    /// The greatest number that a step ever had.
    pub(crate) last_step: u64,
    pub(crate) progress: Progress,
    /// The merge that was begun and is not known to be done.
    pub(crate) merging: Option<(Vec<Merged>, String)>,
    /// The greatest number that a grant ever had.
    pub(crate) last_grant: u64,
}

/// That a session is archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Archived {
    /// Since when.
    pub since_ms: u64,
    /// The hash of the file that has its files; none if it had none.
    pub file: Option<Digest>,
}

/// Who drives a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    /// Who provides the model, as the person named it.
    pub provider: String,
    /// The model.
    pub model: String,
}

/// Why a session cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The ledger has nothing of it.
    #[error("there is no session `{0}` in this project")]
    Unknown(String),
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// What the ledger's file says is not what was recorded.
    #[error("the session's history is not what was recorded: {found}")]
    Forged {
        /// The session.
        id: String,
        /// What is wrong and where.
        found: Box<Located>,
        /// How many turns before it are whole.
        turns: usize,
    },
    /// The ledger was damaged, and what is left of the session lies before the damage.
    #[error("session `{0}` was cut off where the ledger was damaged")]
    CutOff(String),
    /// An entry is not what a session writes.
    #[error("entry {seq} of the session cannot be read")]
    Entry {
        /// Its number.
        seq: u64,
        /// Why not.
        source: serde_json::Error,
    },
    /// A fork whose making was interrupted.
    #[error("session `{0}` is a fork that was not finished")]
    HalfForked(String),
    /// An entry whose content was taken away.
    #[error("the content of entry {0} of the session is not there any more")]
    Gone(u64),
    /// Entries that contradict each other.
    #[error("the session's entries contradict each other")]
    Workflow(#[from] InvalidTransition),
}

/// What is gathered while entries are read.
#[derive(Default)]
pub(crate) struct Fold {
    opened: Option<(u64, Access, String)>,
    /// How many entries there are after the first.
    followed: u64,
    forked: Option<ForkedFrom>,
    driver: Option<Driver>,
    happened: Vec<(Event, Option<Step>)>,
    last_step: u64,
    /// How many of those are merged and out of reach.
    settled: usize,
    turns: Vec<TurnRecord>,
    messages: Vec<Message>,
    grants: Vec<Grant>,
    last_grant: u64,
    progress: Progress,
    merging: Option<(Vec<Merged>, String)>,
}

impl StoredSession {
    /// The session of this id as a ledger's database has it. Nothing is proved: not for what reaches a model.
    pub fn read(database: &Path, id: &str) -> Result<Self, RestoreError> {
        let mut fold = Fold::default();
        chronicle::unproved(database, id, |ts_ms, entry| fold.add(ts_ms, entry))?;
        fold.finish(id)
    }

    /// The session of this id, every entry proved: by its hash and those of its detail and its kept content, by its
    /// place after the entry before it and in the tree, and by the checkpoint that is remembered outside the ledger.
    pub fn prove(
        layout: &Layout,
        key: &VerifyingKey,
        id: &str,
    ) -> Result<(Self, Proved), RestoreError> {
        let Chronicle { entries, archived, proved } = Chronicle::read(layout, key, id, None)?;
        let mut fold = Fold::default();
        entries.into_iter().for_each(|told| fold.add(told.ts_ms, told.entry));
        Ok((Self { archived, ..fold.finish(id)? }, proved))
    }

    /// What it has staged, rebuilt from its steps.
    pub(crate) fn staging(&self, dir: &Path, tree: Arc<Tree>) -> Result<Staging, StagingError> {
        let mut staging = Staging::restore(dir, tree, self.steps.iter().cloned())?;
        staging.continue_after(self.last_step);
        Ok(staging)
    }

    /// Whether the contents of its steps are what the steps say, before anything is made of them.
    pub(crate) fn check_contents(&self, dir: &Path) -> Result<(), StagingError> {
        let blobs = Blobs::of(&dir.join("blobs"));
        let contents = self.contents();
        contents.values().try_for_each(|stored| Ok(blobs.open_file(stored).map(drop)?))
    }

    /// The contents that its steps speak of.
    pub(crate) fn contents(&self) -> BTreeMap<Digest, Stored> {
        let file = |staged: Option<Staged>| match staged {
            Some(Staged::File(stored)) => Some(stored),
            Some(Staged::Deleted) | None => None,
        };
        let changes = self.steps.iter().flat_map(|step| &step.changes);
        let kept = changes
            .flat_map(|change| [file(change.before), file(change.after), change.base.file()]);
        kept.flatten().map(|stored| (stored.digest, stored)).collect()
    }

    /// How many turns the model had since the person last said something.
    pub fn turns_since_said(&self) -> usize {
        let before = self.messages.last().map_or(0, |message| message.after);
        self.turns.len().saturating_sub(usize::try_from(before).unwrap_or(usize::MAX))
    }

    /// Where its work stands.
    pub fn state(&self) -> State {
        self.workflow.state()
    }

    /// How strictly it works.
    pub fn mode(&self) -> Mode {
        self.workflow.mode()
    }

    /// Whether it may write.
    pub fn access(&self) -> Access {
        self.workflow.standing().access
    }

    /// The same in a word, with whether it is done.
    pub fn standing(&self) -> &'static str {
        if self.done().is_some() { "done" } else { self.state().name() }
    }

    /// What was done, if it is.
    pub fn done(&self) -> Option<&str> {
        self.progress.done.as_deref()
    }

    /// What the person keeps before the model's eyes.
    pub fn pins(&self) -> &[Pin] {
        &self.progress.pins
    }

    /// The files that it has changed in the project.
    pub fn merged(&self) -> Vec<String> {
        self.progress.merged.iter().map(|merged| merged.path.to_string()).collect()
    }

    /// The commits that it made.
    pub fn commits(&self) -> &[String] {
        &self.progress.commits
    }

    /// The numbers of its steps that are not merged, with their files.
    pub fn open_steps(&self) -> impl Iterator<Item = (u64, Vec<String>)> {
        let files =
            |step: &Step| step.changes.iter().map(|change| change.path.to_string()).collect();
        self.steps.iter().map(move |step| (step.number, files(step)))
    }
}

impl Fold {
    /// Entries that are there and not looked into.
    pub(crate) fn pass_over(&mut self, entries: u64) {
        self.followed += entries;
    }

    pub(crate) fn add(&mut self, ts_ms: u64, entry: Entry) {
        self.followed += u64::from(self.opened.is_some());
        match entry {
            Entry::Opened { access, task, fork, .. } => {
                self.progress.task.clone_from(&task);
                self.forked = fork;
                self.opened = Some((ts_ms, access, task));
            }
            Entry::Driven { provider, model } => self.driver = Some(Driver { provider, model }),
            Entry::Pinned(pin) => self.progress.pins.push(pin),
            Entry::Installed(installed) => self.progress.install(installed),
            Entry::Unpinned { path } => self.progress.pins.retain(|pin| pin.path != path),
            Entry::Said(message) => {
                self.progress.go_on(&message.text);
                self.messages.push(message);
            }
            Entry::Granted(grant) => {
                self.last_grant = self.last_grant.max(grant.number);
                self.grants.push(grant);
            }
            Entry::Revoked { number: Some(number) } => {
                self.grants.retain(|grant| grant.number != number);
            }
            Entry::Revoked { number: None } => self.grants.clear(),
            Entry::Happened { event, step } => {
                self.last_step = self.last_step.max(step.as_ref().map_or(0, |it| it.number));
                let given_up = event == Event::Cancelled;
                self.happened.push((event, step));
                if given_up {
                    self.settled = self.happened.len();
                }
            }
            Entry::Turn { turn } => self.turns.push(TurnRecord { turn, answers: BTreeMap::new() }),
            Entry::Answered { call, answer } => {
                self.progress.refused += u64::from(!answer.success && is_change(&answer.tool));
                if let Some(turn) = self.turns.last_mut() {
                    turn.answers.insert(call, answer);
                }
            }
            Entry::Merging { files, plan } => self.merging = Some((files, plan)),
            Entry::MergeDone => {
                if let Some((files, _plan)) = self.merging.take() {
                    self.progress.merge(files);
                }
                self.settled = self.happened.len();
            }
            Entry::MergeRejected { why } => {
                // It was begun and given up: what it would have made of the files means nothing any more.
                self.merging = None;
                self.progress.rejected = Some(why);
            }
            Entry::CommitDone { commit } => self.progress.commit(commit),
            Entry::Rewound { to } => self.rewind(to),
            Entry::Completed { summary } => self.progress.done = Some(summary),
            Entry::Unarchived => {}
        }
    }

    /// Forgets what happened after a step, as far as it is not merged.
    fn rewind(&mut self, to: u64) {
        let open = self.happened.get(self.settled..).unwrap_or_default();
        let last =
            open.iter().rposition(|(_, step)| step.as_ref().is_some_and(|it| it.number <= to));
        let first = open.iter().position(|(_, step)| step.is_some());
        let kept = last.map(|at| at + 1).or(first).unwrap_or(open.len());
        self.happened.truncate(self.settled + kept);
    }

    pub(crate) fn finish(self, id: &str) -> Result<StoredSession, RestoreError> {
        let (started_ms, access, task) =
            self.opened.ok_or_else(|| RestoreError::Unknown(id.to_owned()))?;
        if self.forked.as_ref().is_some_and(|fork| fork.copied > self.followed) {
            return Err(RestoreError::HalfForked(id.to_owned()));
        }
        let open = self.happened.get(self.settled..).unwrap_or_default();
        let steps = open.iter().filter_map(|(_, step)| step.clone()).collect();
        let events = self.happened.into_iter().map(|(event, _)| event);
        let workflow = Workflow::restore(Mode::Strict, access, events)?;
        let (driver, turns, last_step) = (self.driver, self.turns, self.last_step);
        let (progress, merging) = (self.progress, self.merging);
        Ok(StoredSession {
            started_ms,
            task,
            driver,
            turns,
            messages: self.messages,
            grants: self.grants,
            last_grant: self.last_grant,
            forked: self.forked,
            archived: None,
            workflow,
            steps,
            last_step,
            progress,
            merging,
        })
    }
}

impl Progress {
    /// The person says something more: what is done is done, and what was refused is not what is asked for now.
    pub(crate) fn go_on(&mut self, text: &str) {
        text.clone_into(&mut self.task);
        (self.done, self.rejected, self.refused_work) = (None, None, None);
        (self.refused, self.stuck, self.offered) = (0, None, false);
        self.merged_before = self.merged.len();
    }

    /// Packages are installed.
    pub(crate) fn install(&mut self, installed: InstalledEnvironment) {
        self.installed.push(installed);
    }

    /// Whether a person was shown this very content of a file when packages were installed.
    pub(crate) fn was_shown(&self, path: &ProjectPath, content: &Digest) -> bool {
        self.installed.iter().any(|it| it.files.get(path) == Some(content))
    }

    /// Files are in the project.
    pub(crate) fn merge(&mut self, files: Vec<Merged>) {
        self.merged.extend(files.iter().cloned());
        // What was merged before a crash and is not committed yet waits still.
        self.uncommitted.retain(|known| files.iter().all(|file| file.path != known.path));
        self.uncommitted.extend(files);
        self.rejected = None;
    }

    /// They are committed, or will not be.
    pub(crate) fn commit(&mut self, commit: Option<String>) {
        self.commits.extend(commit);
        self.uncommitted.clear();
    }
}

#[cfg(test)]
mod tests {
    use fluffy_base::{Digest, ProjectPath};

    use super::*;
    use crate::files::Stored;

    fn merged(path: &str) -> Merged {
        let now = Stored { digest: Digest::of(b"a"), bytes: 1, executable: false };
        Merged { path: ProjectPath::parse(path).unwrap(), now: Some(now), before: false }
    }

    #[test]
    fn what_was_merged_before_a_crash_waits_for_its_commit_whatever_is_merged_next() {
        let mut fold = Fold::default();
        let plan = String::new();
        fold.add(1, Entry::Merging { files: vec![merged("a")], plan: plan.clone() });
        fold.add(2, Entry::MergeDone);
        // The process died before the work moved on, so it was reviewed again, with nothing left to merge.
        fold.add(3, Entry::Merging { files: Vec::new(), plan });
        fold.add(4, Entry::MergeDone);
        assert_eq!(fold.progress.uncommitted, [merged("a")]);
    }

    #[test]
    fn a_merge_that_was_given_up_is_not_taken_for_done() {
        let mut fold = Fold::default();
        fold.add(1, Entry::Merging { files: vec![merged("a")], plan: String::new() });
        fold.add(2, Entry::MergeRejected { why: "changed".to_owned() });
        assert!(fold.merging.is_none());
    }

    #[test]
    fn a_refusal_is_remembered_over_a_restart() {
        let mut fold = Fold::default();
        let answer = CallAnswer {
            id: "1".to_owned(),
            tool: "fs.write".to_owned(),
            allowed: false,
            success: false,
            content: Value::Null,
        };
        fold.add(1, Entry::Answered { call: "1".to_owned(), answer });
        assert_eq!(fold.progress.refused, 1);
    }
}
