//! The user's wish to stop: Ctrl-C, the end of the terminal, a polite kill.
#![expect(unsafe_code, reason = "signals have no safe interface")]

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The signals that ask a program to end.
const ASKS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Has this called instead of the program being ended, once; whoever asks again ends it at once. To be set up before
/// other threads are started, which would be ended otherwise.
pub(crate) fn instead(call: impl FnOnce() + Send + 'static) -> io::Result<()> {
    // SAFETY: zeros are a valid set, which sigemptyset initialises; the set is read only by the calls.
    let set = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in ASKS {
            libc::sigaddset(&raw mut set, signal);
        }
        match libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) {
            0 => set,
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    };
    thread::Builder::new().name("interrupt".to_owned()).spawn(move || {
        let mut signal = 0;
        // SAFETY: the set is initialised, and the number is written to before it is read.
        if unsafe { libc::sigwait(&raw const set, &raw mut signal) } == 0 {
            thread::spawn(call);
        }
        // SAFETY: as above; and nothing of ours has to be done before the end, since the ledger survives it and no
        // sandbox does.
        unsafe {
            if libc::sigwait(&raw const set, &raw mut signal) == 0 {
                libc::_exit(crate::explain::CANCELLED.into());
            }
        }
    })?;
    Ok(())
}

/// What is ended when the user has enough, once there is something to end.
#[derive(Clone, Default)]
pub(crate) struct Stop {
    wanted: Arc<AtomicBool>,
    end: Arc<Mutex<Option<End>>>,
}

/// Ends something.
type End = Box<dyn FnOnce() + Send>;

impl Stop {
    /// Listens from now on. To be called before other threads are started; see [`instead`].
    pub(crate) fn listen() -> io::Result<Self> {
        let stop = Self::default();
        let heard = stop.clone();
        instead(move || {
            heard.wanted.store(true, Ordering::SeqCst);
            heard.ring();
        })?;
        Ok(stop)
    }

    /// Has this called when the user has enough, or at once if they have already.
    pub(crate) fn calls(&self, end: impl FnOnce() + Send + 'static) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(end));
        if self.wanted.load(Ordering::SeqCst) {
            self.ring();
        }
    }

    fn ring(&self) {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(end) = end {
            end();
        }
    }
}
