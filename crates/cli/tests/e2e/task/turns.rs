//! What works when: tasks in sandboxes as people see them, and calls that depend on each other.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use super::lab::{Lab, Language, call, say, write};

#[test]
fn sch_3_what_works_in_a_sandbox_is_listed_while_it_does() {
    let lab = Lab::new(Language::Python);
    let sleeps = call("shell.run", json!({"command": "sleep", "args": ["100"]}));
    let mut command = lab.command(&[], &[say("", &[sleeps])]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_started = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        event["type"] == "tool.started"
    };
    while !is_started(&lines.next().unwrap().unwrap()) {}
    // The session asks git about the project first, which is listed as well.
    let task = loop {
        let tasks = lab.user.run(&["session", "tasks", "--json"]).json_lines();
        if let Some(task) = tasks.into_iter().find(|task| task["name"] == "sleep") {
            break task;
        }
    };
    assert_eq!(task["state"], "running", "{task}");
    assert_eq!(
        (&task["template"], &task["priority"], &task["waits"]),
        (&json!("code-executor"), &json!(3), &Value::Null),
        "{task}"
    );
    let listed = lab.user.run(&["session", "tasks"]).out;
    assert!(listed.contains("Running  sleep in code-executor, priority 3, worked "), "{listed}");
    let status = lab.user.run(&["session", "status"]).out;
    assert!(status.contains("Running sleep in code-executor, priority 3, worked "), "{status}");
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    while lines.next().is_some() {}
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let nothing = lab.user.run(&["session", "tasks"]);
    assert_eq!(nothing.out, "nothing works in a sandbox or waits for one\n", "{}", nothing.err);
    assert_eq!(lab.user.run(&["session", "tasks", "--json"]).out, "");
}

#[test]
fn sch_2_code_is_not_written_in_a_turn_whose_test_was_not() {
    let lab = Lab::new(Language::Python);
    let missing = "test_that_is_not_there.py";
    let edit = call("fs.edit", json!({"path": missing, "old": "a", "new": "b"}));
    let code = write(lab.language.source(), &lab.language.solution());
    let mut turns = vec![say("Both at once.", &[edit, code])];
    turns.extend(lab.good_turns());
    let run = lab.run(&[], &turns);
    run.assert_done();
    let heard = lab.heard(&run);
    let expected = format!("dependency failed: `fs.edit` {missing} of the same turn");
    assert!(heard.contains(&expected), "{heard}");
    let first = run.answers("fs.write")[0];
    assert_eq!(first["decision"], "denied", "{first}");
}
