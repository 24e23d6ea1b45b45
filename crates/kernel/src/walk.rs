//! One request's way through the lifecycle.
//!
//! **Invariant.** Every step is one that [`KernelState::step`] knows, and only a whole walk gives a
//! [`Walked`], without which no entry is made and no receipt given.

use fluffy_base::{KernelState, StateError};

/// A request on its way.
#[derive(Debug)]
pub(crate) struct Walk {
    from: KernelState,
    at: KernelState,
}

/// A walk that came to its end: where the kernel stood before, and where it stands after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Walked {
    from: KernelState,
    to: KernelState,
}

impl Walk {
    /// A request that finds the kernel in `state`.
    pub(crate) fn from(state: KernelState) -> Self {
        Self { from: state, at: state }
    }

    /// Where the request found the kernel.
    pub(crate) fn origin(&self) -> KernelState {
        self.from
    }

    /// Goes one step.
    pub(crate) fn step(&mut self, to: KernelState) -> Result<(), StateError> {
        self.at = self.at.step(to)?.to();
        Ok(())
    }

    /// The last step of a request whose entry is being written: the kernel is idle again.
    pub(crate) fn finish(mut self) -> Result<Walked, StateError> {
        self.step(KernelState::Idle)?;
        Ok(Walked { from: self.from, to: self.at })
    }

    /// The end of a request that a halt overtook, or that came after it.
    pub(crate) fn halt(mut self) -> Result<Walked, StateError> {
        if self.at != KernelState::Halted {
            self.step(KernelState::Halted)?;
        }
        Ok(Walked { from: self.from, to: self.at })
    }
}

impl Walked {
    /// State of the kernel before the request.
    pub(crate) fn from(self) -> KernelState {
        self.from
    }

    /// State of the kernel after the request.
    pub(crate) fn to(self) -> KernelState {
        self.to
    }
}

#[cfg(test)]
mod tests {
    use KernelState::{Arbitrating, Auditing, Booting, Executing, Halted, Idle, Validating};

    use super::*;

    /// Walks the steps and finishes.
    fn walked(from: KernelState, steps: &[KernelState]) -> Result<Walked, StateError> {
        let mut walk = Walk::from(from);
        steps.iter().try_for_each(|step| walk.step(*step))?;
        walk.finish()
    }

    #[test]
    fn exactly_three_ways_lead_from_idle_back_to_idle() {
        let inner = [Validating, Arbitrating, Executing, Auditing];
        let mut whole = Vec::new();
        // Every sequence of up to four states.
        for code in 0..5_usize.pow(4) {
            let chosen = (0..4).map(|place| code / 5_usize.pow(place) % 5);
            let steps: Vec<_> = chosen.filter_map(|n| inner.get(n).copied()).collect();
            if walked(Idle, &steps).is_ok() && !whole.contains(&steps) {
                whole.push(steps);
            }
        }
        whole.sort_by_key(Vec::len);
        assert_eq!(
            whole,
            [
                vec![Validating, Auditing],
                vec![Validating, Arbitrating, Auditing],
                vec![Validating, Arbitrating, Executing, Auditing],
            ]
        );
    }

    #[test]
    fn a_walk_begins_nowhere_but_in_idle() {
        for state in [Booting, Halted] {
            assert!(Walk::from(state).step(Validating).is_err(), "{state}");
        }
    }

    #[test]
    fn a_halt_ends_a_walk_wherever_it_stands() {
        for steps in 0..=4 {
            let mut walk = Walk::from(Idle);
            for step in [Validating, Arbitrating, Executing, Auditing].into_iter().take(steps) {
                walk.step(step).unwrap();
            }
            assert_eq!(walk.halt(), Ok(Walked { from: Idle, to: Halted }));
        }
        assert_eq!(Walk::from(Halted).halt(), Ok(Walked { from: Halted, to: Halted }));
    }
}
