//! One does the work for all who wait for it.
//!
//! Whoever finds nobody at work does it, for everything that is there by then; whoever finds somebody
//! at work waits for the end of it and looks again. A mutex alone would not do: the one who has just
//! finished gets it again before those who wait, and works for itself alone.
//!
//! All wait on one word, and the end of a turn wakes them with one call. Nobody has to take a lock to
//! learn that it is served; with a condition variable, 31 threads took the same one after another.

use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex;

/// A place where one works and the others wait.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Begins and ends of turns: odd while somebody is at work.
    turns: AtomicU32,
    /// How many sleep, or are about to. A turn for which nobody waits ends without a system call.
    asleep: AtomicU32,
}

impl Group {
    /// Comes back when `is_done` holds, or when our own turn at `work` failed.
    pub(crate) fn join<E>(
        &self,
        is_done: impl Fn() -> bool,
        work: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            let seen = self.turns.load(Ordering::SeqCst);
            if is_done() {
                return Ok(());
            }
            if seen % 2 == 1 {
                self.sleep(seen);
            } else if self.begin(seen) {
                break;
            }
        }
        let _turn = Turn(self);
        work()
    }

    fn begin(&self, seen: u32) -> bool {
        let next = seen.wrapping_add(1);
        self.turns.compare_exchange(seen, next, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Sleeps until the turn that was seen is over. Being woken for nothing does no harm: whoever
    /// sleeps looks again.
    fn sleep(&self, seen: u32) {
        self.asleep.fetch_add(1, Ordering::SeqCst);
        // The kernel compares the word with what was seen before it lets us sleep.
        let _ = futex::wait(&self.turns, futex::Flags::PRIVATE, seen, None);
        self.asleep.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Ends a turn, also when the work panics.
struct Turn<'a>(&'a Group);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.turns.fetch_add(1, Ordering::SeqCst);
        if self.0.asleep.load(Ordering::SeqCst) > 0 {
            // It fails only for a word that is not there.
            let _ = futex::wake(&self.0.turns, futex::Flags::PRIVATE, i32::MAX.unsigned_abs());
        }
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
