//! Which test is which, and in which file it stands.
//!
//! **Invariant.** A test has the same identity in every run, whatever became of it.

use std::collections::{BTreeMap, BTreeSet};

use fluffy_base::{Digest, ProjectPath};
use fluffy_workflow::{
    Conventions, MAX_TEST_ID_BYTES, Outcome, PathKind, Report, Runner, Suite, TestCase, TestId,
    TestResult,
};

/// How much of a name that is too long is kept before its hash.
const KEPT: usize = 900;

/// Modules around a test beyond this are not looked for in files.
const DEEPEST_MODULE: usize = 16;

/// What the suite is called in a list of tests. It is a test of its own: that the runner came to its end and
/// told what it found. So a run that hung is red, and can be green later.
pub(super) fn suite_id(suite: &Suite) -> String {
    whole(suite, &format!("({})", runner(suite)))
}

/// What a test is called.
pub(super) fn test_id(suite: &Suite, id: &TestId) -> String {
    whole(suite, &id.to_string())
}

/// What the runner is called.
pub(super) fn runner(suite: &Suite) -> &'static str {
    match suite.runner() {
        Runner::Cargo => "cargo test",
        Runner::Pytest => "pytest",
        Runner::Node => "node --test",
        Runner::Jest => "jest",
        Runner::Vitest => "vitest",
        Runner::Go { .. } => "go test",
        Runner::Profiled(profile) => profile.name(),
        Runner::Command { .. } => "test command",
    }
}

fn whole(suite: &Suite, name: &str) -> String {
    let id = match suite.root() {
        Some(root) => format!("{root}: {name}"),
        None => name.to_owned(),
    };
    if id.len() <= MAX_TEST_ID_BYTES {
        return id;
    }
    let kept = id.get(..id.floor_char_boundary(KEPT)).unwrap_or_default();
    format!("{kept}… {}", Digest::of(id.as_bytes()))
}

/// Where tests can stand, looked up once: neither the number of tests nor that of files is ours.
pub(super) struct Places<'a> {
    files: &'a BTreeSet<ProjectPath>,
    directories: BTreeSet<&'a str>,
    /// The one file with tests of each Go package; none where there are more.
    packages: BTreeMap<&'a str, Option<&'a ProjectPath>>,
    /// Files of tests by their names without ending.
    stems: BTreeMap<&'a str, Vec<&'a ProjectPath>>,
}

impl<'a> Places<'a> {
    pub(super) fn new(files: &'a BTreeSet<ProjectPath>) -> Self {
        let (mut directories, mut packages) = (BTreeSet::new(), BTreeMap::new());
        let mut stems: BTreeMap<&str, Vec<&ProjectPath>> = BTreeMap::new();
        let conventions = Conventions::default();
        for file in files {
            let path = file.as_str();
            directories.extend(path.match_indices('/').filter_map(|(at, _)| path.get(..at)));
            let name = file.file_name();
            let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
            if conventions.kind(file) == PathKind::Test {
                stems.entry(stem).or_default().push(file);
            }
            if path.ends_with("_test.go") {
                let package = path.rsplit_once('/').map_or(".", |(directory, _)| directory);
                let only = packages.entry(package);
                only.and_modify(|only| *only = None).or_insert(Some(file));
            }
        }
        Self { files, directories, packages, stems }
    }

    /// Every test of a report with its place, and what is around tests as one of its own.
    pub(super) fn cases(&self, suite: &Suite, report: &Report) -> Vec<(String, TestCase)> {
        let case = |(id, result): (&TestId, &TestResult)| {
            let outcome = match result {
                TestResult::Passed => Outcome::Passed,
                TestResult::Skipped => Outcome::Skipped,
                TestResult::Failed { .. } => Outcome::Failed,
            };
            (test_id(suite, id), TestCase { outcome, place: self.place(suite, id) })
        };
        let ended = report.ended().iter().filter(|id| !report.tests().contains_key(*id));
        let ended = ended.map(|id| (id, &TestResult::Passed));
        report.tests().iter().chain(ended).map(case).collect()
    }

    /// The file that a test stands in, or the directory where the runner knows no more, if the project has it.
    fn place(&self, suite: &Suite, id: &TestId) -> Option<ProjectPath> {
        if matches!(suite.runner(), Runner::Go { .. })
            && let Some(Some(file)) = self.packages.get(id.place())
        {
            return Some((*file).clone());
        }
        if matches!(suite.runner(), Runner::Profiled(_) | Runner::Command { .. })
            && let Some(file) = self.file_of_class(id.place())
        {
            return Some(file.clone());
        }
        let place = ProjectPath::parse(id.place()).ok()?;
        if !self.files.contains(&place) && !self.directories.contains(place.as_str()) {
            return None;
        }
        let module = matches!(suite.runner(), Runner::Cargo).then(|| self.module(id, &place));
        Some(module.flatten().unwrap_or(place))
    }

    /// The file of tests that a class is written in, by custom: `com.example.SumTest` stands in `…/com/example/SumTest.java`.
    /// A test of CTest has the name of its program. None where two files could be meant.
    fn file_of_class(&self, class: &str) -> Option<&'a ProjectPath> {
        let outer = class.split(['$', '+']).next().unwrap_or(class);
        let (package, name) = outer.rsplit_once('.').unwrap_or(("", outer));
        let names = [name.to_owned(), format!("test_{name}"), format!("{name}_test")];
        let found: Vec<_> = names.iter().find_map(|name| self.stems.get(name.as_str()))?.clone();
        let folder = package.replace('.', "/");
        let is_in_package = |file: &&&ProjectPath| {
            let parent = file.as_str().rsplit_once('/').map_or("", |(parent, _)| parent);
            parent == folder || parent.ends_with(&format!("/{folder}"))
        };
        let exact: Vec<_> = found.iter().filter(is_in_package).copied().collect();
        match (exact.as_slice(), found.as_slice()) {
            ([only], _) | (_, [only]) => Some(only),
            _ => None,
        }
    }

    /// The file of the innermost module around a Rust test that has one: `a::tests::adds` of `src/lib.rs`
    /// stands in `src/a/tests.rs`, or else `src/a.rs`.
    fn module(&self, id: &TestId, root: &ProjectPath) -> Option<ProjectPath> {
        let test = id.name().rsplit(' ').next().unwrap_or_default();
        let mut modules: Vec<&str> = test.split("::").take(DEEPEST_MODULE).collect();
        let beside = root.parent();
        while modules.pop().is_some() && !modules.is_empty() {
            let name = modules.join("/");
            for file in [format!("{name}.rs"), format!("{name}/mod.rs")] {
                let file = match &beside {
                    Some(beside) => beside.join(&file).ok(),
                    None => ProjectPath::parse(&file).ok(),
                };
                let is_its =
                    |file: &ProjectPath| self.files.contains(file) && id.may_come_from(file);
                if let Some(file) = file.filter(is_its) {
                    return Some(file);
                }
            }
        }
        None
    }
}
