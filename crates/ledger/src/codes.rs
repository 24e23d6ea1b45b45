//! The numbers that stand for decisions and states in the database.
//!
//! A name would take up to twelve bytes of every row; 0 and 1, the usual ones, take none. Hashes and
//! bundles have the names.
//!
//! **Invariant.** A number never changes its meaning, and one without a meaning is damage.

use fluffy_base::{Decision, KernelState};

/// The number of a decision.
pub(crate) const fn decision_code(decision: Decision) -> i64 {
    match decision {
        Decision::Allow => 0,
        Decision::Deny => 1,
        Decision::Halt => 2,
    }
}

/// The decision with this number.
pub(crate) fn decision_of(code: i64) -> Option<Decision> {
    let all = [Decision::Allow, Decision::Deny, Decision::Halt];
    all.into_iter().find(|decision| decision_code(*decision) == code)
}

/// The number of a state.
pub(crate) const fn state_code(state: KernelState) -> i64 {
    match state {
        KernelState::Idle => 0,
        KernelState::Booting => 1,
        KernelState::Halted => 2,
        KernelState::Validating => 3,
        KernelState::Arbitrating => 4,
        KernelState::Executing => 5,
        KernelState::Auditing => 6,
    }
}

/// The state with this number.
pub(crate) fn state_of(code: i64) -> Option<KernelState> {
    KernelState::ALL.into_iter().find(|state| state_code(*state) == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_in_the_database_are_exactly_these() {
        let decisions = (-1..9).filter_map(|n| Some(format!("{n} {}", decision_of(n)?)));
        assert_eq!(decisions.collect::<Vec<_>>(), ["0 ALLOW", "1 DENY", "2 HALT"]);
        let states = (-1..9).filter_map(|n| Some(format!("{n} {}", state_of(n)?)));
        let expected = [
            "0 IDLE",
            "1 BOOTING",
            "2 HALTED",
            "3 VALIDATING",
            "4 ARBITRATING",
            "5 EXECUTING",
            "6 AUDITING",
        ];
        assert_eq!(states.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn every_decision_and_state_is_read_back() {
        for state in KernelState::ALL {
            assert_eq!(state_of(state_code(state)), Some(state));
        }
        for decision in [Decision::Allow, Decision::Deny, Decision::Halt] {
            assert_eq!(decision_of(decision_code(decision)), Some(decision));
        }
        for code in [i64::MIN, i64::MAX] {
            assert_eq!((decision_of(code), state_of(code)), (None, None));
        }
    }
}
