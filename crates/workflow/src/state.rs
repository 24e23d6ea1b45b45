//! Where a session stands in its work, and how strictly it works.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a session stands in the work on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// No task.
    Idle,
    /// Reading and thinking.
    Planning,
    /// Writing tests that must fail.
    TestWriting,
    /// Writing code until they pass; the tests are frozen.
    CodeWriting,
    /// Waiting for a run of all tests; everything is frozen.
    Validating,
    /// Waiting for the merge to be agreed to.
    Reviewing,
    /// Agreed to; waiting for the commit.
    Committing,
    /// Writing without tests first.
    Exploring,
    /// Adding tests to code that is already written.
    RetroactiveTesting,
}

/// How strictly a session works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Tests first.
    Strict,
    /// Code without tests first, paid for by the coverage budget.
    Explore,
    /// As [`Mode::Explore`]; containers may also be run, each time with a person's agreement.
    Debug,
}

/// Whether a session may write at all, whatever its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// As its state and mode have it.
    Write,
    /// Nothing is written. A session keeps this to its end: there is no event that lifts it.
    ReadOnly,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 9] = [
        Self::Idle,
        Self::Planning,
        Self::TestWriting,
        Self::CodeWriting,
        Self::Validating,
        Self::Reviewing,
        Self::Committing,
        Self::Exploring,
        Self::RetroactiveTesting,
    ];

    /// The state's name as it stands in policies and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Planning => "planning",
            Self::TestWriting => "test_writing",
            Self::CodeWriting => "code_writing",
            Self::Validating => "validating",
            Self::Reviewing => "reviewing",
            Self::Committing => "committing",
            Self::Exploring => "exploring",
            Self::RetroactiveTesting => "retroactive_testing",
        }
    }

    /// The state with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Strict, Self::Explore, Self::Debug];

    /// The mode's name as it stands in policies and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Explore => "explore",
            Self::Debug => "debug",
        }
    }

    /// The mode with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// Whether code needs a failing test before it.
    pub const fn is_test_first(self) -> bool {
        match self {
            Self::Strict => true,
            Self::Explore | Self::Debug => false,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_are_those_of_records() {
        for state in State::ALL {
            assert_eq!(State::from_name(state.name()), Some(state));
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
        for mode in Mode::ALL {
            assert_eq!(Mode::from_name(mode.name()), Some(mode));
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.name());
        }
        assert_eq!(State::from_name("IDLE"), None);
    }
}
