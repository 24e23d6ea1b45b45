//! What once worked against systems of this kind.

use fluffy_chat::{Kind, Next, Said, Setting};

use crate::scene::{NOW, Scene, known};

#[test]
fn lesson_l33_words_and_runs_are_recorded_before_there_is_a_reply() {
    let mut scene = Scene::new();
    let (known, odd) = (known(), "[/bold]\u{1b}[31m{not json\u{0}");
    let setting = Setting { known: &known, now_ms: NOW, model: None, no_model: None };
    let next = scene.talk.say(Said { text: odd, at_terminal: true, ..Said::default() }, setting);
    let Next::Log(record) = next else { panic!("{next:?}") };
    assert_eq!((record.skill.as_str(), record.input.as_str()), ("__talk__", odd));
    // What is confirmed leaves as an order with its consent; the reply needs what was recorded of it.
    let id = scene.ask("write a note about [/bold]");
    let next = scene.talk.confirm(&id, true, setting);
    let Next::Run(order) = next else { panic!("{next:?}") };
    assert_eq!(order.consent.unwrap().digest, order.plan.digest());
}

#[test]
fn lesson_l34_a_record_that_is_not_of_this_conversation_cannot_be_referred_to_or_replayed() {
    let mut scene = Scene::new();
    // Whatever a log says: only what was done here is known here.
    for text in ["run exec:ab01 again", "repeat exec:run-ab01", "summarize exec:ab01"] {
        assert_eq!(scene.say(text).kind, Kind::Question, "{text}");
    }
    assert!(scene.orders.is_empty());
}

#[test]
fn lesson_l34_doing_again_what_was_confirmed_is_asked_again() {
    let mut scene = Scene::new();
    let id = scene.ask("write a note about tea");
    scene.confirm(&id);
    assert_eq!(scene.orders.len(), 1);
    for text in ["again", "do it again", "repeat last_write", "run exec:ab01 again"] {
        assert_eq!(scene.say(text).kind, Kind::Confirm, "{text}");
    }
    assert_eq!(scene.orders.len(), 1);
}
