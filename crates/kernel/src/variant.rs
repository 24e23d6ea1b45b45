//! How strict a kernel is. A variant is one small type.

use fluffy_policy::Facts;

/// When a request is too unclear to be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ambiguity {
    /// The longest intent, in characters.
    pub max_intent_length: usize,
    /// Whether an intent may be blank where a tool call says what is meant.
    pub blank_intent_with_tool: bool,
}

impl Ambiguity {
    /// No blank intents, 4,096 characters.
    pub const STRICT: Self = Self { max_intent_length: 4096, blank_intent_with_tool: false };
    /// A tool call may speak for itself, 8,192 characters.
    pub const RELAXED: Self = Self { max_intent_length: 8192, blank_intent_with_tool: true };
}

/// A posture of enforcement. It can only ever add denials: what it does not deny it passes.
pub trait Variant: Send + Sync {
    /// Its name, as it stands in the ledger.
    fn name(&self) -> &'static str;

    /// When a request is too unclear.
    fn ambiguity(&self) -> Ambiguity {
        Ambiguity::STRICT
    }

    /// What it demands beyond the policy; `None` where it has nothing against the request.
    fn objection(&self, facts: &Facts<'_>) -> Option<&'static str>;
}

/// Strict thresholds; an intent without a tool call must carry evidence.
#[derive(Debug, Clone, Copy)]
pub struct Strict;

/// Relaxed thresholds; an intent may stand alone.
#[derive(Debug, Clone, Copy)]
pub struct Permissive;

/// Nothing without evidence.
#[derive(Debug, Clone, Copy)]
pub struct EvidenceFirst;

/// Nothing without constraints stated beside the call.
#[derive(Debug, Clone, Copy)]
pub struct DualChannel;

impl Variant for Strict {
    fn name(&self) -> &'static str {
        "strict"
    }

    fn objection(&self, facts: &Facts<'_>) -> Option<&'static str> {
        let alone = facts.tool().is_none() && !has_evidence(facts);
        alone.then_some("An intent without a tool call needs evidence")
    }
}

impl Variant for Permissive {
    fn name(&self) -> &'static str {
        "permissive"
    }

    fn ambiguity(&self) -> Ambiguity {
        Ambiguity::RELAXED
    }

    fn objection(&self, _: &Facts<'_>) -> Option<&'static str> {
        None
    }
}

impl Variant for EvidenceFirst {
    fn name(&self) -> &'static str {
        "evidence-first"
    }

    fn objection(&self, facts: &Facts<'_>) -> Option<&'static str> {
        (!has_evidence(facts)).then_some("The request needs evidence")
    }
}

impl Variant for DualChannel {
    fn name(&self) -> &'static str {
        "dual-channel"
    }

    fn objection(&self, facts: &Facts<'_>) -> Option<&'static str> {
        let constraints = facts.params().and_then(|params| params.value().get("constraints"));
        let stated = constraints.is_some_and(serde_json::Value::is_object);
        (!stated).then_some("The request needs an object `constraints` in its params")
    }
}

/// The shipped variants by name.
pub fn variant_named(name: &str) -> Option<Box<dyn Variant>> {
    let all: [Box<dyn Variant>; 4] =
        [Box::new(Strict), Box::new(Permissive), Box::new(EvidenceFirst), Box::new(DualChannel)];
    all.into_iter().find(|variant| variant.name() == name)
}

fn has_evidence(facts: &Facts<'_>) -> bool {
    facts.evidence().is_some_and(|evidence| !fluffy_base::is_blank(evidence))
}
