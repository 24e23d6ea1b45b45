//! `fluffy sandbox run`: a command in a sandbox, for people.
//!
//! What it prints is passed on as it comes; to a terminal without what could move the cursor or worse. What it
//! changed is listed, and saved if that was asked for. The project is never touched.

use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use fluffy_base::Span;
use fluffy_sandbox::harvest::{Change, Harvest, HarvestLimits, Kind, harvest};
use fluffy_sandbox::proxy::{AllowList, Decision, Record};
use fluffy_sandbox::{
    Config, End, Input, Job, Limits, Network, Outcome, Sandbox, Store, Stream, Template, Volume,
    Watcher, Workspace,
};

use crate::args::{NetName, RunArgs};
use crate::environment::Environment;
use crate::explain::{CANCELLED, CliError, FAILED};
use crate::inert::Inert;
use crate::interrupt;
use crate::output::Output;
use crate::place::Place;
use crate::policy_source::{PolicySource, exists};
use crate::toolchains;

/// Exit code where a limit ended the command, as `timeout` gives it.
const LIMIT: u8 = 124;

/// What is listed of a long list.
const SHOWN: usize = 20;

pub(crate) fn run(
    place: &Place,
    environment: &Environment,
    args: &RunArgs,
    output: &mut Output,
) -> Result<u8, CliError> {
    if let Some(directory) = &args.save
        && exists(directory)?
    {
        return Err(CliError::Exists(directory.clone()));
    }
    let native = place.sandboxes(environment)?;
    let volume = match args.template.shows_project() && !args.read_only {
        true => Some(native.volume(Store::Disk)?),
        false => None,
    };
    let config = config(place, environment, args, volume.clone())?;
    let sandbox: Arc<dyn Sandbox> = native.create(config, job(args))?.into();
    let cancelled = Arc::new(AtomicBool::new(false));
    let (stopped, cancel) = (Arc::clone(&sandbox), Arc::clone(&cancelled));
    // Before anything runs, so that nothing is left behind by whoever has enough of it.
    interrupt::instead(move || {
        cancel.store(true, Ordering::SeqCst);
        stopped.remove();
    })?;
    let outcome = sandbox.start(Arc::new(Passing::new())).and_then(|()| sandbox.wait());
    sandbox.remove();
    if cancelled.load(Ordering::SeqCst) {
        return Ok(CANCELLED);
    }
    let outcome = outcome?;
    if let Some(volume) = volume {
        show_changes(&volume, args.save.as_deref(), output)?;
    }
    Ok(tell(&outcome, output))
}

fn config(
    place: &Place,
    environment: &Environment,
    args: &RunArgs,
    volume: Option<Volume>,
) -> Result<Config, CliError> {
    let given = args.template.limits();
    let mut config = Config::of(args.template).narrowed_to(Limits {
        memory: args.memory.unwrap_or(given.memory),
        duration: Some(args.time.unwrap_or(Span::from_ms(u64::MAX))),
        processes: args.processes.unwrap_or(given.processes),
        ..given
    });
    config = config.with_network(network(place, args)?)?;
    if let Some(home) = &environment.home {
        config = config.with_home(home)?;
    }
    for path in toolchains::of(environment) {
        config = config.showing(&path)?;
    }
    for path in &args.show {
        let failed = |source| CliError::File { action: "show", path: path.clone(), source };
        config = config.showing(&std::fs::canonicalize(path).map_err(failed)?)?;
    }
    let project = place.project();
    Ok(match (args.template.shows_project(), volume) {
        (false, _) => config,
        (true, None) => config.with_workspace(Workspace::read_only(project))?,
        (true, Some(volume)) => config.with_workspace(Workspace::overlay(project, volume))?,
    })
}

fn network(place: &Place, args: &RunArgs) -> Result<Network, CliError> {
    let net = args.net.unwrap_or(match (args.template, args.allow.is_empty()) {
        (Template::AiProvider | Template::IntegrationTest, _) | (_, false) => NetName::Restricted,
        (Template::CodeExecutor | Template::PolicySandbox, true) => NetName::None,
    });
    if net == NetName::None {
        return Ok(Network::None);
    }
    let policy = PolicySource::find(place, None)?.policy;
    let listed = policy.network().values().flatten().chain(&args.allow);
    let allowed = AllowList::parse(listed).map_err(|error| CliError::Value {
        given: args.allow.join(" "),
        wanted: error.to_string(),
    })?;
    Ok(Network::Restricted(Arc::new(allowed)))
}

fn job(args: &RunArgs) -> Job {
    let mut words = args.command.iter().cloned();
    let mut job = Job::new(words.next().unwrap_or_default()).args(words);
    if let Some(input) = piped_input() {
        job.stdin = Input::From(input);
    }
    job
}

/// The standard input through a pipe: a sandbox is not handed files and terminals.
fn piped_input() -> Option<OwnedFd> {
    if io::stdin().is_terminal() {
        return None;
    }
    let (theirs, mut ours) = io::pipe().ok()?;
    // It ends with the input, with the command, or with this program.
    thread::spawn(move || io::copy(&mut io::stdin().lock(), &mut ours));
    Some(theirs.into())
}

/// Passes on what a command prints.
struct Passing {
    /// For each stream that goes to a terminal, what makes it harmless there.
    filters: [Option<Mutex<Inert>>; 2],
}

impl Passing {
    fn new() -> Self {
        let filter = |terminal: bool| terminal.then(Mutex::default);
        Self { filters: [filter(io::stdout().is_terminal()), filter(io::stderr().is_terminal())] }
    }
}

impl Watcher for Passing {
    fn printed(&self, stream: Stream, bytes: &[u8]) {
        let [out, err] = &self.filters;
        let pass = |filter: &Option<Mutex<Inert>>| match filter {
            None => bytes.to_vec(),
            Some(filter) => filter.lock().unwrap_or_else(PoisonError::into_inner).pass(bytes),
        };
        // Whoever does not want to hear it any more still wants the command to end.
        let _gone = match stream {
            Stream::Out => io::stdout().write_all(&pass(out)).and_then(|()| io::stdout().flush()),
            Stream::Err => io::stderr().write_all(&pass(err)),
        };
    }

    fn proxied(&self, record: &Record) {
        if let Decision::Refused(why) = &record.decision {
            let port = record.port.map_or_else(String::new, |port| format!(":{port}"));
            let line = format!("fluffy: refused {}{port}: {why}\n", record.host);
            let _gone = io::stderr().write_all(line.as_bytes());
        }
    }
}

fn show_changes(volume: &Volume, save: Option<&Path>, output: &mut Output) -> Result<(), CliError> {
    let Some(content) = volume.content() else { return Ok(()) };
    let found = harvest(content, Kind::Overlay, &HarvestLimits::default(), &|_| false)?;
    let mut lines: Vec<String> = found.changes().iter().map(describe).collect();
    lines.extend(
        found.refused().iter().map(|refusal| format!("  ! {}: {}", refusal.name, refusal.why)),
    );
    if let Some(directory) = save {
        save_to(&found, directory)?;
        output.notice(format!("saved to `{}`:", directory.display()));
    } else if !lines.is_empty() {
        output.notice("changed in the sandbox, not in the project:");
    }
    let more = lines.len().saturating_sub(SHOWN);
    for line in lines.iter().take(SHOWN) {
        output.notice(line);
    }
    if more > 0 {
        output.notice(format!("  and {more} more"));
    }
    Ok(())
}

fn describe(change: &Change) -> String {
    match change {
        Change::Write(written) => format!("  + {} ({} bytes)", written.path(), written.size()),
        Change::Delete(path) => format!("  - {path}"),
        Change::Replace(path) => format!("  * {path} (a new directory in its place)"),
    }
}

fn save_to(found: &Harvest, directory: &Path) -> Result<(), CliError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| CliError::File { action: "write", path, source }
    };
    std::fs::create_dir(directory).map_err(failed(directory))?;
    for change in found.changes() {
        if let Change::Write(written) = change {
            let path = directory.join(written.path().as_str());
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).map_err(failed(parent))?;
            }
            found.copy(written, &mut super::create(&path)?)?;
        }
    }
    Ok(())
}

/// Says how it ended where the exit code alone does not, and gives the code.
fn tell(outcome: &Outcome, output: &mut Output) -> u8 {
    match outcome.end {
        End::Exited(code) => u8::try_from(code).unwrap_or(FAILED),
        End::Signalled(signal) => u8::try_from(signal + 128).unwrap_or(FAILED),
        End::Limit(limit) => {
            output.notice(format!("fluffy: {limit}, and the sandbox was ended"));
            LIMIT
        }
        End::Stopped => FAILED,
    }
}
