//! Errors as what, why and how to fix, each with its exit code.

use std::error::Error;
use std::path::PathBuf;

use fluffy_agent::ResumeError;
use fluffy_base::{JsonError, RequestError};
use fluffy_kernel::{
    ArchiveError, BlobError, KernelError, ListenError, RegistryError, RestoreError, SessionError,
    StagingError,
};
use fluffy_ledger::LedgerError;
use fluffy_policy::PolicyError;
use fluffy_provider::{ProviderError, TranscriptError};
use fluffy_sandbox::harvest::{HarvestError, ReadError};
use fluffy_sandbox::l1::L1Error;
use fluffy_sandbox::{ConfigError, RuntimeError};
use serde::{Deserialize, Serialize};

use crate::driver::DriverError;
use crate::providers::SetupError;
use crate::settings::SettingError;
use crate::task_text::TaskError;

/// What to do about a project that is none.
const NAME_A_DIRECTORY: &str = "name a directory with -C DIR";

/// Exit code: done.
pub(crate) const DONE: u8 = 0;
/// Exit code: could not be done.
pub(crate) const FAILED: u8 = 1;
/// Exit code: wrong usage or configuration.
pub(crate) const USAGE: u8 = 2;
/// Exit code: denied or refused.
pub(crate) const DENIED: u8 = 3;
/// Exit code: no sandbox can be made.
pub(crate) const NO_SANDBOX: u8 = 4;
/// Exit code: the provider failed.
pub(crate) const PROVIDER_FAILED: u8 = 5;
/// Exit code: ledger or state damaged.
pub(crate) const DAMAGED: u8 = 6;
/// Exit code: a cap on turns, tokens or cost was reached.
pub(crate) const CAP_REACHED: u8 = 7;
/// Exit code: cancelled by the user.
pub(crate) const CANCELLED: u8 = 130;

/// Every exit code and what it means, as the manual has it.
pub(crate) const EXIT_CODES: [(u8, &str); 9] = [
    (DONE, "done; for `kernel submit`: every line was answered, whatever the answers were"),
    (FAILED, "could not be done; a task did not reach done"),
    (USAGE, "wrong usage or configuration; for `chat -m`: a confirmation is needed first"),
    (DENIED, "denied, or refused by the person who was asked"),
    (NO_SANDBOX, "no sandbox can be made; `fluffy doctor` says why"),
    (PROVIDER_FAILED, "the provider of the model failed"),
    (DAMAGED, "ledger, bundle or proof damaged or not genuine"),
    (CAP_REACHED, "a cap on turns, tokens or cost was reached"),
    (CANCELLED, "cancelled"),
];

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error("the current directory cannot be read")]
    NoCurrentDir,
    #[error("neither HOME nor XDG_STATE_HOME names a directory")]
    NoHome,
    #[error("cannot use `{}` as a project", dir.display())]
    Project { dir: PathBuf, source: std::io::Error },
    #[error("`{}` is not a directory", .0.display())]
    NotADirectory(PathBuf),
    #[error("cannot {action} `{}`", path.display())]
    File { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error("cannot write the answer")]
    Output(#[from] std::io::Error),
    #[error("the policy cannot be used")]
    Policy(#[from] PolicyError),
    #[error("`{}` is not UTF-8", .0.display())]
    NotText(PathBuf),
    #[error("`{given}` is not {wanted}")]
    Value { given: String, wanted: String },
    #[error("this project has no ledger yet")]
    NoLedger,
    #[error("`{}` is not a proof", path.display())]
    Proof { path: PathBuf, source: serde_json::Error },
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Kernel(#[from] KernelError),
    #[error("a tool cannot be registered")]
    Registry(#[from] RegistryError),
    #[error("the running kernel did not halt: {0}")]
    Halt(String),
    #[error("the project has a policy already")]
    PolicyExists,
    #[error("`{}` is a symbolic link", .0.display())]
    Link(PathBuf),
    #[error("cannot use `{}` as a project", .0.display())]
    ProjectInState(PathBuf),
    #[error("there are no cases at `{0}`")]
    NoCases(String),
    #[error("the request cannot be read")]
    Request(#[from] RequestError),
    #[error("the policy cannot be sent to the kernel")]
    Json(#[source] JsonError),
    #[error("this program cannot find itself")]
    NoProgram,
    #[error("`{}` exists already", .0.display())]
    Exists(PathBuf),
    #[error(transparent)]
    Sandbox(#[from] RuntimeError),
    #[error("that is not possible in this sandbox")]
    SandboxConfig(#[from] ConfigError),
    #[error("what the sandbox left cannot be taken")]
    Harvest(#[from] HarvestError),
    #[error("what the sandbox left cannot be saved")]
    Saving(#[from] ReadError),
    #[error(transparent)]
    Task(#[from] TaskError),
    #[error(transparent)]
    Driver(#[from] DriverError),
    #[error("no provider was named")]
    NoProvider,
    #[error("it is not clear what is said to which session")]
    SayWhat,
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Provider(#[from] ProviderError),
    #[error(transparent)]
    Session(SessionError),
    #[error(transparent)]
    Restore(#[from] RestoreError),
    #[error("the session cannot go on")]
    Resume(#[from] ResumeError),
    #[error("the transcript `{}` cannot be played", path.display())]
    Transcript { path: PathBuf, source: TranscriptError },
    #[error("this project has no session yet")]
    NoSession,
    #[error("there is no session `{0}`")]
    UnknownSession(String),
    #[error("several sessions begin with `{0}`")]
    AmbiguousSession(String),
    #[error(transparent)]
    Setting(#[from] SettingError),
    #[error("`{file}` cannot be used")]
    Settings { file: String, problem: String },
    #[error("the demo cannot run any tests here")]
    NoLanguage(String),
    #[error("the kernel cannot be confined, and does not work without")]
    Confinement(#[from] L1Error),
    #[error("the kernel cannot listen for its clients")]
    Listen(#[from] ListenError),
    #[error("{}", .0.what)]
    Told(Explained),
}

/// An error in the three parts a person needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Explained {
    pub(crate) what: String,
    pub(crate) why: String,
    pub(crate) fix: String,
    pub(crate) code: u8,
}

impl Explained {
    /// A step or a run of a skill that the user had enough of.
    pub(crate) fn cancelled() -> Self {
        Self {
            what: "it was cancelled".to_owned(),
            why: "you asked for it".to_owned(),
            fix: "see where the skill stands: fluffy skill show NAME".to_owned(),
            code: CANCELLED,
        }
    }

    /// A kernel that answers something else than it was asked.
    pub(crate) fn confused() -> Self {
        Self {
            what: "the kernel of this project answered something else than it was asked".to_owned(),
            why: "client and kernel do not fit together".to_owned(),
            fix: "end the kernel: fluffy kernel stop; then try again".to_owned(),
            code: FAILED,
        }
    }
}

impl CliError {
    /// What, why and fix.
    pub(crate) fn explained(&self) -> Explained {
        if let Self::Told(explained) = self {
            return explained.clone();
        }
        let mut causes = Vec::new();
        let mut cause: Option<&dyn Error> = self.source();
        while let Some(error) = cause {
            causes.push(error.to_string());
            cause = error.source();
        }
        let (fix, code) = self.remedy();
        let why = if causes.is_empty() { self.reason() } else { causes.join(": ") };
        Explained { what: self.to_string(), why, fix, code }
    }

    /// Why, where no cause says it.
    fn reason(&self) -> String {
        let text = match self {
            Self::Settings { problem, .. } => problem,
            Self::NoCurrentDir => "it was removed, or may not be entered",
            Self::NoHome => "there is no place for the ledger and its key",
            Self::NotADirectory(_) => "a project is a directory",
            Self::NotText(_) => "a policy is a text file",
            Self::Value { .. } => "it is none of what is accepted there",
            Self::NoLedger => "nothing was submitted from this directory so far",
            Self::Halt(_) => "it answered with an error",
            Self::PolicyExists => "`.fluffy/policy.yaml` would be overwritten",
            Self::Link(_) => "what is written through a link lies where nobody protects it",
            Self::ProjectInState(_) => "it lies where the ledger and its keys are kept",
            Self::NoCases(_) => "cases are written in a file beside the policy",
            Self::NoProgram => "the operating system does not say which file it was started from",
            Self::Exists(_) => "nothing is written over",
            Self::Sandbox(RuntimeError::Unavailable { .. }) => {
                "nothing runs outside of a sandbox, so nothing was run"
            }
            Self::Sandbox(RuntimeError::State(_)) => "it was asked for something at the wrong time",
            Self::Task(error) => task_reason(error),
            Self::Driver(error) => error.why(),
            Self::SayWhat => "there is one session, and one text",
            Self::NoProvider => "a task needs a model, and nobody is asked by default",
            Self::NoLanguage(_) => "its project is a real one, in a language that must be here",
            Self::Setup(error) => return error.why(),
            Self::Setting(error) => return error.why(),
            Self::Provider(error) => error.why(),
            Self::NoSession => "no task was begun in this directory so far",
            Self::UnknownSession(_) => "no session of this project has that id",
            Self::AmbiguousSession(_) => "one session must be meant",
            Self::Session(error) => session_reason(error),
            Self::Restore(error) => restore_reason(error),
            Self::Ledger(error) | Self::Kernel(KernelError::Ledger(error)) => ledger_reason(error),
            Self::Kernel(KernelError::NoRandomness) => "ids and salts need random bytes",
            Self::Kernel(KernelError::Extensions(_)) => {
                "a policy is understood completely or not at all"
            }
            Self::Kernel(KernelError::Note(_)) => "what cannot be recorded is not done",
            // What was told is told on as it is.
            Self::Told(told) => &told.why,
            // These have a cause of their own.
            Self::Project { .. }
            | Self::File { .. }
            | Self::Output(_)
            | Self::Policy(_)
            | Self::Proof { .. }
            | Self::Request(_)
            | Self::Listen(_)
            | Self::Confinement(_)
            | Self::Json(_)
            | Self::Registry(_)
            | Self::Sandbox(_)
            | Self::SandboxConfig(_)
            | Self::Harvest(_)
            | Self::Saving(_)
            | Self::Resume(_)
            | Self::Transcript { .. }
            | Self::Kernel(KernelError::State(_) | KernelError::Registry(_)) => {
                "the operation failed"
            }
        };
        text.to_owned()
    }

    fn remedy(&self) -> (String, u8) {
        let say = |text: &str, code| (text.to_owned(), code);
        match self {
            Self::NoCurrentDir => say("change to an existing directory, or use -C DIR", USAGE),
            Self::NoHome => say("set HOME, or XDG_STATE_HOME to an absolute path", USAGE),
            Self::Project { .. } | Self::NotADirectory(_) => say(NAME_A_DIRECTORY, USAGE),
            Self::File { .. } => say("check that the file exists and may be used by you", FAILED),
            Self::Output(_) => say("check where the output goes", FAILED),
            Self::Policy(_)
            | Self::NotText(_)
            | Self::Transcript { .. }
            | Self::Settings { .. } => say("correct the file at the place named above", USAGE),
            Self::Value { .. } => say("see `fluffy help` for what is accepted", USAGE),
            Self::NoLedger => say("run a task first: fluffy \"what is to be done\"", FAILED),
            Self::Proof { .. } => say("make one with: fluffy audit prove ENTRY --out FILE", USAGE),
            Self::Registry(_) => say("report this: a shipped tool is wrong", FAILED),
            Self::PolicyExists => {
                say("change the file that is there, or replace it with --force", FAILED)
            }
            Self::Link(_) => say("put a real folder and file in its place", FAILED),
            Self::ProjectInState(_) => say("move the project, or use -C DIR for another", USAGE),
            Self::NoCases(_) => say(
                "write some, such as: cases: [{ name: no secrets, syscall: fs.read, path: .env, expect: deny }]",
                USAGE,
            ),
            Self::Request(_) => say("write it as `fluffy kernel submit --json` takes it", USAGE),
            Self::Json(_) => say("leave out what the rules do not need", USAGE),
            Self::NoProgram => say("start it by its path, with /proc mounted", FAILED),
            Self::Exists(_) => say("name a directory that does not exist yet", USAGE),
            Self::Sandbox(error) => sandbox_remedy(error),
            Self::SandboxConfig(_) => say("choose another template, or leave that out", USAGE),
            Self::Harvest(_) => say("have the command leave less behind", FAILED),
            Self::Saving(_) => say("check the free space and run it again", FAILED),
            Self::Task(error) => (task_remedy(error).to_owned(), USAGE),
            Self::Driver(error) => error.remedy(),
            Self::SayWhat => say("write: fluffy session say ID \"text\"; --last is an ID", USAGE),
            Self::NoProvider => say(
                "name one: fluffy auth set anthropic, then --provider anthropic -m MODEL; or a server of your own: \
                 fluffy models --local; or see it work without one: fluffy demo",
                USAGE,
            ),
            Self::Setup(error) => (error.fix(), USAGE),
            Self::Setting(error) => error.remedy(),
            Self::Provider(error) => say(error.fix(), PROVIDER_FAILED),
            Self::NoSession => say("begin one: fluffy \"what is to be done\"", USAGE),
            Self::UnknownSession(_) | Self::AmbiguousSession(_) => {
                say("see which there are: fluffy session list", USAGE)
            }
            Self::Session(error) => session_remedy(error),
            Self::Restore(error) => restore_remedy(error),
            Self::Resume(_) => say("see what is damaged with: fluffy audit verify", DAMAGED),
            Self::NoLanguage(needed) => (format!("install {needed}"), FAILED),
            Self::Confinement(error) => (confinement_remedy(error), NO_SANDBOX),
            Self::Listen(_) => say("make its directory your own alone, or move it away", FAILED),
            Self::Told(told) => (told.fix.clone(), told.code),
            Self::Halt(_) => say("end the process that runs the kernel", FAILED),
            Self::Ledger(error) => ledger_remedy(error),
            Self::Kernel(error) => kernel_remedy(error),
        }
    }
}

fn kernel_remedy(error: &KernelError) -> (String, u8) {
    let say = |text: &str, code| (text.to_owned(), code);
    match error {
        KernelError::Ledger(error) => ledger_remedy(error),
        KernelError::Extensions(_) => say("correct the file at the place named above", USAGE),
        KernelError::Registry(_) => say("report this: a shipped tool is wrong", FAILED),
        KernelError::State(_) => {
            say("begin a new session: fluffy kernel submit --json --new-session", FAILED)
        }
        KernelError::Note(_) => say("report this: an entry is wrong", FAILED),
        KernelError::NoRandomness => say("make /dev/urandom available to this process", FAILED),
    }
}

impl From<SessionError> for CliError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Kernel(error) => Self::Kernel(error),
            SessionError::Registry(error) => Self::Registry(error),
            SessionError::Restore(error) => Self::Restore(error),
            other => Self::Session(other),
        }
    }
}

fn restore_reason(error: &RestoreError) -> &'static str {
    match error {
        RestoreError::Unknown(_) => "the ledger has nothing of it",
        RestoreError::Gone(_) => "what it needs to go on was taken away",
        RestoreError::Forged { .. } => {
            "the ledger's file was changed after it was signed; nothing was sent to a model"
        }
        RestoreError::HalfForked(_) => "its making was interrupted",
        RestoreError::CutOff(_) => {
            "what was recorded after the damage is not known, and half of a session is another one"
        }
        RestoreError::Ledger(error) => ledger_reason(error),
        // These have a cause of their own.
        RestoreError::Entry { .. } | RestoreError::Workflow(_) => "the operation failed",
    }
}

fn restore_remedy(error: &RestoreError) -> (String, u8) {
    let say = |text: &str, code| (text.to_owned(), code);
    match error {
        RestoreError::Unknown(_) => say("see which there are: fluffy session list", USAGE),
        RestoreError::Forged { id, turns, .. } => (
            format!(
                "see everything that is wrong: fluffy audit verify; \
                 go on from before it: fluffy session fork {id} --at turn:{turns}"
            ),
            DAMAGED,
        ),
        RestoreError::HalfForked(_) => {
            say("fork the session once more: fluffy session fork ID", FAILED)
        }
        RestoreError::CutOff(id) => (
            format!("go on with what is left of it in a new session: fluffy session fork {id}"),
            DAMAGED,
        ),
        RestoreError::Ledger(_)
        | RestoreError::Entry { .. }
        | RestoreError::Gone(_)
        | RestoreError::Workflow(_) => {
            say("see what is damaged with: fluffy audit verify", DAMAGED)
        }
    }
}

fn session_reason(error: &SessionError) -> &'static str {
    match error {
        SessionError::EmptyTask => "there is nothing to be done in it",
        SessionError::LongTask => "a model could not read it with anything beside it",
        SessionError::Done(_) => "its work is in the project",
        SessionError::NoTurn { .. } => "a fork goes on after a turn that was",
        SessionError::Archive(_) => {
            "it must be what the ledger says, or its contents cannot be had"
        }
        SessionError::MessageId => "what was said must be told from what is said again",
        SessionError::NoGrant(_) => "it was never given, or counts no more",
        SessionError::NotPinned(_) => "only what is pinned can be taken away",
        SessionError::NoStep => "nothing is staged, or what was is merged",
        SessionError::Mode(_) => "the policy or a person refused it",
        SessionError::Pin { .. } => {
            "a pin is a text file of the project, shown to the model as a whole"
        }
        SessionError::PinDenied { .. } => {
            "what the model may not read is not shown to it by other ways"
        }
        SessionError::Staging(_) => "what was asked for is not there, or cannot be had",
        SessionError::Step(_) => "what cannot be recorded is not done",
        // These have a cause of their own.
        SessionError::Project { .. }
        | SessionError::Merge(_)
        | SessionError::Kernel(_)
        | SessionError::Registry(_)
        | SessionError::Restore(_) => "the operation failed",
    }
}

fn session_remedy(error: &SessionError) -> (String, u8) {
    let say = |text: &str, code| (text.to_owned(), code);
    match error {
        SessionError::EmptyTask => {
            say("say what is to be done: fluffy \"what is to be done\"", USAGE)
        }
        SessionError::LongTask => {
            say("put what is long into a file of the project and name it in the task", USAGE)
        }
        SessionError::Project { .. } => say("name an existing directory with -C DIR", USAGE),
        SessionError::Staging(StagingError::Unknown(_)) | SessionError::NoStep => {
            say("see which steps there are: fluffy session show", USAGE)
        }
        SessionError::Staging(StagingError::Blob(
            BlobError::Changed(_) | BlobError::Io { action: "read", .. },
        )) => say(
            "put the file back, or go on from before it: fluffy session fork --at turn:N",
            DAMAGED,
        ),
        SessionError::Staging(_) => say("check the free space and the session's files", FAILED),
        SessionError::Merge(_) => {
            say("free what is in the way and go on: fluffy session resume", FAILED)
        }
        SessionError::Mode(_) => say("work in strict mode, or do what the reason says", DENIED),
        SessionError::Pin { .. } => {
            say("name a text file by its path from the project's root", USAGE)
        }
        SessionError::PinDenied { .. } => {
            say("leave it out, or let the policy allow reading it", DENIED)
        }
        SessionError::MessageId => say("say it with: fluffy session say", USAGE),
        SessionError::NoGrant(_) => say("see which there are: fluffy session grants", USAGE),
        SessionError::NotPinned(_) => say("see what is pinned: fluffy session status", USAGE),
        SessionError::NoTurn { .. } => say("see how many there are: fluffy session show", USAGE),
        SessionError::Archive(ArchiveError::Changed(_) | ArchiveError::Missing(_)) => say(
            "put the file back, or go on from before its steps: fluffy session fork --at turn:N",
            DAMAGED,
        ),
        SessionError::Archive(_) => say("check the free space and the file", FAILED),
        SessionError::Done(_) => say(
            "say what more is to be done: fluffy session say --last \"…\"; or begin a new one",
            USAGE,
        ),
        SessionError::Step(_)
        | SessionError::Kernel(_)
        | SessionError::Registry(_)
        | SessionError::Restore(_) => say("see what is damaged with: fluffy audit verify", DAMAGED),
    }
}

fn task_reason(error: &TaskError) -> &'static str {
    match error {
        TaskError::Absent => "nothing was typed, and nothing is piped into the standard input",
        TaskError::Blank => "there is nothing to be done in it",
        TaskError::Long => "a model could not read it with anything beside it",
        TaskError::NotText => "a task is text",
        TaskError::Unreadable(_) => "the operation failed",
    }
}

fn task_remedy(error: &TaskError) -> &'static str {
    match error {
        TaskError::Absent | TaskError::Blank => {
            "say what is to be done: fluffy \"what is to be done\""
        }
        TaskError::Long => "put what is long into a file of the project and name it in the task",
        TaskError::NotText => "convert it to UTF-8",
        TaskError::Unreadable(_) => "check what is piped into the standard input",
    }
}

fn confinement_remedy(error: &L1Error) -> String {
    error.fix().unwrap_or_else(|| "see what this machine offers: fluffy doctor".to_owned())
}

fn sandbox_remedy(error: &RuntimeError) -> (String, u8) {
    let say = |text: &str, code| (text.to_owned(), code);
    match error {
        RuntimeError::Unavailable { fix, .. } => (fix.clone(), NO_SANDBOX),
        RuntimeError::Engine(error) => (error.fix(), NO_SANDBOX),
        RuntimeError::Config(_) => say("choose another template, or leave that out", USAGE),
        RuntimeError::Program { .. } => say(
            "name a program of the system or of a toolchain, or show its directory with --show",
            FAILED,
        ),
        RuntimeError::Setup(_) | RuntimeError::Io { .. } => {
            say("see what this machine offers with: fluffy doctor", NO_SANDBOX)
        }
        RuntimeError::GaveWay(_) => {
            say("close other programs, or change what `scheduler.…` says in your settings", FAILED)
        }
        RuntimeError::State(_) => say("report this: the sandbox was used out of order", FAILED),
    }
}

fn ledger_reason(error: &LedgerError) -> &'static str {
    match error {
        LedgerError::Locked { .. } => "one kernel at a time writes the ledger of a project",
        LedgerError::Stopped(_) => "what cannot be recorded is not done",
        LedgerError::Damaged(_) => {
            "it was changed by something else than a kernel, or the disk fails"
        }
        LedgerError::NoRandomness => "keys and salts need random bytes",
        LedgerError::NoSuchEntry { .. } => "the number is beyond the last entry",
        LedgerError::Pattern { .. } => "a pattern that cannot be read would withhold nothing",
        LedgerError::Archive { .. } => "it was changed after it was recorded, or the disk fails",
        LedgerError::Gone { .. } => {
            "entries past their retention are deleted, and that is an entry"
        }
        LedgerError::TooLarge { .. } => "an entry has to fit into the ledger",
        // These have a cause of their own.
        LedgerError::File { .. }
        | LedgerError::Database { .. }
        | LedgerError::Key(_)
        | LedgerError::Checkpoint(_)
        | LedgerError::Rotation(_) => "the operation failed",
    }
}

fn ledger_remedy(error: &LedgerError) -> (String, u8) {
    let say = |text: &str, code| (text.to_owned(), code);
    match error {
        LedgerError::Locked { .. } => {
            say("wait until it ends, or halt it: fluffy kernel halt", FAILED)
        }
        LedgerError::File { .. } => say("check the file, its owner and the free space", FAILED),
        LedgerError::Database { .. } | LedgerError::Stopped(_) => say(
            "check the free space, then look at: fluffy audit verify; a task goes on with: fluffy session resume",
            DAMAGED,
        ),
        LedgerError::Damaged(_) => say("see what is damaged with: fluffy audit verify", DAMAGED),
        LedgerError::Archive { .. } => {
            say("see what is damaged with: fluffy audit verify", DAMAGED)
        }
        LedgerError::Gone { .. } => {
            say("take the entries from a copy of the archives, if you kept one", FAILED)
        }
        LedgerError::Key(_) => say("do what the reason says; the key is yours alone", USAGE),
        LedgerError::Checkpoint(_) => say("see what is damaged with: fluffy audit verify", DAMAGED),
        LedgerError::NoRandomness => say("make /dev/urandom available to this process", FAILED),
        LedgerError::NoSuchEntry { .. } => say("list entries with: fluffy audit log", USAGE),
        LedgerError::Rotation(_) => say("look at the key with: fluffy doctor", FAILED),
        LedgerError::TooLarge { .. } => {
            say("report this: the kernel bounds what it records", FAILED)
        }
        LedgerError::Pattern { .. } => say("write a glob such as `fs.*` or `secrets/**`", USAGE),
    }
}
