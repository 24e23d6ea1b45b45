//! Every body that is built is one that OpenAI's own SDK would send.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use fluffy_provider::{
    Call, CallOutcome, CallResult, Effort, Message, ModelRequest, Place, Protocol, ReasoningBlock,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::recordings::recordings;
use super::{endpoint, request, tool};

/// How many conversations of each protocol are checked.
const CONVERSATIONS: usize = 150;

/// What the SDK says of bodies, each with the protocol's name.
fn problems(bodies: &[(&str, Value)]) -> Vec<Option<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("../../target/tools/sdk/bin/python");
    assert!(python.exists(), "{}: `./scripts/test quick` makes it", python.display());
    #[expect(clippy::disallowed_methods, reason = "the vendor's own types are in its own language")]
    let mut check = Command::new(python)
        .arg(root.join("tests/sdk/check_openai.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = String::new();
    for (kind, body) in bodies {
        lines.push_str(&json!({"kind": kind, "body": body}).to_string());
        lines.push('\n');
    }
    let mut input = check.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()).unwrap());
    let output = check.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers = answers.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let problems = answers.map(|answer| answer["error"].as_str().map(str::to_owned));
    let problems: Vec<_> = problems.collect();
    assert_eq!(problems.len(), bodies.len());
    problems
}

fn kind(protocol: Protocol) -> &'static str {
    if protocol == Protocol::OpenaiResponses { "responses" } else { "chat" }
}

fn built(protocol: Protocol, effort: Option<Effort>, request: &ModelRequest) -> Value {
    let mut endpoint = endpoint(protocol);
    endpoint.effort = effort;
    let ask = protocol.adapter().turn(request, &endpoint).unwrap();
    serde_json::from_slice(&ask.body.unwrap()).unwrap()
}

fn conversation(protocol: Protocol) -> impl Strategy<Value = Vec<Message>> {
    let call = (
        "[a-z_]{0,6}",
        "[a-z.]{1,70}",
        prop_oneof![Just("{}"), Just(""), Just("{\"a"), Just("[]")],
    );
    let calls = proptest::collection::vec(call, 0..4);
    let origin = endpoint(protocol).origin("model-1");
    let blocks = proptest::collection::vec((0_usize..30, 0_usize..4, 0_usize..4), 0..4);
    let said = ("\\PC{0,20}", calls, blocks, "\\PC{0,20}", any::<bool>());
    let turns = said.prop_map(move |(text, calls, blocks, answer, denied)| {
        let calls: Vec<Call> = calls
            .into_iter()
            .map(|(id, name, arguments)| Call { id, name, arguments: arguments.to_owned() })
            .collect();
        let outcome = if denied { CallOutcome::Denied } else { CallOutcome::Done };
        let results = calls.iter().map(|call| CallResult {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            content: answer.clone(),
            outcome,
        });
        let results = Message::Results { results: results.collect() };
        let reasoning = blocks.into_iter().map(|(text, calls, which)| ReasoningBlock {
            origin: origin.clone(),
            data: BLOCKS[which].to_owned(),
            place: Place { text, calls },
        });
        let reasoning =
            if protocol == Protocol::OpenaiResponses { reasoning.collect() } else { vec![] };
        [Message::Assistant { text, calls, reasoning }, results, Message::User { text: answer }]
    });
    proptest::collection::vec(turns, 0..4).prop_map(|turns| turns.concat())
}

/// What a decoder keeps for later requests.
const BLOCKS: [&str; 4] = [
    r#"{"type":"reasoning","id":"rs_1","summary":[],"content":[],"encrypted_content":"sealed"}"#,
    r#"{"type":"reasoning","id":"rs_2","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"x"}"#,
    r#"{"type":"message","id":"msg_1","phase":"commentary"}"#,
    r#"{"type":"function_call","id":"fc_1"}"#,
];

fn bodies() -> Vec<(&'static str, Value)> {
    let mut runner = TestRunner::deterministic();
    let mut bodies = Vec::new();
    for protocol in [Protocol::OpenaiChat, Protocol::OpenaiCompatible, Protocol::OpenaiResponses] {
        for number in 0..CONVERSATIONS {
            let messages = conversation(protocol).new_tree(&mut runner).unwrap().current();
            let tools = (0..number % 5).map(|n| {
                let schema = json!({"type": "object", "properties": {"path": {"type": "string"}},
                    "required": ["path"], "additionalProperties": false});
                tool(&format!("fs.tool{n}ä"), "Does ☃ things", schema)
            });
            let mut request = request(tools.collect(), messages);
            request.messages.insert(0, Message::User { text: "Begin\u{0}☃".to_owned() });
            if number % 7 == 0 {
                request.system = String::new();
            }
            let efforts = [
                None,
                Some(Effort::None),
                Some(Effort::Low),
                Some(Effort::Medium),
                Some(Effort::High),
            ];
            bodies.push((kind(protocol), built(protocol, efforts[number % 5], &request)));
        }
    }
    for recording in recordings().iter().filter(|recording| recording.asked.is_some()) {
        bodies.push((
            kind(recording.protocol),
            built(recording.protocol, None, &recording.request()),
        ));
    }
    bodies
}

#[test]
fn ai_1_every_body_is_one_that_the_vendors_own_types_accept() {
    let bodies = bodies();
    assert!(bodies.len() > 3 * CONVERSATIONS);
    for (problem, (_, body)) in problems(&bodies).into_iter().zip(&bodies) {
        assert_eq!(problem, None, "{body}");
    }
}

/// What is put where, in a body that is right, to make it wrong.
fn mistakes(protocol: Protocol) -> Vec<(&'static str, Value)> {
    if protocol == Protocol::OpenaiChat {
        return vec![
            ("/model", json!(7)),
            ("/stream", json!(false)),
            ("/reasoning_effort", json!("much")),
            ("/stream_options/usage", json!(true)),
            ("/surprise", json!(1)),
            ("/messages/0/role", json!("person")),
            ("/messages/1/content", json!([{"type": "input_text", "text": "x"}])),
            ("/messages/2/tool_calls/0/function/arguments", json!({})),
            ("/messages/2/tool_calls/0/call_id", json!("x")),
            ("/messages/3/tool_call_id", json!(null)),
            ("/tools/0/function/parameters", json!("none")),
            ("/tools/0/name", json!("a")),
        ];
    }
    vec![
        ("/model", json!([])),
        ("/stream", json!(false)),
        ("/include", json!(["everything"])),
        ("/messages", json!([])),
        ("/input/0/content/0/type", json!("text")),
        ("/input/1/arguments", json!({})),
        ("/input/1/call_id", json!(null)),
        ("/input/2/output", json!(7)),
        ("/input/2/tool_call_id", json!("c")),
        ("/tools/0/strict", json!("no")),
        ("/tools/0/function", json!({"name": "a"})),
    ]
}

#[test]
fn ai_1_a_body_with_a_mistake_is_not_accepted() {
    let call = Call { id: "c".to_owned(), name: "a".to_owned(), arguments: "{}".to_owned() };
    let (call_id, tool_name) = (call.id.clone(), call.name.clone());
    let (content, outcome) = ("x".to_owned(), CallOutcome::Done);
    let result = CallResult { call_id, tool: tool_name, content, outcome };
    let (text, calls, reasoning) = (String::new(), vec![call], Vec::new());
    let request = request(
        vec![tool("a", "A", json!({}))],
        vec![
            Message::User { text: "x".to_owned() },
            Message::Assistant { text, calls, reasoning },
            Message::Results { results: vec![result] },
        ],
    );
    let mut bodies = Vec::new();
    for protocol in [Protocol::OpenaiChat, Protocol::OpenaiResponses] {
        let right = built(protocol, None, &request);
        for (place, mistake) in mistakes(protocol) {
            let mut wrong = right.clone();
            let (parent, member) = place.rsplit_once('/').unwrap();
            wrong.pointer_mut(parent).unwrap()[member] = mistake;
            assert_ne!(wrong, right, "{place}");
            bodies.push((kind(protocol), wrong));
        }
        bodies.insert(0, (kind(protocol), right));
    }
    let problems = problems(&bodies);
    assert_eq!(problems[..2], [None, None], "what is right is accepted");
    for (problem, (_, body)) in problems.iter().zip(&bodies).skip(2) {
        assert!(problem.is_some(), "{body}");
    }
}
