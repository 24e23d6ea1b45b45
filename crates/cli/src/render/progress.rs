//! The thread that keeps the status line alive while somebody waits.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::render::People;

/// How often the status is drawn.
const EVERY: Duration = Duration::from_millis(100);

/// Draws the status of a task until it is dropped.
pub(crate) struct Progress {
    over: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Keeps drawing.
    pub(crate) fn of(people: Arc<People>) -> io::Result<Self> {
        let over = Arc::new((Mutex::new(false), Condvar::new()));
        let seen = Arc::clone(&over);
        let draw = move || {
            let (over, changed) = &*seen;
            let mut guard = over.lock().unwrap_or_else(PoisonError::into_inner);
            while !*guard {
                let waited = changed.wait_timeout(guard, EVERY);
                guard = waited.unwrap_or_else(PoisonError::into_inner).0;
                if !*guard {
                    people.tick();
                }
            }
        };
        let thread = thread::Builder::new().name("progress".to_owned()).spawn(draw)?;
        Ok(Self { over, thread: Some(thread) })
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let (over, changed) = &*self.over;
        *over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A thread that drew no more has nothing to say either.
            let _ended = thread.join();
        }
    }
}
