//! Whoever cancels is heard at once.

use std::sync::atomic::Ordering;

use fluffy_agent::Outcome;
use fluffy_provider::{ProviderError, StreamEvent};

use crate::scripted::{Script, ScriptedBench, ScriptedProvider, run, say};

#[test]
fn a_cancelled_task_never_begins() {
    let bench = ScriptedBench { cancel_after: Some(0), ..ScriptedBench::default() };
    let provider = ScriptedProvider::new(vec![]);
    assert_eq!(run(&bench, &provider).outcome, Outcome::Cancelled);
    assert!(provider.asked().is_empty());
}

#[test]
fn a_stream_is_broken_off_in_its_middle() {
    let bench = ScriptedBench { cancel_after: Some(5), ..ScriptedBench::default() };
    let provider = ScriptedProvider::new(vec![say(&"word ".repeat(1_000), &[("fs.write", "{}")])]);
    let ended = run(&bench, &provider);
    assert_eq!(ended.outcome, Outcome::Cancelled);
    assert!(provider.pieces.load(Ordering::SeqCst) < 8);
    assert!(bench.calls.lock().unwrap().is_empty());
    assert!(ended.spent.usage.total() > 0, "what was said is paid for");
}

#[test]
fn a_provider_that_only_waits_is_broken_off_too() {
    let bench = ScriptedBench { cancel_after: Some(5), ..ScriptedBench::default() };
    let waiting = vec![StreamEvent::Waiting; 1_000];
    let error = ProviderError::TimedOut { waited_ms: 1 };
    let provider = ScriptedProvider::new(vec![Script::Fail(waiting, error)]);
    let ended = run(&bench, &provider);
    assert_eq!(ended.outcome, Outcome::Cancelled);
    assert!(provider.pieces.load(Ordering::SeqCst) < 8);
    assert_eq!(ended.spent.usage.total(), 0);
}

#[test]
fn no_call_runs_once_the_task_is_cancelled() {
    // Asked before the turn, at each of its three pieces, and then before its calls.
    let bench = ScriptedBench { cancel_after: Some(4), ..ScriptedBench::default() };
    let provider = ScriptedProvider::calling(&[&[("fs.write", "{}")]]);
    let ended = run(&bench, &provider);
    assert_eq!(ended.outcome, Outcome::Cancelled);
    assert_eq!(bench.turns.lock().unwrap().len(), 1, "what was said is recorded");
    assert!(bench.calls.lock().unwrap().is_empty());
}

#[test]
fn whenever_it_is_cancelled_it_ends_as_cancelled() {
    for after in 0..40 {
        let bench = ScriptedBench {
            cancel_after: Some(after),
            missing: Some("m"),
            ..ScriptedBench::default()
        };
        let turns = || (0..60).map(|_| say("a b", &[("fs.read", "{}")])).collect();
        assert_eq!(run(&bench, &ScriptedProvider::new(turns())).outcome, Outcome::Cancelled);
    }
}

#[test]
fn what_was_done_before_it_was_cancelled_is_done() {
    // Cancelled while task.complete runs: after the look before it.
    let bench = ScriptedBench { cancel_after: Some(5), ..ScriptedBench::default() };
    let ended = run(&bench, &ScriptedProvider::calling(&[&[("task.complete", "{}")]]));
    assert!(matches!(ended.outcome, Outcome::Completed { .. }), "{ended:?}");
}
