//! What may be said of a setting, and how it is read.
//!
//! **Invariant.** A text that may hold a secret is repeated in no message and shown by no command.

use std::fmt;

use fluffy_base::{Excerpt, ProjectPath, Usd};
use fluffy_kernel::Identity;
use fluffy_policy::Glob;
use fluffy_policy::yaml::{self, Field};
use serde_json::json;

use crate::providers::{Address, ProviderSpec, ProxyUrl};

/// How much of a wrong value is repeated.
const SHOWN: usize = 60;

/// What may be said of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One line of text.
    Text,
    /// A whole number within bounds.
    Count {
        /// The least.
        from: u64,
        /// The most.
        to: u64,
    },
    /// An amount of US dollars above 0.
    Dollars,
    /// One of these words, the strictest first.
    OneOf(&'static [&'static str]),
    /// Where a server is asked: sealed, or near.
    Address,
    /// Who provides a model.
    Provider,
    /// A proxy, perhaps with a login.
    Proxy,
    /// Names of hosts.
    Names,
    /// A program and its arguments.
    Command,
    /// Patterns of files.
    Globs,
    /// A file of the project.
    ProjectFile,
    /// `Name <address>`.
    Author,
    /// What a header holds; it may be a secret.
    Header,
    /// Something of a provider, in these words; it is checked where providers are read.
    Provided(&'static str),
}

/// What was said.
#[derive(Debug)]
pub(crate) enum Value {
    /// A text.
    Text(String),
    /// A number.
    Number(u64),
    /// Millionths of a US dollar.
    Dollars(u64),
    /// Texts.
    List(Vec<String>),
    /// A proxy, as it was written: it may have a login.
    Proxy(ProxyUrl),
    /// Something that nobody is shown.
    Hidden,
}

impl Kind {
    /// What is accepted, as it follows after "is not".
    pub(crate) fn wanted(self) -> String {
        match self {
            Self::Text => "one line of text".to_owned(),
            Self::Count { from, to: u64::MAX } => format!("a number from {from}"),
            Self::Count { from, to } => format!("a number from {from} to {to}"),
            Self::Dollars => "an amount of US dollars above 0, such as `0.50`".to_owned(),
            Self::OneOf(words) => {
                let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
                match quoted.split_last() {
                    Some((last, [])) => last.clone(),
                    Some((last, others)) => format!("{} or {last}", others.join(", ")),
                    None => String::new(),
                }
            }
            Self::Address => {
                "an address such as `http://localhost:8000/v1`; `http://` is for near ones"
                    .to_owned()
            }
            Self::Provider => "the name of a provider, or `replay:FILE`".to_owned(),
            Self::Proxy => "a proxy such as `http://proxy.example.org:3128`".to_owned(),
            Self::Names => "a list of hosts, such as `[a.example.org, b.example.org]`".to_owned(),
            Self::Command => "a list of words, such as `[make, test]`".to_owned(),
            Self::Globs => "a list of patterns, such as `[\"checks/**\"]`".to_owned(),
            Self::ProjectFile => "a path from the project's root".to_owned(),
            Self::Author => "written as `Name <address>`".to_owned(),
            Self::Header => "one line of ASCII".to_owned(),
            Self::Provided(words) => words.to_owned(),
        }
    }

    /// Whether it is a list.
    pub(crate) fn is_list(self) -> bool {
        match self {
            Self::Names | Self::Command | Self::Globs => true,
            Self::Text
            | Self::Count { .. }
            | Self::Dollars
            | Self::OneOf(_)
            | Self::Address
            | Self::Provider
            | Self::Proxy
            | Self::ProjectFile
            | Self::Author
            | Self::Header
            | Self::Provided(_) => false,
        }
    }

    /// Whether a value of it may hold a secret.
    pub(crate) fn is_secret(self) -> bool {
        matches!(self, Self::Proxy | Self::Header)
    }

    /// Reads what stands in a file.
    pub(crate) fn of_field(self, field: &Field<'_>) -> Result<Value, String> {
        if self.is_list() {
            let texts = field.texts().map_err(|_| format!("it is not {}", self.wanted()))?;
            return self.of_list(texts.into_iter().map(|(_, text)| text.to_owned()).collect());
        }
        let text = field.scalar().ok_or_else(|| format!("it is not {}", self.wanted()))?;
        self.of_text(&text)
    }

    /// Reads what was typed, or stands in a variable. A list is written as in a file, or with commas; a command with
    /// blanks.
    pub(crate) fn of_typed(self, text: &str) -> Result<Value, String> {
        if !self.is_list() {
            return self.of_text(text);
        }
        if text.trim_start().starts_with('[') {
            let node = yaml::parse(text).map_err(|problem| problem.what.to_string())?;
            return self.of_field(&node.root());
        }
        let words: Vec<&str> = match self {
            Self::Command => text.split_whitespace().collect(),
            _ => text.split(',').map(str::trim).collect(),
        };
        self.of_list(words.into_iter().map(str::to_owned).collect())
    }

    /// Reads one text.
    pub(crate) fn of_text(self, text: &str) -> Result<Value, String> {
        let wrong = || format!("`{}` is not {}", Excerpt::new(text, SHOWN), self.wanted());
        let plain = |fits: bool| fits.then(|| Value::Text(text.to_owned())).ok_or_else(wrong);
        let is_line = !text.trim().is_empty() && !text.chars().any(char::is_control);
        match self {
            Self::Text => plain(is_line && text.len() <= 256),
            Self::Count { from, to } => {
                let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
                let number = text.parse::<u64>().ok().filter(|_| is_plain);
                let number = number.filter(|number| (from..=to).contains(number));
                number.map(Value::Number).ok_or_else(wrong)
            }
            Self::Dollars => micros(text).map(Value::Dollars).ok_or_else(wrong),
            Self::OneOf(words) => plain(words.contains(&text)),
            Self::Address => plain(is_line && text.parse::<Address>().is_ok()),
            Self::Provider => plain(is_line && ProviderSpec::parse(text).is_ok()),
            // Not repeated: it may have a password.
            Self::Proxy => ProxyUrl::parse(text).map(Value::Proxy).map_err(|it| it.to_string()),
            Self::ProjectFile => match ProjectPath::parse(text) {
                Ok(_) => Ok(Value::Text(text.to_owned())),
                Err(error) => Err(error.to_string()),
            },
            Self::Author => plain(identity(text).is_some()),
            Self::Header => Ok(Value::Hidden),
            Self::Provided(_) => Ok(Value::Text(text.to_owned())),
            Self::Names | Self::Command | Self::Globs => Err(wrong()),
        }
    }

    /// Reads a list of texts.
    pub(crate) fn of_list(self, items: Vec<String>) -> Result<Value, String> {
        match self {
            Self::Command if items.first().is_none_or(|first| first.trim().is_empty()) => {
                return Err("it names no program".to_owned());
            }
            Self::Globs => items.iter().try_for_each(|text| {
                Glob::parse(text).map(drop).map_err(|error| error.to_string())
            })?,
            _ => {}
        }
        Ok(Value::List(items))
    }

    /// The stricter of two values: the smaller amount, the earlier word.
    pub(crate) fn is_stricter(self, one: &Value, other: &Value) -> bool {
        let rank = |value: &Value| match (self, value) {
            (_, Value::Number(amount) | Value::Dollars(amount)) => Some(*amount),
            (Self::OneOf(words), Value::Text(text)) => {
                words.iter().position(|word| word == text).map(|rank| rank as u64)
            }
            _ => None,
        };
        rank(one) < rank(other)
    }
}

/// Who is meant by `Name <address>`.
pub(crate) fn identity(text: &str) -> Option<Identity> {
    let (name, address) = text.strip_suffix('>')?.split_once('<')?;
    Identity::new(name, address)
}

/// Millionths of a dollar: `0.5` is 500,000. Digits beyond are refused, not rounded: a cap is exact.
pub(crate) fn micros(text: &str) -> Option<u64> {
    Usd::parse(text).map(Usd::micros).filter(|micros| *micros > 0)
}

impl Value {
    /// The value as JSON, without secrets.
    pub(crate) fn json(&self) -> serde_json::Value {
        match self {
            Self::Number(number) => json!(number),
            Self::List(items) => json!(items),
            Self::Text(_) | Self::Dollars(_) | Self::Proxy(_) | Self::Hidden => {
                json!(self.to_string())
            }
        }
    }
}

/// As it would be written in a file, without secrets.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
            Self::Dollars(micros) => write!(f, "{}", Usd::from_micros(*micros)),
            Self::List(items) => {
                let quoted: Vec<_> = items.iter().map(|item| written(item)).collect();
                write!(f, "[{}]", quoted.join(", "))
            }
            Self::Proxy(ProxyUrl { host, port, login }) => {
                let login = if login.is_some() { "***@" } else { "" };
                write!(f, "http://{login}{host}:{port}")
            }
            Self::Hidden => f.write_str("***"),
        }
    }
}

/// A text as YAML has it, in quotes where it could be read as something else.
pub(crate) fn written(text: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '@');
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_word = words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if begins && !is_word && text.chars().all(fits) {
        return text.to_owned();
    }
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_exact() {
        for (text, expected) in [
            ("1", Some(1_000_000)),
            ("0.5", Some(500_000)),
            ("0.000001", Some(1)),
            ("12.345678", Some(12_345_678)),
            ("1.", Some(1_000_000)),
        ] {
            assert_eq!(micros(text), expected, "{text}");
        }
        for text in
            ["", "0", "0.0", ".5", "-1", "+1", "1e3", "0.0000001", "1,5", "99999999999999999999"]
        {
            assert!(micros(text).is_none(), "{text}");
        }
    }

    #[test]
    fn what_is_read_is_what_was_meant_or_nothing() {
        let count = Kind::Count { from: 1, to: 10 };
        assert_eq!(count.of_text("10").unwrap().to_string(), "10");
        for text in ["0", "11", "-1", "+1", " 1", "1.5", "0x1", "ten", "", "٣"] {
            let told = count.of_text(text).unwrap_err();
            assert!(told.contains("a number from 1 to 10"), "{told}");
        }
        let word = Kind::OneOf(&["strict", "explore"]);
        assert_eq!(word.of_text("loose").unwrap_err(), "`loose` is not `strict` or `explore`");
        assert!(Kind::Text.of_text("two\nlines").is_err());
        assert!(Kind::Text.of_text("\u{1b}[31m").is_err());
        assert!(Kind::Command.of_list(vec![" ".to_owned()]).is_err());
        assert!(Kind::Globs.of_list(vec!["!a".to_owned()]).is_err());
        for (kind, text) in [
            (Kind::Names, "a, b"),
            (Kind::Names, "[a, b]"),
            (Kind::Command, "a b"),
            (Kind::Command, "[a, \"b\"]"),
        ] {
            assert_eq!(kind.of_typed(text).unwrap().to_string(), "[a, b]");
        }
        assert!(Kind::Command.of_typed("[a, [b]]").is_err());
        assert!(Kind::Command.of_typed("[a").is_err());
    }

    #[test]
    fn cli_4_secrets_are_never_shown() {
        let proxy = Kind::Proxy.of_text("http://ada:sk-4711@proxy:3128").unwrap();
        assert_eq!(proxy.to_string(), "http://***@proxy:3128");
        assert!(!format!("{proxy:?}{}", proxy.json()).contains("4711"));
        let header = Kind::Header.of_text("Bearer sk-4711").unwrap();
        assert_eq!(header.to_string(), "***");
        assert!(!format!("{header:?}").contains("4711"));
        for text in ["https://me:sk-4711@proxy:1", "http://me:sk-4711@proxy:0"] {
            assert!(!Kind::Proxy.of_text(text).unwrap_err().contains("4711"));
        }
    }
}
