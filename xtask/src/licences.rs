//! Every package that is built here has a licence that `deny.toml` allows.
//!
//! The list and its exceptions are those of cargo-deny, so there is one list; this check needs no tool
//! beside cargo and no network, and so always runs.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::repo::{Finding, Repo};
use crate::spdx;

const LIST: &str = "deny.toml";

/// Where a package that is not allowed came in.
const LOCK: &str = "Cargo.lock";

/// Asks cargo for all packages and compares them with the list.
pub(crate) fn check(repo: &Repo) -> Vec<Finding> {
    let text = repo.text(LIST).ok_or_else(|| Finding::file(LIST, "is missing"));
    let answer = text.and_then(Allowed::parse).and_then(|allowed| {
        let packages = packages(&metadata(repo.root())?)?;
        Ok(packages.iter().filter_map(|package| allowed.judge(package)).collect())
    });
    answer.unwrap_or_else(|finding| vec![finding])
}

/// A package as cargo describes it.
#[derive(Debug)]
struct Package {
    name: String,
    version: String,
    licence: Option<String>,
}

/// The licences that `deny.toml` allows.
#[derive(Debug)]
struct Allowed {
    everywhere: Vec<String>,
    exceptions: Vec<(String, Vec<String>)>,
}

impl Allowed {
    fn parse(text: &str) -> Result<Self, Finding> {
        let wrong = |text: String| Finding::file(LIST, text);
        let document: toml::Table = text
            .parse()
            .map_err(|e: toml::de::Error| wrong(format!("is not TOML: {}", e.message())))?;
        let licences = document.get("licenses");
        let everywhere = strings(licences.and_then(|table| table.get("allow")))
            .ok_or_else(|| wrong("has no list `licenses.allow`".into()))?;
        let exceptions = licences.and_then(|table| table.get("exceptions")?.as_array());
        let exceptions = exceptions.into_iter().flatten().map(|exception| {
            let name = exception.get("crate").and_then(toml::Value::as_str).map(str::to_owned);
            name.zip(strings(exception.get("allow")))
                .ok_or_else(|| wrong("an exception needs `crate` and `allow`".into()))
        });
        Ok(Self { everywhere, exceptions: exceptions.collect::<Result<_, _>>()? })
    }

    fn judge(&self, package: &Package) -> Option<Finding> {
        let Package { name, version, licence } = package;
        let Some(licence) = licence else {
            return Some(Finding::file(
                LOCK,
                format!("package `{name} {version}` names no licence"),
            ));
        };
        let own = self.exceptions.iter().filter(|(exception, _)| exception == name);
        let lists: Vec<&Vec<String>> =
            own.map(|(_, list)| list).chain([&self.everywhere]).collect();
        let allowed = |id: &str| lists.iter().any(|list| list.iter().any(|known| known == id));
        let problem = match spdx::satisfiable(licence, &allowed) {
            Some(true) => return None,
            Some(false) => "which deny.toml does not allow",
            None => "which cannot be understood",
        };
        let text = format!("package `{name} {version}` has the licence `{licence}`, {problem}");
        Some(Finding::file(LOCK, text))
    }
}

fn strings(value: Option<&toml::Value>) -> Option<Vec<String>> {
    value?.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

/// The packages of the workspace and all they are built from on this platform.
#[expect(clippy::disallowed_methods, reason = "the one place that asks cargo about packages")]
fn metadata(root: &Path) -> Result<Value, Finding> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version=1", "--locked", "--offline"])
        .args(["--filter-platform", "host-tuple"])
        .current_dir(root)
        .output()
        .map_err(|error| Finding::file(LOCK, format!("cargo does not start: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        return Err(Finding::file(LOCK, format!("cargo metadata failed: {said}")));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| Finding::file(LOCK, format!("cargo metadata is not JSON: {error}")))
}

fn packages(metadata: &Value) -> Result<Vec<Package>, Finding> {
    let wrong = || Finding::file(LOCK, "cargo metadata has another form than expected");
    let list = metadata.get("packages").and_then(Value::as_array).ok_or_else(wrong)?;
    let text = |package: &Value, key: &str| package.get(key)?.as_str().map(str::to_owned);
    list.iter()
        .map(|package| {
            Some(Package {
                name: text(package, "name")?,
                version: text(package, "version")?,
                licence: text(package, "license"),
            })
        })
        .collect::<Option<Vec<_>>>()
        .filter(|packages| !packages.is_empty())
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(name: &str, licence: Option<&str>) -> Option<String> {
        let list = "[licenses]\nallow = [\"MIT\"]\nexceptions = [{ crate = \"odd\", allow = [\"MPL-2.0\"] }]";
        let licence = licence.map(str::to_owned);
        let package = Package { name: name.into(), version: "1.0.0".into(), licence };
        Allowed::parse(list).unwrap().judge(&package).map(|finding| finding.to_string())
    }

    #[test]
    fn a_licence_outside_the_list_is_refused() {
        assert_eq!(judge("a", Some("MIT OR GPL-3.0")), None);
        assert_eq!(
            judge("a", Some("GPL-3.0")).unwrap(),
            "Cargo.lock: package `a 1.0.0` has the licence `GPL-3.0`, which deny.toml does not allow"
        );
    }

    #[test]
    fn a_package_without_an_understandable_licence_is_refused() {
        assert_eq!(judge("a", None).unwrap(), "Cargo.lock: package `a 1.0.0` names no licence");
        assert!(judge("a", Some("MIT OR")).unwrap().ends_with("which cannot be understood"));
    }

    #[test]
    fn an_exception_holds_for_its_package_alone() {
        assert_eq!(judge("odd", Some("MIT AND MPL-2.0")), None);
        assert!(judge("a", Some("MIT AND MPL-2.0")).is_some());
    }

    #[test]
    fn a_list_or_an_answer_of_another_form_is_refused() {
        assert!(Allowed::parse("[licenses]").is_err());
        assert!(Allowed::parse("[licenses]\nallow = [1]").is_err());
        assert!(packages(&serde_json::json!({ "packages": [] })).is_err());
        assert!(packages(&serde_json::json!({ "packages": [{ "name": "a" }] })).is_err());
    }
}
