//! A project in which skills are made.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::program::{Answer, User, typing};

/// A skill that writes notes.
pub(crate) const SKILL: &str = r#""""Writes notes."""

from fluffy_skill import BaseSkill


class WriteNoteSkill(BaseSkill):
    """Writes a note."""

    name = "write_note"
    description = "Writes a note into the vault."
    side_effect_class = "FILE_WRITE"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        """Writes it."""
        target = self.folder("notes") / f"{input['title']}.md"
        target.write_text(str(input["text"]), encoding="utf-8")
        return {"written": target.name}
"#;

/// Its tests.
pub(crate) const TESTS: &str = r#""""Tests of write_note."""

from pathlib import Path

from write_note import WriteNoteSkill


def test_writes(tmp_path: Path) -> None:
    """A note is written."""
    skill = WriteNoteSkill(folders={"notes": tmp_path})
    assert skill.execute({"title": "a", "text": "b"}) == {"written": "a.md"}
    assert (tmp_path / "a.md").read_text(encoding="utf-8") == "b"
"#;

pub(crate) const NAME: &str = "write_note";
pub(crate) const SKILL_FILE: &str = ".fluffy/skills/write_note.py";
pub(crate) const TEST_FILE: &str = ".fluffy/skills/tests/test_write_note.py";

/// A user with a project and the tools that check skills.
pub(crate) struct Forge {
    pub(crate) user: User,
}

impl Forge {
    pub(crate) fn new() -> Self {
        let forge = Self::without_tools();
        let cache = forge.user.project.path("cache");
        std::fs::create_dir_all(&cache).unwrap();
        std::os::unix::fs::symlink(fluffy_testkit::skill_tools(), cache.join("fluffy")).unwrap();
        forge
    }

    pub(crate) fn without_tools() -> Self {
        Self { user: User::new() }
    }

    /// A project in which `write_note` is trusted.
    pub(crate) fn trusting() -> Self {
        let forge = Self::new();
        forge.verified();
        let answer = forge.agreeing(&["skill", "promote", NAME]);
        assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
        forge
    }

    /// Takes `write_note` as far as VERIFIED.
    pub(crate) fn verified(&self) {
        self.proposed();
        let builder = self.transcript(&[&[(SKILL_FILE, SKILL), (TEST_FILE, TESTS)]]);
        self.done(&["build", NAME, "--builder", &builder]);
        self.done(&["verify", NAME]);
    }

    /// Proposes `write_note`.
    pub(crate) fn proposed(&self) {
        self.done(&["propose", "--file", &spec(&self.user)]);
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.user.command(args);
        command.env("XDG_CACHE_HOME", self.user.project.path("cache"));
        command
    }

    pub(crate) fn skill(&self, args: &[&str]) -> Answer {
        let mut all = vec!["skill"];
        all.extend(args);
        Answer::of(self.command(&all).stdin(Stdio::null()).output().unwrap())
    }

    /// Does it, and it is done.
    #[track_caller]
    pub(crate) fn done(&self, args: &[&str]) -> Answer {
        let answer = self.skill(args);
        assert_eq!(answer.code, 0, "{args:?}: {}{}", answer.out, answer.err);
        answer
    }

    /// Does it, and gives the one document that it answers with.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> (Value, i32) {
        let mut all = args.to_vec();
        all.push("--json");
        let answer = self.skill(&all);
        let value = serde_json::from_str(&answer.out);
        let told = format!("{args:?} {}: {}{}", answer.code, answer.out, answer.err);
        (value.unwrap_or_else(|_| panic!("{told}")), answer.code)
    }

    /// A person at a terminal agrees.
    pub(crate) fn agreeing(&self, args: &[&str]) -> Answer {
        typing(self.command(args), "y\n")
    }

    pub(crate) fn transcript(&self, attempts: &[&[(&str, &str)]]) -> String {
        builder(&self.user, attempts)
    }

    pub(crate) fn standing(&self) -> String {
        self.json(&["show", NAME]).0["standing"].as_str().unwrap().to_owned()
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.user.project.root()
    }

    pub(crate) fn run_it(&self) -> Answer {
        self.skill(&["run", NAME, "--input", r#"{"title":"one","text":"hello"}"#])
    }
}

/// Writes a builder's transcript with these attempts beside somebody's project.
pub(crate) fn builder(user: &User, attempts: &[&[(&str, &str)]]) -> String {
    let path = user.project.path("builder.jsonl");
    let mut text = "{\"v\":1,\"kind\":\"builder\"}\n".to_owned();
    for (number, files) in attempts.iter().enumerate() {
        text += &format!("{}\n", json!({ "attempt": number + 1 }));
        for (path, content) in *files {
            text += &format!("{}\n", json!({ "write": { "path": path, "content": content } }));
        }
    }
    std::fs::write(&path, text).unwrap();
    format!("transcript:{}", path.display())
}

/// Writes what is proposed of `write_note` beside somebody's project.
pub(crate) fn spec(user: &User) -> String {
    let path = user.project.path("spec.json");
    std::fs::write(&path, spec_of(NAME).to_string()).unwrap();
    path.display().to_string()
}

/// What is proposed of a skill that writes notes.
pub(crate) fn spec_of(name: &str) -> Value {
    json!({
        "name": name, "description": "Writes a note into the vault.",
        "side_effect": "FILE_WRITE", "writes": ["notes"],
        "input": { "type": "object", "properties": { "title": { "type": "string" },
            "text": { "type": "string" } }, "required": ["title", "text"] },
        "output": { "type": "object", "properties": { "written": { "type": "string" } },
            "required": ["written"] },
    })
}
