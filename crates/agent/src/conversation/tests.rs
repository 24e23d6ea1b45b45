//! What the model is shown: pairs stay together, the person's words stay, and it fits.

use fluffy_provider::{Place, ReasoningBlock};
use proptest::prelude::*;

use super::*;

fn call(id: &str, arguments: &str) -> Call {
    let (id, name) = (id.to_owned(), "fs.read".to_owned());
    Call { id, name, arguments: arguments.to_owned() }
}

fn turn(text: &str, calls: Vec<Call>) -> Turn {
    Turn {
        text: text.to_owned(),
        thoughts: String::new(),
        calls,
        reasoning: vec![],
        usage: None,
        stop: StopReason::Calls,
    }
}

fn result(id: &str, content: &str) -> CallResult {
    CallResult {
        call_id: id.to_owned(),
        tool: "fs.read".to_owned(),
        content: content.to_owned(),
        outcome: CallOutcome::Done,
    }
}

/// Every assistant's calls are answered by the very next message, one by one.
fn assert_paired(messages: &[Message]) {
    let mut waiting: Vec<String> = Vec::new();
    for message in messages {
        match message {
            Message::Assistant { calls, .. } => {
                assert!(waiting.is_empty());
                waiting = calls.iter().map(|call| call.id.clone()).collect();
            }
            Message::Results { results } => {
                let ids: Vec<_> = results.iter().map(|result| result.call_id.clone()).collect();
                assert_eq!(ids, waiting);
                waiting.clear();
            }
            Message::User { .. } => assert!(waiting.is_empty()),
        }
    }
    assert!(waiting.is_empty());
}

fn users(messages: &[Message]) -> Vec<&str> {
    fn text(message: &Message) -> Option<&str> {
        match message {
            Message::User { text } => Some(text),
            Message::Assistant { .. } | Message::Results { .. } => None,
        }
    }
    messages.iter().filter_map(text).collect()
}

#[test]
fn what_is_old_gives_way_to_a_summary_and_the_persons_words_stay() {
    let mut conversation = Conversation::new();
    conversation.pin("never touch vendor/".to_owned());
    conversation.say("the task, in my words".to_owned());
    for number in 0..20 {
        let id = format!("c{number}");
        let arguments = format!("{{\"path\":\"src/{number}.rs\"}}");
        let state = if number < 10 { "test_writing" } else { "code_writing" };
        let results = vec![result(&id, &"x".repeat(600))];
        conversation.add(state, turn("reading", vec![call(&id, &arguments)]), results);
        if number == 3 {
            conversation.say("and mind the tabs".to_owned());
        }
    }
    let left_out = conversation.fit(6_000, Estimate::new());
    assert!(!left_out.is_empty());
    let messages = conversation.messages("");
    assert_paired(&messages);
    let users = users(&messages);
    assert_eq!(users[0], "Pinned by the person:\nnever touch vendor/");
    assert_eq!(users[1], "the task, in my words");
    assert_eq!(users[2], "and mind the tabs");
    assert!(users[3].contains("src/0.rs: fs.read done") && users[3].contains("test_writing"));
    assert_eq!(users.len(), 4);
    assert!(conversation.fit(6_000, Estimate::new()).is_empty(), "once is enough for a while");
}

#[test]
fn calls_without_an_answer_get_one_and_answers_without_a_call_go() {
    let mut conversation = Conversation::new();
    conversation.say("t".to_owned());
    let calls = vec![call("a", "{}"), call("b", "{}")];
    conversation.add(
        "",
        turn("", calls),
        vec![result("z", ""), result("b", "B"), result("b", "C")],
    );
    let messages = conversation.messages("");
    assert_paired(&messages);
    let Some(Message::Results { results }) = messages.last() else { panic!("no results") };
    assert_eq!(results[0].outcome, CallOutcome::Failed);
    assert_eq!((results[1].content.as_str(), results.len()), ("B", 2));
}

#[test]
fn a_resumed_conversation_has_every_call_answered() {
    let said = |calls| Message::Assistant { text: String::new(), calls, reasoning: vec![] };
    let conversation = Conversation::resumed(vec![
        Message::Results { results: vec![result("stray", "")] },
        Message::User { text: "t".to_owned() },
        said(vec![call("a", "{}")]),
        Message::Results { results: vec![result("a", "A")] },
        said(vec![call("b", "{}")]),
    ]);
    let messages = conversation.messages("");
    assert_paired(&messages);
    assert_eq!(messages.len(), 5);
    let mut again = [call("a", "{}")];
    let mut conversation = conversation;
    conversation.name_calls(&mut again);
    assert_ne!(again[0].id, "a", "an id of an earlier turn is taken");
}

#[test]
fn ids_that_are_missing_doubled_or_absurd_are_replaced() {
    let mut conversation = Conversation::new();
    let long = "x".repeat(201);
    let mut calls = ["a", "a", "", "call_x1", &long, "b\n"].map(|id| call(id, "{}"));
    conversation.name_calls(&mut calls);
    let ids: BTreeSet<_> = calls.iter().map(|call| call.id.clone()).collect();
    assert_eq!(ids.len(), 6);
    assert_eq!(calls[0].id, "a");
    assert!(ids.iter().all(|id| !id.is_empty() && id.len() < 20 && !id.contains('\n')), "{ids:?}");
}

#[test]
fn a_name_that_no_tool_can_have_is_not_said_back() {
    let mut conversation = Conversation::new();
    let mut odd = call("a", "{}");
    odd.name = "rm -rf\n".to_owned();
    conversation.add("", turn("", vec![odd]), vec![]);
    let messages = conversation.messages("");
    assert!(matches!(&messages[0], Message::Assistant { calls, .. } if calls[0].name == "unknown"));
    assert!(matches!(&messages[1], Message::Results { results } if results[0].tool == "unknown"));
}

#[test]
fn a_single_exchange_that_is_too_large_is_squeezed() {
    let mut conversation = Conversation::new();
    conversation.say("t".to_owned());
    let mut huge = turn(&"said é".repeat(20_000), vec![call("a", &"{".repeat(500_000))]);
    let place = Place { text: 100_000, calls: 0 };
    huge.reasoning =
        vec![ReasoningBlock { origin: "x".to_owned(), data: "sealed".to_owned(), place }];
    conversation.add("", huge, vec![result("a", &"y".repeat(500_000))]);
    conversation.fit(2_000, Estimate::new());
    assert!(Estimate::new().tokens(conversation.bytes()) <= 2_000);
    let messages = conversation.messages("");
    assert_paired(&messages);
    let Some(Message::Assistant { text, reasoning, .. }) = messages.get(1) else { panic!("gone") };
    assert_eq!(reasoning[0].data, "sealed");
    assert!(text.is_char_boundary(reasoning[0].place.text));
}

#[derive(Debug, Clone)]
enum Step {
    Say(String),
    Prompt,
    Turn { text: usize, results: Vec<usize> },
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => "[a-z]{1,40}".prop_map(Step::Say),
        1 => Just(Step::Prompt),
        6 => (0..3_000_usize, prop::collection::vec(0..6_000_usize, 0..5))
            .prop_map(|(text, results)| Step::Turn { text, results }),
    ]
}

fn play(conversation: &mut Conversation, number: usize, step: &Step) {
    match step {
        Step::Say(words) => conversation.say(words.clone()),
        Step::Prompt => conversation.prompt("go on".to_owned()),
        Step::Turn { text, results } => {
            let ids: Vec<_> = (0..results.len()).map(|n| format!("{number}-{n}")).collect();
            let calls = ids.iter().map(|id| call(id, "{\"path\":\"a\"}")).collect();
            let answers = ids.iter().zip(results).map(|(id, size)| result(id, &"r".repeat(*size)));
            conversation.add("s", turn(&"t".repeat(*text), calls), answers.collect());
        }
    }
}

proptest! {
    #[test]
    fn whatever_is_said_pairs_stay_words_stay_and_it_fits(
        steps in prop::collection::vec(any_step(), 1..60),
        room in 4_000..30_000_u64,
    ) {
        let mut conversation = Conversation::new();
        conversation.pin("a pin".to_owned());
        conversation.say("the first words".to_owned());
        let mut words = vec!["the first words".to_owned()];
        for (number, step) in steps.iter().enumerate() {
            play(&mut conversation, number, step);
            if let Step::Say(said) = step {
                words.push(said.clone());
            }
            conversation.fit(room, Estimate::new());
            let messages = conversation.messages("");
            assert_paired(&messages);
            let users = users(&messages);
            let counted: usize = messages.iter().map(message_bytes).sum();
            prop_assert_eq!(conversation.bytes(), counted);
            prop_assert_eq!(users[0], "Pinned by the person:\na pin");
            prop_assert_eq!(users[1], "the first words");
            let mut left = users.iter();
            for words in &words {
                prop_assert!(left.any(|user| user == words), "{words} is gone or out of order");
            }
            prop_assert!(Estimate::new().tokens(conversation.bytes()) <= room);
        }
    }
}
