//! Whether what is proposed is a skill, before anything is built from it.
//!
//! **Invariant.** What a skill may do is what its class says and the proposal lists: a class that writes nothing lists
//! no folder to write, and one without secrets names none.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fluffy_base::ProjectPath;
use fluffy_kernel::{Appended, Journal};
use jsonschema::PatternOptions;
use serde_json::Value;

use super::{ArtifactKind, Shelf, ShelfError};
use crate::{Proposal, SideEffect, SkillEntry};

/// The longest description, in bytes.
const MAX_DESCRIPTION: usize = 1000;
/// The largest schema, in bytes.
const MAX_SCHEMA: usize = 64 << 10;
/// How deep a schema may be.
const MAX_DEPTH: usize = 32;
/// The most folders, hosts or secrets.
const MAX_LISTED: usize = 32;

/// Why a proposal is refused: what, why, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProposalError {
    /// The description is not one.
    #[error(
        "the description {0}: say in up to {MAX_DESCRIPTION} bytes of plain text what the skill does"
    )]
    Description(&'static str),
    /// A schema is not one.
    #[error("the {which} schema {why}")]
    Schema {
        /// Input or output.
        which: &'static str,
        /// Why not, and what to write instead.
        why: String,
    },
    /// A host is not one, or may not be reached.
    #[error("host `{host}` {why}")]
    Host {
        /// As it was written.
        host: String,
        /// Why not, and what to write instead.
        why: &'static str,
    },
    /// A secret's name is not one.
    #[error("secret `{secret}` {why}")]
    Secret {
        /// As it was written.
        secret: String,
        /// Why not, and what to write instead.
        why: &'static str,
    },
    /// A folder that no skill gets.
    #[error("folder `{folder}` {why}")]
    Folder {
        /// Which.
        folder: ProjectPath,
        /// Why not, and what to write instead.
        why: &'static str,
    },
    /// Too much of something.
    #[error("there are more than {MAX_LISTED} {0}: a skill that needs so many is several skills")]
    Many(&'static str),
    /// The class does not fit what is listed.
    #[error("a {class} skill {why}")]
    Class {
        /// The class.
        class: SideEffect,
        /// What does not fit, and what to write instead.
        why: &'static str,
    },
}

impl Shelf {
    /// Proposes a skill. What is recorded is what was checked, with objects closed to properties that they do not list.
    pub fn propose(
        &self,
        journal: &dyn Journal,
        proposal: Proposal,
    ) -> Result<Appended, ShelfError> {
        let spec = proposal.checked()?;
        let bytes = serde_json::to_vec(&spec).map_err(ShelfError::Written)?;
        let artifact = self.artifacts().put(ArtifactKind::SkillSpec, &bytes)?;
        let proposal = self.id("proposal", &artifact)?;
        self.record(journal, &SkillEntry::Proposed { proposal, spec, artifact })
    }
}

impl Proposal {
    /// The proposal, if it is one of a skill: objects are closed, and class and lists agree.
    pub fn checked(mut self) -> Result<Self, ProposalError> {
        check_description(&self.description)?;
        close(&mut self.input, "input")?;
        close(&mut self.output, "output")?;
        check_folders("folders to read", &self.reads)?;
        check_folders("folders to write", &self.writes)?;
        each_once("hosts", &self.hosts, |host| ProposalError::Host { host, why: TWICE })?;
        each_once("secrets", &self.secrets, |secret| ProposalError::Secret { secret, why: TWICE })?;
        self.hosts.iter().try_for_each(|host| check_host(host))?;
        self.secrets.iter().try_for_each(|secret| check_secret(secret))?;
        self.check_class()?;
        Ok(self)
    }

    fn check_class(&self) -> Result<(), ProposalError> {
        let class = self.side_effect;
        let refuse = |why| Err(ProposalError::Class { class, why });
        let (writes, hosts) = (!self.writes.is_empty(), !self.hosts.is_empty());
        let secrets = !self.secrets.is_empty();
        let (may_write, may_reach, may_know) = match class {
            SideEffect::ReadOnly => (false, false, false),
            SideEffect::FileWrite => (true, false, false),
            SideEffect::Network => (false, true, false),
            SideEffect::SecretRead | SideEffect::Money | SideEffect::Messaging => {
                (false, true, true)
            }
        };
        if writes && !may_write {
            return refuse(
                "writes nothing, but lists folders to write: leave them out, or propose FILE_WRITE",
            );
        }
        if hosts && !may_reach {
            return refuse(
                "reaches no network, but lists hosts: leave them out, or propose NETWORK",
            );
        }
        if secrets && !may_know {
            return refuse(
                "is given no secrets, but lists some: leave them out, or propose SECRET_READ",
            );
        }
        match class {
            SideEffect::FileWrite if !writes => refuse(
                "must list the folders that it writes: add them to `writes`, or propose READ_ONLY",
            ),
            SideEffect::Network | SideEffect::Money | SideEffect::Messaging if !hosts => refuse(
                "must list the hosts that it reaches: add them to `hosts`, or propose READ_ONLY",
            ),
            SideEffect::SecretRead if !secrets => refuse(
                "must list the secrets that it is given: add them to `secrets`, or propose NETWORK",
            ),
            SideEffect::ReadOnly
            | SideEffect::FileWrite
            | SideEffect::Network
            | SideEffect::SecretRead
            | SideEffect::Money
            | SideEffect::Messaging => Ok(()),
        }
    }
}

const TWICE: &str = "is listed twice: list it once";

fn check_description(text: &str) -> Result<(), ProposalError> {
    let why = if text.trim().is_empty() {
        "is empty"
    } else if text.len() > MAX_DESCRIPTION {
        "is too long"
    } else if text.chars().any(|c| c.is_control() || invisible(c)) {
        "has control characters or characters that nobody sees"
    } else {
        return Ok(());
    };
    Err(ProposalError::Description(why))
}

/// Characters that change how others look, or have no look: what a person reads must be what a model reads.
fn invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Checks a schema, and closes its object to properties that it does not list.
fn close(schema: &mut Value, which: &'static str) -> Result<(), ProposalError> {
    let refuse = |why: &str| Err(ProposalError::Schema { which, why: why.to_owned() });
    if !shallow(schema, MAX_DEPTH) || schema.to_string().len() > MAX_SCHEMA {
        return refuse("is too large or too deep: describe less of it");
    }
    if remote(schema) {
        return refuse(
            "refers to another document: refer to parts of itself (`#/…`), or repeat them",
        );
    }
    let Some(object) = schema.as_object_mut() else {
        return refuse("is no object: write `{\"type\": \"object\", \"properties\": …}`");
    };
    if object.get("type").and_then(Value::as_str) != Some("object") {
        return refuse("does not describe an object: add `\"type\": \"object\"`");
    }
    match object.get("additionalProperties") {
        None => drop(object.insert("additionalProperties".to_owned(), Value::Bool(false))),
        Some(Value::Bool(false)) => {}
        Some(_) => {
            return refuse(
                "takes properties that it does not list: `additionalProperties` must be false",
            );
        }
    }
    // Patterns that never go back: no input makes one slow.
    let checked = jsonschema::options().with_pattern_options(PatternOptions::regex()).build(schema);
    let invalid = |why: String| ProposalError::Schema { which, why };
    checked.map(drop).map_err(|error| {
        let told: String =
            error.to_string().chars().filter(|c| !c.is_control()).take(300).collect();
        invalid(format!("is no JSON Schema: {told}"))
    })
}

fn shallow(value: &Value, left: usize) -> bool {
    let Some(left) = left.checked_sub(1) else { return false };
    match value {
        Value::Array(items) => items.iter().all(|item| shallow(item, left)),
        Value::Object(items) => items.values().all(|item| shallow(item, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// Whether a schema refers to anything but itself.
fn remote(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(remote),
        Value::Object(items) => items.iter().any(|(key, item)| {
            let refers = matches!(key.as_str(), "$ref" | "$dynamicRef" | "$recursiveRef");
            let elsewhere = item.as_str().is_some_and(|to| !to.starts_with('#'));
            (refers && elsewhere)
                || key == "$id"
                || key == "$schema" && odd_draft(item)
                || remote(item)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn odd_draft(named: &Value) -> bool {
    let known =
        ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"];
    named.as_str().is_none_or(|named| !known.contains(&named))
}

fn check_folders(what: &'static str, folders: &[ProjectPath]) -> Result<(), ProposalError> {
    let twice = |folder| ProposalError::Folder { folder, why: TWICE };
    each_once(what, folders, twice)?;
    for folder in folders {
        let refuse = |why| Err(ProposalError::Folder { folder: folder.clone(), why });
        let mut names = folder.components().map(str::to_lowercase);
        if names.any(|name| name == ".git") {
            return refuse("is git's own, and no skill touches it: name another folder");
        }
        if folder.components().next().is_some_and(|name| name.to_lowercase() == ".fluffy") {
            return refuse("is fluffy's own, and no skill touches it: name another folder");
        }
    }
    Ok(())
}

fn each_once<T: Ord + Clone>(
    what: &'static str,
    items: &[T],
    twice: impl FnOnce(T) -> ProposalError,
) -> Result<(), ProposalError> {
    if items.len() > MAX_LISTED {
        return Err(ProposalError::Many(what));
    }
    let mut seen = BTreeSet::new();
    match items.iter().find(|item| !seen.insert(*item)) {
        Some(item) => Err(twice(item.clone())),
        None => Ok(()),
    }
}

/// A host is `name:port` or a name alone; `*.name` is every name below it.
fn check_host(text: &str) -> Result<(), ProposalError> {
    let shown = || text.chars().filter(|c| !c.is_control()).take(100).collect();
    let refuse = |why| Err(ProposalError::Host { host: shown(), why });
    let (name, port) = text.split_once(':').map_or((text, "443"), |(name, port)| (name, port));
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || port.starts_with('0') || port.parse::<u16>().is_err() {
        return refuse("has no port from 1 to 65535 after its only `:`: write `name:port`");
    }
    if name.parse::<IpAddr>().is_ok() {
        return refuse("is an address: write the host's name");
    }
    let (name, wild) = name.strip_prefix("*.").map_or((name, false), |name| (name, true));
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let labels: Vec<_> = name.split('.').collect();
    if name.len() > 253 || !labels.iter().all(|it| label(it)) {
        return refuse(
            "is no name of a host in lower-case letters: write `name:port`, and `*` only as `*.name`",
        );
    }
    let last = labels.last().copied().unwrap_or_default();
    if last.bytes().next().is_some_and(|byte| byte.is_ascii_digit()) {
        return refuse("ends like an address: write the host's name");
    }
    let local = [
        "localhost",
        "local",
        "internal",
        "localdomain",
        "home",
        "lan",
        "intranet",
        "arpa",
        "onion",
    ];
    if labels.len() < 2 || local.contains(&last) {
        return refuse(
            "names this machine, its network or a cloud's metadata: skills reach public hosts only",
        );
    }
    if wild && labels.len() < 2 {
        return refuse("would be half of the world: put at least `name.tld` after `*.`");
    }
    Ok(())
}

fn check_secret(text: &str) -> Result<(), ProposalError> {
    let shown = || text.chars().filter(|c| !c.is_control()).take(100).collect();
    let refuse = |why| Err(ProposalError::Secret { secret: shown(), why });
    let shaped = text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.len() <= 64
        && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    if !shaped {
        return refuse("is no name of a secret: write up to 64 upper-case letters, digits and `_`");
    }
    let taken = ["PATH", "HOME", "USER", "SHELL", "TMPDIR", "IFS", "ENV", "BASH_ENV"];
    if taken.contains(&text) || ["LD_", "PYTHON", "FLUFFY_"].iter().any(|it| text.starts_with(it)) {
        return refuse("is a name that programs obey: call the secret something else");
    }
    Ok(())
}
