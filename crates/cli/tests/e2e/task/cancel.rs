//! Ctrl-C in every state.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use super::lab::{Lab, Language, call, hook, run_tests, say, write};

/// Runs a task and presses Ctrl-C when something happens: it ends at once, nothing was changed, all is recorded.
#[track_caller]
fn cancelled(lab: &Lab, options: &[&str], turns: &[Value], when: impl Fn(&Value) -> bool) {
    let before = lab.snapshot();
    let mut child =
        lab.command(options, turns).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut events = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if when(&event) {
            let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        }
        events.push(event);
    }
    assert_eq!(child.wait().unwrap().code(), Some(130), "{events:#?}");
    assert_eq!(lab.snapshot(), before);
    let verified = lab.user.run(&["audit", "verify"]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
}

fn starts<'a>(tool: &'a str) -> impl Fn(&Value) -> bool + 'a {
    move |event| event["type"] == "tool.started" && event["tool"] == tool
}

fn enters<'a>(state: &'a str) -> impl Fn(&Value) -> bool + 'a {
    move |event| event["type"] == "state.changed" && event["to"] == state
}

fn sleep() -> Value {
    say("", &[call("shell.run", json!({"command": "sleep", "args": ["100"]}))])
}

#[test]
fn a_task_can_be_cancelled_wherever_it_stands() {
    for state in ["planning", "test_writing", "code_writing"] {
        let lab = Lab::new(Language::Python);
        let (test, text) = lab.language.test();
        let mut turns = Vec::new();
        if state != "planning" {
            turns.push(say("", &[write(test, text)]));
        }
        if state == "code_writing" {
            turns.push(say("", &[run_tests()]));
        }
        turns.push(sleep());
        cancelled(&lab, &[], &turns, starts("shell.run"));
    }
}

#[test]
fn a_task_without_tests_first_can_be_cancelled_while_it_explores() {
    let lab = Lab::new(Language::Python);
    let turns = [say("", &[write("sums.py", &lab.language.solution())]), sleep()];
    cancelled(&lab, &["--mode", "explore", "--yes"], &turns, starts("shell.run"));
}

#[test]
fn a_task_can_be_cancelled_while_its_work_is_validated() {
    let lab = Lab::new(Language::Python);
    let (test, text) = lab.language.test();
    let endless = format!("import time\ntime.sleep(100)\n{}", lab.language.solution());
    let turns = [
        say("", &[write(test, text)]),
        say("", &[run_tests()]),
        say("", &[write("sums.py", &endless)]),
        say("", &[call("code.complete", json!({}))]),
    ];
    cancelled(&lab, &[], &turns, enters("validating"));
}

#[test]
fn a_task_can_be_cancelled_while_its_work_is_reviewed() {
    let lab = Lab::new(Language::Python);
    // What a review waits for: the repository's own check of the commit.
    hook(&lab, "pre-commit", "#!/bin/sh\nsleep 100\n");
    cancelled(&lab, &["--yes"], &lab.good_turns(), enters("reviewing"));
}
