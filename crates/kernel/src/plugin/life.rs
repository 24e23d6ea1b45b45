//! Where a plugin is in its life, and how the ledger is told.

use std::fmt;

use fluffy_ledger::EventType;
use serde::{Deserialize, Serialize};

use super::PluginName;
use crate::{Journal, Note, ToolError};

/// Where a plugin is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Stage {
    /// Its files were found.
    Discovered,
    /// Its tools are offered.
    Registered,
    /// It asks for what it cannot have, or is not what was installed.
    Rejected,
    /// Its process runs.
    Loaded,
    /// It has said who it is, and answers.
    Active,
    /// Its process was ended in order.
    Unloaded,
    /// It does not run: a person or the kernel said so.
    Disabled,
}

impl Stage {
    /// The word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Discovered => "DISCOVERED",
            Self::Registered => "REGISTERED",
            Self::Rejected => "REJECTED",
            Self::Loaded => "LOADED",
            Self::Active => "ACTIVE",
            Self::Unloaded => "UNLOADED",
            Self::Disabled => "DISABLED",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Tells the ledger where a plugin is now.
pub(super) fn tell(
    journal: &dyn Journal,
    name: &PluginName,
    stage: Stage,
    metadata: Vec<(&'static str, String)>,
) -> Result<(), ToolError> {
    let about = [("plugin", name.to_string()), ("stage", stage.name().to_owned())];
    let note = Note {
        event: EventType::PluginLifecycle,
        intent: format!("plugin {name} is {}", stage.name().to_lowercase()),
        request_id: None,
        workflow_state: None,
        metadata: about.into_iter().chain(metadata).collect(),
        content: None,
    };
    journal.record(note).map(drop)
}
