//! One conversation through every adapter to a server that others wrote (npm `@copilotkit/aimock`), which keeps a
//! journal of what it was asked in one form of its own.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use fluffy_base::{Json, Secret};
use fluffy_kernel::{Destination, ProviderHost};
use fluffy_provider::{
    Assembler, CallOutcome, CallResult, Endpoint, MAX_HOST_FRAME_BYTES, Message, Model,
    ModelRequest, Patience, Provider as _, ProviderError, Remote, StopReason, ToolDefinition, Turn,
};
use serde_json::{Value, json};

use super::{Address, Scene, Vendor, lines};
use crate::provider_host::provider_guest::ProviderGuests;
use crate::provider_host::sandboxes;
use crate::task::lab::{Lab, Language};

const KEY: &str = "wk-aimock-0123456789";

/// The server, while it runs.
struct Aimock {
    process: Child,
    port: u16,
}

impl Aimock {
    /// Starts it on a port of its own choice; it gives these answers one after the other, by what was said before.
    fn start(dir: &Path, vendor: Vendor, answers: &[Value]) -> Self {
        let (mut before, mut fixtures) = (0, Vec::new());
        for answer in answers {
            fixtures.push(json!({"match": {"turnIndex": before}, "response": answer}));
            before += match vendor {
                // It counts the items of a response, each as a turn.
                Vendor::Responses => {
                    let calls = answer["toolCalls"].as_array().map_or(0, Vec::len);
                    calls
                        + usize::from(
                            answer["content"].as_str().is_some_and(|text| !text.is_empty()),
                        )
                }
                _ => 1,
            };
        }
        let file = dir.join("fixtures.json");
        fs::write(&file, json!({"fixtures": fixtures}).to_string()).unwrap();
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/aimock");
        let program = place.join("node_modules/@copilotkit/aimock/dist/cli.js");
        assert!(program.exists(), "no aimock at {}: run scripts/test", place.display());
        let mut process = Command::new("node")
            .arg(program)
            .args(["-p", "0", "--strict", "--chunk-size", "7", "-f"])
            .arg(&file)
            .env("AIMOCK_API_KEYS", KEY)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| {
            let line = line.unwrap();
            line.split_once("listening on http://127.0.0.1:")?.1.trim().parse().ok()
        });
        // It goes on telling what it does.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, port: port.unwrap() }
    }

    fn url(&self, vendor: Vendor) -> String {
        format!("http://127.0.0.1:{}{}", self.port, vendor.base())
    }

    /// Everything that it was asked, in its own words.
    fn journal(&self) -> Vec<Value> {
        let url = format!("http://127.0.0.1:{}/__aimock/journal", self.port);
        let key = format!("authorization: Bearer {KEY}");
        let output = Command::new("curl").args(["-sf", "-H", &key, &url]).output().unwrap();
        assert!(output.status.success());
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for Aimock {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _gone = self.process.wait();
    }
}

fn remote(aimock: &Aimock, vendor: Vendor, key: &str) -> Remote {
    let endpoint = Endpoint {
        provider: "aimock".to_owned(),
        protocol: serde_json::from_value(json!(vendor.protocol())).unwrap(),
        url: aimock.url(vendor).parse().unwrap(),
        version: None,
        effort: None,
        certificates: None,
        patience: Patience::default(),
    };
    let host = ProviderHost {
        runtime: sandboxes(),
        program: env!("CARGO_BIN_EXE_fluffy").into(),
        destination: Destination {
            host: endpoint.url.host().to_owned(),
            port: endpoint.url.port(),
            upstream: None,
        },
        frame_bytes: MAX_HOST_FRAME_BYTES,
        witness: Arc::default(),
    };
    let (name, before) = endpoint.protocol.adapter().key_header();
    let headers = vec![(name.to_owned(), Secret::new(format!("{before}{key}")))];
    let model =
        Model { name: vendor.model().to_owned(), context_window: 100_000, ..Model::default() };
    Remote::new(Box::new(ProviderGuests(host)), endpoint, headers, model)
}

fn asked(remote: &Remote, request: &ModelRequest) -> Result<Turn, ProviderError> {
    let mut assembler = Assembler::new();
    remote.turn(request, &mut |piece| {
        assembler.take(piece).unwrap();
        ControlFlow::Continue(())
    })?;
    Ok(assembler.finish()?)
}

fn request(vendor: Vendor) -> ModelRequest {
    let tool = |name: &str, properties: Value| ToolDefinition {
        name: name.to_owned(),
        summary: format!("Does what {name} does"),
        schema: Json::new(json!({"type": "object", "properties": properties,
            "required": ["path"], "additionalProperties": false}))
        .unwrap(),
    };
    ModelRequest {
        model: vendor.model().to_owned(),
        system: "Be exact. “Ja.”".to_owned(),
        tools: vec![
            tool("fs.read", json!({"path": {"type": "string", "description": "Which"}})),
            tool("search.grep", json!({"path": {"type": "string"}, "limit": {"type": "integer"}})),
        ],
        messages: vec![Message::User { text: "add a function that doubles 🐑".to_owned() }],
        max_output_tokens: 500,
    }
}

const READ: &str = r#"{"path":"src/größe.py"}"#;
const GREP: &str = r#"{"path":".","limit":20}"#;

/// The conversation: two calls at once, one of which fails; a call without words; words alone, twice.
fn answers() -> Vec<Value> {
    let call = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
    vec![
        json!({"content": "Ich sehe nach. 🐑", "toolCalls": [call("fs_read", READ), call("search_grep", GREP)]}),
        json!({"toolCalls": [call("fs_read", READ)]}),
        json!({"content": "“Gelesen.”"}),
        json!({"content": "Fertig."}),
    ]
}

/// Has the conversation and gives its turns.
fn converse(remote: &Remote, vendor: Vendor) -> Vec<Turn> {
    let mut request = request(vendor);
    let mut turns = Vec::new();
    for _ in answers() {
        let turn = asked(remote, &request).unwrap_or_else(|error| panic!("{vendor:?}: {error}"));
        request.messages.push(turn.message());
        let results = turn.calls.iter().map(|call| CallResult {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            content: format!("what {} found: “é”\n", call.name),
            outcome: if call.name == "fs.read" { CallOutcome::Done } else { CallOutcome::Failed },
        });
        let results: Vec<_> = results.collect();
        if results.is_empty() {
            request.messages.push(Message::User { text: "Go on.".to_owned() });
        } else {
            request.messages.push(Message::Results { results });
        }
        turns.push(turn);
    }
    turns
}

/// A request of the journal without what the protocols say differently: ids by their order, failures by their words.
fn meaning(entry: &Value) -> Value {
    let body = &entry["body"];
    let text = |content: &Value| match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    };
    let mut ids: Vec<Value> = Vec::new();
    let mut messages: Vec<Value> = Vec::new();
    for message in body["messages"].as_array().unwrap() {
        let content = text(&message["content"]);
        let role = message["role"].as_str().unwrap();
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        let calls = calls.iter().map(|call| {
            ids.push(call["id"].clone());
            let function = &call["function"];
            let arguments: Value =
                serde_json::from_str(function["arguments"].as_str().unwrap()).unwrap();
            json!([function["name"], arguments])
        });
        let calls: Vec<Value> = calls.collect();
        let answers = match role {
            "tool" => {
                let given = &message["tool_call_id"];
                let place = ids.iter().rposition(|id| id == given);
                json!(place.unwrap_or_else(|| panic!("{given} answers nothing: {body}")))
            }
            _ => Value::Null,
        };
        let role = if role == "developer" { "system" } else { role };
        let one =
            json!({"role": role, "content": plain(&content), "calls": calls, "answers": answers});
        match messages.last_mut() {
            // Words and calls of one turn may come one after the other.
            Some(last) if role == "assistant" && last["role"] == "assistant" => {
                let words = last["content"].as_str().unwrap().to_owned() + &content;
                last["content"] = json!(words);
                last["calls"].as_array_mut().unwrap().extend(calls);
            }
            _ => messages.push(one),
        }
    }
    let tools = body["tools"].as_array().unwrap().iter().map(|tool| {
        let function = &tool["function"];
        json!([function["name"], function["description"], function["parameters"]])
    });
    json!({"messages": messages, "tools": tools.collect::<Vec<_>>()})
}

/// The words of a result, whether it failed or not.
fn plain(content: &str) -> String {
    let object = serde_json::from_str::<Value>(content).unwrap_or_default();
    let inner = ["output", "error"].iter().find_map(|key| object[key].as_str());
    inner.unwrap_or(content).trim_start_matches("[failed] ").to_owned()
}

#[test]
fn ai_1_one_conversation_means_the_same_through_every_adapter() {
    let dir = tempfile::tempdir().unwrap();
    let mut heard: Vec<(Vendor, Vec<Value>)> = Vec::new();
    for vendor in Vendor::ALL {
        let aimock = Aimock::start(dir.path(), vendor, &answers());
        let turns = converse(&remote(&aimock, vendor, KEY), vendor);
        let said = |turn: &Turn| {
            let calls: Vec<_> = turn
                .calls
                .iter()
                .map(|call| {
                    let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
                    (call.name.clone(), arguments)
                })
                .collect();
            (turn.text.clone(), calls, turn.stop)
        };
        let called = |name: &str, text| (name.to_owned(), serde_json::from_str(text).unwrap());
        let both = vec![called("fs.read", READ), called("search.grep", GREP)];
        let expected = [
            ("Ich sehe nach. 🐑".to_owned(), both, StopReason::Calls),
            (String::new(), vec![called("fs.read", READ)], StopReason::Calls),
            ("“Gelesen.”".to_owned(), vec![], StopReason::End),
            ("Fertig.".to_owned(), vec![], StopReason::End),
        ];
        assert_eq!(turns.iter().map(said).collect::<Vec<_>>(), expected, "{vendor:?}");
        let journal = aimock.journal();
        assert!(journal.iter().all(|entry| entry["response"]["status"] == 200), "{journal:?}");
        heard.push((vendor, journal.iter().map(meaning).collect()));
    }
    let (_, first) = &heard[0];
    assert_eq!(first.len(), 4);
    assert_eq!(first[3]["messages"].as_array().unwrap().len(), 9, "{}", first[3]);
    for (vendor, other) in &heard[1..] {
        for (one, other) in first.iter().zip(other) {
            assert_eq!(one["messages"], other["messages"], "{vendor:?}");
            // It does not know the later of the two members in which Gemini takes a schema.
            let schemas = *vendor != Vendor::Gemini;
            let tools = |heard: &Value| {
                let tools = heard["tools"].as_array().unwrap().iter();
                let told = tools.map(|tool| (tool[0].clone(), tool[1].clone(), tool[2].clone()));
                told.map(|(name, said, schema)| (name, said, schemas.then_some(schema)))
                    .collect::<Vec<_>>()
            };
            assert_eq!(tools(one), tools(other), "{vendor:?}");
        }
    }
}

#[test]
fn a_wrong_key_is_said_to_be_one_by_every_adapter() {
    let dir = tempfile::tempdir().unwrap();
    let aimock = Aimock::start(dir.path(), Vendor::Chat, &answers());
    for vendor in Vendor::ALL {
        let wrong = asked(&remote(&aimock, vendor, "wk-wrong-98765"), &request(vendor));
        assert!(matches!(wrong, Err(ProviderError::BadKey(_))), "{vendor:?}: {wrong:?}");
    }
}

#[test]
fn ai_1_whole_sessions_with_a_server_of_others_over_every_protocol() {
    let language = Language::JavaScript;
    let answers = lines(language).into_iter().map(|line| {
        let calls = line.calls.iter().map(
            |(name, arguments)| json!({"name": name, "arguments": arguments.to_string()}),
        );
        json!({"content": line.text, "reasoning": line.thought, "toolCalls": calls.collect::<Vec<_>>()})
    });
    let answers: Vec<Value> = answers.collect();
    for vendor in Vendor::ALL {
        let lab = Lab::new(language);
        let aimock = Aimock::start(&lab.user.project.path(""), vendor, &answers);
        let address = Address { vendor, url: aimock.url(vendor), authority: None };
        let scene = Scene::new(lab, &[address]);
        let mut command = scene.command(&Scene::task(vendor).each_ref().map(String::as_str));
        command.env(super::variable(vendor), KEY);
        let output = command.stdin(Stdio::null()).output().unwrap();
        scene.check_done(&crate::program::Answer::of(output));
        let asked = aimock.journal();
        assert!(asked.len() >= answers.len() - 1, "{vendor:?}: {}", asked.len());
    }
}
