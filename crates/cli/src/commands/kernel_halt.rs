//! `fluffy kernel halt`: ends the session of a running kernel, or of the last one.

use fluffy_base::KernelState;
use fluffy_kernel::KernelError;
use fluffy_ledger::LedgerError;

use crate::control;
use crate::explain::{CliError, DONE};
use crate::output::Output;
use crate::place::Place;

pub(crate) fn run(place: &Place, reason: &str, output: &mut Output) -> Result<u8, CliError> {
    let kernel = match super::boot(super::kernel(place, None)?, output) {
        Ok(kernel) => kernel,
        Err(CliError::Kernel(KernelError::Ledger(locked @ LedgerError::Locked { .. }))) => {
            return halt_running(place, reason, locked, output);
        }
        Err(error) => return Err(error),
    };
    if kernel.state() == KernelState::Halted {
        output.line("The kernel is already halted.")?;
    } else {
        let halted = kernel.halt(reason)?;
        output.line(format!("Halted (entry {}).", halted.seq))?;
    }
    output.line("Begin a new session with: fluffy kernel submit --json --new-session")?;
    kernel.close()?;
    Ok(DONE)
}

fn halt_running(
    place: &Place,
    reason: &str,
    locked: LedgerError,
    output: &mut Output,
) -> Result<u8, CliError> {
    let socket = place.control_socket();
    let answer = control::ask_to_halt(&socket, reason).map_err(|source| CliError::File {
        action: "speak to",
        path: socket,
        source,
    })?;
    match answer {
        None => Err(locked.into()),
        Some(answer) => match answer.entry {
            Some(entry) => {
                output.line(format!("Halted the running kernel (entry {entry})."))?;
                Ok(DONE)
            }
            None => Err(CliError::Halt(answer.error.unwrap_or_default())),
        },
    }
}
