//! Reads the smaller sections of a policy file: exemptions, network, extensions.

use std::collections::BTreeMap;

use fluffy_base::ProjectPath;

use super::rules::{Counted, read_globs};
use crate::glob::Glob;
use crate::yaml::{Field, Problem};

/// The categories in which a change may be exempt from test-first work.
pub const EXEMPTIONS: [&str; 4] =
    ["config_change", "type_refactor", "documentation", "asset_update"];

/// What may be exempt from test-first work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exemption {
    /// Which files.
    pub paths: Vec<Glob>,
    /// Whether the kernel must find that nothing changes but types.
    pub type_only: bool,
}

/// Exemptions by category.
pub type Exemptions = BTreeMap<&'static str, Exemption>;

/// Hosts that sandboxes may reach, by group.
pub type NetworkWhitelist = BTreeMap<String, Vec<String>>;

pub(super) fn read_exemptions(field: &Field<'_>) -> Result<Exemptions, Problem> {
    let sections = field.fields(EXEMPTIONS)?;
    let mut exemptions = Exemptions::new();
    let mut counted = Counted::default();
    for (category, section) in EXEMPTIONS.into_iter().zip(sections) {
        let Some(section) = section else { continue };
        let [paths, condition] = section.fields(["path_glob", "condition"])?;
        let paths = paths.ok_or_else(|| section.missing("path_glob", "which files are exempt"))?;
        let type_only = match condition {
            None => false,
            Some(condition) if condition.text()? == "type_only_change" => true,
            Some(condition) => {
                return Err(condition.invalid(&"the only condition is `type_only_change`"));
            }
        };
        exemptions
            .insert(category, Exemption { paths: read_globs(&paths, &mut counted)?, type_only });
    }
    Ok(exemptions)
}

pub(super) fn read_network(field: &Field<'_>) -> Result<NetworkWhitelist, Problem> {
    let groups = field.members("groups of hosts, such as `crates: [index.crates.io]`")?;
    let group = |(name, list): (&str, Field<'_>)| {
        let hosts = list.texts()?.into_iter().map(|(item, text)| read_host(&item, text));
        Ok((name.to_owned(), hosts.collect::<Result<_, Problem>>()?))
    };
    groups.into_iter().map(group).collect()
}

fn read_host(field: &Field<'_>, text: &str) -> Result<String, Problem> {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    // `*.com` would be half of the world.
    let wide = text.len() != name.len() && !name.contains('.');
    if name.len() > 253 || wide || !name.split('.').all(label) {
        let why = "a host is a name in lower case such as `pypi.org`, or `*.` before one, \
                   without scheme, port and path";
        return Err(field.invalid(&why));
    }
    Ok(text.to_owned())
}

pub(super) fn read_extensions(field: &Field<'_>) -> Result<Vec<ProjectPath>, Problem> {
    let extension = |(item, text): (Field<'_>, &str)| {
        let path = ProjectPath::parse(text).map_err(|error| item.invalid(&error))?;
        if !text.starts_with(".fluffy/") || path.as_str() != text || !text.ends_with(".ts") {
            let why = "an extension is a file such as `.fluffy/rules/name.ts`: \
                       only what lies in `.fluffy/` is protected";
            return Err(item.invalid(&why));
        }
        Ok(path)
    };
    field.texts()?.into_iter().map(extension).collect()
}
