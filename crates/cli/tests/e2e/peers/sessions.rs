//! Tasks from a failing test to a commit, whole, broken off and taken up, and taken up by another.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use fluffy_testkit::server::Asked;
use serde_json::{Value, json};

use super::hearing::Hearing;
use super::{Line, Scene, Scripted, Vendor, key, lines};
use crate::program::kill_working;
use crate::task::lab::{Lab, Language};

fn check_whole(vendor: Vendor, language: Language) {
    let script = lines(language);
    let scripted = Scripted::start(vendor, script.clone(), false);
    let scene = Scene::new(Lab::new(language), &[scripted.address()]);
    let answer = scene.answer(&Scene::task(vendor).each_ref().map(String::as_str));
    let given = scripted.given();
    let events = scene.check_done(&answer);
    assert_eq!(given, (0..given.len()).collect::<Vec<_>>(), "each turn is asked for once");
    assert!(given.len() >= script.len() - 1, "{given:?}");

    check_hears(&scripted, &script);
    check_recorded(&scene, &scripted);
    let started = &events[0];
    let named = (&json!(format!("peer-{}", vendor.protocol())), &json!(vendor.model()));
    assert_eq!((&started["provider"], &started["model"]), named);
    let used: Vec<&Value> = events.iter().filter(|event| event["type"] == "usage").collect();
    assert_eq!(used.len(), given.len());
    for (event, line) in used.iter().zip(&script) {
        let found = (&event["input_tokens"], &event["output_tokens"]);
        assert_eq!(found, (&json!(line.used.input), &json!(line.used.output)), "{event}");
        assert_eq!(event["cached_tokens"].as_u64().unwrap_or(0), line.used.cached, "{event}");
        let cost: f64 = event["cost_usd"].as_str().unwrap().parse().unwrap();
        let micros = line.used.micros() as f64;
        assert!((cost * 1e6 - micros).abs() < 0.5, "{event}: {micros}");
    }
    let spoken: String = events
        .iter()
        .filter(|event| event["type"] == "text.delta")
        .map(|event| event["text"].as_str().unwrap())
        .collect();
    for line in script.iter().take(given.len()) {
        assert!(spoken.contains(&line.text), "{:?} of {spoken:?}", line.text);
        assert!(!spoken.contains(&line.thought), "{spoken:?}");
    }
}

/// The model's process and what it asked of the network are in the ledger, in order and inside of the session.
fn check_recorded(scene: &Scene, scripted: &Scripted) {
    let log = scene.lab.user.run(&["audit", "log", "--json", "--limit", "1000"]).json_lines();
    let find = |event: &str, name: &str, text: &str| {
        let is_it = |entry: &&Value| {
            let detail = &entry["detail"];
            let told = detail["metadata"][name].as_str().unwrap_or_default();
            // How something ended is told behind a colon.
            detail["event"] == event && told.split(':').next() == Some(text)
        };
        log.iter().position(|entry| is_it(&entry)).unwrap_or_else(|| panic!("no {event} {text}"))
    };
    let made = find("sandbox_created", "program", "fluffy provider-host");
    let sandbox = log[made]["detail"]["metadata"]["sandbox"].as_str().unwrap();
    let passed = find("network_request", "became", "passed");
    let turn = log.iter().position(|entry| entry["detail"]["event"] == "ai_turn").unwrap();
    let closed = find("network_request", "became", "closed");
    let gone = find("sandbox_destroyed", "sandbox", sandbox);
    let ended = log.iter().position(|entry| entry["detail"]["event"] == "kernel_shutdown").unwrap();
    let order = [made, passed, turn, closed, gone, ended];
    assert!(order.is_sorted(), "{order:?}");
    let port = scripted.server.port().to_string();
    for at in [passed, closed] {
        let metadata = &log[at]["detail"]["metadata"];
        assert_eq!((&metadata["sandbox"], &metadata["port"]), (&json!(sandbox), &json!(port)));
    }
}

/// The server would have noticed: what it was sent last, with any mistake in it, is wrong.
fn check_hears(scripted: &Scripted, script: &[Line]) {
    let (vendor, key) = (scripted.vendor, key(scripted.vendor));
    let asked = scripted.server.asked().pop().unwrap();
    let hearing = Hearing { vendor, key: &key, lines: script };
    let hears = |asked: &Asked| hearing.turn(asked, |_| 0);
    assert!(hears(&asked).is_ok());
    let body = String::from_utf8(asked.body.clone()).unwrap();
    let with = |body: String| Asked { body: body.into_bytes(), ..asked.clone() };
    let seal = vendor.seal(1).unwrap_or_else(|| vendor.id(1, 0).unwrap());
    let last: Value = serde_json::from_str(&body).unwrap();
    let list = ["messages", "input", "contents"].into_iter().find(|key| last[key].is_array());
    let mut unanswered = last.clone();
    unanswered[list.unwrap()].as_array_mut().unwrap().pop();
    for (mistake, body) in [
        ("a seal is changed", body.replacen(&seal, "SEAL", 1)),
        ("an id is changed", body.replacen(&vendor.id(2, 0).unwrap(), "another", 1)),
        ("a name has a dot", body.replace("fs_write", "fs.write")),
        ("a call is changed", body.replacen("a test, then", "the test, then", 1)),
        ("words are changed", body.replacen("It must pass.", "It must pass", 1)),
        ("the last results are missing", unanswered.to_string()),
        ("an image is there", body.replacen('{', "{\"inlineData\":1,", 1)),
        ("the key is there", body.replacen("You are", &format!("{key} You are"), 1)),
    ] {
        assert!(hears(&with(body)).is_err(), "{vendor:?}: {mistake}, and nobody noticed");
    }
    let head = |head: String| Asked { head, ..asked.clone() };
    let (name, _) = vendor.key_header();
    let without = asked.head.lines().filter(|line| !line.to_lowercase().starts_with(name));
    let without: String = without.map(|line| format!("{line}\r\n")).collect();
    let copied = asked.head.replacen("\r\n", &format!("\r\nx-team: {key}\r\n"), 1);
    for head in [head(without), head(copied)] {
        assert!(hears(&head).is_err(), "{vendor:?}: {}", head.head);
    }
}

#[test]
fn ai_1_a_whole_session_over_chat_completions() {
    check_whole(Vendor::Chat, Language::Python);
}

#[test]
fn ai_1_a_whole_session_over_compatible_chat_completions() {
    check_whole(Vendor::Compatible, Language::JavaScript);
}

#[test]
fn ai_1_a_whole_session_over_responses() {
    check_whole(Vendor::Responses, Language::Python);
}

#[test]
fn ai_1_a_whole_session_over_messages() {
    check_whole(Vendor::Messages, Language::Python);
}

#[test]
fn ai_1_a_whole_session_over_gemini() {
    check_whole(Vendor::Gemini, Language::JavaScript);
}

/// Begins the task with a vendor and kills it, with everything it started, when it has come to a state.
fn killed_at(scene: &Scene, vendor: Vendor, state: &str) -> Vec<Value> {
    let mut command = scene.command(&Scene::task(vendor).each_ref().map(String::as_str));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut events = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let Ok(event) = serde_json::from_str::<Value>(&line.unwrap()) else { break };
        if event["type"] == "state.changed" && event["to"] == state {
            kill_working(&scene.lab.user);
            child.kill().unwrap();
        }
        events.push(event);
    }
    assert!(child.wait().unwrap().code().is_none(), "{state} was never reached: {events:?}");
    events
}

fn check_resumed(vendor: Vendor, state: &str) {
    let language = Language::Python;
    let scripted = Scripted::start(vendor, lines(language), false);
    let scene = Scene::new(Lab::new(language), &[scripted.address()]);
    let began = killed_at(&scene, vendor, state);
    let before = scripted.given_at_last();
    let recorded = scene.recorded(&began);
    let answer = scene.answer(&["session", "resume", "--json"]);
    scripted.given();
    scene.check_done(&answer);
    // The server has seen every seal again, behind the restart as well: it says so of every request.
    assert!(scripted.given().len() > before);
    for turn in 0..before - 1 {
        let seal = vendor.seal(turn).unwrap();
        assert!(recorded.contains(&seal), "{seal} is not in the ledger: {recorded}");
    }
}

#[test]
fn a_session_killed_and_resumed_hands_back_thoughts_of_a_compatible_server() {
    check_resumed(Vendor::Compatible, "code_writing");
}

#[test]
fn a_session_killed_and_resumed_hands_back_sealed_reasoning_of_responses() {
    check_resumed(Vendor::Responses, "code_writing");
}

#[test]
fn a_session_killed_and_resumed_hands_back_thinking_of_messages() {
    check_resumed(Vendor::Messages, "code_writing");
}

#[test]
fn a_session_killed_and_resumed_hands_back_signatures_of_gemini() {
    check_resumed(Vendor::Gemini, "test_writing");
}

fn check_taken_over(first: Vendor, second: Vendor) {
    let language = Language::Python;
    let one = Scripted::start(first, lines(language), false);
    let other = Scripted::start(second, lines(language), true);
    let scene = Scene::new(Lab::new(language), &[one.address(), other.address()]);
    killed_at(&scene, first, "code_writing");
    let before = one.given_at_last();
    let provider = format!("peer-{}", second.protocol());
    let model = second.model();
    let args = ["session", "resume", "--json", "--provider", &provider, "-m", model];
    let answer = scene.answer(&args);
    let given = other.given();
    scene.check_done(&answer);
    assert_eq!(one.given().len(), before, "the first is asked no more");
    assert!(given[0] + 1 >= before && given[0] > 2, "{given:?} after {before}");
    assert!(given.len() >= 2, "{given:?}");
}

#[test]
fn a_session_of_messages_goes_on_with_responses() {
    check_taken_over(Vendor::Messages, Vendor::Responses);
}

#[test]
fn a_session_of_responses_goes_on_with_messages() {
    check_taken_over(Vendor::Responses, Vendor::Messages);
}

#[test]
fn a_session_of_gemini_goes_on_with_chat_completions() {
    check_taken_over(Vendor::Gemini, Vendor::Chat);
}

#[test]
fn a_session_of_a_compatible_server_goes_on_with_gemini() {
    check_taken_over(Vendor::Compatible, Vendor::Gemini);
}
