//! `fluffy file-host`: the process in which the kernel has a file changed.
//!
//! **Invariant.** It reads its standard input, changes one file beneath its working directory, and writes its
//! standard output: no configuration, no environment.

use crate::explain::{DONE, FAILED};

pub(crate) fn run() -> u8 {
    match fluffy_kernel::file_host(std::io::stdin().lock(), std::io::stdout().lock()) {
        Ok(()) => DONE,
        // Nobody reads a message: the kernel sees that there is no answer.
        Err(_) => FAILED,
    }
}
