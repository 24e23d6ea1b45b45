//! What a conversation can refer to: the last things that it gave, each a curated part of what came out.
//!
//! **Invariant.** Anchors come from what was executed in this conversation. No record of the ledger, no file and no message
//! becomes one.

use std::collections::VecDeque;

use fluffy_base::Excerpt;
use fluffy_forge::Finished;
use serde_json::{Map, Value};

use crate::record::TalkRecord;
use crate::skill::{note_in, text_in};

/// How many anchors there are at most.
pub const MAX_ANCHORS: usize = 10;

/// The longest text of an anchor's data, in characters.
const LONGEST_MEMBER: usize = 300;
/// The longest text that is kept to be read or changed, in characters.
const LONGEST_TEXT: usize = 4_000;
/// How many items of a list are kept.
const MOST_ITEMS: usize = 5;
/// How many members of an object are kept.
const MOST_MEMBERS: usize = 20;
/// How large an input may be to be used again.
const LARGEST_INPUT: usize = 16 << 10;
/// The skill that a coding task is referred to as.
const CODE: &str = "__code__";

/// What an anchor stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnchorKind {
    /// A run that gave something.
    Execution,
    /// A run that left a file.
    Artifact,
    /// Words.
    Talk,
    /// A coding task.
    Task,
}

/// Something that can be referred to.
#[derive(Debug, Clone, PartialEq)]
pub struct Anchor {
    /// What it stands for.
    pub kind: AnchorKind,
    /// What it is, in a few words.
    pub label: String,
    /// The run, or the session, by its id.
    pub execution: String,
    /// What it follows.
    pub parent: Option<String>,
    /// Which skill gave it.
    pub skill: String,
    /// What it was given, to be given again; nothing where that is too large or had a secret in it.
    pub input: Option<Value>,
    /// Some of what came out.
    pub data: Value,
    /// The note that it is about.
    pub note: Option<String>,
    /// What it says.
    pub text: Option<String>,
}

/// The last anchors, the oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Anchors(VecDeque<Anchor>);

impl AnchorKind {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Execution => "execution",
            Self::Artifact => "artifact",
            Self::Talk => "talk",
            Self::Task => "task",
        }
    }
}

impl Anchor {
    /// What a run gave; nothing of one that failed.
    pub fn of_run(finished: &Finished) -> Option<Self> {
        let record = &finished.record;
        let output = finished.output.as_ref().filter(|_| record.success)?.value();
        let input = record.input.value.clone().filter(|_| !record.input.masked);
        let input = input.filter(|input| input.to_string().len() <= LARGEST_INPUT);
        let note = note_in(output).map(str::to_owned);
        let about = note.clone().or_else(|| said_of(input.as_ref()));
        let about = about.map(|about| format!(" ({})", Excerpt::new(&about, 60)));
        let kind = match record.files.is_empty() {
            true => AnchorKind::Execution,
            false => AnchorKind::Artifact,
        };
        Some(Self {
            kind,
            label: format!("{}{}", record.skill, about.unwrap_or_default()),
            execution: record.execution.clone(),
            parent: record.parent.clone(),
            skill: record.skill.to_string(),
            input,
            text: Some(text_in(output).map_or_else(|| output.to_string(), str::to_owned))
                .map(|text| cut(&text, LONGEST_TEXT)),
            data: curated(output, 0),
            note,
        })
    }

    /// What was said.
    pub fn of_talk(record: &TalkRecord) -> Self {
        Self {
            kind: AnchorKind::Talk,
            label: format!("{} ({})", record.skill, Excerpt::new(&record.input, 60)),
            execution: record.execution.clone(),
            parent: record.parent.clone(),
            skill: record.skill.clone(),
            input: None,
            data: Value::Null,
            note: None,
            text: Some(cut(&record.output, LONGEST_TEXT)),
        }
    }

    /// What a coding task came to.
    pub fn of_task(session: &str, task: &str, summary: &str) -> Self {
        Self {
            kind: AnchorKind::Task,
            label: format!("task ({})", Excerpt::new(task, 60)),
            execution: session.to_owned(),
            parent: None,
            skill: CODE.to_owned(),
            input: None,
            data: Value::Null,
            note: None,
            text: Some(cut(summary, LONGEST_TEXT)),
        }
    }

    /// Whether its id begins like this; what all ids of its kind begin with may be left out.
    pub fn is_run(&self, prefix: &str) -> bool {
        let bare = self.execution.split_once('-').map_or("", |(_, bare)| bare);
        self.execution.starts_with(prefix) || bare.starts_with(prefix)
    }
}

impl Anchors {
    /// Remembers one, and forgets the oldest if there are too many.
    pub fn add(&mut self, anchor: Anchor) {
        self.0.push_back(anchor);
        while self.0.len() > MAX_ANCHORS {
            self.0.pop_front();
        }
    }

    /// All of them, the newest first.
    pub fn newest(&self) -> impl Iterator<Item = &Anchor> {
        self.0.iter().rev()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// What an input is about: its first short text.
fn said_of(input: Option<&Value>) -> Option<String> {
    let members = input?.as_object()?;
    let named = ["title", "query", "note", "tag", "date", "resource"];
    let found = named.iter().find_map(|name| members.get(*name)?.as_str());
    found.map(str::to_owned)
}

/// Some of a value: what is short, and the beginning of what is long.
fn curated(value: &Value, depth: usize) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::String(text) => cut(text, LONGEST_MEMBER).into(),
        Value::Array(_) | Value::Object(_) if depth >= 3 => Value::Null,
        Value::Array(items) => {
            items.iter().take(MOST_ITEMS).map(|item| curated(item, depth + 1)).collect()
        }
        Value::Object(members) => {
            let kept = members.iter().take(MOST_MEMBERS);
            let kept = kept.map(|(name, value)| (name.clone(), curated(value, depth + 1)));
            Value::Object(kept.collect::<Map<_, _>>())
        }
    }
}

/// The beginning of a text.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
