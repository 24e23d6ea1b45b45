//! What Anthropic is sent.

use std::collections::BTreeSet;

use fluffy_provider::{
    Answer, Call, CallOutcome, CallResult, Effort, Endpoint, Message, ModelRequest, Place,
    ProviderError, ReasoningBlock,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{HERE, streams};
use crate::conversations;
use crate::recorded::{asking, body, decode, endpoint, thinking, tool, turn};

/// Models of all kinds that differ in what they are told.
pub(crate) const MODELS: [&str; 3] = ["claude-sonnet-4-6", "claude-haiku-4-5", "claude-opus-5"];

/// Blocks of reasoning, one of them nonsense.
pub(crate) const BLOCKS: [&str; 3] = [
    r#"{"type":"thinking","thinking":"hm","signature":"c2ln"}"#,
    r#"{"type":"redacted_thinking","data":"c2VhbGVk"}"#,
    r#"{"type":"text","text":"not a thought"}"#,
];

pub(crate) fn any_request() -> impl Strategy<Value = ModelRequest> {
    conversations::requests(&MODELS, "anthropic/vendor", &BLOCKS)
}

fn texts(blocks: &Value) -> String {
    let blocks = blocks.as_array().into_iter().flatten();
    blocks.map(|block| block["text"].as_str().unwrap()).collect()
}

fn string(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// A recorded request in the normal form.
fn normal(body: &Value) -> ModelRequest {
    let tools = body["tools"].as_array().into_iter().flatten().map(|its| {
        let summary = its["description"].as_str().unwrap();
        tool(its["name"].as_str().unwrap(), summary, its["input_schema"].clone())
    });
    let endpoint = endpoint(HERE);
    let origin = endpoint.origin(body["model"].as_str().unwrap());
    let messages = body["messages"].as_array().unwrap().iter();
    ModelRequest {
        model: string(&body["model"]),
        system: texts(&body["system"]),
        tools: tools.collect(),
        messages: messages.map(|message| normal_message(message, &origin)).collect(),
        max_output_tokens: body["max_tokens"].as_u64().unwrap(),
    }
}

fn normal_message(message: &Value, origin: &str) -> Message {
    let blocks = message["content"].as_array().unwrap();
    if message["role"] == "user" && blocks[0]["type"] == "tool_result" {
        let results = blocks.iter().map(|block| CallResult {
            call_id: string(&block["tool_use_id"]),
            tool: String::new(),
            content: texts(&block["content"]),
            outcome: CallOutcome::Done,
        });
        return Message::Results { results: results.collect() };
    }
    if message["role"] == "user" {
        return Message::User { text: texts(&message["content"]) };
    }
    let (mut text, mut calls, mut reasoning) = (String::new(), Vec::new(), Vec::new());
    for block in blocks {
        match block["type"].as_str().unwrap() {
            "text" => text.push_str(block["text"].as_str().unwrap()),
            "tool_use" => calls.push(Call {
                id: string(&block["id"]),
                name: string(&block["name"]),
                arguments: block["input"].to_string(),
            }),
            _ => reasoning.push(ReasoningBlock {
                origin: origin.to_owned(),
                data: block.to_string(),
                place: Place { text: text.len(), calls: calls.len() },
            }),
        }
    }
    Message::Assistant { text, calls, reasoning }
}

/// A body without what is only said in one way or not at all: how the model samples, what is cached, how hard it
/// is told to think.
fn meaning(mut body: Value) -> Value {
    let said = body.as_object_mut().unwrap();
    for name in ["temperature", "stop_sequences", "tool_choice", "output_config"] {
        said.remove(name);
    }
    let thinks = said.remove("thinking").is_some();
    said.insert("thinks".to_owned(), thinks.into());
    uncached(&mut body);
    body
}

fn uncached(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(uncached),
        Value::Object(members) => {
            members.remove("cache_control");
            members.values_mut().for_each(uncached);
        }
        _ => {}
    }
}

/// Where the same is to be asked: told to think where the recorded request says so.
fn place_of(body: &Value) -> Endpoint {
    if body.get("thinking").is_some() { thinking(HERE, Effort::Medium) } else { endpoint(HERE) }
}

#[test]
fn what_was_recorded_is_asked_in_the_same_words() {
    let mut checked = 0;
    for recording in streams() {
        let Some(recorded) = recording.body else { continue };
        let endpoint = place_of(&recorded);
        let ask = HERE.adapter().turn(&normal(&recorded), &endpoint).unwrap();
        assert_eq!(ask.path, recording.path);
        assert_eq!(ask.headers, [("anthropic-version", "2023-06-01".to_owned())]);
        let ours = body(&normal(&recorded), &endpoint);
        assert_eq!(meaning(ours), meaning(recorded), "{}", recording.name);
        checked += 1;
    }
    assert!(checked >= 13, "{checked}");
}

#[test]
fn what_was_recorded_with_a_cache_is_cached_in_the_same_places() {
    for recording in streams().into_iter().filter(|its| its.name.contains("prompt_caching")) {
        let mut recorded = recording.body.unwrap();
        let mut ours = body(&normal(&recorded), &endpoint(HERE));
        for body in [&mut ours, &mut recorded] {
            body.as_object_mut()
                .unwrap()
                .retain(|name, _| name != "tool_choice" && name != "temperature");
        }
        assert_eq!(ours, recorded);
    }
}

/// The recorded turns of a session, in their order.
fn session(word: &str) -> Vec<(Value, Vec<u8>)> {
    let turns = streams().into_iter().filter(|recording| recording.name.contains(word));
    turns.map(|turn| (turn.body.unwrap(), turn.stream)).collect()
}

#[test]
fn a_session_goes_on_with_the_very_blocks_that_came() {
    for (word, turns) in [("sequential_tool_calls", 3), ("reasoning_tool_roundtrip", 2)] {
        let session = session(word);
        assert_eq!(session.len(), turns);
        let mut request = normal(&session[0].0);
        for pair in session.windows(2) {
            let (said, end) = decode(HERE, &request, [pair[0].1.as_slice()]);
            assert_eq!(end, Ok(()));
            request.messages.push(turn(said).message());
            request.messages.extend(normal(&pair[1].0).messages.pop());
            let ours = body(&request, &place_of(&pair[1].0));
            assert_eq!(meaning(ours), meaning(pair[1].0.clone()), "{word}");
        }
    }
}

#[test]
fn thoughts_are_handed_back_in_their_places_and_only_to_their_own_model() {
    let redacted = session("redacted_thinking").remove(0);
    let mut request = normal(&redacted.0);
    request.messages.push(turn(decode(HERE, &request, [redacted.1.as_slice()]).0).message());
    request.messages.push(Message::User { text: "go on".to_owned() });
    let said = body(&request, &endpoint(HERE))["messages"][1]["content"].clone();
    let sealed =
        |n| json!({"type": "redacted_thinking", "data": format!("redacted_thinking_REDACTED_{n}")});
    assert_eq!(said, json!([sealed(1), sealed(2), {"type": "text", "text": "OK"}]));

    request.model = "claude-other".to_owned();
    let said = body(&request, &endpoint(HERE))["messages"][1]["content"].clone();
    assert_eq!(said, json!([{"type": "text", "text": "OK"}]));
}

#[test]
fn thoughts_between_words_and_calls_stay_there() {
    let endpoint = endpoint(HERE);
    let block = |n: u32, text, calls| ReasoningBlock {
        origin: endpoint.origin("m"),
        data: json!({"type": "thinking", "thinking": "", "signature": n.to_string()}).to_string(),
        place: Place { text, calls },
    };
    let call =
        |id: &str| Call { id: id.to_owned(), name: "t".to_owned(), arguments: String::new() };
    let mut request = asking("m");
    request.messages = vec![
        Message::User { text: "do".to_owned() },
        Message::Assistant {
            text: "éa".to_owned(),
            calls: vec![call("1"), call("2")],
            // The last place is none: it is where the turn ends, and no turn may end in thoughts.
            reasoning: vec![block(1, 0, 0), block(2, 2, 0), block(3, 3, 1), block(4, 999, 999)],
        },
    ];
    let body = body(&request, &endpoint);
    let kinds = |index: usize| {
        let blocks = body["messages"][index]["content"].as_array().unwrap().iter();
        let kind = |block: &Value| {
            ["signature", "text", "id", "tool_use_id"]
                .iter()
                .find_map(|key| block[key].as_str())
                .unwrap()
                .to_owned()
        };
        blocks.map(kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(1), ["1", "é", "2", "a", "1", "3", "2"]);
    assert_eq!(kinds(2), ["1", "2"], "calls without a result are answered");
}

#[test]
fn results_come_first_and_what_is_said_beside_them_behind() {
    let call = |id: &str, arguments: &str| Call {
        id: id.to_owned(),
        name: "fs.read".to_owned(),
        arguments: arguments.to_owned(),
    };
    let result = |id: &str, content: &str, outcome| CallResult {
        call_id: id.to_owned(),
        tool: "fs.read".to_owned(),
        content: content.to_owned(),
        outcome,
    };
    let user = |text: &str| Message::User { text: text.to_owned() };
    let mut request = asking("m");
    request.messages = vec![
        user("one"),
        user(" \n"),
        user("two"),
        Message::Assistant {
            text: "\n".to_owned(),
            calls: vec![call("a", "{broken"), call("b", ""), call("fs|1", "[2]")],
            reasoning: Vec::new(),
        },
        user("in between"),
        Message::Results {
            results: vec![
                result("fs|1", "odd", CallOutcome::Done),
                result("stray", "of no call", CallOutcome::Done),
                result("a", "", CallOutcome::Denied),
            ],
        },
        user("behind"),
    ];
    let messages = body(&request, &endpoint(HERE))["messages"].clone();
    let text = |text: &str| json!({"type": "text", "text": text});
    let id = messages[1]["content"][2]["id"].clone();
    assert!(id.as_str().unwrap().starts_with("call_"));
    let call = |id: &Value| json!({"type": "tool_use", "id": id, "name": "fs_read", "input": {}});
    let kept = json!({"type": "ephemeral"});
    let expected = json!([
        {"role": "user", "content": [
            text("one"), {"type": "text", "text": "two", "cache_control": kept},
        ]},
        {"role": "assistant", "content": [call(&json!("a")), call(&json!("b")), call(&id)]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "is_error": true},
            {"type": "tool_result", "tool_use_id": "b", "is_error": true,
             "content": [text("there is no result of this call")]},
            {"type": "tool_result", "tool_use_id": id, "content": [text("odd")]},
            text("in between"),
            {"type": "text", "text": "behind", "cache_control": kept},
        ]},
    ]);
    assert_eq!(messages, expected);
}

#[test]
fn a_turn_that_was_interrupted_is_sent_without_blanks_at_its_end() {
    let mut request = asking("m");
    let said = |text: &str| Message::Assistant {
        text: text.to_owned(),
        calls: Vec::new(),
        reasoning: Vec::new(),
    };
    request.messages = vec![Message::User { text: "a".to_owned() }, said("b "), said("c \n")];
    let messages = body(&request, &endpoint(HERE))["messages"].clone();
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(messages[1], json!({"role": "assistant", "content": [text("b "), text("c")]}));
}

#[test]
fn thinking_is_asked_for_in_the_words_of_the_model() {
    let asked = |model: &str, limit: u64, effort: Effort| {
        let mut request = asking(model);
        request.max_output_tokens = limit;
        let body = body(&request, &thinking(HERE, effort));
        assert_eq!(body["max_tokens"], limit);
        (body["thinking"].clone(), body["output_config"].clone())
    };
    let none = Value::Null;
    let adaptive = |effort: &str| (json!({"type": "adaptive"}), json!({"effort": effort}));
    let budget = |tokens: u64| (json!({"type": "enabled", "budget_tokens": tokens}), none.clone());
    assert_eq!(asked("claude-sonnet-4-6", 100, Effort::Low), adaptive("low"));
    assert_eq!(asked("claude-opus-5", 100, Effort::High), adaptive("high"));
    assert_eq!(
        asked("claude-opus-5", 100, Effort::None),
        (json!({"type": "disabled"}), none.clone())
    );
    assert_eq!(asked("claude-haiku-4-5", 64_000, Effort::Medium), budget(8_192));
    assert_eq!(asked("claude-sonnet-4-20250514", 4_096, Effort::High), budget(2_048));
    assert_eq!(asked("claude-haiku-4-5", 2_047, Effort::High), (none.clone(), none.clone()));
    assert_eq!(body(&asking("m"), &endpoint(HERE)).get("thinking"), None);
}

#[test]
fn a_budget_to_think_with_is_not_given_where_another_model_began() {
    let endpoint = thinking(HERE, Effort::High);
    let call = Call { id: "a".to_owned(), name: "t".to_owned(), arguments: String::new() };
    let said = |reasoning| Message::Assistant {
        text: String::new(),
        calls: vec![call.clone()],
        reasoning,
    };
    let block = |model: &str| ReasoningBlock {
        origin: endpoint.origin(model),
        data: BLOCKS[0].to_owned(),
        place: Place::default(),
    };
    let user = || Message::User { text: "do".to_owned() };
    let thinks = |messages: &[Message]| {
        let mut request = asking("claude-haiku-4-5");
        request.messages = messages.to_vec();
        body(&request, &endpoint).get("thinking").is_some()
    };
    let (own, other) = (said(vec![block("claude-haiku-4-5")]), said(vec![block("claude-opus-5")]));
    assert!(thinks(&[user()]));
    assert!(thinks(&[user(), own.clone()]));
    assert!(thinks(&[user(), own.clone(), said(Vec::new())]), "it began with a thought");
    assert!(!thinks(&[user(), other.clone(), own]));
    let words =
        Message::Assistant { text: "so".to_owned(), calls: Vec::new(), reasoning: Vec::new() };
    assert!(thinks(&[user(), other, words, user()]), "that is over");
}

#[test]
fn the_address_may_say_the_version_and_the_version_may_be_another() {
    let at = |url: &str, version: Option<&str>| {
        let (url, version) = (url.parse().unwrap(), version.map(str::to_owned));
        let endpoint = Endpoint { url, version, ..endpoint(HERE) };
        let ask = HERE.adapter().count(&asking("m"), &endpoint).unwrap().unwrap();
        (ask.path, ask.headers[0].1.clone())
    };
    let usual = |path: &str| (path.to_owned(), "2023-06-01".to_owned());
    let path = "/v1/messages/count_tokens";
    assert_eq!(at("https://api.anthropic.com", None), usual(path));
    assert_eq!(at("https://host/anthropic/", None), usual(path));
    assert_eq!(at("https://host/api/v1", None), usual("/messages/count_tokens"));
    let later = (path.to_owned(), "2026-10-21".to_owned());
    assert_eq!(at("https://host", Some("2026-10-21")), later);
}

#[test]
fn a_count_is_asked_for_the_same_conversation() {
    let recorded = session("sequential_tool_calls").remove(2).0;
    let request = normal(&recorded);
    let ask = HERE.adapter().count(&request, &endpoint(HERE)).unwrap().unwrap();
    let mut turn = body(&request, &endpoint(HERE));
    turn.as_object_mut().unwrap().retain(|name, _| name != "max_tokens" && name != "stream");
    assert_eq!(serde_json::from_slice::<Value>(&ask.body.unwrap()).unwrap(), turn);
}

#[test]
fn the_key_has_its_own_header_and_two_tools_of_one_name_are_refused() {
    assert_eq!(HERE.adapter().key_header(), ("x-api-key", ""));
    let mut request = asking("m");
    request.tools = vec![tool("fs.read", "", json!({})), tool("fs_read", "", json!({}))];
    assert!(HERE.adapter().turn(&request, &endpoint(HERE)).is_err());
    assert!(HERE.adapter().decoder(&request, &endpoint(HERE)).is_err());
}

#[test]
fn the_recorded_refusal_names_the_model() {
    let name = "rig--anthropic-error_envelope-nonexistent_model_streaming_error_preserves_status_and_body.0.json";
    let place = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let body = std::fs::read(place.join(name)).unwrap();
    let refusal = HERE.adapter().refusal(&Answer { status: 404, headers: Vec::new(), body });
    assert_eq!(refusal, ProviderError::NoSuchModel("claude-nonexistent-rig-test".to_owned()));
}

/// What Anthropic answers with 400 if it is not so.
fn check_sound(body: &Value) {
    let messages = body["messages"].as_array().unwrap();
    let mut called: Vec<String> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap();
        assert!(index == 0 || messages[index - 1]["role"] != role, "two of a kind: {body}");
        let blocks = message["content"].as_array().unwrap();
        assert!(!blocks.is_empty(), "empty: {body}");
        assert!(
            blocks.iter().all(|b| b["text"].as_str().is_none_or(|t| !t.trim().is_empty())),
            "{body}"
        );
        let ids = |key: &str| {
            blocks.iter().filter_map(|b| b[key].as_str()).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(ids("tool_use_id"), called, "every call is answered, in order: {body}");
        let results = called.len();
        assert!(blocks[..results].iter().all(|block| block["type"] == "tool_result"));
        called = ids("id");
        let last = blocks.last().unwrap()["type"].as_str().unwrap();
        assert!(role == "user" || !last.contains("thinking"), "{body}");
        assert!(
            called
                .iter()
                .all(|id| id.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)))
        );
    }
    assert!(called.is_empty(), "{body}");
    assert!(body.to_string().matches("\"cache_control\"").count() <= 4, "{body}");
    let names: BTreeSet<_> =
        body["tools"].as_array().into_iter().flatten().map(|t| t["name"].to_string()).collect();
    assert!(names.iter().all(|name| !name.contains('.') && !name.contains('/')));
    if let Some(budget) = body["thinking"]["budget_tokens"].as_u64() {
        assert!(budget >= 1_024 && budget < body["max_tokens"].as_u64().unwrap());
    }
}

proptest! {
    #[test]
    fn any_conversation_is_one_that_the_vendor_takes(request in any_request()) {
        for effort in [Effort::None, Effort::Low, Effort::High] {
            check_sound(&body(&request, &thinking(HERE, effort)));
        }
        check_sound(&body(&request, &endpoint(HERE)));
    }
}
