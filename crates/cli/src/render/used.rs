//! What turns of a model used, in words.

use fluffy_base::Usd;

/// Tokens, and what they cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Used {
    input: u64,
    output: u64,
    cached: u64,
    /// Nothing where the price of a part is not known.
    cost: Option<Usd>,
}

impl Default for Used {
    fn default() -> Self {
        Self { input: 0, output: 0, cached: 0, cost: Some(Usd::default()) }
    }
}

impl Used {
    /// What a turn, or all of them, used.
    pub(crate) fn of_turn(input: u64, output: u64, cached: u64, cost: Option<Usd>) -> Self {
        Self { input, output, cached, cost }
    }

    /// Adds another turn.
    pub(crate) fn add(&mut self, turn: &Self) {
        self.input = self.input.saturating_add(turn.input);
        self.output = self.output.saturating_add(turn.output);
        self.cached = self.cached.saturating_add(turn.cached);
        self.cost = self.cost.zip(turn.cost).map(|(sum, cost)| sum.plus(cost));
    }

    /// All tokens.
    pub(crate) fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// The same in few letters: `12.3k tokens · $0.0125`.
    pub(crate) fn brief(&self, is_recorded: bool) -> String {
        let tokens = match self.tokens() {
            tokens @ 0..10_000 => format!("{tokens} tokens"),
            tokens => format!("{}.{}k tokens", tokens / 1000, tokens % 1000 / 100),
        };
        match self.cost {
            Some(cost) if !is_recorded => format!("{tokens} · ${cost}"),
            _ => tokens,
        }
    }

    /// Tokens and money; of a recorded model, tokens alone.
    pub(crate) fn told(&self, is_recorded: bool) -> Vec<String> {
        let cached = match self.cached {
            0 => String::new(),
            cached => format!(" ({cached} cached)"),
        };
        let tokens = format!("{} tokens in{cached}, {} out", self.input, self.output);
        let cost = match self.cost {
            _ if is_recorded => None,
            Some(cost) => Some(format!("${cost}")),
            None => Some("price unknown".to_owned()),
        };
        [Some(tokens), cost].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_and_money_are_summed_and_an_unknown_price_stays_unknown() {
        let cost = |micros| Some(Usd::from_micros(micros));
        let mut used = Used::default();
        used.add(&Used::of_turn(1_000, 50, 0, cost(3_750)));
        used.add(&Used::of_turn(2_000, 50, 900, cost(4_000)));
        assert_eq!(used.told(false), ["3000 tokens in (900 cached), 100 out", "$0.00775"]);
        assert_eq!(used.told(true), ["3000 tokens in (900 cached), 100 out"]);
        used.add(&Used::of_turn(1, 1, 0, None));
        assert_eq!(used.told(false), ["3001 tokens in (900 cached), 101 out", "price unknown"]);
    }
}
