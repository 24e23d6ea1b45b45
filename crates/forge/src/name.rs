//! What a skill is called, and every name and path that follows from it.
//!
//! **Invariant.** A name is a plain Python identifier in ASCII: nothing that follows from it can leave the directory of
//! skills, hide another module or mean something to a shell.

use std::fmt;

use fluffy_base::{PathError, ProjectPath};
use serde::{Deserialize, Serialize};

/// The longest name.
const MAX_NAME: usize = 40;

/// Words that Python keeps for itself, and modules that a skill must not hide.
const TAKEN: [&str; 46] = [
    "and",
    "as",
    "assert",
    "async",
    "await",
    "break",
    "class",
    "continue",
    "def",
    "del",
    "elif",
    "else",
    "except",
    "finally",
    "for",
    "from",
    "global",
    "if",
    "import",
    "in",
    "is",
    "lambda",
    "nonlocal",
    "not",
    "or",
    "pass",
    "raise",
    "return",
    "try",
    "while",
    "with",
    "yield",
    "match",
    "case",
    "type",
    "conftest",
    "sitecustomize",
    "usercustomize",
    "tests",
    "support",
    "skills",
    "typing",
    "builtins",
    "test",
    "base",
    "fluffy_skill",
];

/// The name of a skill.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SkillName(String);

/// Why a name is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is not an identifier.
    #[error(
        "a skill's name is a lower-case letter and then up to {} lower-case letters, digits and single `_`",
        MAX_NAME - 1
    )]
    Shape,
    /// Python or the forge use it.
    #[error("`{0}` is a name that Python or the forge uses itself")]
    Taken(String),
}

impl SkillName {
    /// A name, if it is one.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let shaped = text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.len() <= MAX_NAME
            && text.chars().all(letters)
            && !text.contains("__")
            && !text.ends_with('_');
        if !shaped {
            return Err(NameError::Shape);
        }
        if TAKEN.contains(&text) || text.starts_with("test_") {
            return Err(NameError::Taken(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }

    /// The name itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The class that the skill is: `write_note` is `WriteNoteSkill`.
    pub fn class_name(&self) -> String {
        let word = |word: &str| {
            let mut letters = word.chars();
            let first = letters.next().map(|first| first.to_ascii_uppercase());
            first.into_iter().chain(letters).collect::<String>()
        };
        self.0.split('_').map(word).chain(["Skill".to_owned()]).collect()
    }

    /// The tool that a trusted skill is: `skill.write_note`.
    pub fn tool_name(&self) -> String {
        format!("skill.{}", self.0)
    }

    /// The file of the skill in the project.
    pub fn skill_path(&self) -> Result<ProjectPath, PathError> {
        ProjectPath::parse(&format!("{SKILLS}/{}.py", self.0))
    }

    /// The file of its tests in the project.
    pub fn test_path(&self) -> Result<ProjectPath, PathError> {
        ProjectPath::parse(&format!("{SKILLS}/tests/test_{}.py", self.0))
    }
}

/// Where skills live in the project.
pub const SKILLS: &str = ".fluffy/skills";

/// Modules that a build may add or change beside the skill and its tests, and that other skills share.
pub const SUPPORT: [&str; 3] = [
    ".fluffy/skills/support/gateway.py",
    ".fluffy/skills/support/settings.py",
    ".fluffy/skills/tests/test_support.py",
];

impl TryFrom<String> for SkillName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl From<SkillName> for String {
    fn from(name: SkillName) -> Self {
        name.0
    }
}

impl fmt::Display for SkillName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn for_12_every_name_and_path_follows_from_the_name_of_the_proposal() {
        let name = SkillName::parse("read_notes_by_tag").unwrap();
        assert_eq!(name.class_name(), "ReadNotesByTagSkill");
        assert_eq!(name.skill_path().unwrap().as_str(), ".fluffy/skills/read_notes_by_tag.py");
        assert_eq!(
            name.test_path().unwrap().as_str(),
            ".fluffy/skills/tests/test_read_notes_by_tag.py"
        );
        assert_eq!(name.tool_name(), "skill.read_notes_by_tag");
    }

    #[test]
    fn lesson_l31_a_name_cannot_lead_anywhere_else() {
        for text in [
            "",
            "../x",
            "a/b",
            "a.b",
            "A",
            "1a",
            "_a",
            "a_",
            "a__b",
            "a-b",
            "a b",
            "a\n",
            "a\0",
            "é",
            "class",
            "conftest",
            "test_x",
            "fluffy_skill",
            &"a".repeat(41),
        ] {
            SkillName::parse(text).unwrap_err();
            serde_json::from_value::<SkillName>(text.into()).unwrap_err();
        }
        SkillName::parse(&"a".repeat(40)).unwrap();
    }
}
