//! JSON as a value with exactly one spelling.
//!
//! [`Json`] is what every parameter, result and detail is made of: parsed strictly, normalised and
//! encoded once. What is checked, hashed, executed and recorded is therefore one and the same value.
//!
//! **Invariant.** Two `Json` values are equal exactly when their RFC 8785 texts are equal. No value
//! holds a number that its canonical text would change, a duplicate key or more than [`MAX_DEPTH`]
//! levels.

use std::cell::Cell;
use std::fmt;

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserializer, Serialize, Serializer};
use serde_json::{Map, Number, Value};

/// How deep arrays and objects may be nested.
pub const MAX_DEPTH: usize = 64;

/// The largest integer up to which every integer is exact in JSON's number type (2^53 − 1).
const MAX_SAFE: u64 = (1 << 53) - 1;

/// Why a text or a value is not acceptable JSON.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum JsonError {
    /// Not JSON, or JSON with a duplicate key, a number that is not exact, or too many levels.
    #[error("{problem} (line {line}, column {column})")]
    Syntax {
        /// What is wrong, in words.
        problem: String,
        /// Line of the text, from 1.
        line: usize,
        /// Column of the line, from 1.
        column: usize,
    },
    /// Not UTF-8.
    #[error("the text is not UTF-8: byte {position} is not part of a character")]
    Encoding {
        /// Offset of the first wrong byte.
        position: usize,
    },
    /// A value built in memory that breaks the rules for values.
    #[error("{0}")]
    Value(String),
}

/// A normalised JSON value together with its canonical text.
#[derive(Clone)]
pub struct Json {
    value: Value,
    canonical: String,
}

impl Json {
    /// An object without members.
    pub fn empty_object() -> Self {
        Self { value: Value::Object(Map::new()), canonical: "{}".to_owned() }
    }

    /// Normalises a value that was built in memory.
    pub fn new(value: Value) -> Result<Self, JsonError> {
        let value = normalise(value, 0).map_err(JsonError::Value)?;
        let canonical = serde_json_canonicalizer::to_string(&value)
            .map_err(|error| JsonError::Value(error.to_string()))?;
        Ok(Self { value, canonical })
    }

    /// Reads one JSON text; anything after it but white space is an error.
    pub fn parse(text: &[u8]) -> Result<Self, JsonError> {
        Self::new(parse_strict(text)?)
    }

    /// The same for what a stranger wrote: of at most so many values and members, since a few bytes of text can be a
    /// hundred times as many in memory.
    pub fn parse_within(text: &[u8], max_values: usize) -> Result<Self, JsonError> {
        Self::new(parse_bounded(text, max_values)?)
    }

    /// The value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The members, if the value is an object.
    pub fn as_object(&self) -> Option<&Map<String, Value>> {
        self.value.as_object()
    }

    /// The RFC 8785 text: the bytes that are hashed, measured and kept.
    pub fn canonical(&self) -> &str {
        &self.canonical
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.canonical == other.canonical
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.canonical)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

/// Reads a JSON text without forgiving duplicate keys, inexact numbers or deep nesting.
pub(crate) fn parse_strict(text: &[u8]) -> Result<Value, JsonError> {
    parse_bounded(text, usize::MAX)
}

/// The same, with a limit on how many values and members there may be: a few bytes of text can be a hundred
/// times as many in memory.
pub(crate) fn parse_bounded(text: &[u8], max_values: usize) -> Result<Value, JsonError> {
    let text = std::str::from_utf8(text)
        .map_err(|error| JsonError::Encoding { position: error.valid_up_to() })?;
    let mut reader = serde_json::Deserializer::from_str(text);
    let left = Cell::new(max_values);
    let value = Strict { depth: 0, left: &left }.deserialize(&mut reader).map_err(syntax)?;
    reader.end().map_err(syntax)?;
    Ok(value)
}

fn syntax(error: serde_json::Error) -> JsonError {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let place = format!(" at line {line} column {column}");
    let problem = text.strip_suffix(&place).unwrap_or(&text).to_owned();
    JsonError::Syntax { problem, line, column }
}

fn too_deep(depth: usize) -> Result<usize, String> {
    if depth < MAX_DEPTH {
        Ok(depth + 1)
    } else {
        Err(format!("nested deeper than {MAX_DEPTH} levels"))
    }
}

fn normalise(value: Value, depth: usize) -> Result<Value, String> {
    Ok(match value {
        Value::Null | Value::Bool(_) | Value::String(_) => value,
        Value::Number(number) => Value::Number(exact(&number)?),
        Value::Array(items) => {
            let depth = too_deep(depth)?;
            Value::Array(items.into_iter().map(|v| normalise(v, depth)).collect::<Result<_, _>>()?)
        }
        Value::Object(members) => {
            let depth = too_deep(depth)?;
            let normal = |(key, v)| normalise(v, depth).map(|v| (key, v));
            Value::Object(members.into_iter().map(normal).collect::<Result<_, _>>()?)
        }
    })
}

/// The one representation of a number: an integer where it is a safe one, else a double.
fn exact(number: &Number) -> Result<Number, String> {
    if let Some(n) = number.as_i64() {
        return integer(i128::from(n));
    }
    if let Some(n) = number.as_u64() {
        return integer(i128::from(n));
    }
    number.as_f64().map_or_else(|| Err(format!("number {number} is not a number")), double)
}

/// Beyond the safe range an integer is a double, and only where the double's canonical text is the
/// integer again: then writing and reading change nothing.
fn integer(n: i128) -> Result<Number, String> {
    if n.unsigned_abs() <= u128::from(MAX_SAFE) {
        let n = i64::try_from(n).map_err(|e| e.to_string())?;
        return Ok(Number::from(n));
    }
    let as_double = n as f64;
    if serde_json_canonicalizer::to_string(&as_double).is_ok_and(|text| text == n.to_string()) {
        return double(as_double);
    }
    Err(format!("number {n} cannot be kept exactly: integers go up to ±{MAX_SAFE}"))
}

fn double(n: f64) -> Result<Number, String> {
    if n.trunc() == n && n.abs() <= MAX_SAFE as f64 {
        return Ok(Number::from(n as i64));
    }
    Number::from_f64(n).ok_or_else(|| format!("number {n} is not finite"))
}

/// Builds a [`Value`] and refuses what `serde_json` would forgive.
#[derive(Clone, Copy)]
struct Strict<'a> {
    depth: usize,
    /// How many values there may still be.
    left: &'a Cell<usize>,
}

impl Strict<'_> {
    /// What is to be read one level further down.
    fn below<E: de::Error>(self) -> Result<Self, E> {
        Ok(Self { depth: too_deep(self.depth).map_err(E::custom)?, ..self })
    }

    fn count<E: de::Error>(self) -> Result<Self, E> {
        let left = self.left.get().checked_sub(1).ok_or_else(|| E::custom("too many values"))?;
        self.left.set(left);
        Ok(self)
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, b: bool) -> Result<Value, E> {
        Ok(Value::Bool(b))
    }

    fn visit_i64<E: de::Error>(self, n: i64) -> Result<Value, E> {
        integer(i128::from(n)).map(Value::Number).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, n: u64) -> Result<Value, E> {
        integer(i128::from(n)).map(Value::Number).map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, n: f64) -> Result<Value, E> {
        double(n).map(Value::Number).map_err(E::custom)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(below)? {
            below.count()?;
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if members.contains_key(&key) {
                let key = crate::text::Excerpt::new(&key, 100);
                return Err(de::Error::custom(format!("key `{key}` stands twice")));
            }
            members.insert(key, map.next_value_seed(below)?);
            below.count()?;
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn canonical(text: &str) -> String {
        Json::parse(text.as_bytes()).unwrap().canonical().to_owned()
    }

    fn refusal(text: &[u8]) -> String {
        Json::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn one_number_has_one_spelling() {
        assert_eq!(canonical("[1, 1.0, 1e0, -0, -0.0, 0.0]"), "[1,1,1,0,0,0]");
        assert_eq!(canonical("[1e16, 10000000000000000]"), "[10000000000000000,10000000000000000]");
        assert_eq!(canonical("[2.5, 1e-07, 1E21]"), "[2.5,1e-7,1e+21]");
    }

    #[test]
    fn a_large_double_is_read_back_from_its_canonical_text() {
        let json = Json::new(json!([-4.014136263782174e17])).unwrap();
        assert_eq!(canonical(json.canonical()), json.canonical());
    }

    #[test]
    fn keys_are_sorted_and_strings_have_one_spelling() {
        let text = "{\"b\":1,\"\\u00e9\":2,\"a\":\"\\u0041\\/\\u001f\"}";
        assert_eq!(canonical(text), "{\"a\":\"A/\\u001f\",\"b\":1,\"é\":2}");
    }

    #[test]
    fn lesson_l10_values_that_differ_never_share_a_text() {
        assert_ne!(canonical("[true]"), canonical("[1]"));
        assert_ne!(canonical("{\"1\":0}"), canonical("{\"01\":0}"));
        assert_ne!(canonical("[null]"), canonical("[\"null\"]"));
    }

    #[test]
    fn lesson_l10_what_is_no_json_value_is_refused() {
        assert!(refusal(b"{\"a\":NaN}").starts_with("expected value"));
        assert!(refusal(b"[1e400]").contains("out of range"));
        assert_eq!(refusal(b"{\"a\":1,\"a\":1}"), "key `a` stands twice (line 1, column 10)");
        let inexact = refusal(b"[9007199254740993]");
        assert!(inexact.contains("9007199254740993 cannot be kept exactly"), "{inexact}");
        assert!(refusal(b"\"\xff\"").contains("byte 1"));
        assert!(refusal(b"{} {}").contains("trailing characters"));
        assert!(Json::new(json!([u64::MAX])).is_err());
    }

    #[test]
    fn ten_thousand_levels_are_refused_without_recursion() {
        let text = "[".repeat(10_000) + &"]".repeat(10_000);
        assert!(refusal(text.as_bytes()).contains("nested deeper than 64 levels"));
        let fits = "[".repeat(MAX_DEPTH) + &"]".repeat(MAX_DEPTH);
        assert_eq!(canonical(&fits), fits);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i32>().prop_map(|n| json!(n)),
            any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(|n| json!(n)),
            "\\PC*".prop_map(Value::String),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
                prop::collection::hash_map("\\PC{0,6}", inner, 0..5)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn reading_the_canonical_text_gives_the_same_value(value in any_json()) {
            if let Ok(json) = Json::new(value) {
                let again = Json::parse(json.canonical().as_bytes()).unwrap();
                prop_assert_eq!(again.value(), json.value());
                prop_assert_eq!(again, json);
            }
        }

        #[test]
        fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Json::parse(&bytes);
        }
    }
}
