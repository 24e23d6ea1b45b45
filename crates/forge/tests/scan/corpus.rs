//! Files that try something, and files that only look like it.
//!
//! A hostile file begins with `# tries: …; seen by: policy|invariants|run`, any file has `# side effects: …` on its
//! second line. `test_….py` are tests of a skill called `subject`, `support_….py` shared modules.

use std::fs;
use std::path::{Path, PathBuf};

use fluffy_forge::{Proposal, SideEffect, SourceFile};

use crate::skill::{Answers, file, judge, plain_tests, proposal, subject, told};

/// One file of a corpus, with what it needs around it.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) proposal: Proposal,
    pub(crate) files: Vec<SourceFile>,
}

impl Case {
    fn read(path: &Path) -> Self {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let bytes = fs::read(path).unwrap();
        Self::of(name, bytes)
    }

    pub(crate) fn of(name: String, bytes: Vec<u8>) -> Self {
        let effect = header(&bytes, 1)
            .and_then(|line| SideEffect::from_name(line.strip_prefix("# side effects: ")?.trim()));
        let effect = effect.unwrap_or(SideEffect::ReadOnly);
        let (proposal, files) = if name.starts_with("test_") {
            let proposal = proposal("subject", effect);
            let skill = subject(effect, "LIMIT = 2", "pass");
            (proposal, vec![skill, file("tests/test_subject.py", bytes.clone())])
        } else if name.starts_with("support_") {
            let proposal = proposal("subject", effect);
            let skill = subject(effect, "from support import settings", "settings.LIMIT");
            let support = file("support/settings.py", bytes.clone());
            let tests = plain_tests(&proposal);
            (proposal, vec![skill, support, tests])
        } else {
            let proposal = proposal(&name, effect);
            let tests = plain_tests(&proposal);
            (proposal, vec![file(&format!("{name}.py"), bytes.clone()), tests])
        };
        Self { name, bytes, proposal, files }
    }

    pub(crate) fn judge(&self) -> Answers {
        judge(&self.files, &self.proposal)
    }

    fn seen_by(&self) -> String {
        let line = header(&self.bytes, 0).unwrap();
        assert!(line.starts_with("# tries: "), "{}: {line}", self.name);
        let (_, seen) = line.split_once("; seen by: ").unwrap();
        seen.split(';').next().unwrap().trim().to_owned()
    }
}

fn header(bytes: &[u8], number: usize) -> Option<String> {
    let line = bytes.split(|byte| *byte == b'\n').nth(number)?;
    Some(String::from_utf8_lossy(line).into_owned())
}

pub(crate) fn corpus(kind: &str) -> Vec<Case> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(kind);
    let entries = fs::read_dir(directory).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| Case::read(path)).collect()
}

#[test]
fn for_6_every_hostile_file_is_refused_by_the_gate_that_says_it_sees_it() {
    let cases = corpus("hostile");
    assert!(cases.len() >= 60);
    let mut missed = Vec::new();
    for case in &cases {
        let answers = case.judge();
        let right = match case.seen_by().as_str() {
            "policy" => !answers.policy.passed,
            "invariants" => !answers.invariants.passed,
            "run" => answers.policy.passed && answers.invariants.passed,
            other => panic!("{}: nobody is called {other}", case.name),
        };
        if !right {
            missed.push(format!(
                "{}\n{}\n{}",
                case.name,
                told(&answers.policy.findings),
                told(&answers.invariants.findings)
            ));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n\n"));
}

/// A gate that sees too much would refuse hostile files by accident.
#[test]
fn for_7_a_hostile_file_that_one_gate_refuses_is_written_as_a_skill_should_be() {
    let mut wrong = Vec::new();
    for case in corpus("hostile") {
        let answers = case.judge();
        let broken = answers.invariants.findings.iter().find(|one| one.rule == "structure");
        if let Some(finding) = broken.filter(|_| case.seen_by() == "policy") {
            wrong.push(format!("{}: {}", case.name, finding.message));
        }
    }
    let expected = ["init_subclass", "harness_in_skill"];
    wrong.retain(|line| !expected.iter().any(|name| line.starts_with(name)));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn for_6_no_honest_file_is_refused() {
    let cases = corpus("honest");
    assert!(cases.len() >= 30);
    let mut refused = Vec::new();
    for case in &cases {
        let answers = case.judge();
        if !answers.policy.passed || !answers.invariants.passed {
            refused.push(format!(
                "{}\n{}\n{}",
                case.name,
                told(&answers.policy.findings),
                told(&answers.invariants.findings)
            ));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n\n"));
}

#[test]
fn at_least_eight_hostile_files_are_left_to_the_sandbox() {
    let left = corpus("hostile").iter().filter(|case| case.seen_by() == "run").count();
    assert!(left >= 8, "{left}");
}
