//! Prompt, stream, calls, results, until the task is at its end.

use fluffy_agent::{Agent, AgentError, Caps, Conversation, Failure, MAX_NUDGES, Outcome, Spent};
use fluffy_base::{Event, Usd};
use fluffy_provider::{CallOutcome, Message, ProviderError, Replay, StopReason};

use crate::scripted::{
    Patient, Script, ScriptedBench, ScriptedProvider, Watching, pieces, run, say, say_using,
};

fn completed(outcome: &Outcome) -> (&str, u64) {
    match outcome {
        Outcome::Completed { summary, turns } => (summary, *turns),
        other => panic!("{other:?}"),
    }
}

#[test]
fn calls_are_answered_until_the_bench_says_that_the_task_is_done() {
    let bench = ScriptedBench::default();
    let provider = ScriptedProvider::calling(&[
        &[("fs.read", "{\"path\":\"a\"}"), ("fs.list", "")],
        &[("task.complete", "{\"summary\":\"s\"}")],
    ]);
    let ended = run(&bench, &provider);
    assert_eq!(completed(&ended.outcome), ("all done", 2));
    let calls = bench.calls.lock().unwrap();
    assert_eq!(calls[0].len(), 2);
    assert_eq!(calls[0][1].arguments.canonical(), "{}");
    let asked = provider.asked();
    assert_eq!(asked[0].messages, [Message::User { text: "the task".to_owned() }]);
    let results = asked[1].last_results();
    assert_eq!(results.len(), 2);
    assert!(results.iter().all(|result| result.outcome == CallOutcome::Done));
    assert!(asked[1].system.contains("workflow state planning"));
}

#[test]
fn a_turn_is_recorded_before_its_calls_run() {
    let bench = ScriptedBench { broken: true, ..ScriptedBench::default() };
    let ended = run(&bench, &ScriptedProvider::calling(&[&[("fs.write", "{}")]]));
    let error = AgentError::NotRecorded("the disk is full".to_owned());
    assert_eq!(ended.outcome, Outcome::Bench(error));
    assert!(bench.calls.lock().unwrap().is_empty());
}

#[test]
fn a_turn_without_calls_brings_the_work_to_its_end() {
    let bench = ScriptedBench::default();
    let ended = run(&bench, &ScriptedProvider::new(vec![say("it is done", &[])]));
    assert_eq!(completed(&ended.outcome), ("it is done", 1));
    assert_eq!(*bench.finished.lock().unwrap(), ["it is done"]);
}

#[test]
fn a_model_that_stops_early_is_told_what_is_missing_three_times() {
    let bench = ScriptedBench { missing: Some("no test has run"), ..ScriptedBench::default() };
    let provider = ScriptedProvider::new(vec![]);
    let ended = run(&bench, &provider);
    let Outcome::Failed(failure) = ended.outcome else { panic!("{ended:?}") };
    assert_eq!(failure.why, "no test has run");
    let asked = provider.asked();
    assert_eq!(asked.len(), usize::try_from(MAX_NUDGES).unwrap() + 1);
    let Some(Message::User { text }) = asked[1].messages.last() else { panic!("no nudge") };
    assert!(text.contains("not done: no test has run."), "{text}");
}

#[test]
fn a_call_in_between_makes_up_for_earlier_silence() {
    let bench = ScriptedBench { missing: Some("m"), ..ScriptedBench::default() };
    let mut script = Vec::new();
    for _ in 0..4 {
        script.extend([say("a", &[]), say("b", &[]), say("c", &[]), say("", &[("fs.read", "{}")])]);
    }
    script.push(say("", &[("task.complete", "{}")]));
    let ended = run(&bench, &ScriptedProvider::new(script));
    assert_eq!(completed(&ended.outcome), ("all done", 17));
}

#[test]
fn a_task_that_failed_on_the_bench_has_failed() {
    let failure = Failure { what: "w".to_owned(), why: "y".to_owned(), fix: "f".to_owned() };
    let bench = ScriptedBench { failed: Some(failure.clone()), ..ScriptedBench::default() };
    let provider = ScriptedProvider::new(vec![]);
    assert_eq!(run(&bench, &provider).outcome, Outcome::Failed(failure));
    assert!(provider.asked().is_empty());
}

#[test]
fn an_observer_hears_what_is_said_and_used() {
    let (bench, watching) = (ScriptedBench::default(), Watching::default());
    let provider = ScriptedProvider::new(vec![say_using("two words", &[], 900, 7)]);
    let agent = Agent {
        bench: &bench,
        provider: &provider,
        observer: &watching,
        waiter: &Patient::default(),
        caps: Caps::default(),
        spent: Spent::default(),
    };
    let ended = agent.run(&mut Conversation::new(), Some("t"));
    let text = |text: &str| Event::TextDelta { text: text.to_owned() };
    let used = Event::Usage {
        input_tokens: 900,
        output_tokens: 7,
        cached_tokens: None,
        cost_usd: Some(Usd::default()),
    };
    assert_eq!(*watching.0.lock().unwrap(), [text("two "), text("words"), used]);
    assert_eq!((ended.spent.usage.input, ended.spent.usage.output, ended.spent.turns), (900, 7, 1));
}

#[test]
fn a_transcript_that_ends_early_fails_unless_the_work_is_done() {
    let transcript = "{\"v\":1,\"kind\":\"transcript\"}\n\
                      {\"tool_calls\":[{\"name\":\"fs.read\",\"arguments\":{}}]}\n";
    let bench = ScriptedBench { missing: Some("tests"), ..ScriptedBench::default() };
    let ended = run(&bench, &Replay::parse(transcript).unwrap());
    let Outcome::Failed(failure) = ended.outcome else { panic!("{ended:?}") };
    assert_eq!(failure.what, "the transcript ended before the task was done");
    assert_eq!(failure.why, "tests");
    assert_eq!(bench.finished.lock().unwrap().len(), 1);
    let ended = run(&ScriptedBench::default(), &Replay::parse(transcript).unwrap());
    assert_eq!(completed(&ended.outcome), ("", 1));
}

#[test]
fn a_transcript_that_expected_something_else_stops_the_run() {
    let transcript = "{\"v\":1,\"kind\":\"transcript\"}\n\
        {\"tool_calls\":[{\"name\":\"deny.write\",\"arguments\":{}}]}\n\
        {\"tool_calls\":[{\"name\":\"fs.read\",\"arguments\":\"{bro\"}],\"expect\":[{\"tool\":\"deny.write\",\"decision\":\"denied\"}]}\n\
        {\"text\":\"x\",\"expect\":[{\"tool\":\"fs.read\",\"decision\":\"failed\"}]}\n\
        {\"text\":\"y\",\"expect\":[{\"tool\":\"fs.read\",\"decision\":\"allowed\"}]}\n";
    let bench = ScriptedBench { missing: Some("m"), ..ScriptedBench::default() };
    let ended = run(&bench, &Replay::parse(transcript).unwrap());
    let Outcome::Provider(ProviderError::Expectation(text)) = ended.outcome else {
        panic!("{ended:?}")
    };
    assert!(text.starts_with("turn 4 of the transcript expects `fs.read` allowed"), "{text}");
}

#[test]
fn a_refusal_of_the_model_ends_the_run_and_a_pause_does_not() {
    let stopped = |stop| Script::Say(pieces("hm", &[], Some(stop)));
    let provider =
        ScriptedProvider::new(vec![stopped(StopReason::Pause), stopped(StopReason::Refusal)]);
    let ended = run(&ScriptedBench::default(), &provider);
    assert_eq!(ended.outcome, Outcome::Provider(ProviderError::Filtered("hm".to_owned())));
    assert_eq!(provider.asked().len(), 2);
}

#[test]
fn an_interrupted_run_goes_on_with_what_was_said_and_spent() {
    let bench = ScriptedBench { missing: Some("m"), ..ScriptedBench::default() };
    let provider = ScriptedProvider::calling(&[&[("fs.read", "{}")], &[("task.complete", "{}")]]);
    let mut conversation =
        Conversation::resumed(vec![Message::User { text: "my words".to_owned() }]);
    let agent = Agent {
        bench: &bench,
        provider: &provider,
        observer: &(),
        waiter: &Patient::default(),
        caps: Caps { turns: 10, ..Caps::default() },
        spent: Spent { turns: 8, ..Spent::default() },
    };
    let ended = agent.run(&mut conversation, None);
    assert_eq!(completed(&ended.outcome), ("all done", 10));
    assert_eq!(provider.asked()[0].messages, [Message::User { text: "my words".to_owned() }]);
}
