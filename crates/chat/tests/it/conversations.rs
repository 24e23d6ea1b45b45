//! The scenarios of the decisions log, by the words alone.

use fluffy_chat::{Kind, MAX_ANCHORS, Slot};
use serde_json::{Value, json};

use crate::scene::Scene;

/// What the last order gives its only step.
fn input(scene: &Scene) -> (String, Value) {
    let [step] = scene.orders.last().unwrap().plan.steps.as_slice() else { panic!() };
    let value = |slot: &Slot| match slot {
        Slot::Value(value) => value.clone(),
        Slot::Before(way) => json!({ "before": way }),
    };
    let input = step.input.iter().map(|(name, slot)| (name.clone(), value(slot)));
    (step.skill.to_string(), Value::Object(input.collect()))
}

#[test]
fn cha_2_summarize_that_is_the_note_that_was_found() {
    let mut scene = Scene::new();
    let found = scene.say("search notes for tea");
    assert_eq!(found.kind, Kind::Ran);
    assert!(found.text.contains("**Tea** (`tea.md`)"), "{}", found.text);
    let summary = scene.say("summarize that");
    assert_eq!(input(&scene), ("summarize_note".to_owned(), json!({ "note": "tea.md" })));
    assert_eq!(summary.text, "**Tea**: It is about tea.");
    assert_eq!(summary.trace.resolved[0].0, "last");
}

#[test]
fn cha_2_again_but_shorter_is_the_same_with_fewer_sentences() {
    let mut scene = Scene::new();
    scene.say("summarize tea.md");
    scene.say("do it again but shorter");
    let expected = json!({ "note": "tea.md", "sentences": 1 });
    assert_eq!(input(&scene), ("summarize_note".to_owned(), expected));
    scene.say("longer");
    assert_eq!(input(&scene).1["sentences"], 2);
    scene.say("again");
    assert_eq!(input(&scene).1["sentences"], 2);
}

#[test]
fn cha_2_last_search_and_a_run_by_its_id() {
    let mut scene = Scene::new();
    scene.say("search notes for tea");
    scene.say("notes tagged garden");
    scene.say("summarize last_search");
    assert_eq!(input(&scene).1, json!({ "note": "tea.md" }));
    scene.say("repeat exec:ab02");
    assert_eq!(input(&scene), ("read_notes_by_tag".to_owned(), json!({ "tag": "garden" })));
    scene.say("repeat exec:run-ab01");
    assert_eq!(input(&scene).1, json!({ "query": "tea" }));
}

#[test]
fn cha_2_what_is_ambiguous_is_asked_back_with_all_that_could_be_meant() {
    let mut scene = Scene::new();
    scene.say("search notes for tea");
    scene.say("summarize tea.md");
    let before = scene.orders.len();
    // Both skills have a note in their names.
    let asked = scene.say("repeat last_note");
    assert_eq!(asked.kind, Kind::Question);
    for part in
        ["could be any of these", "search_notes", "summarize_note", "exec:ab01", "exec:ab02"]
    {
        assert!(asked.text.contains(part), "`{part}` in {}", asked.text);
    }
    let asked = scene.say("repeat exec:ab");
    assert_eq!(asked.kind, Kind::Question, "{}", asked.text);
    assert_eq!(scene.orders.len(), before, "nothing is guessed");
    assert_eq!(scene.say("repeat exec:ab01").kind, Kind::Ran);
}

#[test]
fn cha_2_what_is_not_there_is_said_to_be_not_there() {
    let mut scene = Scene::new();
    for text in ["summarize that", "again", "repeat last_search", "repeat exec:ab12", "shorter"] {
        let reply = scene.say(text);
        assert_eq!(reply.kind, Kind::Question, "{text}");
        assert!(reply.text.contains("nothing of that kind was done"), "{text}: {}", reply.text);
    }
    // Another conversation knows nothing of this one: nothing is kept.
    scene.say("search notes for tea");
    assert_eq!(Scene::new().say("summarize that").kind, Kind::Question);
    scene.say("/forget");
    assert_eq!(scene.say("summarize that").kind, Kind::Question);
}

#[test]
fn cha_2_ten_anchors_slide() {
    let mut scene = Scene::new();
    scene.say("notes tagged garden");
    for _ in 0..MAX_ANCHORS {
        scene.say("search notes for tea");
    }
    let reply = scene.say("/anchors");
    assert_eq!(reply.trace.anchors.len(), MAX_ANCHORS);
    assert_eq!(scene.say("repeat last_tag").kind, Kind::Question);
}

#[test]
fn cha_1_a_chain_names_what_the_step_before_gives() {
    let mut scene = Scene::new();
    let reply = scene.say("search notes for tea and summarize it");
    assert_eq!(reply.kind, Kind::Ran);
    let chain = serde_json::to_value(scene.orders[0].plan.chain()).unwrap();
    assert_eq!(chain["steps"][1]["input"], json!({ "note": "$prev.results.0.note" }));
    assert_eq!(reply.trace.anchors[0].parent.as_deref(), Some(&*reply.trace.anchors[1].execution));
}

#[test]
fn a_text_that_looks_like_a_name_of_a_value_stays_a_text() {
    let mut scene = Scene::new();
    scene.say("search notes for $prev.text");
    let chain = serde_json::to_value(scene.orders[0].plan.chain()).unwrap();
    assert_eq!(chain["steps"][0]["input"], json!({ "query": "$$prev.text" }));
}

#[test]
fn cha_3_talk_is_the_default_and_recorded_without_effect_also_without_a_model() {
    let mut scene = Scene::new();
    let reply = scene.say("tell me a joke");
    assert_eq!(reply.kind, Kind::Talk);
    assert!(reply.text.contains("without a model"), "{}", reply.text);
    let [record] = scene.logged.as_slice() else { panic!() };
    assert_eq!((record.skill.as_str(), record.side_effect.as_str()), ("__talk__", "NONE"));
    assert_eq!((record.by.as_str(), record.input.as_str()), ("template", "tell me a joke"));
    assert!(scene.orders.is_empty());
}

#[test]
fn cha_1_a_coding_task_is_what_the_person_said_and_can_be_referred_to() {
    let mut scene = Scene::new();
    let reply = scene.say("please fix the failing test in src/config.rs");
    assert_eq!(reply.kind, Kind::Task);
    assert_eq!(reply.text, "did: please fix the failing test in src/config.rs");
    assert_eq!(reply.trace.anchors[0].skill, "__code__");
    assert_eq!(scene.talk.session(), Some("session-0"));
}

#[test]
fn cha_4_everything_is_shown_when_asked_for() {
    let mut scene = Scene::new();
    assert!(!scene.say("hello").verbose);
    assert!(scene.say("/verbose").verbose);
    let reply = scene.say("search notes for tea");
    assert!(reply.verbose);
    assert_eq!(reply.trace.intent, "skill");
    assert_eq!((reply.trace.records.len(), reply.trace.anchors.len()), (1, 1));
    assert!(reply.trace.plan.is_some());
    assert!(!scene.say("/verbose off").verbose);
}

#[test]
fn wrong_input_is_told_in_the_words_of_the_skill() {
    let mut scene = Scene::new();
    for text in ["write_note", "write_note {\"titel\": \"x\"}", "run search_notes with limit=many"]
    {
        let reply = scene.say(text);
        assert_eq!(reply.kind, Kind::Question, "{text}");
        assert!(reply.text.contains("does not take that"), "{text}: {}", reply.text);
    }
    assert!(scene.orders.is_empty());
}
