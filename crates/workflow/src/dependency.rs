//! Tests first, among the calls of one turn: which of them depends on which.
//!
//! The workflow says what depends on what; whoever makes the calls keeps to it.

use crate::state::Mode;

/// What a call is to the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// It ends the planning.
    Plan,
    /// It changes tests and nothing else.
    Test,
    /// It changes code.
    Code,
    /// Anything else.
    Other,
}

impl Part {
    /// Whether a call that comes later in a turn is to be made only if the earlier one was a success: code depends on its test
    /// in strict mode, and on the plan in the others.
    pub const fn depends_on(self, earlier: Self, mode: Mode) -> bool {
        match (self, mode) {
            (Self::Code, Mode::Strict) => matches!(earlier, Self::Test),
            (Self::Code, Mode::Explore | Mode::Debug) => matches!(earlier, Self::Plan),
            (Self::Plan | Self::Test | Self::Other, _) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_depends_on_its_test_in_strict_mode_and_on_the_plan_otherwise() {
        let all = [Part::Plan, Part::Test, Part::Code, Part::Other];
        let on = |mode| all.map(|earlier| Part::Code.depends_on(earlier, mode));
        assert_eq!(on(Mode::Strict), [false, true, false, false]);
        assert_eq!(on(Mode::Explore), [true, false, false, false]);
        assert_eq!(on(Mode::Debug), [true, false, false, false]);
        for later in [Part::Plan, Part::Test, Part::Other] {
            assert!(all.iter().all(|earlier| !later.depends_on(*earlier, Mode::Strict)));
        }
    }
}
