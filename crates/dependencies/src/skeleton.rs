//! A Cargo project reduced to what decides how its dependencies are compiled.
//!
//! [`CargoSkeleton::from_project`] keeps manifests, lock file, toolchain file and Cargo's settings, and puts an empty target in
//! the place of every library, program and build script. Building it compiles the dependencies and nothing of the project.
//!
//! Tests, examples and benchmarks need the same dependencies as one test of the same package, so that every package gets one
//! empty test in their place: a new test file changes no skeleton.
//!
//! **Invariant.** Of source files only the names are kept: no byte of one is in a skeleton.
//!
//! **Invariant.** Every file of a skeleton is in [`CargoSkeleton::files`], so that a hash of them is a hash of all that a build
//! of the skeleton reads of the project.

use std::collections::{BTreeMap, BTreeSet};

use fluffy_base::{ProjectPath, Secret};

use crate::script::{Script, words};

/// The most packages of a project that has a skeleton.
const MAX_PACKAGES: usize = 300;

/// What stands in for a source file: nothing that a lint could complain about.
const STUB_PROGRAM: &str = "//! Stands in for a source file.\nfn main() {}\n";
const STUB_LIBRARY: &str = "//! Stands in for a source file.\n";

/// The manifest of Cargo.
const MANIFEST: &str = "Cargo.toml";

/// The test that stands in for tests, examples and benchmarks. It has the development dependencies compiled.
const STUB_TEST: &str = "tests/fluffy_skeleton.rs";

/// Tables of a manifest whose members each are a target, with the folder in which Cargo looks for those without a path.
const TARGET_TABLES: [(&str, &str); 4] =
    [("bin", "src/bin/"), ("example", "examples/"), ("test", "tests/"), ("bench", "benches/")];

/// A project without its code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CargoSkeleton {
    files: BTreeMap<ProjectPath, Vec<u8>>,
    packages: BTreeSet<String>,
}

/// Why a project has no skeleton.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum SkeletonError {
    /// A manifest cannot be read.
    #[error("`{0}` is not a manifest that Cargo could read")]
    Manifest(ProjectPath),
    /// A package has a name that Cargo does not allow.
    #[error("`{0}` names a package with characters that Cargo does not allow")]
    Name(ProjectPath),
    /// There are too many packages.
    #[error("the project has more than {MAX_PACKAGES} packages")]
    Packages,
}

impl CargoSkeleton {
    /// The skeleton of a project with these files. `texts` are its manifests, and what else is kept as it is.
    pub fn from_project(
        files: &BTreeSet<ProjectPath>,
        texts: &BTreeMap<ProjectPath, String>,
    ) -> Result<Self, SkeletonError> {
        let manifests: Vec<_> =
            texts.iter().filter(|(path, _)| path.file_name() == MANIFEST).collect();
        if manifests.len() > MAX_PACKAGES {
            return Err(SkeletonError::Packages);
        }
        let mut packages = BTreeSet::new();
        let mut targets: BTreeMap<ProjectPath, &str> = BTreeMap::new();
        for (path, text) in manifests {
            let manifest: toml::Table =
                toml::from_str(text).map_err(|_| SkeletonError::Manifest(path.clone()))?;
            if let Some(name) = package_name(&manifest) {
                if !is_package_name(name) {
                    return Err(SkeletonError::Name(path.clone()));
                }
                packages.insert(name.to_owned());
            }
            targets.extend(package_targets(&manifest, path.parent().as_ref(), files));
        }
        let kept = texts.iter().map(|(path, text)| (path.clone(), text.clone().into_bytes()));
        let stubs = targets.into_iter().map(|(path, text)| (path, text.as_bytes().to_vec()));
        // What is kept wins over a stub: a manifest can name itself as a target.
        Ok(Self { files: stubs.chain(kept).collect(), packages })
    }

    /// Every file of the skeleton.
    pub fn files(&self) -> &BTreeMap<ProjectPath, Vec<u8>> {
        &self.files
    }

    /// The names of the project's own packages.
    pub fn packages(&self) -> &BTreeSet<String> {
        &self.packages
    }

    /// Whether a directory of Cargo's fingerprints is of a package of the project's own.
    pub fn is_own_fingerprint(&self, directory: &str) -> bool {
        directory.rsplit_once('-').is_some_and(|(name, _hash)| self.packages.contains(name))
    }

    /// Builds the skeleton as the project's tests are built, and removes what was built of the project's own packages: a stub
    /// must never be taken for the code that it stands in for, however old the files of that code are.
    pub fn build_script(&self, cargo_home: Option<&str>) -> Script {
        let names = words(self.packages.iter().map(String::as_str));
        let text = format!(
            "set -e\n\
             cargo test --workspace --no-fail-fast --no-run --offline --locked\n\
             for name in {names}; do\n\
             cargo clean --offline --locked -p \"$name\" || :\n\
             rm -rf target/*/.fingerprint/\"$name\"-???????????????? target/*/*/.fingerprint/\"$name\"-????????????????\n\
             rm -rf target/*/build/\"$name\"-???????????????? target/*/*/build/\"$name\"-????????????????\n\
             done\n\
             rm -rf target/*/incremental target/*/*/incremental\n"
        );
        Script { text, env: environment(cargo_home), files: Vec::new() }
    }

    /// Prints the versions of Cargo and of the compiler that the project is built with.
    pub fn version_script(cargo_home: Option<&str>) -> Script {
        let text = "set -e\ncargo -vV\nrustc -vV\n".to_owned();
        Script { text, env: environment(cargo_home), files: Vec::new() }
    }
}

fn environment(cargo_home: Option<&str>) -> Vec<(String, Secret)> {
    let home = cargo_home.map(|home| ("CARGO_HOME".to_owned(), Secret::new(home.to_owned())));
    home.into_iter().collect()
}

fn package_name(manifest: &toml::Table) -> Option<&str> {
    manifest.get("package").or_else(|| manifest.get("project"))?.get("name")?.as_str()
}

fn is_package_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && !name.starts_with('-') && name.chars().all(is_allowed)
}

/// The targets of a package. A new one without any gets a library: its first test comes before its first code.
fn package_targets(
    manifest: &toml::Table,
    folder: Option<&ProjectPath>,
    files: &BTreeSet<ProjectPath>,
) -> BTreeMap<ProjectPath, &'static str> {
    let mut targets: BTreeMap<_, _> = usual_targets(manifest, folder, files).collect();
    let build = inside(folder, "build.rs");
    let has_code = targets.keys().any(|file| Some(file) != build.as_ref())
        || ["lib", "bin"].iter().any(|name| manifest.contains_key(*name));
    targets.extend(declared_targets(manifest, folder, files));
    if package_name(manifest).is_some() {
        let library = inside(folder, "src/lib.rs").filter(|_| !has_code);
        targets.extend(library.map(|library| (library, STUB_LIBRARY)));
        targets.extend(inside(folder, STUB_TEST).map(|test| (test, STUB_PROGRAM)));
    }
    targets
}

fn inside(folder: Option<&ProjectPath>, path: &str) -> Option<ProjectPath> {
    match folder {
        Some(folder) => folder.join(path).ok(),
        None => ProjectPath::parse(path).ok(),
    }
}

/// The targets that Cargo finds by the names of files in the folder of a package, as far as it cannot do without them.
fn usual_targets<'a>(
    manifest: &toml::Table,
    folder: Option<&'a ProjectPath>,
    files: &'a BTreeSet<ProjectPath>,
) -> impl Iterator<Item = (ProjectPath, &'static str)> + 'a {
    let is_pathless = |name: &str| {
        let members = manifest.get(name).and_then(toml::Value::as_array);
        members.is_some_and(|members| members.iter().any(|member| member.get("path").is_none()))
    };
    let needed = TARGET_TABLES.iter().filter(|(name, _)| *name == "bin" || is_pathless(name));
    let folders: Vec<&'static str> = needed.map(|(_, folder)| *folder).collect();
    files.iter().filter_map(move |file| {
        let inside = match folder {
            Some(folder) => file.as_str().strip_prefix(folder.as_str())?.strip_prefix('/')?,
            None => file.as_str(),
        };
        usual_stub(inside, &folders).map(|stub| (file.clone(), stub))
    })
}

fn usual_stub(inside: &str, folders: &[&str]) -> Option<&'static str> {
    match inside {
        "src/lib.rs" => return Some(STUB_LIBRARY),
        "src/main.rs" | "build.rs" => return Some(STUB_PROGRAM),
        _other => {}
    }
    let name = folders.iter().find_map(|start| inside.strip_prefix(start))?;
    let is_target = match name.split_once('/') {
        Some((_folder, rest)) => rest == "main.rs",
        None => name.ends_with(".rs"),
    };
    is_target.then_some(STUB_PROGRAM)
}

/// The targets whose files a manifest names. One that lies outside of the project is left out: Cargo misses it then, and
/// nothing is built.
fn declared_targets<'a>(
    manifest: &'a toml::Table,
    folder: Option<&'a ProjectPath>,
    files: &'a BTreeSet<ProjectPath>,
) -> impl Iterator<Item = (ProjectPath, &'static str)> + 'a {
    let path_of = |value: &'a toml::Value| value.get("path").and_then(toml::Value::as_str);
    let library = manifest.get("lib").and_then(path_of).map(|path| (path, STUB_LIBRARY));
    let package = manifest.get("package").or_else(|| manifest.get("project"));
    let build = package.and_then(|package| package.get("build")?.as_str());
    let build = build.map(|path| (path, STUB_PROGRAM));
    let tables = TARGET_TABLES.iter().filter_map(|(name, _)| manifest.get(*name)?.as_array());
    let others = tables.flatten().filter_map(path_of).map(|path| (path, STUB_PROGRAM));
    library.into_iter().chain(build).chain(others).filter_map(move |(path, stub)| {
        let path = path.strip_prefix("./").unwrap_or(path);
        let file = inside(folder, path)?;
        files.contains(&file).then_some((file, stub))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> ProjectPath {
        ProjectPath::parse(text).unwrap()
    }

    fn skeleton(sources: &[&str], texts: &[(&str, &str)]) -> Result<CargoSkeleton, SkeletonError> {
        let texts: BTreeMap<_, _> =
            texts.iter().map(|(name, text)| (path(name), (*text).to_owned())).collect();
        let files = sources.iter().map(|name| path(name)).chain(texts.keys().cloned()).collect();
        CargoSkeleton::from_project(&files, &texts)
    }

    fn names(skeleton: &CargoSkeleton) -> Vec<&str> {
        skeleton.files().keys().map(ProjectPath::as_str).collect()
    }

    #[test]
    fn targets_are_found_by_custom_and_by_manifest() {
        let one = "[package]\nname = \"one\"\nbuild = \"make/main.rs\"\n[lib]\npath = \"one.rs\"\nproc-macro = true\n[[bin]]\nname = \"tool\"\npath = \"./tool.rs\"\n[[test]]\nname = \"away\"\npath = \"../away.rs\"\n[[test]]\nname = \"out\"\npath = \"../../../out.rs\"\n";
        let sources = [
            "crates/one/one.rs",
            "crates/one/tool.rs",
            "crates/one/make/main.rs",
            "crates/one/build.rs",
            "crates/one/src/deep.rs",
            "crates/one/tests/all/main.rs",
            "crates/one/tests/all/part.rs",
            "crates/one/tests/it.rs",
            "crates/one/examples/show.rs",
            "crates/away.rs",
            "src/main.rs",
            "src/bin/more.rs",
            "docs/src/lib.rs",
        ];
        let texts = [
            ("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\n[package]\nname = \"top\"\n"),
            ("Cargo.lock", ""),
            ("crates/one/Cargo.toml", one),
        ];
        let skeleton = skeleton(&sources, &texts).unwrap();
        let expected = [
            "Cargo.lock",
            "Cargo.toml",
            "crates/away.rs",
            "crates/one/Cargo.toml",
            "crates/one/build.rs",
            "crates/one/make/main.rs",
            "crates/one/one.rs",
            "crates/one/tests/fluffy_skeleton.rs",
            "crates/one/tool.rs",
            "src/bin/more.rs",
            "src/main.rs",
            "tests/fluffy_skeleton.rs",
        ];
        assert_eq!(names(&skeleton), expected);
        assert_eq!(skeleton.packages().iter().collect::<Vec<_>>(), ["one", "top"]);
        assert_eq!(skeleton.files()[&path("crates/one/one.rs")], STUB_LIBRARY.as_bytes());
    }

    #[test]
    fn new_test_file_changes_a_skeleton_only_where_the_manifest_declares_tests() {
        let plain = "[package]\nname = \"one\"\n";
        let declared = "[package]\nname = \"one\"\n[[test]]\nname = \"all\"\n";
        let with =
            |text: &str, sources: &[&str]| skeleton(sources, &[("Cargo.toml", text)]).unwrap();
        let more = ["src/lib.rs", "tests/it.rs", "tests/all/main.rs", "tests/all/part.rs"];
        assert_eq!(with(plain, &["src/lib.rs"]), with(plain, &more));
        let expected = [
            "Cargo.toml",
            "src/lib.rs",
            "tests/all/main.rs",
            "tests/fluffy_skeleton.rs",
            "tests/it.rs",
        ];
        assert_eq!(names(&with(declared, &more)), expected);
    }

    #[test]
    fn package_whose_code_is_not_written_yet_has_the_skeleton_of_a_library() {
        let text = "[package]\nname = \"new\"\n";
        let with = |sources: &[&str]| skeleton(sources, &[("Cargo.toml", text)]).unwrap();
        assert_eq!(with(&["tests/it.rs"]), with(&["tests/it.rs", "src/lib.rs"]));
        let program = ["Cargo.toml", "src/main.rs", "tests/fluffy_skeleton.rs"];
        assert_eq!(names(&with(&["src/main.rs"])), program);
        let manifest = "[package]\nname = \"odd\"\n[lib]\npath = \"odd.rs\"\n";
        let odd = skeleton(&["odd.rs"], &[("Cargo.toml", manifest)]).unwrap();
        assert_eq!(names(&odd), ["Cargo.toml", "odd.rs", "tests/fluffy_skeleton.rs"]);
    }

    #[test]
    fn manifest_that_names_itself_as_a_target_stays() {
        let text = "[package]\nname = \"odd\"\n[lib]\npath = \"Cargo.toml\"\n";
        let skeleton = skeleton(&[], &[("Cargo.toml", text)]).unwrap();
        assert_eq!(skeleton.files()[&path("Cargo.toml")], text.as_bytes());
    }

    #[test]
    fn unreadable_manifests_and_odd_names_have_no_skeleton() {
        let of = |text: &str| skeleton(&["src/lib.rs"], &[("Cargo.toml", text)]).unwrap_err();
        assert_eq!(of("[package"), SkeletonError::Manifest(path("Cargo.toml")));
        for name in ["", "-p", "a b", "$(id)", "*", "../x", "a\\nb"] {
            let text = format!("[package]\nname = \"{name}\"\n");
            assert_eq!(of(&text), SkeletonError::Name(path("Cargo.toml")), "{name}");
        }
    }

    #[test]
    fn fingerprints_of_the_project_are_told_from_those_of_dependencies() {
        let text = "[package]\nname = \"serde-like\"\n";
        let skeleton = skeleton(&["src/lib.rs"], &[("Cargo.toml", text)]).unwrap();
        assert!(skeleton.is_own_fingerprint("serde-like-0123456789abcdef"));
        for other in ["serde-0123456789abcdef", "serde-like-more-0123456789abcdef", "serde-like"] {
            assert!(!skeleton.is_own_fingerprint(other), "{other}");
        }
        let script = skeleton.build_script(Some("/p/.fluffy-env/cargo"));
        assert!(script.text.contains("for name in 'serde-like'; do"), "{}", script.text);
    }
}
