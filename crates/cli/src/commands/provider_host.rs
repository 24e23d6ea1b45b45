//! `fluffy provider-host`: the process in which the kernel has a provider spoken with.
//!
//! **Invariant.** It reads its standard input, writes its standard output and speaks with the proxy of its sandbox:
//! no configuration, no files. Before it is given the key it makes sure that nobody gets at its memory.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

use crate::explain::{DONE, FAILED};

/// Where the sandbox has its proxy.
const PROXY: &str = "/run/fluffy/proxy.sock";

pub(crate) fn run() -> u8 {
    // In a sandbox the limit is nothing already, and the call is refused.
    let _already = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    if set_dumpable_behavior(DumpableBehavior::NotDumpable).is_err() {
        return FAILED;
    }
    // The handles themselves: the buffers of the standard library would hide what has come, and keep the key.
    let input = std::io::stdin().as_fd().try_clone_to_owned().map(File::from);
    let output = std::io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let (Ok(input), Ok(output)) = (input, output) else { return FAILED };
    match fluffy_provider::serve(input, output, Arc::new(|| UnixStream::connect(PROXY))) {
        Ok(()) => DONE,
        // Nobody reads a message: the kernel sees that the pipes are closed.
        Err(_) => FAILED,
    }
}
