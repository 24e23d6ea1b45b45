//! A step as a tool of the kernel's.

use std::fmt::Write as _;
use std::sync::Arc;

use fluffy_base::Json;
use fluffy_kernel::{Clerk, Effect, Shape, Tool, ToolError, ToolSpec};
use serde_json::{Value, json};

use super::{StepError, Steps};
use crate::{Pinned, Proposal, Skill, SkillName, Trigger};

/// How much of a file a person is shown, in bytes.
const MAX_SHOWN: usize = 256 << 10;

/// A step as a tool. Only who ordered it through [`Steps::take`] gets anything done by it.
pub struct StepTool {
    steps: Arc<Steps>,
    step: &'static Step,
}

/// What a step is to the kernel.
struct Step {
    name: &'static str,
    summary: &'static str,
    schema: fn() -> Value,
}

/// Every step.
static STEPS: [Step; 7] = [
    Step { name: "forge.propose", summary: "Propose a skill", schema: proposing },
    Step { name: "forge.build", summary: "Have a skill built in a copy", schema: building },
    Step { name: "forge.verify", summary: "Ask the five gates about a skill", schema: named },
    Step { name: "forge.research", summary: "Look into a failure", schema: researching },
    Step { name: "forge.retry", summary: "Agree to another attempt", schema: retrying },
    Step { name: "forge.promote", summary: "Trust a skill", schema: promoting },
    Step { name: "forge.revoke", summary: "Take trust back", schema: revoking },
];

pub(super) fn all(steps: &Arc<Steps>) -> Vec<StepTool> {
    STEPS.iter().map(|step| StepTool { steps: Arc::clone(steps), step }).collect()
}

impl Tool for StepTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.step.name.into(),
            summary: self.step.summary.into(),
            schema: (self.step.schema)(),
            effect: Effect::Some,
            shape: Shape::PLAIN,
        }
    }

    fn run(&self, params: &Json, clerk: &dyn Clerk) -> Result<Value, ToolError> {
        let request = clerk.request_id();
        let done = match self.steps.ordered(request) {
            Some(wanted) if wanted.tool() == self.step.name => {
                self.steps.perform(wanted, params, clerk)
            }
            Some(_) | None => Err(StepError::Unordered),
        };
        self.steps.leave(request, done).map_err(ToolError)
    }

    fn notes(&self, params: &Json) -> Vec<String> {
        let name = params.value().get("name").and_then(Value::as_str);
        let skill = name.and_then(|name| SkillName::parse(name).ok());
        let skill = skill.and_then(|name| self.steps.options.shelf.skill(&name).ok());
        let Some(skill) = skill else { return Vec::new() };
        match self.step.name {
            "forge.promote" => self.trusting(&skill),
            "forge.retry" => retry_notes(&skill),
            _other => Vec::new(),
        }
    }
}

impl StepTool {
    /// All that a person decides about: what it may do, what the gates said, and the code itself.
    fn trusting(&self, skill: &Skill) -> Vec<String> {
        let mut notes = may_do(&skill.proposal.spec);
        let Some(verified) = skill.verification() else { return notes };
        let gates = verified.gates.iter().map(|it| format!("{} {}", it.gate, it.summary));
        notes.push(format!("gates: {}", gates.collect::<Vec<_>>().join("; ")));
        if let Some(build) = skill.last_build() {
            let attempt = &build.attempt;
            notes.push(format!("built by {}, attempt {}", attempt.builder, attempt.number));
        }
        for pinned in &verified.sealed.files {
            notes.push(format!("{} is {}", pinned.path, pinned.sha256));
        }
        // The skill itself comes first: long tests must not push it out of sight.
        let is_tests = |pinned: &&Pinned| pinned.path.as_str().contains("/tests/");
        let (tests, own): (Vec<_>, Vec<_>) = verified.sealed.files.iter().partition(is_tests);
        for pinned in own.into_iter().chain(tests) {
            let bytes = self.steps.options.shelf.artifacts().get(&pinned.sha256);
            let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            notes.push(match text {
                Ok(text) => shown(pinned.path.as_str(), &text),
                Err(error) => format!("{} cannot be shown: {error}", pinned.path),
            });
        }
        notes
    }
}

/// A file as something new, in the form that reviews show.
fn shown(path: &str, text: &str) -> String {
    let end = text.floor_char_boundary(MAX_SHOWN.min(text.len()));
    let mut diff = format!("--- /dev/null\n+++ {path}\n");
    for line in text.get(..end).unwrap_or_default().lines() {
        // Writing to a string does not fail.
        let _ok = writeln!(diff, "+{line}");
    }
    if end < text.len() {
        let _ok = writeln!(diff, "+… {} more bytes are not shown", text.len() - end);
    }
    diff
}

/// What a proposal lets a skill do, a line each.
fn may_do(spec: &Proposal) -> Vec<String> {
    let list = |items: Vec<String>| items.join(", ");
    let paths =
        |paths: &[fluffy_base::ProjectPath]| list(paths.iter().map(ToString::to_string).collect());
    let lists = [
        ("reads", paths(&spec.reads)),
        ("writes", paths(&spec.writes)),
        ("hosts", list(spec.hosts.clone())),
        ("secrets", list(spec.secrets.clone())),
    ];
    let lists = lists.into_iter().filter(|(_, items)| !items.is_empty());
    let lines = lists.map(|(what, items)| format!("{what}: {items}"));
    let model = spec.model.then(|| "asks the local model".to_owned());
    std::iter::once(format!("class: {}", spec.side_effect)).chain(lines).chain(model).collect()
}

/// Why a person is asked before the next attempt.
fn retry_notes(skill: &Skill) -> Vec<String> {
    let about = |name: &str| match Trigger::from_name(name) {
        Some(trigger) => format!("{name}: {}", trigger.about()),
        None => name.to_owned(),
    };
    skill.awaits().map(about).collect()
}

pub(super) fn closed(properties: Value, required: &[&str]) -> Value {
    json!({
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": false,
    })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn text_or_nothing() -> Value {
    json!({ "type": ["string", "null"] })
}

fn proposing() -> Value {
    closed(json!({ "spec": { "type": "object" } }), &["spec"])
}

fn building() -> Value {
    closed(json!({ "name": text(), "builder": { "type": "object" } }), &["name", "builder"])
}

fn named() -> Value {
    closed(json!({ "name": text() }), &["name"])
}

fn researching() -> Value {
    let advise = json!({ "type": "boolean" });
    let (build, hint) = (text_or_nothing(), text_or_nothing());
    let properties = json!({ "name": text(), "build": build, "hint": hint, "advise": advise });
    closed(properties, &["name", "build", "hint", "advise"])
}

fn retrying() -> Value {
    closed(json!({ "name": text(), "build": text() }), &["name", "build"])
}

fn promoting() -> Value {
    closed(json!({ "name": text(), "verification": text() }), &["name", "verification"])
}

fn revoking() -> Value {
    closed(json!({ "name": text(), "why": text() }), &["name", "why"])
}
