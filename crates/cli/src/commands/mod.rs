//! One file a command.

mod audit_export;
mod audit_key;
mod audit_log;
mod audit_prove;
mod audit_verify;
mod demo;
mod doctor;
mod kernel_halt;
mod kernel_submit;
pub(crate) mod policy_host;

use std::path::Path;

use clap::CommandFactory as _;
use fluffy_kernel::{KernelConfig, Registry};
use fluffy_policy::{DEFAULT_POLICY, MAX_POLICY_BYTES, PolicyFile};

use crate::args::{Args, AuditCommand, Command, KernelCommand};
use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::output::Output;
use crate::place::Place;

/// Does what was asked; gives the exit code.
pub(crate) fn run(
    args: Args,
    environment: &Environment,
    output: &mut Output,
) -> Result<u8, CliError> {
    let place = || Place::of(args.project.as_deref(), environment);
    let code = match args.command {
        Command::Demo => demo::run(environment, output)?,
        Command::Kernel(KernelCommand::Submit(submit)) => {
            kernel_submit::run(&place()?, &submit, output)?
        }
        Command::Kernel(KernelCommand::Halt { reason }) => {
            kernel_halt::run(&place()?, &reason, output)?
        }
        Command::Audit(AuditCommand::Log(log)) => audit_log::run(&place()?, &log, output)?,
        Command::Audit(AuditCommand::Verify(verify)) => audit_verify::run(&place, &verify, output)?,
        Command::Audit(AuditCommand::Export(export)) => {
            audit_export::run(&place()?, &export, output)?
        }
        Command::Audit(AuditCommand::Prove(prove)) => audit_prove::run(&place()?, &prove, output)?,
        Command::Audit(AuditCommand::RotateKey) => audit_key::run(&place()?, output)?,
        Command::Doctor(doctor) => doctor::run(&place()?, environment, &doctor, output)?,
        Command::Completions { shell } => {
            let mut command = Args::command();
            clap_complete::generate(shell, &mut command, "fluffy", output.raw());
            DONE
        }
        Command::Man => {
            clap_mangen::Man::new(Args::command()).render(output.raw())?;
            DONE
        }
        Command::PolicyHost => policy_host::run(),
    };
    output.flush()?;
    Ok(code)
}

/// A strict kernel of the project, with the built-in tools and the policy that holds.
fn kernel(place: &Place, policy_file: Option<&Path>) -> Result<KernelConfig, CliError> {
    let policy = policy(place, policy_file)?;
    let registry = Registry::with_builtins()?;
    Ok(KernelConfig::new(policy, registry, place.layout(), place.key()?))
}

/// The policy that was named, the project's own, or the shipped one.
fn policy(place: &Place, named: Option<&Path>) -> Result<PolicyFile, CliError> {
    let own = place.policy_file();
    let path = match named {
        Some(path) => path,
        None if own.exists() => &own,
        None => return Ok(PolicyFile::parse("the shipped policy", DEFAULT_POLICY)?),
    };
    let bytes = read_bounded(path, MAX_POLICY_BYTES as u64 + 1)?;
    let text = String::from_utf8(bytes).map_err(|_| CliError::NotText(path.to_owned()))?;
    Ok(PolicyFile::parse(&path.display().to_string(), &text)?)
}

/// Opens a file for an answer, private to the user: what it replaces is emptied.
fn create(path: &Path) -> Result<std::fs::File, CliError> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let failed = |source| CliError::File { action: "write", path: path.to_owned(), source };
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(path).map_err(failed)
}

/// Writes a file for an answer.
fn write(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    use std::io::Write as _;
    let failed = |source| CliError::File { action: "write", path: path.to_owned(), source };
    create(path)?.write_all(bytes).map_err(failed)
}

/// Reads a file of at most `limit` bytes; of a larger one, the beginning.
fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, CliError> {
    use std::io::Read as _;
    let failed = |source| CliError::File { action: "read", path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}
