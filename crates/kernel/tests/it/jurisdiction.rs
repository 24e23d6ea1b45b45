//! Each limit of a jurisdiction does something, and a denial names every violation.

use fluffy_base::{KernelReceipt, KernelRequest};
use fluffy_kernel::Kernel;

use crate::lab::{ALLOWED, DENIED, Lab, POLICY, Runs, call, echo, ends, error, json};

/// Submits under a policy that has one more line, with `look` as a tool that counts its runs.
fn submit(line: &str, request: KernelRequest) -> KernelReceipt {
    let lab = Lab::new();
    let runs = Runs::default();
    let policy = format!("{POLICY}  {line}\n");
    let kernel = Kernel::boot(lab.config_with(&policy, vec![runs.pure("look")])).unwrap();
    let receipt = kernel.submit(request);
    assert_eq!(
        runs.count() > 0,
        receipt.tool_result.is_some() && receipt.status.name() == "ACCEPTED"
    );
    receipt
}

fn look() -> KernelRequest {
    call("r", "look", r#"{"text":"0123456789"}"#)
}

#[test]
fn lesson_l09_allowed_states_are_held() {
    assert_eq!(ends(&submit("allowed_states: [IDLE]", look())), ALLOWED);
    let receipt = submit("allowed_states: [BOOTING]", look());
    assert_eq!(ends(&receipt), DENIED);
    assert!(error(&receipt).contains("State 'IDLE' is not in allowed states"), "{receipt:?}");
}

#[test]
fn lesson_l09_an_intent_alone_is_refused_by_the_strict_variant() {
    let receipt =
        submit("allowed_states: [IDLE]", KernelRequest::intent_only("r", "alice", "a plan"));
    assert_eq!(ends(&receipt), DENIED);
    assert_eq!(error(&receipt), "Variant denied: An intent without a tool call needs evidence");
}

#[test]
fn lesson_l09_the_size_limit_holds_for_tool_parameters_and_for_those_beside_them() {
    assert_eq!(ends(&submit("max_param_bytes: 21", look())), ALLOWED);
    let receipt = submit("max_param_bytes: 20", look());
    assert_eq!(ends(&receipt), DENIED);
    assert!(error(&receipt).contains("Tool params take 21 bytes"), "{receipt:?}");
    let beside =
        KernelRequest { params: Some(json(r#"{"a":"0123456789"}"#)), ..call("r", "look", "{}") };
    let receipt = submit("max_param_bytes: 17", beside);
    assert!(error(&receipt).contains("Params take 18 bytes"), "{receipt:?}");
}

#[test]
fn intents_and_required_fields_are_held() {
    assert_eq!(ends(&submit("max_intent_length: 8", look())), ALLOWED);
    let receipt = submit("max_intent_length: 7", look());
    assert!(error(&receipt).contains("Intent has 8 characters"), "{receipt:?}");
    let receipt = submit("required_fields: [evidence, params.ticket]", look());
    assert!(error(&receipt).contains("'evidence'") && error(&receipt).contains("'params.ticket'"));
    let complete = KernelRequest {
        evidence: Some("e".to_owned()),
        params: Some(json(r#"{"ticket":7}"#)),
        ..look()
    };
    assert_eq!(ends(&submit("required_fields: [evidence, params.ticket]", complete)), ALLOWED);
}

#[test]
fn a_denial_names_every_violation() {
    let mut request = KernelRequest::call("r", "mallory", "a reason", "nope", json("{}"));
    request.params = Some(json(r#"{"a":"0123456789"}"#));
    let receipt = submit("max_param_bytes: 10", request);
    for part in [
        "Actor 'mallory' is not in allowed actors",
        "Params take 18 bytes",
        "Tool 'nope' is not registered",
    ] {
        assert!(error(&receipt).contains(part), "{part}: {receipt:?}");
    }
}

#[test]
fn an_empty_policy_allows_nothing() {
    let lab = Lab::new();
    let kernel = Kernel::boot(lab.config_with("version: 1\n", vec![])).unwrap();
    let receipt = kernel.submit(echo("r"));
    assert_eq!(ends(&receipt), DENIED);
    assert!(error(&receipt).contains("no actor is allowed"), "{receipt:?}");
}
