//! The states of a kernel and the only ways between them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a kernel, or one request on its way through it, stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum KernelState {
    /// Being put together; answers nothing yet.
    Booting,
    /// Ready for a request.
    Idle,
    /// Checking structure and ambiguity.
    Validating,
    /// Asking every rule.
    Arbitrating,
    /// Running an allowed tool.
    Executing,
    /// Writing the ledger entry.
    Auditing,
    /// Ended for good.
    Halted,
}

/// A step from one state to another that the kernel's definition knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    from: KernelState,
    to: KernelState,
}

/// A step that the definition does not know.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the kernel cannot go from {from} to {to}")]
pub struct StateError {
    /// Where the kernel stood.
    pub from: KernelState,
    /// Where it was told to go.
    pub to: KernelState,
}

impl KernelState {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::Booting,
        Self::Idle,
        Self::Validating,
        Self::Arbitrating,
        Self::Executing,
        Self::Auditing,
        Self::Halted,
    ];

    /// The step to `next`, if there is one.
    pub fn step(self, next: Self) -> Result<Transition, StateError> {
        use KernelState::{Arbitrating, Auditing, Booting, Executing, Halted, Idle, Validating};
        let known = match self {
            Booting => matches!(next, Idle | Halted),
            Idle => matches!(next, Validating | Halted),
            Validating => matches!(next, Arbitrating | Auditing | Halted),
            Arbitrating => matches!(next, Executing | Auditing | Halted),
            Executing => matches!(next, Auditing | Halted),
            Auditing => matches!(next, Idle | Halted),
            Halted => false,
        };
        let (from, to) = (self, next);
        if known { Ok(Transition { from, to }) } else { Err(StateError { from, to }) }
    }

    /// The state's name as it stands in the ledger.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Booting => "BOOTING",
            Self::Idle => "IDLE",
            Self::Validating => "VALIDATING",
            Self::Arbitrating => "ARBITRATING",
            Self::Executing => "EXECUTING",
            Self::Auditing => "AUDITING",
            Self::Halted => "HALTED",
        }
    }

    /// The state with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

impl Transition {
    /// Where the step starts.
    pub fn from(self) -> KernelState {
        self.from
    }

    /// Where the step ends.
    pub fn to(self) -> KernelState {
        self.to
    }
}

impl fmt::Display for KernelState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_transitions_is_exactly_this() {
        let mut table = String::new();
        for from in KernelState::ALL {
            let next: Vec<_> = KernelState::ALL
                .into_iter()
                .filter(|to| from.step(*to).is_ok())
                .map(KernelState::name)
                .collect();
            table += &format!("{from} -> {}\n", next.join(" "));
        }
        let expected = "\
BOOTING -> IDLE HALTED
IDLE -> VALIDATING HALTED
VALIDATING -> ARBITRATING AUDITING HALTED
ARBITRATING -> EXECUTING AUDITING HALTED
EXECUTING -> AUDITING HALTED
AUDITING -> IDLE HALTED
HALTED -> \n";
        assert_eq!(table, expected);
    }

    #[test]
    fn an_undefined_transition_names_both_states() {
        let error = KernelState::Halted.step(KernelState::Idle).unwrap_err();
        assert_eq!(error.to_string(), "the kernel cannot go from HALTED to IDLE");
    }

    #[test]
    fn names_are_read_back() {
        for state in KernelState::ALL {
            assert_eq!(KernelState::from_name(state.name()), Some(state));
        }
        assert_eq!(KernelState::from_name("idle"), None);
    }
}
