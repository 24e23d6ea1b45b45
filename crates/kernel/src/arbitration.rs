//! The decision: every rule is asked, and the answers are joined.

use std::sync::Arc;

use fluffy_base::{Json, KernelRequest, KernelState, ToolCall};
use fluffy_policy::{Decided, Facts, Jurisdiction, Layer, Reason, Rule, Verdict, decide, fold};

use crate::registry::OnlyRegistered;
use crate::validation::Structure;
use crate::{Registry, Variant};

/// Proof that a decision was taken to run this call, once.
///
/// There is no other way to run a tool, and no other way to have a permit than arbitration.
#[derive(Debug)]
pub(crate) struct Permit(ToolCall);

impl Permit {
    /// The tool that may run.
    pub(crate) fn tool(&self) -> &str {
        &self.0.name
    }

    /// The parameters it may run with.
    pub(crate) fn params(&self) -> &Json {
        &self.0.params
    }
}

/// All rules of one kernel.
pub(crate) struct Arbiter {
    /// Whether a request can be judged at all.
    checks: Vec<Box<dyn Rule>>,
    /// Whether it may proceed.
    rules: Vec<Box<dyn Rule>>,
}

/// What arbitration decided.
#[derive(Debug)]
pub(crate) enum Ruling {
    /// It may not proceed, or not without a person.
    Refused,
    /// It may proceed, and there is nothing to run.
    Accepted,
    /// This call may run.
    Permitted(Permit),
}

impl Arbiter {
    pub(crate) fn new(
        variant: Arc<dyn Variant>,
        jurisdiction: Jurisdiction,
        registry: Arc<Registry>,
        mut rules: Vec<Box<dyn Rule>>,
    ) -> Self {
        let checks: Vec<Box<dyn Rule>> = vec![Box::new(Structure), Box::new(variant.ambiguity())];
        rules.push(Box::new(jurisdiction));
        rules.push(Box::new(OnlyRegistered(registry)));
        rules.push(Box::new(Posture(variant)));
        Self { checks, rules }
    }

    /// Why a request is too malformed or unclear to be judged, if it is.
    pub(crate) fn objection(&self, facts: &Facts<'_>) -> Option<Decided> {
        let verdict = fold(&self.checks, facts);
        // A check that has no objection has said nothing about whether the request is allowed.
        let rule = verdict.reasons()?.primary().rule().to_owned();
        Some(Decided { verdict, rule })
    }

    /// Judges a request that arrived in `state`.
    pub(crate) fn judge(&self, request: KernelRequest, state: KernelState) -> (Decided, Ruling) {
        let decided = decide(&self.rules, &Facts { request: &request, state });
        let ruling = match (&decided.verdict, request.tool_call) {
            (Verdict::Pass | Verdict::Review(_) | Verdict::Deny(_), _) => Ruling::Refused,
            (Verdict::Allow, None) => Ruling::Accepted,
            (Verdict::Allow, Some(call)) => Ruling::Permitted(Permit(call)),
        };
        (decided, ruling)
    }
}

/// The variant as a rule.
struct Posture(Arc<dyn Variant>);

impl Rule for Posture {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn layer(&self) -> Layer {
        Layer::Variant
    }

    fn judge(&self, facts: &Facts<'_>) -> Verdict {
        match self.0.objection(facts) {
            None => Verdict::Pass,
            Some(text) => Verdict::deny(Reason::new(self.layer(), self.name(), text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Permissive;

    /// A rule that says what it was told to say.
    struct Says(Verdict);

    impl Rule for Says {
        fn name(&self) -> &str {
            "says"
        }

        fn layer(&self) -> Layer {
            Layer::Yaml
        }

        fn judge(&self, _: &Facts<'_>) -> Verdict {
            self.0.clone()
        }
    }

    fn ruling(verdict: Verdict, request: KernelRequest) -> Ruling {
        let registry = Arc::new(Registry::with_builtins().unwrap());
        let mut arbiter =
            Arbiter::new(Arc::new(Permissive), Jurisdiction::default(), registry, Vec::new());
        arbiter.rules = vec![Box::new(Says(verdict))];
        arbiter.judge(request, KernelState::Idle).1
    }

    fn call() -> KernelRequest {
        let params = Json::parse(br#"{"text":"hi"}"#).unwrap();
        KernelRequest::call("r", "alice", "say hi", "echo", params)
    }

    #[test]
    fn only_an_allow_makes_a_permit_and_only_for_the_call_that_was_judged() {
        let reason = || Reason::new(Layer::Yaml, "r", "no");
        for verdict in [Verdict::Pass, Verdict::review(reason()), Verdict::deny(reason())] {
            assert!(matches!(ruling(verdict, call()), Ruling::Refused));
        }
        let Ruling::Permitted(permit) = ruling(Verdict::Allow, call()) else {
            panic!("an allowed call has its permit")
        };
        assert_eq!((permit.tool(), permit.params().canonical()), ("echo", r#"{"text":"hi"}"#));
        let spoken = KernelRequest::intent_only("r", "alice", "hm");
        assert!(matches!(ruling(Verdict::Allow, spoken), Ruling::Accepted));
    }
}
