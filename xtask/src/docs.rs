//! The documents exist, their links lead somewhere, and every dependency has its reason.

use std::collections::BTreeSet;

use crate::manifest;
use crate::markdown;
use crate::repo::{Finding, Repo};

/// Documents that every release has.
const REQUIRED: &[&str] = &[
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "LICENSE",
    "docs/architecture.md",
    "docs/decisions.md",
    "docs/conformance.md",
    DEPENDENCIES,
    "docs/performance.md",
];

const DEPENDENCIES: &str = "docs/dependencies.md";

/// Looks at the required documents, at every link, and at the list of dependencies.
pub(crate) fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in REQUIRED {
        match repo.text(file) {
            Some(text) if text.trim().is_empty() => findings.push(Finding::file(file, "is empty")),
            Some(_) => {}
            None => findings.push(Finding::file(file, "is missing")),
        }
    }
    for (file, text) in repo.texts().filter(|(file, _)| is_document(file)) {
        for (line, target) in markdown::links(text) {
            if let Err(problem) = resolve(repo, file, &target) {
                findings.push(Finding::line(file, line, format!("link `{target}`: {problem}")));
            }
        }
    }
    findings.extend(check_dependencies(repo));
    findings
}

/// Markdown in the root and anywhere below `docs`.
fn is_document(file: &str) -> bool {
    file.ends_with(".md") && (!file.contains('/') || file.starts_with("docs/"))
}

/// Follows a link from a file; links to other hosts are not followed.
fn resolve(repo: &Repo, from: &str, target: &str) -> Result<(), String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(());
    }
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor)),
        None => (target, None),
    };
    let file = if path.is_empty() { from.to_owned() } else { join(from, path)? };
    if !repo.has(&file) {
        return Err(format!("there is no `{file}`"));
    }
    let Some(anchor) = anchor else { return Ok(()) };
    let text = repo.text(&file).filter(|_| file.ends_with(".md"));
    if text.is_none_or(|text| markdown::anchors(text).iter().any(|known| known == anchor)) {
        return Ok(());
    }
    Err(format!("`{file}` has no heading `{anchor}`"))
}

/// The file that a relative path names, seen from the folder of another.
fn join(from: &str, path: &str) -> Result<String, String> {
    if path.starts_with('/') {
        return Err("is not relative".to_owned());
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop().ok_or("leads out of the repository")?;
            }
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// Every direct dependency that is not ours has a row in the list.
fn check_dependencies(repo: &Repo) -> Vec<Finding> {
    let (manifests, mut findings) = manifest::all(repo);
    let shared = manifest::workspace(repo).into_iter().flatten();
    let mut packages: BTreeSet<String> = shared.filter(|s| !s.ours).map(|s| s.package).collect();
    let direct = manifests.into_iter().flat_map(|manifest| manifest.dependencies);
    packages.extend(direct.map(|d| d.package).filter(|name| !name.starts_with("fluffy-")));

    let text = repo.text(DEPENDENCIES).unwrap_or_default();
    let listed: BTreeSet<&str> = markdown::rows(text)
        .filter_map(|(_, cells)| cells.first().copied())
        .map(|cell| cell.trim_matches('`'))
        .collect();
    let unlisted = packages.iter().filter(|package| !listed.contains(package.as_str()));
    findings.extend(unlisted.map(|package| {
        Finding::file(DEPENDENCIES, format!("has no row for `{package}`: what is it for?"))
    }));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::lines;

    #[test]
    fn missing_and_empty_documents_are_found() {
        let repo = Repo::of(&[("Cargo.toml", ""), ("README.md", " \n"), ("LICENSE", "MIT")]);
        let found = lines(&check(&repo));
        assert_eq!(found[..2], ["README.md: is empty", "CHANGELOG.md: is missing"]);
        assert_eq!(found.len(), REQUIRED.len() - 1);
    }

    #[test]
    fn a_link_leads_to_a_file_or_a_heading() {
        let repo = Repo::of(&[
            ("README.md", "# Start here"),
            ("docs/a.md", "# Alpha\n## The way"),
            ("docs/img/x.png", ""),
        ]);
        let follow = |target| resolve(&repo, "docs/a.md", target);
        for target in [
            "../README.md#start-here",
            "#the-way",
            "img/x.png",
            "./img",
            "../docs/",
            "https://example.org/x",
        ] {
            assert_eq!(follow(target), Ok(()), "{target}");
        }
        assert_eq!(follow("b.md"), Err("there is no `docs/b.md`".to_owned()));
        assert_eq!(follow("#beta"), Err("`docs/a.md` has no heading `beta`".to_owned()));
        assert_eq!(follow("../../x"), Err("leads out of the repository".to_owned()));
        assert_eq!(follow("/README.md"), Err("is not relative".to_owned()));
    }

    #[test]
    fn a_dependency_without_a_row_is_found() {
        let repo = Repo::of(&[
            (
                "Cargo.toml",
                "[workspace.dependencies]\nfluffy-base = { path = \"crates/base\" }\nserde = \"1\"\n\
                 toml = \"1\"\n",
            ),
            (
                "crates/base/Cargo.toml",
                "[package]\nname = \"fluffy-base\"\n[dependencies]\nsha2 = \"1\"\n",
            ),
            (DEPENDENCIES, "| crate | why |\n|---|---|\n| `serde` | data |\n"),
        ]);
        assert_eq!(
            lines(&check_dependencies(&repo)),
            [
                "docs/dependencies.md: has no row for `sha2`: what is it for?",
                "docs/dependencies.md: has no row for `toml`: what is it for?",
            ]
        );
    }
}
