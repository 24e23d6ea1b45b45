//! Where one task waits for its seat, and is found while it has it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fluffy_sandbox::Sandbox;

use super::task::{Ended, TaskId};

/// The door of one task.
pub(super) struct Door {
    pub(super) id: TaskId,
    sandbox: Arc<dyn Sandbox>,
    inside: Mutex<Inside>,
    changed: Condvar,
}

#[derive(Default)]
struct Inside {
    is_open: bool,
    /// Its sandbox runs, and can be paused.
    has_begun: bool,
    has_left: bool,
    is_paused: bool,
    /// What became of it against its will.
    verdict: Option<Ended>,
}

impl Door {
    pub(super) fn new(id: TaskId, sandbox: Arc<dyn Sandbox>) -> Self {
        Self { id, sandbox, inside: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits to be let in, so long at most; whether it was. The error says that it never will be.
    pub(super) fn wait(&self, longest: Duration) -> Result<bool, Ended> {
        let inside = self.inside();
        let waits = |inside: &mut Inside| !inside.is_open && inside.verdict.is_none();
        let waited = self.changed.wait_timeout_while(inside, longest, waits);
        let (inside, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match &inside.verdict {
            Some(verdict) if !inside.is_open => Err(verdict.clone()),
            _ => Ok(inside.is_open),
        }
    }

    /// Its sandbox runs from now on. What was to be ended before that, and could not be, is ended now.
    pub(super) fn begin(&self) {
        let mut inside = self.inside();
        inside.has_begun = true;
        let is_over = inside.verdict.is_some();
        drop(inside);
        self.changed.notify_all();
        if is_over {
            self.sandbox.kill();
        }
    }

    /// Whether it was not let in yet.
    pub(super) fn is_waiting(&self) -> bool {
        !self.inside().is_open
    }

    /// What became of it against its will.
    pub(super) fn verdict(&self) -> Option<Ended> {
        self.inside().verdict.clone()
    }

    pub(super) fn open(&self) {
        self.inside().is_open = true;
        self.changed.notify_all();
    }

    pub(super) fn close(&self, ended: Ended) {
        self.inside().verdict = Some(ended);
        self.changed.notify_all();
    }

    /// It needs its seat no longer. A guest that had answered when it was paused goes on, to be spoken to again.
    pub(super) fn leave(&self) {
        let mut inside = self.inside();
        inside.has_left = true;
        let is_paused = inside.is_paused;
        drop(inside);
        self.changed.notify_all();
        if is_paused {
            self.resume();
        }
    }

    /// Pauses it, once it runs; whether it stands still.
    pub(super) fn pause(&self) -> bool {
        let inside = self.inside();
        let waits = |inside: &mut Inside| !inside.has_begun && !inside.has_left;
        let inside = self.changed.wait_while(inside, waits);
        let has_left = inside.unwrap_or_else(PoisonError::into_inner).has_left;
        if has_left || self.sandbox.pause().is_err() {
            return false;
        }
        let mut inside = self.inside();
        inside.is_paused = !inside.has_left;
        let is_paused = inside.is_paused;
        drop(inside);
        if !is_paused {
            self.resume();
        }
        is_paused
    }

    /// Has it go on. What cannot go on would stand still for ever.
    pub(super) fn resume(&self) {
        self.inside().is_paused = false;
        if self.sandbox.resume().is_err() {
            self.sandbox.kill();
        }
    }

    pub(super) fn destroy(&self, ended: Ended) {
        self.inside().verdict = Some(ended);
        self.changed.notify_all();
        self.sandbox.kill();
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
