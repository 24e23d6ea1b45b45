//! What Anthropic's answers mean, case by case.

use fluffy_provider::{Answer, ProviderError, StopReason, StreamEvent, Usage};
use serde_json::{Value, json};

use super::HERE;
use crate::recorded::{asking, decode, decode_data, endpoint, tool, turn};

fn start(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn ending(reason: &str) -> [Value; 2] {
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    [json!({"type": "message_delta", "delta": delta}), json!({"type": "message_stop"})]
}

/// The pieces of a stream, its last events those of this end.
fn said(events: Vec<Value>, reason: &str) -> Vec<StreamEvent> {
    let events: Vec<_> = events.into_iter().chain(ending(reason)).collect();
    let (said, end) = decode_data(HERE, &events);
    assert_eq!(end, Ok(()));
    said
}

fn failure(events: &[Value]) -> ProviderError {
    decode_data(HERE, events).1.unwrap_err()
}

#[test]
fn every_reason_to_stop_has_its_meaning() {
    for (reason, meaning) in [
        ("end_turn", StopReason::End),
        ("stop_sequence", StopReason::End),
        ("tool_use", StopReason::End),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Length),
        ("pause_turn", StopReason::Pause),
        ("refusal", StopReason::Refusal),
    ] {
        assert_eq!(said(Vec::new(), reason), [StreamEvent::Stop(meaning)], "{reason}");
    }
    let call = start(0, json!({"type": "tool_use", "id": "a", "name": "b", "input": {}}));
    let last = |reason| said(vec![call.clone()], reason).pop();
    assert_eq!(last("end_turn"), Some(StreamEvent::Stop(StopReason::Calls)));
    assert_eq!(last("max_tokens"), Some(StreamEvent::Stop(StopReason::Length)));
    assert!(matches!(failure(&ending("because")), ProviderError::Malformed(_)));
    assert!(matches!(failure(&[ending("x")[1].clone()]), ProviderError::Malformed(_)));
}

#[test]
fn tools_that_the_vendor_runs_and_kinds_that_nobody_knows_are_passed_over() {
    let events = vec![
        json!({"type": "a_kind_of_tomorrow", "index": 7}),
        start(
            0,
            json!({"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {}}),
        ),
        delta(0, json!({"type": "input_json_delta", "partial_json": "{\"query\": 1}"})),
        stop(0),
        start(1, json!({"type": "web_search_tool_result", "tool_use_id": "srv", "content": []})),
        stop(1),
        start(2, json!({"type": "hologram", "data": "x"})),
        delta(2, json!({"type": "text_delta", "text": "not words of a text"})),
        stop(2),
        start(3, json!({"type": "text", "text": ""})),
        delta(3, json!({"type": "citations_delta", "citation": {}})),
        delta(3, json!({"type": "text_delta", "text": "words"})),
        stop(3),
    ];
    let words = StreamEvent::Text("words".to_owned());
    assert_eq!(said(events, "end_turn"), [words, StreamEvent::Stop(StopReason::End)]);
}

#[test]
fn parts_may_come_in_any_order_and_at_once() {
    let call = |index, id: &str, input: Value| {
        start(index, json!({"type": "tool_use", "id": id, "name": "t", "input": input}))
    };
    let piece =
        |index, text| delta(index, json!({"type": "input_json_delta", "partial_json": text}));
    let events = vec![
        start(9, json!({"type": "text", "text": "so: "})),
        call(4, "late", json!({})),
        call(2, "early", json!({})),
        piece(2, "{\"a\":"),
        piece(4, ""),
        piece(4, "{}"),
        delta(9, json!({"type": "text_delta", "text": "done"})),
        piece(2, "1}"),
        stop(2),
        call(5, "whole", json!({"b": 2})),
        stop(5),
        call(6, "none", json!({})),
    ];
    let turn = turn(said(events, "tool_use"));
    let calls: Vec<_> = turn.calls.iter().map(|c| (c.id.as_str(), c.arguments.as_str())).collect();
    let expected = [("late", "{}"), ("early", "{\"a\":1}"), ("whole", "{\"b\":2}"), ("none", "")];
    assert_eq!(calls, expected);
    assert_eq!((turn.text.as_str(), turn.stop), ("so: done", StopReason::Calls));
}

#[test]
fn what_contradicts_itself_is_an_error() {
    let text = || start(0, json!({"type": "text", "text": ""}));
    let piece = || delta(0, json!({"type": "text_delta", "text": "a"}));
    for events in [vec![text(), text()], vec![piece()], vec![text(), stop(0), piece()]] {
        assert!(matches!(failure(&events), ProviderError::Malformed(_)), "{events:?}");
    }
    let (_, end) = decode(HERE, &asking("m"), [b"data: {\"type\"\n\n".as_slice()]);
    assert!(matches!(end, Err(ProviderError::Malformed(_))));
}

#[test]
fn thoughts_without_a_signature_are_shown_and_not_kept() {
    let thought = |signature: &str| {
        vec![
            start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
            delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
            delta(0, json!({"type": "signature_delta", "signature": signature})),
            stop(0),
        ]
    };
    let cut = turn(said(thought(""), "max_tokens"));
    assert_eq!((cut.thoughts.as_str(), cut.reasoning.len()), ("hm", 0));
    let whole = turn(said(thought("sig"), "end_turn"));
    let block: Value = serde_json::from_str(&whole.reasoning[0].data).unwrap();
    assert_eq!(block, json!({"type": "thinking", "thinking": "hm", "signature": "sig"}));
    assert_eq!(whole.reasoning[0].origin, endpoint(HERE).origin("m"));
}

#[test]
fn a_signature_without_words_is_kept() {
    let events = vec![
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "signature_delta", "signature": "sig"})),
    ];
    assert_eq!(turn(said(events, "end_turn")).reasoning.len(), 1);
}

#[test]
fn cached_tokens_are_part_of_what_was_sent() {
    let usage = json!({
        "input_tokens": 3, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 100,
        "output_tokens": 1,
    });
    let started = json!({"type": "message_start", "message": {"usage": usage}});
    let last = json!({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 9}});
    let turn = turn(said(vec![started, last], "end_turn"));
    let expected = Usage { input: 123, output: 9, cached: 100, cache_written: 20, reasoning: 0 };
    assert_eq!(turn.usage, Some(expected));
}

#[test]
fn names_of_tools_come_back_as_they_are_inside() {
    let mut request = asking("m");
    request.tools = vec![tool("fs.read", "Read", json!({}))];
    let called = |name: &str| {
        let event = start(0, json!({"type": "tool_use", "id": "a", "name": name, "input": {}}));
        let stream = format!("event: content_block_start\ndata: {event}\n\n");
        match decode(HERE, &request, [stream.as_bytes()]).0.remove(0) {
            StreamEvent::CallStarted { name, .. } => name,
            other => unreachable!("{other:?}"),
        }
    };
    assert_eq!(called("fs_read"), "fs.read");
    assert_eq!(called("fs_write"), "fs_write");
}

#[test]
fn an_endless_thought_comes_to_an_end() {
    let big = "x".repeat(1 << 20);
    let mut events = vec![start(0, json!({"type": "thinking", "thinking": "", "signature": ""}))];
    let more = delta(0, json!({"type": "signature_delta", "signature": big}));
    events.extend(std::iter::repeat_n(more, 20));
    assert!(matches!(failure(&events), ProviderError::Malformed(_)));
}

#[test]
fn an_error_in_the_midst_of_an_answer_means_what_its_status_would() {
    let fails = |kind: &str, message: &str| {
        let error = json!({"type": kind, "message": message, "details": null});
        let error = json!({"type": "error", "error": error, "request_id": "req_1"});
        failure(&[json!({"type": "ping"}), error])
    };
    let busy = fails("overloaded_error", "Overloaded");
    let said = "Overloaded (req_1)".to_owned();
    assert_eq!(busy, ProviderError::Overloaded { message: said, retry_after_ms: None });
    assert!(fails("rate_limit_error", "slow").is_retryable());
    assert!(fails("api_error", "Internal server error").is_retryable());
    assert!(fails("timeout_error", "late").is_retryable());
    assert!(fails("an_error_of_tomorrow", "?").is_retryable());
    assert!(matches!(fails("authentication_error", "k"), ProviderError::BadKey(_)));
    assert!(matches!(fails("billing_error", "b"), ProviderError::QuotaExhausted(_)));
    assert!(matches!(fails("invalid_request_error", "i"), ProviderError::Refused(_)));
    let long = fails("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum");
    assert!(matches!(long, ProviderError::ContextTooLong(_)));
    // One without a kind of its own, as gateways send it.
    let stream = b"event: error\ndata: {\"error\": {\"message\": \"upstream\"}}\n\n".as_slice();
    let (_, end) = decode(HERE, &asking("m"), [stream]);
    assert!(end.unwrap_err().is_retryable());
}

fn refusal(status: u16, headers: &[(&str, &str)], body: &str) -> ProviderError {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let headers = headers.collect();
    HERE.adapter().refusal(&Answer { status, headers, body: body.as_bytes().to_vec() })
}

fn error(kind: &str, message: &str) -> String {
    json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
}

#[test]
fn a_refusal_says_what_is_wrong() {
    let id = [("request-id", "req_7")];
    let body = error("authentication_error", "invalid x-api-key");
    let said = "invalid x-api-key (req_7)".to_owned();
    assert_eq!(refusal(401, &id, &body), ProviderError::BadKey(said));
    let body = error("not_found_error", "model: claude-none");
    assert_eq!(refusal(404, &id, &body), ProviderError::NoSuchModel("claude-none".to_owned()));
    assert!(matches!(refusal(404, &[], "<h1>nothing here</h1>"), ProviderError::Refused(_)));
    let body = error("invalid_request_error", "prompt is too long: 209 tokens > 200 maximum");
    assert!(matches!(refusal(400, &[], &body), ProviderError::ContextTooLong(_)));
    let body = error("request_too_large", "Request exceeds the maximum size");
    assert!(matches!(refusal(413, &[], &body), ProviderError::ContextTooLong(_)));
    let body = error("invalid_request_error", "max_tokens: must be positive");
    assert!(matches!(refusal(400, &[], &body), ProviderError::Refused(_)));
    let body = error("overloaded_error", "Overloaded");
    assert!(refusal(529, &[], &body).is_retryable());
}

#[test]
fn what_is_spent_is_not_asked_for_again() {
    let details = json!({"error_code": "enforced_spend_limit_reached"});
    let limit = json!({"type": "rate_limit_error", "message": "limit", "details": details});
    let body = json!({"type": "error", "error": limit}).to_string();
    assert!(matches!(refusal(429, &[], &body), ProviderError::QuotaExhausted(_)));
    let body = error("invalid_request_error", "Your credit balance is too low to access the API");
    assert!(matches!(refusal(400, &[], &body), ProviderError::QuotaExhausted(_)));
    let body = error("rate_limit_error", "Number of requests has exceeded your rate limit");
    let limited = refusal(429, &[("retry-after", "7")], &body);
    assert_eq!((limited.is_retryable(), limited.retry_after_ms()), (true, Some(7_000)));
}

#[test]
fn models_come_in_pages() {
    let adapter = HERE.adapter();
    let page = json!({
        "data": [
            {"type": "model", "id": "claude-a", "display_name": "A", "max_input_tokens": 200_000,
             "max_tokens": 64_000},
            {"type": "model", "id": "claude-b"},
            {"type": "model"},
        ],
        "has_more": true, "first_id": "claude-a", "last_id": "claude-b",
    });
    let page = adapter.models_in(page.to_string().as_bytes()).unwrap();
    let found: Vec<_> = page.models.iter().map(|m| (m.id.as_str(), m.context_window)).collect();
    assert_eq!(found, [("claude-a", Some(200_000)), ("claude-b", None)]);
    let next = adapter.models(&endpoint(HERE), page.next.as_deref());
    assert_eq!(next.path, "/v1/models?limit=1000&after_id=claude-b");
    assert_eq!(next.body, None);
    let last = adapter.models_in(br#"{"data": [], "has_more": false, "last_id": "x"}"#).unwrap();
    assert_eq!(last.next, None);
    assert!(adapter.models_in(b"{}").is_err() && adapter.models_in(b"<html>").is_err());
}

#[test]
fn tokens_are_counted() {
    let adapter = HERE.adapter();
    assert_eq!(adapter.counted(br#"{"input_tokens": 42}"#), Ok(42));
    assert!(adapter.counted(b"{}").is_err());
}
