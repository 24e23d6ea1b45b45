//! Money, counted exactly.

use std::fmt;

use serde::{Serialize, Serializer};

/// An amount of US dollars in millionths. Shown and written as a decimal number with two decimals at least:
/// `0.0123`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Usd(u64);

impl Usd {
    /// So many millionths.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// The amount in millionths.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// The sum of two.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000);
        let zeros = text.len() - text.trim_end_matches('0').len();
        f.write_str(text.get(..text.len() - zeros.min(4)).unwrap_or(&text))
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_exact_and_as_short_as_money_is_written() {
        let told = [0, 1, 12_345, 500_000, 1_250_000, 3_000_000, u64::MAX];
        let told = told.map(|micros| Usd::from_micros(micros).to_string());
        let expected =
            ["0.00", "0.000001", "0.012345", "0.50", "1.25", "3.00", "18446744073709.551615"];
        assert_eq!(told, expected);
        assert_eq!(serde_json::to_string(&Usd::from_micros(10_000)).unwrap(), "\"0.01\"");
        assert_eq!(Usd::from_micros(u64::MAX).plus(Usd::from_micros(1)).micros(), u64::MAX);
    }
}
