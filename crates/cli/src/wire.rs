//! What a client and the kernel's process say to each other about a project's work.
//!
//! The transport is `fluffy_kernel::ipc`; here are the methods and the values that they carry.
//!
//! **Invariant.** What a client says of itself decides nothing. It says what a person wants; who it is, whether a person can
//! be behind it and what may be done is found out in the kernel's process.

mod chat;

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fluffy_base::{Event, Secret, SessionId, SystemIds};
use fluffy_kernel::{IdentityOverrides, KernelError, PluginDone};
use fluffy_workflow::{Access, Mode};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

pub(crate) use self::chat::{ChatReply, ChatWork, ReplyKind, Say};
use crate::builders;
use crate::commands::run::{Caps, Outcome};
use crate::environment::Environment;
use crate::explain::{CANCELLED, CliError, DONE, Explained};
use crate::forge::Answer;
use crate::providers::{GatewaySetup, ModelSource, Via, exposed_pairs};
use crate::review::{Asked, Reply};

/// Begins a piece of work; whoever asks drives it.
pub(crate) const SUBMIT: &str = "task.submit";
/// A piece of what is too long for one message, before it is submitted.
pub(crate) const PART: &str = "task.part";
/// Ends the work that the peer drives.
pub(crate) const CANCEL: &str = "task.cancel";
/// What happened in it.
pub(crate) const STREAM: &str = "task.stream";
/// It came to its end.
pub(crate) const COMPLETE: &str = "task.complete";
/// It could not be carried out.
pub(crate) const ERROR: &str = "task.error";
/// A person is asked.
pub(crate) const REVIEW: &str = "review.request";
/// What they said.
pub(crate) const REVIEWED: &str = "review.response";
/// Watches what is under way, or goes on driving it.
pub(crate) const ATTACH: &str = "session.attach";
/// Where what is under way stands; anybody may ask.
pub(crate) const STATUS: &str = "session.status";
/// Does something to the session that is under way; the driver alone may.
pub(crate) const STEER: &str = "session.steer";
/// Halts the kernel of what is under way.
pub(crate) const HALT: &str = "kernel.halt";
/// Ends the kernel's process if nothing is under way.
pub(crate) const STOP: &str = "kernel.stop";

/// The longest piece of a transcript in one message.
pub(crate) const PART_BYTES: usize = 4 << 20;

/// A piece of work, and what it needs of whoever wants it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Submission {
    /// What is to be done.
    pub(crate) work: Work,
    /// Who drives it, where a model does.
    pub(crate) driver: Option<Driver>,
    /// What skills may be given.
    pub(crate) handed: Handed,
    /// What the client's process was given.
    pub(crate) surroundings: Surroundings,
}

impl Submission {
    /// A text that is too long for one message and is sent before: of a transcript that is played, or a plugin.
    pub(crate) fn sent_before(&self) -> Option<&str> {
        match (&self.work, &self.driver) {
            (Work::Plugin(PluginWork::Install { package }), _) => Some(package),
            (
                Work::Skill(SkillWork::Build {
                    builder: BuilderSource::Transcript { text, .. },
                    ..
                }),
                _,
            )
            | (_, Some(Driver { model: ModelSource::Replay { text, .. }, .. })) => Some(text),
            _other => None,
        }
    }
}

/// What the client found for skills: secrets that their proposals name, the local model, the proxy.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Handed {
    /// Secrets by name.
    #[serde(serialize_with = "exposed_pairs")]
    pub(crate) secrets: Vec<(String, Secret)>,
    /// Where the local model is.
    pub(crate) gateway: Option<GatewaySetup>,
    /// The same for conversation, where the person chose it for that.
    pub(crate) talk: Option<GatewaySetup>,
    /// The proxy that the person has to use.
    pub(crate) proxy: Option<Via>,
    /// Whether no directory above the project has a repository: the kernel's process does not see them.
    #[serde(default)]
    pub(crate) outside_of_repositories: bool,
    /// The user's own settings of package registries.
    #[serde(default)]
    pub(crate) registries: HandedRegistries,
}

/// The user's own settings of package registries, which the kernel's process does not see itself.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HandedRegistries {
    /// Files by the name of what they are.
    #[serde(serialize_with = "exposed_pairs")]
    pub(crate) files: Vec<(String, Secret)>,
    /// Variables.
    #[serde(serialize_with = "exposed_pairs")]
    pub(crate) env: Vec<(String, Secret)>,
    /// The proxy on the way to registries.
    pub(crate) proxy: Option<Via>,
}

/// Who drives a task, and how far.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Driver {
    /// The model.
    pub(crate) model: ModelSource,
    /// Where it has to stop.
    pub(crate) caps: Caps,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Work {
    /// A new task.
    Begin {
        /// What the person said.
        task: String,
        /// How strictly to work.
        mode: Mode,
        /// Whether anything may be written.
        access: Access,
        /// Files to be kept before the model's eyes.
        pins: Vec<String>,
    },
    /// A session goes on.
    Resume {
        /// Which.
        session: String,
    },
    /// The person says something more to a session that is not under way, and it goes on with that. It may be done.
    Say {
        /// Which.
        session: String,
        /// What tells these words from the same words said again: brought twice, they are said once.
        message: String,
        /// What the person says.
        text: String,
    },
    /// A person looks at a session or takes something back.
    Act {
        /// Which.
        session: String,
        /// What they do.
        act: Act,
    },
    /// Something of a skill.
    Skill(SkillWork),
    /// Something of a plugin.
    Plugin(PluginWork),
    /// A turn of a conversation.
    Chat(ChatWork),
}

/// What is under way, for those who wait for it.
impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begin { .. } | Self::Resume { .. } | Self::Say { .. } => f.write_str("the task"),
            Self::Act { session, .. } => write!(f, "session {session}"),
            Self::Skill(work) => work.fmt(f),
            Self::Plugin(work) => work.fmt(f),
            Self::Chat(_) => f.write_str("the conversation"),
        }
    }
}

impl fmt::Display for PluginWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Install { .. } => f.write_str("installing the plugin"),
            Self::Remove { name } => write!(f, "removing {name}"),
            Self::Enable { name } => write!(f, "enabling {name}"),
            Self::Disable { name, .. } => write!(f, "disabling {name}"),
            Self::Call { tool, .. } => write!(f, "calling {tool}"),
        }
    }
}

impl fmt::Display for SkillWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Propose { .. } => f.write_str("proposing the skill"),
            Self::Build { name, .. } => write!(f, "building {name}"),
            Self::Install { name } => write!(f, "installing {name}"),
            Self::Verify { name } => write!(f, "asking the gates about {name}"),
            Self::Research { name, .. } => write!(f, "looking into {name}"),
            Self::Promote { name } => write!(f, "promoting {name}"),
            Self::Revoke { name, .. } => write!(f, "revoking {name}"),
            Self::Run { name, .. } => write!(f, "running {name}"),
            Self::Chain { .. } => f.write_str("running the chain"),
            Self::Replay { execution } => write!(f, "running {execution} again"),
            Self::Rebuild => f.write_str("reading the ledger"),
        }
    }
}

/// What is to be done about a plugin. Names and values are checked where they are used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum PluginWork {
    /// Installs it.
    Install {
        /// Its files, as a list of [`PackedBytes`]; sent before, as it may be long.
        #[serde(skip)]
        package: String,
    },
    /// Removes it.
    Remove {
        /// Which.
        name: String,
    },
    /// Lets it run again.
    Enable {
        /// Which.
        name: String,
    },
    /// Keeps it from running.
    Disable {
        /// Which.
        name: String,
        /// Why.
        why: String,
    },
    /// Calls a tool.
    Call {
        /// Which.
        tool: String,
        /// With what.
        input: Value,
    },
}

/// A file of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PackedBytes {
    /// Where it is in the plugin's directory.
    pub(crate) path: String,
    /// Whether it is a program.
    pub(crate) executable: bool,
    /// All of it.
    pub(crate) content: Bytes,
}

/// What became of what was asked about a plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum PluginAnswer {
    /// Something was changed.
    Changed(PluginDone),
    /// A tool was called.
    Called {
        /// Which.
        tool: String,
        /// What it gave.
        output: Option<Value>,
        /// Why it gave nothing.
        error: Option<String>,
        /// The number of its entry in the ledger.
        entry: Option<u64>,
    },
}

/// What is to be done about a skill. Names and values are checked where they are used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum SkillWork {
    /// Proposes it.
    Propose {
        /// What, as JSON.
        spec: Value,
    },
    /// Has it built.
    Build {
        /// Which.
        name: String,
        /// By whom.
        builder: BuilderSource,
        /// How long it may take.
        time_ms: Option<u64>,
    },
    /// Has one that comes with this program proposed, built, verified and trusted.
    Install {
        /// Which.
        name: String,
    },
    /// Asks the gates.
    Verify {
        /// Which.
        name: String,
    },
    /// Looks into what failed.
    Research {
        /// Which.
        name: String,
        /// What the person says about it.
        hint: Option<String>,
        /// Whether the local model is asked.
        advise: bool,
    },
    /// Trusts it.
    Promote {
        /// Which.
        name: String,
    },
    /// Trusts it no more.
    Revoke {
        /// Which.
        name: String,
        /// Why.
        why: String,
    },
    /// Runs it.
    Run {
        /// Which.
        name: String,
        /// With what.
        input: Value,
    },
    /// Runs several in a row.
    Chain {
        /// Which, as JSON.
        chain: Value,
        /// What the first is given.
        input: Value,
    },
    /// Runs again what was run.
    Replay {
        /// Which run.
        execution: String,
    },
    /// Makes tables and registry again from the ledger.
    Rebuild,
}

/// Who builds a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum BuilderSource {
    /// Claude Code.
    Claude {
        /// Where its program is.
        at: String,
    },
    /// Codex.
    Codex {
        /// Where its program is.
        at: String,
    },
    /// Our own loop, with the model of the submission's driver.
    Agent,
    /// A program of the user's.
    Command {
        /// It, with its arguments.
        argv: Vec<String>,
        /// Hosts that it may reach.
        hosts: Vec<String>,
        /// The variables with its keys.
        keys: Vec<String>,
    },
    /// What another builder once wrote.
    Transcript {
        /// Where it was found.
        file: PathBuf,
        /// What it says; sent before, as it may be long.
        #[serde(skip)]
        text: String,
    },
}

impl Work {
    /// The person says something more to a session.
    pub(crate) fn say(session: &SessionId, text: &str) -> Result<Self, CliError> {
        let message = SessionId::fresh(&SystemIds).ok_or(KernelError::NoRandomness)?.to_string();
        Ok(Self::Say { session: session.to_string(), message, text: text.to_owned() })
    }

    /// Whether doing it twice is doing it once: where the answer was lost, it may have been done.
    pub(crate) fn may_be_repeated(&self) -> bool {
        !matches!(
            self,
            Self::Act { act: Act::Undo, .. } | Self::Skill(_) | Self::Plugin(_) | Self::Chat(_)
        )
    }
}

/// What a person does to a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Act {
    /// Sees what it would change.
    Diff,
    /// Takes the last step back.
    Undo,
    /// Takes every step after this one back.
    Rewind(u64),
    /// Sets its mode.
    Mode(Mode),
    /// Keeps a file before the model's eyes, by its path from the project's root.
    Pin(String),
    /// Keeps it there no more.
    Unpin(String),
    /// Takes a grant back, by its number.
    Revoke(u64),
    /// Measures its coverage against the baseline.
    Budget,
    /// Gives it up.
    GiveUp,
}

impl Act {
    /// Whether it can be done to a session that is under way.
    pub(crate) fn fits_while_under_way(&self) -> bool {
        match self {
            Self::Diff | Self::Mode(_) | Self::Pin(_) | Self::Unpin(_) | Self::Revoke(_) => true,
            Self::Undo | Self::Rewind(_) | Self::Budget | Self::GiveUp => false,
        }
    }
}

/// What [`STATUS`] asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StatusRequest {
    /// The session, or whichever is under way.
    pub(crate) session: Option<String>,
}

/// What [`STEER`] asks for; answered with [`Steered`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Steer {
    /// The run that is meant.
    pub(crate) run: u64,
    /// What is done.
    pub(crate) act: Act,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Steered {
    /// What is to be shown.
    pub(crate) shown: Bytes,
}

/// What the client's process was given, as far as it matters to the work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Surroundings {
    /// The search path.
    path: Option<Bytes>,
    /// The home directory, the cache, what the tools that check and write skills are made of, and where the user's settings lie.
    home: Option<Bytes>,
    cache: Option<Bytes>,
    tools: Vec<Bytes>,
    settings_in: Option<Bytes>,
    /// Which files the user's settings are: a kernel sees those that were there when its walls closed.
    personal: Vec<Option<FileIdentity>>,
    /// Who the user says they are to git.
    git_identity: IdentityOverrides,
    /// The variables that are settings of ours.
    settings: Vec<(String, Bytes)>,
    /// The variables that say what makes the sandboxes: the way to an engine is made before a kernel's walls close.
    sandboxes: Vec<(String, Bytes)>,
}

impl Surroundings {
    /// Those of this process.
    pub(crate) fn of(environment: &Environment) -> Self {
        let path = environment.path.as_ref().map(|path| Bytes(path.as_bytes().to_vec()));
        let text = |text: &OsString| Bytes(text.as_bytes().to_vec());
        let settings = environment.settings.iter().map(|(name, it)| (name.clone(), text(it)));
        let dir = |dir: &Option<PathBuf>| {
            dir.as_ref().map(|dir| Bytes(dir.as_os_str().as_bytes().to_vec()))
        };
        Self {
            path,
            home: dir(&environment.home),
            cache: dir(&environment.cache_dir()),
            tools: tools(environment),
            settings_in: dir(&environment.config_dir()),
            personal: environment.personal_files().iter().map(|path| identity(path)).collect(),
            git_identity: environment.git_identity.clone(),
            settings: settings.collect(),
            sandboxes: environment
                .of_sandboxes()
                .iter()
                .map(|(name, it)| ((*name).to_owned(), text(it)))
                .collect(),
        }
    }

    /// Whether a kernel with this environment sees what it needs: it was shown what one search path and one home have.
    pub(crate) fn fit(&self, own: &Self) -> bool {
        let parts = |it: &Self| {
            (it.path.clone(), it.home.clone(), it.settings_in.clone(), it.personal.clone())
        };
        let skills = |it: &Self| (it.cache.clone(), it.tools.clone());
        parts(self) == parts(own) && skills(self) == skills(own) && self.sandboxes == own.sandboxes
    }

    /// The kernel's own environment with these in it.
    pub(crate) fn within(&self, own: &Environment) -> Environment {
        Environment {
            path: self.path.clone().map(|Bytes(path)| OsString::from_vec(path)),
            git_identity: self.git_identity.clone(),
            settings: self
                .settings
                .iter()
                .map(|(name, Bytes(text))| (name.clone(), OsString::from_vec(text.clone())))
                .collect(),
            ..own.parts()
        }
    }
}

/// What the tools that check skills, and the builders that write them, are made of: a kernel sees what was there when its walls closed.
fn tools(environment: &Environment) -> Vec<Bytes> {
    let cache = environment.cache_dir().and_then(|cache| std::fs::canonicalize(cache).ok());
    let tools = cache.and_then(|cache| fluffy_forge::locate(&cache).ok());
    let bytes = |path: &PathBuf| Bytes(path.as_os_str().as_bytes().to_vec());
    let tools = tools.map(|tools| tools.shown).unwrap_or_default();
    tools.iter().chain(&builders::shown(environment)).map(bytes).collect()
}

/// What tells a file from the one that takes its place: device, number, time of its last change and size.
type FileIdentity = (u64, u64, i64, i64, u64);

fn identity(path: &Path) -> Option<FileIdentity> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino(), found.mtime(), found.mtime_nsec(), found.size()))
}

/// What [`SUBMIT`] and [`ATTACH`] are answered with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Joined {
    /// The run that is watched.
    pub(crate) run: u64,
    /// Whether the peer drives it.
    pub(crate) drives: bool,
}

/// What [`ATTACH`] asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Attach {
    /// The session, or whichever is under way.
    pub(crate) session: Option<String>,
    /// The run, where it is known.
    pub(crate) run: Option<u64>,
    /// What was seen already, up to this number.
    pub(crate) after: u64,
    /// Whether the peer wants to drive it, if nobody does.
    pub(crate) drive: bool,
}

/// One event, numbered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Told {
    /// Of which run.
    pub(crate) run: u64,
    /// The how many-th.
    pub(crate) seq: u64,
    /// What happened.
    pub(crate) event: Event,
}

/// A question to whoever drives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReviewRequest {
    /// Of which run.
    pub(crate) run: u64,
    /// Which question.
    pub(crate) id: String,
    /// What is asked.
    pub(crate) asked: Asked,
}

/// An answer to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReviewResponse {
    /// Of which run.
    pub(crate) run: u64,
    /// Which question.
    pub(crate) id: String,
    /// What was said.
    pub(crate) reply: Reply,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ended {
    /// Which.
    pub(crate) run: u64,
    /// How.
    pub(crate) end: End,
}

/// How a piece of work ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum End {
    /// A task, like this.
    Task(Outcome),
    /// What a person did, with what is to be shown.
    Done(Bytes),
    /// Something of a skill, like this.
    Skill(Box<Answer>),
    /// Something of a plugin, like this.
    Plugin(Box<PluginAnswer>),
    /// A turn of a conversation, like this.
    Chat(Box<ChatReply>),
    /// Not at all.
    Error(Explained),
}

impl End {
    /// Whether somebody wanted it to stop, and it had not come to its own end before.
    pub(crate) fn is_cancelled(&self) -> bool {
        let code = match self {
            Self::Task(outcome) => outcome.code(),
            Self::Skill(answer) => answer.code(),
            Self::Chat(reply) => reply.code(),
            Self::Error(explained) => explained.code,
            Self::Done(_) | Self::Plugin(_) => DONE,
        };
        code == CANCELLED
    }

    /// How a task ended.
    pub(crate) fn task(self) -> Result<Outcome, CliError> {
        match self {
            Self::Task(outcome) => Ok(outcome),
            // A task that was begun in a conversation.
            Self::Chat(reply) => reply.task.ok_or(CliError::Told(Explained::confused())),
            Self::Done(_) | Self::Skill(_) | Self::Plugin(_) => {
                Err(CliError::Told(Explained::confused()))
            }
            Self::Error(explained) => Err(CliError::Told(explained)),
        }
    }

    /// What is shown of what a person did.
    pub(crate) fn shown(self) -> Result<Vec<u8>, CliError> {
        match self {
            Self::Done(Bytes(shown)) => Ok(shown),
            Self::Task(_) | Self::Skill(_) | Self::Plugin(_) | Self::Chat(_) => {
                Err(CliError::Told(Explained::confused()))
            }
            Self::Error(explained) => Err(CliError::Told(explained)),
        }
    }

    /// What became of a skill.
    pub(crate) fn skill(self) -> Result<Answer, CliError> {
        match self {
            Self::Skill(answer) => Ok(*answer),
            // It was cancelled while its kernel was lost.
            Self::Task(Outcome::Cancelled) => Err(CliError::Told(Explained::cancelled())),
            Self::Task(_) | Self::Done(_) | Self::Plugin(_) | Self::Chat(_) => {
                Err(CliError::Told(Explained::confused()))
            }
            Self::Error(explained) => Err(CliError::Told(explained)),
        }
    }

    /// What became of a plugin.
    pub(crate) fn plugin(self) -> Result<PluginAnswer, CliError> {
        match self {
            Self::Plugin(answer) => Ok(*answer),
            // It was cancelled while its kernel was lost.
            Self::Task(Outcome::Cancelled) => Err(CliError::Told(Explained::cancelled())),
            Self::Task(_) | Self::Done(_) | Self::Skill(_) | Self::Chat(_) => {
                Err(CliError::Told(Explained::confused()))
            }
            Self::Error(explained) => Err(CliError::Told(explained)),
        }
    }

    /// What became of a turn of a conversation.
    pub(crate) fn chat(self) -> Result<ChatReply, CliError> {
        match self {
            Self::Chat(reply) => Ok(*reply),
            Self::Task(_) | Self::Done(_) | Self::Skill(_) | Self::Plugin(_) => {
                Err(CliError::Told(Explained::confused()))
            }
            Self::Error(explained) => Err(CliError::Told(explained)),
        }
    }
}

/// Bytes that need not be a text, as one value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&base64::display::Base64Display::new(&self.0, &STANDARD))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
        STANDARD.decode(text.as_bytes()).map(Self).map_err(de::Error::custom)
    }
}
