//! The five gates, and what each says of a skill.

use std::fmt;

use fluffy_base::ProjectPath;
use serde::{Deserialize, Serialize};

/// One of the checks that every skill passes before it can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// How it is written (ruff, for Python).
    Lint,
    /// Whether its types hold (mypy, for Python).
    Types,
    /// Whether its tests pass (pytest, for Python).
    Tests,
    /// Whether it uses what is forbidden.
    Policy,
    /// Whether it is what was proposed, and nothing else.
    Invariants,
}

/// What a gate found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateResult {
    /// Which gate.
    pub gate: Gate,
    /// Whether it lets the skill through.
    pub passed: bool,
    /// What it says, in a line.
    pub summary: String,
    /// What stands in the way, in the order of the files.
    pub findings: Vec<Finding>,
}

/// Something that a gate holds against a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Where.
    pub file: ProjectPath,
    /// On which line, from one; none for the whole file.
    pub line: Option<u32>,
    /// The rule, in the gate's own words (`F401`, `forbidden_import`).
    pub rule: String,
    /// What is wrong.
    pub message: String,
}

impl Gate {
    /// All of them, in the order in which they are told.
    pub const ALL: [Self; 5] =
        [Self::Lint, Self::Types, Self::Tests, Self::Policy, Self::Invariants];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lint => "lint",
            Self::Types => "types",
            Self::Tests => "tests",
            Self::Policy => "policy",
            Self::Invariants => "invariants",
        }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
