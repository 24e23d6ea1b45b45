//! What the words alone say.

use fluffy_chat::{Change, Command, Given, Intent, Reference, parse};
use serde_json::{Value, json};

use crate::scene::{DAYS, intent, known, parsed};

/// The skill and what it is given.
fn skills(text: &str) -> Vec<(String, Value)> {
    match intent(text) {
        Intent::Skills(steps) => steps
            .into_iter()
            .map(|step| {
                let given = |given: Given| match given {
                    Given::Value(value) => value,
                    Given::Of(reference, part) => json!(format!("<{reference} {part:?}>")),
                };
                let input = step.input.into_iter().map(|(name, it)| (name, given(it)));
                (step.skill.to_string(), Value::Object(input.collect()))
            })
            .collect(),
        other => panic!("{text}: {other:?}"),
    }
}

#[track_caller]
fn check(text: &str, skill: &str, input: Value) {
    assert_eq!(skills(text), [(skill.to_owned(), input)], "{text}");
    assert!(parsed(text).sure, "{text}");
}

#[test]
fn cha_1_the_shipped_skills_are_asked_for_in_the_words_of_every_day() {
    let note = |title: &str, text: &str| json!({ "title": title, "text": text });
    check("write a note about tea", "write_note", note("tea", "tea"));
    check("Please write a note about tea: two litres", "write_note", note("tea", "two litres"));
    check("note that the milk is out.", "write_note", note("the milk is out", "the milk is out"));
    check("note to self: buy milk", "write_note", note("buy milk", "buy milk"));
    check(
        "could you take a note called \"Plans\" saying Go home #garden #may",
        "write_note",
        json!({ "title": "Plans", "text": "Go home", "tags": ["garden", "may"] }),
    );
    check("search notes for tea and milk", "search_notes", json!({ "query": "tea and milk" }));
    check("find my notes about tea", "search_notes", json!({ "query": "tea" }));
    check("search for tea", "search_notes", json!({ "query": "tea" }));
    check("What do my notes say about tea?", "search_notes", json!({ "query": "tea" }));
    check("find tea in my notes", "search_notes", json!({ "query": "tea" }));
    check("notes tagged garden", "read_notes_by_tag", json!({ "tag": "garden" }));
    check("show me my notes with the tag #garden", "read_notes_by_tag", json!({ "tag": "garden" }));
    check("summarize tea.md", "summarize_note", json!({ "note": "tea.md" }));
    check("summarise the note Green Tea", "summarize_note", json!({ "note": "green-tea.md" }));
    check("daily note", "create_daily_note", json!({ "date": "2025-11-17" }));
    check(
        "create the daily note for tomorrow",
        "create_daily_note",
        json!({ "date": "2025-11-18" }),
    );
    check(
        "add buy milk to my daily note",
        "create_daily_note",
        json!({ "date": "2025-11-17", "line": "buy milk" }),
    );
    check(
        "get https://api.github.com/repos/rust-lang/rust?per_page=1",
        "http_get_json",
        json!({ "resource": "/repos/rust-lang/rust", "query": { "per_page": "1" } }),
    );
}

#[test]
fn cha_1_a_skill_is_asked_for_by_its_name_exactly() {
    let tea = json!({ "title": "tea", "text": "two litres" });
    check("write_note {\"title\": \"tea\", \"text\": \"two litres\"}", "write_note", tea.clone());
    check("run write_note with title=tea text=\"two litres\"", "write_note", tea.clone());
    check("write_note title=tea text=two litres", "write_note", tea);
    check(
        "run skill.search_notes with query=\"a=b\" limit=3",
        "search_notes",
        json!({ "query": "a=b", "limit": 3 }),
    );
    check(
        "run write_note with title=last_search text=exec:ab12",
        "write_note",
        json!({ "title": "<last_search Title>", "text": "<exec:ab12 Text>" }),
    );
    for odd in ["write_note {\"title\": ", "write_note {\"a\":1,\"a\":2}", "write_note {} {}"] {
        assert!(matches!(intent(odd), Intent::Clarify { .. }), "{odd}");
    }
    let Intent::Clarify { question } = intent("run no_such_skill {}") else { panic!() };
    assert!(question.contains("no trusted skill `no_such_skill`"), "{question}");
}

#[test]
fn a_long_input_is_an_input_all_the_same() {
    let text = "x".repeat(90_000);
    let input = json!({ "title": "long", "text": text });
    check(&format!("write_note {input}"), "write_note", input);
    assert_eq!(intent(&"search notes for tea and ".repeat(2_000)), Intent::Talk);
}

#[test]
fn cha_1_two_things_in_one_message_are_a_chain() {
    let chain = |query: &str| {
        vec![
            ("search_notes".to_owned(), json!({ "query": query })),
            ("summarize_note".to_owned(), json!({ "note": "<the step before Note>" })),
        ]
    };
    assert_eq!(skills("search notes for tea and summarize it"), chain("tea"));
    assert_eq!(skills("search tea and milk, then summarize the result"), chain("tea and milk"));
    let saved = skills("summarize tea.md and save it as a note called Short");
    assert_eq!(saved[1].1, json!({ "title": "Short", "text": "<the step before Text>" }));
}

#[test]
fn a_chain_whose_second_skill_is_not_trusted_is_asked_back_and_not_half_understood() {
    let known: Vec<_> =
        known().into_iter().filter(|it| it.name().as_str() != "summarize_note").collect();
    let parsed = parse("search notes for tea and summarize it", &known, &DAYS.map(str::to_owned));
    let Intent::Clarify { question } = parsed.intent else { panic!("{parsed:?}") };
    assert!(question.contains("no trusted skill `summarize_note`"), "{question}");
}

#[test]
fn cha_2_references_are_understood_without_a_model() {
    let transform = |of: Reference, change| Intent::Transform { of, change };
    for (text, expected) in [
        ("summarize that", transform(Reference::Last, Change::Summarise)),
        ("Summarize it, please", transform(Reference::Last, Change::Summarise)),
        ("sum up the result", transform(Reference::Last, Change::Summarise)),
        ("summarize last_search", transform(Reference::LastOf("search".into()), Change::Summarise)),
        ("summarize exec:ab12", transform(Reference::Run("ab12".into()), Change::Summarise)),
        ("again", transform(Reference::Last, Change::Again)),
        ("do it again", transform(Reference::Last, Change::Again)),
        ("do it again but shorter", transform(Reference::Last, Change::Shorter)),
        ("make it a bit longer", transform(Reference::Last, Change::Longer)),
        ("repeat last_search", transform(Reference::LastOf("search".into()), Change::Again)),
        ("run exec:ab12 again", transform(Reference::Run("ab12".into()), Change::Again)),
        (
            "translate that to German",
            transform(Reference::Last, Change::Other("translate that to German".into())),
        ),
    ] {
        assert_eq!(intent(text), expected, "{text}");
        assert!(parsed(text).sure, "{text}");
    }
}

#[test]
fn cha_1_what_is_done_to_code_is_a_task_and_everything_else_is_talk() {
    for text in [
        "add error handling to parse_config",
        "fix the failing test in src/config.rs",
        "please implement a cache",
        "rename `foo` to `bar`",
        "write tests for the parser",
        "refactor this mess",
        "update README.md and package.json",
        "make Config::load() return a Result",
    ] {
        assert_eq!(intent(text), Intent::Code, "{text}");
    }
    for text in [
        "how do I fix a failing test?",
        "make me a sandwich",
        "tell me a joke",
        "why is the sky blue?",
        "fix",
        "the test is green",
        "/etc/hosts looks odd",
        "what does last mean",
    ] {
        assert_eq!(intent(text), Intent::Talk, "{text}");
        assert!(!parsed(text).sure, "{text}");
    }
    assert!(parsed("hello!").sure);
}

#[test]
fn cha_3_the_words_alone_never_say_that_something_is_unsupported() {
    for text in ["build a bomb", "delete everything", "rm -rf /", "drop all tables", "hack my bank"]
    {
        assert!(!matches!(intent(text), Intent::Unsupported { .. }), "{text}");
    }
}

#[test]
fn cha_4_commands_are_about_the_conversation() {
    assert_eq!(intent("/help"), Intent::Meta(Command::Help));
    assert_eq!(intent("/verbose on"), Intent::Meta(Command::Verbose(Some(true))));
    assert_eq!(intent("/verbose"), Intent::Meta(Command::Verbose(None)));
    assert_eq!(intent("/nonsense x"), Intent::Meta(Command::Other("nonsense".into())));
    assert!(matches!(intent(" \u{200b}"), Intent::Clarify { .. }));
}
