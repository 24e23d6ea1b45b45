//! What a person looks at, and what users do meanwhile.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use super::lab::{Lab, Language, call, complete, hook, run_tests, say, write};

#[test]
fn more_than_five_hundred_lines_are_looked_at() {
    let lab = Lab::new(Language::Python);
    let before = lab.snapshot();
    let (test, text) = lab.language.test();
    let long = lab.language.solution() + &"# a line\n".repeat(600);
    let turns = [
        say("Tests.", &[write(test, text)]),
        say("Red.", &[run_tests()]),
        say("Code.", &[write("sums.py", &long)]),
        say("Green.", &[run_tests()]),
        complete(),
    ];
    lab.run(&["--no"], &turns).assert_not_done(3);
    assert_eq!(lab.snapshot(), before);
    let run = lab.run(&["--yes"], &turns);
    run.assert_done();
    assert!(
        run.all("review.requested")[0]["reasons"].to_string().contains("lines"),
        "{}",
        run.told()
    );
}

#[test]
fn files_that_build_the_project_are_looked_at_when_they_are_written() {
    let lab = Lab::new(Language::Rust);
    let (test, text) = lab.language.test();
    let manifest = lab.user.read("Cargo.toml") + "description = \"sums\"\n";
    let turns = [
        say("Tests.", &[write(test, text)]),
        say("Red.", &[run_tests()]),
        say(
            "Code.",
            &[write("src/lib.rs", &lab.language.solution()), write("Cargo.toml", &manifest)],
        ),
        say("Green.", &[run_tests()]),
        complete(),
    ];
    let run = lab.run(&["--no"], &turns);
    run.assert_done();
    assert!(
        run.all("review.requested")[0]["reasons"].to_string().contains("builds"),
        "{}",
        run.told()
    );
    assert!(run.answers("fs.write").iter().any(|it| it["decision"] == "denied"), "{}", run.told());
    assert!(!lab.user.read("Cargo.toml").contains("description"));
}

#[test]
fn a_hook_that_refuses_keeps_the_work_out_and_one_that_tampers_changes_nothing() {
    let lab = Lab::new(Language::Python);
    hook(&lab, "pre-commit", "#!/bin/sh\necho the house says no >&2\nexit 1\n");
    let before = lab.snapshot();
    let run = lab.run(&["--yes"], &lab.good_turns());
    assert_ne!(run.code, 0, "{}", run.told());
    assert!(run.told().contains("the house says no"), "{}", run.told());
    assert_eq!(lab.snapshot(), before);
    let evil = "#!/bin/sh\necho evil > sums.py\ngit config core.fsmonitor /tmp/x\necho x > .git/hooks/post-commit\nexit 0\n";
    hook(&lab, "pre-commit", evil);
    let config = std::fs::read(lab.root().join(".git/config")).unwrap();
    let run = lab.run(&["--yes"], &lab.good_turns());
    run.assert_done();
    assert_eq!(lab.user.read("sums.py"), lab.language.solution());
    assert_eq!(std::fs::read(lab.root().join(".git/config")).unwrap(), config);
    assert!(!lab.root().join(".git/hooks/post-commit").exists());
    assert_eq!(lab.git(&["show", "HEAD:sums.py"]), lab.language.solution());
}

/// Work that takes long enough for a user to do something meanwhile.
fn pause() -> Value {
    call("shell.run", json!({"command": "sleep", "args": ["3"]}))
}

/// Runs the turns; once the tests are red, the user does something.
fn with_a_user(
    lab: &Lab,
    turns: &[Value],
    options: &[&str],
    act: impl FnOnce(),
) -> (Vec<Value>, i32) {
    let mut child = lab
        .command(options, turns)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut act = Some(act);
    let mut events = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if event["type"] == "tests.finished"
            && let Some(act) = act.take()
        {
            act();
        }
        events.push(event);
    }
    (events, child.wait().unwrap().code().unwrap())
}

#[test]
fn a_users_edit_elsewhere_in_the_file_is_put_together_after_a_look() {
    let lab = Lab::new(Language::Python);
    let head = "# Sums, for everybody.\n# One.\n# Two.\n# Three.\n# Four.\n";
    let before = format!("{head}{}", lab.user.read("sums.py"));
    lab.user.write("sums.py", &before);
    let (test, text) = lab.language.test();
    let edit = json!({"path": "sums.py", "old": "    return a + b\n", "new": "    return a + b\n\n\ndef double(a):\n    return 2 * a\n"});
    let turns = [
        say("Tests.", &[write(test, text)]),
        say("Edit.", &[run_tests()]),
        say("Code.", &[call("fs.edit", edit)]),
        say("The user has time.", &[pause()]),
        say("Green.", &[run_tests()]),
        complete(),
    ];
    // The file is staged after the first run; the user edits its head between staging and merge.
    let provider_turns = turns.to_vec();
    let path = lab.root().join("sums.py");
    let changed = before.replace("# Sums, for everybody.", "# Sums, for you.");
    let mut child = lab
        .command(&["--yes"], &provider_turns)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut events = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if event["type"] == "tool.finished" && event["tool"] == "fs.edit" {
            std::fs::write(&path, &changed).unwrap();
        }
        events.push(event);
    }
    assert_eq!(child.wait().unwrap().code(), Some(0), "{events:?}");
    let merged = lab.user.read("sums.py");
    assert!(merged.starts_with("# Sums, for you.\n") && merged.contains("def double"), "{merged}");
}

#[test]
fn a_users_edit_in_the_same_place_wins_and_both_versions_are_kept() {
    let lab = Lab::new(Language::Python);
    let mut turns = lab.good_turns();
    turns.insert(4, say("The user has time.", &[pause()]));
    let mut child = lab
        .command(&["--yes"], &turns)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let theirs = "def add(a, b):\n    return b + a\n\n\ndef double(a):\n    return a + a\n";
    let mut events = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let wrote = event["type"] == "tool.finished" && event["tool"] == "fs.write";
        if wrote && events.iter().any(|event: &Value| event["type"] == "tests.finished") {
            lab.user.write("sums.py", theirs);
        }
        events.push(event);
    }
    assert_ne!(child.wait().unwrap().code(), Some(0), "{events:?}");
    assert_eq!(lab.user.read("sums.py"), theirs);
    assert!(!lab.root().join("test_double.py").exists(), "all or nothing");
    let kept = lab.user.run(&["session", "diff"]);
    assert!(kept.out.contains("+    return 2 * a"), "{}{}", kept.out, kept.err);
}

#[test]
fn a_users_edit_of_another_file_is_none_of_the_tasks_business() {
    let lab = Lab::new(Language::Python);
    let note = lab.root().join("notes.txt");
    let (events, code) = with_a_user(&lab, &lab.good_turns(), &[], || {
        std::fs::write(&note, "mine").unwrap();
    });
    assert_eq!(code, 0, "{events:?}");
    assert_eq!(lab.user.read("notes.txt"), "mine");
    assert_eq!(lab.git(&["status", "--porcelain"]), "?? notes.txt\n");
}
