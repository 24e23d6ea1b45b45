//! A trusted skill as the conversation sees it.

use fluffy_base::Digest;
use fluffy_forge::{Proposal, SideEffect, SkillName, Trusted};
use serde_json::Value;

/// A skill that may be planned.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// What was proposed.
    pub spec: Proposal,
    /// The entry by which it is trusted: another promotion is another skill.
    pub promotion: Digest,
}

/// Names of members that hold a text worth reading, the best first.
const TEXTS: [&str; 6] = ["summary", "text", "answer", "content", "excerpt", "result"];

impl Known {
    /// A trusted skill.
    pub fn of(trusted: Trusted) -> Self {
        Self { spec: trusted.spec, promotion: trusted.entry.entry_hash }
    }

    /// What it is called.
    pub fn name(&self) -> &SkillName {
        &self.spec.name
    }

    /// What running it can do.
    pub fn effect(&self) -> SideEffect {
        self.spec.side_effect
    }

    /// What its schema says of a member of its input.
    pub(crate) fn input(&self, name: &str) -> Option<&Value> {
        self.spec.input.get("properties")?.get(name)
    }

    /// Whether its input has a member of this name.
    pub(crate) fn takes(&self, name: &str) -> bool {
        self.input(name).is_some()
    }

    /// The way to the note that its output names: its own, or the first of a list.
    pub(crate) fn note_way(&self) -> Option<String> {
        self.way("note")
    }

    /// The way to a text of its output.
    pub(crate) fn text_way(&self) -> Option<String> {
        TEXTS.iter().find_map(|name| self.way(name))
    }

    fn way(&self, wanted: &str) -> Option<String> {
        let properties = self.spec.output.get("properties")?.as_object()?;
        let is_text = |schema: &Value| schema.get("type").and_then(Value::as_str) == Some("string");
        if properties.get(wanted).is_some_and(is_text) {
            return Some(wanted.to_owned());
        }
        let lists = properties.iter().filter_map(|(name, schema)| {
            let item = schema.get("items")?.get("properties")?.get(wanted)?;
            is_text(item).then(|| format!("{name}.0.{wanted}"))
        });
        lists.into_iter().next()
    }
}

/// The note that an output names.
pub(crate) fn note_in(output: &Value) -> Option<&str> {
    member(output, "note")
}

/// A text of an output that is worth reading.
pub(crate) fn text_in(output: &Value) -> Option<&str> {
    TEXTS.iter().find_map(|name| member(output, name))
}

/// A member of an output, or of the first item of a list in it.
fn member<'a>(output: &'a Value, name: &str) -> Option<&'a str> {
    if let Some(text) = output.get(name).and_then(Value::as_str) {
        return Some(text);
    }
    let mut lists = output.as_object()?.values().filter_map(Value::as_array);
    lists.find_map(|list| list.first()?.get(name)?.as_str())
}
