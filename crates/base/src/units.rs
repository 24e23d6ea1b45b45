//! Sizes and times as people write them in configuration: `4MiB`, `30s`.
//!
//! A whole number with its unit directly behind it, upper and lower case as listed. What a reader
//! could take for two things (`10kb`, `1.5h`, a time without unit) is refused.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

use crate::Excerpt;

const SHOWN_CHARS: usize = 40;

const SIZES: Scale = Scale {
    units: &[
        ("GiB", 1 << 30),
        ("GB", 1_000_000_000),
        ("MiB", 1 << 20),
        ("MB", 1_000_000),
        ("KiB", 1 << 10),
        ("KB", 1_000),
    ],
    bare: Some(1),
    names: "KiB, MiB, GiB, KB, MB, GB, or none for bytes",
};

const TIMES: Scale = Scale {
    units: &[("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)],
    bare: None,
    names: "ms, s, m, h",
};

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

/// A length of time, in whole milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

/// Why a text is not a size or a time.
///
/// The text in it is shortened and escaped, so that a terminal may show it; `units` lists what
/// exists.
#[expect(missing_docs, reason = "the fields are the same everywhere and described above")]
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum UnitError {
    /// Not digits and then letters: nothing at all, a sign, a fraction, a space.
    #[error("`{text}` is not a whole number with its unit directly behind it (units: {units})")]
    Malformed { text: String, units: &'static str },
    /// The letters behind the number are no unit.
    #[error("`{text}` has an unknown unit (units, case-sensitive: {units})")]
    UnknownUnit { text: String, units: &'static str },
    /// A bare number, whose meaning would be a guess.
    #[error("`{text}` needs a unit (units: {units})")]
    MissingUnit { text: String, units: &'static str },
    /// More than 64 bits can count.
    #[error("`{text}` is too large")]
    TooLarge { text: String },
}

/// The units of one quantity.
struct Scale {
    /// Largest first, each with what one of it counts.
    units: &'static [(&'static str, u64)],
    /// What a number without unit counts, if that has a meaning.
    bare: Option<u64>,
    names: &'static str,
}

impl Scale {
    fn read(&self, text: &str) -> Result<u64, UnitError> {
        let (shown, units) = (|| Excerpt::new(text, SHOWN_CHARS).to_string(), self.names);
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at_checked(digits).unwrap_or_default();
        if number.is_empty() || !unit.chars().all(char::is_alphabetic) {
            return Err(UnitError::Malformed { text: shown(), units });
        }
        let one = if unit.is_empty() {
            self.bare.ok_or_else(|| UnitError::MissingUnit { text: shown(), units })?
        } else {
            let known = self.units.iter().find(|(name, _)| *name == unit);
            known.ok_or_else(|| UnitError::UnknownUnit { text: shown(), units })?.1
        };
        let number: Option<u64> = number.parse().ok();
        number
            .and_then(|number| number.checked_mul(one))
            .ok_or_else(|| UnitError::TooLarge { text: shown() })
    }

    /// The value in the largest unit that holds it exactly; nothing if it is zero or none does.
    fn write(&self, value: u64) -> Option<String> {
        let fits = |(_, one): &&(&str, u64)| value != 0 && value.is_multiple_of(*one);
        self.units.iter().find(fits).map(|(name, one)| format!("{}{name}", value / one))
    }
}

impl ByteSize {
    /// A size of so many bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// How many bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl Span {
    /// A time of so many milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// How many milliseconds.
    pub const fn ms(self) -> u64 {
        self.0
    }

    /// The same time in the standard library's type.
    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl FromStr for ByteSize {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        SIZES.read(text).map(Self)
    }
}

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        TIMES.read(text).map(Self)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&SIZES.write(self.0).unwrap_or_else(|| self.0.to_string()))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&TIMES.write(self.0).unwrap_or_else(|| "0s".to_owned()))
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Quantity(&SIZES)).map(Self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Quantity(&TIMES)).map(Self)
    }
}

/// Reads a number as the text it stands for, so that both are judged in one place.
struct Quantity(&'static Scale);

impl de::Visitor<'_> for Quantity {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number with a unit ({})", self.0.names)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
        self.0.read(text).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<u64, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<u64, E> {
        self.visit_str(&number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(text: &str) -> Result<u64, UnitError> {
        text.parse().map(ByteSize::bytes)
    }

    fn ms(text: &str) -> Result<u64, UnitError> {
        text.parse().map(Span::ms)
    }

    #[test]
    fn every_unit_counts_what_it_says() {
        let sizes = [
            ("7", 7),
            ("1KB", 1000),
            ("1KiB", 1024),
            ("2MB", 2_000_000),
            ("2MiB", 2_097_152),
            ("3GB", 3_000_000_000),
            ("3GiB", 3_221_225_472),
            ("0", 0),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, expected) in sizes {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for (text, expected) in [("5ms", 5), ("5s", 5000), ("5m", 300_000), ("5h", 18_000_000)] {
            assert_eq!(ms(text), Ok(expected), "{text}");
        }
        assert_eq!("5s".parse().map(Span::duration), Ok(Duration::from_secs(5)));
    }

    #[test]
    fn what_is_not_digits_and_letters_is_malformed() {
        for text in ["", "MiB", "-1", "+1", "1.5GiB", "1,5GiB", "1 MiB", " 1", "1\n", "1_000", "٣"]
        {
            assert!(matches!(bytes(text), Err(UnitError::Malformed { .. })), "{text:?}");
            assert!(matches!(ms(text), Err(UnitError::Malformed { .. })), "{text:?}");
        }
    }

    #[test]
    fn units_are_case_sensitive_and_there_are_no_others() {
        for text in ["1kb", "1Kib", "1mib", "1gb", "1B", "1K", "1TiB", "1s", "0x10"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        for text in ["1S", "1MS", "1M", "1H", "1d", "1sec", "1us", "1µs", "1KiB"] {
            assert!(matches!(ms(text), Err(UnitError::UnknownUnit { .. })), "{text}");
        }
    }

    #[test]
    fn what_64_bits_cannot_count_is_too_large() {
        let too_large = |text: &str| UnitError::TooLarge { text: text.to_owned() };
        for text in ["18446744073709551616", "18446744073709551615KiB", "17179869184GiB"] {
            assert_eq!(bytes(text), Err(too_large(text)));
        }
        assert_eq!(ms("18446744073709551615s"), Err(too_large("18446744073709551615s")));
        assert!(bytes("17179869183GiB").is_ok());
    }

    #[test]
    fn a_refusal_says_which_units_exist() {
        let refusal = |error: UnitError| error.to_string();
        assert_eq!(ms("30").map_err(refusal), Err("`30` needs a unit (units: ms, s, m, h)".into()));
        assert_eq!(
            ms("1H").map_err(refusal),
            Err("`1H` has an unknown unit (units, case-sensitive: ms, s, m, h)".into())
        );
        assert_eq!(
            bytes("1.5GiB").map_err(refusal),
            Err("`1.5GiB` is not a whole number with its unit directly behind it \
                 (units: KiB, MiB, GiB, KB, MB, GB, or none for bytes)"
                .into())
        );
    }

    #[test]
    fn a_value_is_shown_in_the_largest_unit_that_is_exact() {
        let sizes = [
            (0, "0"),
            (1023, "1023"),
            (1024, "1KiB"),
            (1000, "1KB"),
            (1 << 20, "1MiB"),
            (1_024_000, "1000KiB"),
            (5 << 30, "5GiB"),
            (1 << 40, "1024GiB"),
        ];
        for (value, expected) in sizes {
            assert_eq!(ByteSize::from_bytes(value).to_string(), expected);
        }
        for (value, expected) in [(0, "0s"), (1500, "1500ms"), (60_000, "1m"), (5_400_000, "90m")] {
            assert_eq!(Span::from_ms(value).to_string(), expected);
        }
    }

    #[test]
    fn a_size_is_read_from_a_number_or_a_text_and_a_time_from_a_text_only() {
        let size =
            |json| serde_json::from_str(json).map(ByteSize::bytes).map_err(|e| e.to_string());
        let time = |json| serde_json::from_str(json).map(Span::ms).map_err(|e| e.to_string());
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size(r#""4KiB""#), Ok(4096));
        assert_eq!(time(r#""30s""#), Ok(30_000));
        let refusal = time("30").unwrap_err();
        assert!(refusal.starts_with("`30` needs a unit (units: ms, s, m, h)"), "{refusal}");
        for other in ["-1", "1.5", "1e3", "null", "true", "[1]", "18446744073709551616"] {
            assert!(size(other).is_err(), "{other}");
            assert!(time(other).is_err(), "{other}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(
            number in any::<u64>(),
            unit in prop::sample::select(vec![1, 1000, 1024, 60_000, 1 << 20, 1 << 30]),
        ) {
            let value = number.checked_mul(unit).unwrap_or(number);
            prop_assert_eq!(bytes(&ByteSize::from_bytes(value).to_string()), Ok(value));
            prop_assert_eq!(ms(&Span::from_ms(value).to_string()), Ok(value));
        }

        #[test]
        fn no_text_makes_reading_panic(text in any::<String>(), tail in "[0-9]{0,25}[a-zA-Z]{0,4}") {
            for text in [&text, &tail] {
                let _ = (bytes(text), ms(text));
            }
        }
    }
}
