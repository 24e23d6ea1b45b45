//! What a project forbids beyond what is always forbidden, and what one skill may do.
//!
//! ```yaml
//! forbidden_imports: [decimal]
//! forbidden_calls: [random.random, "hashlib.md*"]
//! patterns:
//!   - { name: internal_host, pattern: "intranet\\.", why: "skills do not know our hosts" }
//! ```
//!
//! **Invariant.** Rules only take away: nothing in them allows what the scanner forbids, and rules that were not made for
//! a proposal let a skill write nothing, reach nothing and be given no secret.

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use crate::{Proposal, SideEffect};

/// The largest pattern, compiled.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// The rules of the policy gate.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScanRules {
    /// Modules and packages that no skill of the project imports.
    pub forbidden_imports: Vec<String>,
    /// Whole names that no skill of the project uses; a `*` at the end stands for any rest.
    pub forbidden_calls: Vec<String>,
    /// Patterns that no line of a skill matches.
    pub patterns: Vec<PatternRule>,
    #[serde(skip)]
    reach: Reach,
}

/// What a skill may do, by its proposal.
#[derive(Debug, Clone, Default)]
struct Reach {
    network: bool,
    writes: bool,
    secrets: Vec<String>,
}

/// A pattern that no line of a skill matches.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "WrittenPattern")]
pub struct PatternRule {
    name: String,
    pattern: Regex,
    why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPattern {
    name: String,
    pattern: String,
    why: String,
}

/// Why rules are refused.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// They are not written as rules are.
    #[error("rules of the scanner cannot be read: {0}")]
    Written(String),
    /// A pattern is none.
    #[error("pattern `{name}` is no regular expression: {why}")]
    Pattern {
        /// The rule's name.
        name: String,
        /// What is wrong with it.
        why: String,
    },
}

impl TryFrom<WrittenPattern> for PatternRule {
    type Error = RulesError;

    fn try_from(written: WrittenPattern) -> Result<Self, RulesError> {
        Self::new(written.name, &written.pattern, written.why)
    }
}

impl PatternRule {
    /// A rule, if its pattern is one.
    pub fn new(name: String, pattern: &str, why: String) -> Result<Self, RulesError> {
        let built = RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build();
        match built {
            Ok(pattern) => Ok(Self { name, pattern, why }),
            Err(error) => Err(RulesError::Pattern { name, why: error.to_string() }),
        }
    }

    /// The rule's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Why it is there.
    pub fn why(&self) -> &str {
        &self.why
    }

    pub(super) fn is_match(&self, line: &str) -> bool {
        self.pattern.is_match(line)
    }
}

impl ScanRules {
    /// Rules from YAML.
    pub fn parse(yaml: &str) -> Result<Self, RulesError> {
        serde_saphyr::from_str(yaml).map_err(|error| RulesError::Written(error.to_string()))
    }

    /// The same rules, for the skill that was proposed.
    pub fn for_proposal(&self, proposal: &Proposal) -> Self {
        let (network, may_write) = match proposal.side_effect {
            SideEffect::ReadOnly => (false, false),
            SideEffect::FileWrite => (false, true),
            SideEffect::Network
            | SideEffect::SecretRead
            | SideEffect::Money
            | SideEffect::Messaging => (true, !proposal.writes.is_empty()),
        };
        let reach = Reach { network, writes: may_write, secrets: proposal.secrets.clone() };
        Self { reach, ..self.clone() }
    }

    pub(super) fn may_reach_network(&self) -> bool {
        self.reach.network
    }

    pub(super) fn may_write(&self) -> bool {
        self.reach.writes
    }

    pub(super) fn may_have_secret(&self, name: &str) -> bool {
        self.reach.secrets.iter().any(|secret| secret == name)
    }

    pub(super) fn forbids_import(&self, module: &str) -> bool {
        let within = |outer: &String| {
            let rest = module.strip_prefix(outer.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.forbidden_imports.iter().any(within)
    }

    pub(super) fn forbids_call(&self, dotted: &str) -> bool {
        self.forbidden_calls.iter().any(|call| match call.strip_suffix('*') {
            Some(start) => dotted.starts_with(start),
            None => dotted == call,
        })
    }
}
