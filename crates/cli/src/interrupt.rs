//! The user's wish to stop: Ctrl-C, the end of the terminal, a polite kill.
#![expect(unsafe_code, reason = "signals have no safe interface")]

use std::io;
use std::thread;

/// The signals that ask a program to end.
const ASKS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Has this called instead of the program being ended, once. To be set up before other threads are started, which
/// would be ended otherwise.
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
            call();
        }
    })?;
    Ok(())
}
