//! What each variant demands, case by case.

use fluffy_base::{Decision, KernelRequest, ReceiptStatus};
use fluffy_kernel::{Kernel, variant_named};

use crate::lab::{ALLOWED, DENIED, Lab, call, echo, ends, json};

/// A request and how it ends under strict, permissive, evidence-first and dual-channel.
struct Case {
    name: &'static str,
    request: KernelRequest,
    allowed: [bool; 4],
}

const NAMES: [&str; 4] = ["strict", "permissive", "evidence-first", "dual-channel"];

fn case(name: &'static str, request: KernelRequest, allowed: [bool; 4]) -> Case {
    Case { name, request, allowed }
}

fn spoken(intent: &str) -> KernelRequest {
    KernelRequest::intent_only("r", "alice", intent)
}

fn with_params(request: KernelRequest, params: &str) -> KernelRequest {
    KernelRequest { params: Some(json(params)), ..request }
}

fn with_evidence(request: KernelRequest, evidence: &str) -> KernelRequest {
    KernelRequest { evidence: Some(evidence.to_owned()), ..request }
}

fn with_intent(request: KernelRequest, intent: &str) -> KernelRequest {
    KernelRequest { intent: intent.to_owned(), ..request }
}

/// A request that every variant allows, so that one thing at a time can be taken away.
fn complete() -> KernelRequest {
    with_params(with_evidence(echo("r"), "ticket-1"), r#"{"constraints":{}}"#)
}

fn check(cases: Vec<Case>) {
    let labs: Vec<_> = NAMES
        .iter()
        .map(|name| {
            let lab = Lab::new();
            let mut config = lab.config(vec![]);
            config.variant = variant_named(name).unwrap();
            (Kernel::boot(config).unwrap(), lab)
        })
        .collect();
    for Case { name, request, allowed } in cases {
        for (((kernel, _), variant), allowed) in labs.iter().zip(NAMES).zip(allowed) {
            let receipt = kernel.submit(request.clone());
            let expected = if allowed { ALLOWED } else { DENIED };
            assert_eq!(ends(&receipt), expected, "{name} under {variant}: {receipt:?}");
        }
    }
}

#[test]
fn each_variant_demands_what_it_is_named_for() {
    let (evidence, constraints) = ("ticket-1", r#"{"constraints":{"max":1}}"#);
    check(vec![
        case("a bare call", echo("r"), [true, true, false, false]),
        case("with evidence", with_evidence(echo("r"), evidence), [true, true, true, false]),
        case("blank evidence", with_evidence(echo("r"), " \u{200b}"), [true, true, false, false]),
        case("constraints", with_params(echo("r"), constraints), [true, true, false, true]),
        case("everything", complete(), [true; 4]),
        case("an intent alone", spoken("a plan"), [false, true, false, false]),
        case(
            "an intent with evidence",
            with_evidence(spoken("a plan"), evidence),
            [true, true, true, false],
        ),
        case(
            "an intent with constraints",
            with_params(spoken("a plan"), constraints),
            [false, true, false, true],
        ),
    ]);
}

#[test]
fn constraints_are_an_object_beside_the_call_and_nothing_else() {
    let cases = [
        r#"{}"#,
        r#"{"constraints":null}"#,
        r#"{"constraints":[]}"#,
        r#"{"constraints":"none"}"#,
        r#"{"Constraints":{}}"#,
        r#"{"inner":{"constraints":{}}}"#,
    ];
    let dual =
        |params| case("constraints", with_params(echo("r"), params), [true, true, false, false]);
    check(cases.into_iter().map(dual).collect());
    let lab = Lab::new();
    let mut config = lab.config(vec![]);
    config.variant = variant_named("dual-channel").unwrap();
    let kernel = Kernel::boot(config).unwrap();
    let inside = call("r", "echo", r#"{"text":"hi","constraints":{}}"#);
    assert_eq!(ends(&kernel.submit(inside)), DENIED);
}

#[test]
fn ambiguity_is_strict_everywhere_but_in_the_permissive_variant() {
    let long = |length: usize| with_intent(complete(), &"é".repeat(length));
    let only_permissive = [false, true, false, false];
    check(vec![
        case("an empty intent", with_intent(complete(), ""), only_permissive),
        case("a blank intent", with_intent(complete(), " \t\n"), only_permissive),
        case("no visible intent", with_intent(complete(), "\u{200b}\u{feff}"), only_permissive),
        case("4,096 characters", long(4096), [true; 4]),
        case("4,097 characters", long(4097), only_permissive),
        case("8,192 characters", long(8192), only_permissive),
        case("8,193 characters", long(8193), [false; 4]),
    ]);
}

#[test]
fn no_variant_forgives_these() {
    let tool = |name: &str, params| {
        let request = KernelRequest::call("r", "alice", "why", name, json(params));
        with_params(with_evidence(request, "ticket-1"), r#"{"constraints":{}}"#)
    };
    let all = |name, request| case(name, request, [false; 4]);
    check(vec![
        all("a tool without a name", tool("", "{}")),
        all("a tool with a blank name", tool(" \u{200b}", "{}")),
        all("tool params that are a list", tool("echo", "[1]")),
        all("tool params that are a text", tool("echo", r#""hi""#)),
        all("params that are a list", with_params(complete(), "[]")),
        all("params that are a number", with_params(complete(), "1")),
        all("a blank intent and no tool", spoken(" ")),
        all("an unknown tool", tool("nope", "{}")),
        all("no request id", KernelRequest { request_id: String::new(), ..complete() }),
        all("no actor", KernelRequest { actor: String::new(), ..complete() }),
        all("a negative time", KernelRequest { ts_ms: -1, ..complete() }),
        all("a stranger", KernelRequest { actor: "mallory".to_owned(), ..complete() }),
        all("an id with a line end", KernelRequest { request_id: "a\nb".to_owned(), ..complete() }),
        all("a long id", KernelRequest { request_id: "x".repeat(257), ..complete() }),
    ]);
}

#[test]
fn a_variant_is_found_by_its_name_and_recorded_under_it() {
    for name in NAMES {
        let lab = Lab::new();
        let mut config = lab.config(vec![]);
        config.variant = variant_named(name).unwrap();
        let kernel = Kernel::boot(config).unwrap();
        let receipt = kernel.submit(complete());
        assert_eq!((receipt.decision, receipt.status), (Decision::Allow, ReceiptStatus::Accepted));
        assert_eq!(crate::lab::detail(&lab.last()).variant, name);
    }
    assert!(variant_named("Strict").is_none());
}
