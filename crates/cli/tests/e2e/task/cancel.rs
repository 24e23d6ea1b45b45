//! Ctrl-C in every state.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use super::lab::{Lab, Language, call, run_tests, say, write};

#[test]
fn a_task_can_be_cancelled_wherever_it_stands() {
    for state in ["planning", "test_writing", "code_writing"] {
        let lab = Lab::new(Language::Python);
        let before = lab.snapshot();
        let (test, text) = lab.language.test();
        let sleep = call("shell.run", json!({"command": "sleep", "args": ["100"]}));
        let mut turns = Vec::new();
        if state != "planning" {
            turns.push(say("", &[write(test, text)]));
        }
        if state == "code_writing" {
            turns.push(say("", &[run_tests()]));
        }
        turns.push(say("", &[sleep]));
        let mut child =
            lab.command(&[], &turns).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut events = Vec::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
            if event["type"] == "tool.started" && event["tool"] == "shell.run" {
                let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
            }
            events.push(event);
        }
        assert_eq!(child.wait().unwrap().code(), Some(130), "{state}: {events:?}");
        assert_eq!(lab.snapshot(), before);
        let verified = lab.user.run(&["audit", "verify"]);
        assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    }
}
