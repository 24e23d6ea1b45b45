//! Source files say what they are for; manifests share the workspace's lints and have no features.

use crate::manifest;
use crate::repo::{Finding, Repo};

/// Looks at the first line of every source file and at every manifest.
pub(crate) fn check(repo: &Repo) -> Vec<Finding> {
    let (manifests, mut findings) = manifest::all(repo);
    for manifest in &manifests {
        if !manifest.shares_lints {
            findings.push(Finding::file(&manifest.file, "lacks `[lints] workspace = true`"));
        }
        if manifest.has_features {
            findings.push(Finding::file(&manifest.file, "defines features; our crates have none"));
        }
    }
    let silent = repo.texts().filter(|(name, text)| is_source(name) && !text.starts_with("//!"));
    findings.extend(silent.map(|(name, _)| {
        Finding::line(name, 1, "does not begin with `//!`, saying what it is for")
    }));
    findings
}

/// A file below `crates/NAME/src`, or one of this crate.
fn is_source(name: &str) -> bool {
    let within = match name.strip_prefix("crates/").and_then(|rest| rest.split_once('/')) {
        Some((_, within)) => Some(within),
        None => name.strip_prefix("xtask/"),
    };
    within.is_some_and(|within| within.starts_with("src/")) && name.ends_with(".rs")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::lines;

    #[test]
    fn a_silent_file_and_a_manifest_of_its_own_mind_are_found() {
        let repo = Repo::of(&[
            ("Cargo.toml", ""),
            ("crates/a/Cargo.toml", "[package]\nname = \"fluffy-a\"\n[features]\nx = []\n"),
            ("crates/a/src/lib.rs", "//! Says what it is for.\n"),
            ("crates/a/src/deep/silent.rs", "use std::fmt;\n"),
            ("crates/a/tests/it/main.rs", "mod silent;\n"),
        ]);
        assert_eq!(
            lines(&check(&repo)),
            [
                "crates/a/Cargo.toml: lacks `[lints] workspace = true`",
                "crates/a/Cargo.toml: defines features; our crates have none",
                "crates/a/src/deep/silent.rs:1: does not begin with `//!`, saying what it is for",
            ]
        );
    }
}
