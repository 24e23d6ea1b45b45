//! The policy is replaced by a person's word only: tried on the past, written whole, in force at once.

use std::collections::BTreeSet;
use std::num::{NonZeroU32, NonZeroU64};

use fluffy_base::{KernelReceipt, KernelRequest};
use fluffy_kernel::{CallContext, Kernel, Presented, Question, Review, Scope};
use fluffy_policy::{ContainerId, DEFAULT_TOKEN_TTL, Peer, TokenScope};
use serde_json::json;

use crate::lab::{ALLOWED, DENIED, FAILED, Lab, POLICY, Runs, call, detail, echo, ends, error};
use crate::reviews::{Person, no, plain_yes, yes};

/// A project whose policy lies in a file, with a person to be asked.
struct Office {
    lab: Lab,
    person: Person,
    kernel: Kernel,
}

impl Office {
    fn new(says: fn(&Question<'_>) -> Review) -> Self {
        Self::with(POLICY, says)
    }

    fn with(policy: &str, says: fn(&Question<'_>) -> Review) -> Self {
        let (lab, person) = (Lab::new(), Person::new(says));
        std::fs::create_dir(lab.file("fluffy")).unwrap();
        lab.write("fluffy/policy.yaml", policy);
        let runs = Runs::default();
        let mut config = lab.config_with(policy, vec![runs.effect("act"), runs.pure("look")]);
        config.policy_path = Some(lab.file("fluffy/policy.yaml"));
        config.reviewer = Some(Box::new(person.clone()));
        let kernel = Kernel::boot(config).unwrap();
        Self { lab, person, kernel }
    }

    fn update(&self, policy: &str) -> KernelReceipt {
        self.kernel.submit(update(policy))
    }

    fn on_disk(&self) -> String {
        std::fs::read_to_string(self.lab.file("fluffy/policy.yaml")).unwrap()
    }

    fn in_folder(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.lab.file("fluffy")).unwrap();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// What the person was told last, beside the change itself.
    fn told(&self) -> Vec<String> {
        let asked = self.person.asked();
        let told = asked.last().unwrap().lines().skip(1).map(str::to_owned);
        told.take_while(|line| !line.starts_with("--- ")).collect()
    }
}

fn update(policy: &str) -> KernelRequest {
    call("update", "policy.update", &json!({ "content": policy }).to_string())
}

/// Alice may do nothing any more but change the policy.
fn only(tools: &str) -> String {
    POLICY.replace("['*']", tools)
}

#[test]
fn an_update_that_is_agreed_to_is_written_recorded_and_in_force_at_once() {
    let office = Office::new(yes);
    let next = only("[look, policy.update]");
    assert_eq!(ends(&office.kernel.submit(echo("before"))), ALLOWED);
    let receipt = office.update(&next);
    assert_eq!(ends(&receipt), ALLOWED, "{receipt:?}");
    assert_eq!((office.on_disk(), office.in_folder()), (next, vec!["policy.yaml".to_owned()]));
    assert_eq!(ends(&office.kernel.submit(echo("after"))), DENIED);
    office.kernel.close().unwrap();
    let events: Vec<_> =
        office.lab.entries().iter().map(|record| detail(record).event.into_owned()).collect();
    let at = |event: &str| events.iter().position(|told| told == event).unwrap();
    assert!(at("human_decision") < at("tool_execute"), "{events:?}");
    assert!(at("tool_execute") < at("policy_update"), "{events:?}");
    assert!(at("policy_update") < at("tool_result"), "{events:?}");
    let entries = office.lab.entries();
    let digest = |at: usize| detail(&entries[at]).policy_digest;
    assert_ne!(digest(at("tool_execute")), digest(at("policy_update")));
    assert_eq!(digest(at("policy_update")), digest(at("tool_result") + 1));
    office.lab.verify();
}

#[test]
fn what_is_not_agreed_to_leaves_the_file_as_it_was() {
    for says in
        [no as fn(&Question<'_>) -> Review, |_| Review::Refused { by: String::new(), words: None }]
    {
        let office = Office::new(says);
        let receipt = office.update(&only("[look]"));
        assert_eq!(ends(&receipt), DENIED);
        assert_eq!((office.on_disk(), office.in_folder().len()), (POLICY.to_owned(), 1));
        assert_eq!(ends(&office.kernel.submit(echo("after"))), ALLOWED);
    }
}

#[test]
fn lesson_l12_without_a_person_no_request_changes_the_policy() {
    let lab = Lab::new();
    let mut config = lab.config(vec![]);
    config.policy_path = Some(lab.file("policy.yaml"));
    let kernel = Kernel::boot(config).unwrap();
    let receipt = kernel.submit(update(&only("[look]")));
    assert_eq!(ends(&receipt), DENIED);
    assert_eq!(receipt.rule.as_deref(), Some("builtin.policy-update"));
    for tool in ["policy.load", "token.issue", "capability.issue", "session.mode", "mode.set"] {
        assert_eq!(ends(&kernel.submit(call("r", tool, "{}"))), DENIED, "{tool}");
    }
    assert!(!lab.file("policy.yaml").exists());
}

#[test]
fn a_text_that_is_no_policy_is_shown_to_nobody() {
    let office = Office::new(yes);
    for text in ["jurisdiction:\n  allowed_actor: [a]\n", "", "[", "extensions: [.fluffy/a.ts]\n"] {
        let receipt = office.update(text);
        assert_eq!(ends(&receipt), DENIED, "{text}");
        assert!(error(&receipt).contains("nobody was asked: "), "{receipt:?}");
    }
    let receipt = office.update("jurisdiction:\n  allowed_actor: [a]\n");
    assert!(error(&receipt).contains("fluffy/policy.yaml:2:3: unknown key"), "{receipt:?}");
    assert_eq!(office.person.asked(), Vec::<String>::new());
}

#[test]
fn a_kernel_whose_policy_lies_in_no_file_replaces_nothing() {
    let lab = Lab::new();
    let mut config = lab.config(vec![]);
    config.reviewer = Some(Box::new(Person::new(yes)));
    let kernel = Kernel::boot(config).unwrap();
    let receipt = kernel.submit(update(POLICY));
    assert_eq!(ends(&receipt), DENIED);
    assert!(error(&receipt).contains("does not lie in a file"), "{receipt:?}");
}

#[test]
fn each_decision_counts_once_and_only_changes_are_told() {
    let office = Office::new(yes);
    office.kernel.submit(call("r1", "act", "{}"));
    office.kernel.submit(call("r2", "look", "{}"));
    office.kernel.submit(call("r3", "nope", "{}"));
    office.update(&only("[look, policy.update]"));
    let told = office.told();
    assert_eq!(told[0], "1 of the last 3 decisions would change:");
    assert!(told[1].starts_with("[BREAKING] #"), "{told:?}");
    assert!(told[1].contains(" act: allow (") && told[1].contains("-> deny: Tool 'act'"));
    assert_eq!(told.len(), 2);
    // The update itself is one more decision, and act is now the other way round.
    office.update(POLICY);
    let told = office.told();
    assert_eq!(told[0], "1 of the last 4 decisions would change:");
    assert!(told[1].starts_with("[LOOSENING] #"), "{told:?}");
    office.update(POLICY);
    assert_eq!(office.told(), ["none of the last 5 decisions would change"]);
}

#[test]
fn decisions_are_tried_on_what_was_kept_and_not_on_summaries() {
    // The summary of the parameters ends after 500 characters; the rule looks at all of them.
    let office = Office::new(yes);
    let long = json!({ "text": "x".repeat(3_000) }).to_string();
    office.kernel.submit(call("r1", "act", &long));
    office.update(&format!("{POLICY}  max_param_bytes: 2000\n"));
    assert_eq!(office.told()[0], "1 of the last 1 decisions would change:");
    assert!(office.told()[1].contains("Tool params take 3011 bytes"), "{:?}", office.told());
}

#[test]
fn who_asked_counts_in_a_trial_with_tags_mode_and_state() {
    let rules = |key: &str| {
        format!(
            "jurisdiction: {{ allowed_actors: [alice], allowed_tools: ['*'] }}
capabilities:
  - {{ name: all, match: {{ syscall: '*' }}, action: allow }}
  - {{ name: not-them, match: {{ syscall: act, {key} }}, action: deny }}
"
        )
    };
    let office = Office::with(&rules("actor: zoe"), yes);
    let context = CallContext {
        tags: BTreeSet::from(["third_party".to_owned()]),
        mode: Some("explore".to_owned()),
        workflow_state: Some("planning".to_owned()),
        ..CallContext::default()
    };
    office.kernel.submit_from(&context, call("r1", "act", "{}"));
    for key in ["caller_tag: third_party", "session_mode: explore", "workflow_state: planning"] {
        let receipt = office.update(&rules(key));
        assert_eq!(ends(&receipt), ALLOWED, "{receipt:?}");
        let before = if key.starts_with("caller_tag") { "allow" } else { "deny" };
        match before {
            "allow" => assert!(office.told()[1].starts_with("[BREAKING]"), "{:?}", office.told()),
            _ => assert!(office.told()[0].starts_with("none of"), "{:?}", office.told()),
        }
    }
}

#[test]
fn no_more_than_the_last_hundred_decisions_are_tried() {
    let office = Office::new(yes);
    for n in 0..103 {
        office.kernel.submit(echo(&format!("r{n}")));
    }
    office.update(POLICY);
    assert_eq!(office.told(), ["none of the last 100 decisions would change"]);
}

#[test]
fn more_than_five_changes_of_a_kind_need_their_phrase() {
    for (count, says, outcome) in [
        (5, plain_yes as fn(&Question<'_>) -> Review, ALLOWED),
        (6, plain_yes, DENIED),
        (
            6,
            |_| Review::Approved {
                by: "zoe".to_owned(),
                phrase: Some("yes".to_owned()),
                scope: Scope::Once,
            },
            DENIED,
        ),
        (6, yes, ALLOWED),
    ] {
        let office = Office::new(says);
        for n in 0..count {
            office.kernel.submit(echo(&format!("r{n}")));
        }
        let receipt = office.update(&only("[look, policy.update]"));
        assert_eq!(ends(&receipt), outcome, "{count} {receipt:?}");
        if outcome == DENIED {
            let phrase = "zoe did not type `accept 6 breaking and 0 loosening changes`";
            assert!(error(&receipt).contains(phrase), "{receipt:?}");
            assert_eq!(office.on_disk(), POLICY);
        }
    }
}

#[test]
fn every_token_ends_with_the_policy_it_was_issued_under() {
    let office = Office::new(yes);
    let pid = NonZeroU32::new(7).unwrap();
    let peer = Peer { container: ContainerId::parse("c1").unwrap(), pid };
    let scope = TokenScope {
        syscall: "look".to_owned(),
        paths: vec![],
        max_ops: NonZeroU32::new(9).unwrap(),
        ttl: DEFAULT_TOKEN_TTL,
        max_file_size: None,
    };
    let wanted = call("w", "look", "{}");
    let context = CallContext::default();
    let token = office.kernel.issue_token(&context, peer.clone(), &wanted, scope).unwrap();
    let shown = |nonce| CallContext {
        peer: Some(peer.clone()),
        token: Some(Presented { id: token.id, nonce: NonZeroU64::new(nonce).unwrap() }),
        ..CallContext::default()
    };
    office.kernel.submit_from(&shown(1), wanted.clone());
    assert!(detail(&office.lab.last()).capability_id.is_some());
    office.update(&format!("{POLICY}  max_intent_length: 900\n"));
    office.kernel.submit_from(&shown(2), wanted);
    let last = office.lab.last();
    assert_eq!(detail(&last).metadata["token_refused"], "no such token");
    assert_eq!(detail(&last).capability_id, None);
}

#[test]
fn a_policy_is_not_written_through_a_link_and_what_a_crash_left_is_taken_away() {
    let office = Office::new(yes);
    office.lab.write("fluffy/.policy.yaml.new", "half a pol");
    assert_eq!(ends(&office.update(&format!("{POLICY}# one\n"))), ALLOWED);
    assert_eq!(office.in_folder(), ["policy.yaml"]);
    let (policy, elsewhere) = (office.lab.file("fluffy/policy.yaml"), office.lab.file("else"));
    office.lab.write("else", POLICY);
    office.lab.remove("fluffy/policy.yaml");
    std::os::unix::fs::symlink(&elsewhere, &policy).unwrap();
    let receipt = office.update(&format!("{POLICY}# two\n"));
    assert_eq!(ends(&receipt), FAILED, "{receipt:?}");
    assert!(error(&receipt).contains("is a symbolic link"), "{receipt:?}");
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), POLICY);
    assert_eq!(office.in_folder(), ["policy.yaml"]);
}
