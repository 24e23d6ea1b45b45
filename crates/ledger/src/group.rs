//! One does the work for all who wait for it.
//!
//! Whoever finds nobody at work does it, for everything that is there by then; whoever finds somebody
//! at work waits for the end of it and looks again. A mutex alone would not do: the one who has just
//! finished gets it again before those who wait, and works for itself alone.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A place where one works and the others wait.
#[derive(Debug, Default)]
pub(crate) struct Group {
    busy: Mutex<bool>,
    done: Condvar,
}

impl Group {
    /// Comes back when `is_done` holds, or when our own turn at `work` failed.
    pub(crate) fn join<E>(
        &self,
        is_done: impl Fn() -> bool,
        work: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let mut busy = self.lock();
        loop {
            if is_done() {
                return Ok(());
            }
            if !*busy {
                break;
            }
            busy = self.done.wait(busy).unwrap_or_else(PoisonError::into_inner);
        }
        *busy = true;
        drop(busy);
        let _turn = Turn(self);
        work()
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a turn, also when the work panics.
struct Turn<'a>(&'a Group);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.lock() = false;
        self.0.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn everybody_is_served_and_fewer_turns_than_waiters_are_taken() {
        let (group, entered, done, turns) =
            (Group::default(), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let mine = entered.fetch_add(1, Ordering::SeqCst);
                        let served = group.join(
                            || done.load(Ordering::SeqCst) > mine,
                            || -> Result<(), ()> {
                                turns.fetch_add(1, Ordering::SeqCst);
                                thread::yield_now();
                                done.store(entered.load(Ordering::SeqCst), Ordering::SeqCst);
                                Ok(())
                            },
                        );
                        assert_eq!(served, Ok(()));
                        assert!(done.load(Ordering::SeqCst) > mine);
                    }
                });
            }
        });
        assert!(turns.load(Ordering::SeqCst) <= 4000);
    }

    #[test]
    fn a_failed_or_panicked_turn_leaves_the_place_to_the_next() {
        let group = Group::default();
        assert_eq!(group.join(|| false, || Err("no")), Err("no"));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            group.join(|| false, || -> Result<(), ()> { panic!("on purpose") })
        }));
        assert!(panicked.is_err());
        assert_eq!(group.join(|| false, || Ok::<_, ()>(())), Ok(()));
    }
}
