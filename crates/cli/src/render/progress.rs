//! The thread that keeps the status line alive while somebody waits.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::render::{Look, duration};

/// How often the status is drawn, in milliseconds.
const EVERY_MS: u64 = 100;
/// How long something takes before its progress is shown, in milliseconds.
const PATIENCE_MS: u64 = 1000;
/// What turns while somebody waits.
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Something with a status.
pub(crate) trait Status: Send + Sync {
    /// Draws it as it is now.
    fn tick(&self);
}

/// How what turns looks at this time.
pub(crate) fn frame(now_ms: u64) -> &'static str {
    let at = usize::try_from(now_ms / EVERY_MS).unwrap_or_default() % FRAMES.len();
    FRAMES.get(at).copied().unwrap_or_default()
}

/// What is waited for and how long it has taken, where that is worth a line.
pub(crate) fn waited(look: &Look, text: &str, (since_ms, now_ms): (u64, u64)) -> Option<String> {
    let waited = now_ms.saturating_sub(since_ms);
    if waited < PATIENCE_MS {
        return None;
    }
    let time = match waited / 1000 {
        seconds @ 0..60 => format!("{seconds} s"),
        _ => duration(waited),
    };
    let text = look.fitted(text, time.len() + 8);
    Some(format!("  {} {text}  {time}", frame(now_ms)))
}

/// Draws a status until it is dropped.
pub(crate) struct Progress {
    over: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Keeps drawing.
    pub(crate) fn of(status: Arc<dyn Status>) -> io::Result<Self> {
        let over = Arc::new((Mutex::new(false), Condvar::new()));
        let seen = Arc::clone(&over);
        let draw = move || {
            let (over, changed) = &*seen;
            let mut guard = over.lock().unwrap_or_else(PoisonError::into_inner);
            while !*guard {
                let waited = changed.wait_timeout(guard, Duration::from_millis(EVERY_MS));
                guard = waited.unwrap_or_else(PoisonError::into_inner).0;
                if !*guard {
                    status.tick();
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
