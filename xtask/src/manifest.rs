//! What the checks need to know of a `Cargo.toml`, with the line of each dependency.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use crate::repo::{Finding, Repo};

/// The manifest of one package.
#[derive(Debug)]
pub(crate) struct Manifest {
    /// Where it lies.
    pub(crate) file: String,
    /// The folder it describes, such as `crates/base`.
    pub(crate) folder: String,
    /// `package.name`.
    pub(crate) package: String,
    /// Every dependency, those of single platforms included.
    pub(crate) dependencies: Vec<Dependency>,
    /// Whether it takes its lints from the workspace.
    pub(crate) shares_lints: bool,
    /// Whether it defines features of its own.
    pub(crate) has_features: bool,
}

/// One line of a dependency table.
#[derive(Debug)]
pub(crate) struct Dependency {
    /// The package's own name, whatever the manifest calls it.
    pub(crate) package: String,
    /// Who sees it.
    pub(crate) kind: Kind,
    /// Where it stands.
    pub(crate) line: usize,
}

/// Who sees a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It becomes part of what is shipped, or runs when that is built.
    Shipped,
    /// Tests, examples and benches alone.
    Dev,
}

const TABLES: &[(&str, Kind)] = &[
    ("dependencies", Kind::Shipped),
    ("build-dependencies", Kind::Shipped),
    ("dev-dependencies", Kind::Dev),
];

/// The manifests of all packages of the workspace, and what cannot be read of them.
pub(crate) fn all(repo: &Repo) -> (Vec<Manifest>, Vec<Finding>) {
    let (renamed, mut findings) = match workspace(repo) {
        Ok(shared) => (shared.into_iter().map(|s| (s.key, s.package)).collect(), Vec::new()),
        Err(finding) => (BTreeMap::new(), vec![finding]),
    };
    let mut manifests = Vec::new();
    for (file, text) in repo.texts().filter(|(file, _)| is_member(file)) {
        match parse(file, text, &renamed) {
            Ok(manifest) => manifests.push(manifest),
            Err(finding) => findings.push(finding),
        }
    }
    (manifests, findings)
}

/// A dependency that the workspace's packages share.
#[derive(Debug)]
pub(crate) struct Shared {
    key: String,
    /// The package's own name.
    pub(crate) package: String,
    /// Whether it lies in this repository.
    pub(crate) ours: bool,
}

/// The dependencies of the workspace's own manifest.
pub(crate) fn workspace(repo: &Repo) -> Result<Vec<Shared>, Finding> {
    let file = "Cargo.toml";
    let text = repo.text(file).ok_or_else(|| Finding::file(file, "is missing"))?;
    let document = document(file, text)?;
    let table =
        table(&document, "workspace").and_then(|workspace| table(workspace, "dependencies"));
    let entries = table.into_iter().flatten().map(|(key, value)| Shared {
        key: key.get_ref().to_string(),
        package: string(value.get_ref(), "package").unwrap_or(key.get_ref()).to_owned(),
        ours: string(value.get_ref(), "path").is_some(),
    });
    Ok(entries.collect())
}

/// `crates/NAME/Cargo.toml` and `xtask/Cargo.toml`.
fn is_member(file: &str) -> bool {
    let folder = file.strip_suffix("/Cargo.toml");
    folder == Some("xtask")
        || folder.and_then(|f| f.strip_prefix("crates/")).is_some_and(|name| !name.contains('/'))
}

fn parse(file: &str, text: &str, renamed: &BTreeMap<String, String>) -> Result<Manifest, Finding> {
    let document = document(file, text)?;
    let package = table(&document, "package")
        .and_then(|package| package.get("name")?.get_ref().as_str())
        .ok_or_else(|| Finding::file(file, "has no package name"))?;
    let platforms = table(&document, "target").into_iter().flat_map(|targets| targets.values());
    let platforms = platforms.filter_map(|platform| platform.get_ref().as_table());
    let dependencies = std::iter::once(&document)
        .chain(platforms)
        .flat_map(|tables| dependencies(tables, text, renamed))
        .collect();
    let lints = table(&document, "lints").and_then(|lints| lints.get("workspace"));
    Ok(Manifest {
        file: file.to_owned(),
        folder: file.trim_end_matches("/Cargo.toml").to_owned(),
        package: package.to_owned(),
        dependencies,
        shares_lints: lints.and_then(|value| value.get_ref().as_bool()) == Some(true),
        has_features: document.contains_key("features"),
    })
}

fn document<'a>(file: &str, text: &'a str) -> Result<DeTable<'a>, Finding> {
    DeTable::parse(text)
        .map(toml::Spanned::into_inner)
        .map_err(|error| Finding::file(file, format!("is not TOML: {}", error.message())))
}

fn dependencies(
    tables: &DeTable<'_>,
    text: &str,
    renamed: &BTreeMap<String, String>,
) -> Vec<Dependency> {
    let mut found = Vec::new();
    for (name, kind) in TABLES {
        for (key, value) in table(tables, name).into_iter().flatten() {
            let own: &str = key.get_ref();
            let shared = renamed.get(own).map_or(own, String::as_str);
            let package = string(value.get_ref(), "package").unwrap_or(shared).to_owned();
            let line =
                text.bytes().take(key.span().start).filter(|byte| *byte == b'\n').count() + 1;
            found.push(Dependency { package, kind: *kind, line });
        }
    }
    found
}

fn table<'a, 'i>(parent: &'a DeTable<'i>, key: &str) -> Option<&'a DeTable<'i>> {
    parent.get(key)?.get_ref().as_table()
}

fn string<'a>(value: &'a DeValue<'_>, key: &str) -> Option<&'a str> {
    value.as_table()?.get(key)?.get_ref().as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_seen_through_renames_and_platforms() {
        let repo = Repo::of(&[
            (
                "Cargo.toml",
                "[workspace.dependencies]\nother = { path = \"x\", package = \"fluffy-x\" }\n",
            ),
            (
                "crates/a/Cargo.toml",
                "[package]\nname = \"fluffy-a\"\n[dependencies]\nother.workspace = true\n\
                 [target.'cfg(unix)'.dev-dependencies]\ny = { version = \"1\", package = \"z\" }\n",
            ),
            ("crates/a/fuzz/Cargo.toml", "not a member"),
        ]);
        let (manifests, findings) = all(&repo);
        assert_eq!(findings, []);
        let dependencies = &manifests[0].dependencies;
        let seen: Vec<_> =
            dependencies.iter().map(|d| (d.package.as_str(), d.kind, d.line)).collect();
        assert_eq!(seen, [("fluffy-x", Kind::Shipped, 4), ("z", Kind::Dev, 6)]);
    }

    #[test]
    fn a_manifest_that_cannot_be_read_is_a_finding() {
        let repo = Repo::of(&[("Cargo.toml", ""), ("crates/a/Cargo.toml", "= 1")]);
        let (manifests, findings) = all(&repo);
        assert!(manifests.is_empty());
        assert!(findings[0].to_string().starts_with("crates/a/Cargo.toml: is not TOML"));
    }
}
