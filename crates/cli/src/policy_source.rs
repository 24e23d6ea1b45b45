//! The policy that a command acts on: read from where it lies, or the shipped one.
//!
//! **Invariant.** The shipped policy stands in only where the project has no file. A file that is there
//! and cannot be read is an error: it may be stricter than what we ship.

use std::io;
use std::path::Path;
use std::sync::OnceLock;

use fluffy_kernel::{Extensions as _, KernelError};
use fluffy_policy::{BuiltIn, DEFAULT_POLICY, MAX_POLICY_BYTES, PolicyFile, Rule};

use crate::commands::read_bounded;
use crate::explain::CliError;
use crate::place::{OWN_POLICY, Place};

/// What the shipped policy is called.
pub(crate) const SHIPPED: &str = "the shipped policy";

/// A policy, and where it comes from.
pub(crate) struct PolicySource {
    pub(crate) policy: PolicyFile,
    pub(crate) from: PolicyHome,
}

/// Where a policy comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PolicyHome {
    /// The project's own file.
    Project,
    /// A file that was named.
    Named,
    /// This program.
    Shipped,
}

impl PolicySource {
    /// The policy that was named, the project's own, or the shipped one.
    pub(crate) fn find(place: &Place, named: Option<&Path>) -> Result<Self, CliError> {
        if let Some(path) = named {
            return Ok(Self { policy: read(&shown(path), path)?, from: PolicyHome::Named });
        }
        let own = place.policy_file();
        if exists(&own)? {
            return Ok(Self { policy: read(OWN_POLICY, &own)?, from: PolicyHome::Project });
        }
        Ok(Self { policy: shipped()?, from: PolicyHome::Shipped })
    }

    /// Its rules with the built-in ones: what the kernel asks.
    pub(crate) fn rules(&self, place: &Place) -> Result<Vec<Box<dyn Rule>>, CliError> {
        let mut rules: Vec<Box<dyn Rule>> = vec![Box::new(BuiltIn::new(place.kept()?))];
        rules.extend(self.policy.rules());
        let loaded = place.rule_files().load(self.policy.extensions());
        rules.extend(loaded.map_err(KernelError::Extensions)?.rules);
        Ok(rules)
    }
}

/// The shipped policy, which is read once in a process: every task of a kernel begins with it.
pub(crate) fn shipped() -> Result<PolicyFile, CliError> {
    static READ: OnceLock<PolicyFile> = OnceLock::new();
    match READ.get() {
        Some(policy) => Ok(policy.clone()),
        None => {
            let policy = PolicyFile::parse(SHIPPED, DEFAULT_POLICY)?;
            Ok(READ.get_or_init(|| policy).clone())
        }
    }
}

/// Reads a policy; `name` is what messages call it.
pub(crate) fn read(name: &str, path: &Path) -> Result<PolicyFile, CliError> {
    Ok(PolicyFile::parse_bytes(name, &bytes(path)?)?)
}

/// The bytes of a policy or of its cases, and one more than there may be if there are too many.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, CliError> {
    read_bounded(path, MAX_POLICY_BYTES as u64 + 1)
}

/// Whether there is anything under this name, be it a link that leads nowhere.
pub(crate) fn exists(path: &Path) -> Result<bool, CliError> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(CliError::File { action: "read", path: path.to_owned(), source }),
    }
}

/// A path as it was typed.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}
