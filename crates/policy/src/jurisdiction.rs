//! Who may ask for what, in which state of the kernel and within which limits.
//!
//! **Invariant.** A jurisdiction allows only what passes every check, and its denial names every
//! check that failed.
//!
//! **Invariant.** What is not set allows nobody: an absent list of actors or tools is an empty one.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use fluffy_base::{Json, KernelState, is_blank, normalised};
use serde_json::{Value, json};

use crate::facts::Facts;
use crate::rule::{Rule, quoted};
use crate::verdict::{Layer, Reason, Reasons, Source, Verdict};

/// How many names a hint lists.
const NAMES_IN_HINT: usize = 10;

/// The limits within which requests are heard at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jurisdiction {
    /// Who may ask.
    pub allowed_actors: Names,
    /// Which tools may be asked for. Requests without a tool call need none.
    pub allowed_tools: Names,
    /// The states of the kernel in which a request may arrive.
    pub allowed_states: Vec<KernelState>,
    /// What a request must have beyond its structure.
    pub required_fields: BTreeSet<RequiredField>,
    /// How many bytes of canonical JSON the tool's parameters may have, and the request's as well.
    pub max_param_bytes: u64,
    /// How many code points an intent may have. The variant has a limit of its own, and as both are
    /// rules the lower of the two counts.
    pub max_intent_length: Option<usize>,
}

/// A set of names that are compared exactly, in Unicode's composed form, or all names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Any,
    Only(BTreeSet<String>),
}

/// Why a text cannot stand in a list of names.
#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum NameError {
    /// Nothing that a reader would see.
    #[error("a name cannot be empty or invisible")]
    Blank,
    /// White space before or after the name.
    #[error("a name cannot begin or end with white space")]
    Padded,
    /// `*` beside other names.
    #[error("`*` means any name and stands alone in its list")]
    StarAmongOthers,
    /// `*` inside a name.
    #[error("names are compared exactly: `*` is not a pattern, only a list of `*` alone means any")]
    Pattern,
}

/// A part of a request that a jurisdiction may demand.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequiredField {
    /// `request_id`, not blank.
    RequestId,
    /// `ts_ms`, not negative.
    TsMs,
    /// `actor`, not blank.
    Actor,
    /// `intent`, not blank.
    Intent,
    /// `tool_call`, with a name that is not blank.
    ToolCall,
    /// `params`, not empty.
    Params,
    /// `evidence`, not blank.
    Evidence,
    /// `params.NAME`: this member of `params`, not empty.
    Param(String),
}

/// Every field but the dotted ones, with its name.
const PLAIN_FIELDS: [(&str, RequiredField); 7] = [
    ("request_id", RequiredField::RequestId),
    ("ts_ms", RequiredField::TsMs),
    ("actor", RequiredField::Actor),
    ("intent", RequiredField::Intent),
    ("tool_call", RequiredField::ToolCall),
    ("params", RequiredField::Params),
    ("evidence", RequiredField::Evidence),
];

impl Jurisdiction {
    /// The limit on parameters where none is set: 1 MiB.
    pub const DEFAULT_PARAM_BYTES: u64 = 1 << 20;

    /// What the jurisdiction means, as a value that does not depend on how it was written. Numbers
    /// are texts: not every size is exact in JSON.
    pub(crate) fn meaning(&self) -> Value {
        let states: Vec<_> = KernelState::ALL
            .into_iter()
            .filter(|state| self.allowed_states.contains(state))
            .map(KernelState::name)
            .collect();
        let fields: Vec<_> = self.required_fields.iter().map(ToString::to_string).collect();
        json!({
            "allowed_actors": self.allowed_actors.list(),
            "allowed_states": states,
            "allowed_tools": self.allowed_tools.list(),
            "max_intent_length": self.max_intent_length.map(|n| n.to_string()),
            "max_param_bytes": self.max_param_bytes.to_string(),
            "required_fields": fields,
        })
    }

    fn violations(&self, facts: &Facts<'_>) -> impl Iterator<Item = Reason> {
        let checks: [fn(&Self, &Facts<'_>) -> Option<Reason>; 6] = [
            Self::check_actor,
            Self::check_tool,
            Self::check_state,
            |own, facts| own.check_size("Params", facts.params()?),
            |own, facts| own.check_size("Tool params", facts.tool_params()?),
            Self::check_intent,
        ];
        checks
            .into_iter()
            .filter_map(|check| check(self, facts))
            .chain(self.required_fields.iter().filter_map(|field| check_field(field, facts)))
    }

    fn check_actor(&self, facts: &Facts<'_>) -> Option<Reason> {
        let actor = facts.actor();
        (!self.allowed_actors.contains(actor)).then(|| {
            let text = format!("Actor '{}' is not in allowed actors", quoted(actor));
            not_listed("allowed_actors", "actor", &text, &self.allowed_actors)
        })
    }

    fn check_tool(&self, facts: &Facts<'_>) -> Option<Reason> {
        let tool = facts.tool()?;
        (!self.allowed_tools.contains(tool)).then(|| {
            let text = format!("Tool '{}' is not in allowed tools", quoted(tool));
            not_listed("allowed_tools", "tool", &text, &self.allowed_tools)
        })
    }

    fn check_state(&self, facts: &Facts<'_>) -> Option<Reason> {
        (!self.allowed_states.contains(&facts.state)).then(|| {
            let text = format!("State '{}' is not in allowed states", facts.state);
            let names: Vec<_> = self.allowed_states.iter().map(|state| state.name()).collect();
            let hint = if names.is_empty() {
                "no state is allowed until `jurisdiction.allowed_states` names one".to_owned()
            } else {
                format!("requests are accepted in {}", names.join(", "))
            };
            violation("allowed_states", &text).with_hint(&hint)
        })
    }

    fn check_size(&self, what: &str, json: &Json) -> Option<Reason> {
        let size = json.canonical().len();
        // A size that does not fit the limit's type is over the limit.
        let fits = u64::try_from(size).is_ok_and(|size| size <= self.max_param_bytes);
        (!fits).then(|| {
            let max = self.max_param_bytes;
            let text = format!("{what} take {size} bytes, of which {max} are allowed");
            violation("max_param_bytes", &text)
                .with_hint(&format!("up to {max} bytes of canonical JSON are accepted"))
        })
    }

    fn check_intent(&self, facts: &Facts<'_>) -> Option<Reason> {
        let max = self.max_intent_length?;
        let length = facts.intent().chars().count();
        (length > max).then(|| {
            let text = format!("Intent has {length} characters, of which {max} are allowed");
            violation("max_intent_length", &text)
                .with_hint(&format!("up to {max} characters are accepted"))
        })
    }
}

/// Allows nobody anything.
impl Default for Jurisdiction {
    fn default() -> Self {
        Self {
            allowed_actors: Names::default(),
            allowed_tools: Names::default(),
            allowed_states: vec![KernelState::Idle],
            required_fields: BTreeSet::new(),
            max_param_bytes: Self::DEFAULT_PARAM_BYTES,
            max_intent_length: None,
        }
    }
}

impl Rule for Jurisdiction {
    fn name(&self) -> &str {
        "jurisdiction"
    }

    fn layer(&self) -> Layer {
        Layer::Jurisdiction
    }

    fn judge(&self, facts: &Facts<'_>) -> Verdict {
        match Reasons::collect(self.violations(facts)) {
            Some(reasons) => Verdict::Deny(reasons),
            None => Verdict::Allow(Source::new(self.layer(), self.name())),
        }
    }
}

/// A jurisdiction beside which there are rules: it refuses what is outside it and allows by itself
/// only what acts on nothing, a request without a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limits(pub(crate) Jurisdiction);

impl Rule for Limits {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn layer(&self) -> Layer {
        self.0.layer()
    }

    fn judge(&self, facts: &Facts<'_>) -> Verdict {
        match (Reasons::collect(self.0.violations(facts)), facts.tool()) {
            (Some(reasons), _) => Verdict::Deny(reasons),
            (None, Some(_)) => Verdict::Pass,
            (None, None) => self.0.judge(facts),
        }
    }
}

impl Names {
    /// Every name there is.
    pub fn any() -> Self {
        Self(Kind::Any)
    }

    /// These names and no other; `*` alone is [`Names::any`].
    pub fn only<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, NameError> {
        let names: BTreeSet<String> =
            names.into_iter().map(|name| normalised(name).into_owned()).collect();
        if names.contains("*") {
            return if names.len() == 1 {
                Ok(Self::any())
            } else {
                Err(NameError::StarAmongOthers)
            };
        }
        for name in &names {
            check_name(name)?;
        }
        Ok(Self(Kind::Only(names)))
    }

    /// Whether `name` is among them, in whatever Unicode form it is spelt.
    pub fn contains(&self, name: &str) -> bool {
        match &self.0 {
            Kind::Any => true,
            Kind::Only(names) => names.contains(&*normalised(name)),
        }
    }

    fn list(&self) -> Vec<&str> {
        match &self.0 {
            Kind::Any => vec!["*"],
            Kind::Only(names) => names.iter().map(String::as_str).collect(),
        }
    }
}

/// Nobody.
impl Default for Names {
    fn default() -> Self {
        Self(Kind::Only(BTreeSet::new()))
    }
}

impl RequiredField {
    /// What `required_fields` may hold, for messages.
    pub(crate) const EXPECTED: &str =
        "request_id, ts_ms, actor, intent, tool_call, params, evidence or params.NAME";

    fn is_present(&self, facts: &Facts<'_>) -> bool {
        let request = facts.request;
        match self {
            Self::RequestId => !is_blank(&request.request_id),
            Self::TsMs => request.ts_ms >= 0,
            Self::Actor => !is_blank(&request.actor),
            Self::Intent => !is_blank(&request.intent),
            Self::ToolCall => facts.tool().is_some_and(|name| !is_blank(name)),
            Self::Params => facts.params().is_some_and(|params| says_something(params.value())),
            Self::Evidence => facts.evidence().is_some_and(|evidence| !is_blank(evidence)),
            Self::Param(name) => facts.params().and_then(Json::as_object).is_some_and(|members| {
                members.iter().any(|(key, v)| normalised(key) == *name && says_something(v))
            }),
        }
    }
}

impl FromStr for RequiredField {
    type Err = UnknownField;

    fn from_str(text: &str) -> Result<Self, UnknownField> {
        if let Some((_, field)) = PLAIN_FIELDS.into_iter().find(|(name, _)| *name == text) {
            return Ok(field);
        }
        match text.strip_prefix("params.") {
            Some(name) if check_name(name).is_ok() && !name.contains('.') => {
                Ok(Self::Param(normalised(name).into_owned()))
            }
            Some(_) | None => Err(UnknownField),
        }
    }
}

/// A text that names no field a request could be made to have.
#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
#[error("not a field of a request: expected {}", RequiredField::EXPECTED)]
pub struct UnknownField;

impl fmt::Display for RequiredField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RequestId => f.write_str("request_id"),
            Self::TsMs => f.write_str("ts_ms"),
            Self::Actor => f.write_str("actor"),
            Self::Intent => f.write_str("intent"),
            Self::ToolCall => f.write_str("tool_call"),
            Self::Params => f.write_str("params"),
            Self::Evidence => f.write_str("evidence"),
            Self::Param(name) => write!(f, "params.{name}"),
        }
    }
}

fn check_name(name: &str) -> Result<(), NameError> {
    if is_blank(name) {
        Err(NameError::Blank)
    } else if name.trim() != name {
        Err(NameError::Padded)
    } else if name.contains('*') {
        Err(NameError::Pattern)
    } else {
        Ok(())
    }
}

fn check_field(field: &RequiredField, facts: &Facts<'_>) -> Option<Reason> {
    (!field.is_present(facts)).then(|| {
        let name = field.to_string();
        let text = format!("Field '{}' is required, and missing or empty", quoted(&name));
        violation("required_fields", &text)
            .with_hint(&format!("send the request with `{}`", quoted(&name)))
    })
}

/// Whether a value is more than a place holder. `false` and `0` are answers.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => !is_blank(text),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

fn violation(key: &str, text: &str) -> Reason {
    Reason::new(Layer::Jurisdiction, &format!("jurisdiction.{key}"), text)
}

fn not_listed(key: &str, noun: &str, text: &str, names: &Names) -> Reason {
    let list = names.list();
    if list.is_empty() {
        let text = format!("{text}: no {noun} is allowed until `jurisdiction.{key}` names one");
        return violation(key, &text).with_hint(&format!("set `jurisdiction.{key}`"));
    }
    let shown: Vec<_> =
        list.iter().take(NAMES_IN_HINT).map(|name| quoted(name).to_string()).collect();
    let more = match list.len().saturating_sub(NAMES_IN_HINT) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    violation(key, text).with_hint(&format!("the {noun}s {}{more}", shown.join(", ")))
}

#[cfg(test)]
mod tests;
