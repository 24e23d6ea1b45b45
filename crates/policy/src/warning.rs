//! What is probably not meant as it is written: rules that never apply, never matter, or name what
//! does not exist.
//!
//! **Invariant.** A warning never changes what a policy means.

use std::fmt;

use crate::calls::known_calls;
use crate::capability::{Action, Capability};
use crate::condition::{Commands, Condition, Syscalls};
use crate::glob::Glob;
use crate::verdict::Place;
use crate::yaml::nearest;

/// Something in a policy file that is probably a mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Where the rule stands.
    pub place: Option<Place>,
    /// The column in which the rule begins, from 1.
    pub column: u64,
    /// The rule.
    pub rule: String,
    /// What is odd about it, and what to do.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => {
                write!(f, "{place}:{}: rule `{}`: {}", self.column, self.rule, self.text)
            }
            None => write!(f, "rule `{}`: {}", self.rule, self.text),
        }
    }
}

/// Rules are compared with each other, and with their exceptions, as long as their globs have no more
/// parts than this together: comparing takes the square of it.
const COMPARED: usize = 20_000;

/// And as long as there are no more rules than this.
const MAX_COMPARED_RULES: usize = 2_000;

/// Everything odd about these rules, in their order.
pub(crate) fn of_rules(rules: &[Capability]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let few = rules.len() <= MAX_COMPARED_RULES && parts(rules) <= COMPARED;
    for rule in rules {
        // No rule is stronger than itself, so it need not be left out.
        let others = if few { rules } else { &[] };
        let texts = itself(rule).into_iter().chain(shadow(rule, others.iter()));
        warnings.extend(texts.map(|text| Warning {
            place: rule.source.place().cloned(),
            column: rule.column,
            rule: rule.source.rule().to_owned(),
            text,
        }));
    }
    warnings
}

fn parts(rules: &[Capability]) -> usize {
    let conditions =
        rules.iter().flat_map(|rule| std::iter::once(&rule.condition).chain(&rule.except));
    conditions.map(Condition::glob_parts).sum()
}

/// What is odd about a rule by itself.
fn itself(rule: &Capability) -> Vec<String> {
    let mut texts = Vec::new();
    if rule.condition.paths.as_ref().is_some_and(Vec::is_empty) {
        texts.push("an empty `path_glob` matches no path: the rule never applies".to_owned());
    }
    if rule.except.iter().any(|except| except.paths.as_ref().is_some_and(Vec::is_empty)) {
        texts.push("an exception with an empty `path_glob` never applies".to_owned());
    }
    let few = parts(std::slice::from_ref(rule)) <= COMPARED;
    if few && rule.except.iter().any(|except| lifts(except, &rule.condition)) {
        texts.push("`except` covers all of `match`: the rule never applies".to_owned());
    }
    if rule.action == Action::Pass {
        texts.push("a rule that passes has no effect".to_owned());
    }
    let named = rule.condition.syscalls.iter().flatten();
    texts.extend(named.filter_map(unknown_call));
    texts
}

/// Whether an exception holds wherever the condition does.
fn lifts(except: &Condition, condition: &Condition) -> bool {
    let whole = Condition { syscalls: condition.syscalls.clone(), ..except.clone() };
    let except = if except.syscalls.is_none() { &whole } else { except };
    covers(except, condition)
}

fn unknown_call(syscalls: &Syscalls) -> Option<String> {
    let Syscalls::Named(name) = syscalls else { return None };
    let known: Vec<_> = known_calls().collect();
    if known.contains(&name.as_str()) {
        return None;
    }
    let near = nearest(name, &known)?;
    Some(format!("no tool of ours is called `{name}`; did you mean `{near}`?"))
}

/// A rule that never matters because of another: whatever it lets through is denied, or whatever it
/// allows is reviewed all the same.
fn shadow<'a>(
    rule: &Capability,
    mut others: impl Iterator<Item = &'a Capability>,
) -> Option<String> {
    let beats = |other: Action| match (rule.action, other) {
        (Action::Allow | Action::RequireReview, Action::Deny) => true,
        (Action::Allow, Action::RequireReview) => true,
        (Action::Deny | Action::Pass, _) | (_, Action::Allow | Action::Pass) => false,
        (Action::RequireReview, Action::RequireReview) => false,
    };
    let shadowing = |other: &&Capability| {
        beats(other.action) && other.except.is_empty() && covers(&other.condition, &rule.condition)
    };
    let other = others.find(shadowing)?;
    let does = match other.action {
        Action::RequireReview => "asks for a review of",
        Action::Allow | Action::Deny | Action::Pass => "denies",
    };
    Some(format!("it can never take effect: {} {does} all that it lets through", other.source))
}

/// Whether `wide` holds wherever `narrow` does. Says no where it cannot tell.
fn covers(wide: &Condition, narrow: &Condition) -> bool {
    let subset = |wide: &Option<_>, narrow: &Option<_>| match (wide, narrow) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(wide), Some(narrow)) => std::collections::BTreeSet::is_superset(wide, narrow),
    };
    covers_calls(wide.syscalls.as_deref(), narrow.syscalls.as_deref())
        && covers_paths(wide.paths.as_deref(), narrow.paths.as_deref())
        && subset(&wide.caller_tags, &narrow.caller_tags)
        && subset(&wide.actors, &narrow.actors)
        && subset(&wide.modes, &narrow.modes)
        && subset(&wide.workflow_states, &narrow.workflow_states)
        && subset(&wide.side_effects, &narrow.side_effects)
        && covers_commands(wide.commands.as_ref(), narrow.commands.as_ref())
}

fn covers_commands(wide: Option<&Commands>, narrow: Option<&Commands>) -> bool {
    let Some(wide) = wide else { return true };
    let within = |words: &Vec<String>| wide.words.iter().any(|wide| words.starts_with(wide));
    narrow.is_some_and(|narrow| {
        (wide.any_folder || !narrow.any_folder) && narrow.words.iter().all(within)
    })
}

fn covers_calls(wide: Option<&[Syscalls]>, narrow: Option<&[Syscalls]>) -> bool {
    let Some(wide) = wide else { return true };
    let within = |call: &Syscalls| {
        wide.iter().any(|wide| match call {
            Syscalls::Every => *wide == Syscalls::Every,
            Syscalls::Group(name) | Syscalls::Named(name) => wide.contains(name),
        })
    };
    narrow.is_some_and(|narrow| narrow.iter().all(within))
}

fn covers_paths(wide: Option<&[Glob]>, narrow: Option<&[Glob]>) -> bool {
    let Some(wide) = wide else { return true };
    let within = |glob: &Glob| wide.iter().any(|wide| wide.covers(glob));
    narrow.is_some_and(|narrow| !narrow.is_empty() && narrow.iter().all(within))
}
