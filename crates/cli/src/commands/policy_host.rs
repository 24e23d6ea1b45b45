//! `fluffy policy-host`: the process in which the kernel has rule files judged.
//!
//! **Invariant.** It reads its standard input, writes its standard output and does nothing else: no
//! configuration, no environment, no files.

use std::fs::File;
use std::os::fd::AsFd as _;

use crate::explain::{DONE, FAILED};

pub(crate) fn run() -> u8 {
    // The handles themselves: the buffers of the standard library would hide what has come.
    let input = std::io::stdin().as_fd().try_clone_to_owned().map(File::from);
    let output = std::io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let (Ok(input), Ok(output)) = (input, output) else { return FAILED };
    match fluffy_policy::serve(input, output) {
        Ok(()) => DONE,
        // Nobody reads a message: the kernel sees that the pipes are closed.
        Err(_) => FAILED,
    }
}
