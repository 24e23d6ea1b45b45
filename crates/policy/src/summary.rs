//! The rules of a file as a table, for people who read it.

use crate::capabilities::Capabilities;
use crate::capability::{Action, Capability};
use crate::glob::Glob;
use crate::meaning::of_syscalls;
use crate::verdict::Source;

/// One rule of a file in brief.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSummary {
    /// Its name and place.
    pub source: Source,
    /// What it says where it applies.
    pub action: Action,
    /// The calls it names.
    pub calls: Vec<String>,
    /// The globs of its paths; nothing where it asks for no path.
    pub globs: Option<Vec<String>>,
    /// How many exceptions it has.
    pub exceptions: usize,
}

impl Capabilities {
    /// The rules in brief, in the order in which they are written.
    pub fn summaries(&self) -> impl Iterator<Item = RuleSummary> {
        self.rules().iter().map(of_rule)
    }
}

fn of_rule(rule: &Capability) -> RuleSummary {
    let globs = |globs: &Vec<Glob>| globs.iter().map(|glob| glob.text().to_owned()).collect();
    RuleSummary {
        source: rule.source.clone(),
        action: rule.action,
        calls: rule.condition.syscalls.iter().flatten().map(of_syscalls).collect(),
        globs: rule.condition.paths.as_ref().map(globs),
        exceptions: rule.except.len(),
    }
}
