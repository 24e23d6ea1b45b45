//! Turns with skills that were forged, and what is left of them.

use serde_json::json;

use crate::skill::lab::{Forge, SKILL, SKILL_FILE};

#[test]
fn slow_cha_4_shipped_skills_run_from_plain_words_and_what_writes_is_asked_first() {
    let forge = Forge::with_shipped(&["write_note", "search_notes"]);
    let write = "write a note about tea: two litres #drinks";
    let (events, asked, code) = forge.chat_json(&["-m", write]);
    assert_eq!((code, &asked["kind"], events.len()), (2, &json!("confirm"), 0));
    let step = &asked["pending"]["steps"][0];
    assert_eq!((&step["skill"], &step["effect"]), (&json!("write_note"), &json!("FILE_WRITE")));
    let input = json!({ "title": "tea", "text": "two litres", "tags": ["drinks"] });
    assert_eq!(step["input"], input);
    assert!(!forge.root().join("notes").exists());
    assert!(forge.done(&["log", "--json"]).json_lines().is_empty());
    forge.says(&["-m", write], 2, "Nothing was done.");
    // The yes beforehand: what was agreed to is in the ledger, and what was run.
    forge.says(&["-m", write, "--confirmed"], 0, "Noted: `notes/tea.md`.");
    assert!(forge.user.read("notes/tea.md").contains("two litres"));
    assert_eq!(forge.done(&["log", "--json"]).json_lines().len(), 1);
    let decided = forge.entries("human_decision");
    assert!(decided.last().unwrap().to_string().contains("the user, with --confirmed"));
    // Reading runs at once.
    forge.says(&["-m", "search notes for tea"], 0, "**tea** (`tea.md`): two litres");
    let chain = "search notes for tea and save it as a note called Found";
    forge.says(&["-m", chain], 2, "what the step before gives as `results.0.excerpt`");
    forge.says(&["-m", chain, "--confirmed"], 0, "Noted: `notes/found.md`.");
    assert!(forge.user.read("notes/found.md").contains("two litres"));
    // A step that finds nothing leaves the next undone, and says so.
    let nothing = "search notes for zzz and save it as a note called Never";
    forge.says(&["-m", nothing, "--confirmed"], 1, "there is nothing for the next step");
    assert!(!forge.root().join("notes/never.md").exists());
    forge.says(&["-m", "/skills"], 0, "`search_notes` (READ_ONLY)");
    forge.says(&["-m", "summarize tea.md"], 2, "There is no trusted skill `summarize_note` here");
    forge.says(&["-m", "write_note {\"titel\": 1}", "--confirmed"], 2, "does not take that");
    forge.says(&["-m", "write_note {", "--confirmed"], 2, "is no JSON object");
    lost_at_exit(&forge);
}

/// Nothing of a conversation outlives its client.
fn lost_at_exit(forge: &Forge) {
    forge.says(&["-m", "search notes for tea"], 0, "tea.md");
    forge.says(&["-m", "summarize that"], 2, "nothing of that kind was done in this conversation");
    let log = forge.done(&["log", "--json"]).json_lines();
    let run = log.last().unwrap()["execution"].as_str().unwrap_or_default().to_owned();
    let prefix = run.trim_start_matches("run-").get(..8).unwrap_or("00000000").to_owned();
    // A record of the log is nothing that a conversation can refer to, let alone run.
    forge.says(
        &["-m", &format!("run exec:{prefix} again"), "--confirmed"],
        2,
        "I have nothing that",
    );
}

#[test]
fn lesson_l33_odd_texts_stay_json_and_what_was_confirmed_is_recorded_whatever_is_shown() {
    let forge = Forge::trusting();
    for (number, odd) in
        ["[/bold]", "\u{1b}[31m\"{\\", "\u{202e}[red]x[/]\u{7f}"].iter().enumerate()
    {
        let input = json!({ "title": format!("n{number}"), "text": odd }).to_string();
        let message = format!("write_note {input}");
        let (_, reply, code) = forge.chat_json(&["-m", &message, "--confirmed"]);
        assert_eq!((code, &reply["kind"]), (0, &json!("ran")), "{reply:#}");
        assert_eq!(reply["trace"]["plan"][0]["input"]["text"], *odd);
        assert_eq!(forge.user.read(&format!("notes/n{number}.md")), *odd);
        assert_eq!(forge.done(&["log", "--json"]).json_lines().len(), number + 1);
        let (_, reply, _) = forge.chat_json(&["-m", odd]);
        assert_eq!(reply["kind"], "talk", "{reply:#}");
    }
    // Nobody reads what is shown: it is done and recorded all the same.
    let message = "write_note {\"title\":\"unread\",\"text\":\"x\"}";
    let mut command = forge.command(&["chat", "-m", message, "--confirmed", "--json"]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    child.wait().unwrap();
    assert_eq!(forge.done(&["log", "--json"]).json_lines().len(), 4);
}

#[test]
fn a_skill_that_was_tampered_with_does_not_run_from_a_conversation() {
    let forge = Forge::trusting();
    let message = "write_note {\"title\":\"one\",\"text\":\"x\"}";
    forge.user.write(SKILL_FILE, &SKILL.replace("target.name", "\"stolen\""));
    let (_, reply, code) = forge.chat_json(&["-m", message, "--confirmed"]);
    assert_eq!((code, &reply["kind"]), (6, &json!("failed")), "{reply:#}");
    assert!(!forge.root().join("notes/one.md").exists());
}
