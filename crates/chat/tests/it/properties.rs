//! Any text, any number of times.

use fluffy_chat::{Kind, Reference, heard, is_yes, resolve};
use proptest::prelude::*;

use crate::scene::{Scene, intent, known, parsed};

/// Texts that look like what people type.
fn sayings() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("search"),
        Just("notes"),
        Just("for"),
        Just("and"),
        Just("summarize"),
        Just("that"),
        Just("it"),
        Just("write_note"),
        Just("write"),
        Just("a"),
        Just("note"),
        Just("about"),
        Just("last_search"),
        Just("exec:ab"),
        Just("again"),
        Just("but"),
        Just("shorter"),
        Just("title="),
        Just("{\"title\":\"x\"}"),
        Just("daily"),
        Just("tagged"),
        Just("#x"),
        Just("yes"),
        Just("fix"),
        Just("é\u{301}"),
        Just("="),
        Just("\""),
        Just("get"),
        Just("https://api.github.com/a"),
        Just("save"),
        Just("as"),
        Just("then"),
        Just("run"),
        Just("\u{202e}"),
    ];
    prop::collection::vec(word, 0..9).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn cha_1_any_text_is_parsed_the_same_every_time(text in prop_oneof![any::<String>(), sayings()]) {
        prop_assert_eq!(parsed(&text), parsed(&text));
    }

    #[test]
    fn cha_2_any_intent_is_bound_or_asked_back(
        texts in prop::collection::vec(prop_oneof![any::<String>(), sayings()], 1..6)
    ) {
        let mut scene = Scene::new();
        for text in &texts {
            let reply = scene.say(text);
            let anchors = &reply.trace.anchors;
            prop_assert!(anchors.len() <= fluffy_chat::MAX_ANCHORS);
            // Nothing with an effect was done without a person.
            prop_assert!(scene.orders.iter().all(|order| !order.plan.asks()));
            prop_assert_eq!(reply.pending.is_some(), reply.kind == Kind::Confirm);
        }
    }

    #[test]
    fn cha_1_the_same_conversation_gives_the_same_plans(
        texts in prop::collection::vec(sayings(), 1..6)
    ) {
        let told = |mut scene: Scene| {
            let replies: Vec<_> = texts.iter().map(|text| scene.say(text)).collect();
            (replies, scene.orders)
        };
        let (one, other) = (told(Scene::new()), told(Scene::new()));
        for (a, b) in one.0.iter().zip(&other.0) {
            let digest = |reply: &fluffy_chat::Reply| reply.trace.plan.as_ref().map(|it| it.digest());
            prop_assert_eq!(digest(a), digest(b));
        }
        prop_assert_eq!(one, other);
    }

    #[test]
    fn whatever_a_model_says_nothing_with_an_effect_follows(says in any::<String>()) {
        let anchors = fluffy_chat::Anchors::default();
        let _read = heard(&says, &anchors, &known());
        let says: &'static str = says.leak();
        let mut scene = Scene::scripted(&[says, says]);
        scene.say("what do you think");
        prop_assert!(scene.orders.iter().all(|order| !order.plan.asks()));
    }

    #[test]
    fn any_word_is_a_reference_or_none(word in any::<String>()) {
        if let Some(reference) = Reference::parse(&word) {
            let shown = reference.to_string();
            prop_assert_eq!(Reference::parse(&shown), Some(reference));
        }
        let _bound = resolve(intent(&word), &fluffy_chat::Anchors::default(), &known());
    }

    #[test]
    fn only_a_few_short_words_are_a_yes(text in any::<String>()) {
        prop_assert!(!is_yes(&text) || text.trim().len() <= 10);
    }
}
