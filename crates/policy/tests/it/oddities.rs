//! What is warned of, with its line, and what is not.

use crate::judging::rules;

#[track_caller]
fn check(lines: &[&str], expected: &[&str]) {
    let policy = rules(lines);
    let told: Vec<_> = policy.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(told, expected);
    assert!(policy.warnings().iter().all(|warning| warning.place.is_some()));
}

#[test]
fn an_allow_that_is_always_denied_is_told() {
    check(
        &[
            "allow: { syscall: fs.write, path_glob: ['src/gen/**'] }",
            "deny: { syscall: fs.*, path_glob: ['src/**'] }",
        ],
        &[
            "policy.yaml:3:5: rule `r0`: it can never take effect: rule `r1`, policy.yaml:6 denies all \
           that it lets through",
        ],
    );
    check(
        &["deny: { syscall: '*' }", "require_review: { syscall: fs.write }"],
        &[
            "policy.yaml:6:5: rule `r1`: it can never take effect: rule `r0`, policy.yaml:3 denies all \
           that it lets through",
        ],
    );
}

#[test]
fn an_allow_that_is_always_reviewed_is_told() {
    check(
        &[
            "allow: { syscall: fs.write, path_glob: ['src/**'] }",
            "require_review: { syscall: fs.write, path_glob: ['**'] }",
        ],
        &[
            "policy.yaml:3:5: rule `r0`: it can never take effect: rule `r1`, policy.yaml:6 asks for a \
           review of all that it lets through",
        ],
    );
}

#[test]
fn a_rule_that_is_denied_in_part_is_not_told() {
    let parts: [&[&str]; 6] = [
        &["allow: { syscall: fs.* }", "deny: { syscall: fs.write }"],
        &["allow: { syscall: x, path_glob: ['**'] }", "deny: { syscall: x, path_glob: [a] }"],
        &["allow: { syscall: x }", "deny: { syscall: x, path_glob: ['**'] }"],
        &["allow: { syscall: x }", "deny: { syscall: x, actor: model }"],
        &["allow: { syscall: x }", "deny: { syscall: x };except: [{ actor: user }]"],
        &["deny: { syscall: x }", "deny: { syscall: x }"],
    ];
    for lines in parts {
        check(lines, &[]);
    }
}

#[test]
fn a_command_that_is_always_denied_is_told() {
    let lines = [
        "allow: { syscall: shell.run, command: [rm -r] }",
        "deny: { syscall: shell.run, command: [rm] }",
    ];
    assert_eq!(rules(&lines).warnings().len(), 1);
    let lines = [
        "allow: { syscall: shell.run, command: [rm] }",
        "deny: { syscall: shell.run, command: [rm -r] }",
    ];
    assert_eq!(rules(&lines).warnings().len(), 0);
}

#[test]
fn an_empty_list_of_globs_is_told() {
    check(
        &["deny: { syscall: fs.read, path_glob: [] }"],
        &[
            "policy.yaml:3:5: rule `r0`: an empty `path_glob` matches no path: the rule never applies",
        ],
    );
    check(
        &["deny: { syscall: fs.read };except: [{ path_glob: [] }]"],
        &["policy.yaml:3:5: rule `r0`: an exception with an empty `path_glob` never applies"],
    );
}

#[test]
fn an_exception_for_everything_is_told() {
    let never =
        "policy.yaml:3:5: rule `r0`: `except` covers all of `match`: the rule never applies";
    check(
        &["deny: { syscall: fs.read, path_glob: ['src/**'] };except: [{ path_glob: ['**'] }]"],
        &[never],
    );
    check(&["deny: { syscall: fs.read };except: [{ syscall: fs.* }]"], &[never]);
    check(&["deny: { syscall: fs.read };except: [{ syscall: fs.write }]"], &[]);
}

#[test]
fn a_call_that_is_probably_misspelt_is_told() {
    check(
        &["deny: { syscall: [fs.raed, fs.read] }"],
        &[
            "policy.yaml:3:5: rule `r0`: no tool of ours is called `fs.raed`; did you mean `fs.read`?",
        ],
    );
    check(&["deny: { syscall: my_plugin.do_it }"], &[]);
}

#[test]
fn a_rule_that_passes_is_told() {
    check(
        &["pass: { syscall: fs.read }"],
        &["policy.yaml:3:5: rule `r0`: a rule that passes has no effect"],
    );
}
