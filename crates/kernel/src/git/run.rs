//! How git is started: in a sandbox, with settings that let nothing of the repository's run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fluffy_base::{ByteSize, Span};
use fluffy_sandbox::{Captured, End, Input, Job, Limits, RuntimeError, Template, Volume};

use super::repository::{Form, Repository};
use super::{Git, GitError, WORDS, words};
use crate::workshop::{Order, Ran, WorkshopError};

/// Where a system has its programs. The user's own `PATH` may lead into the project.
const PLACES: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// What git is told whatever the repository says: to start no programs, to reach nothing, to believe sizes and times
/// of files, whose owners and numbers are others inside, and to speak so that it can be read.
const SETTINGS: [(&str, &str); 29] = [
    ("color.ui", "false"),
    ("commit.gpgSign", "false"),
    ("core.alternateRefsCommand", ""),
    ("core.askPass", ""),
    ("core.bigFileThreshold", "512m"),
    ("core.checkStat", "minimal"),
    ("core.createObject", "rename"),
    ("core.editor", ":"),
    ("core.fsmonitor", "false"),
    ("core.fsync", "none"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.quotePath", "true"),
    ("core.splitIndex", "false"),
    ("core.sshCommand", "false"),
    ("core.trustctime", "false"),
    ("credential.helper", ""),
    ("gc.auto", "0"),
    ("gpg.program", "false"),
    ("i18n.commitEncoding", "UTF-8"),
    ("i18n.logOutputEncoding", "UTF-8"),
    ("index.skipHash", "false"),
    ("log.showSignature", "false"),
    ("maintenance.auto", "false"),
    ("protocol.allow", "never"),
    ("safe.directory", "*"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    ("tag.gpgSign", "false"),
];

/// Inside, the project may be somebody else's.
const TRUSTED: [(&str, &str); 1] = [("safe.directory", "*")];

const VARIABLES: [(&str, &str); 13] = [
    ("GIT_ASKPASS", "false"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_EDITOR", ":"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_TRACE2", "0"),
    ("LC_ALL", "C.UTF-8"),
];

/// The most filters that are switched off one by one.
const MAX_FILTERS: usize = 200;

/// One run of git, or of a few commands of git in a row.
pub(super) struct Call<'a> {
    /// What it does, for people.
    pub(super) what: &'static str,
    /// What runs.
    pub(super) command: Command<'a>,
    /// Its arguments.
    pub(super) args: Vec<OsString>,
    /// What it reads.
    pub(super) input: Vec<u8>,
    /// More variables.
    pub(super) env: Vec<(OsString, OsString)>,
    /// What is laid over the project.
    pub(super) layers: &'a [PathBuf],
    /// Where its changes go; nowhere, and nothing can be changed.
    pub(super) store: Option<fluffy_sandbox::Store>,
    /// More of the host that it sees.
    pub(super) shown: Vec<PathBuf>,
    /// Filters of the repository, by name, which are switched off.
    pub(super) filters: &'a [String],
}

/// What runs.
#[derive(Clone, Copy)]
pub(super) enum Command<'a> {
    /// Git.
    Git,
    /// `git config`, which starts nothing and is to say what is configured, not what it is told here.
    Config,
    /// A script of ours, which runs nothing but git and what writes and reads files.
    Script(&'a str),
    /// A script of ours that ends in a hook: with the usual `PATH` and the time of a command.
    Hook(&'a str),
}

/// What a run left.
pub(super) struct Done {
    /// How it ended.
    pub(super) end: End,
    /// What it printed.
    pub(super) out: Captured,
    /// What it printed to standard error.
    pub(super) err: Captured,
    /// What it changed.
    pub(super) volume: Option<Volume>,
}

impl<'a> Call<'a> {
    /// A run that sees the project with these layers and changes nothing.
    pub(super) fn new(what: &'static str, command: Command<'a>, layers: &'a [PathBuf]) -> Self {
        let (args, input, env, shown) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { what, command, args, input, env, layers, store: None, shown, filters: &[] }
    }

    /// The same with arguments.
    pub(super) fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// The same with a variable.
    pub(super) fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }
}

impl Git {
    /// Runs git and gives what it left, however it ended.
    pub(super) fn run(&self, call: Call<'_>) -> Result<Done, GitError> {
        let job = self.job(&call)?;
        let usual = Template::CodeExecutor.limits();
        let limits = match call.command {
            Command::Hook(_) => Limits { captured: ByteSize::from_bytes(256 << 10), ..usual },
            Command::Git | Command::Config | Command::Script(_) => Limits {
                captured: ByteSize::from_bytes(8 << 20),
                duration: Some(Span::from_ms(60_000)),
                ..usual
            },
        };
        let order = Order {
            layers: call.layers,
            store: call.store,
            shown: &call.shown,
            user_limits: None,
            limits: Some(limits),
            job,
            watcher: Arc::new(()),
        };
        match self.workshop.run(order) {
            Ok(Ran { outcome, volume, .. }) => {
                Ok(Done { end: outcome.end, out: outcome.stdout, err: outcome.stderr, volume })
            }
            Err(WorkshopError::Runtime(RuntimeError::Program { .. })) => Err(GitError::NoGit),
            Err(error) => Err(error.into()),
        }
    }

    /// Runs git, which must succeed.
    pub(super) fn must(&self, call: Call<'_>) -> Result<Done, GitError> {
        let what = call.what;
        let done = self.run(call)?;
        if done.end == End::Exited(0) { Ok(done) } else { Err(self.failure(what, &done)) }
    }

    /// What went wrong.
    pub(super) fn failure(&self, what: &'static str, done: &Done) -> GitError {
        let output = words(&done.err.bytes, WORDS);
        match Form::of(self.workshop.project()) {
            // Where it leads is not shown, and git says in many ways that it finds nothing.
            Ok(Form::Pointer) => GitError::Elsewhere,
            Ok(Form::Directory | Form::None) | Err(_) => {
                GitError::Failed { what, ended: done.end.to_string(), output }
            }
        }
    }

    /// What is shown beside the project where git alone runs: objects that it shares with other repositories.
    pub(super) fn shared(&self) -> Result<Vec<PathBuf>, GitError> {
        match Form::of(self.workshop.project())? {
            Form::Directory => Repository::open(self.workshop.project())?.alternates(),
            Form::Pointer => Ok(Vec::new()),
            Form::None => Err(GitError::NotARepository),
        }
    }

    fn job(&self, call: &Call<'_>) -> Result<Job, GitError> {
        let mut job = match call.command {
            Command::Git | Command::Config => Job::new(&self.program).args(&call.args),
            Command::Script(script) | Command::Hook(script) => {
                Job::new("/bin/sh").args(["-euc", script, "git"]).args(&call.args)
            }
        };
        let project = self.workshop.project();
        job = job.env("GIT_DIR", project.join(".git")).env("GIT_WORK_TREE", project);
        for (name, value) in VARIABLES {
            job = job.env(name, value);
        }
        if !matches!(call.command, Command::Hook(_)) {
            job = job.env("PATH", self.path());
        }
        for (name, value) in &call.env {
            job.env.retain(|(known, _)| known != name);
            job = job.env(name, value);
        }
        job.stdin = Input::Bytes(call.input.clone());
        let told: &[_] = match call.command {
            Command::Config => &TRUSTED,
            Command::Git | Command::Script(_) | Command::Hook(_) => &SETTINGS,
        };
        configured(job, told, call.filters)
    }

    /// Where the programs of scripts are looked for: with git, and where the system has its own.
    fn path(&self) -> OsString {
        let own = self.program.parent().map(Path::as_os_str);
        let places = own.into_iter().chain(PLACES.map(|place| place.as_ref()));
        places.collect::<Vec<_>>().join(":".as_ref())
    }
}

/// The system's git. Where there is none, starting it says so.
pub(super) fn installed() -> PathBuf {
    let places = PLACES.map(|place| Path::new(place).join("git"));
    places.into_iter().find(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("git"))
}

/// The job with settings that stand above the repository's.
fn configured(mut job: Job, told: &[(&str, &str)], filters: &[String]) -> Result<Job, GitError> {
    if filters.len() > MAX_FILTERS {
        return Err(GitError::TooMany("filters in the repository's configuration"));
    }
    let fixed = told.iter().map(|(name, value)| ((*name).to_owned(), *value));
    let off = filters.iter().flat_map(|filter| {
        let parts = [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")];
        parts.map(|(part, value)| (format!("filter.{filter}.{part}"), value))
    });
    let mut count = 0_usize;
    for (name, value) in fixed.chain(off) {
        job = job.env(format!("GIT_CONFIG_KEY_{count}"), name);
        job = job.env(format!("GIT_CONFIG_VALUE_{count}"), value);
        count += 1;
    }
    Ok(job.env("GIT_CONFIG_COUNT", count.to_string()))
}
