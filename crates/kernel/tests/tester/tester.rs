//! What tests run as the first process of a sandbox. Never shipped.

use std::process::ExitCode;

fn main() -> ExitCode {
    fluffy_sandbox::sandbox_init(&[])
}
