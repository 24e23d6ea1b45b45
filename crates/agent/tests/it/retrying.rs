//! A provider that fails for the moment is asked again; what it half said does not count.

use fluffy_agent::{Agent, Caps, Conversation, Ended, Outcome, Spent};
use fluffy_base::Event;
use fluffy_provider::{ProviderError, StreamEvent, Usage};

use crate::scripted::{Patient, Script, ScriptedBench, ScriptedProvider, Watching, say};

fn run(bench: &ScriptedBench, provider: &ScriptedProvider) -> (Ended, Vec<u64>) {
    let (ended, pauses, _) = watched(bench, provider);
    (ended, pauses)
}

/// The same, with what whoever watches is told.
fn watched(bench: &ScriptedBench, provider: &ScriptedProvider) -> (Ended, Vec<u64>, Vec<Event>) {
    let (waiter, watching) = (Patient::default(), Watching::default());
    let agent = Agent {
        bench,
        provider,
        observer: &watching,
        waiter: &waiter,
        caps: Caps::default(),
        spent: Spent::default(),
    };
    let ended = agent.run(&mut Conversation::new(), Some("t"));
    (ended, waiter.0.into_inner().unwrap(), watching.0.into_inner().unwrap())
}

fn busy(retry_after_ms: Option<u64>) -> ProviderError {
    ProviderError::Overloaded { message: "busy".to_owned(), retry_after_ms }
}

#[test]
fn a_busy_provider_is_asked_again_with_growing_pauses() {
    let fail = |after| Script::Fail(vec![StreamEvent::Waiting], busy(after));
    let script = vec![fail(None), fail(Some(3_000)), fail(None), say("ok", &[])];
    let (ended, pauses) = run(&ScriptedBench::default(), &ScriptedProvider::new(script));
    assert!(matches!(ended.outcome, Outcome::Completed { turns: 1, .. }), "{ended:?}");
    assert_eq!(pauses, [500, 3_000, 2_000]);
}

#[test]
fn whoever_watches_is_told_why_it_takes_so_long() {
    let script = vec![Script::Fail(vec![], busy(Some(3_000))), say("ok", &[])];
    let (bench, provider) = (ScriptedBench::default(), ScriptedProvider::new(script));
    let (_, _, heard) = watched(&bench, &provider);
    let told = Event::ProviderRetry {
        what: "the provider is overloaded: busy".to_owned(),
        wait_ms: 3_000,
        attempt: 1,
        discarded: false,
    };
    assert!(heard.contains(&told));
}

#[test]
fn patience_ends() {
    let script = (0..9).map(|_| Script::Fail(vec![], busy(None))).collect();
    let provider = ScriptedProvider::new(script);
    let (ended, pauses) = run(&ScriptedBench::default(), &provider);
    assert_eq!(ended.outcome, Outcome::Provider(busy(None)));
    assert_eq!(pauses, [500, 1_000, 2_000, 4_000]);
    assert_eq!((provider.asked().len(), ended.spent.usage.total()), (5, 0));
}

#[test]
fn what_was_half_said_is_asked_for_again_paid_for_and_forgotten() {
    let half = vec![
        StreamEvent::Text("half ".to_owned()),
        StreamEvent::CallStarted { index: 0, id: String::new(), name: "fs.write".to_owned() },
    ];
    let script = vec![Script::Fail(half, busy(None)), say("ok", &[])];
    let (bench, provider) = (ScriptedBench::default(), ScriptedProvider::new(script));
    let (ended, _, told) = watched(&bench, &provider);
    assert!(matches!(ended.outcome, Outcome::Completed { turns: 1, .. }), "{ended:?}");
    let asked = provider.asked();
    assert_eq!(asked[0], asked[1], "nothing of the half turn is in what is asked");
    assert!(told.iter().any(|it| matches!(it, Event::ProviderRetry { discarded: true, .. })));
    let (ended_at_once, _) =
        run(&ScriptedBench::default(), &ScriptedProvider::new(vec![say("ok", &[])]));
    assert!(ended.spent.usage.total() > ended_at_once.spent.usage.total());
}

#[test]
fn a_failure_after_a_mere_count_is_tried_again_and_paid_for() {
    let usage = Usage { input: 700, ..Usage::default() };
    let counted = vec![StreamEvent::Usage(usage)];
    let script = vec![Script::Fail(counted, busy(None)), say("ok", &[])];
    let (ended, pauses) = run(&ScriptedBench::default(), &ScriptedProvider::new(script));
    assert!(matches!(ended.outcome, Outcome::Completed { .. }), "{ended:?}");
    assert_eq!(pauses, [500]);
    assert!(ended.spent.usage.input > 700);
}

#[test]
fn what_will_not_pass_by_itself_is_reported_at_once() {
    let error = ProviderError::BadKey("no".to_owned());
    let provider = ScriptedProvider::new(vec![Script::Fail(vec![], error.clone())]);
    let (ended, pauses) = run(&ScriptedBench::default(), &provider);
    assert_eq!((ended.outcome, pauses.len()), (Outcome::Provider(error), 0));
}

#[test]
fn a_conversation_that_is_too_long_for_the_provider_is_shortened_a_few_times() {
    let error = || ProviderError::ContextTooLong("210000 > 200000".to_owned());
    let fail = || Script::Fail(vec![], error());
    let provider = ScriptedProvider::new(vec![fail(), fail(), say("ok", &[])]);
    let (ended, pauses) = run(&ScriptedBench::default(), &provider);
    assert!(matches!(ended.outcome, Outcome::Completed { .. }), "{ended:?}");
    assert!(pauses.is_empty());
    let provider = ScriptedProvider::new((0..9).map(|_| fail()).collect());
    let (ended, _) = run(&ScriptedBench::default(), &provider);
    assert_eq!(ended.outcome, Outcome::Provider(error()));
    assert_eq!(provider.asked().len(), 4);
}
