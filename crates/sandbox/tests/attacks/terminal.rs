//! Typing into the terminal of whoever started the sandbox.

use crate::case::attack;

#[test]
fn attack_70_nothing_can_be_typed_into_the_caller_s_terminal() {
    attack("type")
        .row("standard input", "EPERM|ENOTTY", "ok")
        .row("standard error", "EPERM|ENOTTY", "ok")
        .row("streams that are terminals", "[]", "[0, 2]")
        .row("the controlling terminal", "ENXIO|ENOENT|EACCES", "ok")
        .sandbox(|drive| drive.terminal = true)
        .control(|control| control.terminal = true)
        .stopped(|_, seen| assert_eq!(seen.typed, "", "breach"))
        .works(|_, seen| {
            assert!(seen.typed.contains("echo attacked"), "dead probe: {}", seen.typed)
        })
        .check();
}

#[test]
fn attack_71_calls_that_take_over_terminals_are_refused_on_its_own_too() {
    attack("terminal-calls")
        .row("a terminal of its own", "ok|none", "ok")
        .row("TIOCLINUX", "EPERM", "*")
        .row("TIOCSTI", "EPERM", "ok")
        .row("TIOCSTI with a high bit", "EPERM", "ok")
        .check();
}
