//! Answers of servers that speak the protocols each in its own way, recorded by other projects.
//!
//! What each of them says stands in the manifest, read by a program that has nothing in common with the adapters.

#![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use fluffy_base::Digest;
use fluffy_provider::{Answer, Protocol, ProviderError, StopReason, StreamEvent, Turn};
use serde_json::{Value, json};

use crate::recorded::{asking, body, check_damaged, decode, endpoint, turn};

/// A recorded answer and what is known of it.
struct Spoken {
    name: String,
    protocol: Protocol,
    status: u16,
    bytes: Vec<u8>,
    known: Value,
}

impl Spoken {
    fn is_stream(&self) -> bool {
        self.name.ends_with(".sse")
    }

    fn read<'a>(
        &self,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> (Vec<StreamEvent>, Result<(), ProviderError>) {
        decode(self.protocol, &asking("m"), pieces)
    }

    fn turn(&self) -> Turn {
        let (pieces, end) = self.read([self.bytes.as_slice()]);
        assert_eq!(end, Ok(()), "{}", self.name);
        turn(pieces)
    }

    fn refusal(&self) -> ProviderError {
        let (status, body) = (self.status, self.bytes.clone());
        self.protocol.adapter().refusal(&Answer { status, headers: Vec::new(), body })
    }
}

fn place() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/dialects")
}

fn all() -> Vec<Spoken> {
    let manifest = fs::read(place().join("MANIFEST.json")).unwrap();
    let manifest: Vec<Value> = serde_json::from_slice(&manifest).unwrap();
    let spoken = manifest.into_iter().map(|known| {
        let name = known["file"].as_str().unwrap().to_owned();
        let bytes = fs::read(place().join(&name)).unwrap();
        let protocol = serde_json::from_value(known["protocol"].clone()).unwrap();
        let status = u16::try_from(known["status"].as_u64().unwrap()).unwrap();
        Spoken { name, protocol, status, bytes, known }
    });
    spoken.collect()
}

fn one(name: &str) -> Spoken {
    all().into_iter().find(|spoken| spoken.name.split('.').next() == Some(name)).unwrap()
}

fn dense(text: &str) -> String {
    text.split_whitespace().collect()
}

#[test]
fn every_dialect_is_as_it_was_recorded_and_says_from_where() {
    let all = all();
    assert!(all.len() >= 36, "{}", all.len());
    for spoken in &all {
        let digest = Digest::of(&spoken.bytes).to_string();
        assert_eq!(spoken.known["sha256"], digest.trim_start_matches("sha256:"), "{}", spoken.name);
        for key in ["repo", "package", "path", "licence", "archive_sha256"] {
            assert!(spoken.known[key].is_string(), "{} has no {key}", spoken.name);
        }
    }
    let files = fs::read_dir(place()).unwrap().count();
    assert_eq!(files, all.len() + 1, "a recording that the manifest does not name");
}

#[test]
fn ai_2_every_dialect_says_what_another_reader_reads_in_it() {
    let with_meaning = all().into_iter().filter(|spoken| spoken.known["said"].is_object());
    for spoken in with_meaning {
        let (turn, said) = (spoken.turn(), &spoken.known["said"]);
        assert_eq!(turn.text, said["text"].as_str().unwrap(), "{}", spoken.name);
        assert_eq!(dense(&turn.thoughts), said["thoughts"].as_str().unwrap(), "{}", spoken.name);
        let calls = turn.calls.iter().map(|call| {
            let arguments: Value = match call.arguments.as_str() {
                "" => json!({}),
                arguments => serde_json::from_str(arguments).unwrap(),
            };
            let id = if call.id.starts_with("gemini-call-") { "" } else { &call.id };
            json!([id, call.name, arguments])
        });
        assert_eq!(Value::from_iter(calls), said["calls"], "{}", spoken.name);
        let used = turn.usage.map(|usage| (json!(usage.input), json!(usage.output)));
        let used = used.unwrap_or_default();
        assert_eq!(used, (said["input"].clone(), said["output"].clone()), "{}", spoken.name);
        let calls = !turn.calls.is_empty();
        assert_eq!(turn.stop == StopReason::Calls, calls, "{}", spoken.name);
    }
}

#[test]
fn ai_2_every_dialect_is_read_alike_however_it_is_cut() {
    for spoken in all().iter().filter(|spoken| spoken.is_stream()) {
        let whole = spoken.read([spoken.bytes.as_slice()]);
        assert_eq!(spoken.read(spoken.bytes.chunks(1)), whole, "{}", spoken.name);
        // Fewer cuts of the longer ones: each reads the whole again.
        let cuts = (150_000 / spoken.bytes.len()).clamp(4, 300);
        let every = (spoken.bytes.len() / cuts).max(1);
        for at in (0..spoken.bytes.len()).step_by(every) {
            let (first, second) = spoken.bytes.split_at(at);
            assert_eq!(spoken.read([first, second]), whole, "{} cut at {at}", spoken.name);
            check_damaged(spoken.protocol, first);
            check_damaged(spoken.protocol, second);
        }
        let text = String::from_utf8(spoken.bytes.clone()).unwrap();
        let crlf = text.replace("\r\n", "\n").replace('\n', "\r\n");
        assert_eq!(spoken.read([crlf.as_bytes()]), whole, "{}", spoken.name);
    }
}

/// What a model gets to see again of its own turn.
fn returned(spoken: &Spoken) -> Value {
    let mut request = asking("m");
    request.messages =
        vec![fluffy_provider::Message::User { text: "hello".to_owned() }, spoken.turn().message()];
    body(&request, &endpoint(spoken.protocol))
}

#[test]
fn what_a_dialect_seals_goes_back_in_its_place() {
    let sealed = one("anthropic-redacted-thinking");
    let text = String::from_utf8(sealed.bytes.clone()).unwrap();
    let blocks = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let blocks = blocks.map(|data| serde_json::from_str::<Value>(data).unwrap());
    let blocks = blocks.filter(|data| data["content_block"]["type"] == "redacted_thinking");
    let blocks: Vec<Value> = blocks.map(|data| data["content_block"].clone()).collect();
    assert_eq!(blocks.len(), 2);
    let content = returned(&sealed)["messages"][1]["content"].clone();
    assert_eq!(content[0], blocks[0]);
    assert_eq!(content[1], blocks[1]);

    let parts = returned(&one("gemini-3-call-signed"))["contents"][1]["parts"].clone();
    assert!(parts[0]["functionCall"].is_object() && parts[0]["thoughtSignature"].is_string());
    let parts = returned(&one("gemini-2"))["contents"][1]["parts"].clone();
    assert!(parts[0]["thoughtSignature"].is_string() && parts[1]["thoughtSignature"].is_null());

    let items = returned(&one("openai-responses-sealed-reasoning-and-call"))["input"].clone();
    assert_eq!(items[1]["type"], "reasoning");
    assert!(items[1]["encrypted_content"].is_string());
    assert_eq!(items[2]["type"], "function_call");

    let messages = returned(&one("groq-reasoning-and-call"))["messages"].clone();
    assert!(messages[1]["reasoning"].is_string() && messages[1]["tool_calls"].is_array());
}

#[test]
fn what_stops_a_dialect_is_said_for_what_it_is() {
    assert_eq!(one("openai-chat-refusal").turn().stop, StopReason::Refusal);
    assert_eq!(one("openai-responses-refusal").turn().stop, StopReason::Refusal);
    let broken = one("groq-broken-call").turn();
    assert_eq!(broken.stop, StopReason::MalformedCall, "the model may call again");
    let (_, end) = {
        let spoken = one("openrouter-error-after-length");
        spoken.read([spoken.bytes.as_slice()])
    };
    assert_eq!(end, Err(ProviderError::Refused("Token limit reached".to_owned())));
    let filtered = one("azure-prompt-filtered");
    let event = format!("data: {}\n\n", String::from_utf8(filtered.bytes.clone()).unwrap());
    let (_, end) = filtered.read([event.as_bytes()]);
    assert!(matches!(end, Err(ProviderError::Filtered(_))), "{end:?}");
}

#[test]
fn every_refusal_of_a_dialect_has_its_cause() {
    let check = |name: &str, expected: ProviderError| {
        let refusal = one(name).refusal();
        let kind = std::mem::discriminant;
        assert_eq!(kind(&refusal), kind(&expected), "{name}: {refusal:?}");
    };
    let said = String::new;
    check("azure-no-deployment", ProviderError::NoSuchModel(said()));
    check("gemini-bad-key", ProviderError::BadKey(said()));
    check("mistral-bad-key", ProviderError::BadKey(said()));
    check("groq-broken-call-refused", ProviderError::Refused(said()));
    check("openai-responses-reasoning-alone", ProviderError::Refused(said()));
    let model = "this-model-does-not-exist-12345".to_owned();
    assert_eq!(one("gemini-no-model").refusal(), ProviderError::NoSuchModel(model));
    let ProviderError::RateLimited { message, .. } =
        one("openrouter-rate-limit-of-another").refusal()
    else {
        panic!("another cause")
    };
    assert!(message.contains("temporarily rate-limited upstream"), "{message}");
}

#[test]
fn a_seal_on_a_call_of_a_compatible_server_goes_back_on_that_call() {
    let call = |index: u64, extra: Value| {
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [{
            "index": index, "id": format!("c{index}"), "type": "function",
            "function": {"name": "a", "arguments": "{}"}, "extra_content": extra,
        }]}}]})
    };
    let seal = json!({"google": {"thought_signature": "sealed"}});
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
    let chunks = [call(0, seal.clone()), call(1, Value::Null), end];
    let protocol = Protocol::OpenaiCompatible;
    let (pieces, ended) = crate::recorded::decode_data(protocol, &chunks);
    assert_eq!(ended, Ok(()));
    let mut request = asking("m");
    request.messages = vec![turn(pieces).message()];
    let calls = body(&request, &endpoint(protocol))["messages"][0]["tool_calls"].clone();
    assert_eq!(calls[0]["extra_content"], seal);
    assert_eq!(calls[1].get("extra_content"), None);
    let mut elsewhere = endpoint(protocol);
    elsewhere.provider = "another".to_owned();
    let calls = body(&request, &elsewhere)["messages"][0]["tool_calls"].clone();
    assert_eq!(calls[0].get("extra_content"), None, "another's seal is nobody's business");
}

#[test]
fn an_answer_as_long_as_it_may_be_is_cut_whatever_its_server_says() {
    let chunks = [json!({"type": "response.completed", "response": {"object": "response",
        "status": "completed", "output": [{"type": "message", "id": "m", "content": [
            {"type": "output_text", "text": "a magical forest, hidden"}]}],
        "usage": {"input_tokens": 14, "output_tokens": asking("m").max_output_tokens}}})];
    let (pieces, end) = crate::recorded::decode_data(Protocol::OpenaiResponses, &chunks);
    assert_eq!((turn(pieces).stop, end), (StopReason::Length, Ok(())), "llama.cpp says so");
}

#[test]
fn a_local_server_that_speaks_anothers_protocol_says_what_is_too_long_in_its_own_words() {
    let body = br#"{"error":{"code":400,"message":"request (3010 tokens) exceeds the available context size (2048 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":3010,"n_ctx":2048}}"#;
    for protocol in Protocol::ALL {
        let answer = Answer { status: 400, headers: Vec::new(), body: body.to_vec() };
        let refusal = protocol.adapter().refusal(&answer);
        assert!(matches!(refusal, ProviderError::ContextTooLong(_)), "{protocol:?}: {refusal:?}");
    }
}

/// The events of a message of Anthropic's with this id, up to its only call, which is left open.
fn message(id: &str) -> Vec<Value> {
    vec![
        json!({"type": "message_start", "message": {"id": id, "content": [],
            "usage": {"input_tokens": 10, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "tool_use", "id": id, "name": "lookup", "input": {}}}),
    ]
}

fn rest() -> Vec<Value> {
    vec![
        json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": "{}"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}}),
        json!({"type": "message_stop"}),
    ]
}

#[test]
fn a_gateway_that_asks_again_in_the_midst_of_an_answer_makes_no_two_answers_one() {
    let read =
        |events: &[Vec<Value>]| crate::recorded::decode_data(Protocol::Anthropic, &events.concat());
    let (_, end) = read(&[message("msg_1"), message("msg_2"), rest()]);
    assert!(matches!(end, Err(ProviderError::Malformed(_))), "{end:?}");
    let closed = vec![rest()[1].clone()];
    let (_, end) = read(&[message("msg_1"), closed, message("msg_2"), rest()]);
    assert!(matches!(end, Err(ProviderError::Malformed(_))), "{end:?}");
    let again = vec![message("msg_1")[0].clone()];
    let (pieces, end) = read(&[message("msg_1"), again, rest()]);
    assert_eq!((turn(pieces).calls.len(), end), (1, Ok(())), "the same message, said twice");
}

#[test]
fn a_message_that_is_whole_when_it_begins_is_understood() {
    let call = json!({"type": "tool_use", "id": "t", "name": "lookup", "input": {"id": "c"}});
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let other = json!({"type": "code_execution_tool_result", "tool_use_id": "x", "content": {}});
    let content = json!([thought, other, {"type": "text", "text": "so"}, call]);
    let events = [
        json!({"type": "message_start", "message": {"id": "m", "stop_reason": "tool_use",
            "content": content, "usage": {"input_tokens": 4, "output_tokens": 2}}}),
        json!({"type": "message_stop"}),
    ];
    let (pieces, end) = crate::recorded::decode_data(Protocol::Anthropic, &events);
    assert_eq!(end, Ok(()));
    let turn = turn(pieces);
    assert_eq!((turn.text.as_str(), turn.stop), ("so", StopReason::Calls));
    assert_eq!(turn.calls[0].arguments, r#"{"id":"c"}"#);
    assert_eq!(turn.reasoning.len(), 1);
}

#[test]
fn why_a_model_was_kept_from_answering_is_told() {
    let events = [
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 18, "output_tokens": 1}}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details":
            {"type": "refusal", "category": "cyber", "explanation": "This request was blocked."}},
            "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ];
    let (pieces, _) = crate::recorded::decode_data(Protocol::Anthropic, &events);
    let turn = turn(pieces);
    assert_eq!((turn.text.as_str(), turn.stop), ("This request was blocked.", StopReason::Refusal));
}

#[test]
fn a_request_larger_than_a_minute_allows_is_not_sent_again_wherever_that_is_said() {
    let failed = [json!({"type": "response.failed", "response": {"status": "failed", "error": {
        "code": "rate_limit_exceeded",
        "message": "Request too large for gpt-4o-mini on tokens per min (TPM): Limit 30000, Requested 35364."}}})];
    let (_, end) = crate::recorded::decode_data(Protocol::OpenaiResponses, &failed);
    assert!(matches!(end, Err(ProviderError::ContextTooLong(_))), "{end:?}");
}

#[test]
fn a_gateway_before_gemini_may_say_that_a_turn_ends_with_calls() {
    let chunk = json!({"candidates": [{"index": 0, "finishReason": "FUNCTION_CALL", "content": {
        "role": "model", "parts": [{"functionCall": {"name": "lookup", "args": {}}}]}}]});
    let (pieces, end) = crate::recorded::decode_data(Protocol::Gemini, &[chunk]);
    assert_eq!((turn(pieces).stop, end), (StopReason::Calls, Ok(())));
}
