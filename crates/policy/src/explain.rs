//! Why a request is decided as it is: every rule that looked at it, what it said, and what decided.
//!
//! **Invariant.** An explanation asks every rule, also those that a decision could do without.

use std::sync::Arc;

use crate::capabilities::Capabilities;
use crate::capability::{Action, Capability};
use crate::condition::{Reading, Target};
use crate::facts::Facts;
use crate::rule::{Decided, Opinion, Rule, decide, evaluate_all};
use crate::verdict::{Source, Verdict};

/// Why a request is decided as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What was decided.
    pub decided: Decided,
    /// What every rule said, by layer and name; the rules of the file as one.
    pub opinions: Vec<Opinion>,
    /// What each rule of the file said that names the call, in the order of the file.
    pub looks: Vec<Look>,
}

/// One rule's look at one target of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The rule.
    pub source: Source,
    /// What it looked at: a path, `.` for the root, or nothing.
    pub target: Option<String>,
    /// What it found.
    pub found: Found,
}

/// What a rule found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It applies, and says this.
    Applies(Verdict),
    /// It does not apply, because of this key of its `match`.
    Differs(&'static str),
    /// It would apply, but for an exception.
    Excepted,
}

/// Explains what these rules decide; `capabilities` is the one of them that a file has.
pub fn explain<'r>(
    rules: impl Iterator<Item = &'r dyn Rule> + Clone,
    capabilities: Option<&Arc<Capabilities>>,
    facts: &Facts<'_>,
) -> Explanation {
    Explanation {
        decided: decide(rules.clone(), facts),
        opinions: evaluate_all(rules, facts),
        looks: capabilities.map(|rules| looks(rules, facts)).unwrap_or_default(),
    }
}

fn looks(capabilities: &Capabilities, facts: &Facts<'_>) -> Vec<Look> {
    let Some(name) = facts.tool() else { return Vec::new() };
    let names_call = |rule: &&Capability| {
        let mut syscalls = rule.condition.syscalls.iter().flatten();
        syscalls.any(|syscalls| syscalls.contains(name))
    };
    let look = |rule: &Capability| {
        let look = |target| Look {
            source: rule.source.clone(),
            target: shown(target),
            found: found(rule, facts, target),
        };
        Target::of(facts).map(look).collect::<Vec<_>>()
    };
    capabilities.rules().iter().filter(names_call).flat_map(look).collect()
}

fn found(rule: &Capability, facts: &Facts<'_>, target: Target<'_>) -> Found {
    let verdict = rule.judge(facts, target);
    if verdict != Verdict::Pass {
        return Found::Applies(verdict);
    }
    match rule.condition.difference(facts, target, Reading::Exact) {
        Some(key) => Found::Differs(key),
        None if rule.action == Action::Pass => Found::Applies(verdict),
        None => Found::Excepted,
    }
}

fn shown(target: Target<'_>) -> Option<String> {
    match target {
        Target::Nothing => None,
        Target::Root => Some(".".to_owned()),
        Target::Path(path) => Some(path.to_string()),
    }
}
