//! Compares what the crates depend on with what the design lets them know.
//!
//! The edges are part of the security: whatever cannot see `sandbox` and `ledger` cannot act except
//! through `kernel`.

use crate::manifest::{self, Dependency, Kind, Manifest};
use crate::repo::{Finding, Repo};

/// What a crate may know of the others.
enum Knows {
    /// Every other crate but `testkit`.
    All,
    /// These.
    Only(&'static [&'static str]),
    /// No crate at all, not even one of a third party.
    Nothing,
}

/// The crates of the design and what each may know, `docs/architecture.md` "Crates" as data.
///
/// Names are those of the folders in `crates/`; the package of `base` is `fluffy-base`. Tests of every
/// crate may also know `testkit`, which nothing that is shipped may know.
const TABLE: &[(&str, Knows)] = &[
    ("cli", Knows::All),
    ("boot", Knows::Nothing),
    ("chat", Knows::Only(&["base", "kernel", "agent", "forge", "provider"])),
    ("forge", Knows::Only(&["base", "kernel", "agent"])),
    ("agent", Knows::Only(&["base", "kernel", "provider"])),
    ("provider", Knows::Only(&["base"])),
    ("kernel", Knows::Only(&["base", "policy", "workflow", "dependencies", "ledger", "sandbox"])),
    ("dependencies", Knows::Only(&["base", "policy"])),
    ("workflow", Knows::Only(&["base", "policy"])),
    ("sandbox", Knows::Only(&["base"])),
    ("policy", Knows::Only(&["base"])),
    ("ledger", Knows::Only(&["base"])),
    ("base", Knows::Only(&[])),
    ("testkit", Knows::All),
    ("xtask", Knows::Only(&[])),
];

/// The crate that only tests may know.
const TESTKIT: &str = "testkit";

/// Every package is in the table, is called after its folder and depends on what it may know.
pub(crate) fn check(repo: &Repo) -> Vec<Finding> {
    let (manifests, mut findings) = manifest::all(repo);
    findings.extend(manifests.iter().flat_map(check_manifest));
    findings
}

fn check_manifest(manifest: &Manifest) -> Vec<Finding> {
    let name = manifest.folder.trim_start_matches("crates/");
    let Some((_, knows)) = TABLE.iter().find(|(known, _)| *known == name) else {
        let text = format!("crate `{name}` is not in the table of xtask/src/edges.rs");
        return vec![Finding::file(&manifest.file, text)];
    };
    let mut findings = Vec::new();
    let expected = if name == "xtask" { name.to_owned() } else { format!("fluffy-{name}") };
    if manifest.package != expected {
        let text = format!("package `{}` should be called `{expected}`", manifest.package);
        findings.push(Finding::file(&manifest.file, text));
    }
    let forbidden = manifest.dependencies.iter().filter(|edge| !allowed(knows, edge));
    findings.extend(forbidden.map(|edge| {
        let scope = match edge.kind {
            Kind::Shipped => "",
            Kind::Dev => ", not even in tests",
        };
        let text = format!("`{name}` may not know `{}`{scope}", edge.package);
        Finding::line(&manifest.file, edge.line, text)
    }));
    findings
}

fn allowed(knows: &Knows, edge: &Dependency) -> bool {
    let ours = edge.package.strip_prefix("fluffy-");
    match (ours, edge.kind, knows) {
        (Some(TESTKIT), kind, _) => kind == Kind::Dev,
        (Some(other), _, Knows::Only(known)) => known.contains(&other),
        (Some(_), _, Knows::All) => true,
        (Some(_), _, Knows::Nothing) => false,
        (None, Kind::Shipped, Knows::Nothing) => false,
        (None, Kind::Shipped, Knows::All | Knows::Only(_)) | (None, Kind::Dev, _) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::lines;

    fn check_one(folder: &str, manifest: &str) -> Vec<String> {
        let name = folder.trim_start_matches("crates/");
        let text = format!("[package]\nname = \"fluffy-{name}\"\n{manifest}");
        let file = format!("{folder}/Cargo.toml");
        lines(&check(&Repo::of(&[("Cargo.toml", ""), (&file, &text)])))
    }

    #[test]
    fn the_table_only_names_crates_of_the_table() {
        for (name, knows) in TABLE {
            let Knows::Only(known) = knows else { continue };
            let listed = |other: &str| TABLE.iter().any(|(listed, _)| *listed == other);
            assert!(known.iter().all(|other| listed(other) && other != name), "{name}");
        }
    }

    #[test]
    fn an_edge_of_the_table_is_allowed() {
        let edges = "[dependencies]\nfluffy-base.workspace = true\nserde = \"1\"\n\
                     [dev-dependencies]\nfluffy-testkit.workspace = true\n";
        assert_eq!(check_one("crates/ledger", edges), Vec::<String>::new());
    }

    #[test]
    fn an_edge_that_is_not_in_the_table_is_refused_with_its_line() {
        let refused = "crates/policy/Cargo.toml:4: `policy` may not know `fluffy-ledger`";
        assert_eq!(check_one("crates/policy", "[dependencies]\nfluffy-ledger = {}\n"), [refused]);
        let dev = "[dev-dependencies]\nfluffy-ledger.workspace = true\n";
        assert_eq!(check_one("crates/policy", dev), [format!("{refused}, not even in tests")]);
    }

    #[test]
    fn an_edge_is_found_under_another_name_too() {
        let renamed = "[build-dependencies]\nharmless = { package = \"fluffy-kernel\" }\n";
        assert_eq!(check_one("crates/sandbox", renamed).len(), 1);
    }

    #[test]
    fn what_is_shipped_may_not_know_testkit() {
        let edge = "[dependencies]\nfluffy-testkit.workspace = true\n";
        assert_eq!(check_one("crates/cli", edge).len(), 1);
    }

    #[test]
    fn boot_may_depend_on_nothing() {
        assert_eq!(check_one("crates/boot", "[dependencies]\nlibc = \"0.2\"\n").len(), 1);
        assert_eq!(check_one("crates/boot", "[dev-dependencies]\ntempfile = \"3\"\n").len(), 0);
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_is_refused() {
        assert_eq!(check_one("crates/shared", "").len(), 1);
    }

    #[test]
    fn a_package_is_called_after_its_folder() {
        let repo = [("Cargo.toml", ""), ("crates/base/Cargo.toml", "[package]\nname = \"base\"\n")];
        assert_eq!(
            lines(&check(&Repo::of(&repo))),
            ["crates/base/Cargo.toml: package `base` should be called `fluffy-base`"]
        );
    }
}
