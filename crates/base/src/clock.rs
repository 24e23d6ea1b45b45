//! Time as an argument: the core never asks the machine what time it is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Something that tells the time in milliseconds since the epoch.
pub trait Clock: Send + Sync {
    /// Now.
    fn now_ms(&self) -> u64;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    fn now_ms(&self) -> u64 {
        // A clock set before 1970 reads as the epoch: entries stay well-formed, and their order
        // comes from the chain, not from the time.
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A clock that moves only when it is read or told to: the same run gives the same times.
#[derive(Debug)]
pub struct VirtualClock {
    now: AtomicU64,
    step: u64,
}

impl VirtualClock {
    /// A clock that starts at `start_ms` and moves on by `step_ms` at every reading.
    pub fn new(start_ms: u64, step_ms: u64) -> Self {
        Self { now: AtomicU64::new(start_ms), step: step_ms }
    }

    /// Moves the clock on.
    pub fn advance(&self, ms: u64) {
        self.now.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for VirtualClock {
    fn now_ms(&self) -> u64 {
        self.now.fetch_add(self.step, Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_virtual_clock_moves_when_read_or_told() {
        let clock = VirtualClock::new(1000, 5);
        assert_eq!((clock.now_ms(), clock.now_ms()), (1000, 1005));
        clock.advance(90);
        assert_eq!(clock.now_ms(), 1100);
    }
}
