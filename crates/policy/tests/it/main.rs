//! The crate as a user of the library sees it: through its public items only.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod case_files;
mod cases;
mod document;
mod extension;
mod globs;
mod judging;
mod oddities;
mod properties;
mod protected_paths;
mod refusals;
mod schema;
mod shipped;

use fluffy_base::{Json, KernelRequest, KernelState};
use fluffy_policy::{
    DEFAULT_POLICY, Facts, Layer, PolicyFile, Reason, Rule, Verdict, decide, evaluate_all,
};

/// A rule of the user's own.
struct NoNightlyBuilds;

impl Rule for NoNightlyBuilds {
    fn name(&self) -> &str {
        "no-nightly-builds"
    }

    fn layer(&self) -> Layer {
        Layer::Jurisdiction
    }

    fn judge(&self, facts: &Facts<'_>) -> Verdict {
        if facts.intent().contains("nightly") {
            let text = "nightly builds are made by CI";
            Verdict::deny(Reason::new(self.layer(), self.name(), text))
        } else {
            Verdict::Pass
        }
    }
}

fn rules() -> Vec<Box<dyn Rule>> {
    let policy = PolicyFile::parse("default_policy.yaml", DEFAULT_POLICY).unwrap();
    vec![Box::new(NoNightlyBuilds), Box::new(policy.jurisdiction().clone())]
}

fn request(actor: &str, intent: &str) -> KernelRequest {
    KernelRequest::call("r1", actor, intent, "echo", Json::empty_object())
}

fn decided(request: &KernelRequest) -> String {
    decide(rules().iter().map(|rule| &**rule), &Facts::new(request, KernelState::Idle))
        .verdict
        .to_string()
}

#[test]
fn a_rule_of_the_users_own_is_joined_in() {
    assert_eq!(decided(&request("user", "say hi")), "allow");
    assert_eq!(decided(&request("user", "a nightly build")), "deny: nightly builds are made by CI");
    assert_eq!(
        decided(&request("mallory", "a nightly build")),
        "deny: Actor 'mallory' is not in allowed actors; nightly builds are made by CI"
    );
}

#[test]
fn an_explanation_names_every_rule_that_was_asked() {
    let request = request("user", "a nightly build");
    let facts = Facts::new(&request, KernelState::Idle);
    let told: Vec<_> = evaluate_all(rules().iter().map(|rule| &**rule), &facts)
        .into_iter()
        .map(|opinion| format!("{}: {}", opinion.rule, opinion.verdict))
        .collect();
    assert_eq!(
        told,
        ["jurisdiction: allow", "no-nightly-builds: deny: nightly builds are made by CI"]
    );
}
