//! `fluffy kernel halt`: ends the session of a running kernel, or of the last one.

use fluffy_base::{FaultCode, KernelState};
use fluffy_kernel::{CallError, KernelError};
use fluffy_ledger::LedgerError;
use serde_json::json;

use crate::client::{Link, told};
use crate::control::{self, HaltAnswer};
use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::output::Output;
use crate::place::Place;
use crate::settings::Settings;
use crate::wire;

pub(crate) fn run(
    place: &Place,
    environment: &Environment,
    reason: &str,
    output: &mut Output,
) -> Result<u8, CliError> {
    let kernel = match super::boot(
        super::kernel(place, &Settings::load(place, environment)?, None)?,
        output,
    ) {
        Ok(kernel) => kernel,
        Err(CliError::Kernel(KernelError::Ledger(locked @ LedgerError::Locked { .. }))) => {
            return match halt_served(place, environment, reason)? {
                Some(entry) => halted(entry, output),
                None => halt_running(place, reason, locked, output),
            };
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

/// Halts what the project's kernel has under way, if it has.
fn halt_served(
    place: &Place,
    environment: &Environment,
    reason: &str,
) -> Result<Option<u64>, CliError> {
    let Some(line) = Link::new(place, environment).existing()? else { return Ok(None) };
    match line.call::<HaltAnswer>(wire::HALT, &json!({ "reason": reason })) {
        Ok(answer) => Ok(answer.entry),
        Err(CallError::Fault(fault)) if fault.code == FaultCode::NotFound => Ok(None),
        Err(error) => Err(told(error)),
    }
}

fn halted(entry: u64, output: &mut Output) -> Result<u8, CliError> {
    output.line(format!("Halted the running kernel (entry {entry})."))?;
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
            Some(entry) => halted(entry, output),
            None => Err(CliError::Halt(answer.error.unwrap_or_default())),
        },
    }
}
