//! Models that write nonsense: answered, recorded, never carried out, and not for ever.

use fluffy_agent::{MAX_CALLS, MAX_INVALID, Outcome};
use fluffy_provider::{CallOutcome, ProviderError, StopReason, StreamEvent};
use proptest::prelude::*;

use crate::scripted::{Script, ScriptedBench, ScriptedProvider, pieces, run, say};

/// What the model is told about one broken call.
fn told(name: &str, arguments: &str) -> String {
    let bench = ScriptedBench::default();
    let provider = ScriptedProvider::calling(&[&[(name, arguments)], &[("task.complete", "{}")]]);
    let ended = run(&bench, &provider);
    assert!(matches!(ended.outcome, Outcome::Completed { turns: 2, .. }), "{ended:?}");
    let calls = bench.calls.lock().unwrap();
    assert_eq!(calls.len(), 1, "only task.complete reaches the bench");
    let refused = bench.refused.lock().unwrap();
    assert_eq!(refused.len(), 1);
    let asked = provider.asked();
    let results = asked[1].last_results();
    assert_eq!((results.len(), results[0].outcome), (1, CallOutcome::Invalid));
    assert_eq!(results[0].content, refused[0].1);
    assert_eq!(bench.turns.lock().unwrap()[0].calls[0].arguments, arguments);
    results[0].content.clone()
}

#[test]
fn arguments_that_are_no_object_are_answered_and_never_reach_the_bench() {
    assert!(told("fs.read", "{\"path\": ").starts_with("the arguments are not valid JSON: "));
    assert!(told("fs.read", "{\"a\":1,\"a\":2}").contains("key `a` stands twice"));
    assert!(told("fs.read", "{\"a\":9007199254740993}").contains("cannot be kept exactly"));
    assert!(told("fs.read", &"[".repeat(100_000)).contains("nested deeper"));
    for other in ["[]", "null", "1", "\"{}\"", "true"] {
        assert_eq!(told("fs.read", other), "the arguments are not a JSON object");
    }
}

#[test]
fn a_name_that_no_tool_can_have_is_answered() {
    assert_eq!(told("", "{}"), "`` is not the name of a tool");
    assert_eq!(told("a b\n", "{}"), "`a b\\n` is not the name of a tool");
    assert!(told(&"n".repeat(100_000), "{}").len() < 100);
}

#[test]
fn an_invalid_call_is_tried_again_three_times_and_then_it_has_failed() {
    for (name, arguments) in [("fs.read", "{"), ("no.such", "{}")] {
        let bench = ScriptedBench::default();
        let turns: Vec<_> = (0..9).map(|_| say("", &[(name, arguments)])).collect();
        let provider = ScriptedProvider::new(turns);
        let Outcome::Failed(failure) = run(&bench, &provider).outcome else { panic!("not failed") };
        assert!(failure.what.contains("cannot be understood"));
        assert_eq!(provider.asked().len(), usize::try_from(MAX_INVALID).unwrap() + 1);
    }
}

#[test]
fn a_call_that_is_understood_makes_up_for_earlier_ones() {
    let bench = ScriptedBench::default();
    let mut script = Vec::new();
    for _ in 0..5 {
        script.extend((0..3).map(|_| say("", &[("fs.read", "{")])));
        script.push(say("", &[("fs.read", "{}")]));
    }
    script.push(say("", &[("task.complete", "{}")]));
    let ended = run(&bench, &ScriptedProvider::new(script));
    assert!(matches!(ended.outcome, Outcome::Completed { turns: 21, .. }), "{ended:?}");
}

#[test]
fn refusals_and_failures_are_no_invalid_calls() {
    let bench = ScriptedBench::default();
    let turns = (0..20).map(|n| say("", &[(if n % 2 == 0 { "deny.a" } else { "fail.a" }, "{}")]));
    let mut turns: Vec<_> = turns.collect();
    turns.push(say("", &[("task.complete", "{}")]));
    let ended = run(&bench, &ScriptedProvider::new(turns));
    assert!(matches!(ended.outcome, Outcome::Completed { turns: 21, .. }), "{ended:?}");
}

#[test]
fn two_hundred_calls_run_and_what_is_beyond_the_limit_is_answered() {
    let check = |count: usize, refused: usize| {
        let bench = ScriptedBench { answer: 20_000, ..ScriptedBench::default() };
        let calls = vec![("fs.read", "{}"); count];
        let provider =
            ScriptedProvider::new(vec![say("", &calls), say("", &[("task.complete", "{}")])]);
        let ended = run(&bench, &provider);
        assert!(matches!(ended.outcome, Outcome::Completed { .. }), "{ended:?}");
        assert_eq!(bench.calls.lock().unwrap()[0].len(), count - refused);
        assert_eq!(bench.refused.lock().unwrap().len(), refused);
        assert_eq!(provider.asked()[1].last_results().len(), count);
        assert!(provider.asked()[1].bytes() < 600_000);
    };
    check(200, 0);
    check(MAX_CALLS, 0);
    check(MAX_CALLS + 44, 44);
}

#[test]
fn calls_of_a_turn_that_was_cut_never_run() {
    for stop in [StopReason::Length, StopReason::MalformedCall] {
        let bench = ScriptedBench::default();
        let calls = [("a".to_owned(), "fs.delete", ""), ("b".to_owned(), "fs.write", "{}")];
        let provider = ScriptedProvider::new(vec![
            Script::Say(pieces("", &calls, Some(stop))),
            say("", &[("task.complete", "{}")]),
        ]);
        run(&bench, &provider);
        assert_eq!(bench.calls.lock().unwrap()[0][0].name, "task.complete");
        assert!(provider.asked()[1].last_results()[0].content.contains("cut off"));
    }
}

#[test]
fn ids_that_stand_twice_are_told_apart() {
    let bench = ScriptedBench::default();
    let calls = ["same", "same", "", ""].map(|id| (id.to_owned(), "fs.read", "{}"));
    let provider = ScriptedProvider::new(vec![
        Script::Say(pieces("", &calls, None)),
        Script::Say(pieces("", &calls, None)),
        say("", &[("task.complete", "{}")]),
    ]);
    run(&bench, &provider);
    let calls = bench.calls.lock().unwrap();
    let mut ids: Vec<_> = calls.iter().flatten().map(|call| call.id.clone()).collect();
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), all), (9, 9));
    let recorded = bench.turns.lock().unwrap();
    assert_eq!(recorded[0].calls[1].id, calls[0][1].id, "what is recorded is what ran");
}

#[test]
fn a_stream_that_makes_no_sense_is_an_error_and_runs_nothing() {
    let fragment = StreamEvent::CallArguments { index: 4, fragment: "{}".to_owned() };
    let started =
        |index| StreamEvent::CallStarted { index, id: "a".to_owned(), name: "fs.write".to_owned() };
    for events in [vec![fragment], vec![started(1), started(1)], vec![started(1)]] {
        let bench = ScriptedBench::default();
        let ended = run(&bench, &ScriptedProvider::new(vec![Script::Say(events)]));
        assert!(matches!(ended.outcome, Outcome::Provider(ProviderError::Malformed(_))));
        assert!(bench.calls.lock().unwrap().is_empty());
    }
}

#[test]
fn huge_arguments_come_through_and_do_not_stay() {
    let bench = ScriptedBench::default();
    let huge = format!("{{\"content\":\"{}\"}}", "x".repeat(4 << 20));
    let provider = ScriptedProvider::calling(&[&[("fs.write", &huge)], &[("task.complete", "{}")]]);
    let ended = run(&bench, &provider);
    assert!(matches!(ended.outcome, Outcome::Completed { .. }), "{ended:?}");
    assert_eq!(bench.calls.lock().unwrap()[0][0].arguments.canonical().len(), huge.len());
    assert!(provider.asked()[1].bytes() < 100_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_a_model_writes_every_call_has_one_answer(
        turns in prop::collection::vec(
            prop::collection::vec(("\\PC{0,6}", "[ -~]{0,12}", "[{}\\[\\]\":a1, ]{0,12}"), 1..6), 1..8),
    ) {
        let script = turns.iter().map(|calls| {
            let calls: Vec<_> =
                calls.iter().map(|(id, name, arguments)| (id.clone(), name.as_str(), arguments.as_str())).collect();
            Script::Say(pieces("", &calls, None))
        });
        let (bench, provider) = (ScriptedBench::default(), ScriptedProvider::new(script.collect()));
        run(&bench, &provider);
        for (request, calls) in provider.asked().iter().skip(1).zip(&turns) {
            prop_assert_eq!(request.last_results().len(), calls.len());
        }
    }
}
