//! What a person may want.

use fluffy_forge::SkillName;
use serde_json::Value;

/// What is wanted, with references that are not resolved yet.
#[derive(Debug, Clone, PartialEq)]
pub enum Intent {
    /// Something about the project's code: the governed session does it.
    Code,
    /// Skills, each given what is said or what is referred to.
    Skills(Vec<Wanted>),
    /// Conversation: the default.
    Talk,
    /// Something that was given before, in another form.
    Transform {
        /// What.
        of: Reference,
        /// How.
        change: Change,
    },
    /// Something about the conversation itself.
    Meta(Command),
    /// It is not clear what is wanted; this is asked back.
    Clarify {
        /// What.
        question: String,
    },
    /// It would be harmful or cannot be done. Only a model finds that.
    Unsupported {
        /// Why.
        why: String,
    },
}

/// A skill that is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Which.
    pub skill: SkillName,
    /// What it is given, by name.
    pub input: Vec<(String, Given)>,
}

/// What a skill is given.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    /// This.
    Value(Value),
    /// Something of what is referred to.
    Of(Reference, Part),
}

/// What of an anchor is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The name of the note that it is about.
    Note,
    /// Its text.
    Text,
    /// What it is called.
    Title,
}

/// What a person refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// `last`, `that`, `it`, `the result`: the newest.
    Last,
    /// `last_search`: the newest of a skill, by its name or a part of it.
    LastOf(String),
    /// `exec:ab12`: a run, by the beginning of its id.
    Run(String),
    /// What the step before gives, in the same message.
    Before,
}

/// How something is to be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The same once more.
    Again,
    /// In a few sentences.
    Summarise,
    /// With fewer words.
    Shorter,
    /// With more words.
    Longer,
    /// As the person says.
    Other(String),
}

/// A command about the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// What can be said.
    Help,
    /// Which skills are trusted.
    Skills,
    /// Whether everything is shown.
    Verbose(Option<bool>),
    /// What can be referred to.
    Anchors,
    /// What was said.
    History,
    /// Everything of the conversation is forgotten.
    Forget,
    /// Something that is no command of a conversation.
    Other(String),
}

impl Intent {
    /// The word for it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Skills(_) => "skill",
            Self::Talk => "talk",
            Self::Transform { .. } => "transform",
            Self::Meta(_) => "meta",
            Self::Clarify { .. } => "clarify",
            Self::Unsupported { .. } => "unsupported",
        }
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Last => f.write_str("last"),
            Self::LastOf(part) => write!(f, "last_{part}"),
            Self::Run(prefix) => write!(f, "exec:{prefix}"),
            Self::Before => f.write_str("the step before"),
        }
    }
}

impl Reference {
    /// The reference that a word is, if it is one that is written out: `last`, `last_search`, `exec:ab12`.
    pub fn parse(word: &str) -> Option<Self> {
        let word = word.strip_prefix("ref:").unwrap_or(word);
        if word == "last" {
            return Some(Self::Last);
        }
        if let Some(part) = word.strip_prefix("last_") {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            return (!part.is_empty() && part.chars().all(plain))
                .then(|| Self::LastOf(part.to_owned()));
        }
        let prefix = word.strip_prefix("exec:")?;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        (!prefix.is_empty() && prefix.chars().all(plain)).then(|| Self::Run(prefix.to_owned()))
    }
}
