//! Waiting as an argument: whoever pauses is told by whom, so that no test has to.

use std::sync::mpsc;
use std::time::Duration;

/// How often a pause looks whether it is still wanted.
const SLICE_MS: u64 = 50;

/// Something that can wait.
pub trait Waiter: Send + Sync {
    /// Waits so long, or until nobody wants it any more.
    fn wait(&self, ms: u64, is_cancelled: &dyn Fn() -> bool);

    /// A number below 1000, by chance, for those who must not all come back at the same moment.
    fn chance(&self) -> u64 {
        0
    }
}

/// Waits in the machine's time.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemWaiter;

impl Waiter for SystemWaiter {
    fn wait(&self, ms: u64, is_cancelled: &dyn Fn() -> bool) {
        // Nobody sends: the receiver waits as long as it is told.
        let (_sender, receiver) = mpsc::channel::<()>();
        let mut left = ms;
        while left > 0 && !is_cancelled() {
            let slice = left.min(SLICE_MS);
            let _ = receiver.recv_timeout(Duration::from_millis(slice));
            left -= slice;
        }
    }

    fn chance(&self) -> u64 {
        let mut bytes = [0; 8];
        // Without chance one waits the longest.
        if getrandom::fill(&mut bytes).is_err() {
            return 0;
        }
        u64::from_le_bytes(bytes) % 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_that_nobody_wants_is_over_at_once() {
        SystemWaiter.wait(u64::MAX, &|| true);
        SystemWaiter.wait(0, &|| false);
    }

    #[test]
    fn chance_is_not_always_the_same() {
        let thrown: Vec<u64> = (0..64).map(|_| SystemWaiter.chance()).collect();
        assert!(thrown.iter().all(|number| *number < 1_000));
        assert!(thrown.iter().any(|number| *number != thrown[0]), "{thrown:?}");
    }
}
