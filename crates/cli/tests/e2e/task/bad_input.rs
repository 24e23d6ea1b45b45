//! Broken models, broken transcripts, broken tasks.

use std::process::Stdio;

use serde_json::{Value, json};

use super::lab::{Lab, Language, call, complete, run_tests, say, write};
use crate::program::Answer;

#[test]
fn a_broken_call_is_answered_and_the_task_goes_on() {
    let lab = Lab::new(Language::Python);
    let mut turns = vec![
        say("", &[call("fs.explode", json!({}))]),
        say("", &[call("fs.read", json!({"path": 7}))]),
        say("", &[call("fs.read", json!({}))]),
        say("", &[call("fs.read", json!({"path": "sums.py", "colour": "red"}))]),
        say("", &[call("fs.read", json!("{\"path\": "))]),
        say("", &[call("fs.write", json!({"path": "../out", "content": "x"}))]),
        say("", &[call("fs.write", json!({"path": "/etc/passwd", "content": "x"}))]),
        say("", &[call("policy.update", json!({"content": "version: 1"}))]),
        say("", &[call("session.merge", json!({"plan": "0", "paths": []}))]),
        say("", &[call("session.set_mode", json!({"mode": "debug"}))]),
        say("", &[call("", json!({}))]),
    ];
    let bad = turns.len();
    turns.extend(lab.good_turns());
    let run = lab.run(&["--yes"], &turns);
    run.assert_done();
    let answers = run.all("tool.finished");
    for answer in answers.iter().take(bad) {
        assert_eq!(answer["success"], false, "{answer}");
    }
    assert_eq!(lab.user.read("sums.py"), lab.language.solution());
}

#[test]
fn huge_arguments_are_refused_and_the_task_goes_on() {
    let lab = Lab::new(Language::Python);
    let mut turns = vec![say("", &[write("test_huge.py", &"x".repeat(3 << 20))])];
    turns.extend(lab.good_turns());
    let run = lab.run(&[], &turns);
    run.assert_done();
    assert_eq!(run.answers("fs.write")[0]["decision"], "denied");
}

#[test]
fn two_hundred_calls_of_one_turn_are_all_answered() {
    let lab = Lab::new(Language::Python);
    let mut calls: Vec<Value> =
        (0..150).map(|_| call("fs.read", json!({"path": "sums.py"}))).collect();
    calls.extend(
        (0..50)
            .map(|at| write(&format!("tests/test_{at}.py"), "def test_it():\n    assert True\n")),
    );
    let turns = [say("", &calls), say("Enough.", &[])];
    let run = lab.run(&["--max-turns", "5"], &turns);
    assert_eq!(run.all("tool.finished").len(), 200, "{}", run.err);
    assert!(run.all("tool.finished").iter().all(|it| it["success"] == true), "{}", run.told());
    let steps = run.answers("fs.write");
    assert_eq!(steps.len(), 50);
    assert!(!lab.root().join("tests").exists(), "nothing is merged before its time");
}

#[test]
fn a_transcript_that_cannot_be_read_is_named_with_its_line() {
    let lab = Lab::new(Language::Python);
    let broken = [
        ("", "transcript"),
        ("{\"v\":2,\"kind\":\"transcript\"}\n", "version"),
        ("{\"v\":1,\"kind\":\"transcript\"}\n{\"text\":\"a\",\"colour\":1}\n", "2"),
        ("{\"v\":1,\"kind\":\"transcript\"}\nnonsense\n", "2"),
    ];
    for (text, named) in broken {
        let path = lab.user.project.path("broken.jsonl");
        std::fs::write(&path, text).unwrap();
        let provider = format!("replay:{}", path.display());
        let answer = lab.user.run(&["run", "--provider", &provider, "a task"]);
        assert_eq!(answer.code, 2, "{}", answer.err);
        assert!(
            answer.err.contains(named) && answer.err.contains("Fix:"),
            "{named}: {}",
            answer.err
        );
    }
    let answer = lab.user.run(&["run", "--provider", "replay:nowhere.jsonl", "a task"]);
    assert_eq!(answer.code, 2, "{}", answer.err);
    let answer = lab.user.run(&["run", "--provider", "crystal-ball", "a task"]);
    assert_eq!(answer.code, 2, "{}", answer.err);
}

#[test]
fn an_expectation_that_is_not_met_fails_the_run() {
    let lab = Lab::new(Language::Python);
    let mut second = say("", &[]);
    second["expect"] = json!([{"tool": "fs.write", "decision": "allowed"}]);
    let turns = [say("", &[write("sums.py", "x = 1\n")]), second];
    let run = lab.run(&[], &turns);
    assert_eq!(run.code, 5, "{}", run.told());
    let mut second = say("Refused.", &[]);
    second["expect"] = json!([{"tool": "fs.write", "decision": "denied"}]);
    let turns = [say("", &[write("sums.py", "x = 1\n")]), second];
    assert_eq!(lab.run(&[], &turns).code, 1);
}

#[test]
fn a_task_that_says_nothing_is_refused() {
    let lab = Lab::new(Language::Python);
    let provider = format!("replay:{}", lab.transcript(&[say("Hi.", &[])]).display());
    for task in ["", " \n ", "\u{200b}"] {
        let answer = lab.user.run(&["run", "--provider", &provider, task]);
        assert_eq!(answer.code, 2, "{task:?}: {}", answer.err);
    }
    let piped =
        lab.user.run_with(&["run", "--provider", &provider, "-"], "小さな仕事 — مهمة\n".as_bytes());
    assert_eq!((piped.out.as_str(), piped.code), ("Hi.\n", 0), "{}", piped.err);
    let piped = lab.user.run_with(&["run", "--provider", &provider, "-"], b"\xff\xfe");
    assert_eq!(piped.code, 2, "{}", piped.err);
}

#[test]
fn caps_end_a_task_with_their_own_code() {
    let lab = Lab::new(Language::Python);
    let before = lab.snapshot();
    let run = lab.run(&["--max-turns", "2"], &lab.good_turns());
    run.assert_not_done(7);
    assert_eq!(lab.snapshot(), before);
    let run = lab.run(&["--max-tokens", "20"], &lab.good_turns());
    run.assert_not_done(7);
}

#[test]
fn without_a_sandbox_nothing_runs() {
    let lab = Lab::new(Language::Python);
    let command = lab.command(&[], &lab.good_turns());
    // A user namespace in which no further one may be made, as distributions have it.
    let mut outer = std::process::Command::new("unshare");
    outer.args(["-r", "sh", "-c", "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --reuid=65534 --clear-groups \"$@\"", "sh"]);
    outer.arg(command.get_program()).args(command.get_args());
    outer
        .current_dir(lab.root())
        .env_clear()
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let answer = Answer::of(outer.stdin(Stdio::null()).output().unwrap());
    // Where this machine does not let a test forbid namespaces, there is nothing to see.
    if answer.err.contains("unshare:")
        || answer.err.contains("setpriv:")
        || answer.err.contains("sh:")
    {
        return;
    }
    assert_ne!(answer.code, 0, "{}", answer.err);
}

#[test]
fn tests_that_cannot_be_run_are_explained() {
    let lab = Lab::new(Language::JavaScript);
    let (test, text) = lab.language.test();
    let turns = [say("", &[write(test, text)]), say("", &[run_tests()]), complete()];
    let mut command = lab.command(&[], &turns);
    let answer = Answer::of(command.env("PATH", "/nowhere").stdin(Stdio::null()).output().unwrap());
    assert_eq!(answer.code, 1, "{}", answer.out);
}

#[test]
fn a_full_disk_ends_a_task_with_a_clear_error_and_it_goes_on_with_more_room() {
    // Only root may mount in a namespace of its own and still have sandboxes.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let lab = Lab::new(Language::JavaScript);
    let before = lab.snapshot();
    let command = lab.command(&[], &lab.good_turns());
    let provider = format!("replay:{}", lab.user.project.path("transcript.jsonl").display());
    let script = "set -e; mount -t tmpfs -o size=200k none \"$XDG_STATE_HOME\"; program=$1; shift
        \"$program\" \"$@\" && exit 99; echo \"code $?\"; sums=$(cat sums.js)
        mount -o remount,size=50m \"$XDG_STATE_HOME\"
        \"$program\" session resume --provider \"$PROVIDER\" && echo resumed && [ \"$sums\" != \"$(cat sums.js)\" ]";
    let mut outer = std::process::Command::new("unshare");
    outer
        .args(["-m", "sh", "-c", script, "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    let given = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    outer.current_dir(lab.root()).env_clear().envs(given).env("PROVIDER", provider);
    let answer = Answer::of(outer.stdin(Stdio::null()).output().unwrap());
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    assert!(answer.out.contains("code 6") && answer.out.contains("resumed"), "{}", answer.out);
    assert!(answer.out.contains("disk is full"), "{}", answer.out);
    assert_ne!(lab.snapshot(), before);
    assert_eq!(lab.user.read("sums.js"), lab.language.solution());
}
