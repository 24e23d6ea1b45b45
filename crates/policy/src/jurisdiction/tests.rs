//! Tests of the jurisdiction: one for each key, and that no key does nothing.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Strength;
use fluffy_base::{KernelRequest, ToolCall};

fn jurisdiction() -> Jurisdiction {
    Jurisdiction {
        allowed_actors: Names::only(["alice", "béa"]).unwrap(),
        allowed_tools: Names::only(["add", "echo"]).unwrap(),
        ..Jurisdiction::default()
    }
}

fn json(value: Value) -> Json {
    Json::new(value).unwrap()
}

fn call() -> KernelRequest {
    KernelRequest::call("r1", "alice", "say hi", "echo", json(json!({"text": "hi"})))
}

fn judged(jurisdiction: &Jurisdiction, request: &KernelRequest) -> String {
    jurisdiction.judge(&Facts::new(request, KernelState::Idle)).to_string()
}

fn requiring(field: &str) -> Jurisdiction {
    Jurisdiction { required_fields: [field.parse().unwrap()].into(), ..jurisdiction() }
}

#[test]
fn a_request_within_every_limit_is_allowed() {
    assert_eq!(judged(&jurisdiction(), &call()), "allow");
    assert_eq!(judged(&jurisdiction(), &KernelRequest::intent_only("r", "alice", "hm")), "allow");
}

#[test]
fn strangers_and_unknown_tools_are_denied_in_the_words_of_the_peer() {
    let mallory = KernelRequest { actor: "mallory".to_owned(), ..call() };
    assert_eq!(judged(&jurisdiction(), &mallory), "deny: Actor 'mallory' is not in allowed actors");
    let nope = KernelRequest::call("r6", "alice", "bad tool", "nope", Json::empty_object());
    assert_eq!(judged(&jurisdiction(), &nope), "deny: Tool 'nope' is not in allowed tools");
}

#[test]
fn a_denial_carries_every_violation_as_its_own_reason() {
    let strict = Jurisdiction {
        allowed_states: vec![KernelState::Booting],
        required_fields: ["evidence", "params.constraints"].map(|f| f.parse().unwrap()).into(),
        max_param_bytes: 1,
        max_intent_length: Some(3),
        ..jurisdiction()
    };
    let mut request = KernelRequest::call("r", "eve", "four", "rm", json(json!({"a": 1})));
    request.params = Some(Json::empty_object());
    let verdict = strict.judge(&Facts::new(&request, KernelState::Idle));
    let told: Vec<_> = verdict
        .reasons()
        .unwrap()
        .iter()
        .map(|reason| format!("{}: {}", reason.rule(), reason.text()))
        .collect();
    assert_eq!(
        told,
        [
            "jurisdiction.allowed_actors: Actor 'eve' is not in allowed actors",
            "jurisdiction.allowed_states: State 'IDLE' is not in allowed states",
            "jurisdiction.allowed_tools: Tool 'rm' is not in allowed tools",
            "jurisdiction.max_intent_length: Intent has 4 characters, of which 3 are allowed",
            "jurisdiction.max_param_bytes: Params take 2 bytes, of which 1 are allowed",
            "jurisdiction.max_param_bytes: Tool params take 7 bytes, of which 1 are allowed",
            "jurisdiction.required_fields: Field 'evidence' is required, and missing or empty",
            "jurisdiction.required_fields: Field 'params.constraints' is required, and missing or empty",
        ]
    );
}

#[test]
fn a_denial_says_what_would_be_allowed() {
    let hint = |jurisdiction: &Jurisdiction, actor: &str| {
        let request = KernelRequest::intent_only("r", actor, "hm");
        let verdict = jurisdiction.judge(&Facts::new(&request, KernelState::Idle));
        verdict.reasons().unwrap().primary().hint().unwrap().to_owned()
    };
    assert_eq!(hint(&jurisdiction(), "eve"), "the actors alice, béa");
    let many: Vec<_> = (10..30).map(|n| format!("a{n}")).collect();
    let many = Names::only(many.iter().map(String::as_str)).unwrap();
    let crowd = Jurisdiction { allowed_actors: many, ..jurisdiction() };
    assert!(hint(&crowd, "eve").ends_with("a18, a19 and 10 more"));
}

#[test]
fn what_is_not_set_allows_nobody_and_names_the_key() {
    assert_eq!(
        judged(&Jurisdiction::default(), &call()),
        "deny: Actor 'alice' is not in allowed actors: no actor is allowed until \
         `jurisdiction.allowed_actors` names one; Tool 'echo' is not in allowed tools: no tool is \
         allowed until `jurisdiction.allowed_tools` names one"
    );
}

#[test]
fn a_star_alone_means_any() {
    let any = Names::only(["*"]).unwrap();
    assert_eq!(any, Names::any());
    let open = Jurisdiction { allowed_actors: any, allowed_tools: Names::any(), ..jurisdiction() };
    let request = KernelRequest::call("r", "eve", "x", "nope", Json::empty_object());
    assert_eq!(judged(&open, &request), "allow");
}

#[test]
fn a_name_that_could_never_match_or_would_match_too_much_is_an_error() {
    assert_eq!(Names::only(["*", "a"]), Err(NameError::StarAmongOthers));
    assert_eq!(Names::only(["fs.*"]), Err(NameError::Pattern));
    assert_eq!(Names::only(["\u{200b}"]), Err(NameError::Blank));
    assert_eq!(Names::only([" a"]), Err(NameError::Padded));
}

#[test]
fn lesson_l10_two_spellings_of_one_actor_are_one_actor() {
    let decomposed = KernelRequest { actor: "be\u{301}a".to_owned(), ..call() };
    assert_eq!(judged(&jurisdiction(), &decomposed), "allow");
    let names = Names::only(["be\u{301}a"]).unwrap();
    assert!(names.contains("b\u{e9}a"));
    assert!(!names.contains("bea"));
}

#[test]
fn lesson_l09_allowed_states_decide_in_which_state_a_request_is_heard() {
    let request = call();
    for allowed in KernelState::ALL {
        let only = Jurisdiction { allowed_states: vec![allowed], ..jurisdiction() };
        for state in KernelState::ALL {
            let verdict = only.judge(&Facts::new(&request, state));
            assert_eq!(
                verdict.strength() == Strength::Allow,
                state == allowed,
                "{allowed} {state}"
            );
        }
    }
    let never = Jurisdiction { allowed_states: vec![], ..jurisdiction() };
    assert_eq!(judged(&never, &request), "deny: State 'IDLE' is not in allowed states");
}

#[test]
fn lesson_l09_the_size_limit_holds_for_tool_parameters_and_request_parameters() {
    let limit = Jurisdiction { max_param_bytes: 13, ..jurisdiction() };
    assert_eq!(judged(&limit, &call()), "allow");
    let fourteen = json(json!({"text": "hi!"}));
    let mut in_tool = call();
    in_tool.tool_call = Some(ToolCall { name: "echo".to_owned(), params: fourteen.clone() });
    assert_eq!(
        judged(&limit, &in_tool),
        "deny: Tool params take 14 bytes, of which 13 are allowed"
    );
    let in_request = KernelRequest { params: Some(fourteen), ..call() };
    assert_eq!(judged(&limit, &in_request), "deny: Params take 14 bytes, of which 13 are allowed");
}

#[test]
fn lesson_l09_the_intent_limit_counts_characters_not_bytes() {
    let limit = Jurisdiction { max_intent_length: Some(3), ..jurisdiction() };
    let says = |intent: &str| judged(&limit, &KernelRequest::intent_only("r", "alice", intent));
    assert_eq!(says("éé😀"), "allow");
    assert_eq!(says("éé😀!"), "deny: Intent has 4 characters, of which 3 are allowed");
}

#[test]
fn lesson_l09_every_required_field_is_really_required() {
    let full = KernelRequest {
        params: Some(json(json!({"limit": 0}))),
        evidence: Some("ev".to_owned()),
        ..call()
    };
    let lacks = |field: &str, change: &dyn Fn(&mut KernelRequest)| {
        let mut request = full.clone();
        change(&mut request);
        assert_eq!(judged(&requiring(field), &full), "allow", "{field}");
        let told = judged(&requiring(field), &request);
        let expected = format!("Field '{field}' is required, and missing or empty");
        assert!(told.starts_with("deny: ") && told.ends_with(&expected), "{told}");
    };
    lacks("request_id", &|r| r.request_id = "\u{200b}".to_owned());
    lacks("ts_ms", &|r| r.ts_ms = -1);
    lacks("actor", &|r| r.actor.clear());
    lacks("intent", &|r| r.intent = " ".to_owned());
    lacks("tool_call", &|r| r.tool_call = None);
    lacks("params", &|r| r.params = None);
    lacks("params", &|r| r.params = Some(Json::empty_object()));
    lacks("evidence", &|r| r.evidence = None);
    lacks("evidence", &|r| r.evidence = Some("\t".to_owned()));
    lacks("params.limit", &|r| r.params = None);
    lacks("params.limit", &|r| r.params = Some(json(json!({"limit": null}))));
    lacks("params.limit", &|r| r.params = Some(json(json!(["limit"]))));
}

#[test]
fn a_required_field_is_read_back_from_its_name_and_others_are_unknown() {
    for (name, field) in PLAIN_FIELDS {
        assert_eq!(field.to_string(), name);
        assert_eq!(name.parse(), Ok(field));
        assert!(RequiredField::EXPECTED.contains(name));
    }
    assert_eq!("params.a".parse(), Ok(RequiredField::Param("a".to_owned())));
    for text in ["", "Actor", "params.", "params. ", "params.a.b", "tool_call.name", "actor "] {
        assert_eq!(text.parse::<RequiredField>(), Err(UnknownField), "{text}");
    }
}

#[test]
fn hostile_text_in_a_message_is_short_and_harmless() {
    let actor = format!("\u{1b}[2J; Tool\n{}", "x".repeat(5000));
    let text = judged(&jurisdiction(), &KernelRequest { actor, ..call() });
    assert!(text.starts_with("deny: Actor '\\u{1b}[2J; Tool\\nxxx"), "{text}");
    assert!(text.chars().count() < 150, "{text}");
}

#[derive(Debug, Clone)]
struct Case {
    actor: &'static str,
    tool: Option<&'static str>,
    state: KernelState,
    tool_bytes: usize,
    bytes: usize,
    intent: usize,
    evidence: bool,
}

fn any_case() -> impl Strategy<Value = Case> {
    (
        prop::sample::select(vec!["alice", "béa", "be\u{301}a", "eve", "*", ""]),
        prop::option::of(prop::sample::select(vec!["echo", "add", "rm", "*", ""])),
        prop::sample::select(&KernelState::ALL[..]),
        10usize..40,
        10usize..40,
        1usize..40,
        any::<bool>(),
    )
        .prop_map(|(actor, tool, state, tool_bytes, bytes, intent, evidence)| Case {
            actor,
            tool,
            state,
            tool_bytes,
            bytes,
            intent,
            evidence,
        })
}

/// An object whose canonical text has exactly this many bytes.
fn sized(bytes: usize) -> Json {
    json(json!({"t": "x".repeat(bytes - r#"{"t":""}"#.len())}))
}

proptest! {
    #[test]
    fn a_jurisdiction_denies_whenever_any_limit_is_exceeded_and_only_then(case in any_case()) {
        let limits = Jurisdiction {
            allowed_states: vec![KernelState::Idle, KernelState::Booting],
            required_fields: [RequiredField::Evidence].into(),
            max_param_bytes: 30,
            max_intent_length: Some(30),
            ..jurisdiction()
        };
        let mut request = KernelRequest::intent_only("r", case.actor, &"é".repeat(case.intent));
        request.tool_call =
            case.tool.map(|name| ToolCall { name: name.to_owned(), params: sized(case.tool_bytes) });
        request.params = Some(sized(case.bytes));
        request.evidence = case.evidence.then(|| "ev".to_owned());
        let violations = [
            !matches!(case.actor, "alice" | "béa" | "be\u{301}a"),
            case.tool.is_some_and(|tool| !matches!(tool, "echo" | "add")),
            !matches!(case.state, KernelState::Idle | KernelState::Booting),
            case.tool.is_some() && case.tool_bytes > 30,
            case.bytes > 30,
            case.intent > 30,
            !case.evidence,
        ];
        let expected = violations.into_iter().filter(|violated| *violated).count();
        let verdict = limits.judge(&Facts::new(&request, case.state));
        prop_assert_eq!(verdict.reasons().map_or(0, |reasons| reasons.iter().count()), expected);
        prop_assert_eq!(verdict.strength() == Strength::Allow, expected == 0);
    }
}
