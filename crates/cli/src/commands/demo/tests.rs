//! The shipped projects and transcripts belong together.

use serde_json::Value;

use super::*;

fn turns(language: Language) -> Vec<Value> {
    let lines = language.transcript().lines();
    let lines: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0], serde_json::json!({ "v": 1, "kind": "transcript" }));
    lines[1..].to_vec()
}

/// The calls of a transcript, each with the decision that the next turn expects, if it does.
fn calls(language: Language) -> Vec<(String, Value, Option<String>)> {
    let turns = turns(language);
    let mut calls = Vec::new();
    for (at, turn) in turns.iter().enumerate() {
        let expected = turns.get(at + 1).and_then(|next| next.get("expect"));
        for (number, call) in turn["tool_calls"].as_array().unwrap().iter().enumerate() {
            let decision = expected.and_then(|list| list.get(number));
            let decision = decision.and_then(|one| one["decision"].as_str());
            let name = call["name"].as_str().unwrap().to_owned();
            calls.push((name, call["arguments"].clone(), decision.map(str::to_owned)));
        }
    }
    calls
}

#[test]
fn every_transcript_shows_the_gate_and_then_goes_from_tests_to_the_end() {
    for language in Language::ALL {
        let calls = calls(language);
        let told: Vec<_> = calls
            .iter()
            .map(|(name, _, decision)| (name.as_str(), decision.as_deref().unwrap_or("any")))
            .collect();
        let expected = [
            ("fs.read", "allowed"),
            ("fs.read", "allowed"),
            ("plan.complete", "allowed"),
            ("fs.write", "denied"),
            ("fs.write", "allowed"),
            ("test.run", "any"),
            ("fs.write", "allowed"),
            ("test.run", "any"),
            ("task.complete", "any"),
        ];
        assert_eq!(told, expected, "{language:?}");
    }
}

#[test]
fn what_a_transcript_reads_is_in_its_project_and_what_is_denied_is_source() {
    for language in Language::ALL {
        let names: Vec<_> = language.files().iter().map(|(name, _)| *name).collect();
        for (name, arguments, decision) in calls(language) {
            let path = arguments["path"].as_str().unwrap_or_default();
            match (name.as_str(), decision.as_deref()) {
                ("fs.read", _) => assert!(names.contains(&path), "{path}"),
                ("fs.write", Some("denied")) => assert!(path.starts_with("src/"), "{path}"),
                _ => {}
            }
        }
    }
}

#[test]
fn a_turn_tells_what_it_used() {
    for language in Language::ALL {
        for turn in turns(language) {
            assert!(turn["usage"]["input_tokens"].as_u64().unwrap() > 0);
            assert!(turn["usage"]["output_tokens"].as_u64().unwrap() > 0);
            assert!(!turn["text"].as_str().unwrap().is_empty());
        }
    }
}
