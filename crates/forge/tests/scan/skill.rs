//! A skill with its tests, around the few lines that a test is about.

use fluffy_base::ProjectPath;
use fluffy_forge::{
    Finding, GateResult, Proposal, SKILLS, ScanRules, SideEffect, SkillName, SourceFile, check,
    scan,
};

pub(crate) const DESCRIPTION: &str = "A skill of the corpus.";

pub(crate) fn path(text: &str) -> ProjectPath {
    ProjectPath::parse(text).unwrap()
}

pub(crate) fn file(at: &str, bytes: impl Into<Vec<u8>>) -> SourceFile {
    SourceFile { path: path(&format!("{SKILLS}/{at}")), bytes: bytes.into() }
}

pub(crate) fn proposal(name: &str, side_effect: SideEffect) -> Proposal {
    let writes = match side_effect {
        SideEffect::FileWrite => vec![path("notes")],
        _ => Vec::new(),
    };
    Proposal {
        name: SkillName::parse(name).unwrap(),
        description: DESCRIPTION.to_owned(),
        input: serde_json::json!({ "type": "object" }),
        output: serde_json::json!({ "type": "object" }),
        side_effect,
        reads: vec![path("notes")],
        writes,
        hosts: vec!["api.example.org".to_owned()],
        secrets: vec!["API_KEY".to_owned()],
        model: true,
    }
}

/// Tests that any skill passes.
pub(crate) fn plain_tests(proposal: &Proposal) -> SourceFile {
    let (name, class) = (proposal.name.as_str(), proposal.name.class_name());
    let text = format!(
        "from {name} import {class}\n\n\ndef test_name() -> None:\n    assert {class}.name == \"{name}\"\n"
    );
    file(&format!("tests/test_{name}.py"), text)
}

/// The skill `subject`, with statements at the top of the file and in `execute`.
pub(crate) fn subject(side_effect: SideEffect, top: &str, body: &str) -> SourceFile {
    let body: String = body.lines().map(|line| format!("        {line}\n")).collect();
    let text = format!(
        "from fluffy_skill import BaseSkill\n{top}\n\n\nclass SubjectSkill(BaseSkill):\n    name = \"subject\"\n    \
         description = \"{DESCRIPTION}\"\n    side_effect_class = \"{side_effect}\"\n\n    \
         def execute(self, input: dict[str, object]) -> dict[str, object]:\n{body}        return {{}}\n"
    );
    file("subject.py", text)
}

/// What both gates say of files.
pub(crate) struct Answers {
    pub(crate) policy: GateResult,
    pub(crate) invariants: GateResult,
}

pub(crate) fn judge(files: &[SourceFile], proposal: &Proposal) -> Answers {
    let changed: Vec<ProjectPath> = files.iter().map(|file| file.path.clone()).collect();
    Answers {
        policy: scan(files, &ScanRules::default().for_proposal(proposal)),
        invariants: check(files, proposal, &changed),
    }
}

/// The rules that the policy gate says a skill breaks with these statements.
pub(crate) fn broken(side_effect: SideEffect, top: &str, body: &str) -> Vec<String> {
    let proposal = proposal("subject", side_effect);
    let files = [subject(side_effect, top, body), plain_tests(&proposal)];
    rules(&judge(&files, &proposal).policy)
}

pub(crate) fn rules(result: &GateResult) -> Vec<String> {
    let mut rules: Vec<String> = result.findings.iter().map(|one| one.rule.clone()).collect();
    rules.sort();
    rules.dedup();
    rules
}

pub(crate) fn told(findings: &[Finding]) -> String {
    let line = |one: &Finding| format!("{}:{:?} {} {}", one.file, one.line, one.rule, one.message);
    findings.iter().map(line).collect::<Vec<_>>().join("\n")
}
