//! Recorded runs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fluffy_base::ProjectPath;
use fluffy_workflow::{Project, Report, ResultsError, Run, Suite, TestResult, detect, read};

/// Where the recorded projects lay.
pub(crate) const ROOT: &str = "/tmp/project";

/// Every recorded run.
pub(crate) const CASES: &[&str] = &[
    "cargo-passing",
    "cargo-failing",
    "cargo-abort",
    "cargo-hostile",
    "cargo-forged-block",
    "cargo-build",
    "cargo-filtered",
    "cargo-manifest",
    "cargo-coverage",
    "pytest-none",
    "pytest-passing",
    "pytest-failing",
    "pytest-build",
    "pytest-hostile",
    "node-passing",
    "node-failing",
    "node18-failing",
    "node22-failing",
    "node-build",
    "node22-build",
    "node-hostile",
    "go-passing",
    "go-failing",
    "go-build",
    "go-hostile",
    "jest-passing",
    "jest-failing",
    "jest-build",
    "jest-hostile",
    "vitest-passing",
    "vitest-failing",
    "vitest-build",
    "vitest-hostile",
];

pub(crate) struct Recorded {
    pub(crate) suite: Suite,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) report: Option<Vec<u8>>,
    pub(crate) reports: Vec<Vec<u8>>,
    pub(crate) exit: i32,
}

pub(crate) fn bytes(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn path(text: &str) -> ProjectPath {
    ProjectPath::parse(text).unwrap()
}

/// The suites of a project made of these files; those with a text have one.
pub(crate) fn suites(files: &[(&str, &str)]) -> Vec<Suite> {
    let names: Vec<ProjectPath> = files.iter().map(|(name, _)| path(name)).collect();
    let texts: BTreeMap<ProjectPath, String> = files
        .iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| (path(name), (*text).to_owned()))
        .collect();
    detect(&Project { files: &names, texts: &texts })
}

fn suite(case: &str) -> Suite {
    let (runner, _) = case.split_once('-').unwrap();
    let (name, text) = match runner {
        "cargo" => ("rust/Cargo.toml", "[workspace]"),
        "pytest" => ("py/pytest.ini", "[pytest]"),
        "node" | "node18" | "node22" => {
            ("node/package.json", r#"{"scripts":{"test":"node --test"}}"#)
        }
        "jest" => ("jest/package.json", r#"{"scripts":{"test":"jest"}}"#),
        "vitest" => ("vitest/package.json", r#"{"scripts":{"test":"vitest"}}"#),
        "go" => ("go/go.mod", "module example.com/project\n"),
        other => panic!("{other}"),
    };
    suites(&[(name, text)]).remove(0)
}

pub(crate) fn recorded(case: &str) -> Recorded {
    let file = |name| bytes(&format!("runs/{case}/{name}"));
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/runs").join(case);
    Recorded {
        suite: suite(case),
        stdout: file("stdout"),
        stderr: file("stderr"),
        reports: Vec::new(),
        report: folder.join("report").exists().then(|| file("report")),
        exit: String::from_utf8(file("exit")).unwrap().trim().parse().unwrap(),
    }
}

impl Recorded {
    pub(crate) fn read(&self) -> Result<Report, ResultsError> {
        let run = Run {
            stdout: &self.stdout,
            stderr: &self.stderr,
            exit: Some(self.exit),
            report: self.report.as_deref(),
            reports: &self.reports,
            root: ROOT,
        };
        read(&self.suite, &run)
    }
}

/// A report as text: one line per test, then what could not be built.
pub(crate) fn outline(report: &Report) -> String {
    let mut lines: Vec<String> = report
        .tests()
        .iter()
        .map(|(id, outcome)| match outcome {
            TestResult::Passed => format!("+ {id}"),
            TestResult::Skipped => format!("o {id}"),
            TestResult::Failed { .. } => format!("- {id}"),
        })
        .collect();
    if let Some(build) = report.build() {
        let files: Vec<&str> = build.files.iter().map(ProjectPath::as_str).collect();
        lines.push(format!("build: {}", files.join(" ")));
    }
    lines.join("\n")
}
