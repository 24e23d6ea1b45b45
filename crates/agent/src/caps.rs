//! How much a task may use.
//!
//! **Invariant.** A cap is looked at before a turn is asked for, with what the turn will need at least: what
//! would pass it is not asked for. The longest answer is bounded by what the caps leave.

use std::fmt;

use fluffy_base::Usd;
use fluffy_provider::{Prices, Usage};

/// The shortest answer that is worth asking for, in tokens.
const LEAST_OUTPUT: u64 = 256;

/// How much a task may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Turns of the model.
    pub turns: u64,
    /// Tokens, sent and received.
    pub tokens: Option<u64>,
    /// Money, in millionths of a dollar. Where no price is known, [`Prices::ASSUMED`] counts.
    pub cost: Option<u64>,
}

/// A cap that was reached, with what it allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cap {
    /// Turns of the model.
    Turns(u64),
    /// Tokens.
    Tokens(u64),
    /// Millionths of a dollar.
    Cost(u64),
}

/// What was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// Turns of the model.
    pub turns: u64,
    /// Tokens.
    pub usage: Usage,
    /// Millionths of a dollar.
    pub cost: u64,
}

/// Counts what is used, and says what is left.
#[derive(Debug)]
pub(crate) struct Meter {
    caps: Caps,
    prices: Prices,
    spent: Spent,
}

impl Default for Caps {
    fn default() -> Self {
        Self { turns: 50, tokens: None, cost: None }
    }
}

impl fmt::Display for Cap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turns(turns) => write!(f, "{turns} turns"),
            Self::Tokens(tokens) => write!(f, "{tokens} tokens"),
            Self::Cost(cost) => write!(f, "${}", Usd::from_micros(*cost)),
        }
    }
}

impl Meter {
    pub(crate) fn new(caps: Caps, prices: Option<Prices>, spent: Spent) -> Self {
        Self { caps, prices: prices.unwrap_or(Prices::ASSUMED), spent }
    }

    pub(crate) fn spent(&self) -> Spent {
        self.spent
    }

    /// Whether another turn may be asked for.
    pub(crate) fn allows_turn(&self) -> Result<(), Cap> {
        let turns = self.caps.turns;
        if self.spent.turns < turns { Ok(()) } else { Err(Cap::Turns(turns)) }
    }

    /// How long the answer to so many tokens may be, at most `wanted`.
    pub(crate) fn allows_output(&self, input: u64, wanted: u64) -> Result<u64, Cap> {
        let least = LEAST_OUTPUT.min(wanted);
        let mut output = wanted;
        if let Some(cap) = self.caps.tokens {
            let used = self.spent.usage.total().saturating_add(input);
            output = output.min(cap.saturating_sub(used));
            if output < least {
                return Err(Cap::Tokens(cap));
            }
        }
        if let Some(cap) = self.caps.cost {
            output = output.min(self.affordable(cap, input));
            if output < least {
                return Err(Cap::Cost(cap));
            }
        }
        Ok(output)
    }

    /// Counts a turn.
    pub(crate) fn count_turn(&mut self) {
        self.spent.turns = self.spent.turns.saturating_add(1);
    }

    /// Counts tokens.
    pub(crate) fn charge(&mut self, usage: Usage) {
        self.spent.usage = self.spent.usage.plus(usage);
        self.spent.cost = self.spent.cost.saturating_add(self.prices.cost(&usage));
    }

    /// How many tokens of an answer the money is enough for, once the question is paid.
    fn affordable(&self, cap: u64, input: u64) -> u64 {
        let question = self.prices.cost(&Usage { input, ..Usage::default() });
        // Tokens that go into a cache may be dearer than others.
        let dearer = self.prices.cost(&Usage { input, cache_written: input, ..Usage::default() });
        let used = self.spent.cost.saturating_add(question.max(dearer));
        let Some(left) = cap.checked_sub(used) else { return 0 };
        let tokens = u128::from(left) * 1_000_000 / u128::from(self.prices.output.max(1));
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn meter(caps: Caps, prices: Option<Prices>) -> Meter {
        Meter::new(caps, prices, Spent::default())
    }

    #[test]
    fn without_caps_an_answer_is_as_long_as_wanted() {
        let meter = meter(Caps::default(), None);
        assert_eq!(meter.allows_output(1_000_000, 4_000), Ok(4_000));
        assert_eq!(Caps::default().turns, 50);
    }

    #[test]
    fn an_unknown_price_counts_as_a_high_one_and_a_free_model_costs_nothing() {
        let caps = Caps { cost: Some(1), ..Caps::default() };
        assert_eq!(meter(caps, None).allows_output(1_000, 4_000), Err(Cap::Cost(1)));
        assert_eq!(meter(caps, Some(Prices::FREE)).allows_output(1_000, 4_000), Ok(4_000));
    }

    #[test]
    fn a_cap_is_shown_in_its_own_unit() {
        assert_eq!(Cap::Turns(50).to_string(), "50 turns");
        assert_eq!(Cap::Tokens(9).to_string(), "9 tokens");
        assert_eq!(Cap::Cost(1_250_000).to_string(), "$1.25");
    }

    proptest! {
        #[test]
        fn what_is_allowed_never_passes_a_cap(
            tokens in 0..100_000_u64,
            cost in 0..5_000_000_u64,
            questions in prop::collection::vec(0..20_000_u64, 1..20),
        ) {
            let caps = Caps { turns: 50, tokens: Some(tokens), cost: Some(cost) };
            let mut meter = meter(caps, None);
            for input in questions {
                let Ok(output) = meter.allows_output(input, 4_000) else { break };
                meter.charge(Usage { input, output, ..Usage::default() });
                prop_assert!(meter.spent().usage.total() <= tokens);
                // Every turn is rounded up to a millionth of a dollar by itself.
                prop_assert!(meter.spent().cost <= cost);
            }
        }
    }
}
