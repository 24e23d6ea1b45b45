//! Transcripts: read strictly, played to the letter, written so that they read the same.

use std::ops::ControlFlow;

use fluffy_provider::{
    Call, CallOutcome, Expectation, Expected, Provider, ProviderError, Recorder, Replay,
    StopReason, Transcript, Turn, Usage,
};
use proptest::prelude::*;

use crate::{answered, turn};

const HEAD: &str = "{\"v\":1,\"kind\":\"transcript\"}\n";

fn replay(lines: &str) -> Replay {
    Replay::parse(&format!("{HEAD}{lines}")).unwrap()
}

fn refusal(text: &str) -> String {
    Replay::parse(text).unwrap_err().to_string()
}

#[test]
fn a_transcript_is_played_line_by_line_whatever_was_answered() {
    let replay = replay(
        "{\"text\":\"one\\ntwo\",\"tool_calls\":[{\"name\":\"fs.write\",\"arguments\":{\"b\":1,\"a\":[]}},\
         {\"name\":\"test.run\"}],\"usage\":{\"input_tokens\":9,\"output_tokens\":2}}\n\n{\"text\":\"done\"}\n",
    );
    let first = turn(&replay, &answered(&[])).unwrap();
    assert_eq!(first.text, "one\ntwo");
    let calls: Vec<_> = first
        .calls
        .iter()
        .map(|c| (c.id.as_str(), c.name.as_str(), c.arguments.as_str()))
        .collect();
    let expected = [("call_0_0", "fs.write", "{\"a\":[],\"b\":1}"), ("call_0_1", "test.run", "{}")];
    assert_eq!(calls, expected);
    assert_eq!(first.stop, StopReason::Calls);
    assert_eq!(first.usage, Some(Usage { input: 9, output: 2, ..Usage::default() }));
    let second = turn(&replay, &answered(&[("fs.write", CallOutcome::Denied)])).unwrap();
    assert_eq!((second.text.as_str(), second.stop), ("done", StopReason::End));
    for _ in 0..2 {
        let ended = turn(&replay, &answered(&[])).unwrap_err();
        assert_eq!(ended, ProviderError::TranscriptEnded { turns: 2 });
    }
}

#[test]
fn a_broken_model_can_be_played() {
    let replay = replay("{\"tool_calls\":[{\"name\":\"\",\"arguments\":\"{\\\"path\\\": \"}]}");
    let turn = turn(&replay, &answered(&[])).unwrap();
    assert_eq!(turn.calls[0].name, "");
    assert_eq!(turn.calls[0].arguments, "{\"path\": ");
}

#[test]
fn a_resumed_task_goes_on_where_it_stood() {
    let replay = replay("{\"text\":\"a\"}\n{\"text\":\"b\"}\n").skip(1);
    assert_eq!(replay.remaining(), 1);
    assert_eq!(turn(&replay, &answered(&[])).unwrap().text, "b");
    let past = Replay::parse(HEAD).unwrap().skip(9);
    assert_eq!(past.remaining(), 0);
    assert_eq!(turn(&past, &answered(&[])), Err(ProviderError::TranscriptEnded { turns: 0 }));
}

#[test]
fn a_line_that_is_not_in_the_format_is_named_with_its_number() {
    assert_eq!(
        refusal(&format!("{HEAD}{{}}\n{{\"txt\":\"a\"}}")),
        "line 3 of the transcript: unknown field `txt`, expected one of `text`, `tool_calls`, `usage`, \
         `stop`, `expect`"
    );
    for (line, problem) in [
        ("{\"text\":1}", "invalid type"),
        ("{\"text\":\"a\",\"text\":\"b\"}", "key `text` stands twice"),
        ("[]", "line 2"),
        ("{\"text\":\"a\"} x", "trailing characters"),
        (
            "{\"tool_calls\":[{\"name\":\"a\",\"arguments\":[1]}]}",
            "`arguments` of call 1 is neither",
        ),
        ("{\"tool_calls\":[{\"arguments\":{}}]}", "missing field `name`"),
        ("{\"tool_calls\":[{\"name\":\"a\",\"id\":\"1\"}]}", "unknown field `id`"),
        ("{\"expect\":[{\"tool\":\"a\",\"decision\":\"maybe\"}]}", "unknown variant `maybe`"),
        ("{\"usage\":{\"input_tokens\":-1}}", "invalid value"),
        ("{\"usage\":{\"tokens\":1}}", "unknown field `tokens`"),
    ] {
        let refusal = refusal(&format!("{HEAD}{line}\n"));
        assert!(refusal.contains(problem) && refusal.starts_with("line 2"), "{line}: {refusal}");
    }
}

#[test]
fn a_first_line_of_another_kind_or_version_is_refused() {
    assert!(refusal("").contains("is empty"));
    assert!(refusal("\n \n").contains("is empty"));
    assert!(refusal("{\"v\":2,\"kind\":\"transcript\"}").contains("version 2 is not known"));
    for head in [
        "{\"v\":1}",
        "{\"v\":1,\"kind\":\"x\"}",
        "{\"text\":\"a\"}",
        "junk",
        "{\"v\":1,\"kind\":\"transcript\",\"a\":1}",
    ] {
        assert!(refusal(head).contains("line 1 of the transcript: the first line is"), "{head}");
    }
}

#[test]
fn a_transcript_is_read_from_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.jsonl");
    let missing = Replay::open(&path).unwrap_err();
    assert_eq!(missing.to_string(), "the transcript could not be read");
    let mut out = Recorder::new(tempfile::NamedTempFile::new_in(dir.path()).unwrap()).unwrap();
    out.record(&said("hello"), &[]).unwrap();
    let replay = Replay::open(out.into_inner().path()).unwrap();
    assert_eq!(turn(&replay, &answered(&[])).unwrap().text, "hello");
}

#[test]
fn an_expectation_is_held_against_the_turn_before() {
    use CallOutcome::{Denied, Done, Failed, Invalid};
    let check = |expect: &[(&str, &str)], results: &[(&str, CallOutcome)]| {
        let expect: Vec<_> = expect
            .iter()
            .map(|(tool, decision)| serde_json::json!({ "tool": tool, "decision": decision }))
            .collect();
        let line = serde_json::json!({ "text": "a", "expect": expect }).to_string();
        turn(&replay(&line), &answered(results)).map(|turn| turn.text).map_err(|e| e.to_string())
    };
    let met = Ok("a".to_owned());
    assert_eq!(check(&[], &[("fs.write", Done)]), met);
    assert_eq!(check(&[("fs.write", "denied")], &[("fs.write", Denied)]), met);
    assert_eq!(check(&[("test.run", "allowed")], &[("test.run", Failed)]), met);
    assert_eq!(check(&[("test.run", "failed")], &[("test.run", Failed)]), met);
    for decision in ["denied", "failed"] {
        assert_eq!(check(&[("fs.wriet", decision)], &[("fs.wriet", Invalid)]), met);
    }
    let both = [("fs.read", Done), ("fs.write", Denied), ("fs.read", Denied)];
    assert_eq!(check(&[("fs.write", "denied")], &both), met);
    assert_eq!(check(&[("fs.read", "allowed"), ("fs.read", "denied")], &both), met);
    assert_eq!(
        check(&[("fs.write", "denied"), ("fs.read", "allowed")], &both).unwrap_err(),
        "turn 1 of the transcript expects `fs.write` denied, `fs.read` allowed, but `fs.read` allowed did \
         not happen: the turn before had `fs.read` done, `fs.write` denied, `fs.read` denied"
    );
    for (decision, outcome) in [
        ("allowed", Denied),
        ("allowed", Invalid),
        ("denied", Done),
        ("denied", Failed),
        ("failed", Done),
    ] {
        assert!(check(&[("a", decision)], &[("a", outcome)]).is_err(), "{decision} {outcome:?}");
    }
    assert!(check(&[("a", "denied")], &[]).unwrap_err().ends_with("the turn before had no calls"));
}

#[test]
fn one_call_cannot_meet_two_expectations() {
    let line = "{\"expect\":[{\"tool\":\"a\",\"decision\":\"denied\"},{\"tool\":\"a\",\"decision\":\"denied\"}]}";
    let failed = turn(&replay(line), &answered(&[("a", CallOutcome::Denied)]));
    assert!(matches!(failed, Err(ProviderError::Expectation(_))));
}

#[test]
fn breaking_off_ends_the_stream_at_once() {
    let replay = replay("{\"text\":\"a\\nb\\nc\\n\"}\n{\"text\":\"next\"}");
    let mut pieces = 0;
    let broken = replay.turn(&answered(&[]), &mut |_| {
        pieces += 1;
        if pieces == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!((broken, pieces), (Err(ProviderError::Cancelled), 2));
}

#[test]
fn arguments_at_the_limit_of_nesting_are_recorded_as_text() {
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(62), "]".repeat(62));
    let mut turn = said("");
    turn.calls = vec![call("x", &deep)];
    turn.stop = StopReason::Calls;
    let read = replay(&fluffy_provider::to_line(&turn, &[]));
    assert_eq!(crate::turn(&read, &answered(&[])).unwrap().calls[0].arguments, deep);
}

fn said(text: &str) -> Turn {
    Turn {
        text: text.to_owned(),
        thoughts: String::new(),
        calls: Vec::new(),
        reasoning: Vec::new(),
        usage: None,
        stop: StopReason::End,
    }
}

fn call(name: &str, arguments: &str) -> Call {
    Call { id: "id".to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

fn any_arguments() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        Just("{}".to_owned()),
        prop::collection::btree_map("\\PC{0,4}", any::<i32>(), 0..4)
            .prop_map(|map| serde_json::json!(map).to_string()),
        Just("{\"a\": 1, \"a\": 2}".to_owned()),
        Just("[1,2]".to_owned()),
        Just("\"text\"".to_owned()),
    ]
}

fn any_stop() -> impl Strategy<Value = Option<StopReason>> {
    prop_oneof![
        3 => Just(None),
        1 => Just(Some(StopReason::Length)),
        1 => Just(Some(StopReason::Pause)),
        1 => Just(Some(StopReason::Refusal)),
    ]
}

prop_compose! {
    fn any_turn()(
        text in any::<String>(),
        calls in prop::collection::vec(("\\PC{0,8}", any_arguments()), 0..4),
        usage in prop::option::of((0..1_u64 << 50, 0..1_u64 << 50, 0..9_u64)),
        stop in any_stop(),
    ) -> Turn {
        let plain = if calls.is_empty() { StopReason::End } else { StopReason::Calls };
        let usage = usage
            .map(|(input, output, cached)| Usage { input, output, cached, ..Usage::default() });
        let calls = calls.iter().map(|(name, arguments)| call(name, arguments)).collect();
        Turn { calls, usage, stop: stop.unwrap_or(plain), ..said(&text) }
    }
}

fn any_expected() -> impl Strategy<Value = Expected> {
    let decisions = [Expectation::Allowed, Expectation::Denied, Expectation::Failed];
    ("\\PC{0,8}", prop::sample::select(decisions.to_vec()))
        .prop_map(|(tool, decision)| Expected { tool, decision })
}

/// Arguments as values, where they are objects; the spelling of an object may change.
fn values(turn: &Turn) -> Vec<(String, Result<fluffy_base::Json, String>)> {
    let value = |text: &str| {
        let json = fluffy_base::Json::parse(text.as_bytes()).ok();
        json.filter(|json| json.as_object().is_some()).ok_or_else(|| text.to_owned())
    };
    turn.calls.iter().map(|call| (call.name.clone(), value(&call.arguments))).collect()
}

proptest! {
    #[test]
    fn what_was_recorded_is_what_is_played(
        turns in prop::collection::vec((any_turn(), prop::collection::vec(any_expected(), 0..3)), 0..4),
    ) {
        let mut recorder = Recorder::new(Vec::new()).unwrap();
        for (turn, expect) in &turns {
            recorder.record(turn, expect).unwrap();
        }
        let text = String::from_utf8(recorder.into_inner()).unwrap();
        let transcript = Transcript::parse(&text).unwrap();
        let expected: Vec<_> = turns.iter().map(|(_, expect)| expect.clone()).collect();
        let read: Vec<_> = transcript.turns.iter().map(|turn| turn.expect.clone()).collect();
        prop_assert_eq!(read, expected);
        let mut bare = Recorder::new(Vec::new()).unwrap();
        for (turn, _) in &turns {
            bare.record(turn, &[]).unwrap();
        }
        let replay = Replay::parse(std::str::from_utf8(&bare.into_inner()).unwrap()).unwrap();
        for (turn, _) in &turns {
            let played = crate::turn(&replay, &answered(&[])).unwrap();
            prop_assert_eq!(&played.text, &turn.text);
            prop_assert_eq!(values(&played), values(turn));
            prop_assert_eq!(played.usage, turn.usage);
            prop_assert_eq!(played.stop, turn.stop);
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>()) {
        let _ = Transcript::parse(&text);
        let _ = Transcript::parse(&format!("{HEAD}{text}"));
    }
}
