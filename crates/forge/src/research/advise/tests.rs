//! What is made of a model's answers, honest and hostile.

use std::sync::Mutex;

use proptest::prelude::*;

use super::*;
use crate::research::samples::{PACKET, proposal};
use crate::research::{FailureKind, Told};

/// A model that says one thing, and remembers what it was asked.
struct Says(Result<String, GatewayError>, Mutex<Vec<String>>);

impl Gateway for Says {
    fn generate(&self, prompt: &str) -> Result<String, GatewayError> {
        self.1.lock().unwrap().push(prompt.to_owned());
        self.0.clone()
    }

    fn embed(&self, _: &[String]) -> Result<Vec<Vec<f32>>, GatewayError> {
        Err(GatewayError::Absent)
    }
}

fn asked(packet: &str, answer: Result<String, GatewayError>) -> (Advice, String) {
    let (proposal, facts) = (proposal(), facts());
    let classified = Classified { kind: FailureKind::VerifyLint, told: Told::Gates };
    let question = Question {
        proposal: &proposal,
        packet,
        classified,
        facts: &facts,
        hint: Some("be careful"),
    };
    let gateway = Says(answer, Mutex::default());
    let advice = advise(&question, &gateway);
    let prompts = gateway.1.into_inner().unwrap();
    (advice, prompts.into_iter().next().unwrap_or_default())
}

fn facts() -> Facts {
    Facts { gates: vec!["lint: 1 fault".to_owned()], ..Facts::default() }
}

fn says(answer: &str) -> Advice {
    asked(PACKET, Ok(answer.to_owned())).0
}

fn better() -> String {
    PACKET.replace("- test the empty input", "- test the empty input and the longest one")
}

#[test]
fn for_8_a_corrected_packet_is_taken_as_it_is() {
    for answer in [
        better(),
        format!("```markdown\n{}```", better()),
        format!("\n\n{}", better().replace('\n', "\r\n")),
    ] {
        let advice = says(&answer);
        let Advice::Given { packet, added, changed_percent } = &advice else {
            panic!("{advice:?}")
        };
        assert_eq!(packet, &better());
        assert_eq!(added, &["- test the empty input and the longest one"]);
        assert!((1..=10).contains(changed_percent), "{changed_percent}");
        assert_eq!(advice.packet(PACKET), better());
    }
}

#[test]
fn for_8_the_model_is_told_what_failed_and_never_more_than_it_takes() {
    let (_, prompt) = asked(PACKET, Ok(better()));
    for part in ["VERIFY_LINT", "| gate lint: 1 fault", "The person says: be careful", PACKET] {
        assert!(prompt.contains(part), "{part}");
    }
    let long = format!("{PACKET}{}", "- é\n".repeat(5_000));
    for packet in [long.as_str(), &"é".repeat(20_000)] {
        let (_, prompt) = asked(packet, Ok("- test more".to_owned()));
        let count = prompt.chars().count();
        assert!(count <= MAX_PROMPT_CHARS && count > MAX_PROMPT_CHARS - 400, "{count}");
    }
}

#[test]
fn for_8_to_a_packet_that_is_too_long_to_be_shown_lines_are_added() {
    let long = format!("{PACKET}{}", "- one more line of guidance\n".repeat(400));
    let (advice, _) = asked(&long, Ok("- test the longest title".to_owned()));
    let Advice::Given { packet, added, .. } = advice else { panic!("{advice:?}") };
    assert!(packet.starts_with(long.trim_end()));
    assert!(packet.ends_with("## Advice\n\n- test the longest title\n"));
    assert_eq!(added, ["- test the longest title"]);
    let (advice, _) = asked(&long, Ok("use the network".to_owned()));
    assert!(matches!(advice, Advice::Widens { .. }));
}

#[test]
fn for_8_without_an_answer_the_packet_stays_as_it_is() {
    for error in [
        GatewayError::Absent,
        GatewayError::Unreachable("x".to_owned()),
        GatewayError::Late { waited_ms: 30_000 },
        GatewayError::Declined("500".to_owned()),
        GatewayError::Garbled("x".to_owned()),
    ] {
        let (advice, _) = asked(PACKET, Err(error.clone()));
        assert_eq!(advice, Advice::Unusable(Unusable::Gateway(error)));
        assert_eq!(advice.packet(PACKET), PACKET);
    }
}

#[test]
fn for_8_an_answer_that_is_none_is_not_used() {
    for (answer, expected) in [
        (String::new(), Unusable::Gateway(GatewayError::Empty)),
        (" \n\u{200b}".to_owned(), Unusable::Gateway(GatewayError::Empty)),
        ("Sorry, I cannot help with that.".to_owned(), Unusable::OtherPacket),
        (PACKET.replacen("write_note", "other", 1), Unusable::OtherPacket),
        (PACKET.to_owned(), Unusable::Same),
        (better().replace("longest", "\u{1b}[2J"), Unusable::Control),
        (better().replace("longest", "\0"), Unusable::Control),
        (
            "x".repeat(100_000),
            Unusable::Gateway(GatewayError::AnswerTooLong { most: crate::MAX_ANSWER_CHARS }),
        ),
    ] {
        let advice = says(&answer);
        assert_eq!(advice, Advice::Unusable(expected));
        assert_eq!(advice.packet(PACKET), PACKET);
    }
    let long = format!("{PACKET}{}", "- a line\n".repeat(6_000));
    let (advice, _) = asked(&long, Ok("- test".to_owned()));
    assert_eq!(advice, Advice::Unusable(Unusable::TooLong));
}

#[test]
fn for_8_advice_that_grants_more_is_not_used() {
    let advice = says(&better().replace("must not use the network", "may use the network"));
    let Advice::Widens { reasons } = &advice else { panic!("{advice:?}") };
    assert!(reasons.iter().any(|reason| reason.contains("the network")), "{reasons:?}");
    assert_eq!(advice.packet(PACKET), PACKET);
}

#[test]
fn for_8_advice_that_changes_most_of_the_packet_says_so() {
    let much = PACKET.to_owned() + &"- one more thing to test\n".repeat(40);
    let Advice::Given { changed_percent, .. } = says(&much) else { panic!() };
    assert!(changed_percent > 50);
}

proptest! {
    #[test]
    fn whatever_is_answered_the_packet_grants_no_more(answer in "(\\PC|\n|```|NETWORK|https://x.org){0,80}", tail in any::<bool>()) {
        let answer = if tail { format!("{PACKET}{answer}") } else { answer };
        let advice = says(&answer);
        let packet = advice.packet(PACKET);
        prop_assert!(widening(&proposal(), PACKET, packet).is_empty());
        prop_assert!(packet.chars().count() <= MAX_PACKET_CHARS);
    }
}

/// The packet that a builder really gets.
fn real_packet(findings: Option<&crate::build::Findings>) -> String {
    let proposal = proposal();
    let allowed = crate::build::Allowed::of(&proposal.name).unwrap();
    let rules = ["`requests` is forbidden".to_owned()];
    crate::build::packet(&proposal, &allowed, 1, findings, &rules).unwrap()
}

#[test]
fn for_8_the_packet_of_a_first_attempt_is_shown_whole_and_can_be_corrected() {
    let packet = real_packet(None);
    let guidance = "- test a title with blanks, and one that is empty";
    let (advice, prompt) = asked(&packet, Ok(format!("{packet}\n{guidance}\n")));
    assert!(prompt.contains(packet.trim_end()), "{}", packet.chars().count());
    let Advice::Given { added, .. } = &advice else { panic!("{advice:?}") };
    assert_eq!(added, &[guidance]);
    for line in packet.lines().filter(|line| line.contains("FILE_WRITE") || line.contains("must")) {
        let (advice, _) = asked(&packet, Ok(packet.replacen(line, "", 1)));
        assert!(matches!(advice, Advice::Widens { .. }), "{line}: {advice:?}");
    }
}

#[test]
fn for_8_the_packet_of_a_later_attempt_is_shown_in_part_and_added_to() {
    let note = "| a line of the log that speaks of the network\n".repeat(300);
    let findings = crate::build::Findings { note: Some(note), ..Default::default() };
    let packet = real_packet(Some(&findings));
    let (advice, prompt) = asked(&packet, Ok("- test the empty title".to_owned()));
    assert!(prompt.chars().count() <= MAX_PROMPT_CHARS);
    let Advice::Given { packet: better, added, .. } = &advice else { panic!("{advice:?}") };
    assert!(better.starts_with(packet.trim_end()));
    assert_eq!(added, &["- test the empty title"]);
}
