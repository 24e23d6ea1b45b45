//! Runs one command that a model asked for: a program with its arguments, as an array.
//!
//! **Invariant.** No word is interpreted on the way: what a rule judged and a person read is what the program
//! gets. What the command leaves is the session's to judge.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fluffy_base::{Excerpt, ProjectPath, Span};
use fluffy_sandbox::harvest::HarvestLimits;
use fluffy_sandbox::proxy::{AllowError, AllowList};
use fluffy_sandbox::{End, Input, Job, Limit, Limits, Network, Store, Template, Watcher};

use super::printed::{Printed, printed};
use super::produce::{ProduceError, Taken, Taking, produce};
use super::script::{CommandScript, LineError, PipelineOrder, ScriptWord};
use super::sight::{ENVIRONMENT, Sight, SightError};
use super::{Life, LimitedJob, Order, Ran, Workshop, WorkshopError};
use crate::witness::Traffic;

/// The longest command, all its words together.
const MAX_BYTES: usize = 128 << 10;
const MAX_ARGS: usize = 4_096;

/// How much of each stream is shown.
const SHOWN: usize = 16 << 10;

/// Programs that interpret a text as commands. A text cannot be judged as an array of words can.
const SHELLS: [&str; 24] = [
    "ash",
    "bash",
    "cmd",
    "command.com",
    "csh",
    "dash",
    "elvish",
    "fish",
    "hush",
    "ksh",
    "ksh93",
    "lksh",
    "mksh",
    "nu",
    "oksh",
    "pdksh",
    "posh",
    "powershell",
    "pwsh",
    "rbash",
    "sh",
    "tcsh",
    "xonsh",
    "zsh",
];

/// Programs that start the program among their arguments, so that `env sh -c …` is a shell by another name.
///
/// This list can never be whole: any interpreter, build tool or script of the project can start a shell. It
/// need not be. What a command can do is bounded by its sandbox, whatever it starts; shells are refused so that
/// what is judged and reviewed is what runs, and a detour around that is visible as one.
const WRAPPERS: [&str; 22] = [
    "busybox", "chroot", "chrt", "doas", "env", "exec", "flock", "ionice", "nice", "nohup",
    "setarch", "setsid", "stdbuf", "strace", "sudo", "taskset", "time", "timeout", "toybox",
    "unshare", "watch", "xargs",
];

/// Directories that builds fill: what a command leaves there is no change of the project's.
const BUILT: [&str; 14] = [
    ".eggs",
    ".git",
    ".gradle",
    ".mypy_cache",
    ".next",
    ".nox",
    ".pytest_cache",
    ".ruff_cache",
    ".tox",
    ".venv",
    "__pycache__",
    "node_modules",
    "target",
    "venv",
];

/// A command that may be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    program: String,
    args: Vec<String>,
    cwd: Option<ProjectPath>,
    timeout: Option<Span>,
    /// The programs, where there are several, or one with more than its words.
    script: Option<CommandScript>,
    /// The hosts that it reaches through the proxy.
    hosts: Vec<String>,
}

/// What became of a command.
#[derive(Debug)]
pub struct CommandRun {
    /// How it ended.
    pub end: End,
    /// Limits that it ran into, also where it went on regardless.
    pub reached: Vec<Limit>,
    /// Both ends of what it printed.
    pub stdout: Printed,
    /// Both ends of what it printed to standard error.
    pub stderr: Printed,
    /// How long it ran.
    pub duration: Span,
    /// What it left, or why nothing of it can be taken.
    pub left: Result<Taken, ProduceError>,
    /// The sandbox's name in records.
    pub sandbox: String,
}

/// Why a command is not run.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// There is no program.
    #[error("the command is empty")]
    Empty,
    /// It is a shell, or starts one.
    #[error(
        "`{0}` is a shell, and shells are not run: give the program and its arguments, each by itself"
    )]
    Shell(String),
    /// A word cannot be passed to a program.
    #[error("the word `{0}` of the command holds a NUL")]
    Nul(String),
    /// It is too long.
    #[error("the command has more than {MAX_ARGS} arguments or {MAX_BYTES} bytes")]
    Long,
    /// A command line is not understood, or asks for what only a shell can do.
    #[error(transparent)]
    Line(#[from] LineError),
    /// Which program would run is known only when files were looked for.
    #[error(
        "`{0}` starts the program among its arguments, which cannot be a pattern of files: name the files"
    )]
    WrappedPattern(String),
    /// It cannot reach one of its hosts.
    #[error("the hosts of the command cannot be allowed")]
    Hosts(#[from] AllowError),
    /// There is no such directory.
    #[error("the directory `{0}` does not exist")]
    Directory(ProjectPath),
    /// What it sees could not be prepared.
    #[error(transparent)]
    Sight(#[from] SightError),
    /// It did not run.
    #[error(transparent)]
    Workshop(#[from] WorkshopError),
}

impl CommandRun {
    /// What became of a job that was a command.
    pub(super) fn of(ran: Ran, left: Result<Taken, ProduceError>) -> Self {
        let outcome = ran.outcome;
        let ms = u64::try_from(outcome.usage.wall.as_millis()).unwrap_or(u64::MAX);
        Self {
            stdout: printed(&outcome.stdout, SHOWN),
            stderr: printed(&outcome.stderr, SHOWN),
            end: outcome.end,
            reached: outcome.reached,
            duration: Span::from_ms(ms),
            left,
            sandbox: ran.sandbox,
        }
    }
}

impl CommandLine {
    /// Checks a command. It starts in `cwd`, or else in the project's root; it ends after `timeout`, or
    /// earlier if its sandbox demands.
    pub fn new(
        program: &str,
        args: &[String],
        cwd: Option<ProjectPath>,
        timeout: Option<Span>,
    ) -> Result<Self, CommandError> {
        if program.trim().is_empty() {
            return Err(CommandError::Empty);
        }
        let words = || std::iter::once(program).chain(args.iter().map(String::as_str));
        if args.len() > MAX_ARGS || words().map(str::len).sum::<usize>() > MAX_BYTES {
            return Err(CommandError::Long);
        }
        if let Some(word) = words().find(|word| word.contains('\0')) {
            return Err(CommandError::Nul(Excerpt::new(word, 80).to_string()));
        }
        if let Some(shell) = shell(program, args) {
            return Err(CommandError::Shell(Excerpt::new(shell, 80).to_string()));
        }
        Ok(Self {
            program: program.to_owned(),
            args: args.to_vec(),
            cwd,
            timeout,
            script: None,
            hosts: Vec::new(),
        })
    }

    /// Checks the programs of a command line, each like a command of its own.
    pub fn from_script(script: CommandScript, timeout: Option<Span>) -> Result<Self, CommandError> {
        if let Some((program, args)) = script.plain() {
            return Self::new(program, &args, script.cwd.clone(), timeout);
        }
        for call in script.programs() {
            let args: Vec<String> = call.args.iter().map(ScriptWord::shown).collect();
            Self::new(&call.program, &args, None, None)?;
            let has_pattern = call.args.iter().any(|word| matches!(word, ScriptWord::Files(_)));
            if has_pattern && WRAPPERS.contains(&name(&call.program).as_str()) {
                return Err(CommandError::WrappedPattern(call.program.clone()));
            }
        }
        let (program, args, cwd) = ("pipeline-host".to_owned(), Vec::new(), script.cwd.clone());
        let (script, hosts) = (Some(script), Vec::new());
        Ok(Self { program, args, cwd, timeout, script, hosts })
    }

    /// The same with hosts that it reaches through the proxy.
    #[must_use]
    pub fn with_hosts(self, hosts: Vec<String>) -> Self {
        Self { hosts, ..self }
    }

    /// How long it may take, where whoever asked for it said so.
    pub fn timeout(&self) -> Option<Span> {
        self.timeout
    }

    /// The programs of a command line; none where it is one program with its arguments.
    pub fn script(&self) -> Option<&CommandScript> {
        self.script.as_ref()
    }
}

/// The word that names a shell: the program, or one that a wrapper is given.
fn shell<'a>(program: &'a str, args: &'a [String]) -> Option<&'a str> {
    let is_shell = |word: &str| SHELLS.contains(&name(word).as_str());
    if is_shell(program) {
        return Some(program);
    }
    if !WRAPPERS.contains(&name(program).as_str()) {
        return None;
    }
    args.iter().map(String::as_str).find(|word| first_word(word).is_some_and(is_shell))
}

/// The program that a wrapper's argument names: `env -S"A=b sh -c …"` takes its words apart itself.
fn first_word(word: &str) -> Option<&str> {
    let text = word.strip_prefix("--split-string=").or_else(|| word.strip_prefix("-S"));
    text.unwrap_or(word).split_whitespace().find(|word| !word.contains('='))
}

/// The name of a program, however it is spelt: without its directory, its ending and its case.
fn name(word: &str) -> String {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word).to_ascii_lowercase();
    name.strip_suffix(".exe").unwrap_or(&name).to_owned()
}

/// Whether a path is a directory that builds fill, or lies in the version control's.
pub(crate) fn is_built(path: &ProjectPath) -> bool {
    BUILT.contains(&path.file_name())
}

impl Workshop {
    /// Runs a command on the project as `sight` shows it.
    pub fn command(
        &self,
        sight: &Sight<'_>,
        line: &CommandLine,
        taking: &Taking<'_>,
        watcher: Arc<dyn Watcher>,
    ) -> Result<CommandRun, CommandError> {
        let (_hidden, layers) = self.seen(sight)?;
        let order = self.order(sight, line, &layers, watcher)?;
        let order = Order { store: Some(Store::Disk), ..order };
        let ran = match line.hosts.is_empty() {
            true => self.run(order)?,
            false => self.run_with_hosts(order, &line.hosts)?,
        };
        let skip = |path: &ProjectPath| is_built(path) || (taking.skip)(path);
        let taking = Taking { skip: &skip, ..*taking };
        let left = produce(ran.volume.as_ref(), &HarvestLimits::default(), &taking);
        Ok(CommandRun::of(ran, left))
    }

    /// Runs a job that reaches these hosts through the proxy; every request is recorded before it is answered.
    fn run_with_hosts(&self, order: Order<'_>, hosts: &[String]) -> Result<Ran, CommandError> {
        let witness = self.network.get().ok_or_else(|| {
            WorkshopError::Untold("its requests to the network cannot be recorded".to_owned())
        })?;
        let allowed = Arc::new(AllowList::parse(hosts)?);
        let runtime = &self.options.runtime;
        let volume = order.store.map(|store| runtime.volume(store)).transpose();
        let volume = volume.map_err(WorkshopError::from)?;
        let config = self.config_of(Template::IntegrationTest, &order, volume.clone());
        let config = config.and_then(|config| config.with_network(Network::Restricted(allowed)));
        let config = config.map_err(WorkshopError::from)?;
        let traffic = Arc::new(Traffic::new(Arc::clone(witness)));
        let tell = |life: Life<'_>| self.tell(life);
        let ran = self.carry_out_by(config, volume, order.job, &tell, |sandbox| {
            traffic.is_of(sandbox);
            sandbox.run(Arc::<Traffic>::clone(&traffic))
        });
        Ok(ran?)
    }

    /// The job of a command that keeps nothing yet.
    pub(super) fn order<'a>(
        &'a self,
        sight: &Sight<'_>,
        line: &CommandLine,
        layers: &'a [PathBuf],
        watcher: Arc<dyn Watcher>,
    ) -> Result<Order<'a>, CommandError> {
        if let Some(cwd) = &line.cwd
            && !self.has_directory(sight, cwd)
        {
            return Err(CommandError::Directory(cwd.clone()));
        }
        let (mut job, shown) = match &line.script {
            None => (Job::new(&line.program).args(&line.args), &[][..]),
            Some(script) => {
                let order =
                    PipelineOrder { root: self.project().to_owned(), script: script.clone() };
                let order = serde_json::to_vec(&order).map_err(|_| LineError::Unreadable)?;
                let mut job = Job::new(self.program()).args(["pipeline-host"]);
                job.stdin = Input::Bytes(order);
                (job, std::slice::from_ref(&self.options.program))
            }
        };
        job.env = ENVIRONMENT.map(|(name, value)| (name.into(), value.into())).into();
        job.cwd = line.cwd.as_ref().map(|cwd| self.project().join(cwd.as_str()));
        let user_limits = self.user_limits(LimitedJob::Command);
        let limits = Limits { duration: line.timeout, ..self.job_limits(LimitedJob::Command) };
        Ok(Order { layers, store: None, shown, user_limits, limits: Some(limits), job, watcher })
    }

    /// Whether a directory is there to start in; what hides it is for the sandbox to say.
    pub(super) fn has_directory(&self, sight: &Sight<'_>, path: &ProjectPath) -> bool {
        let tops = sight.layers.iter().map(|layer| layer.as_path());
        let is_there = |top: &Path| top.join(path.as_str()).is_dir();
        tops.chain([self.project()]).any(is_there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> Result<CommandLine, CommandError> {
        let (program, args) = words.split_first().unwrap();
        let args: Vec<_> = args.iter().map(|word| (*word).to_owned()).collect();
        CommandLine::new(program, &args, None, None)
    }

    #[test]
    fn too_2_no_shell_is_run_by_any_spelling_or_wrapper() {
        for words in [
            &["sh", "-c", "x"][..],
            &["/bin/bash"],
            &["../../bin/zsh"],
            &["BASH"],
            &["cmd.exe", "/c"],
            &["C:\\Windows\\PowerShell.EXE"],
            &["pwsh"],
            &["env", "sh", "-c", "x"],
            &["/usr/bin/env", "-i", "A=b", "/bin/sh"],
            &["env", "-S", "sh -c x"],
            &["env", "-Ssh -c x"],
            &["env", "--split-string=bash -c x"],
            &["busybox", "sh"],
            &["busybox", "ash"],
            &["nice", "-n", "5", "timeout", "3", "fish"],
            &["xargs", "-0", "sh", "-c"],
        ] {
            assert!(matches!(line(words), Err(CommandError::Shell(_))), "{words:?}");
        }
        for words in [
            &["cargo", "fmt"][..],
            &["./build.sh"],
            &["grep", "sh", "file"],
            &["git", "log", "--author=bash"],
            &["env", "A=sh", "cargo", "test"],
            &["xargs", "grep", "use of sh"],
            &["python3", "-c", "print(1)"],
            &["shellcheck", "x.sh"],
        ] {
            line(words).unwrap();
        }
    }

    #[test]
    fn what_no_program_could_be_given_is_refused() {
        assert!(matches!(line(&[" "]), Err(CommandError::Empty)));
        assert!(matches!(line(&["a", "b\0c"]), Err(CommandError::Nul(_))));
        assert!(matches!(line(&["a", &"x".repeat(MAX_BYTES)]), Err(CommandError::Long)));
        assert!(matches!(line(&["a"; MAX_ARGS + 2]), Err(CommandError::Long)));
    }
}
