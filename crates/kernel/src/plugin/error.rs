//! Why something about a plugin was not done.

use std::io;
use std::path::PathBuf;

use fluffy_base::{Digest, JsonError, ProjectPath};

use super::life::Stage;
use super::{PackageError, PluginName};
use crate::notes::NotesError;
use crate::{RegistryError, ToolError, TreeError};

/// Why something about a plugin was not done.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// There is no such plugin.
    #[error("there is no plugin `{0}`")]
    Unknown(PluginName),
    /// No plugin has this tool.
    #[error("no plugin has a tool `{tool}`; {there}")]
    NoTool {
        /// The tool that was asked for.
        tool: String,
        /// What there is instead.
        there: String,
    },
    /// The plugin that has the tool is disabled or rejected.
    #[error("plugin `{name}` is {}: {}", stage.name(), reasons.join("; "))]
    Hindered {
        /// Which.
        name: PluginName,
        /// Where it stands.
        stage: Stage,
        /// Why, a sentence each.
        reasons: Vec<String>,
    },
    /// Its files are none of a plugin.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// It asks for what it cannot have.
    #[error("plugin `{name}` is rejected: {}", reasons.join("; "))]
    Rejected {
        /// Which.
        name: PluginName,
        /// Why, a sentence each.
        reasons: Vec<String>,
    },
    /// A file has other bytes than those that were installed.
    #[error(
        "`{file}` of plugin `{name}` is not what was installed: its hash is {found}, not {sealed}"
    )]
    Changed {
        /// Which plugin.
        name: PluginName,
        /// Which file.
        file: ProjectPath,
        /// What was installed.
        sealed: Digest,
        /// What is there.
        found: Digest,
    },
    /// A file is not there, or no file.
    #[error("`{file}` of plugin `{name}`, which was installed, cannot be read")]
    Unreadable {
        /// Which plugin.
        name: PluginName,
        /// Which file.
        file: ProjectPath,
        /// Why not.
        source: TreeError,
    },
    /// The list of its files is not the one that was agreed to.
    #[error("the list of files of plugin `{0}` is not the one that was installed")]
    List(PluginName),
    /// The files of plugins cannot be used.
    #[error("`{}` cannot be used", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The ledger cannot be read, or is not what was recorded.
    #[error(transparent)]
    Notes(#[from] NotesError),
    /// What the ledger says of plugins is of another form.
    #[error("what the ledger says of plugins cannot be read")]
    Unreadably(#[source] serde_json::Error),
    /// It could not be recorded.
    #[error("{0}")]
    Unrecorded(ToolError),
    /// A tool cannot be registered.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The rules or a person said no.
    #[error("it was not allowed: {reason}")]
    Denied {
        /// Why.
        reason: String,
        /// The rule that decided.
        rule: Option<String>,
    },
    /// The kernel allowed it and did not do it.
    #[error("it was not done: {0}")]
    NotDone(String),
    /// The request is not the one that was ordered.
    #[error("this is not what was ordered")]
    Another,
    /// It is so already.
    #[error("plugin `{0}` is {1} already")]
    Already(PluginName, &'static str),
    /// The machine gives no randomness.
    #[error("there is no randomness for an id")]
    NoRandomness,
    /// A value cannot be kept.
    #[error("it cannot be written as JSON")]
    Json(#[source] JsonError),
}

impl PluginError {
    /// What to do about it.
    pub fn fix(&self) -> String {
        let told = match self {
            Self::Unknown(_) | Self::NoTool { .. } => "see which there are: fluffy plugin list",
            Self::Hindered { name, stage: Stage::Disabled, .. } => {
                return format!(
                    "look at it: fluffy plugin show {name}; let it run again: fluffy plugin enable {name}"
                );
            }
            Self::Package(error) => return error.fix(),
            Self::Rejected { .. } | Self::Hindered { .. } => {
                "change what its manifest asks for, or what the policy allows; docs/plugins.md"
            }
            Self::Changed { .. } | Self::Unreadable { .. } | Self::List(_) => {
                "install it again: fluffy plugin install PATH"
            }
            Self::Io { .. } => "see whether the directory can be written and the disk has room",
            Self::Notes(_) | Self::Unreadably(_) => "see what the ledger says: fluffy audit verify",
            Self::Unrecorded(_) | Self::NotDone(_) | Self::NoRandomness | Self::Another => {
                "try again"
            }
            Self::Registry(_) | Self::Json(_) => "mend the schema in its manifest",
            Self::Denied { .. } => {
                "a person at a terminal has to agree; `fluffy policy explain` tells which rule says so"
            }
            Self::Already(..) => "nothing is to be done",
        };
        told.to_owned()
    }
}
