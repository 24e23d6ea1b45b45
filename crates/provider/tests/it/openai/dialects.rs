//! What servers send beside the book, written by hand after what they are known for.

use fluffy_provider::{Call, Protocol, ProviderError, SseEvent, StopReason, Turn, Usage};
use serde_json::{Value, json};

use super::{assembled, body, heard, request, tool, user};

fn event(data: &str) -> SseEvent {
    SseEvent { kind: String::new(), data: data.to_owned() }
}

fn said(protocol: Protocol, events: &[SseEvent]) -> Result<Turn, ProviderError> {
    let tools = vec![tool("fs.read", "Read", json!({})), tool("fs.write", "Write", json!({}))];
    let (pieces, ended) = heard(protocol, &request(tools, vec![]), events);
    ended.map(|()| assembled(pieces))
}

/// A turn of chunks, each the first choice's delta; the last gives the reason for ending.
fn chat(deltas: &[Value], reason: &str) -> Result<Turn, ProviderError> {
    let mut events: Vec<SseEvent> = deltas.iter().map(|delta| chunk(delta, &Value::Null)).collect();
    events.push(chunk(&json!({}), &json!(reason)));
    events.push(event("[DONE]"));
    said(Protocol::OpenaiCompatible, &events)
}

fn chunk(delta: &Value, reason: &Value) -> SseEvent {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
    event(&json!({"object": "chat.completion.chunk", "choices": [choice]}).to_string())
}

fn call(piece: Value) -> Value {
    json!({"tool_calls": [piece]})
}

fn calls(turn: &Turn) -> Vec<(&str, &str, &str)> {
    let calls = turn.calls.iter();
    calls.map(|c| (c.id.as_str(), c.name.as_str(), c.arguments.as_str())).collect()
}

#[test]
fn interleaved_pieces_of_calls_keep_to_their_numbers() {
    let turn = chat(
        &[
            call(json!({"index": 1, "id": "b", "function": {"name": "fs_write", "arguments": ""}})),
            call(json!({"index": 0, "id": "a", "function": {"name": "fs_read"}})),
            call(json!({"index": 1, "function": {"arguments": "{\"p\":"}})),
            call(json!({"index": 0, "function": {"arguments": "{}"}})),
            call(json!({"index": 1, "function": {"arguments": "1}"}})),
        ],
        "tool_calls",
    );
    let turn = turn.unwrap();
    assert_eq!(calls(&turn), [("b", "fs.write", "{\"p\":1}"), ("a", "fs.read", "{}")]);
    assert_eq!(turn.stop, StopReason::Calls);
}

#[test]
fn whole_calls_without_numbers_or_ids_and_with_an_ordinary_end_are_calls() {
    let function = |name: &str| json!({"name": name, "arguments": "{}"});
    let two = json!({"tool_calls": [
        {"function": function("fs_read")}, {"type": "function", "function": function("fs_write")},
    ]});
    let turn = chat(&[two], "stop").unwrap();
    assert_eq!(calls(&turn), [("", "fs.read", "{}"), ("", "fs.write", "{}")]);
    assert_eq!(turn.stop, StopReason::Calls);
    let objects = call(json!({"id": "x", "function": {"name": "fs_read", "arguments": {"a": 1}}}));
    assert_eq!(calls(&chat(&[objects], "stop").unwrap()), [("x", "fs.read", "{\"a\":1}")]);
    let old = json!({"function_call": {"name": "fs_read", "arguments": "{}"}});
    let turn = chat(&[old], "function_call").unwrap();
    assert_eq!((calls(&turn), turn.stop), (vec![("", "fs.read", "{}")], StopReason::Calls));
}

#[test]
fn one_number_for_all_calls_does_not_make_one_call_of_them() {
    let piece = |id: Value, name: &str, arguments: &str| {
        call(json!({"index": 0, "id": id, "function": {"name": name, "arguments": arguments}}))
    };
    let turn =
        chat(&[piece(json!("a"), "fs_read", "{}"), piece(json!("b"), "fs_read", "{}")], "stop");
    assert_eq!(calls(&turn.unwrap()), [("a", "fs.read", "{}"), ("b", "fs.read", "{}")]);
    let turn =
        chat(&[piece(json!(null), "fs_read", "{}"), piece(json!(""), "fs_write", "{}")], "stop");
    assert_eq!(calls(&turn.unwrap()), [("", "fs.read", "{}"), ("", "fs.write", "{}")]);
}

#[test]
fn repeated_names_and_changing_ids_within_a_call_do_not_make_two_of_it() {
    let turn = chat(
        &[
            call(json!({"index": 0, "id": "a", "function": {"name": "fs_read", "arguments": "{"}})),
            call(
                json!({"index": 0, "id": "a", "function": {"name": "fs_read", "arguments": "\"a\""}}),
            ),
            call(json!({"index": 0, "id": "new", "function": {"name": null, "arguments": ":1"}})),
            call(json!({"id": "newer", "function": {"arguments": "}"}})),
        ],
        "tool_calls",
    );
    assert_eq!(calls(&turn.unwrap()), [("a", "fs.read", "{\"a\":1}")]);
    let late = chat(
        &[
            call(json!({"index": 0, "id": "a", "function": {"arguments": "{"}})),
            call(json!({"index": 0, "function": {"name": "fs_read", "arguments": "}"}})),
        ],
        "tool_calls",
    );
    assert_eq!(calls(&late.unwrap()), [("a", "fs.read", "{}")], "a name that comes late");
}

#[test]
fn a_call_that_was_cut_off_or_ended_for_no_known_reason_never_runs() {
    let piece =
        call(json!({"index": 0, "id": "a", "function": {"name": "fs_read", "arguments": "{\"a"}}));
    for reason in ["length", "content_filter", "max_tokens"] {
        let turn = chat(std::slice::from_ref(&piece), reason).unwrap();
        assert!(!turn.stop.is_whole(), "{reason}");
    }
    let unknown = chat(std::slice::from_ref(&piece), "because").unwrap_err();
    assert!(matches!(unknown, ProviderError::Malformed(_)));
    let nameless = chat(&[call(json!({"index": 0, "function": {"arguments": "{}"}}))], "stop");
    assert!(matches!(nameless.unwrap_err(), ProviderError::Malformed(_)));
    for ending in [vec![], vec![event("[DONE]")]] {
        let events = [vec![chunk(&piece, &Value::Null)], ending].concat();
        let cut = said(Protocol::OpenaiCompatible, &events).unwrap_err();
        assert!(matches!(cut, ProviderError::Network(_)), "{cut:?}");
    }
    assert_eq!(chat(&[], "tool_calls").unwrap().stop, StopReason::MalformedCall);
}

#[test]
fn reasons_are_understood_and_words_behind_them_are_kept() {
    let text = || json!({"content": "a"});
    for (reason, stop) in [
        ("stop", StopReason::End),
        ("eos_token", StopReason::End),
        ("length", StopReason::Length),
        ("content_filter", StopReason::Refusal),
    ] {
        assert_eq!(chat(&[text()], reason).unwrap().stop, stop, "{reason}");
    }
    let events = [
        chunk(&text(), &json!("stop")),
        chunk(&json!({"content": "b"}), &json!(null)),
        event(r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#),
        event("[DONE]"),
        chunk(&json!({"content": "after the end"}), &json!("stop")),
    ];
    let turn = said(Protocol::OpenaiChat, &events).unwrap();
    assert_eq!((turn.text.as_str(), turn.stop), ("ab", StopReason::End));
    let without_done = said(Protocol::OpenaiChat, &events[..3]).unwrap();
    assert_eq!(without_done, turn);
    let refused = chat(&[json!({"refusal": "I will not."})], "stop").unwrap();
    assert_eq!((refused.text.as_str(), refused.stop), ("I will not.", StopReason::Refusal));
    let busy = chat(&[text()], "insufficient_system_resource").unwrap_err();
    assert!(busy.is_retryable());
}

#[test]
fn reasoning_is_shown_once_and_goes_back_with_the_calls_it_led_to() {
    let asked =
        call(json!({"index": 0, "id": "a", "function": {"name": "fs_read", "arguments": "{}"}}));
    let sent_back = |thoughts: &[Value]| {
        let deltas = [thoughts, std::slice::from_ref(&asked)].concat();
        let turn = chat(&deltas, "tool_calls").unwrap();
        let request = request(vec![], vec![user("x"), turn.message()]);
        (turn.thoughts, body(Protocol::OpenaiCompatible, &request)["messages"][2].clone())
    };
    let (shown, message) = sent_back(&[
        json!({"reasoning_content": "I ", "reasoning": "I "}),
        json!({"reasoning_content": "think", "content": ""}),
    ]);
    assert_eq!((shown.as_str(), &message["reasoning_content"]), ("I think", &json!("I think")));
    let (shown, message) = sent_back(&[json!({"reasoning": "so"})]);
    assert_eq!((shown.as_str(), &message["reasoning"]), ("so", &json!("so")));
    let (shown, message) = sent_back(&[
        json!({"reasoning": "a", "reasoning_details": [
            {"type": "reasoning.text", "index": 0, "text": "a", "format": "f"}]}),
        json!({"reasoning_details": [
            {"type": "reasoning.text", "index": 0, "text": "b", "signature": null}]}),
        json!({"reasoning_details": [
            {"type": "reasoning.text", "index": 0, "text": "", "signature": "s"},
            {"type": "reasoning.encrypted", "index": 1, "data": "d"}, "odd"]}),
    ]);
    assert_eq!(shown, "ab");
    assert_eq!(
        message["reasoning_details"],
        json!([
            {"type": "reasoning.text", "index": 0, "text": "ab", "format": "f", "signature": "s"},
            {"type": "reasoning.encrypted", "index": 1, "data": "d"},
        ])
    );
    let turn = chat(&[json!({"reasoning_content": "hm"}), json!({"content": "yes"})], "stop");
    assert!(turn.unwrap().reasoning.is_empty(), "without calls nobody wants it back");
    let part =
        json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "p"}]}]});
    let (shown, message) = sent_back(&[part]);
    assert_eq!((shown.as_str(), message.get("content")), ("p", None));
}

#[test]
fn a_whole_answer_to_a_streamed_request_is_one() {
    let call =
        json!({"id": "c", "type": "function", "function": {"name": "fs_read", "arguments": "{}"}});
    let message = json!({"role": "assistant", "content": "Look.", "tool_calls": [call]});
    let whole = json!({"object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 10,
            "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
            "completion_tokens_details": {"reasoning_tokens": 2}}});
    let turn = said(Protocol::OpenaiCompatible, &[event(&whole.to_string())]).unwrap();
    assert_eq!((turn.text.as_str(), turn.stop), ("Look.", StopReason::Calls));
    assert_eq!(calls(&turn), [("c", "fs.read", "{}")]);
    let usage = Usage { input: 5, output: 5, cached: 4, cache_written: 1, reasoning: 2 };
    assert_eq!(turn.usage, Some(usage), "what only the total counts was received, too");
    let repeated = [
        chunk(&json!({"content": "a"}), &Value::Null),
        event(r#"{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}"#),
    ];
    assert_eq!(said(Protocol::OpenaiChat, &repeated).unwrap().text, "a");
}

#[test]
fn parts_of_content_and_other_choices_are_told_apart() {
    let parts = json!({"content": [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "yes"},
    ]});
    let turn = chat(&[parts], "stop").unwrap();
    assert_eq!((turn.thoughts.as_str(), turn.text.as_str()), ("hm", "yes"));
    let events = [
        event(r#"{"choices":[{"index":1,"delta":{"content":"other"},"finish_reason":"stop"}]}"#),
        chunk(&json!({"content": "own"}), &json!("stop")),
    ];
    assert_eq!(said(Protocol::OpenaiChat, &events).unwrap().text, "own");
}

#[test]
fn an_error_in_the_middle_of_a_stream_is_understood_like_one_before_it() {
    let before = chunk(&json!({"content": "a"}), &Value::Null);
    let error =
        |data: &str| said(Protocol::OpenaiCompatible, &[before.clone(), event(data)]).unwrap_err();
    let limited = error(
        r#"{"error":{"code":429,"message":"slow"},"choices":[{"delta":{},"finish_reason":"error"}]}"#,
    );
    assert!(matches!(limited, ProviderError::RateLimited { .. }), "{limited:?}");
    assert!(matches!(error(r#"{"error":"oops"}"#), ProviderError::Overloaded { .. }));
    let long = r#"{"object":"error","message":"maximum context length","code":400}"#;
    assert!(matches!(error(long), ProviderError::ContextTooLong(_)));
    for odd in ["{", "nonsense", "[DONE", "\u{0}"] {
        assert!(matches!(error(odd), ProviderError::Malformed(_)), "{odd}");
    }
}

#[test]
fn nothing_that_is_json_makes_a_reader_panic() {
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let odd = [
        "null",
        "7",
        "[]",
        "\"a\"",
        "{}",
        r#"{"choices":7}"#,
        r#"{"choices":[null,7]}"#,
        r#"{"choices":[{"delta":7,"index":-1}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[null,7,{"function":7,"index":"a"}]}}]}"#,
        r#"{"usage":{"prompt_tokens":-1.5}}"#,
        r#"{"type":"response.output_item.done","item":7}"#,
        r#"{"type":"response.output_item.added","item":{"type":"function_call","name":7}}"#,
        r#"{"type":"response.output_text.delta","delta":{}}"#,
        r#"{"type":"response.completed"}"#,
        r#"{"type":7,"response":{"output":[[]]}}"#,
        "",
        " ",
        deep.as_str(),
    ];
    for protocol in [Protocol::OpenaiChat, Protocol::OpenaiCompatible, Protocol::OpenaiResponses] {
        for one in odd {
            for other in odd {
                _ = said(protocol, &[event(one), event(other)]);
            }
        }
    }
}

fn responses(events: &[Value]) -> Result<Turn, ProviderError> {
    let events: Vec<SseEvent> = events.iter().map(|value| event(&value.to_string())).collect();
    said(Protocol::OpenaiResponses, &events)
}

fn added(index: u64, item: &Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u64, item: &Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn completed(output: Value) -> Value {
    json!({"type": "response.completed", "response": {"status": "completed", "output": output,
        "usage": {"input_tokens": 3, "output_tokens": 2}}})
}

fn function(id: &str, name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name,
        "arguments": arguments, "status": "completed"})
}

fn message(text: &str) -> Value {
    json!({"type": "message", "id": "msg", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn arguments(index: u64, delta: &str) -> Value {
    json!({"type": "response.function_call_arguments.delta", "output_index": index, "delta": delta})
}

#[test]
fn items_come_out_once_whether_in_pieces_at_their_end_or_only_at_the_end_of_all() {
    let (one, two) = (function("a", "fs_read", "{\"x\":1}"), function("b", "fs_write", "{}"));
    let text = message("Look.");
    let delta = |piece: &str| json!({"type": "response.output_text.delta", "output_index": 0, "delta": piece});
    let all = completed(json!([text, one, two]));
    let begun = function("a", "fs_read", "");
    let whole = responses(std::slice::from_ref(&all)).unwrap();
    assert_eq!((whole.text.as_str(), whole.stop), ("Look.", StopReason::Calls));
    assert_eq!(calls(&whole), [("a", "fs.read", "{\"x\":1}"), ("b", "fs.write", "{}")]);
    for events in [
        vec![done(0, &text), done(1, &one), done(2, &two), all.clone()],
        vec![delta("Lo"), delta("ok."), added(1, &begun), arguments(1, "{\"x\""), all.clone()],
        vec![
            added(0, &message("")),
            delta("Look."),
            done(0, &text),
            added(1, &begun),
            added(2, &function("b", "fs_write", "")),
            arguments(2, "{"),
            arguments(1, "{\"x\":1}"),
            arguments(2, "}"),
            done(2, &two),
            done(1, &one),
            completed(json!([])),
        ],
        vec![delta("Look."), arguments(1, "{\"x\":1}"), done(1, &one), done(2, &two), all],
    ] {
        let turn = responses(&events).unwrap();
        assert_eq!((&turn.text, calls(&turn)), (&whole.text, calls(&whole)), "{events:?}");
        assert_eq!(turn.stop, StopReason::Calls);
    }
}

#[test]
fn a_whole_response_to_a_streamed_request_is_one() {
    let whole = json!({"object": "response", "status": "completed", "error": null,
        "output": [message("hi")], "usage": {"input_tokens": 1, "output_tokens": 1}});
    let turn = responses(&[whole]).unwrap();
    assert_eq!((turn.text.as_str(), turn.stop), ("hi", StopReason::End));
}

#[test]
fn ids_that_change_and_numbers_that_do_not_are_no_obstacle() {
    let call = |id: &str, name: &str| json!({"type": "function_call", "id": id, "call_id": id, "name": name});
    let changing = [
        added(0, &call("x1", "fs_read")),
        json!({"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "x2", "delta": "{"}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "x3", "delta": "}"}),
        done(
            0,
            &json!({"type": "function_call", "id": "x4", "call_id": "x1", "name": "fs_read", "arguments": "{}"}),
        ),
        completed(
            json!([{"type": "function_call", "id": "x5", "call_id": "x1", "name": "fs_read", "arguments": "{}"}]),
        ),
    ];
    assert_eq!(calls(&responses(&changing).unwrap()), [("x1", "fs.read", "{}")]);
    let delta = |id: &str, delta: &str| json!({"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": id, "delta": delta});
    let same = [
        added(0, &call("a", "fs_read")),
        added(0, &call("b", "fs_write")),
        delta("a", "{\"a\":"),
        delta("b", "{}"),
        delta("a", "1}"),
        completed(json!([])),
    ];
    let turn = responses(&same).unwrap();
    assert_eq!(calls(&turn), [("a", "fs.read", "{\"a\":1}"), ("b", "fs.write", "{}")]);
}

#[test]
fn a_response_that_is_not_whole_runs_nothing() {
    let cut = json!({"type": "function_call", "id": "f", "call_id": "a", "name": "fs_read",
        "arguments": "{\"a", "status": "incomplete"});
    let incomplete = |reason: &str| {
        json!({"type": "response.incomplete", "response": {
        "status": "incomplete", "incomplete_details": {"reason": reason}, "output": [cut]}})
    };
    for (end, stop) in [
        (incomplete("max_output_tokens"), StopReason::Length),
        (incomplete("another"), StopReason::Length),
        (incomplete("content_filter"), StopReason::Refusal),
        (completed(json!([cut])), StopReason::Length),
    ] {
        let turn = responses(&[done(0, &cut), end]).unwrap();
        assert_eq!((turn.stop, turn.calls.len()), (stop, 1));
    }
    let other = responses(&[
        added(0, &function("a", "fs_read", "")),
        arguments(0, "{\"path\":\"a\"}"),
        done(0, &function("a", "fs_read", "{\"path\":\"b\"}")),
    ]);
    assert!(matches!(other.unwrap_err(), ProviderError::Malformed(_)), "a contradiction");
    let early = responses(&[done(0, &function("a", "fs_read", "{}"))]).unwrap_err();
    assert!(matches!(early, ProviderError::Network(_)), "{early:?}");
}

#[test]
fn failures_and_refusals_of_a_response_are_told() {
    let failed = |error: Value| {
        let response = json!({"status": "failed", "error": error});
        responses(&[json!({"type": "response.failed", "response": response})]).unwrap_err()
    };
    let limited =
        failed(json!({"code": "rate_limit_exceeded", "message": "Please try again in 2s."}));
    assert_eq!(limited.retry_after_ms(), Some(2_000));
    assert!(failed(Value::Null).is_retryable());
    let flat =
        json!({"type": "error", "code": "context_length_exceeded", "message": "m", "param": null});
    assert!(matches!(responses(&[flat]).unwrap_err(), ProviderError::ContextTooLong(_)));
    let named =
        SseEvent { kind: "error".to_owned(), data: r#"{"error":{"message":"m"}}"#.to_owned() };
    assert!(said(Protocol::OpenaiResponses, &[named]).is_err());
    let refusal =
        json!({"type": "message", "id": "m", "content": [{"type": "refusal", "refusal": "No."}]});
    let delta = json!({"type": "response.refusal.delta", "output_index": 0, "delta": "No."});
    for events in [vec![completed(json!([refusal]))], vec![delta, completed(json!([refusal]))]] {
        let turn = responses(&events).unwrap();
        assert_eq!((turn.text.as_str(), turn.stop), ("No.", StopReason::Refusal));
    }
    let unknown = [
        json!({"type": "response.new_thing"}),
        json!({"type": "keepalive"}),
        added(0, &json!({"type": "web_search_call", "id": "ws"})),
        completed(json!([message("a")])),
    ];
    assert_eq!(responses(&unknown).unwrap().text, "a");
}

#[test]
fn reasoning_that_cannot_be_sent_back_unties_what_followed_it() {
    let events = |encrypted: Value| {
        let thought = json!({"type": "reasoning", "id": "rs", "summary": [], "status": null,
            "encrypted_content": encrypted});
        [done(0, &thought), done(1, &function("a", "fs_read", "{}")), completed(json!([]))]
    };
    let input = |encrypted: Value| {
        let turn = responses(&events(encrypted)).unwrap();
        let request = request(vec![], vec![turn.message()]);
        body(Protocol::OpenaiResponses, &request)["input"].clone()
    };
    let sealed = input(json!("sealed"));
    assert_eq!(
        sealed[0],
        json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "sealed"})
    );
    assert_eq!((&sealed[1]["id"], &sealed[1]["call_id"]), (&json!("fc_a"), &json!("a")));
    let said = json!({"type": "message", "id": "m", "phase": "commentary",
        "content": [{"type": "output_text", "text": "Hm."}]});
    let thought = json!({"type": "reasoning", "id": "rs", "summary": []});
    let turn = responses(&[completed(json!([thought, said]))]).unwrap();
    let sent = body(Protocol::OpenaiResponses, &request(vec![], vec![turn.message()]));
    let short =
        json!({"type": "message", "role": "assistant", "content": "Hm.", "phase": "commentary"});
    assert_eq!(sent["input"], json!([short]));
    let loose = input(Value::Null);
    assert_eq!((&loose[0]["type"], loose[0].get("id")), (&json!("function_call"), None));
}

#[test]
fn ids_of_calls_come_out_as_they_came() {
    let turn =
        responses(&[completed(json!([function("call_1|x", "multi_tool_use.parallel", "")]))]);
    let (id, name) = ("call_1|x".to_owned(), "multi_tool_use.parallel".to_owned());
    assert_eq!(turn.unwrap().calls, [Call { id, name, arguments: String::new() }]);
}
