//! Texts that must not be seen: keys, tokens, passwords.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use zeroize::Zeroizing;

use crate::MASK;

/// A text that nothing prints, records or compares.
///
/// `Debug`, `Display` and `Serialize` give `***`; [`Secret::expose`] is the only way to the value,
/// so a search for it finds every use. The memory is overwritten on drop. There is no `Clone`: one
/// secret, one place; and no `PartialEq`, whose time would tell how much of a guess is right.
///
/// What held the text before, such as a parser's buffer, is not ours to overwrite.
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes the text over.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The value itself. Whoever calls this answers for where it goes.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text)
    }
}

/// Refuses numbers in its own words: serde's would repeat the value, which may be a PIN without its
/// quotes.
struct Text;

impl Text {
    fn refuse<E: de::Error>() -> E {
        E::custom("a secret must be a text in quotes")
    }
}

impl de::Visitor<'_> for Text {
    type Value = Secret;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text in quotes")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Secret, E> {
        Ok(Secret::new(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Secret, E> {
        Ok(Secret::new(text))
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Secret, E> {
        Err(Self::refuse())
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Secret, E> {
        Err(Self::refuse())
    }

    fn visit_u128<E: de::Error>(self, _: u128) -> Result<Secret, E> {
        Err(Self::refuse())
    }

    fn visit_i128<E: de::Error>(self, _: i128) -> Result<Secret, E> {
        Err(Self::refuse())
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Secret, E> {
        Err(Self::refuse())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_prints_a_secret() {
        let secret = Secret::new("hunter2".to_owned());
        let shown = format!("{secret} {secret:?} {secret:#?} {secret:>9} {:?}", Some(&secret));
        assert_eq!(shown, "*** *** *** *** Some(***)");
        assert_eq!(serde_json::to_string(&secret).unwrap(), r#""***""#);
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn a_secret_is_read_from_a_text() {
        let secret: Secret = serde_json::from_str(r#""h\u0075nter2""#).unwrap();
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn a_refused_secret_is_not_in_the_error() {
        for json in ["4711", "-4711", "4711.5", "47110000000000000000000", "[4711]", "{\"4711\":1}"]
        {
            let error = serde_json::from_str::<Secret>(json).unwrap_err().to_string();
            assert!(!error.contains("4711"), "{error}");
        }
    }
}
