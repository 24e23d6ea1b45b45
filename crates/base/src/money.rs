//! Money, counted exactly.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

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

    /// A decimal number, such as `0.5`. Digits beyond millionths are refused, not rounded.
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || part.len() > 6 || !digits(whole) || !digits(part) {
            return None;
        }
        let whole = whole.parse::<u64>().ok()?.checked_mul(1_000_000)?;
        whole.checked_add(format!("{part:0<6}").parse::<u64>().ok()?).map(Self)
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

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("not an amount of US dollars"))
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
        for (text, micros) in
            expected.iter().zip([0, 1, 12_345, 500_000, 1_250_000, 3_000_000, u64::MAX])
        {
            assert_eq!(Usd::parse(text), Some(Usd::from_micros(micros)));
        }
        let written = serde_json::to_string(&Usd::from_micros(10_000)).unwrap();
        assert_eq!(written, "\"0.01\"");
        assert_eq!(serde_json::from_str::<Usd>(&written).unwrap(), Usd::from_micros(10_000));
        assert!(serde_json::from_str::<Usd>("\"0.0000001\"").is_err());
        assert_eq!(Usd::from_micros(u64::MAX).plus(Usd::from_micros(1)).micros(), u64::MAX);
    }
}
