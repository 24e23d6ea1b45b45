//! Bodies of requests, checked by the vendors' own SDKs.
//!
//! `scripts/test` puts the SDKs into `target/tools/sdk`.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use fluffy_provider::{Effort, Endpoint, ModelRequest, Protocol};
use proptest::prelude::Strategy;
use serde_json::{Value, json};

use crate::recorded::{body, endpoint, thinking};
use crate::{anthropic, conversations, gemini};

/// What is wrong with each of these, in the words of the vendor's SDK.
#[expect(clippy::disallowed_methods, reason = "the test runs the script that asks the SDK")]
fn problems(script: &str, asked: &[Value]) -> Vec<Option<String>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = here.join("../../target/tools/sdk/bin/python");
    assert!(python.exists(), "the SDKs: run scripts/test once, which makes target/tools/sdk");
    let mut child = Command::new(python)
        .args(["-I", script])
        .current_dir(here.join("tests/sdk"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: String = asked.iter().map(|line| format!("{line}\n")).collect();
    let mut stdin = child.stdin.take().unwrap();
    let writing = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap().unwrap();
    assert!(output.status.success());
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers = answers.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let answers: Vec<_> =
        answers.map(|answer| answer["error"].as_str().map(str::to_owned)).collect();
    assert_eq!(answers.len(), asked.len());
    answers
}

/// Requests of every kind, each to a place that wants another amount of thinking.
fn asked(
    protocol: Protocol,
    requests: impl Strategy<Value = ModelRequest>,
) -> Vec<(String, Value)> {
    let efforts = [None, Some(Effort::None), Some(Effort::Low), Some(Effort::High)];
    let requests = conversations::some(120, requests).into_iter().zip(efforts.into_iter().cycle());
    requests
        .flat_map(|(request, effort)| {
            let endpoint = effort.map_or_else(|| endpoint(protocol), |its| thinking(protocol, its));
            [
                ("turn".to_owned(), body(&request, &endpoint)),
                ("count".to_owned(), count(&request, &endpoint)),
            ]
        })
        .collect()
}

fn count(request: &ModelRequest, endpoint: &Endpoint) -> Value {
    let ask = endpoint.protocol.adapter().count(request, endpoint).unwrap().unwrap();
    serde_json::from_slice(&ask.body.unwrap()).unwrap()
}

/// The bodies pass; with a mistake in any kind of object of theirs they do not, and neither do the wrong ones.
fn check(script: &str, asked: &[(String, Value)], wrong: &[Value]) {
    let line = |kind: &str, body: &Value| json!({"kind": kind, "body": body});
    let mut mistakes = BTreeMap::new();
    for (kind, body) in asked {
        for (object, body) in mistaken(body) {
            mistakes.entry(format!("{kind} {object}")).or_insert_with(|| line(kind, &body));
        }
    }
    assert!(mistakes.len() >= 20, "{:?}", mistakes.keys());
    let sound = asked.iter().map(|(kind, body)| line(kind, body));
    let lines: Vec<_> = sound.chain(mistakes.into_values()).chain(wrong.iter().cloned()).collect();
    for (index, (problem, line)) in problems(script, &lines).iter().zip(&lines).enumerate() {
        let is_sound = index < asked.len();
        assert_eq!(problem.is_none(), is_sound, "{line}\n{problem:?}");
    }
}

/// The same body with one mistake each, a member that there is not, for every object whose members are the vendor's
/// to name; and what kind of object has it.
fn mistaken(body: &Value) -> Vec<(String, Value)> {
    let mut places = Vec::new();
    objects(body, String::new(), &mut places);
    let mistake = |place: &String| {
        let mut body = body.clone();
        let object = body.pointer_mut(place).unwrap().as_object_mut().unwrap();
        let members: Vec<_> = object.keys().cloned().collect();
        object.insert("a_member_that_there_is_not".to_owned(), json!(1));
        let place: String = place.chars().filter(|c| !c.is_ascii_digit()).collect();
        (format!("{place} {members:?}"), body)
    };
    places.iter().map(mistake).collect()
}

fn objects(value: &Value, place: String, places: &mut Vec<String>) {
    // Arguments, answers and schemas have members of their own.
    const THEIRS: [&str; 5] = ["input", "input_schema", "args", "response", "parametersJsonSchema"];
    match value {
        Value::Object(members) => {
            for (name, value) in members.iter().filter(|(name, _)| !THEIRS.contains(&name.as_str()))
            {
                objects(value, format!("{place}/{name}"), places);
            }
            places.push(place);
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                objects(item, format!("{place}/{index}"), places);
            }
        }
        _ => {}
    }
}

#[test]
fn anthropic_takes_every_request_and_none_with_a_mistake_in_it() {
    let turn = |messages: Value| json!({"kind": "turn", "body": {"model": "m", "max_tokens": 1, "stream": true, "messages": messages}});
    let block = |block: Value| turn(json!([{"role": "user", "content": [block]}]));
    check(
        "check_anthropic.py",
        &asked(Protocol::Anthropic, anthropic::any_request()),
        &[
            json!({"kind": "turn", "body": {"model": "m", "stream": true, "messages": []}}),
            json!({"kind": "turn", "body": {"model": "m", "max_tokens": "1", "stream": true, "messages": []}}),
            turn(json!([{"role": "tool", "content": "a"}])),
            turn(json!([{"role": "user"}])),
            block(json!({"type": "text"})),
            block(json!({"type": "tool_use", "id": "a", "name": "b", "input": "{}"})),
            block(json!({"type": "tool_result", "content": "a"})),
            block(json!({"type": "thinking", "thinking": "a"})),
        ],
    );
}

#[test]
fn google_takes_every_request_and_none_with_a_mistake_in_it() {
    let part = |part: Value| json!({"kind": "turn", "body": {"contents": [{"role": "user", "parts": [part]}]}});
    check(
        "check_gemini.py",
        &asked(Protocol::Gemini, gemini::any_request()),
        &[
            json!({"kind": "turn", "body": {}}),
            json!({"kind": "turn", "body": {"contents": [], "system": "a"}}),
            part(json!({"text": 1})),
            part(json!({"functionCall": {"name": "a", "args": "{}"}})),
            part(json!({"functionResponse": {"name": "a", "response": "b"}})),
            part(json!({"text": "a", "thoughtSignature": "!"})),
            json!({"kind": "turn", "body": {"contents": [], "generationConfig": {"thinkingConfig": {"thinkingLevel": 3}}}}),
        ],
    );
}
