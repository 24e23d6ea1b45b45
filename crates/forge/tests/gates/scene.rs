//! A skill, the gates, and a lab for them.

use std::path::PathBuf;
use std::sync::Mutex;

use fluffy_base::{Digest, ProjectPath, SystemIds};
use fluffy_forge::{
    Gate, GateResult, Inspected, Judgement, Proposal, SideEffect, SkillName, SourceFile, Tools,
    VerifyError, inspect, locate,
};
use fluffy_kernel::{Appended, Journal, Lab, Note, ToolError, WorkshopOptions};
use serde_json::json;
use tempfile::TempDir;

pub(crate) const SKILL: &str = r#""""Writes a note."""

from __future__ import annotations

import json
from datetime import date

from fluffy_skill import BaseSkill


class WriteNoteSkill(BaseSkill):
    """Writes a note."""

    name = "write_note"
    description = "Writes a note."
    side_effect_class = "FILE_WRITE"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        """Writes it, and gives its name."""
        title = str(input["title"])
        path = self.folder("notes") / f"{date.today()}-{title}.md"
        path.write_text(json.dumps(title), encoding="utf-8")
        return {"path": path.name}
"#;

pub(crate) const TESTS: &str = r#""""Tests of the skill."""

from pathlib import Path

import pytest
from write_note import WriteNoteSkill


@pytest.mark.parametrize("title", ["a", "b"])
def test_a_note_is_written(tmp_path: Path, title: str) -> None:
    skill = WriteNoteSkill(folders={"notes": tmp_path})
    out = skill.execute({"title": title})
    assert (tmp_path / str(out["path"])).exists()


class TestWithoutInput:
    def test_a_title_is_needed(self) -> None:
        with pytest.raises(KeyError):
            WriteNoteSkill(folders={}).execute({})
"#;

pub(crate) const SKILL_PATH: &str = ".fluffy/skills/write_note.py";
pub(crate) const TEST_PATH: &str = ".fluffy/skills/tests/test_write_note.py";

/// Where the gates look at skills.
pub(crate) struct Scene {
    dir: TempDir,
    pub(crate) lab: Lab,
    pub(crate) tools: Tools,
    journal: Remembering,
}

/// Remembers what kinds of things it was told.
#[derive(Default)]
struct Remembering(Mutex<Vec<String>>);

impl Journal for Remembering {
    fn record(&self, note: Note) -> Result<Appended, ToolError> {
        let mut notes = self.0.lock().unwrap();
        notes.push(note.intent);
        Ok(Appended { seq: notes.len() as u64, entry_hash: Digest::of(b"entry") })
    }
}

impl Scene {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("fluffy-gates-").tempdir_in("/var/tmp").unwrap();
        let program = PathBuf::from(env!("CARGO_BIN_EXE_forge-tester"));
        let runtime = fluffy_testkit::native(&program, &dir.path().join("state")).unwrap();
        let (project, home) = (dir.path().join("project"), dir.path().join("home"));
        for dir in [&project, &home] {
            std::fs::create_dir(dir).unwrap();
        }
        let options =
            WorkshopOptions { runtime, project, home: Some(home), shown: Vec::new(), program };
        let tools = locate(&fluffy_testkit::skill_tools());
        let tools = tools.expect("run scripts/test once, which makes target/tools/skills");
        Self { lab: Lab::new(options), tools, journal: Remembering::default(), dir }
    }

    /// Asks the gates about a skill whose text has been read and found good.
    pub(crate) fn ask(&self, files: &[SourceFile]) -> Result<Judgement, VerifyError> {
        self.ask_after(files, &|_| passed(Gate::Policy))
    }

    /// Asks them after another reading of the text.
    pub(crate) fn ask_after(
        &self,
        files: &[SourceFile],
        policy: &(dyn Fn(&[SourceFile]) -> GateResult + Sync),
    ) -> Result<Judgement, VerifyError> {
        inspect(&Inspected {
            proposal: &proposal(),
            files,
            policy,
            invariants: &|_| passed(Gate::Invariants),
            lab: &self.lab,
            tools: &self.tools,
            scratch: &self.scratch(),
            ids: &SystemIds,
            journal: &self.journal,
            most: None,
        })
    }

    /// A path beside everything else.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn scratch(&self) -> PathBuf {
        self.dir.path().join("scratch")
    }

    /// How many sandboxes were made.
    pub(crate) fn sandboxes(&self) -> usize {
        let notes = self.journal.0.lock().unwrap();
        notes.iter().filter(|note| *note == "a sandbox is made").count()
    }

    /// Every tool's file with what is in it, to see whether one was changed.
    pub(crate) fn warm(&self) -> Vec<(PathBuf, Digest)> {
        let mut found = Vec::new();
        let mut pending = vec![self.tools.warm.clone()];
        while let Some(at) = pending.pop() {
            for entry in std::fs::read_dir(&at).unwrap().flatten() {
                match entry.file_type().unwrap().is_dir() {
                    true => pending.push(entry.path()),
                    false => {
                        found.push((
                            entry.path(),
                            Digest::of(&std::fs::read(entry.path()).unwrap()),
                        ));
                    }
                }
            }
        }
        found.sort();
        found
    }
}

pub(crate) fn passed(gate: Gate) -> GateResult {
    GateResult { gate, passed: true, summary: "nothing found".to_owned(), findings: Vec::new() }
}

pub(crate) fn proposal() -> Proposal {
    Proposal {
        name: SkillName::parse("write_note").unwrap(),
        description: "Writes a note.".to_owned(),
        input: json!({ "type": "object" }),
        output: json!({ "type": "object" }),
        side_effect: SideEffect::FileWrite,
        reads: Vec::new(),
        writes: vec![ProjectPath::parse("notes").unwrap()],
        hosts: Vec::new(),
        secrets: Vec::new(),
        model: false,
    }
}

pub(crate) fn file(path: &str, text: &str) -> SourceFile {
    SourceFile { path: ProjectPath::parse(path).unwrap(), bytes: text.as_bytes().to_vec() }
}

/// A skill with these tests.
pub(crate) fn files(skill: &str, tests: &str) -> Vec<SourceFile> {
    vec![file(SKILL_PATH, skill), file(TEST_PATH, tests)]
}

/// The gates that do not let it through.
pub(crate) fn refusing(judgement: &Judgement) -> Vec<Gate> {
    judgement.gates.iter().filter(|gate| !gate.passed).map(|result| result.gate).collect()
}

/// What a gate found: file, line and rule.
pub(crate) fn found(judgement: &Judgement, gate: Gate) -> Vec<(&str, Option<u32>, &str)> {
    let result = judgement.gates.iter().find(|result| result.gate == gate).unwrap();
    result.findings.iter().map(|it| (it.file.as_str(), it.line, it.rule.as_str())).collect()
}
