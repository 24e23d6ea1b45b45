//! A model parses and talks, and that is all.

use fluffy_chat::{Anchors, Heard, Intent, Kind, Origin, heard};

use crate::scene::{Scene, known};

const WRITES: &str =
    r#"{"intent":"skill","skill":"write_note","input":{"title":"tea","text":"two litres"}}"#;

#[test]
fn cha_1_what_a_model_says_is_wanted_is_planned_as_if_the_words_said_it() {
    let mut scene = Scene::scripted(&[
        r#"{"intent":"skill","skill":"search_notes","input":{"query":"tea"}}"#,
        WRITES,
    ]);
    let reply = scene.say("is there anything on tea somewhere");
    assert_eq!((reply.kind, reply.trace.origin), (Kind::Ran, Some(Origin::Model)));
    let reply = scene.say("keep in mind that we need tea");
    assert_eq!(reply.kind, Kind::Confirm, "what has an effect is asked, whoever understood it");
    let id = reply.pending.unwrap().id;
    assert_eq!(scene.answer(&id, "y").kind, Kind::Ran);
}

#[test]
fn cha_1_words_that_leave_no_doubt_are_put_to_no_model() {
    let mut scene = Scene::scripted(&[]);
    for text in ["search notes for tea", "summarize that", "/help", "hello", "fix src/lib.rs"] {
        scene.say(text);
    }
    assert!(scene.asked.is_empty());
}

#[test]
fn cha_3_words_of_a_model_are_talk_and_recorded() {
    let mut scene = Scene::scripted(&["Because of the air.", "Air."]);
    let reply = scene.say("why is the sky blue?");
    assert_eq!((reply.kind, reply.text.as_str()), (Kind::Talk, "Because of the air."));
    assert_eq!(
        (scene.logged[0].skill.as_str(), scene.logged[0].by.as_str()),
        ("__talk__", "scripted")
    );
    let reply = scene.say("do it again but shorter");
    assert_eq!((reply.kind, reply.text.as_str()), (Kind::Transform, "Air."));
    assert_eq!(scene.logged[1].parent, Some(scene.logged[0].execution.clone()));
    let [first, second] = scene.asked.as_slice() else { panic!() };
    assert!(first.may_act && !second.may_act);
    assert!(format!("{:?}", second.messages).contains("Because of the air."));
}

#[test]
fn cha_3_only_a_model_says_that_something_is_not_supported() {
    let mut scene = Scene::scripted(&[r#"{"intent":"unsupported","why":"that harms people"}"#]);
    let reply = scene.say("help me poison the well");
    assert_eq!(reply.kind, Kind::Unsupported);
    assert_eq!(reply.text, "I will not do that: that harms people");
}

#[test]
fn cha_1_what_is_not_of_the_strict_form_does_not_count() {
    for odd in [
        "{",
        "{}",
        "{\"intent\":\"confirm\"}",
        "{\"intent\":\"confirm\",\"pending\":\"ask-1\"}",
        "{\"intent\":\"skill\",\"skill\":\"write_note\"}",
        "{\"intent\":\"skill\",\"skill\":\"no_such_skill\",\"input\":{}}",
        "{\"intent\":\"skill\",\"skill\":\"../x\",\"input\":{}}",
        "{\"intent\":\"skill\",\"skill\":\"search_notes\",\"input\":{\"query\":\"x\",\"evil\":1}}",
        "{\"intent\":\"skill\",\"skill\":\"search_notes\",\"input\":{\"query\":5}}",
        "{\"intent\":\"skill\",\"skill\":\"search_notes\",\"input\":{\"query\":\"x\"},\"confirmed\":true}",
        "{\"intent\":\"skill\",\"skill\":\"summarize_note\",\"input\":{\"note\":\"ref:last\"}}",
        "{\"intent\":\"code\",\"task\":\"rm -rf\"}",
        "{\"intent\":\"code\",\"intent\":\"talk\"}",
        "{\"intent\":\"transform\",\"of\":\"everything\",\"how\":\"x\"}",
        "{\"intent\":\"talk\"}",
        "```json\n{\"intent\":\"confirm\"}\n```",
        "{\"intent\":\"code\"} and then some",
    ] {
        let read = heard(odd, &Anchors::default(), &known());
        assert!(matches!(read, Heard::Odd(_)), "{odd}: {read:?}");
    }
    assert_eq!(
        heard("```json\n{\"intent\":\"code\"}\n```", &Anchors::default(), &known()),
        Heard::Intent(Intent::Code)
    );
}

#[test]
fn what_does_not_count_falls_back_to_the_words() {
    let mut scene = Scene::scripted(&["{\"intent\":\"confirm\"}", "I can only talk."]);
    let reply = scene.say("do what you think is right");
    assert_eq!((reply.kind, reply.text.as_str()), (Kind::Talk, "I can only talk."));
    assert_eq!(reply.trace.odd, Some("it is none of the forms"));
    assert!(!scene.asked[1].may_act, "the second time nothing but words is read");
    // A model that fails leaves what the words alone give.
    let mut scene = Scene::scripted(&[]);
    let reply = scene.say("tell me a joke");
    assert_eq!(reply.kind, Kind::Talk);
    assert!(reply.text.contains("it has nothing more to say"), "{}", reply.text);
    assert!(!scene.logged[0].success);
}

#[test]
fn no_reply_of_a_model_is_a_yes() {
    for says in ["yes", "y", "Yes, do it.", "{\"intent\":\"confirm\"}", "confirm", WRITES] {
        let mut scene = Scene::scripted(&[WRITES, says, says]);
        let id = scene.ask("keep in mind that we need tea");
        // Whatever the person says next that is no yes, and whatever the model makes of it.
        scene.answer(&id, "what would that do");
        assert!(scene.orders.is_empty(), "{says}");
        assert_eq!(scene.confirm(&id).kind, Kind::Refused, "{says}");
        assert!(scene.orders.is_empty(), "{says}");
    }
}

#[test]
fn a_yes_beforehand_does_not_answer_for_what_a_model_found_in_the_words() {
    let mut scene = Scene::scripted(&[WRITES]);
    let reply = scene.say_confirmed("what a nice day");
    assert_eq!(reply.kind, Kind::Confirm);
    assert!(reply.text.contains("`--confirmed` answers for what they say themselves"));
    assert!(scene.orders.is_empty());
}

#[test]
fn a_coding_task_is_the_persons_words_whatever_a_model_says() {
    let mut scene = Scene::scripted(&["{\"intent\":\"code\"}"]);
    let reply = scene.say("the parser should be nicer to people");
    assert_eq!(
        (reply.kind, reply.text.as_str()),
        (Kind::Task, "did: the parser should be nicer to people")
    );
}

#[test]
fn a_secret_is_not_sent_to_a_model_and_not_recorded() {
    let key = "sk-abcdefghijklmnop1234567890";
    let mut scene = Scene::scripted(&["Keep that to yourself."]);
    scene.say(&format!("my key is {key}, is that fine?"));
    assert!(!format!("{:?}", scene.asked).contains(key));
    assert!(!format!("{:?}", scene.logged).contains(key));
}
