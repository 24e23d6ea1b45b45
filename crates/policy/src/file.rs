//! A policy as it is written: `policy.yaml`.
//!
//! **Invariant.** A file is understood completely or not at all. Unknown keys, duplicate keys,
//! wrong types and values without a meaning are errors with file, line and column.
//!
//! **Invariant.** Two files with the same meaning have the same digest, however they are written.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::str::FromStr as _;

use fluffy_base::{ByteSize, Digest, Excerpt, Json, JsonError, KernelState};
use serde_json::json;

use crate::jurisdiction::{Jurisdiction, Names, RequiredField};
use crate::yaml::{self, Field, PolicyError, PolicyProblem, Problem};

/// The policy that holds where a project has none of its own.
pub const DEFAULT_POLICY: &str = include_str!("default_policy.yaml");

/// The most that is read of a policy: 1 MiB.
pub const MAX_POLICY_BYTES: usize = 1 << 20;

/// The one version of the format.
const VERSION: u8 = 1;

/// A policy that was understood completely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFile {
    jurisdiction: Jurisdiction,
    digest: Digest,
}

impl PolicyFile {
    /// Reads a policy; `name` is what errors call it.
    pub fn parse(name: &str, text: &str) -> Result<Self, PolicyError> {
        read(text).map_err(|Problem { line, column, what: problem }| {
            let file = Excerpt::new(name, 200).to_string();
            PolicyError { file, line, column, problem }
        })
    }

    /// A policy that was never written down.
    pub fn from_jurisdiction(jurisdiction: Jurisdiction) -> Result<Self, JsonError> {
        let meaning = json!({ "jurisdiction": jurisdiction.meaning(), "version": VERSION });
        let digest = Digest::of(Json::new(meaning)?.canonical().as_bytes());
        Ok(Self { jurisdiction, digest })
    }

    /// Who may ask for what.
    pub fn jurisdiction(&self) -> &Jurisdiction {
        &self.jurisdiction
    }

    /// The digest of what the policy means: SHA-256 of its canonical JSON.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

fn read(text: &str) -> Result<PolicyFile, Problem> {
    if text.len() > MAX_POLICY_BYTES {
        let what = PolicyProblem::TooLarge { bytes: text.len(), max: MAX_POLICY_BYTES };
        return Err(Problem { line: 1, column: 1, what });
    }
    let root = yaml::parse(text)?;
    let [version, jurisdiction] = root.root().fields(["version", "jurisdiction"])?;
    if let Some(version) = version {
        check_version(&version)?;
    }
    let jurisdiction = jurisdiction
        .map_or_else(|| Ok(Jurisdiction::default()), |field| read_jurisdiction(&field))?;
    PolicyFile::from_jurisdiction(jurisdiction).map_err(|error| root.root().invalid(&error))
}

fn check_version(field: &Field<'_>) -> Result<(), Problem> {
    let expected = format!("the number {VERSION}");
    if field.integer(&expected)? == i128::from(VERSION) {
        Ok(())
    } else {
        Err(field.invalid(&format!("this program knows version {VERSION} only")))
    }
}

fn read_jurisdiction(field: &Field<'_>) -> Result<Jurisdiction, Problem> {
    let [actors, tools, states, fields, param_bytes, intent_length] = field.fields([
        "allowed_actors",
        "allowed_tools",
        "allowed_states",
        "required_fields",
        "max_param_bytes",
        "max_intent_length",
    ])?;
    let absent = Jurisdiction::default();
    Ok(Jurisdiction {
        allowed_actors: read_or(actors, absent.allowed_actors, read_names)?,
        allowed_tools: read_or(tools, absent.allowed_tools, read_names)?,
        allowed_states: read_or(states, absent.allowed_states, read_states)?,
        required_fields: read_or(fields, absent.required_fields, read_fields)?,
        max_param_bytes: read_or(param_bytes, absent.max_param_bytes, read_bytes)?,
        max_intent_length: intent_length.map(|field| read_length(&field)).transpose()?,
    })
}

fn read_or<T>(
    field: Option<Field<'_>>,
    absent: T,
    read: fn(&Field<'_>) -> Result<T, Problem>,
) -> Result<T, Problem> {
    field.map_or(Ok(absent), |field| read(&field))
}

fn read_names(field: &Field<'_>) -> Result<Names, Problem> {
    let items = field.texts()?;
    Names::only(items.iter().map(|(_, text)| *text)).map_err(|error| {
        // The list is refused as a whole; the error stands at the item that is to blame alone.
        let culprit = items.iter().find(|(_, text)| Names::only([*text]) == Err(error));
        culprit.map_or(field, |(item, _)| item).invalid(&error)
    })
}

fn read_states(field: &Field<'_>) -> Result<Vec<KernelState>, Problem> {
    let known = KernelState::ALL.map(KernelState::name).join(", ");
    let state = |(item, text): (Field<'_>, &str)| {
        KernelState::from_name(text)
            .ok_or_else(|| item.invalid(&format!("a state is one of {known}")))
    };
    field.texts()?.into_iter().map(state).collect()
}

fn read_fields(field: &Field<'_>) -> Result<BTreeSet<RequiredField>, Problem> {
    let required = |(item, text): (Field<'_>, &str)| {
        RequiredField::from_str(text).map_err(|error| item.invalid(&error))
    };
    field.texts()?.into_iter().map(required).collect()
}

fn read_bytes(field: &Field<'_>) -> Result<u64, Problem> {
    let text = field.quantity("a size, such as `64KiB` or a number of bytes")?;
    ByteSize::from_str(&text).map(|size| size.bytes()).map_err(|error| field.invalid(&error))
}

fn read_length(field: &Field<'_>) -> Result<usize, Problem> {
    let expected = "a number of characters";
    let length = field.integer(expected)?;
    usize::try_from(length)
        .ok()
        .and_then(NonZeroUsize::new)
        .map(NonZeroUsize::get)
        .ok_or_else(|| field.invalid(&format!("it is {expected}, from 1")))
}

#[cfg(test)]
mod tests;
