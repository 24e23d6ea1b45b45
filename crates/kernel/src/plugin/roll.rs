//! Which plugins are installed: what the newest entry of the ledger says, and nothing else.
//!
//! **Invariant.** Every change writes all of it into one entry, so that the newest one is the whole truth; it is proved with
//! everything after it, so that there is none that is newer.

use std::path::Path;

use fluffy_base::Digest;
use fluffy_ledger::{EventType, Layout, VerifyingKey};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::package::digest_of;
use super::{PackedFile, PluginError, PluginName, files};
use crate::notes::{KeptNote, newest_note, proved_copy};
use crate::{Appended, Journal, Note};

/// The copy of the newest entry, for the time after the ledger's retention took it.
const COPY: &str = "roll.copy";
/// The largest copy.
const MAX_COPY: u64 = 16 << 20;

/// Why a plugin does not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disabled {
    /// Why.
    pub why: String,
    /// Who said so: a person, or `kernel`.
    pub by: String,
}

/// A plugin that a person installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Installed {
    /// Its name.
    pub name: PluginName,
    /// Its version, in its author's words.
    pub version: String,
    /// Hash over all its files: what a person agreed to.
    pub package: Digest,
    /// Its files.
    pub files: Vec<PackedFile>,
    /// Who installed it.
    pub by: String,
    /// Why it does not run, if it does not.
    pub disabled: Option<Disabled>,
}

/// All plugins that are installed, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Roll {
    plugins: Vec<Installed>,
}

impl Roll {
    /// Reads it from the ledger. `dir` is the plugins' own directory.
    pub fn read(layout: &Layout, key: &VerifyingKey, dir: &Path) -> Result<Self, PluginError> {
        if !dir.is_dir() {
            return Ok(Self::default());
        }
        let mut newest = None;
        let mut keep = |note: &KeptNote<'_>| {
            newest = note.content.map(|content| (content.to_vec(), note.copy().ok()));
        };
        let span = newest_note(layout, key, EventType::Plugin, &mut keep)?;
        let at = dir.join(COPY);
        let failed = |source| PluginError::Io { path: at.clone(), source };
        if let Some((content, copy)) = newest {
            let kept = files::read(&at, MAX_COPY).map_err(failed)?;
            if let Some(copy) = copy.filter(|copy| kept.as_ref() != Some(copy)) {
                files::replace(&at, &copy).map_err(failed)?;
            }
            return Self::parse(&content);
        }
        // What the ledger does not hold any more is proved by its tree.
        if span.is_none_or(|span| span.gone_to == 0) {
            return Ok(Self::default());
        }
        let Some(copy) = files::read(&at, MAX_COPY).map_err(failed)? else {
            return Ok(Self::default());
        };
        let mut content = None;
        proved_copy(layout, key, EventType::Plugin, &copy, |note| {
            content = note.content.map(<[u8]>::to_vec);
        })?;
        content.map_or_else(|| Ok(Self::default()), |content| Self::parse(&content))
    }

    /// The plugins, by name.
    pub fn plugins(&self) -> &[Installed] {
        &self.plugins
    }

    /// The plugin of this name.
    pub fn find(&self, name: &PluginName) -> Result<&Installed, PluginError> {
        let found = self.plugins.iter().find(|plugin| plugin.name == *name);
        found.ok_or_else(|| PluginError::Unknown(name.clone()))
    }

    /// The same with this plugin, in the place of one of its name.
    #[must_use]
    pub(super) fn with(mut self, plugin: Installed) -> Self {
        self.plugins.retain(|known| known.name != plugin.name);
        self.plugins.push(plugin);
        self.plugins.sort_by(|a, b| a.name.cmp(&b.name));
        self
    }

    /// The same without this plugin.
    #[must_use]
    pub(super) fn without(mut self, name: &PluginName) -> Self {
        self.plugins.retain(|known| known.name != *name);
        self
    }

    /// The same with this plugin allowed to run, or not.
    #[must_use]
    pub(super) fn set(mut self, name: &PluginName, disabled: Option<Disabled>) -> Self {
        if let Some(plugin) = self.plugins.iter_mut().find(|plugin| plugin.name == *name) {
            plugin.disabled = disabled;
        }
        self
    }

    /// Records it as what holds from now on.
    pub(super) fn record(
        &self,
        journal: &dyn Journal,
        (name, what): (&PluginName, &str),
        mut metadata: Vec<(&'static str, String)>,
    ) -> Result<Appended, PluginError> {
        metadata.insert(0, ("plugin", name.to_string()));
        metadata.insert(1, ("change", what.to_owned()));
        let note = Note {
            event: EventType::Plugin,
            intent: format!("plugin {name} is {what}"),
            request_id: None,
            workflow_state: None,
            metadata,
            content: Some(json!(self)),
        };
        journal.record(note).map_err(PluginError::Unrecorded)
    }

    fn parse(content: &[u8]) -> Result<Self, PluginError> {
        let roll: Self = serde_json::from_slice(content).map_err(PluginError::Unreadably)?;
        match roll.plugins.iter().find(|plugin| digest_of(&plugin.files) != plugin.package) {
            Some(plugin) => Err(PluginError::List(plugin.name.clone())),
            None => Ok(roll),
        }
    }
}
