//! `fluffy kernel halt`: of a running kernel, and between runs.

use std::io::{BufRead as _, BufReader, Write as _};

use serde_json::Value;

use crate::program::{User, echo};

#[test]
fn a_halt_holds_until_a_person_begins_a_new_session() {
    let user = User::new();
    user.submit(&[], &[&echo("r1", "hi")]);
    let halted = user.run(&["kernel", "halt", "enough"]);
    assert_eq!(halted.code, 0, "{}", halted.err);
    let receipts = user.submit(&[], &[&echo("r2", "hi")]);
    assert_eq!(receipts[0]["decision"], "HALT");
    assert_eq!(receipts[0]["status"], "REJECTED");
    assert_eq!(receipts[0]["error"], "Kernel is halted: enough");
    let again = user.run(&["kernel", "halt"]);
    assert!(again.out.contains("already halted"), "{}", again.out);
    let receipts = user.submit(&["--new-session"], &[&echo("r3", "hi")]);
    assert_eq!(receipts[0]["decision"], "ALLOW");
    assert_eq!(user.run(&["audit", "verify"]).code, 0);
}

#[test]
fn a_running_kernel_is_halted_at_once_from_another_terminal() {
    let user = User::new();
    let mut running = user.start(&["kernel", "submit", "--json"]);
    let mut stdin = running.stdin.take().unwrap();
    let mut stdout = BufReader::new(running.stdout.take().unwrap());
    let mut answer = |stdin: &mut dyn std::io::Write, id: &str| -> Value {
        writeln!(stdin, "{}", echo(id, "hello")).unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    assert_eq!(answer(&mut stdin, "before")["decision"], "ALLOW");
    let halted = user.run(&["kernel", "halt", "stop it"]);
    assert_eq!(halted.code, 0, "{}", halted.err);
    assert!(halted.out.contains("running kernel"), "{}", halted.out);
    assert_eq!(answer(&mut stdin, "after")["decision"], "HALT");
    drop(stdin);
    assert!(running.wait().unwrap().success());
    assert_eq!(user.run(&["audit", "verify"]).code, 0);
}

#[test]
fn a_kernel_that_was_killed_leaves_a_ledger_that_verifies_and_goes_on() {
    let user = User::new();
    let mut running = user.start(&["kernel", "submit", "--json"]);
    let mut stdin = running.stdin.take().unwrap();
    let mut stdout = BufReader::new(running.stdout.take().unwrap());
    writeln!(stdin, "{}", echo("one", "hello")).unwrap();
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    running.kill().unwrap();
    running.wait().unwrap();
    let receipt: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(user.run(&["audit", "verify"]).code, 0);
    let log = user.run(&["audit", "log", "--json", "--tool", "echo"]).json_lines();
    assert_eq!(log[0]["entry_hash"], receipt["evidence_hash"]);
    let next = user.submit(&[], &[&echo("two", "hello")]);
    assert_eq!(next[0]["decision"], "ALLOW");
}
