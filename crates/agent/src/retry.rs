//! When a provider is asked again.

use std::sync::mpsc;
use std::time::Duration;

use fluffy_provider::ProviderError;

/// How often the same request is tried again.
const RETRIES: u32 = 4;

/// The first pause; every further one is twice as long.
const FIRST_MS: u64 = 500;

/// The longest pause that a provider may ask for; who asks for more is reported to the person instead.
const LONGEST_ASKED_MS: u64 = 60_000;

/// How often a pause looks whether it is still wanted.
const SLICE_MS: u64 = 50;

/// Something that can wait.
pub trait Waiter: Send + Sync {
    /// Waits so long, or until nobody wants it any more.
    fn wait(&self, ms: u64, is_cancelled: &dyn Fn() -> bool);
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
}

/// How long to wait before the request is tried again; `None`: it is not.
pub(crate) fn pause(attempt: u32, error: &ProviderError) -> Option<u64> {
    if !error.is_retryable() || attempt >= RETRIES {
        return None;
    }
    match error.retry_after_ms() {
        Some(asked) => (asked <= LONGEST_ASKED_MS).then_some(asked),
        None => Some(FIRST_MS << attempt),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(retry_after_ms: Option<u64>) -> ProviderError {
        ProviderError::RateLimited { message: String::new(), retry_after_ms }
    }

    #[test]
    fn pauses_double_and_come_to_an_end() {
        let pauses: Vec<_> = (0..6).map(|attempt| pause(attempt, &limited(None))).collect();
        assert_eq!(pauses, [Some(500), Some(1_000), Some(2_000), Some(4_000), None, None]);
    }

    #[test]
    fn a_provider_may_ask_for_a_minute_and_not_for_a_day() {
        assert_eq!(pause(0, &limited(Some(7_000))), Some(7_000));
        assert_eq!(pause(0, &limited(Some(60_001))), None);
        assert_eq!(pause(0, &ProviderError::BadKey(String::new())), None);
    }

    #[test]
    fn a_pause_that_nobody_wants_is_over_at_once() {
        SystemWaiter.wait(u64::MAX, &|| true);
        SystemWaiter.wait(0, &|| false);
    }
}
