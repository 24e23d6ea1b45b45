//! What Google's answers mean, case by case.

use fluffy_provider::{Answer, Message, ProviderError, StopReason, StreamEvent, Usage};
use serde_json::{Value, json};

use super::HERE;
use crate::recorded::{asking, decode, decode_data, endpoint, tool, turn};

/// A chunk with these parts.
fn chunk(parts: Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]})
}

fn ending(reason: &str) -> Value {
    json!({"candidates": [{"finishReason": reason}]})
}

/// The pieces of a stream that ends so.
fn said(mut chunks: Vec<Value>, reason: &str) -> Vec<StreamEvent> {
    chunks.push(ending(reason));
    let (said, end) = decode_data(HERE, &chunks);
    assert_eq!(end, Ok(()));
    said
}

fn failure(chunks: &[Value]) -> ProviderError {
    decode_data(HERE, chunks).1.unwrap_err()
}

#[test]
fn every_reason_to_stop_has_its_meaning() {
    let refusals = [
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "OTHER",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "NO_IMAGE",
        "IMAGE_RECITATION",
        "IMAGE_OTHER",
    ];
    let malformed = [
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MALFORMED_RESPONSE",
    ];
    let lengths = ["MAX_TOKENS", "CONTINUATION"];
    let all = refusals.map(|reason| (reason, StopReason::Refusal)).into_iter();
    let all = all.chain(malformed.map(|reason| (reason, StopReason::MalformedCall)));
    let all = all.chain(lengths.map(|reason| (reason, StopReason::Length)));
    for (reason, meaning) in all.chain([("STOP", StopReason::End)]) {
        assert_eq!(said(Vec::new(), reason), [StreamEvent::Stop(meaning)], "{reason}");
    }
    assert!(matches!(failure(&[ending("BECAUSE")]), ProviderError::Malformed(_)));
    assert!(matches!(failure(&[ending("FINISH_REASON_UNSPECIFIED")]), ProviderError::Network(_)));
}

#[test]
fn a_call_makes_a_turn_one_that_waits_unless_it_went_wrong() {
    let call = || vec![chunk(json!([{"functionCall": {"name": "a", "args": {}}}]))];
    assert_eq!(turn(said(call(), "STOP")).stop, StopReason::Calls);
    assert_eq!(turn(said(call(), "MAX_TOKENS")).stop, StopReason::Length);
    let mut twice = call();
    twice.push(ending("SAFETY"));
    assert_eq!(turn(said(twice, "STOP")).stop, StopReason::Refusal, "what went wrong stays so");
    let mut first = call();
    first.push(ending("STOP"));
    assert_eq!(turn(said(first, "FINISH_REASON_UNSPECIFIED")).stop, StopReason::Calls);
}

#[test]
fn a_stream_without_a_reason_to_stop_was_cut() {
    assert!(matches!(failure(&[]), ProviderError::Network(_)));
    assert!(matches!(failure(&[chunk(json!([{"text": "a"}]))]), ProviderError::Network(_)));
}

#[test]
fn a_blocked_prompt_is_filtered() {
    let feedback = json!({"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "no"});
    let blocked = failure(&[json!({"promptFeedback": feedback})]);
    assert_eq!(blocked, ProviderError::Filtered("PROHIBITED_CONTENT no".to_owned()));
    let fine = json!({"promptFeedback": {"safetyRatings": []}});
    assert_eq!(said(vec![fine], "STOP").len(), 1);
}

#[test]
fn only_the_first_candidate_speaks() {
    let parts = |text: &str| json!({"parts": [{"text": text}]});
    let both = json!({"candidates": [
        {"index": 1, "content": parts("b"), "finishReason": "SAFETY"},
        {"index": 0, "content": parts("a")},
    ]});
    assert_eq!(turn(said(vec![both], "STOP")).text, "a");
}

#[test]
fn calls_without_an_id_get_one_that_no_other_call_of_the_conversation_has() {
    let ids = |messages: Vec<Message>| {
        let mut request = asking("m");
        request.messages = messages;
        let call = json!({"functionCall": {"name": "a"}});
        let given = json!({"functionCall": {"name": "a", "id": "theirs"}});
        let chunk = chunk(json!([call, given, call]));
        let stream = format!("data: {chunk}\n\ndata: {}\n\n", ending("STOP"));
        let turn = turn(decode(HERE, &request, [stream.as_bytes()]).0);
        (turn.calls.iter().map(|call| call.id.clone()).collect::<Vec<_>>(), turn.message())
    };
    let (first, message) = ids(Vec::new());
    assert_eq!(first[1], "theirs");
    let (second, _) = ids(vec![message]);
    let mut all: Vec<_> = first.iter().chain(&second).filter(|id| *id != "theirs").collect();
    all.dedup();
    assert_eq!(all.len(), 4);
}

#[test]
fn arguments_in_pieces_are_put_together() {
    let part = |call: Value| chunk(json!([{"functionCall": call}]));
    let piece = |text: &str, more: bool| {
        let arg = json!({"jsonPath": "$.a.b[0]", "stringValue": text, "willContinue": more});
        part(json!({"partialArgs": [arg], "willContinue": true}))
    };
    let begin = || part(json!({"name": "t", "willContinue": true}));
    let whole =
        turn(said(vec![begin(), piece("x", true), piece("y", false), part(json!({}))], "STOP"));
    assert_eq!(whole.calls[0].arguments, r#"{"a":{"b":["xy"]}}"#);
    let next = turn(said(vec![begin(), piece("x", false), begin(), part(json!({}))], "STOP"));
    let arguments: Vec<_> = next.calls.iter().map(|call| call.arguments.as_str()).collect();
    assert_eq!(arguments, [r#"{"a":{"b":["x"]}}"#, "{}"], "a new call ends the one before it");
    let open = turn(said(vec![begin(), piece("x", true)], "STOP"));
    assert_eq!(open.stop, StopReason::MalformedCall, "a call that never ended must not run");
    for odd in [json!({"args": {}}), json!({"name": "t", "args": [1]})] {
        assert!(matches!(failure(&[part(odd)]), ProviderError::Malformed(_)));
    }
    assert_eq!(said(vec![part(json!({}))], "STOP").len(), 1, "an end of nothing is nothing");
}

#[test]
fn a_list_of_chunks_is_read_like_chunks() {
    let list = json!([chunk(json!([{"text": "a"}])), chunk(json!([{"text": "b"}]))]);
    assert_eq!(turn(said(vec![list], "STOP")).text, "ab");
}

#[test]
fn thoughts_are_part_of_what_was_received() {
    let usage = json!({
        "promptTokenCount": 10, "toolUsePromptTokenCount": 2, "cachedContentTokenCount": 4,
        "candidatesTokenCount": 5, "thoughtsTokenCount": 7, "totalTokenCount": 24,
    });
    let turn = turn(said(vec![json!({"usageMetadata": usage})], "STOP"));
    let expected = Usage { input: 12, output: 12, cached: 4, cache_written: 0, reasoning: 7 };
    assert_eq!(turn.usage, Some(expected));
}

#[test]
fn names_of_tools_come_back_as_they_are_inside() {
    let mut request = asking("m");
    request.tools = vec![tool("fs.read", "Read", json!({}))];
    let call = |name: &str| json!({"functionCall": {"name": name, "args": {}}});
    let stream = format!("data: {}\n\n", chunk(json!([call("fs_read"), call("fs_write")])));
    let (said, _) = decode(HERE, &request, [stream.as_bytes()]);
    let names: Vec<_> = said
        .iter()
        .filter_map(|piece| match piece {
            StreamEvent::CallStarted { name, .. } => Some(name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["fs.read", "fs_write"]);
}

fn error(code: u16, status: &str, message: &str, details: Value) -> Value {
    json!({"error": {"code": code, "message": message, "status": status, "details": details}})
}

fn refusal(status: u16, body: &Value) -> ProviderError {
    let body = body.to_string().into_bytes();
    HERE.adapter().refusal(&Answer { status, headers: Vec::new(), body })
}

#[test]
fn a_bad_key_is_said_with_the_status_of_a_bad_request() {
    let message = "API key not valid. Please pass a valid API key.";
    let details =
        json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]);
    let body = error(400, "INVALID_ARGUMENT", message, details);
    assert_eq!(refusal(400, &body), ProviderError::BadKey(message.to_owned()));
    assert!(matches!(refusal(400, &json!([body])), ProviderError::BadKey(_)), "in a list");
    let body = error(403, "PERMISSION_DENIED", "Permission denied", json!([]));
    assert!(matches!(refusal(403, &body), ProviderError::BadKey(_)));
}

#[test]
fn a_quota_of_a_minute_passes_and_one_of_a_day_does_not() {
    let quota = |id: &str| {
        json!([
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": id}]},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "48.25s"},
        ])
    };
    let message = "You exceeded your current quota, please check your plan and billing details.";
    let limited = |id: &str| refusal(429, &error(429, "RESOURCE_EXHAUSTED", message, quota(id)));
    let minute = limited("GenerateRequestsPerMinutePerProjectPerModel-FreeTier");
    assert_eq!((minute.is_retryable(), minute.retry_after_ms()), (true, Some(48_250)));
    let day = limited("GenerateRequestsPerDayPerProjectPerModel-FreeTier");
    assert_eq!(day, ProviderError::QuotaExhausted(message.to_owned()));
    let told = |message: &str| {
        refusal(429, &error(429, "RESOURCE_EXHAUSTED", message, Value::Null)).retry_after_ms()
    };
    assert_eq!(told("Quota exceeded. Please retry in 7.5s."), Some(7_500));
    assert_eq!(told("Please retry in 3s."), Some(3_000));
    for odd in ["", "retry in ", "retry in soon", "retry in -1s", "retry in 1e9s", "retry in é.és"]
    {
        assert_eq!(told(odd), None, "{odd}");
    }
    assert_eq!(told("retry in 99999999999999999999s"), None);
}

#[test]
fn other_refusals_mean_what_they_say() {
    let message = "models/gemini-none is not found for API version v1beta, or is not supported";
    let found = refusal(404, &error(404, "NOT_FOUND", message, json!([])));
    assert_eq!(found, ProviderError::NoSuchModel("gemini-none".to_owned()));
    let message =
        "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).";
    let found = refusal(400, &error(400, "INVALID_ARGUMENT", message, json!([])));
    assert!(matches!(found, ProviderError::ContextTooLong(_)));
    let found =
        refusal(400, &error(400, "INVALID_ARGUMENT", "Corrupted thought signature.", json!([])));
    assert_eq!(found, ProviderError::Refused("Corrupted thought signature.".to_owned()));
    let found = refusal(503, &error(503, "UNAVAILABLE", "The model is overloaded.", json!([])));
    assert!(found.is_retryable());
    assert!(matches!(refusal(404, &json!("?")), ProviderError::Refused(_)));
}

#[test]
fn an_error_in_the_midst_of_an_answer_means_what_its_status_would() {
    let busy = error(503, "UNAVAILABLE", "The model is overloaded.", json!([]));
    let found = failure(&[chunk(json!([{"text": "a"}])), busy]);
    assert!(matches!(found, ProviderError::Overloaded { .. }));
    let list = json!([error(400, "INVALID_ARGUMENT", "API key not valid.", json!([]))]);
    assert!(matches!(failure(&[list]), ProviderError::BadKey(_)));
}

#[test]
fn models_that_can_be_spoken_with_come_in_pages() {
    let adapter = HERE.adapter();
    let page = json!({
        "models": [
            {"name": "models/gemini-a", "displayName": "A", "inputTokenLimit": 1_048_576,
             "outputTokenLimit": 65_536, "supportedGenerationMethods": ["generateContent"]},
            {"name": "models/embedder", "supportedGenerationMethods": ["embedContent"]},
            {"name": "models/unsaid"},
        ],
        "nextPageToken": "a/b&c",
    });
    let page = adapter.models_in(page.to_string().as_bytes()).unwrap();
    let found: Vec<_> = page.models.iter().map(|m| (m.id.as_str(), m.context_window)).collect();
    assert_eq!(found, [("gemini-a", Some(1_048_576)), ("unsaid", None)]);
    let next = adapter.models(&endpoint(HERE), page.next.as_deref());
    assert_eq!(next.path, "/v1beta/models?pageSize=1000&pageToken=a%2Fb%26c");
    assert_eq!(adapter.models_in(br#"{"models": [], "nextPageToken": ""}"#).unwrap().next, None);
    assert!(adapter.models_in(b"{}").is_err());
    assert_eq!(adapter.counted(br#"{"totalTokens": 7}"#), Ok(7));
    assert!(adapter.counted(b"{}").is_err());
}
