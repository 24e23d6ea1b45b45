//! Sessions written down: for programs with their evidence, for people with nothing that could act.

use serde_json::{Value, json};

use super::lab::{Lab, Language, call, run_tests, say, write};

/// A key of a known service.
const SECRET: &str = "sk-abcdefghijklmnop1234";

/// A finished session with hostile words in it.
fn told() -> Lab {
    let lab = Lab::new(Language::Python);
    lab.user.write("notes.txt", &format!("key = {SECRET}\n"));
    let (test, text) = lab.language.test();
    let hostile = "Look:\n```\n# Owned\n<script>alert(1)</script>\n\u{1b}]0;owned\u{7}\u{202e}`x`";
    let turns = [
        say(hostile, &[call("fs.read", json!({"path": "notes.txt"}))]),
        say("", &[call("fs.read", json!({"path": ".env"}))]),
        say("A test.", &[write(test, text)]),
        say("It must fail.", &[run_tests()]),
        say("Now the code.", &[write("sums.py", &lab.language.solution())]),
        say("It must pass.", &[run_tests()]),
        say("Done.", &[call("task.complete", json!({"summary": "add double"}))]),
    ];
    lab.run(&[], &turns).assert_done();
    lab
}

#[test]
fn cli_5_a_session_is_exported_with_its_entries_hashes_and_root_and_read_by_people_safely() {
    let lab = told();
    let exported = lab.user.run(&["session", "export", "--json"]);
    assert_eq!(exported.code, 0, "{}", exported.err);
    let session: Value = serde_json::from_str(&exported.out).unwrap();
    assert_eq!((&session["v"], &session["kind"]), (&json!(1), &json!("fluffy-session")));
    assert_eq!(session["turns"].as_array().unwrap().len(), 7);
    assert_eq!(session["turns"][1]["calls"][0]["answer"]["allowed"], false);
    assert_eq!(session["merged"].as_array().unwrap().len(), 2);
    // Every entry is the ledger's own.
    let database = lab.user.ledger_dir().join("ledger/0001.db");
    for entry in session["entries"].as_array().unwrap() {
        let hash = entry["hash"].as_str().unwrap().parse().unwrap();
        let found = fluffy_ledger::find_entry(&database, &hash).unwrap();
        assert_eq!(found, entry["seq"].as_u64(), "{entry}");
    }
    let note = lab.user.project.state().join("fluffy/checkpoints");
    let note = std::fs::read_dir(note).unwrap().next().unwrap().unwrap().path();
    let note = std::fs::read_to_string(note).unwrap();
    let signed = fluffy_ledger::SignedCheckpoint::parse(&note).unwrap();
    let key = lab.user.ledger_dir();
    let key = key.file_name().unwrap().to_str().unwrap();
    let key = lab.user.project.state().join(format!("fluffy/keys/{key}.key"));
    let key = fluffy_ledger::SigningKey::load(&key).unwrap().unwrap();
    let root = signed.verify(key.verifying_key()).unwrap().root;
    assert_eq!(session["ledger"]["root"], root.to_string().as_str());

    let exported = lab.user.run(&["session", "export", "--markdown"]);
    assert_eq!(exported.code, 0, "{}", exported.err);
    let text = &exported.out;
    for part in [
        "## Task",
        "add a function that doubles",
        "## Turn 7",
        "`fs.read`: denied",
        "rule `",
        "### Step 1: `test_double.py`",
        "+    return 2 * a",
        "## Result",
        "add double",
        "## Evidence",
        &root.to_string(),
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Nothing in it acts: what is hostile stands between longer fences, and controls are shown.
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}', '\r']), "{text}");
    assert!(text.contains("````text\nLook:\n```\n# Owned\n<script>"), "{text}");
    // What was masked stays masked.
    assert!(!text.contains(SECRET) && !session.to_string().contains(SECRET));

    for args in [&["session", "export"][..], &["session", "export", "--json", "--markdown"][..]] {
        assert_eq!(lab.user.run(args).code, 2, "{args:?}");
    }
    // What does not hold is not handed out as evidence.
    let connection = rusqlite::Connection::open(&database).unwrap();
    let forged = "UPDATE entries SET intent = 'nothing' WHERE seq = 20";
    connection.execute(forged, []).unwrap();
    connection.close().unwrap();
    for form in ["--json", "--markdown", "--transcript"] {
        let answer = lab.user.run(&["session", "export", form]);
        assert_eq!((answer.code, &*answer.out), (6, ""), "{form}: {}", answer.err);
        assert!(answer.err.contains("entry 20:"), "{}", answer.err);
    }
}
