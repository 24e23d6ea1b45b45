//! YAML as a tree that knows where each of its values stands.
//!
//! A strict subset: one document, no anchors, aliases, merge keys or foreign tags; `true` and
//! `false` are the only booleans. Reading by hand from the tree, instead of deriving it, lets every
//! error name the place, the field and what was expected there.
//!
//! **Invariant.** Nothing in a file is skipped: `Node::fields` refuses each key that it was not
//! told of.

use std::fmt;
use std::ops::Range;

use fluffy_base::Excerpt;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};
use serde_saphyr::{Error, Location, MessageFormatter, Options, Spanned, UserMessageFormatter};

/// How much of a file's own text an error repeats.
const EXCERPT_CHARS: usize = 100;

/// How deep lists and mappings may be nested.
const MAX_DEPTH: usize = 16;

/// Why a text is not a policy, and where.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("{file}:{line}:{column}: {problem}")]
pub struct PolicyError {
    /// The name under which the text was given.
    pub file: String,
    /// Line of the text, from 1.
    pub line: u64,
    /// Column of the line in characters, from 1.
    pub column: u64,
    /// What is wrong there.
    pub problem: PolicyProblem,
}

/// What is wrong with a policy file.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum PolicyProblem {
    /// More text than a policy can need.
    #[error("the file has {bytes} bytes, a policy has at most {max}")]
    TooLarge {
        /// The file's size.
        bytes: usize,
        /// The most that is read.
        max: usize,
    },
    /// Not YAML, or YAML beyond the subset that policies are written in.
    #[error("{0}")]
    Syntax(String),
    /// A key that stands twice in one mapping.
    #[error("key `{key}` stands twice")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A key that means nothing here.
    #[error("unknown key `{key}`: {advice}")]
    UnknownKey {
        /// The key with the keys above it.
        key: String,
        /// The nearest key that means something, or all of them.
        advice: String,
    },
    /// A key that has to be there and is not.
    #[error("`{key}` is missing: {why}")]
    Missing {
        /// The key with the keys above it.
        key: String,
        /// What it is needed for.
        why: String,
    },
    /// A value of the wrong type or kind.
    #[error("`{field}` must be {expected}, not {found}")]
    Expected {
        /// The key with the keys above it.
        field: String,
        /// What should stand there.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// An example that the rules do not bear out.
    #[error("{0}")]
    Example(String),
    /// A value of the right type that means nothing.
    #[error("`{field}` cannot be {found}: {why}")]
    Invalid {
        /// The key with the keys above it.
        field: String,
        /// What stands there.
        found: String,
        /// Why it will not do.
        why: String,
    },
}

/// A place in a text, and what is wrong there.
#[derive(Debug)]
pub struct Problem {
    /// Line of the text, from 1.
    pub line: u64,
    /// Column of the line in characters, from 1.
    pub column: u64,
    /// What is wrong there.
    pub what: PolicyProblem,
}

/// A value and where it begins.
#[derive(Debug)]
pub struct Node {
    at: Location,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

/// A value with the name of the field in which it stands.
#[derive(Debug)]
pub struct Field<'a> {
    pub(crate) name: String,
    pub(crate) node: &'a Node,
}

/// One member of a mapping.
#[derive(Debug)]
pub struct Member<'a> {
    /// Its key.
    pub key: &'a str,
    /// Where the key stands: line and column, from 1.
    pub place: (u64, u64),
    /// Its value.
    pub value: Field<'a>,
}

/// Reads one YAML document.
pub fn parse(text: &str) -> Result<Node, Problem> {
    let node: Node =
        serde_saphyr::from_str_with_options(text, options()).map_err(|error| problem(&error))?;
    node.check_numbers(text)?;
    Ok(node)
}

impl Node {
    /// What it says, without where: for telling whether two texts say the same.
    pub(crate) fn said(&self) -> serde_json::Value {
        use serde_json::Value;
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Integer(value) => Value::from(format!("integer {value}")),
            Kind::Float(value) => Value::from(format!("float {value}")),
            Kind::Text(text) => Value::from(format!("text {text}")),
            Kind::List(items) => items.iter().map(Self::said).collect(),
            Kind::Map(members) => {
                members.iter().map(|(key, node)| (key.said().to_string(), node.said())).collect()
            }
        }
    }

    /// The value as a whole file.
    pub fn root(&self) -> Field<'_> {
        Field { name: String::new(), node: self }
    }
}

impl<'a> Field<'a> {
    /// The values of a mapping that may have the keys `known`, in that order.
    pub fn fields<const N: usize>(
        &self,
        known: [&'static str; N],
    ) -> Result<[Option<Field<'a>>; N], Problem> {
        let Kind::Map(members) = &self.node.kind else {
            let expected = format!("a mapping with the keys {}", listed(&known));
            return Err(self.expected(&expected));
        };
        let mut found = [const { None }; N];
        for (key, node) in members {
            let Kind::Text(text) = &key.kind else {
                let key = Field { name: self.child("?"), node: key };
                return Err(key.expected("a key in words"));
            };
            let name = self.child(text);
            let place = known.iter().zip(&mut found).find(|(known, _)| *known == text);
            match place {
                Some((_, slot)) => *slot = Some(Field { name, node }),
                None => return Err(key.problem(unknown_key(&name, text, &known))),
            }
        }
        Ok(found)
    }

    /// The items of a list of texts.
    pub fn texts(&self) -> Result<Vec<(Field<'a>, &'a str)>, Problem> {
        let Kind::List(items) = &self.node.kind else {
            return Err(self.expected("a list of texts, such as `[user, model]`"));
        };
        let named = |(index, node)| {
            let item = Field { name: format!("{}[{index}]", self.name), node };
            let text = item.text()?;
            Ok((item, text))
        };
        items.iter().enumerate().map(named).collect()
    }

    /// The items of a list.
    pub fn items(&self, expected: &str) -> Result<Vec<Field<'a>>, Problem> {
        let Kind::List(items) = &self.node.kind else { return Err(self.expected(expected)) };
        let named = |(index, node)| Field { name: format!("{}[{index}]", self.name), node };
        Ok(items.iter().enumerate().map(named).collect())
    }

    /// A text, or the items of a list of texts.
    pub(crate) fn one_or_more(&self) -> Result<Vec<(Field<'a>, &'a str)>, Problem> {
        match &self.node.kind {
            Kind::List(_) => self.texts(),
            Kind::Text(text) => {
                Ok(vec![(Field { name: self.name.clone(), node: self.node }, text)])
            }
            Kind::Null | Kind::Bool(_) | Kind::Integer(_) | Kind::Float(_) | Kind::Map(_) => {
                Err(self.expected("a text or a list of texts"))
            }
        }
    }

    /// The members of a mapping whose keys are the author's.
    pub fn members(&self, expected: &str) -> Result<Vec<(&'a str, Field<'a>)>, Problem> {
        let Kind::Map(members) = &self.node.kind else { return Err(self.expected(expected)) };
        let member = |(key, node): &'a (Node, Node)| {
            let Kind::Text(text) = &key.kind else {
                let key = Field { name: self.child("?"), node: key };
                return Err(key.expected("a key in words"));
            };
            Ok((text.as_str(), Field { name: self.child(text), node }))
        };
        members.iter().map(member).collect()
    }

    /// The members of a mapping with their places; nothing if it is none, or has keys that are no words.
    pub fn placed_members(&self) -> Option<Vec<Member<'a>>> {
        let Kind::Map(members) = &self.node.kind else { return None };
        let member = |(key, node): &'a (Node, Node)| {
            let Kind::Text(text) = &key.kind else { return None };
            let place = (key.at.line().max(1), key.at.column().max(1));
            Some(Member { key: text, place, value: Field { name: self.child(text), node } })
        };
        members.iter().map(member).collect()
    }

    /// The value as JSON. Keys are texts; a number is an integer, or a float that JSON can write.
    pub fn json(&self) -> Result<serde_json::Value, Problem> {
        use serde_json::{Number, Value};
        Ok(match &self.node.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Integer(value) => {
                let small = i64::try_from(*value).map_err(|_| self.invalid(&"it is too large"))?;
                Value::from(small)
            }
            Kind::Float(value) => {
                let number = Number::from_f64(*value);
                Value::Number(number.ok_or_else(|| self.invalid(&"it is no number of JSON"))?)
            }
            Kind::Text(text) => Value::from(text.as_str()),
            Kind::List(_) => {
                self.items("a list")?.iter().map(Self::json).collect::<Result<_, _>>()?
            }
            Kind::Map(_) => {
                let members = self.members("a mapping")?.into_iter();
                members
                    .map(|(key, field)| Ok((key.to_owned(), field.json()?)))
                    .collect::<Result<_, _>>()?
            }
        })
    }

    /// Whether nothing stands there.
    pub fn is_empty(&self) -> bool {
        matches!(self.node.kind, Kind::Null)
    }

    /// A text, number or boolean as it would be typed.
    pub fn scalar(&self) -> Option<String> {
        match &self.node.kind {
            Kind::Bool(value) => Some(value.to_string()),
            Kind::Integer(value) => Some(value.to_string()),
            Kind::Float(value) => Some(value.to_string()),
            Kind::Text(text) => Some(text.clone()),
            Kind::Null | Kind::List(_) | Kind::Map(_) => None,
        }
    }

    /// The bytes of the text that the value begins with; of a text or a number, all of them.
    pub fn bytes(&self) -> Option<Range<usize>> {
        let span = self.node.at.span();
        let start = usize::try_from(span.byte_offset()?).ok()?;
        Some(start..start.checked_add(usize::try_from(span.byte_len()?).ok()?)?)
    }

    /// The value under a key, where there is one.
    pub(crate) fn member(&self, wanted: &str) -> Option<Field<'a>> {
        let members = self.members("").ok()?;
        members.into_iter().find(|(key, _)| *key == wanted).map(|(_, field)| field)
    }

    /// `true` or `false`.
    pub(crate) fn flag(&self) -> Result<bool, Problem> {
        match &self.node.kind {
            Kind::Bool(value) => Ok(*value),
            _ => Err(self.expected("`true` or `false`")),
        }
    }

    /// Whether it is a text.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self.node.kind, Kind::Text(_))
    }

    /// Where it stands: line and column, from 1.
    pub fn place(&self) -> (u64, u64) {
        (self.node.at.line().max(1), self.node.at.column().max(1))
    }

    /// A key that has to be there and is not.
    pub fn missing(&self, key: &str, why: &str) -> Problem {
        let key = excerpt(&self.child(key));
        self.node.problem(PolicyProblem::Missing { key, why: why.to_owned() })
    }

    /// An integer.
    pub fn integer(&self, expected: &str) -> Result<i128, Problem> {
        match &self.node.kind {
            Kind::Integer(n) => Ok(*n),
            _ => Err(self.expected(expected)),
        }
    }

    /// A text or a bare integer, as it would be typed: a quantity that may have a unit.
    pub(crate) fn quantity(&self, expected: &str) -> Result<String, Problem> {
        match &self.node.kind {
            Kind::Integer(n) => Ok(n.to_string()),
            Kind::Text(text) => Ok(text.clone()),
            _ => Err(self.expected(expected)),
        }
    }

    /// The value is of the wrong type.
    pub fn expected(&self, expected: &str) -> Problem {
        let field = if self.name.is_empty() { "policy" } else { &self.name };
        self.node.problem(PolicyProblem::Expected {
            field: excerpt(field),
            expected: expected.to_owned(),
            found: self.node.found(),
        })
    }

    /// The value has the right type and no meaning.
    pub fn invalid(&self, why: &dyn fmt::Display) -> Problem {
        self.node.problem(PolicyProblem::Invalid {
            field: excerpt(&self.name),
            found: self.node.found(),
            why: why.to_string(),
        })
    }

    /// A text.
    pub fn text(&self) -> Result<&'a str, Problem> {
        match &self.node.kind {
            Kind::Text(text) => Ok(text),
            Kind::Bool(_) | Kind::Integer(_) | Kind::Float(_) => {
                Err(self.expected("a text (quote it if it is a name)"))
            }
            Kind::Null | Kind::List(_) | Kind::Map(_) => Err(self.expected("a text")),
        }
    }

    fn child(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }
}

impl Node {
    fn problem(&self, what: PolicyProblem) -> Problem {
        Problem { line: self.at.line().max(1), column: self.at.column().max(1), what }
    }

    /// Refuses integers that are not written as they are read, such as `0x10` or `1_000`.
    fn check_numbers(&self, text: &str) -> Result<(), Problem> {
        match &self.kind {
            Kind::Null | Kind::Bool(_) | Kind::Float(_) | Kind::Text(_) => Ok(()),
            Kind::Integer(number) => self.check_number(*number, self.written(text)),
            Kind::List(items) => items.iter().try_for_each(|item| item.check_numbers(text)),
            Kind::Map(members) => members.iter().try_for_each(|(key, value)| {
                key.check_numbers(text)?;
                value.check_numbers(text)
            }),
        }
    }

    fn check_number(&self, number: i128, written: Option<&str>) -> Result<(), Problem> {
        let written = written.unwrap_or("?");
        if written == number.to_string() {
            return Ok(());
        }
        let written = excerpt(written);
        let what = format!("write {number} instead of `{written}`: numbers are decimal");
        Err(self.problem(PolicyProblem::Syntax(what)))
    }

    fn written<'t>(&self, text: &'t str) -> Option<&'t str> {
        text.get(self.root().bytes()?)
    }

    fn found(&self) -> String {
        match &self.kind {
            Kind::Null => "empty".to_owned(),
            Kind::Bool(value) => format!("the boolean {value}"),
            Kind::Integer(value) => format!("the number {value}"),
            Kind::Float(value) => format!("the number {value:?}"),
            Kind::Text(text) => format!("`{}`", excerpt(text)),
            Kind::List(_) => "a list".to_owned(),
            Kind::Map(_) => "a mapping".to_owned(),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::<Kind>::deserialize(deserializer)?;
        Ok(Self { at: referenced, kind: value })
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyKind)
    }
}

struct AnyKind;

impl<'de> Visitor<'de> for AnyKind {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, a boolean, a list or a mapping")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Kind, E> {
        Ok(Kind::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Kind, E> {
        Ok(Kind::Integer(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Kind, E> {
        Ok(Kind::Integer(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Kind, E> {
        Ok(Kind::Float(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Kind, E> {
        Ok(Kind::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Kind, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Kind::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Kind, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Kind::Map(members))
    }
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_anchors: 0,
            max_aliases: 0,
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH + 1,
            max_documents: 1,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        ignore_binary_tag_for_string: true,
        reject_unsupported_tags: true,
        emit_comments: false,
        with_snippet: false,
    }
}

fn problem(error: &Error) -> Problem {
    let error = error.without_snippet();
    let place = error.location().unwrap_or(Location::UNKNOWN);
    let what = match error {
        Error::DuplicateMappingKey { key, .. } => {
            let key = excerpt(key.as_deref().unwrap_or("?"));
            PolicyProblem::DuplicateKey { key }
        }
        Error::Budget { breach, .. } => PolicyProblem::Syntax(over_budget(breach)),
        Error::UnknownAnchor { .. } => PolicyProblem::Syntax(NO_ANCHORS.to_owned()),
        Error::MergeKeyNotAllowed { .. } => {
            PolicyProblem::Syntax("merge keys (`<<`) have no place here".to_owned())
        }
        Error::MultipleDocuments { .. } => {
            PolicyProblem::Syntax("a file is one document, and here begins a second".to_owned())
        }
        other => PolicyProblem::Syntax(excerpt(&UserMessageFormatter.format_message(other))),
    };
    // An error without a place concerns the whole text.
    Problem { line: place.line().max(1), column: place.column().max(1), what }
}

const NO_ANCHORS: &str = "anchors and aliases have no place here: write the value out";

fn over_budget(breach: &serde_saphyr::budget::BudgetBreach) -> String {
    use serde_saphyr::budget::BudgetBreach;
    match breach {
        BudgetBreach::Anchors { .. } | BudgetBreach::Aliases { .. } => NO_ANCHORS.to_owned(),
        BudgetBreach::Depth { .. } => format!("nested deeper than {MAX_DEPTH} levels"),
        BudgetBreach::Documents { .. } => "a file is one document".to_owned(),
        _ => "more than such a file can need".to_owned(),
    }
}

fn excerpt(text: &str) -> String {
    Excerpt::new(text, EXCERPT_CHARS).to_string()
}

fn unknown_key(name: &str, key: &str, known: &[&'static str]) -> PolicyProblem {
    let advice = match nearest(key, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("expected {}", listed(known)),
    };
    PolicyProblem::UnknownKey { key: excerpt(name), advice }
}

fn listed(known: &[&str]) -> String {
    let quoted: Vec<_> = known.iter().map(|key| format!("`{key}`")).collect();
    quoted.join(", ")
}

/// The candidate that `word` most likely was meant to be, if any is near enough to be a slip.
pub fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(64).flat_map(char::to_lowercase).collect();
    candidates
        .iter()
        .map(|candidate| (distance(&word, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(3))
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many characters must be put in, taken out or replaced to get from one word to the other.
fn distance(word: &[char], candidate: &str) -> usize {
    let mut row: Vec<usize> = (0..=word.len()).collect();
    for (above, wanted) in candidate.chars().enumerate() {
        let mut diagonal = above;
        let mut left = above + 1;
        let mut next = Vec::with_capacity(row.len());
        next.push(left);
        for (given, up) in word.iter().zip(row.iter().skip(1)) {
            left = (left + 1).min(up + 1).min(diagonal + usize::from(*given != wanted));
            diagonal = *up;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_of_two_words_counts_their_differences() {
        let distance = |a: &str, b: &str| distance(&a.chars().collect::<Vec<_>>(), b);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("same", "same"), 0);
    }

    #[test]
    fn a_slip_is_recognised_and_a_different_word_is_not() {
        let known = ["allowed_actors", "allowed_tools"];
        assert_eq!(nearest("allowed_tool", &known), Some("allowed_tools"));
        assert_eq!(nearest("Allowed-Tools", &known), Some("allowed_tools"));
        assert_eq!(nearest("budget", &known), None);
        assert_eq!(nearest(&"x".repeat(10_000), &known), None);
    }
}
