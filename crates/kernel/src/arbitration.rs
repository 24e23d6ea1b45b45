//! The decision: every rule is asked, and the answers are joined.

use std::sync::Arc;

use fluffy_base::{Digest, Json, KernelRequest, KernelState, ToolCall};
use fluffy_policy::{
    BuiltIn, Caller, Decided, Facts, Layer, Reason, Reasons, Rule, Subject, Verdict, decide, fold,
};

use crate::grants::{Asked, Grants};
use crate::policy_store::InForce;
use crate::registry::OnlyRegistered;
use crate::review::Approved;
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

/// All rules of one kernel that do not change while it runs.
pub(crate) struct Arbiter {
    /// Whether a request can be judged at all.
    checks: Vec<Box<dyn Rule>>,
    /// Whether it may proceed, besides what the policy says.
    rules: Vec<Box<dyn Rule>>,
}

/// What arbitration decided.
#[derive(Debug)]
pub(crate) enum Ruling {
    /// It may not proceed.
    Refused,
    /// It may proceed once a person has agreed to these objections.
    Review(Box<(KernelRequest, Reasons)>),
    /// It may proceed, and there is nothing to run.
    Accepted(Option<Approved>),
    /// This call may run; where rules object, because a person agreed.
    Permitted(Permit, Option<Approved>),
}

/// What is known of a request besides what it says.
#[derive(Debug, Default)]
pub(crate) struct Circumstances<'a> {
    pub(crate) subject: Subject,
    pub(crate) caller: Caller,
    /// What a person agreed to.
    pub(crate) approved: Option<Approved>,
    /// What a person agreed to before, for as long as the session lasts.
    pub(crate) grants: Option<&'a Grants>,
}

impl Arbiter {
    pub(crate) fn new(
        variant: Arc<dyn Variant>,
        built_in: BuiltIn,
        registry: Arc<Registry>,
        mut rules: Vec<Box<dyn Rule>>,
    ) -> Self {
        let checks: Vec<Box<dyn Rule>> = vec![Box::new(Structure), Box::new(variant.ambiguity())];
        rules.push(Box::new(built_in));
        rules.push(Box::new(OnlyRegistered(registry)));
        rules.push(Box::new(Posture(variant)));
        Self { checks, rules }
    }

    /// Why a request is too malformed or unclear to be judged, if it is.
    pub(crate) fn objection(&self, facts: &Facts<'_>) -> Option<Decided> {
        match fold(self.checks.iter().map(|rule| &**rule), facts) {
            // A check that has no objection has said nothing about whether the request is allowed.
            Verdict::Pass | Verdict::Allow(_) => None,
            verdict @ (Verdict::Review(_) | Verdict::Deny(_)) => {
                Some(Decided { verdict, instead: None })
            }
        }
    }

    /// Every rule there is under this policy.
    pub(crate) fn rules<'a>(
        &'a self,
        policy: &'a InForce,
    ) -> impl Iterator<Item = &'a dyn Rule> + Clone {
        self.rules.iter().chain(&policy.rules).map(|rule| &**rule)
    }

    /// Judges a request that arrived in `state`.
    pub(crate) fn judge(
        &self,
        policy: &InForce,
        request: KernelRequest,
        state: KernelState,
        known: &Circumstances<'_>,
    ) -> (Decided, Ruling) {
        let facts = Facts::new(&request, state).about(&known.subject).by(&known.caller);
        let decided = decide(self.rules(policy), &facts);
        let ruling = match &decided.verdict {
            Verdict::Pass | Verdict::Deny(_) => Ruling::Refused,
            Verdict::Allow(_) => Ruling::let_through(request, known.approved.clone()),
            Verdict::Review(reasons) => match known.approval(&request, reasons, policy.digest) {
                Some(approved) => Ruling::let_through(request, Some(approved)),
                None => Ruling::Review(Box::new((request, reasons.clone()))),
            },
        };
        (decided, ruling)
    }
}

impl Circumstances<'_> {
    /// A person's yes to these objections: to this very call, or before to calls like it.
    fn approval(
        &self,
        request: &KernelRequest,
        reasons: &Reasons,
        policy: Digest,
    ) -> Option<Approved> {
        if let Some(approved) = &self.approved {
            return Some(approved.clone()).filter(|it| it.covers(reasons, policy));
        }
        let asked = Asked { request, subject: &self.subject, reasons, policy };
        let grant = self.grants?.covering(&asked)?;
        Some(Approved::by_grant(&grant, reasons, policy))
    }
}

impl Ruling {
    fn let_through(request: KernelRequest, approved: Option<Approved>) -> Self {
        match request.tool_call {
            None => Self::Accepted(approved),
            Some(call) => Self::Permitted(Permit(call), approved),
        }
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
    use fluffy_policy::Source;

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
        let arbiter = Arbiter::new(Arc::new(Permissive), BuiltIn::new([]), registry, Vec::new());
        let rules: Vec<Box<dyn Rule>> = vec![Box::new(Says(verdict))];
        let digest = fluffy_base::Digest::GENESIS;
        let policy = InForce {
            rules,
            capabilities: None,
            sanitiser: Arc::default(),
            digest,
            file: digest,
            hosts: Arc::default(),
        };
        arbiter.judge(&policy, request, KernelState::Idle, &Circumstances::default()).1
    }

    fn call() -> KernelRequest {
        let params = Json::parse(br#"{"text":"hi"}"#).unwrap();
        KernelRequest::call("r", "alice", "say hi", "echo", params)
    }

    #[test]
    fn only_an_allow_makes_a_permit_and_only_for_the_call_that_was_judged() {
        let reason = || Reason::new(Layer::Yaml, "r", "no");
        for verdict in [Verdict::Pass, Verdict::deny(reason())] {
            assert!(matches!(ruling(verdict, call()), Ruling::Refused));
        }
        assert!(matches!(ruling(Verdict::review(reason()), call()), Ruling::Review(_)));
        let allow = || Verdict::Allow(Source::new(Layer::Yaml, "a"));
        let Ruling::Permitted(permit, None) = ruling(allow(), call()) else {
            panic!("an allowed call has its permit")
        };
        assert_eq!((permit.tool(), permit.params().canonical()), ("echo", r#"{"text":"hi"}"#));
        let spoken = KernelRequest::intent_only("r", "alice", "hm");
        assert!(matches!(ruling(allow(), spoken), Ruling::Accepted(None)));
    }
}
