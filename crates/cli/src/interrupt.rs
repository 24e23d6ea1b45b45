//! The user's wish to stop: Ctrl-C, the end of the terminal, a polite kill.
#![expect(unsafe_code, reason = "signals have no safe interface")]

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The signals that ask a program to end.
const ASKS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Has this called instead of the program being ended, once; whoever asks again ends it at once. To be set up before
/// other threads are started, which would be ended otherwise.
pub(crate) fn instead(call: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let set = kept_back(&ASKS)?;
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

/// Has this called whenever a signal comes. To be set up before other threads are started, as above.
pub(crate) fn whenever(signal: libc::c_int, call: impl Fn() + Send + 'static) -> io::Result<()> {
    // Its thread is none that those which ask for the end would end.
    kept_back(&ASKS)?;
    let set = kept_back(&[signal])?;
    thread::Builder::new().name("signal".to_owned()).spawn(move || {
        let mut signal = 0;
        // SAFETY: the set is initialised, and the number is written to before it is read.
        while unsafe { libc::sigwait(&raw const set, &raw mut signal) } == 0 {
            call();
        }
    })?;
    Ok(())
}

/// Keeps signals back from this thread and those that it starts.
fn kept_back(signals: &[libc::c_int]) -> io::Result<libc::sigset_t> {
    // SAFETY: zeros are a valid set, which sigemptyset initialises; the set is read only by the calls.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        match libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) {
            0 => Ok(set),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// Lets them end this program again, where whoever started it had kept them back.
pub(crate) fn let_through() {
    // SAFETY: zeros are a valid set, which sigemptyset initialises; the set is read only by the call.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// What is ended when the user has enough, once there is something to end.
#[derive(Clone, Default)]
pub(crate) struct Stop {
    inside: Arc<Mutex<Wish>>,
}

#[derive(Default)]
struct Wish {
    /// How it is wanted, if it is.
    wanted: Option<How>,
    end: Option<End>,
}

/// How something is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum How {
    /// What is being done comes to its end, and nothing else is begun.
    Gently,
    /// At once.
    Now,
}

/// Ends something; called again if it is wanted more urgently.
type End = Arc<dyn Fn(How) + Send + Sync>;

impl Stop {
    /// Listens from now on. To be called before other threads are started; see [`instead`].
    pub(crate) fn listen() -> io::Result<Self> {
        let stop = Self::default();
        let heard = stop.clone();
        instead(move || heard.want(How::Now))?;
        Ok(stop)
    }

    /// The user has enough, or nobody is there any more.
    pub(crate) fn want(&self, how: How) {
        let mut inside = self.inside();
        inside.wanted = inside.wanted.max(Some(how));
        let end = inside.end.clone();
        drop(inside);
        if let Some(end) = end {
            end(how);
        }
    }

    /// Whether they have.
    pub(crate) fn is_wanted(&self) -> bool {
        self.inside().wanted.is_some()
    }

    /// Has this called when the user has enough, or at once if they have already.
    pub(crate) fn calls(&self, end: impl Fn(How) + Send + Sync + 'static) {
        let end: End = Arc::new(end);
        let mut inside = self.inside();
        inside.end = Some(Arc::clone(&end));
        let wanted = inside.wanted;
        drop(inside);
        if let Some(how) = wanted {
            end(how);
        }
    }

    fn inside(&self) -> MutexGuard<'_, Wish> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
