//! One file a command.

mod audit_export;
mod audit_key;
mod audit_log;
mod audit_prove;
mod audit_rotate;
mod audit_sbom;
mod audit_verify;
mod auth;
pub(crate) mod boot;
pub(crate) mod chat;
mod config_get;
mod config_init;
mod config_list;
mod config_path;
mod config_set;
mod demo;
mod doctor;
mod env;
pub(crate) mod file_host;
mod image_build;
mod kernel_gate;
mod kernel_halt;
mod kernel_serve;
mod kernel_stop;
mod kernel_submit;
mod man;
mod models;
pub(crate) mod plugin;
mod policy_check;
mod policy_explain;
pub(crate) mod policy_host;
mod policy_show;
mod policy_test;
mod policy_update;
pub(crate) mod provider_host;
pub(crate) mod run;
mod sandbox_run;
pub(crate) mod session;
pub(crate) mod skill;

use std::io;
use std::path::Path;
use std::sync::Arc;

use clap::CommandFactory as _;
use fluffy_base::{Clock, SystemClock};
use fluffy_kernel::{Kernel, KernelConfig, Registry};
use fluffy_ledger::{RetentionOptions, Storage, StorageLevel};
use fluffy_policy::POLICY_SCHEMA;

use crate::args::{
    Args, AuditCommand, Command, ConfigCommand, KernelCommand, PolicyCommand, SandboxCommand,
};
use crate::client::{Follower, Link, Watched};
use crate::environment::Environment;
use crate::explain::{CliError, DONE, USAGE};
use crate::interrupt::Stop;
use crate::output::Output;
use crate::pending::Wait;
use crate::place::Place;
use crate::policy_source::{PolicyHome, PolicySource};
use crate::render::Look;
use crate::review::{AtTerminal, Said, TaskReviewer};
use crate::settings::Settings;
use crate::shell::Wanted;
use crate::wire::{End, Submission};

/// Does what was asked; gives the exit code.
pub(crate) fn run(
    args: Args,
    environment: &'static Environment,
    output: &mut Output,
) -> Result<u8, CliError> {
    let place = || Place::of(args.project.as_deref(), environment);
    let code = match args.command {
        Command::Run(args) => {
            let (place, stop) = (place()?, Stop::listen()?);
            let settings = Settings::load(&place, environment)?;
            tell_storage(&Storage::of(&place.layout(), &retention(&settings))?, output);
            run::run(&place, environment, settings, &args, &stop)?
        }
        Command::Talk(args) => talk(place()?, environment, Wanted::of_task(&args), output)?,
        Command::Chat(args) if args.is_talk() => {
            talk(place()?, environment, Wanted::of_chat(&args), output)?
        }
        Command::Chat(args) => {
            let stop = Stop::listen()?;
            chat::run(&place()?, environment, &args, &stop, output)?
        }
        Command::Demo(args) => {
            let stop = Stop::listen()?;
            demo::run(environment, &args, output, &stop)?
        }
        Command::Session(command) => session::run(&place()?, environment, &command, output)?,
        Command::Skill(command) => skill::run(&place()?, environment, &command, output)?,
        Command::Plugin(command) => plugin::run(&place, environment, &command, output)?,
        Command::Auth(command) => auth::run(&place, environment, &command, output)?,
        Command::Models(args) => models::run(&place()?, environment, &args, output)?,
        Command::Kernel(command) => of_kernel(place()?, environment, &command, output)?,
        Command::Audit(command) => audit(&place, environment, &command, output)?,
        Command::Policy(command) => policy(&place()?, environment, &command, output)?,
        Command::Sandbox(SandboxCommand::Run(run)) => {
            sandbox_run::run(&place()?, environment, &run, output)?
        }
        Command::Env(command) => env::run(&place()?, &command, output)?,
        Command::Image(command) => image_build::run(&place()?, environment, &command, output)?,
        Command::Config(command) => config(&place, environment, &command, output)?,
        Command::Doctor(doctor) => doctor::run(&place()?, environment, &doctor, output)?,
        Command::Completions { shell } => {
            let mut command = Args::command();
            clap_complete::generate(shell, &mut command, "fluffy", output.raw());
            DONE
        }
        Command::Man(args) => man::run(&args, output)?,
        // Guests never come here: they were sent elsewhere before anything was read.
        Command::Boot
        | Command::FileHost
        | Command::PipelineHost
        | Command::PolicyHost
        | Command::ProviderHost
        | Command::SandboxInit
        | Command::SandboxEntry => USAGE,
    };
    output.flush()?;
    Ok(code)
}

/// Has the project's kernel carry something out; what it asks, a person at the terminal answers.
fn carried_out(
    (place, environment): (&Place, &Environment),
    stop: &Stop,
    said: Said,
    submission: Submission,
) -> Result<End, CliError> {
    let look = Look::of_stderr(environment);
    let reviewer = TaskReviewer::new(said, Box::new(AtTerminal), look);
    let shown = (look, Arc::new(SystemClock) as Arc<dyn Clock>);
    let wait = Wait::new(submission.work.to_string(), Box::new(io::stderr()), shown, reviewer);
    let watched = Watched { observer: &*wait, reviewer: &*wait, stop };
    let link = Link::new(place, environment);
    wait.shown_while(|| Follower::new(&link, watched).carry_out(submission))?
}

fn of_kernel(
    place: Place,
    environment: &'static Environment,
    command: &KernelCommand,
    output: &mut Output,
) -> Result<u8, CliError> {
    match command {
        KernelCommand::Submit(submit) => kernel_submit::run(&place, environment, submit, output),
        KernelCommand::Halt { reason } => kernel_halt::run(&place, environment, reason, output),
        KernelCommand::Stop => kernel_stop::run(&place, environment, output),
        KernelCommand::Serve(serve) => kernel_serve::run(place, environment, serve),
        KernelCommand::Gate(gate) => kernel_gate::run(&place, environment, gate, output),
    }
}

fn audit(
    place: &dyn Fn() -> Result<Place, CliError>,
    environment: &Environment,
    command: &AuditCommand,
    output: &mut Output,
) -> Result<u8, CliError> {
    match command {
        AuditCommand::Log(log) => audit_log::run(&place()?, log, output),
        AuditCommand::Verify(verify) => audit_verify::run(place, verify, output),
        AuditCommand::Export(export) => audit_export::run(&place()?, export, output),
        AuditCommand::Prove(prove) => audit_prove::run(&place()?, prove, output),
        AuditCommand::Rotate => audit_rotate::run(&place()?, environment, output),
        AuditCommand::Sbom(sbom) => audit_sbom::run(&place()?, sbom, output),
        AuditCommand::RotateKey => audit_key::run(&place()?, environment, output),
    }
}

fn talk(
    place: Place,
    environment: &'static Environment,
    wanted: Wanted<'_>,
    output: &mut Output,
) -> Result<u8, CliError> {
    let settings = Settings::load(&place, environment)?;
    tell_storage(&Storage::of(&place.layout(), &retention(&settings))?, output);
    crate::shell::run(place, environment, settings, wanted, output)
}

fn config(
    place: &dyn Fn() -> Result<Place, CliError>,
    environment: &Environment,
    command: &ConfigCommand,
    output: &mut Output,
) -> Result<u8, CliError> {
    match command {
        ConfigCommand::Init { force } => config_init::run(&place()?, *force, output),
        ConfigCommand::Get(get) => config_get::run(&place()?, environment, get, output),
        ConfigCommand::List(list) => config_list::run(&place()?, environment, list, output),
        ConfigCommand::Set(set) => config_set::set(&place()?, environment, set, output),
        ConfigCommand::Unset(unset) => config_set::unset(&place()?, environment, unset, output),
        ConfigCommand::Path { json } => config_path::run(&place()?, environment, *json, output),
        ConfigCommand::Reference => {
            output.raw().write_all(crate::settings::page::page().as_bytes())?;
            Ok(DONE)
        }
    }
}

fn policy(
    place: &Place,
    environment: &Environment,
    command: &PolicyCommand,
    output: &mut Output,
) -> Result<u8, CliError> {
    match command {
        PolicyCommand::Check(check) => policy_check::run(place, check, output),
        PolicyCommand::Explain(explain) => policy_explain::run(place, explain, output),
        PolicyCommand::Test(test) => policy_test::run(place, test, output),
        PolicyCommand::Show(show) => policy_show::run(place, show, output),
        PolicyCommand::Update(update) => policy_update::run(place, environment, update, output),
        PolicyCommand::Schema => {
            output.raw().write_all(POLICY_SCHEMA.as_bytes())?;
            Ok(DONE)
        }
    }
}

/// What a strict kernel of the project is made of: the built-in tools, the policy that holds, and
/// what of the system lies in the project.
pub(crate) fn kernel(
    place: &Place,
    settings: &Settings,
    policy_file: Option<&Path>,
) -> Result<KernelConfig, CliError> {
    let source = PolicySource::find(place, policy_file)?;
    let registry = Registry::with_builtins()?;
    let kept = place.kept()?;
    let mut config = KernelConfig::new(source.policy, registry, place.layout(), place.key()?);
    config.retention = retention(settings);
    config.kept = kept;
    config.sessions = Some(place.sessions());
    config.extensions = Box::new(place.rule_files());
    config.witness = Arc::clone(place.witness());
    config.policy_path = match source.from {
        PolicyHome::Project | PolicyHome::Shipped => Some(place.policy_file()),
        // What came from elsewhere is not replaced by replacing the project's own.
        PolicyHome::Named => None,
    };
    Ok(config)
}

/// How long entries are kept, and how much room they may take.
pub(crate) fn retention(settings: &Settings) -> RetentionOptions {
    let usual = RetentionOptions::default();
    let size = settings.number("ledger.max_size_mib").map(|size| size.saturating_mul(1 << 20));
    RetentionOptions {
        retention_days: settings.number("ledger.retention_days").unwrap_or(usual.retention_days),
        max_bytes: size.unwrap_or(usual.max_bytes),
        ..usual
    }
}

/// Says that the ledger's storage fills up, if it does.
fn tell_storage(storage: &Storage, output: &mut Output) {
    let how = match storage.level() {
        StorageLevel::Fine => return,
        StorageLevel::Warning => "fills up",
        StorageLevel::Critical => "is nearly full",
    };
    output.notice(format!(
        "WARNING: the ledger's storage {how}: {}\nReason: past 100 %, the oldest archive is deleted\nFix: copy the archives elsewhere, or allow the ledger more room",
        storage_text(storage),
    ));
}

/// How much room the ledger takes, for people.
fn storage_text(storage: &Storage) -> String {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let (bytes, max) = (mib(storage.bytes), mib(storage.max_bytes));
    format!("{} % ({bytes} of {max} MiB)", storage.percent())
}

/// Boots a kernel, and tells of damage that was found and set aside at the start.
fn boot(config: KernelConfig, output: &mut Output) -> Result<Kernel, CliError> {
    let kernel = Kernel::boot(config)?;
    let report = kernel.ledger_report();
    if let Some(broken) = &report.broken {
        let kept = broken.kept.as_ref();
        let kept = kept.map_or_else(String::new, |path| format!(" as `{}`", path.display()));
        output.notice(format!(
            "WARNING: the ledger was damaged: {}\nReason: see the audit_chain_break entry that opens segment {}\nFix: the damaged file is kept{kept}; {} entries were salvaged",
            broken.found, report.segment, broken.salvaged,
        ));
    }
    if let Some(problem) = &report.retained.problem {
        output.notice(format!(
            "WARNING: old entries of the ledger stay where they are: {problem}\nFix: see what is wrong with: fluffy audit verify"
        ));
    }
    tell_storage(&report.retained.storage, output);
    Ok(kernel)
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
pub(crate) fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, CliError> {
    use std::io::Read as _;
    let failed = |source| CliError::File { action: "read", path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}
