//! Reads what managers locked: every package with its version, its origin and its hash.

mod cargo;
mod go;
mod node;
mod python;

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::package::{PackageOrigin, ResolvedPackage};
use crate::profile::Manager;
use crate::time::parse_utc;

/// The most that is read of a lock file.
pub const MAX_LOCK_BYTES: usize = 32 << 20;

/// The most packages that one file locks.
const MAX_PACKAGES: usize = 20_000;

/// Why a lock file says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// It is not of its manager's form.
    #[error("`{file}` cannot be read: {why}")]
    Form {
        /// The file.
        file: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// It is too large.
    #[error("`{0}` is larger than what is read of a lock file")]
    Large(&'static str),
    /// It has too many packages.
    #[error("`{0}` has more than {MAX_PACKAGES} packages")]
    Many(&'static str),
}

/// What a registry tells of a package beside the lock file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PackageFacts {
    /// Its licence.
    pub licence: Option<String>,
    /// When the version was published, as a time in ISO 8601.
    pub published: Option<String>,
    /// Whether it has scripts that run when it is installed or built.
    pub scripts: bool,
}

/// Reads the packages of a lock file, in the order of their names. `manifest` tells which of them the project asks for itself.
pub fn read_packages(
    manager: Manager,
    lock: &str,
    manifest: &str,
) -> Result<Vec<ResolvedPackage>, LockError> {
    let file = manager.lock().unwrap_or(crate::script::REPORT);
    if lock.len() > MAX_LOCK_BYTES {
        return Err(LockError::Large(file));
    }
    let read = match manager {
        Manager::Npm => node::read_npm(lock),
        Manager::Pnpm => node::read_pnpm(lock),
        Manager::Yarn => node::read_yarn(lock, manifest),
        Manager::Pip => python::read_report(lock),
        Manager::Uv => python::read_uv(lock),
        Manager::Poetry => python::read_poetry(lock, manifest),
        Manager::Cargo => cargo::read(lock),
        Manager::Go => go::read(lock, manifest),
    };
    let mut packages = read.map_err(|why| LockError::Form { file, why })?;
    if packages.len() > MAX_PACKAGES {
        return Err(LockError::Many(file));
    }
    packages.sort();
    // One package can stand in several places of a tree.
    packages.dedup_by(|later, first| {
        let same = later.name == first.name
            && later.version == first.version
            && later.origin == first.origin;
        first.direct |= same && later.direct;
        first.scripts |= same && later.scripts;
        same
    });
    Ok(packages)
}

/// Adds what the registry tells, by `name@version`. What is not of that form tells nothing.
pub fn read_facts(packages: &mut [ResolvedPackage], facts: &[u8]) {
    let Ok(facts) = serde_json::from_slice::<BTreeMap<String, PackageFacts>>(facts) else { return };
    for package in packages {
        let Some(known) = facts.get(&package.id()) else { continue };
        let licence =
            known.licence.as_deref().map(|text| fluffy_base::Excerpt::new(text, 100).to_string());
        package.licence = package.licence.take().or(licence.filter(|text| !text.is_empty()));
        package.published_ms =
            package.published_ms.or_else(|| known.published.as_deref().and_then(parse_utc));
        package.scripts |= known.scripts;
    }
}

/// The registry that an address of a lock file names; what is no address of the web is no registry.
fn origin(url: Option<&str>) -> PackageOrigin {
    url.map_or(PackageOrigin::Registry, PackageOrigin::of_url)
}

#[cfg(test)]
mod tests;
