//! Whose a conversation is, and whose a yes.

use std::process::Command;

use fluffy_kernel::Client;
use serde_json::{Value, json};

use super::table::{PATIENCE, connected, say, served, submission, turn};
use crate::program::typing;
use crate::skill::lab::Forge;
use crate::task::lab::{Lab, Language, call, say as model_says};

const WRITE: &str = "write_note {\"title\":\"tea\",\"text\":\"two litres\"}";
/// Where the person at the terminal finds the kernel, and what to send it.
const SOCKET: &str = "FLUFFY_TEST_SOCKET";
const TURNS: &str = "FLUFFY_TEST_TURNS";

#[test]
fn cha_4_no_client_confirms_what_another_was_asked_and_no_program_confirms_at_all() {
    let forge = Forge::trusting();
    let kernel = served(&forge);
    let (ada, bob) = (connected(&kernel.socket), connected(&kernel.socket));
    let send = |work: &Value| submission(&forge, work);
    let asked = turn(&ada, send(&say(WRITE, None)));
    assert_eq!(asked["kind"], "confirm", "{asked:#}");
    let id = asked["pending"]["id"].as_str().unwrap();
    for work in [
        json!({ "confirm": { "pending": id } }),
        say("yes", Some(id)),
        json!({ "confirm": { "pending": "ask-1" } }),
        json!({ "decline": { "pending": id } }),
    ] {
        let refused = turn(&bob, send(&work));
        assert_eq!(refused["kind"], "refused", "{refused:#}");
    }
    // The one who was asked has no terminal: nobody is there to agree.
    let refused = turn(&ada, send(&say("yes", Some(id))));
    assert_eq!(refused["kind"], "refused", "{refused:#}");
    assert!(refused["text"].as_str().unwrap().contains("a person at a terminal"));
    // Whatever else a client writes into its message is refused by its form.
    let mut forged = send(&say("yes", Some(id)));
    forged["work"]["chat"]["say"]["at_terminal"] = json!(true);
    assert!(ada.call("task.submit", forged, PATIENCE).is_err());
    assert!(!forge.root().join("notes").exists());
}

#[test]
fn cha_4_a_person_at_a_terminal_confirms_what_was_asked_and_it_is_done_once() {
    let forge = Forge::trusting();
    let kernel = served(&forge);
    let turns = json!([
        submission(&forge, &say(WRITE, None)),
        submission(&forge, &say("yes", Some("ASKED"))),
        submission(&forge, &json!({ "confirm": { "pending": "ASKED" } })),
        submission(&forge, &say("again", None)),
        submission(&forge, &say("no", Some("ASKED"))),
    ]);
    let path = forge.user.project.path("turns.json");
    std::fs::write(&path, turns.to_string()).unwrap();
    let mut person = Command::new(std::env::current_exe().unwrap());
    person.args([
        "--exact",
        "chat::clients::the_person_at_the_terminal",
        "--ignored",
        "--nocapture",
    ]);
    person.env(SOCKET, &kernel.socket).env(TURNS, &path).current_dir(forge.root());
    let answer = typing(person, "");
    let kinds: Vec<&str> =
        answer.out.lines().filter_map(|line| line.strip_prefix("reply: ")).collect();
    assert_eq!(kinds, ["confirm", "ran", "refused", "confirm", "declined"], "{}", answer.out);
    assert_eq!(forge.user.read("notes/tea.md"), "two litres");
    drop(kernel);
    assert_eq!(forge.done(&["log", "--json"]).json_lines().len(), 1);
    let decided = forge.entries("human_decision");
    assert!(decided.last().unwrap().to_string().contains("the user, at the terminal"));
}

#[test]
#[ignore = "it is started at a terminal by the test above"]
fn the_person_at_the_terminal() {
    let socket = std::env::var_os(SOCKET).unwrap();
    let turns = std::fs::read(std::env::var_os(TURNS).unwrap()).unwrap();
    let client = connected(std::path::Path::new(&socket));
    let turns: Vec<Value> = serde_json::from_slice(&turns).unwrap();
    let mut asked = String::new();
    for submission in turns {
        let text = submission.to_string().replace("ASKED", &asked);
        let reply = turn(&client, serde_json::from_str(&text).unwrap());
        println!("\nreply: {}", reply["kind"].as_str().unwrap());
        if let Some(id) = reply["pending"]["id"].as_str() {
            asked = id.to_owned();
        }
    }
}

/// Says something where a model plays this transcript.
fn played(forge: &Forge, client: &Client, transcript: &str, text: &str) -> Value {
    client.call("task.part", json!({ "text": transcript }), PATIENCE).unwrap();
    let mut work = submission(forge, &say(text, None));
    work["driver"] = json!({ "model": { "replay": { "file": "/transcript" } },
        "caps": { "turns": 50, "tokens": null, "cost_micros": null } });
    turn(client, work)
}

#[test]
fn cha_2_references_last_from_turn_to_turn_of_one_client() {
    let forge = Forge::without_tools();
    let kernel = served(&forge);
    let (ada, bob) = (connected(&kernel.socket), connected(&kernel.socket));
    // A transcript is one conversation's: what was played is not played again.
    let transcript = "{\"v\":1,\"kind\":\"transcript\"}\n{\"text\":\"Because of the air.\"}\n{\"text\":\"Air.\"}\n";
    let send = |client: &Client, text: &str| played(&forge, client, transcript, text);
    assert_eq!(send(&ada, "why is the sky blue?")["text"], "Because of the air.");
    let stranger = send(&bob, "do it again but shorter");
    assert_eq!(stranger["kind"], "question", "{stranger:#}");
    let shorter = send(&ada, "do it again but shorter");
    assert_eq!((&shorter["kind"], &shorter["text"]), (&json!("transform"), &json!("Air.")));
    let parent = &shorter["trace"]["records"][0]["parent"];
    assert_eq!(*parent, shorter["trace"]["resolved"][0]["to"]);
}

#[test]
fn cha_1_a_further_coding_message_goes_on_in_the_session_of_the_conversation() {
    let lab = Lab::new(Language::JavaScript);
    let mut turns = vec![model_says("Because of the air.", &[])];
    turns.extend(lab.good_turns());
    turns.push(model_says("It is fine.", &[call("task.complete", json!({"summary": "looked"}))]));
    let transcript = std::fs::read_to_string(lab.transcript(&turns)).unwrap();
    let forge = Forge { user: lab.user };
    let kernel = served(&forge);
    let client = connected(&kernel.socket);
    let send = |text: &str| played(&forge, &client, &transcript, text);
    assert_eq!(send("why is the sky blue?")["kind"], "talk");
    let first = send("add a function that doubles to sums.js");
    assert_eq!(
        (&first["kind"], &first["text"]),
        (&json!("task"), &json!("add double")),
        "{first:#}"
    );
    let second = send("fix the name of double() in sums.js if it is odd");
    assert_eq!(
        (&second["kind"], &second["text"]),
        (&json!("task"), &json!("looked")),
        "{second:#}"
    );
    assert!(first["session"].is_string());
    assert_eq!(first["session"], second["session"], "the same session heard both");
    assert_eq!(second["trace"]["anchors"].as_array().unwrap().len(), 3);
}
