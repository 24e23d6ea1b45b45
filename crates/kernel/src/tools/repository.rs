//! `git.status`, `git.diff`, `git.log` and `git.commit`.

use std::sync::Arc;

use fluffy_base::{Clock as _, Event as Told, Json, MergedFile, ProjectPath, SystemClock};
use fluffy_workflow::Event;
use serde_json::{Value, json};

use super::Views as _;
use super::arguments::{self, text};
use crate::git::init_repository;
use crate::git::{Commit, Committed, GitError, GitPath, HookAnswer, Message, Recorded, Trailer};
use crate::session::{Desk, Entry, failed};
use crate::{Clerk, Tool, ToolError, ToolSpec};

/// Which of the four.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    Status,
    Diff,
    Log,
    Commit,
}

/// Speaks to the repository.
pub(crate) struct Repository {
    pub(crate) wanted: Wanted,
    pub(crate) desk: Arc<Desk>,
}

impl Tool for Repository {
    fn spec(&self) -> ToolSpec {
        let (name, summary, properties, required) = match self.wanted {
            Wanted::Status => ("git.status", "Changed files, yours included", json!({}), &[][..]),
            Wanted::Diff => (
                "git.diff",
                "Changes since the last commit, yours included",
                json!({ "path": { "type": "string" } }),
                &[][..],
            ),
            Wanted::Log => (
                "git.log",
                "The last commits",
                json!({ "limit": { "type": "integer", "minimum": 1 } }),
                &[][..],
            ),
            Wanted::Commit => (
                "git.commit",
                "Commits what was merged",
                json!({ "message": { "type": "string" } }),
                &["message"][..],
            ),
        };
        arguments::acting(name, summary, properties, required)
    }

    fn run(&self, params: &Json, clerk: &dyn Clerk) -> Result<Value, ToolError> {
        match self.wanted {
            Wanted::Status => self.status(),
            Wanted::Diff => self.diff(params),
            Wanted::Log => self.log(params),
            Wanted::Commit => self.commit(text(params, "message")?, clerk),
        }
    }
}

impl Repository {
    fn hidden(&self, path: &ProjectPath) -> bool {
        !self.desk.may_read(path)
    }

    fn status(&self) -> Result<Value, ToolError> {
        let layer = self.desk.layer();
        let layers = [layer.path().to_owned()];
        let status = self.desk.git.status(&layers, &|path| self.hidden(path)).map_err(told)?;
        let changed = status.changed.iter().map(|changed| {
            let state = format!("{}{}", changed.staged.letter(), changed.unstaged.letter());
            json!({ "path": shown(&changed.path), "state": state })
        });
        let changed: Vec<Value> = changed.collect();
        Ok(json!({ "branch": status.branch, "changed": changed, "hidden": status.hidden,
            "more": status.more }))
    }

    fn diff(&self, params: &Json) -> Result<Value, ToolError> {
        let path = arguments::directory(params)?;
        let layer = self.desk.layer();
        let layers = [layer.path().to_owned()];
        let diff = self.desk.git.diff(&layers, path.as_ref(), &|path| self.hidden(path));
        let diff = diff.map_err(told)?;
        Ok(json!({ "diff": diff.text, "hidden": diff.hidden, "cut": diff.cut }))
    }

    fn log(&self, params: &Json) -> Result<Value, ToolError> {
        let limit = params.value().get("limit").and_then(Value::as_u64);
        let limit = limit.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX));
        let log = self.desk.git.log(limit).map_err(told)?;
        let commits = log.commits.iter().map(|commit| {
            json!({ "commit": commit.id.as_str(), "author": commit.author,
                "seconds": commit.seconds, "subject": commit.subject })
        });
        Ok(json!({ "commits": commits.collect::<Vec<Value>>() }))
    }

    fn commit(&self, message: &str, clerk: &dyn Clerk) -> Result<Value, ToolError> {
        let desk = &*self.desk;
        let files = desk.look().progress.uncommitted.clone();
        let paths: Vec<ProjectPath> = files.iter().map(|file| file.path.clone()).collect();
        self.begin_repository(&paths)?;
        let committed = match self.make(message, &paths) {
            // A project without git has its files by now, and nothing to record them in.
            Err(GitError::NotARepository | GitError::NoGit) => None,
            made => made.map_err(told)?,
        };
        let id = committed.as_ref().map(|committed| committed.id.as_str().to_owned());
        clerk.record(Entry::CommitDone { commit: id.clone() }.note()?)?;
        desk.change().set(|inside| inside.progress.commit(id.clone()));
        desk.happened(clerk, Event::Committed)?;
        let told = files.iter().map(|file| MergedFile {
            path: file.path.to_string(),
            change: file.change().to_owned(),
        });
        desk.observer.notice(Told::MergeCompleted { files: told.collect(), commit: id.clone() });
        Ok(match committed {
            None => {
                json!({ "commit": null, "note": "nothing was there to commit to, or nothing to commit" })
            }
            Some(Committed { author, identity_invented, ignored, .. }) => json!({
                "commit": id,
                "author": author.name(),
                "author_invented": identity_invented,
                "ignored": ignored,
            }),
        })
    }

    /// Makes the repository of a new project: one in which there is nothing but what this session put there.
    fn begin_repository(&self, added: &[ProjectPath]) -> Result<(), ToolError> {
        let desk = &*self.desk;
        let git = ProjectPath::parse(".git").map_err(|error| failed(&error))?;
        let has_git = !matches!(desk.tree.look(&git), Ok(None));
        if !desk.new_repository || has_git || added.is_empty() {
            return Ok(());
        }
        let there = desk.view().walk(None).map_err(|error| failed(&error))?.files;
        let own =
            |path: &ProjectPath| path.as_str().starts_with(".fluffy/") || added.contains(path);
        if !there.iter().all(own) {
            return Ok(());
        }
        let made = init_repository(desk.tree.path());
        made.map_err(|error| ToolError(format!("the project's repository cannot be made: {error}")))
    }

    fn make(&self, message: &str, paths: &[ProjectPath]) -> Result<Option<Committed>, GitError> {
        let desk = &*self.desk;
        let options = &desk.commits;
        let message = Message::new(message)?;
        let (answer, message) = desk.git.commit_msg(options.hooks, &[], message)?;
        if let HookAnswer::Refused { ended, output } = answer {
            return Err(GitError::Failed { what: "pass the commit-msg hook", ended, output });
        }
        let Ok(checkpoint) = desk.checkpoint() else {
            return Err(GitError::Answer("the ledger gives no checkpoint"));
        };
        let (origin, size, root) = (checkpoint.origin, checkpoint.size, checkpoint.root);
        let trailer = Trailer::new(&format!("Fluffy-Checkpoint: {origin} {size} {root}"))?;
        let recorded = desk.git.commit(&Commit {
            paths,
            message: &message,
            trailer: &trailer,
            author: options.author.as_ref(),
            overrides: &options.overrides,
            at_ms: SystemClock.now_ms(),
            hooks: options.hooks,
        })?;
        Ok(match recorded {
            Recorded::Commit(committed) => Some(committed),
            Recorded::Nothing { .. } => None,
        })
    }
}

fn shown(path: &GitPath) -> String {
    match path {
        GitPath::Known(path) => path.to_string(),
        GitPath::Odd(name) => name.clone(),
    }
}

/// An error of git's with what to do about it.
fn told(error: GitError) -> ToolError {
    let fix = error.fix().map_or_else(String::new, |fix| format!("; {fix}"));
    let ToolError(text) = failed(&error);
    ToolError(format!("{text}{fix}"))
}
