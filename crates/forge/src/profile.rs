//! How a language's skills are checked, as data: which programs look at them, and how what they say is read.
//!
//! **Invariant.** A profile is part of this program. Nothing of a project changes what a gate runs.

use std::collections::BTreeMap;
use std::ffi::OsString;

use serde::Deserialize;

/// The profile of Python, as it is shipped.
const PYTHON: &str = include_str!("../profiles/python.yaml");

/// How skills in one language are checked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The language.
    pub language: String,
    /// How it is written.
    pub lint: Check,
    /// Whether its types hold.
    pub types: Check,
    /// Whether its tests pass.
    pub tests: Check,
}

/// A program that looks at a skill.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The program, with words to fill in.
    pub program: String,
    /// Its arguments, with words to fill in; `{files}` is as many arguments as there are files.
    pub args: Vec<String>,
    /// Variables that it gets.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// What it prints.
    pub report: Report,
    /// How long it may take.
    pub seconds: u64,
    /// Texts that would have it look away.
    pub forbids: Vec<Forbidden>,
}

/// The form of what a program prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// An array of findings, as `ruff check --output-format=json` prints.
    Ruff,
    /// A finding a line, as `mypy --output=json` prints.
    Mypy,
    /// What became of each test, a line with a tag each, as the shipped driver prints.
    Tagged,
}

/// A text that may not stand in a skill.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forbidden {
    /// The text, in lower case and without white space, as lines are compared.
    pub text: String,
    /// The rule that is named in the finding.
    pub rule: String,
    /// Why it may not.
    pub why: String,
}

/// What stands for the words in braces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    /// One text for each word.
    pub words: BTreeMap<&'static str, String>,
    /// Every file, for `{files}`.
    pub files: Vec<String>,
}

/// Why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// It is not one.
    #[error("the profile cannot be read")]
    Parse(#[from] serde_saphyr::Error),
    /// It holds a word that nothing stands for.
    #[error("the profile holds `{0}`, which nothing stands for")]
    Word(String),
}

impl Profile {
    /// The profile of Python.
    pub fn python() -> Result<Self, ProfileError> {
        Ok(serde_saphyr::from_str(PYTHON)?)
    }
}

impl Check {
    /// The program and its arguments, filled in.
    pub fn command(&self, words: &Words) -> Result<(String, Vec<OsString>), ProfileError> {
        let mut args = Vec::new();
        for arg in &self.args {
            match arg.as_str() {
                "{files}" => args.extend(words.files.iter().map(OsString::from)),
                arg => args.push(words.fill(arg)?.into()),
            }
        }
        Ok((words.fill(&self.program)?, args))
    }
}

impl Words {
    /// A text with its words filled in, each once: what stands for a word is not looked at again.
    fn fill(&self, text: &str) -> Result<String, ProfileError> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let unknown = || ProfileError::Word(text.to_owned());
            let (word, after) = after.split_once('}').ok_or_else(unknown)?;
            filled.push_str(before);
            filled.push_str(self.words.get(word).ok_or_else(unknown)?);
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Words {
        let words = [("python", "/t/{ruff}"), ("gate", "/g"), ("base", "/b"), ("skills", "/s")];
        let more = [("ruff", "/r"), ("target", "py311"), ("cache", "/c"), ("tests", "a:b")];
        let words = words.into_iter().chain(more).map(|(word, text)| (word, text.to_owned()));
        Words { words: words.collect(), files: vec!["x".to_owned(), "{y}".to_owned()] }
    }

    #[test]
    fn the_shipped_profile_is_whole_and_its_words_are_filled_in_once() {
        let profile = Profile::python().unwrap();
        for check in [&profile.lint, &profile.types, &profile.tests] {
            check.command(&words()).unwrap();
            for forbidden in &check.forbids {
                let plain = |c: char| !c.is_whitespace() && !c.is_uppercase();
                assert!(forbidden.text.chars().all(plain), "{forbidden:?}");
            }
        }
        let (program, args) = profile.types.command(&words()).unwrap();
        assert_eq!(program, "/t/{ruff}");
        assert_eq!(args.last().unwrap(), "{y}");
        assert!(args.contains(&"--config-file=/g/mypy.ini".into()));
    }

    #[test]
    fn unknown_words_and_keys_are_refused() {
        let words = words();
        for text in ["{nothing}", "{python", "{}"] {
            assert!(matches!(words.fill(text), Err(ProfileError::Word(_))), "{text}");
        }
        let more = format!("{PYTHON}\nmore: 1\n");
        serde_saphyr::from_str::<Profile>(&more).unwrap_err();
    }
}
