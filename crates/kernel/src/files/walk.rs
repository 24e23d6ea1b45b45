//! Every file beneath a directory of a view, found by all processors together.
//!
//! **Invariant.** Nothing is followed, nothing of `.git` is told, and what cannot be told is counted. A walk
//! that could not look everywhere it may look is an error, since others hide secrets by its answer; only what
//! vanishes meanwhile, and directories that the user may not read either, are passed over.

use std::io;
use std::num::NonZero;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use fluffy_base::ProjectPath;

use super::directory::{Child, Children, Kind, Place};
use super::ignored::{Ignored, Names};
use super::{TreeError, View};

/// A project has fewer files than this, or is no project.
pub(super) const MAX_FILES: usize = 1_000_000;

/// More threads than this wait for each other.
const MAX_THREADS: usize = 8;

/// What belongs to git and not to the project.
const GIT: &str = ".git";

/// Every regular file beneath a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walked {
    /// By path.
    pub files: Vec<ProjectPath>,
    /// How many names cannot be written as a path of the project; what lies beneath them is not counted.
    pub unnamed: usize,
    /// How many directories may not be read.
    pub unreadable: usize,
}

impl View {
    /// Every regular file beneath a directory that git does not ignore; none is the root. Ignore files count as
    /// the view shows them, those above the directory included; whether the directory itself is ignored does
    /// not, since it was asked for.
    pub fn walk(&self, directory: Option<&ProjectPath>) -> Result<Walked, TreeError> {
        let ignored = directory.and_then(|directory| self.ignored_above(directory));
        self.walk_all(directory, Obey::IgnoreFiles, ignored)
    }

    /// Every regular file, ignored or not, except what belongs to git.
    pub fn all_files(&self) -> Result<Walked, TreeError> {
        self.walk_all(None, Obey::Nothing, None)
    }

    fn walk_all(
        &self,
        directory: Option<&ProjectPath>,
        obey: Obey,
        ignored: Option<Arc<Ignored>>,
    ) -> Result<Walked, TreeError> {
        if directory.is_some_and(|path| path.components().any(|name| name == GIT)) {
            return Ok(Walked::default());
        }
        let start = Step { place: self.place(directory)?, ignored, asked_for: true };
        let walk = Walk {
            view: self,
            obey,
            state: Mutex::new(State { steps: vec![start], ..State::default() }),
            changed: Condvar::new(),
        };
        let parts = on_all_processors(|| walk.work());
        walk.finish(parts)
    }
}

/// Runs the same work on every processor, here and on threads of its own, and gives what each came to.
pub(crate) fn on_all_processors<T: Send>(work: impl Fn() -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
    std::thread::scope(|scope| {
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, &work).ok();
        // A thread that cannot be had is one that others do the work of.
        let started: Vec<_> = (1..threads).filter_map(start).collect();
        let mut parts = vec![work()];
        for thread in started {
            match thread.join() {
                Ok(part) => parts.push(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        parts
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Obey {
    IgnoreFiles,
    Nothing,
}

/// A directory that is still to be read.
struct Step {
    place: Place,
    /// What the directories above it ignore.
    ignored: Option<Arc<Ignored>>,
    /// Whether the walk begins here: then whoever asked is told if it cannot be read.
    asked_for: bool,
}

#[derive(Default)]
struct State {
    steps: Vec<Step>,
    /// How many are reading a directory and may find more.
    busy: usize,
    files: usize,
    failed: Option<TreeError>,
}

struct Walk<'a> {
    view: &'a View,
    obey: Obey,
    state: Mutex<State>,
    changed: Condvar,
}

impl Walk<'_> {
    /// Reads directories until there are none left.
    fn work(&self) -> Walked {
        let mut walked = Walked::default();
        while let Some((step, busy)) = self.next() {
            let before = walked.files.len();
            let result = self.read(&step, &mut walked);
            busy.done(result, walked.files.len() - before);
        }
        walked
    }

    fn next(&self) -> Option<(Step, Busy<'_>)> {
        let mut state = self.state();
        loop {
            if state.failed.is_some() {
                return None;
            }
            if let Some(step) = state.steps.pop() {
                state.busy += 1;
                return Some((step, Busy { state: &self.state, changed: &self.changed }));
            }
            if state.busy == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Reads one directory: its files are added, its directories given back.
    fn read(&self, step: &Step, walked: &mut Walked) -> Result<Vec<Step>, TreeError> {
        let children = match self.view.children(&step.place) {
            Ok(children) => children,
            Err(error) if step.asked_for => return Err(error.after_a_look()),
            // Gone, or something else by now.
            Err(TreeError::Missing(_) | TreeError::NotADirectory(_) | TreeError::Link { .. }) => {
                return Ok(Vec::new());
            }
            Err(TreeError::Io { source, .. })
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                walked.unreadable += 1;
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        };
        walked.unnamed += children.unnamed;
        let ignored = match self.obey {
            Obey::Nothing => None,
            Obey::IgnoreFiles => {
                let directory = step.place.path.as_ref();
                self.view.ignored_in(directory, step.ignored.clone(), names(&children))
            }
        };
        let mut steps = Vec::new();
        for Child { path, kind } in children.list {
            let is_directory = matches!(kind, Kind::Directory { .. });
            let left_out = path.file_name() == GIT
                || ignored.as_ref().is_some_and(|ignored| ignored.ignores(&path, is_directory));
            match kind {
                _ if left_out => {}
                Kind::File(_) => walked.files.push(path),
                Kind::Directory { project, staged } => {
                    let place = Place { path: Some(path), project, staged };
                    steps.push(Step { place, ignored: ignored.clone(), asked_for: false });
                }
                Kind::Link | Kind::Special => {}
            }
        }
        Ok(steps)
    }

    fn finish(self, parts: Vec<Walked>) -> Result<Walked, TreeError> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.failed {
            return Err(error);
        }
        let mut all = Walked::default();
        for mut part in parts {
            all.files.append(&mut part.files);
            all.unnamed += part.unnamed;
            all.unreadable += part.unreadable;
        }
        all.files.sort_unstable();
        Ok(all)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who reads a directory. Whatever becomes of them, the others do not wait for ever.
struct Busy<'a> {
    state: &'a Mutex<State>,
    changed: &'a Condvar,
}

impl Busy<'_> {
    fn done(self, result: Result<Vec<Step>, TreeError>, files: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.files = state.files.saturating_add(files);
        match result {
            Ok(steps) if state.files <= MAX_FILES => state.steps.extend(steps),
            Ok(_) => state.failed = Some(TreeError::TooMany(MAX_FILES)),
            Err(error) => state.failed = Some(error),
        }
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.busy = state.busy.saturating_sub(1);
        drop(state);
        self.changed.notify_all();
    }
}

fn names(children: &Children) -> Names {
    let mut names = Names::default();
    for child in &children.list {
        match child.path.file_name() {
            GIT => names.git = true,
            ".gitignore" => names.gitignore = matches!(child.kind, Kind::File(_)),
            _other => {}
        }
    }
    names
}
