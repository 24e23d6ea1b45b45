//! Whose turn it is: the model's calls, or the person who changes something between them.
//!
//! **Invariant.** A person who waits comes before the model's next calls. A mutex alone gives itself to whoever has just had it: a
//! model that answers at once was through with its task before the person had a say.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// One at a time, and persons first.
#[derive(Debug, Default)]
pub(super) struct Steering {
    inside: Mutex<Inside>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inside {
    is_taken: bool,
    /// Persons who wait.
    persons: usize,
}

/// A turn, which ends with this.
pub(super) struct Turn<'a>(&'a Steering);

impl Steering {
    /// For the model's calls.
    pub(super) fn model(&self) -> Turn<'_> {
        let waited =
            self.changed.wait_while(self.inside(), |inside| inside.is_taken || inside.persons > 0);
        waited.unwrap_or_else(PoisonError::into_inner).is_taken = true;
        Turn(self)
    }

    /// For a person, between calls of the model. Not to be asked for by whoever makes those.
    pub(super) fn person(&self) -> Turn<'_> {
        let mut inside = self.inside();
        inside.persons += 1;
        let waited = self.changed.wait_while(inside, |inside| inside.is_taken);
        let mut inside = waited.unwrap_or_else(PoisonError::into_inner);
        inside.persons -= 1;
        inside.is_taken = true;
        drop(inside);
        Turn(self)
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.inside().is_taken = false;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn cli_1_a_person_who_waits_comes_before_the_models_next_calls() {
        let (steering, order) = (Steering::default(), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            let calls = steering.model();
            scope.spawn(|| {
                let _turn = steering.person();
                order.lock().unwrap().push("person");
            });
            while steering.inside().persons == 0 {
                thread::yield_now();
            }
            drop(calls);
            // At once, as a model does that needs no time to answer.
            let _turn = steering.model();
            order.lock().unwrap().push("model");
        });
        assert_eq!(*order.lock().unwrap(), ["person", "model"]);
    }

    #[test]
    fn a_turn_that_ends_in_a_panic_is_over() {
        let steering = Steering::default();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _turn = steering.model();
            panic!("on purpose");
        }));
        assert!(panicked.is_err());
        drop(steering.person());
        drop(steering.model());
    }
}
