//! What Google is sent.

use fluffy_provider::{
    Call, CallOutcome, CallResult, Effort, Endpoint, Message, ModelRequest, Turn,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{HERE, streams};
use crate::conversations;
use crate::recorded::{asking, body, decode, endpoint, thinking, tool, turn};

/// Models of all kinds that differ in what they are told.
pub(crate) const MODELS: [&str; 3] =
    ["gemini-2.5-flash", "models/gemini-3-pro-preview", "gemini-flash-latest"];

/// Blocks of reasoning, one of them nonsense.
pub(crate) const BLOCKS: [&str; 5] = [
    r#"{"thoughtSignature":"c2ln"}"#,
    r#"{"text":0,"thoughtSignature":"c2ln"}"#,
    r#"{"text":3,"thoughtSignature":"c2ln"}"#,
    r#"{"thought":"hm","thoughtSignature":"c2ln"}"#,
    "nonsense",
];

pub(crate) fn any_request() -> impl Strategy<Value = ModelRequest> {
    conversations::requests(&MODELS, "gemini/vendor", &BLOCKS)
}

/// A recorded request in the normal form, and how hard it says to think.
fn normal(path: &str, body: &Value) -> (ModelRequest, Endpoint) {
    let model = path.rsplit('/').next().unwrap().split(':').next().unwrap();
    let text =
        |content: &Value| content["parts"][0]["text"].as_str().unwrap_or_default().to_owned();
    let tools = body["tools"].as_array().into_iter().flatten();
    let tools =
        tools.flat_map(|tools| tools["functionDeclarations"].as_array().unwrap()).map(|its| {
            let summary = its["description"].as_str().unwrap();
            tool(its["name"].as_str().unwrap(), summary, its["parameters"].clone())
        });
    let contents = body["contents"].as_array().unwrap().iter();
    let config = &body["generationConfig"]["thinkingConfig"];
    let effort = match (config["thinkingBudget"].as_u64(), config["thinkingLevel"].as_str()) {
        (None, None) => None,
        (Some(0), _) => Some(Effort::None),
        (_, Some("medium")) => Some(Effort::Medium),
        other => unreachable!("{other:?}"),
    };
    let request = ModelRequest {
        model: model.to_owned(),
        system: text(&body["systemInstruction"]),
        tools: tools.collect(),
        messages: contents.map(|content| Message::User { text: text(content) }).collect(),
        max_output_tokens: body["generationConfig"]["maxOutputTokens"].as_u64().unwrap_or(99),
    };
    (request, Endpoint { effort, ..endpoint(HERE) })
}

/// A body without what says nothing, and with one word for what has two.
fn meaning(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(meaning).collect(),
        Value::Object(members) => {
            let members = members.into_iter().map(|(key, value)| {
                let key = if key == "parametersJsonSchema" { "parameters".to_owned() } else { key };
                (key, meaning(value))
            });
            let says = |(key, value): &(String, Value)| match key.as_str() {
                "thought" => value == &json!(true),
                "maxOutputTokens" => value != &json!(99),
                _ => !value.is_null() && value != &json!({}) || key == "properties",
            };
            Value::Object(members.filter(says).collect())
        }
        Value::String(text) if text == "MEDIUM" => json!("medium"),
        other => other,
    }
}

#[test]
fn what_was_recorded_is_asked_in_the_same_words() {
    let mut checked = 0;
    for recording in streams() {
        let Some(mut recorded) = recording.body else { continue };
        let (request, endpoint) = normal(&recording.path, &recorded);
        let ask = HERE.adapter().turn(&request, &endpoint).unwrap();
        assert_eq!(ask.path, format!("{}?alt=sse", recording.path));
        // A role that the instruction of the system does not need.
        if let Some(system) = recorded["systemInstruction"].as_object_mut() {
            system.remove("role");
        }
        let ours = body(&request, &endpoint);
        assert_eq!(meaning(ours), meaning(recorded), "{}", recording.name);
        checked += 1;
    }
    assert!(checked >= 4, "{checked}");
}

/// The contents of the request that answers all calls of a recorded turn.
fn answered(word: &str, model: &str) -> (Turn, Vec<Value>) {
    let recording = streams().into_iter().find(|recording| recording.name.contains(word)).unwrap();
    let mut request = asking(model);
    request.messages.push(Message::User { text: "do".to_owned() });
    let turn = turn(decode(HERE, &request, [recording.stream.as_slice()]).0);
    let results = turn.calls.iter().map(|call| CallResult {
        call_id: call.id.clone(),
        tool: call.name.clone(),
        content: "fine".to_owned(),
        outcome: CallOutcome::Done,
    });
    let results = Message::Results { results: results.collect() };
    request.messages.extend([turn.message(), results]);
    let contents = body(&request, &endpoint(HERE))["contents"].clone();
    (turn, contents.as_array().unwrap().clone())
}

#[test]
fn a_signature_and_an_id_go_back_on_the_call_they_came_with() {
    let (_, contents) = answered("thinking_then_tool_call", "gemini-3-flash-preview");
    let call = json!({"name": "lookup_harbor_label", "id": "call_966934", "args": {}});
    let part = json!({"functionCall": call, "thoughtSignature": "signature_REDACTED_1"});
    assert_eq!(contents[1], json!({"role": "model", "parts": [part]}));
    let response =
        json!({"name": "lookup_harbor_label", "id": "call_966934", "response": {"output": "fine"}});
    assert_eq!(contents[2], json!({"role": "user", "parts": [{"functionResponse": response}]}));
}

#[test]
fn calls_that_came_without_ids_go_back_without() {
    let (turn, contents) = answered("parallel_function_calls", "gemini-2.5-flash");
    assert!(turn.calls.iter().all(|call| !call.id.is_empty()));
    let call = |name: &str| json!({"functionCall": {"name": name, "args": {}}});
    let calls = json!([call("lookup_harbor_label"), call("lookup_orchard_label")]);
    assert_eq!(contents[1]["parts"], calls);
    let result =
        |name: &str| json!({"functionResponse": {"name": name, "response": {"output": "fine"}}});
    let results = json!([result("lookup_harbor_label"), result("lookup_orchard_label")]);
    assert_eq!(contents[2]["parts"], results);
}

#[test]
fn of_calls_at_once_the_one_that_was_signed_is_signed() {
    let (_, contents) = answered("stream-tool-call-arguments", "gemini-3.1-pro-preview");
    let parts = contents[1]["parts"].as_array().unwrap();
    let args: Vec<_> = parts.iter().map(|part| part["functionCall"]["args"].clone()).collect();
    assert_eq!(args, [json!({"location": "Boston"}), json!({"location": "San Francisco"})]);
    assert!(parts[0]["thoughtSignature"].as_str().unwrap().starts_with("CiMBjz1rX25"));
    assert_eq!(parts[1].get("thoughtSignature"), None);
    let (_, contents) = answered("tool-call-gemini3", "gemini-3-pro-preview");
    let signature = contents[1]["parts"][0]["thoughtSignature"].as_str().unwrap();
    assert!(signature.len() > 5_000 && signature.starts_with("EpEgCo4gAb4"));
}

/// What a model that said these parts is told to have said.
fn replayed(parts: &Value) -> Value {
    let candidate = json!({"content": {"parts": parts}, "finishReason": "STOP"});
    let stream = format!("data: {}\n\n", json!({"candidates": [candidate]}));
    let mut request = asking("gemini-3-pro");
    request.messages.push(turn(decode(HERE, &request, [stream.as_bytes()]).0).message());
    body(&request, &endpoint(HERE))["contents"][0]["parts"].clone()
}

#[test]
fn every_signed_part_goes_back_as_it_came() {
    let signed = |text: &str, n: u32| json!({"text": text, "thoughtSignature": n.to_string()});
    let call = |name: &str| json!({"functionCall": {"name": name, "id": name, "args": {"a": 1}}});
    let signed_call = |name: &str, n: u32| {
        let mut call = call(name);
        call["thoughtSignature"] = json!(n.to_string());
        call
    };
    for parts in [
        json!([{"text": "plain"}, signed("", 1)]),
        json!([{"text": "é"}, signed("ü", 1), {"text": "ö"}]),
        json!([signed("a", 1), signed("b", 2), signed_call("x", 3), call("y")]),
        json!([{"text": "a"}, signed_call("x", 1), signed_call("y", 2), signed("b", 3)]),
        json!([{"text": "hm", "thought": true, "thoughtSignature": "1"}, {"text": "so"}]),
    ] {
        assert_eq!(replayed(&parts), parts);
    }
    let unsigned =
        json!([{"text": "hm", "thought": true}, {"text": "a"}, {"text": "b"}, {"text": ""}]);
    assert_eq!(replayed(&unsigned), json!([{"text": "ab"}]), "what needs not go back does not");
}

#[test]
fn a_call_of_another_model_is_marked_for_models_that_want_a_signature() {
    let call =
        |id: &str| Call { id: id.to_owned(), name: "fs.read".to_owned(), arguments: String::new() };
    let calls = vec![call("toolu_1"), call("toolu_2")];
    let said = Message::Assistant { text: String::new(), calls, reasoning: Vec::new() };
    let signatures = |model: &str| {
        let mut request = asking(model);
        request.messages = vec![Message::User { text: "do".to_owned() }, said.clone()];
        let parts = body(&request, &endpoint(HERE))["contents"][1]["parts"].clone();
        [parts[0]["thoughtSignature"].clone(), parts[1]["thoughtSignature"].clone()]
    };
    let mark = json!("skip_thought_signature_validator");
    assert_eq!(signatures("gemini-3-pro-preview"), [mark.clone(), Value::Null]);
    assert_eq!(signatures("models/gemini-12-ultra"), [mark, Value::Null]);
    assert_eq!(signatures("gemini-2.5-flash"), [Value::Null, Value::Null]);
    assert_eq!(signatures("gemma-3-27b"), [Value::Null, Value::Null]);
}

#[test]
fn a_signature_of_another_model_is_left_out() {
    let (_, contents) = answered("thinking_then_tool_call", "gemini-2.5-flash");
    assert!(contents[1]["parts"][0].get("thoughtSignature").is_some());
    let recording = streams().into_iter().find(|its| its.name.contains("thinking_then")).unwrap();
    let mut request = asking("gemini-2.5-flash");
    request.messages.push(turn(decode(HERE, &request, [recording.stream.as_slice()]).0).message());
    request.model = "gemini-2.5-pro".to_owned();
    assert!(!body(&request, &endpoint(HERE)).to_string().contains("signature_REDACTED"));
}

#[test]
fn what_is_said_beside_results_stands_by_itself() {
    let call = Call { id: "a".to_owned(), name: "fs.read".to_owned(), arguments: "{no".to_owned() };
    let result = CallResult {
        call_id: "a".to_owned(),
        tool: "fs.read".to_owned(),
        content: "no such file".to_owned(),
        outcome: CallOutcome::Failed,
    };
    let mut request = asking("gemini-2.5-flash");
    request.messages = vec![
        Message::User { text: "do".to_owned() },
        Message::Assistant { text: String::new(), calls: vec![call], reasoning: Vec::new() },
        Message::Results { results: vec![result] },
        Message::User { text: "go on".to_owned() },
    ];
    let call = json!({"functionCall": {"name": "fs_read", "id": "a", "args": {}}});
    let response = json!({"name": "fs_read", "id": "a", "response": {"error": "no such file"}});
    let expected = json!([
        {"role": "user", "parts": [{"text": "do"}]},
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [{"functionResponse": response}]},
        {"role": "user", "parts": [{"text": "go on"}]},
    ]);
    assert_eq!(body(&request, &endpoint(HERE))["contents"], expected);
}

#[test]
fn a_models_name_is_one_part_of_the_path_whatever_is_in_it() {
    let path = |model: &str| HERE.adapter().turn(&asking(model), &endpoint(HERE)).unwrap().path;
    let at = |name: &str| format!("/v1beta/{name}:streamGenerateContent?alt=sse");
    assert_eq!(path("gemini-2.5-flash"), at("models/gemini-2.5-flash"));
    assert_eq!(path("models/gemini-2.5-flash"), at("models/gemini-2.5-flash"));
    assert_eq!(path("tunedModels/mine"), at("tunedModels/mine"));
    assert_eq!(path("../../x?key=1#a b"), at("models/..%2F..%2Fx%3Fkey%3D1%23a%20b"));
    assert_eq!(path("é\r\nhost: evil"), at("models/%C3%A9%0D%0Ahost%3A%20evil"));
}

#[test]
fn the_address_may_say_the_version_and_the_version_may_be_another() {
    let at = |url: &str, version: Option<&str>| {
        let (url, version) = (url.parse().unwrap(), version.map(str::to_owned));
        let endpoint = Endpoint { url, version, ..endpoint(HERE) };
        HERE.adapter().models(&endpoint, None).path
    };
    assert_eq!(at("https://host", None), "/v1beta/models?pageSize=1000");
    assert_eq!(at("https://host", Some("v1")), "/v1/models?pageSize=1000");
    assert_eq!(at("https://host/v1beta", None), "/models?pageSize=1000");
    assert_eq!(at("https://host/v1/projects/p/publishers/google", None), "/models?pageSize=1000");
    assert_eq!(HERE.adapter().key_header(), ("x-goog-api-key", ""));
}

#[test]
fn a_count_is_asked_for_the_whole_request() {
    let mut request = asking("gemini-2.5-flash");
    request.system = "be brief".to_owned();
    request.messages.push(Message::User { text: "hello".to_owned() });
    let ask = HERE.adapter().count(&request, &endpoint(HERE)).unwrap().unwrap();
    assert_eq!(ask.path, "/v1beta/models/gemini-2.5-flash:countTokens");
    let mut whole = body(&request, &endpoint(HERE));
    whole["model"] = json!("models/gemini-2.5-flash");
    let asked: Value = serde_json::from_slice(&ask.body.unwrap()).unwrap();
    assert_eq!(asked, json!({"generateContentRequest": whole}));
}

#[test]
fn thinking_is_asked_for_in_the_words_of_the_model() {
    let asked = |model: &str, effort: Effort| {
        body(&asking(model), &thinking(HERE, effort))["generationConfig"]["thinkingConfig"].clone()
    };
    let budget = |tokens: u64| json!({"thinkingBudget": tokens, "includeThoughts": true});
    let level = |level: &str| json!({"thinkingLevel": level, "includeThoughts": true});
    assert_eq!(asked("gemini-2.5-flash", Effort::High), budget(24_576));
    assert_eq!(asked("gemini-2.5-flash", Effort::None), json!({"thinkingBudget": 0}));
    assert_eq!(asked("gemini-2.5-pro", Effort::None), json!({"thinkingBudget": 128}));
    assert_eq!(asked("gemini-3-pro-preview", Effort::Low), level("LOW"));
    assert_eq!(asked("gemini-3-pro-preview", Effort::None), json!({"thinkingLevel": "LOW"}));
    assert_eq!(asked("gemini-flash-latest", Effort::None), json!({"thinkingLevel": "MINIMAL"}));
    let quiet = body(&asking("gemini-3-pro"), &endpoint(HERE));
    assert_eq!(quiet["generationConfig"], json!({"maxOutputTokens": 4_096}));
}

proptest! {
    #[test]
    fn any_conversation_is_one_that_the_vendor_takes(request in any_request()) {
        let body = body(&request, &endpoint(HERE));
        let count = |content: &Value, key: &str| {
            content["parts"].as_array().unwrap().iter().filter(|part| part.get(key).is_some()).count()
        };
        let contents = body["contents"].as_array().unwrap();
        let mut called = 0;
        for content in contents {
            prop_assert!(!content["parts"].as_array().unwrap().is_empty());
            let answered = count(content, "functionResponse");
            prop_assert_eq!(answered, called, "as many answers as calls: {}", body);
            prop_assert!(answered == 0 || count(content, "text") == 0);
            called = count(content, "functionCall");
        }
        prop_assert_eq!(called, 0);
    }
}
