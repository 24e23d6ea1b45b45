//! What a turn used, and what that costs.
//!
//! Money is counted in millionths of a dollar and in whole numbers, rounded up: a cap is never passed by
//! rounding.

use serde::{Deserialize, Serialize};

/// The largest count that every reader of JSON keeps exactly.
const MAX_COUNT: u64 = (1 << 53) - 1;

/// Tokens of one turn, or of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Sent, those from and into a cache included.
    #[serde(rename = "input_tokens", alias = "input", default)]
    pub input: u64,
    /// Received, reasoning included.
    #[serde(rename = "output_tokens", alias = "output", default)]
    pub output: u64,
    /// How many of those sent were read from a cache.
    #[serde(rename = "cached_tokens", alias = "cached", default, skip_serializing_if = "is_zero")]
    pub cached: u64,
    /// How many of those sent were written into a cache.
    #[serde(rename = "cache_write_tokens", default, skip_serializing_if = "is_zero")]
    pub cache_written: u64,
    /// How many of those received were reasoning.
    #[serde(rename = "reasoning_tokens", default, skip_serializing_if = "is_zero")]
    pub reasoning: u64,
}

/// What a million tokens cost, in millionths of a dollar: three dollars are 3,000,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Sent.
    pub input: u64,
    /// Sent and found in a cache.
    pub cached: u64,
    /// Sent and put into a cache.
    pub cache_written: u64,
    /// Received.
    pub output: u64,
}

impl Usage {
    /// Sent and received.
    pub const fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Two reports on one turn: what the later one says counts, and of what it does not say the earlier one. Some
    /// vendors begin with a guess that is too high. No count is larger than JSON can hold.
    #[must_use]
    pub fn joined(self, later: Self) -> Self {
        let known = |one: u64, later: u64| if later > 0 { later } else { one }.min(MAX_COUNT);
        Self {
            input: known(self.input, later.input),
            output: known(self.output, later.output),
            cached: known(self.cached, later.cached),
            cache_written: known(self.cache_written, later.cache_written),
            reasoning: known(self.reasoning, later.reasoning),
        }
    }

    /// The sum of two turns.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cached: self.cached.saturating_add(other.cached),
            cache_written: self.cache_written.saturating_add(other.cache_written),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}

impl Prices {
    /// What counts against a cap where nobody knows the price: dearer than the models people use, so that a
    /// cap holds with any provider.
    pub const ASSUMED: Self = Self {
        input: 15_000_000,
        cached: 15_000_000,
        cache_written: 18_750_000,
        output: 75_000_000,
    };

    /// Nothing costs anything: a model on the person's own machine.
    pub const FREE: Self = Self { input: 0, cached: 0, cache_written: 0, output: 0 };

    /// What the tokens cost, in millionths of a dollar.
    pub fn cost(&self, usage: &Usage) -> u64 {
        let plain = usage.input.saturating_sub(usage.cached).saturating_sub(usage.cache_written);
        let parts = [
            (plain, self.input),
            (usage.cached.min(usage.input), self.cached),
            (usage.cache_written.min(usage.input), self.cache_written),
            (usage.output, self.output),
        ];
        let millionths = parts.iter().fold(0_u128, |sum, (tokens, price)| {
            sum.saturating_add(u128::from(*tokens).saturating_mul(u128::from(*price)))
        });
        u64::try_from(millionths.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICES: Prices =
        Prices { input: 3_000_000, cached: 300_000, cache_written: 3_750_000, output: 15_000_000 };

    #[test]
    fn a_million_of_each_costs_the_price_of_each() {
        let usage = Usage {
            input: 3_000_000,
            cached: 1_000_000,
            cache_written: 1_000_000,
            output: 1_000_000,
            reasoning: 500_000,
        };
        assert_eq!(PRICES.cost(&usage), 3_000_000 + 300_000 + 3_750_000 + 15_000_000);
    }

    #[test]
    fn one_token_is_rounded_up_and_no_count_overflows() {
        assert_eq!(
            Prices { input: 1, ..Prices::FREE }.cost(&Usage { input: 1, ..Usage::default() }),
            1
        );
        let most = Usage { input: u64::MAX, output: u64::MAX, ..Usage::default() };
        assert_eq!(PRICES.cost(&most), u64::MAX);
        assert_eq!(Prices::FREE.cost(&most), 0);
        assert_eq!(most.total(), u64::MAX);
    }

    #[test]
    fn cached_tokens_that_were_never_sent_are_not_free() {
        let odd = Usage { input: 10, cached: 1_000_000, ..Usage::default() };
        assert_eq!(PRICES.cost(&odd), 3);
    }
}
