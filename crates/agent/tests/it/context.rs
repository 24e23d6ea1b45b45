//! Long conversations: within the window, with a summary, the person's words and the project's notes kept.

use std::sync::atomic::Ordering;

use fluffy_agent::{Agent, Caps, Conversation, Ended, Outcome, Rules, Spent};
use fluffy_provider::{Message, ModelRequest};

use crate::scripted::{Patient, ScriptedBench, ScriptedProvider, say};

const NOTE: &str = "Use four spaces here.";

fn work(provider: &ScriptedProvider, answer: usize) -> Ended {
    let rules = vec![Rules { path: "AGENTS.md".to_owned(), text: NOTE.to_owned() }];
    let tools = vec![crate::first_request::tool("fs.read", "{\"type\":\"object\"}")];
    let bench = ScriptedBench { answer, rules, tools, ..ScriptedBench::default() };
    let agent = Agent {
        bench: &bench,
        provider,
        observer: &(),
        waiter: &Patient::default(),
        caps: Caps::default(),
        spent: Spent::default(),
    };
    let mut conversation = Conversation::new();
    conversation.pin("keep this".to_owned());
    agent.run(&mut conversation, Some("my own words"))
}

fn reading(turns: usize) -> Vec<crate::scripted::Script> {
    let mut script: Vec<_> = (0..turns)
        .map(|n| say("I read.", &[("fs.read", &format!("{{\"path\":\"src/{n}.rs\"}}"))]))
        .collect();
    script.push(say("", &[("task.complete", "{}")]));
    script
}

fn text(request: &ModelRequest) -> String {
    let text = |message: &Message| match message {
        Message::User { text } => format!("{text}\n"),
        Message::Assistant { .. } | Message::Results { .. } => String::new(),
    };
    request.messages.iter().map(text).collect()
}

#[test]
fn a_long_session_stays_within_the_window_and_keeps_what_must_be_kept() {
    let provider = ScriptedProvider { window: 16_000, ..ScriptedProvider::new(reading(40)) };
    let ended = work(&provider, 3_000);
    assert!(matches!(ended.outcome, Outcome::Completed { turns: 41, .. }), "{ended:?}");
    for request in provider.asked() {
        assert!(request.bytes() < 3 * 12_000, "{}", request.bytes());
        let text = text(&request);
        assert!(text.starts_with("Pinned by the person:\nkeep this\nmy own words\n"), "{text}");
        assert!(request.system.contains(NOTE));
    }
    let last = text(provider.asked().last().unwrap());
    assert!(last.contains("src/1.rs: fs.read done"), "{last}");
    assert!(last.contains("States:\n- planning"), "{last}");
}

#[test]
fn a_model_that_can_be_asked_summarises_what_is_left_out() {
    let provider = ScriptedProvider {
        window: 16_000,
        summary: Some("I decided to use a map."),
        ..ScriptedProvider::new(reading(40))
    };
    let ended = work(&provider, 3_000);
    assert!(matches!(ended.outcome, Outcome::Completed { .. }), "{ended:?}");
    let summaries = provider.summaries.load(Ordering::SeqCst);
    assert!(summaries > 0 && summaries < 20, "{summaries}");
    let last = text(provider.asked().last().unwrap());
    assert!(last.contains("I decided to use a map."), "{last}");
    assert!(last.contains("fs.read done"), "the facts stand beside it: {last}");
    assert_eq!(ended.spent.turns, 41, "a summary is no turn of the task");
}

#[test]
fn a_long_result_shows_both_its_ends() {
    let provider = ScriptedProvider::new(reading(1));
    work(&provider, 100_000);
    let asked = provider.asked();
    let content = &asked[1].last_results()[0].content;
    assert!(content.len() <= 12_000, "{}", content.len());
    assert!(content.starts_with("xx") && content.ends_with("xx"));
    assert!(content.contains("bytes left out"));
}

#[test]
fn a_window_that_is_too_small_for_anything_does_no_harm() {
    for window in [0, 1, 100, 4_000] {
        let provider = ScriptedProvider { window, ..ScriptedProvider::new(reading(5)) };
        let ended = work(&provider, 5_000);
        assert!(matches!(ended.outcome, Outcome::Completed { .. }), "{window}: {ended:?}");
    }
}
