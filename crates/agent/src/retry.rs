//! When a provider is asked again: as the vendors' own libraries do it.

use fluffy_provider::ProviderError;

/// How often the same request is tried again.
const RETRIES: u32 = 4;

/// The first pause; every further one is twice as long.
const FIRST_MS: u64 = 500;

/// The longest pause of our own.
const LONGEST_MS: u64 = 8_000;

/// How much of a pause chance may take off, in thousandths.
const JITTER: u64 = 250;

/// The longest pause that a provider may ask for; who asks for more is reported to the person instead.
const LONGEST_ASKED_MS: u64 = 60_000;

/// How long to wait before the request is tried again; `None`: it is not. `chance` is a number below 1000.
pub(crate) fn pause(attempt: u32, error: &ProviderError, chance: u64) -> Option<u64> {
    if !error.is_retryable() || attempt >= RETRIES {
        return None;
    }
    match error.retry_after_ms() {
        Some(asked) if asked > LONGEST_ASKED_MS => None,
        Some(asked) if asked > 0 => Some(asked),
        Some(_) | None => {
            let longest = (FIRST_MS << attempt).min(LONGEST_MS);
            Some(longest - longest * JITTER * chance.min(999) / 1_000_000)
        }
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
        let pauses: Vec<_> = (0..6).map(|attempt| pause(attempt, &limited(None), 0)).collect();
        assert_eq!(pauses, [Some(500), Some(1_000), Some(2_000), Some(4_000), None, None]);
    }

    #[test]
    fn chance_takes_up_to_a_quarter_off() {
        let first = |chance| pause(0, &limited(None), chance).unwrap();
        assert_eq!([0, 500, 999, u64::MAX].map(first), [500, 438, 376, 376]);
        assert_eq!(pause(3, &limited(None), 999), Some(3_001));
    }

    #[test]
    fn a_provider_may_ask_for_a_minute_and_not_for_a_day() {
        assert_eq!(pause(0, &limited(Some(7_000)), 999), Some(7_000));
        assert_eq!(pause(0, &limited(Some(60_001)), 0), None);
        assert_eq!(pause(0, &limited(Some(u64::MAX)), 0), None, "it says: not again");
        assert_eq!(pause(0, &limited(Some(0)), 0), Some(500), "at once would be a hammer");
        assert_eq!(pause(0, &ProviderError::BadKey(String::new()), 0), None);
    }
}
