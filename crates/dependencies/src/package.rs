//! A package as it was resolved.

use serde::{Deserialize, Serialize};

/// A package as it was resolved: one name and version from one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResolvedPackage {
    /// Its name in the registry.
    pub name: String,
    /// The version.
    pub version: String,
    /// Where it comes from.
    pub origin: PackageOrigin,
    /// The hash that its archive has to have, as the lock file writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integrity: Option<String>,
    /// Whether the project itself asks for it.
    #[serde(default)]
    pub direct: bool,
    /// Whether it has scripts that run when it is installed or built.
    #[serde(default)]
    pub scripts: bool,
    /// Its licence, as the registry tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
    /// When the version was published, in milliseconds since the epoch, as the registry tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_ms: Option<u64>,
}

/// Where a package comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PackageOrigin {
    /// The registry that the manager is set up for; the lock file names no host.
    Registry,
    /// The registry at this host.
    Host(String),
    /// Not from a registry: a repository, a file or an address.
    Elsewhere(String),
}

impl ResolvedPackage {
    /// A package of which nothing but name, version and place is known.
    pub fn new(name: impl Into<String>, version: impl Into<String>, origin: PackageOrigin) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            origin,
            integrity: None,
            direct: false,
            scripts: false,
            licence: None,
            published_ms: None,
        }
    }

    /// `name@version`.
    pub fn id(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

impl PackageOrigin {
    /// The place that an address names.
    pub fn of_url(url: &str) -> Self {
        match crate::registry::host_of(url) {
            Some(host) => Self::Host(host),
            None => Self::Elsewhere(fluffy_base::Excerpt::new(url, 200).to_string()),
        }
    }
}
