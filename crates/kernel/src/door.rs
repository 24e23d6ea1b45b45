//! The door: whoever holds it decides, and nobody else does at the same time.
//!
//! The same lock orders decisions against a halt: what is entered into the ledger is entered by the
//! holder, so that after the halt's entry nothing is allowed.
//!
//! **Invariant.** The door is never held while waiting for a disk, a tool or a person; for a rule in
//! another process at most as long as that rule's limit.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fluffy_base::{KernelState, StateError};
use fluffy_ledger::LedgerError;

use crate::KernelError;
use crate::walk::{Walk, Walked};

/// Where the kernel stands, and the right to decide.
pub(crate) struct Door {
    inside: Mutex<Inside>,
    /// What [`Door::state`] shows without waiting.
    shown: AtomicU8,
}

/// The right to decide, until it is dropped.
pub(crate) struct Held<'a> {
    inside: MutexGuard<'a, Inside>,
    shown: &'a AtomicU8,
}

struct Inside {
    /// BOOTING, IDLE or HALTED: the other states are those of a walk.
    state: KernelState,
    /// Why the kernel is halted.
    halted: Option<String>,
    /// Why nothing can be recorded any more.
    broken: Option<String>,
    closed: bool,
}

impl Door {
    /// The door of a kernel that is being put together.
    pub(crate) fn booting() -> Self {
        let state = KernelState::Booting;
        let inside = Inside { state, halted: None, broken: None, closed: false };
        Self { inside: Mutex::new(inside), shown: AtomicU8::new(number(state)) }
    }

    /// Where the kernel stands, or the request that is being judged.
    pub(crate) fn state(&self) -> KernelState {
        let shown = usize::from(self.shown.load(Ordering::Acquire));
        // The number was made from a state by `number`.
        KernelState::ALL.get(shown).copied().unwrap_or(KernelState::Halted)
    }

    /// Waits for the right to decide.
    pub(crate) fn hold(&self) -> Held<'_> {
        // A panic while the door was held leaves it whole: every update is one step.
        let inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        Held { inside, shown: &self.shown }
    }
}

impl Held<'_> {
    /// Where the kernel stands.
    pub(crate) fn state(&self) -> KernelState {
        self.inside.state
    }

    /// Why the kernel is halted, if it is.
    pub(crate) fn halted(&self) -> Option<&str> {
        self.inside.halted.as_deref()
    }

    /// The kernel is put together.
    pub(crate) fn open(&mut self) -> Result<(), StateError> {
        self.go(KernelState::Idle)
    }

    /// Nothing is allowed from here on.
    pub(crate) fn halt(&mut self, reason: String) -> Result<(), StateError> {
        self.go(KernelState::Halted)?;
        self.inside.halted = Some(reason);
        Ok(())
    }

    /// Halts a kernel that cannot record; gives the reason for which it could not first.
    pub(crate) fn give_up(&mut self, reason: String) -> String {
        let reason = self.inside.broken.get_or_insert(reason).clone();
        if self.inside.halted.is_none() {
            self.inside.halted = Some(reason.clone());
            self.inside.state = KernelState::Halted;
        }
        reason
    }

    /// Whether the kernel's end is still to be recorded; it is asked once.
    pub(crate) fn close(&mut self) -> bool {
        !std::mem::replace(&mut self.inside.closed, true)
    }

    /// Lets a request in: it is being validated, unless the kernel is halted.
    pub(crate) fn admit(&self) -> Result<Walk, KernelError> {
        if let Some(reason) = &self.inside.broken {
            return Err(LedgerError::Stopped(reason.clone()).into());
        }
        let mut walk = Walk::from(self.inside.state);
        if self.inside.halted.is_none() {
            self.step(&mut walk, KernelState::Validating)?;
        }
        Ok(walk)
    }

    /// Goes one step with a request, for everybody to see.
    pub(crate) fn step(&self, walk: &mut Walk, to: KernelState) -> Result<(), StateError> {
        walk.step(to)?;
        self.show(to);
        Ok(())
    }

    /// Ends a walk: with the entry that is about to be made, or with the halt that overtook it.
    pub(crate) fn end(&self, mut walk: Walk) -> Result<Walked, StateError> {
        if self.inside.halted.is_some() {
            return walk.halt();
        }
        self.step(&mut walk, KernelState::Auditing)?;
        walk.finish()
    }

    fn go(&mut self, to: KernelState) -> Result<(), StateError> {
        self.inside.state = self.inside.state.step(to)?.to();
        Ok(())
    }

    fn show(&self, state: KernelState) {
        self.shown.store(number(state), Ordering::Release);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.show(self.inside.state);
    }
}

fn number(state: KernelState) -> u8 {
    let at = KernelState::ALL.iter().position(|known| *known == state);
    at.and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened() -> Door {
        let door = Door::booting();
        door.hold().open().unwrap();
        door
    }

    #[test]
    fn everybody_sees_where_the_request_stands_that_is_being_judged() {
        let door = Door::booting();
        assert_eq!(door.state(), KernelState::Booting);
        door.hold().open().unwrap();
        assert_eq!(door.state(), KernelState::Idle);
        let held = door.hold();
        let mut walk = held.admit().unwrap();
        assert_eq!(door.state(), KernelState::Validating);
        held.step(&mut walk, KernelState::Arbitrating).unwrap();
        assert_eq!(door.state(), KernelState::Arbitrating);
        drop(held);
        assert_eq!(door.state(), KernelState::Idle);
    }

    #[test]
    fn a_halt_overtakes_a_walk_that_left_the_door() {
        let door = opened();
        let walk = door.hold().admit().unwrap();
        door.hold().halt("stop".to_owned()).unwrap();
        let walked = door.hold().end(walk).unwrap();
        assert_eq!((walked.from(), walked.to()), (KernelState::Idle, KernelState::Halted));
        assert_eq!(door.state(), KernelState::Halted);
    }

    #[test]
    fn a_second_halt_is_a_state_error_and_keeps_the_first_reason() {
        let door = opened();
        door.hold().halt("first".to_owned()).unwrap();
        assert!(door.hold().halt("second".to_owned()).is_err());
        assert_eq!(door.hold().halted(), Some("first"));
    }

    #[test]
    fn who_gave_up_admits_nobody_and_tells_the_first_reason() {
        let door = opened();
        assert_eq!(door.hold().give_up("first".to_owned()), "first");
        assert_eq!(door.hold().give_up("second".to_owned()), "first");
        assert!(door.hold().admit().is_err());
        assert_eq!(door.state(), KernelState::Halted);
    }

    #[test]
    fn a_panic_while_the_door_is_held_does_not_lock_it() {
        let door = opened();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let held = door.hold();
            let _walk = held.admit().unwrap();
            panic!("on purpose");
        }));
        assert!(panicked.is_err());
        assert_eq!(door.state(), KernelState::Idle);
        assert!(door.hold().admit().is_ok());
    }
}
