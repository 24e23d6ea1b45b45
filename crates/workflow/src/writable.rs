//! What may be written where the work stands.
//!
//! **Invariant.** A read-only session writes nothing, in any state and mode. While tests are frozen
//! nothing unfreezes them, no exemption and no mode but leaving the state.

use crate::exemption::Exempt;
use crate::paths::PathKind;
use crate::state::{Access, Mode, State};

/// Where the work stands, as far as writing is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Standing {
    /// The state.
    pub state: State,
    /// The mode.
    pub mode: Mode,
    /// Whether anything may be written at all.
    pub access: Access,
}

/// Whether a file may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Writable {
    /// It may.
    Yes,
    /// If the change touches nothing but types.
    IfTypeOnly,
    /// It may not.
    No(Frozen),
}

/// Why a file may not be written, and what to do instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frozen {
    /// Why.
    pub why: &'static str,
    /// What to do instead.
    pub instead: &'static str,
}

impl Standing {
    /// Whether a file of this kind may be written.
    pub fn writable(self, kind: PathKind, exempt: Exempt) -> Writable {
        if self.access == Access::ReadOnly {
            return Writable::No(READ_ONLY);
        }
        // No test is exempt, whatever a grant says.
        let exempt = if kind.is_frozen_with_tests() { Exempt::No } else { exempt };
        let unless_exempt = |frozen| match exempt {
            Exempt::Yes => Writable::Yes,
            Exempt::IfTypeOnly => Writable::IfTypeOnly,
            Exempt::No => Writable::No(frozen),
        };
        match (self.state, kind) {
            (State::Idle, _) => Writable::No(IDLE),
            (State::Planning, _) => unless_exempt(PLANNING),
            (State::TestWriting, PathKind::Test) => Writable::Yes,
            (State::TestWriting | State::RetroactiveTesting, PathKind::Lookalike) => {
                Writable::No(LOOKALIKE)
            }
            (
                State::TestWriting | State::CodeWriting | State::RetroactiveTesting,
                PathKind::Installed,
            ) => Writable::No(INSTALLED),
            (State::TestWriting, PathKind::Source | PathKind::Other) => unless_exempt(NO_RED),
            (State::CodeWriting, PathKind::Test | PathKind::Lookalike) => Writable::No(FROZEN),
            (State::CodeWriting, PathKind::Source | PathKind::Other) => Writable::Yes,
            (State::Validating, _) => Writable::No(VALIDATING),
            (State::Reviewing, _) => Writable::No(REVIEWING),
            (State::Committing, _) => Writable::No(COMMITTING),
            (State::Exploring, _) if self.mode.is_test_first() => unless_exempt(NOT_EXEMPT),
            (State::Exploring, _) | (State::RetroactiveTesting, PathKind::Test) => Writable::Yes,
            (State::RetroactiveTesting, PathKind::Source | PathKind::Other) => {
                unless_exempt(RETROACTIVE)
            }
        }
    }
}

const READ_ONLY: Frozen = Frozen {
    why: "this session is read-only",
    instead: "read and explain; whoever wants changes starts a session without `--read-only`",
};
const IDLE: Frozen =
    Frozen { why: "there is no task", instead: "wait for the user to say what is to be done" };
const PLANNING: Frozen = Frozen {
    why: "nothing is written while planning",
    instead: "read what you need and call `plan.complete`; for files that need no test, call \
              `workflow.request_exemption`",
};
const NO_RED: Frozen = Frozen {
    why: "no test of this task has failed yet, and code comes after a failing test",
    instead: "write a test for the change and run it with `test.run`, or run the project's own tests if \
              they fail for it; for files that need no test, call `workflow.request_exemption`",
};
const LOOKALIKE: Frozen = Frozen {
    why: "its name differs from a test's only in case or spelling",
    instead: "write the name of the test exactly as your language's convention has it",
};
const INSTALLED: Frozen = Frozen {
    why: "it belongs to what is installed, or would stand in for what runs the tests",
    instead: "write the project's own files; the user installs what they need",
};
const FROZEN: Frozen = Frozen {
    why: "tests, and what decides how they run, are read-only while code is written",
    instead: "change the code until the tests pass; if a test is wrong, tell the user, who can cancel",
};
const VALIDATING: Frozen = Frozen {
    why: "nothing is written while the work is validated",
    instead: "call `test.run` without a pattern",
};
const REVIEWING: Frozen = Frozen {
    why: "the changes are under review",
    instead: "wait for the answer; after a rejection the work goes on",
};
const COMMITTING: Frozen = Frozen {
    why: "the changes are approved and waiting for their commit",
    instead: "call `git.commit`",
};
const NOT_EXEMPT: Frozen = Frozen {
    why: "in strict mode only exempt files are written without a test",
    instead: "call `plan.complete` to go on with tests, or `workflow.request_exemption` for this file",
};
const RETROACTIVE: Frozen = Frozen {
    why: "only tests are written while tests are added to finished code",
    instead: "write the tests and call `tests.complete`",
};
