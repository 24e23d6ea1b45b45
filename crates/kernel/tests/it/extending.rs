//! What users of the library add: rules, variants, tools.

use std::sync::Mutex;

use fluffy_base::{KernelRequest, KernelState};
use fluffy_kernel::{Ambiguity, Kernel, Variant};
use fluffy_policy::{Facts, Layer, Reason, Rule, Source, Verdict};

use crate::lab::{ALLOWED, DENIED, Lab, Reach, Runs, call, detail, echo, ends, error};

/// A rule made of a function.
struct Custom<F>(&'static str, F);

impl<F: Fn(&Facts<'_>) -> Verdict + Send + Sync> Rule for Custom<F> {
    fn name(&self) -> &str {
        self.0
    }

    fn layer(&self) -> Layer {
        Layer::Extension
    }

    fn judge(&self, facts: &Facts<'_>) -> Verdict {
        (self.1)(facts)
    }
}

fn objection(text: &str) -> Reason {
    Reason::new(Layer::Extension, "custom", text)
}

fn boot(lab: &Lab, runs: &Runs, rule: impl Rule + 'static) -> Kernel {
    let mut config = lab.config(vec![runs.pure("look")]);
    config.rules = vec![Box::new(rule)];
    Kernel::boot(config).unwrap()
}

#[test]
fn a_rule_of_the_users_own_denies_what_the_policy_allows() {
    let (lab, runs) = (Lab::new(), Runs::default());
    let rule = Custom("custom", |facts: &Facts<'_>| match facts.tool() {
        Some("look") => Verdict::deny(objection("nobody looks")),
        _ => Verdict::Pass,
    });
    let kernel = boot(&lab, &runs, rule);
    let receipt = kernel.submit(call("r1", "look", "{}"));
    assert_eq!(ends(&receipt), DENIED);
    assert_eq!(error(&receipt), "Policy denied: nobody looks");
    assert_eq!(receipt.rule.as_deref(), Some("custom"));
    assert_eq!(detail(&lab.last()).rule.as_deref(), Some("custom"));
    assert_eq!(ends(&kernel.submit(echo("r2"))), ALLOWED);
    assert_eq!(runs.count(), 0);
}

#[test]
fn a_rule_that_panics_denies_and_the_kernel_goes_on() {
    let (lab, runs) = (Lab::new(), Runs::default());
    let rule = Custom("moody", |facts: &Facts<'_>| match facts.tool() {
        Some("look") => panic!("on purpose"),
        _ => Verdict::Pass,
    });
    let kernel = boot(&lab, &runs, rule);
    let receipt = kernel.submit(call("r1", "look", "{}"));
    assert_eq!(ends(&receipt), DENIED);
    assert_eq!(error(&receipt), "Policy denied: rule `moody` failed to evaluate");
    assert_eq!(ends(&kernel.submit(echo("r2"))), ALLOWED);
    assert_eq!((kernel.state(), runs.count()), (KernelState::Idle, 0));
}

#[test]
fn what_needs_a_review_is_refused_where_nobody_can_give_one() {
    let (lab, runs) = (Lab::new(), Runs::default());
    let kernel = boot(
        &lab,
        &runs,
        Custom("custom", |_: &Facts<'_>| Verdict::review(objection("look twice"))),
    );
    let receipt = kernel.submit(call("r1", "look", "{}"));
    assert_eq!(ends(&receipt), DENIED);
    assert!(error(&receipt).contains("look twice (a person has to review this"), "{receipt:?}");
    assert_eq!(detail(&lab.last()).policy_decision.as_deref(), Some("review_required"));
    assert_eq!(runs.count(), 0);
}

#[test]
fn a_rule_that_allows_lifts_no_denial() {
    let (lab, runs) = (Lab::new(), Runs::default());
    let kernel = boot(
        &lab,
        &runs,
        Custom("generous", |_: &Facts<'_>| {
            Verdict::Allow(Source::new(Layer::Extension, "generous"))
        }),
    );
    let stranger = KernelRequest { actor: "mallory".to_owned(), ..call("r1", "look", "{}") };
    for request in
        [stranger, call("r2", "nope", "{}"), KernelRequest::intent_only("r3", "alice", "")]
    {
        assert_eq!(ends(&kernel.submit(request)), DENIED);
    }
    assert_eq!(runs.count(), 0);
}

#[test]
fn a_rule_sees_the_state_the_request_arrived_in_and_everybody_sees_that_it_is_being_judged() {
    let (lab, reach) = (Lab::new(), Reach::default());
    let seen = std::sync::Arc::new(Mutex::new(Vec::new()));
    let (inside, noted) = (reach.clone(), seen.clone());
    let rule = Custom("watch", move |facts: &Facts<'_>| {
        noted.lock().unwrap().push((facts.state, inside.kernel().state()));
        Verdict::Pass
    });
    let kernel = reach.connect(boot(&lab, &Runs::default(), rule));
    kernel.submit(echo("r1"));
    assert_eq!(*seen.lock().unwrap(), [(KernelState::Idle, KernelState::Arbitrating)]);
    assert_eq!(kernel.state(), KernelState::Idle);
}

/// Lets nobody act before noon: a variant is one small type.
struct Mornings;

impl Variant for Mornings {
    fn name(&self) -> &'static str {
        "mornings"
    }

    fn ambiguity(&self) -> Ambiguity {
        Ambiguity { max_intent_length: 20, ..Ambiguity::STRICT }
    }

    fn objection(&self, facts: &Facts<'_>) -> Option<&'static str> {
        (facts.request.ts_ms < 12).then_some("It is too early")
    }
}

#[test]
fn a_new_variant_is_one_small_type() {
    let lab = Lab::new();
    let mut config = lab.config(vec![]);
    config.variant = Box::new(Mornings);
    let kernel = Kernel::boot(config).unwrap();
    let at = |ts_ms| KernelRequest { ts_ms, ..echo("r") };
    assert_eq!(error(&kernel.submit(at(11))), "Variant denied: It is too early");
    assert_eq!(ends(&kernel.submit(at(12))), ALLOWED);
    let long = KernelRequest { intent: "x".repeat(21), ..at(12) };
    assert_eq!(
        error(&kernel.submit(long)),
        "Ambiguity detected: Intent exceeds maximum length of 20"
    );
    assert_eq!(detail(&lab.last()).variant, "mornings");
}
