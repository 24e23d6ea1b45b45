//! What servers are sent: the same meaning as what other clients sent them.

use fluffy_provider::{
    Call, CallOutcome, CallResult, Effort, Message, ModelRequest, Place, Protocol, ReasoningBlock,
    StopReason, ToolDefinition,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::recordings::{Recording, recording, recordings};
use super::{assembled, body, endpoint, heard, request, tool, user};

/// The words of a message, however they are wrapped.
fn words(content: &Value) -> String {
    match content {
        Value::Array(parts) => parts.iter().map(|part| part["text"].as_str().unwrap()).collect(),
        Value::String(text) => text.clone(),
        _ => String::new(),
    }
}

fn string(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The tools of a body, of either protocol, as name, description and schema.
fn tools(body: &Value) -> Vec<(String, String, Value)> {
    let tools = body["tools"].as_array().into_iter().flatten();
    let tools = tools.map(|tool| tool.get("function").unwrap_or(tool));
    tools
        .map(|tool| {
            (string(&tool["name"]), string(&tool["description"]), tool["parameters"].clone())
        })
        .collect()
}

/// One step of a conversation, of either protocol.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    System(String),
    User(String),
    Assistant(String),
    Call { id: String, name: String, arguments: String },
    Result { id: String, output: String },
    Sealed { id: String, encrypted: String },
}

/// What a body says, step by step.
fn steps(body: &Value) -> Vec<Step> {
    let mut steps = Vec::new();
    steps.extend(body["instructions"].as_str().map(|words| Step::System(words.to_owned())));
    let items = body["messages"].as_array().or(body["input"].as_array()).unwrap();
    for item in items {
        let kind = item["role"].as_str().or(item["type"].as_str()).unwrap();
        let words = words(item.get("content").unwrap_or(&item["output"]));
        let call = |id: &Value, call: &Value| Step::Call {
            id: string(id),
            name: string(&call["name"]),
            arguments: string(&call["arguments"]),
        };
        match kind {
            "system" | "developer" => steps.push(Step::System(words)),
            "user" => steps.push(Step::User(words)),
            "assistant" => {
                steps.extend((!words.is_empty()).then_some(Step::Assistant(words)));
                let calls = item["tool_calls"].as_array().into_iter().flatten();
                steps.extend(calls.map(|asked| call(&asked["id"], &asked["function"])));
            }
            "function_call" => steps.push(call(&item["call_id"], item)),
            "function_call_output" => {
                steps.push(Step::Result { id: string(&item["call_id"]), output: words });
            }
            "tool" => {
                steps.push(Step::Result { id: string(&item["tool_call_id"]), output: words });
            }
            "reasoning" => steps.push(Step::Sealed {
                id: string(&item["id"]),
                encrypted: string(&item["encrypted_content"]),
            }),
            other => panic!("{other}"),
        }
    }
    steps
}

/// The request in our normal form that means the same as another client's body.
pub(crate) fn normal(body: &Value) -> ModelRequest {
    let mut request = request(Vec::new(), Vec::new());
    request.system = String::new();
    request.model = string(&body["model"]);
    let longest = ["max_output_tokens", "max_completion_tokens", "max_tokens"];
    let longest = longest.iter().find_map(|key| body[*key].as_u64());
    request.max_output_tokens = longest.unwrap_or(request.max_output_tokens);
    let defined = tools(body).into_iter();
    request.tools = defined.map(|(name, about, schema)| tool(&name, &about, schema)).collect();
    for step in steps(body) {
        add(&mut request, step);
    }
    request
}

fn add(request: &mut ModelRequest, step: Step) {
    let messages = &mut request.messages;
    let spoke = matches!(messages.last(), Some(Message::Assistant { .. }));
    let answered = matches!(messages.last(), Some(Message::Results { .. }));
    match &step {
        Step::System(_) | Step::User(_) => {}
        Step::Result { .. } if answered => {}
        Step::Result { .. } => messages.push(Message::Results { results: vec![] }),
        _ if spoke => {}
        _ => messages.push(Message::Assistant {
            text: String::new(),
            calls: vec![],
            reasoning: vec![],
        }),
    }
    match (step, messages.last_mut()) {
        (Step::System(words), _) => request.system = words,
        (Step::User(words), _) => messages.push(user(&words)),
        (Step::Assistant(words), Some(Message::Assistant { text, .. })) => text.push_str(&words),
        (Step::Call { id, name, arguments }, Some(Message::Assistant { calls, .. })) => {
            calls.push(Call { id, name, arguments });
        }
        (Step::Sealed { id, encrypted }, Some(Message::Assistant { text, calls, reasoning })) => {
            let data = json!({
                "type": "reasoning", "id": id, "summary": [], "encrypted_content": encrypted,
            });
            reasoning.push(ReasoningBlock {
                origin: endpoint(Protocol::OpenaiResponses).origin(&request.model),
                data: data.to_string(),
                place: Place { text: text.len(), calls: calls.len() },
            });
        }
        (Step::Result { id, output }, Some(Message::Results { results })) => {
            let outcome = CallOutcome::Done;
            results.push(CallResult { call_id: id, tool: String::new(), content: output, outcome });
        }
        (step, last) => panic!("{step:?} behind {last:?}"),
    }
}

#[test]
fn ai_1_a_conversation_is_sent_with_the_meaning_that_other_clients_sent_it_with() {
    let mut seen = 0;
    for Recording { name, protocol, asked, .. } in recordings() {
        let Some(asked) = asked else { continue };
        let sent = body(protocol, &normal(&asked));
        assert_eq!(steps(&sent), steps(&asked), "{name}");
        assert_eq!(tools(&sent), tools(&asked), "{name}");
        for key in ["model", "stream", "stream_options", "max_output_tokens", "max_tokens", "store"]
        {
            let differs = asked.get(key).is_some_and(|value| sent.get(key) != Some(value));
            assert!(!differs, "{name}: {key}: {:?}", sent.get(key));
        }
        assert_eq!(sent["stream"], true);
        if protocol == Protocol::OpenaiResponses {
            assert_eq!(sent["store"], false);
        }
        if let Some(include) = asked.get("include") {
            assert_eq!(&sent["include"], include, "{name}");
        }
        seen += 1;
    }
    assert!(seen >= 16, "{seen}");
}

/// The members of items that mean something; ids of what was said are checked as far as they are sent.
fn items(body: &Value) -> Vec<Map<String, Value>> {
    let items = body["input"].as_array().unwrap().iter().map(|item| {
        let mut item = item.as_object().unwrap().clone();
        item.retain(|key, value| {
            key != "status" && key != "phase" && *value != json!([]) || key == "summary"
        });
        if let Some(content) = item.get_mut("content") {
            *content = json!(words(content));
        }
        item
    });
    items.collect()
}

#[test]
fn ai_2_a_recorded_session_goes_on_as_the_recorded_client_went_on() {
    let turns: Vec<Recording> =
        (0..3).map(|turn| recording(&format!("three_turn_tool_session.{turn}.sse"))).collect();
    let mut request = turns[0].request();
    for turn in 0..2 {
        let asked = turns[turn].asked.as_ref().unwrap();
        assert_eq!(items(&body(Protocol::OpenaiResponses, &request)), items(asked));
        let (pieces, ended) = heard(Protocol::OpenaiResponses, &request, &turns[turn].events());
        ended.unwrap();
        let said = assembled(pieces);
        request.messages.push(said.message());
        let results = said.calls.iter().map(|call| CallResult {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            content: "crimson-harbor".to_owned(),
            outcome: CallOutcome::Done,
        });
        if !said.calls.is_empty() {
            request.messages.push(Message::Results { results: results.collect() });
        }
        let next = steps(turns[turn + 1].asked.as_ref().unwrap());
        let Some(Step::User(next)) = next.last() else { panic!("{next:?}") };
        request.messages.push(user(next));
    }
    let sent = body(Protocol::OpenaiResponses, &request);
    assert_eq!(items(&sent), items(turns[2].asked.as_ref().unwrap()));
    let said = sent["input"].as_array().unwrap().iter().find(|item| item["role"] == "assistant");
    assert_eq!(said.unwrap()["phase"], "final_answer");
}

#[test]
fn reasoning_that_nothing_came_of_is_not_sent_back() {
    let cut = recording("incomplete_max_output_tokens");
    let mut request = cut.request();
    let (pieces, ended) = heard(cut.protocol, &request, &cut.events());
    ended.unwrap();
    let turn = assembled(pieces);
    assert_eq!((turn.stop, turn.reasoning.len()), (StopReason::Length, 1));
    request.messages.extend([turn.message(), user("go on")]);
    let steps = steps(&body(cut.protocol, &request));
    assert!(matches!(steps.as_slice(), [Step::User(_), Step::User(_)]), "{steps:?}");
}

fn call(id: &str, name: &str, arguments: &str) -> Call {
    Call { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

fn assistant(text: &str, calls: Vec<Call>) -> Message {
    Message::Assistant { text: text.to_owned(), calls, reasoning: vec![] }
}

fn result(id: &str, content: &str, outcome: CallOutcome) -> CallResult {
    let (call_id, tool) = (id.to_owned(), "fs.read".to_owned());
    CallResult { call_id, tool, content: content.to_owned(), outcome }
}

#[test]
fn every_call_has_one_id_that_is_its_own_and_one_answer_with_it() {
    let long = "x".repeat(300);
    let calls = ["", "a", "a", "", "ü", long.as_str(), "unanswered"];
    let results = calls.iter().take(6).enumerate();
    let results = results.map(|(n, id)| result(id, &n.to_string(), CallOutcome::Done)).collect();
    let calls = calls.iter().map(|id| call(id, "fs.read", "")).collect();
    let again = assistant("", vec![call("a", "fs.read", "{}")]);
    let request = request(
        vec![],
        vec![assistant("", calls), Message::Results { results }, again, user("and?")],
    );
    for protocol in [Protocol::OpenaiChat, Protocol::OpenaiCompatible, Protocol::OpenaiResponses] {
        let steps = steps(&body(protocol, &request));
        let ids = steps.iter().filter_map(|step| match step {
            Step::Call { id, .. } => Some(id.clone()),
            _ => None,
        });
        let ids: Vec<String> = ids.collect();
        let answers = steps.iter().filter_map(|step| match step {
            Step::Result { id, output } => Some((id.clone(), output.clone())),
            _ => None,
        });
        let answers: Vec<(String, String)> = answers.collect();
        assert_eq!(answers.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>(), ids);
        let mut different = ids.clone();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), 8, "{ids:?}");
        assert!(ids.iter().all(|id| !id.is_empty() && id.is_ascii() && id.len() <= 256));
        assert!(ids.contains(&"a".to_owned()) && ids.contains(&"unanswered".to_owned()));
        let outputs: Vec<&str> = answers.iter().map(|(_, output)| output.as_str()).collect();
        assert_eq!(outputs[..6], ["0", "1", "2", "3", "4", "5"]);
        assert!(outputs[6].starts_with("no answer came"), "{outputs:?}");
    }
}

#[test]
fn names_are_those_that_the_server_takes_in_tools_and_in_the_past() {
    let tools = vec![tool("fs.read", "Read", json!({"type": "object"}))];
    let messages = vec![
        assistant("", vec![call("1", "fs.read", "{}"), call("2", "no such.tool", "{}")]),
        Message::Results { results: vec![result("1", "x", CallOutcome::Denied)] },
    ];
    for protocol in [Protocol::OpenaiChat, Protocol::OpenaiCompatible, Protocol::OpenaiResponses] {
        let body = body(protocol, &request(tools.clone(), messages.clone()));
        assert_eq!(super::requests::tools(&body)[0].0, "fs_read");
        let names = steps(&body).into_iter().filter_map(|step| match step {
            Step::Call { name, .. } => Some(name),
            _ => None,
        });
        assert_eq!(names.collect::<Vec<_>>(), ["fs_read", "no_such_tool"]);
        let denied = Step::Result { id: "1".to_owned(), output: "[denied] x".to_owned() };
        assert!(steps(&body).contains(&denied), "the words alone can tell an error");
    }
}

#[test]
fn arguments_that_are_no_object_are_sent_only_where_nobody_parses_them() {
    let arguments = |protocol, text: &str| {
        let message = assistant("", vec![call("1", "fs.read", text)]);
        let steps = steps(&body(protocol, &request(vec![], vec![message])));
        match &steps[1] {
            Step::Call { arguments, .. } => arguments.clone(),
            step => panic!("{step:?}"),
        }
    };
    for protocol in [Protocol::OpenaiChat, Protocol::OpenaiCompatible, Protocol::OpenaiResponses] {
        assert_eq!(arguments(protocol, ""), "{}");
        assert_eq!(arguments(protocol, "{\"a\": 1}"), "{\"a\": 1}");
    }
    for odd in ["{\"a\":", "[]", "7"] {
        assert_eq!(arguments(Protocol::OpenaiCompatible, odd), "{}");
        assert_eq!(arguments(Protocol::OpenaiChat, odd), odd);
        assert_eq!(arguments(Protocol::OpenaiResponses, odd), odd);
    }
}

#[test]
fn every_server_is_asked_in_its_own_words() {
    let request = request(vec![], vec![user("hello")]);
    let chat = body(Protocol::OpenaiChat, &request);
    assert_eq!(chat["messages"][0]["role"], "developer");
    assert_eq!((&chat["max_completion_tokens"], &chat["store"]), (&json!(1000), &json!(false)));
    assert!(chat.get("max_tokens").is_none() && chat.get("tools").is_none());
    let local = body(Protocol::OpenaiCompatible, &request);
    assert_eq!(local["messages"][0]["role"], "system");
    assert_eq!(local["max_tokens"], 1000);
    for unknown in ["max_completion_tokens", "store", "prompt_cache_key", "reasoning_effort"] {
        assert!(local.get(unknown).is_none(), "{unknown}");
    }
    let responses = body(Protocol::OpenaiResponses, &request);
    assert_eq!(responses["instructions"], "Be short.");
    assert_eq!(responses["prompt_cache_key"], chat["prompt_cache_key"]);
    assert_eq!(responses["include"], json!(["reasoning.encrypted_content"]));
    for old in ["gpt-4o", "openai/gpt-4.1-mini", "gpt-5-chat-latest", "ft:gpt-4o:me"] {
        let request = ModelRequest { model: old.to_owned(), ..request.clone() };
        assert!(body(Protocol::OpenaiResponses, &request).get("include").is_none(), "{old}");
    }
}

#[test]
fn the_cache_is_named_by_what_stays_and_not_by_what_is_said() {
    let key =
        |request: &ModelRequest| body(Protocol::OpenaiChat, request)["prompt_cache_key"].clone();
    let one = request(vec![], vec![user("a")]);
    let later = request(vec![], vec![user("a"), assistant("b", vec![]), user("c")]);
    let other = ModelRequest { system: "Be long.".to_owned(), ..one.clone() };
    assert_eq!(key(&one), key(&later));
    assert_ne!(key(&one), key(&other));
    assert!(key(&one).as_str().unwrap().len() <= 64);
}

#[test]
fn paths_are_behind_the_address_and_a_bare_one_is_completed() {
    let request = request(vec![], vec![user("a")]);
    for (url, path) in [
        ("https://api.openai.com/v1", "/chat/completions"),
        ("http://127.0.0.1:11434", "/v1/chat/completions"),
        ("https://openrouter.ai/api/v1/", "/chat/completions"),
        ("https://api.mistral.ai/v1", "/chat/completions"),
    ] {
        let mut endpoint = endpoint(Protocol::OpenaiCompatible);
        endpoint.url = url.parse().unwrap();
        endpoint.effort = Some(Effort::Low);
        let adapter = Protocol::OpenaiCompatible.adapter();
        let ask = adapter.turn(&request, &endpoint).unwrap();
        assert_eq!(ask.path, path);
        let models = adapter.models(&endpoint, None);
        assert_eq!((models.path, models.body), (path.replace("chat/completions", "models"), None));
        let body: Value = serde_json::from_slice(&ask.body.unwrap()).unwrap();
        assert_eq!(body["reasoning_effort"], "low");
        assert_eq!(body["stream_options"]["include_usage"] == true, !url.contains("mistral"));
    }
}

#[test]
fn a_schema_is_an_object_without_alternatives_at_its_top() {
    let given = json!({
        "$schema": "x", "oneOf": [{"required": ["a"]}], "required": ["b"],
        "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        "additionalProperties": false,
    });
    let tools: Vec<ToolDefinition> = vec![tool("a", "A", given), tool("b", "B", json!(true))];
    for protocol in [Protocol::OpenaiChat, Protocol::OpenaiResponses] {
        let body = body(protocol, &request(tools.clone(), vec![]));
        let tools = super::requests::tools(&body);
        let plain = json!({
            "type": "object", "required": ["b"], "additionalProperties": false,
            "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        });
        assert_eq!(tools[0].2, plain);
        assert_eq!(tools[1].2, json!({"type": "object", "properties": {}}));
    }
}

#[test]
fn reasoning_of_another_model_or_provider_is_left_out() {
    let block = |origin: &str| ReasoningBlock {
        origin: origin.to_owned(),
        data: json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "e",
            "reasoning_content": "thought"})
        .to_string(),
        place: Place::default(),
    };
    for protocol in [Protocol::OpenaiChat, Protocol::OpenaiCompatible, Protocol::OpenaiResponses] {
        let sent = |origin: &str| {
            let calls = vec![call("1", "a", "{}")];
            let (text, reasoning) = (String::new(), vec![block(origin)]);
            let said = Message::Assistant { text, calls, reasoning };
            body(protocol, &request(vec![], vec![said])).to_string()
        };
        let own = endpoint(protocol).origin("model-1");
        let other = endpoint(protocol).origin("model-2");
        assert!(sent(&own).contains("thought"));
        assert!(!sent(&other).contains("thought"));
        assert!(!sent("anthropic/test/model-1").contains("thought"));
    }
}

proptest! {
    #[test]
    fn no_place_of_a_block_loses_or_doubles_a_word_or_a_call(
        text in "[a-zäß]{0,12}",
        calls in 0_usize..4,
        places in proptest::collection::vec((0_usize..20, 0_usize..6), 0..5),
    ) {
        let origin = endpoint(Protocol::OpenaiResponses).origin("model-1");
        let reasoning = places.into_iter().map(|(text, calls)| ReasoningBlock {
            origin: origin.clone(),
            data: json!({"type": "reasoning", "id": "r", "encrypted_content": "e"}).to_string(),
            place: Place { text, calls },
        });
        let reasoning = reasoning.collect();
        let calls: Vec<Call> = (0..calls).map(|n| call(&format!("c{n}"), "a", "{}")).collect();
        let ids: Vec<String> = calls.iter().map(|call| call.id.clone()).collect();
        let said = Message::Assistant { text: text.clone(), calls, reasoning };
        let (mut words, mut called) = (String::new(), Vec::new());
        for step in steps(&body(Protocol::OpenaiResponses, &request(vec![], vec![said]))) {
            match step {
                Step::Assistant(more) => words.push_str(&more),
                Step::Call { id, .. } => called.push(id),
                _ => {}
            }
        }
        prop_assert_eq!((words, called), (text, ids));
    }
}
