//! Finds a project's test suites in the names of its files and the texts of its manifests.
//!
//! A project may have several: each manifest that stands for itself gives one, with the directory it
//! stands in. What cannot be decided gives both.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use fluffy_base::ProjectPath;
use fluffy_policy::Glob;
use serde::Deserialize;

use super::customs::{customs, django, is_unittest, make};
use super::profile::Profile;
use super::script::{Script, understand};
use super::{Runner, Suite, words};

/// Directories whose manifests are not the project's own.
const FOREIGN: &[&str] =
    &["node_modules", "target", "vendor", "venv", ".venv", "site-packages", "dist", ".git", ".tox"];

/// Deeper manifests are examples and fixtures more often than suites.
const MAX_DEPTH: usize = 6;

/// Files whose texts say how a project is tested.
const MANIFESTS: &[&str] = &[
    "Cargo.toml",
    "package.json",
    "go.mod",
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "tox.ini",
    "pytest.ini",
    "Pipfile",
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-test.txt",
    "dev-requirements.txt",
    "test-requirements.txt",
    "manage.py",
    "CMakeLists.txt",
    "GNUmakefile",
    "makefile",
    "Makefile",
];

/// What is known of a project.
#[derive(Debug, Clone, Copy)]
pub struct Project<'a> {
    /// Every file.
    pub files: &'a [ProjectPath],
    /// The texts of the manifests that [`is_manifest`] names, and of tests in Python.
    pub texts: &'a BTreeMap<ProjectPath, String>,
}

/// The suites, by root and runner. Empty if there are none: then the user must configure a command.
pub fn detect(project: &Project<'_>) -> Vec<Suite> {
    let own = || project.files.iter().filter(|file| is_own(file));
    let tests = own().map(ProjectPath::as_str).filter(|file| may_be_test(file)).collect();
    let mut suites = Vec::new();
    for (root, names) in &by_directory(own()) {
        let place = Place { project, root: root.as_ref(), names, tests: &tests };
        suites.extend(cargo(&place));
        suites.extend(go(&place));
        suites.extend(javascript(&place));
        suites.extend(python(&place, &suites));
        suites.extend(customs(&place, &suites));
    }
    if suites.is_empty() {
        let names: Vec<&str> = project.files.iter().map(ProjectPath::as_str).collect();
        suites.extend(make(&Place { project, root: None, names: &names, tests: &BTreeSet::new() }));
    }
    suites
}

/// Whether [`detect`] and the proposal of a command read the text of a file.
pub fn is_manifest(file: &ProjectPath) -> bool {
    let name = file.file_name();
    MANIFESTS.contains(&name) || is_python_test(name)
}

/// The manifest that a test needs before anything can run it, if the project does not have it. Other
/// languages need none.
pub fn missing_manifest(test: &ProjectPath, files: &BTreeSet<ProjectPath>) -> Option<ProjectPath> {
    let test = test.as_str();
    let (package, rest) = match test.strip_prefix("tests/") {
        Some(rest) => (String::new(), rest),
        None => {
            let (package, rest) = test.split_once("/tests/")?;
            (format!("{package}/"), rest)
        }
    };
    // What lies deeper is a part of another test, or data.
    let is_target = match rest.split_once('/') {
        Some((_, name)) => name == "main.rs",
        None => rest.ends_with(".rs"),
    };
    let manifest = ProjectPath::parse(&format!("{package}Cargo.toml")).ok()?;
    (is_target && !files.contains(&manifest)).then_some(manifest)
}

type Names<'a> = Vec<&'a str>;
type Directories<'a> = BTreeMap<Option<ProjectPath>, Names<'a>>;

/// One directory with the names of its files.
pub(super) struct Place<'a> {
    pub(super) project: &'a Project<'a>,
    pub(super) root: Option<&'a ProjectPath>,
    pub(super) names: &'a [&'a str],
    /// Files of tests in the whole project.
    tests: &'a BTreeSet<&'a str>,
}

impl Place<'_> {
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        text(self.project, self.root, name)
    }

    pub(super) fn suite(&self, runner: Runner, reason: &str) -> Suite {
        let at = self.root.map_or_else(String::new, |root| format!(" in `{root}`"));
        Suite::new(runner, self.root.cloned(), format!("{reason}{at}"))
    }

    /// The files that a word of a script stands for, as a shell or node itself would have it; the word where
    /// it stands for none.
    fn expanded(&self, word: String) -> Vec<String> {
        if word.starts_with('-') || !word.contains(['*', '?']) {
            return vec![word];
        }
        // A leading slash binds the pattern to where the script runs.
        let Ok(glob) = Glob::parse(&format!("/{}", word.trim_start_matches("./"))) else {
            return vec![word];
        };
        let prefix = self.root.map_or_else(String::new, |root| format!("{root}/"));
        let below = self.project.files.iter().filter(|file| is_own(file));
        let below = below.filter_map(|file| file.as_str().strip_prefix(prefix.as_str()));
        let matching = |file: &&str| ProjectPath::parse(file).is_ok_and(|path| glob.matches(&path));
        let found: Vec<String> = below.filter(matching).map(|file| format!("./{file}")).collect();
        if found.is_empty() { vec![word] } else { found }
    }

    /// Files of tests below this directory, by their path from it.
    pub(super) fn tests(&self) -> impl Iterator<Item = &str> {
        let prefix = self.root.map_or_else(String::new, |root| format!("{root}/"));
        let from = (Bound::Included(prefix.as_str()), Bound::Unbounded);
        let found = self.tests.range::<str, _>(from);
        found
            .map_while(move |file| file.strip_prefix(prefix.as_str()))
            .collect::<Vec<_>>()
            .into_iter()
    }
}

/// Whether it is one, seen from the project's root or from a directory below.
fn may_be_test(file: &str) -> bool {
    let below = || file.split('/').any(|part| matches!(part, "test" | "tests"));
    is_node_test(file)
        || is_python_test(file)
        || super::customs::may_be_test(file)
        || (node_stem(file).is_some() && below())
}

fn is_node_test(file: &str) -> bool {
    is_node_own(file) || is_node_spec(file)
}

/// The name of a file for node, without its ending.
fn node_stem(file: &str) -> Option<&str> {
    let name = file.rsplit('/').next().unwrap_or(file);
    [".js", ".mjs", ".cjs"].iter().find_map(|ending| name.strip_suffix(ending))
}

/// A test that node's runner finds by itself.
fn is_node_own(file: &str) -> bool {
    node_stem(file).is_some_and(|stem| {
        stem == "test"
            || stem.starts_with("test-")
            || [".test", "-test", "_test"].iter().any(|end| stem.ends_with(end))
            || file.starts_with("test/")
    })
}

/// A test that it does not find by itself.
fn is_node_spec(file: &str) -> bool {
    let beneath = || file.starts_with("__tests__/") || file.contains("/__tests__/");
    node_stem(file).is_some_and(|stem| stem.ends_with(".spec") || beneath())
}

/// A file that is a test if nothing else in the project is.
fn is_node_last_resort(file: &str) -> bool {
    node_stem(file).is_some() && file.strip_prefix("tests/").is_some_and(|rest| !rest.contains('/'))
}

fn is_python_test(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    let stem = name.strip_suffix(".py");
    stem.is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
}

fn by_directory<'a>(files: impl Iterator<Item = &'a ProjectPath>) -> Directories<'a> {
    let mut places: Directories<'a> = BTreeMap::new();
    for file in files {
        let (folder, name) = match file.as_str().rsplit_once('/') {
            Some((folder, name)) => (ProjectPath::parse(folder).ok(), name),
            None => (None, file.as_str()),
        };
        let mut above = folder.as_ref().and_then(ProjectPath::parent);
        places.entry(folder).or_default().push(name);
        // A directory that holds only directories may be a root as well.
        while let Some(folder) = above {
            above = folder.parent();
            places.entry(Some(folder)).or_default();
        }
        places.entry(None).or_default();
    }
    places
}

fn is_own(file: &ProjectPath) -> bool {
    let mut depth = 0;
    let foreign = file.components().any(|part| {
        depth += 1;
        FOREIGN.contains(&part)
    });
    !foreign && depth <= MAX_DEPTH
}

fn text<'a>(project: &Project<'a>, root: Option<&ProjectPath>, name: &str) -> Option<&'a str> {
    let path = match root {
        Some(root) => root.join(name).ok()?,
        None => ProjectPath::parse(name).ok()?,
    };
    project.texts.get(&path).map(String::as_str)
}

/// A package is run by the workspace above it, unless that leaves it out.
fn cargo(place: &Place<'_>) -> Option<Suite> {
    if !place.has("Cargo.toml") {
        return None;
    }
    let covered = place.root.is_some_and(|root| {
        let above = std::iter::successors(root.parent(), ProjectPath::parent);
        let mut above = above.map(Some).chain([None]);
        above.any(|folder| runs(place.project, folder.as_ref(), root))
    });
    let reason =
        if is_workspace(place.text("Cargo.toml")) { "a Cargo workspace" } else { "Cargo.toml" };
    (!covered).then(|| place.suite(Runner::Cargo, reason))
}

pub(super) fn is_above(folder: Option<&ProjectPath>, root: &ProjectPath) -> bool {
    folder.is_none_or(|folder| {
        root.as_str().strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'))
    })
}

fn is_workspace(text: Option<&str>) -> bool {
    let table = text.and_then(|text| text.parse::<toml::Table>().ok());
    table.is_some_and(|table| table.contains_key("workspace"))
}

/// Whether the workspace in `folder` runs the package in `root`.
fn runs(project: &Project<'_>, folder: Option<&ProjectPath>, root: &ProjectPath) -> bool {
    let Some(text) = text(project, folder, "Cargo.toml") else { return false };
    let Ok(table) = text.parse::<toml::Table>() else { return false };
    let Some(workspace) = table.get("workspace").and_then(toml::Value::as_table) else {
        return false;
    };
    let excluded = workspace.get("exclude").and_then(toml::Value::as_array);
    !excluded.into_iter().flatten().filter_map(toml::Value::as_str).any(|name| {
        let path = match folder {
            Some(folder) => folder.join(name).ok(),
            None => ProjectPath::parse(name).ok(),
        };
        path.is_some_and(|path| path == *root || is_above(Some(&path), root))
    })
}

fn go(place: &Place<'_>) -> Option<Suite> {
    let text = place.text("go.mod")?;
    let module = text.lines().find_map(|line| line.trim().strip_prefix("module "))?;
    let module = module.split("//").next().unwrap_or_default();
    let module = module.trim().trim_matches('"').to_owned();
    Some(place.suite(Runner::Go { module }, "go.mod"))
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Package {
    #[serde(default)]
    scripts: BTreeMap<String, String>,
    #[serde(default)]
    dependencies: BTreeMap<String, serde_json::Value>,
    #[serde(default)]
    dev_dependencies: BTreeMap<String, serde_json::Value>,
}

fn javascript(place: &Place<'_>) -> Option<Suite> {
    let Some(text) = place.text("package.json") else { return without_package(place) };
    let package: Package = serde_json::from_str(text).ok()?;
    let script = package.scripts.get("test").map_or(Script::Absent, |script| understand(script));
    match script {
        Script::Jest => Some(place.suite(Runner::Jest, "package.json tests with jest")),
        Script::Vitest => Some(place.suite(Runner::Vitest, "package.json tests with vitest")),
        Script::Node(extra) => {
            let suite = place.suite(Runner::Node, "package.json tests with node:test");
            let extra = extra.into_iter().flat_map(|word| place.expanded(word)).collect();
            Some(Suite { extra, ..suite })
        }
        Script::Other => {
            let runner = Runner::Command { argv: words(&["npm", "test"]) };
            Some(place.suite(runner, "package.json has a test script of its own"))
        }
        Script::Absent => without_script(place, &package),
    }
}

fn without_script(place: &Place<'_>, package: &Package) -> Option<Suite> {
    let needs = |name| {
        package.dependencies.contains_key(name) || package.dev_dependencies.contains_key(name)
    };
    if needs("vitest") {
        return Some(place.suite(Runner::Vitest, "package.json depends on vitest"));
    }
    if needs("jest") {
        return Some(place.suite(Runner::Jest, "package.json depends on jest"));
    }
    node(place, "package.json and files of tests for node")
}

/// A few files of tests make a project even where no manifest does.
fn without_package(place: &Place<'_>) -> Option<Suite> {
    let has_package = |path: &ProjectPath| path.file_name() == "package.json";
    let alone = place.root.is_none() && !place.project.texts.keys().any(has_package);
    if alone { node(place, "files of tests for node") } else { None }
}

/// Node's own runner. Where some files are named as it does not expect, all are named to it.
fn node(place: &Place<'_>, reason: &str) -> Option<Suite> {
    let mut tests: Vec<&str> = place.tests().filter(|file| is_node_test(file)).collect();
    if tests.is_empty() {
        tests = place.tests().filter(|file| is_node_last_resort(file)).collect();
    }
    if tests.is_empty() {
        return None;
    }
    let named = tests.iter().any(|file| !is_node_own(file));
    // A name that begins with a dash is a file all the same.
    let extra = tests.iter().filter(|_| named).map(|file| format!("./{file}")).collect();
    Some(Suite { extra, ..place.suite(Runner::Node, reason) })
}

/// pytest where it is configured, or where tests lie that it would find.
fn python(place: &Place<'_>, found: &[Suite]) -> Option<Suite> {
    let names = |file, words: &[&str]| {
        place.text(file).is_some_and(|text| words.iter().any(|word| text.contains(word)))
    };
    let configured = [
        ("pytest.ini", place.has("pytest.ini")),
        ("pyproject.toml", names("pyproject.toml", &["[tool.pytest"])),
        ("setup.cfg", names("setup.cfg", &["[tool:pytest]"])),
        ("tox.ini", names("tox.ini", &["[pytest]"])),
    ];
    if let Some((file, _)) = configured.iter().find(|(_, yes)| *yes) {
        return Some(place.suite(Runner::Pytest, &format!("pytest is configured in {file}")));
    }
    let is_python = |suite: &Suite| {
        let known = [Runner::Profiled(Profile::Django), Runner::Profiled(Profile::Unittest)];
        suite.runner == Runner::Pytest || known.contains(&suite.runner)
    };
    let above = |suite: &Suite| {
        is_python(suite) && place.root.is_some_and(|root| is_above(suite.root.as_ref(), root))
    };
    let covered = found.iter().any(above);
    if let Some(suite) = django(place).filter(|_| !covered) {
        return Some(suite);
    }
    let manifest =
        ["pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "requirements.txt", "conftest.py"]
            .iter()
            .any(|name| place.has(name));
    let in_folder = |file: &str| file.starts_with("tests/") || file.starts_with("test/");
    let wanted =
        |file: &str| is_python_test(file) && (manifest || in_folder(file) || !file.contains('/'));
    if !place.tests().any(wanted) {
        return None;
    }
    if covered {
        return None;
    }
    let tests = place.tests().filter(|file| is_python_test(file));
    if is_unittest(place, tests.map(|file| place.text(file))) {
        let runner = Runner::Profiled(Profile::Unittest);
        return Some(place.suite(runner, "tests written for unittest"));
    }
    Some(place.suite(Runner::Pytest, "files of tests for pytest"))
}
