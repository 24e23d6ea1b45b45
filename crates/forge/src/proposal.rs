//! What is proposed: everything that a skill may ever do, before a line of it is written.

use std::fmt;

use fluffy_base::ProjectPath;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::SkillName;

/// What running a skill can do to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SideEffect {
    /// It reads listed folders.
    ReadOnly,
    /// It writes to listed folders.
    FileWrite,
    /// It speaks to listed hosts.
    Network,
    /// It is given listed secrets, and may speak to listed hosts.
    SecretRead,
    /// It moves money: a person is asked every time.
    Money,
    /// It speaks to people: a person is asked every time.
    Messaging,
}

/// A skill as it was proposed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// What it is called.
    pub name: SkillName,
    /// What it does, for people and models.
    pub description: String,
    /// JSON Schema of what it is given: an object.
    pub input: Value,
    /// JSON Schema of what it gives: an object.
    pub output: Value,
    /// What running it can do to the world.
    pub side_effect: SideEffect,
    /// Folders of the project that it sees.
    #[serde(default)]
    pub reads: Vec<ProjectPath>,
    /// Folders of the project that it sees and may change.
    #[serde(default)]
    pub writes: Vec<ProjectPath>,
    /// Hosts that it may reach, as `name:port`; a name alone is port 443.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Names of the secrets that it is given.
    #[serde(default)]
    pub secrets: Vec<String>,
    /// Whether it may ask the local model, through the kernel.
    #[serde(default)]
    pub model: bool,
}

impl SideEffect {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::ReadOnly,
        Self::FileWrite,
        Self::Network,
        Self::SecretRead,
        Self::Money,
        Self::Messaging,
    ];

    /// Its name, as proposals and skills write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "READ_ONLY",
            Self::FileWrite => "FILE_WRITE",
            Self::Network => "NETWORK",
            Self::SecretRead => "SECRET_READ",
            Self::Money => "MONEY",
            Self::Messaging => "MESSAGING",
        }
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

impl fmt::Display for SideEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
