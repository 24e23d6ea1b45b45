//! `fluffy demo` as a newcomer runs it.

use crate::program::User;

#[test]
fn the_demo_takes_a_task_to_a_commit_shows_the_gate_and_finds_a_forgery() {
    let user = User::new();
    let mut command = user.command(&["demo", "--language", "javascript"]);
    let temp = user.project.path("tmp");
    std::fs::create_dir(&temp).unwrap();
    let output = command.env("TMPDIR", &temp).stdin(std::process::Stdio::null()).output().unwrap();
    let (out, err) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{out}{err}");
    for part in [
        "denied fs.write",
        "code comes after a failing test",
        "commit ",
        "verified",
        "NOT VERIFIED",
    ] {
        assert!(out.contains(part), "{part}: {out}{err}");
    }
}

#[test]
fn a_language_that_is_not_there_is_named() {
    let user = User::new();
    let answer = user.run(&["demo", "--language", "cobol"]);
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("javascript"), "{}", answer.err);
}
