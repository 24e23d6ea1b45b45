//! `kill -9` in every state, and going on.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::Value;

use super::lab::{Lab, Language, say, write};
use crate::program::{Answer, kill_working};

/// Runs a task until an event says so, and kills it.
fn killed_at(lab: &Lab, turns: &[Value], at: impl Fn(&Value) -> bool) -> bool {
    let mut child =
        lab.command(&[], turns).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut was = false;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let Ok(event) = serde_json::from_str::<Value>(&line.unwrap()) else { break };
        if !was && at(&event) {
            kill_working(&lab.user);
            child.kill().unwrap();
            was = true;
        }
    }
    child.wait().unwrap();
    was
}

pub(crate) fn resumed(lab: &Lab) -> Answer {
    let provider = format!("replay:{}", lab.user.project.path("transcript.jsonl").display());
    let mut command = lab.command(&[], &lab.good_turns());
    let path = command.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap().to_owned();
    command = lab.user.command(&["session", "resume", "--json", "--provider", &provider]);
    command.env("HOME", std::env::var_os("HOME").unwrap()).env("PATH", path);
    Answer::of(command.stdin(Stdio::null()).output().unwrap())
}

#[test]
fn a_killed_task_goes_on_from_every_state() {
    let states = ["planning", "test_writing", "code_writing", "reviewing", "committing"];
    for state in states {
        let lab = Lab::new(Language::Python);
        let before = lab.snapshot();
        let at = |event: &Value| event["type"] == "state.changed" && event["to"] == state;
        assert!(killed_at(&lab, &lab.good_turns(), at), "{state} was never reached");
        if !matches!(state, "reviewing" | "committing") {
            assert_eq!(lab.snapshot(), before, "{state}");
        }
        let answer = resumed(&lab);
        assert_eq!(answer.code, 0, "{state}: {}{}", answer.out, answer.err);
        assert_eq!(lab.user.read("sums.py"), lab.language.solution(), "{state}");
        assert_eq!(lab.user.read("test_double.py"), lab.language.test().1, "{state}");
        assert_eq!(lab.git(&["status", "--porcelain"]), "", "{state}");
        assert_eq!(lab.git(&["rev-list", "--count", "HEAD"]).trim(), "2", "{state}");
        let verified = lab.user.run(&["audit", "verify"]);
        assert_eq!(verified.code, 0, "{state}: {}{}", verified.out, verified.err);
    }
}

#[test]
fn steps_are_shown_undone_and_rewound_to_the_bytes_they_had() {
    let lab = Lab::new(Language::Python);
    let mut turns = lab.good_turns();
    turns.truncate(3);
    turns.push(say("Code.", &[write("sums.py", &lab.language.wrong_solution())]));
    let run = lab.run(&[], &turns);
    run.assert_not_done(1);
    let diff = lab.user.run(&["session", "diff"]);
    assert!(
        diff.out.contains("+    return 3 * a") && diff.out.contains("test_double.py"),
        "{}{}",
        diff.out,
        diff.err
    );
    assert_eq!(lab.user.run(&["session", "undo"]).code, 0);
    let diff = lab.user.run(&["session", "diff"]);
    assert!(
        !diff.out.contains("return 3 * a") && diff.out.contains("test_double.py"),
        "{}",
        diff.out
    );
    assert_eq!(lab.user.run(&["session", "rewind", "0"]).code, 0);
    assert_eq!(lab.user.run(&["session", "diff"]).out, "");
    let too_far = lab.user.run(&["session", "rewind", "9"]);
    assert_eq!(too_far.code, 2, "{}", too_far.err);
    let list = lab.user.run(&["session", "list"]);
    assert!(list.out.contains("add a function that doubles"), "{}", list.out);
    let show = lab.user.run(&["session", "show"]);
    assert_eq!(show.code, 0, "{}", show.err);
}

#[test]
fn a_session_is_exported_as_the_transcript_that_drives_it_again() {
    let lab = Lab::new(Language::Python);
    lab.run(&[], &lab.good_turns()).assert_done();
    let exported = lab.user.run(&["session", "export", "--transcript"]);
    assert_eq!(exported.code, 0, "{}", exported.err);
    let turns: Vec<Value> =
        exported.out.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(turns.len(), 6, "{}", exported.out);
    let again = Lab::new(Language::Python);
    again.run(&[], &turns).assert_done();
    assert_eq!(again.user.read("sums.py"), again.language.solution());
}
