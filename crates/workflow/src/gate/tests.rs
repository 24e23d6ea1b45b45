//! What is writable where, as a table, and what the gate says.

use fluffy_base::{Json, KernelRequest, KernelState, ToolCall};
use fluffy_policy::{Strength, Subject};
use serde_json::json;

use super::*;
use crate::event::{Change, Event};
use crate::exemption::Exempt;

/// One row a state, one column a kind of file: `w` writable, `e` if exempt, `-` never.
fn table(mode: Mode, access: Access) -> String {
    let kinds = [PathKind::Test, PathKind::Lookalike, PathKind::Source, PathKind::Other];
    let mut text = format!("{:<22}", format!("{mode}:"));
    kinds.iter().for_each(|kind| text += &format!("{:<11}", kind.name()));
    for state in State::ALL {
        text += &format!("\n{state:<22}");
        for kind in kinds {
            let writable = |exempt| Standing { state, mode, access }.writable(kind, exempt);
            let cell = match (writable(Exempt::No), writable(Exempt::Yes)) {
                (Writable::Yes, Writable::Yes) => "w",
                (Writable::No(_), Writable::Yes) => "e",
                (Writable::No(_), Writable::No(_)) => "-",
                odd => panic!("{odd:?}"),
            };
            text += &format!("{cell:<11}");
        }
    }
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[test]
fn strict_mode_lets_exactly_this_be_written() {
    insta::assert_snapshot!(table(Mode::Strict, Access::Write), @r"
    strict:               test       lookalike  source     other
    idle                  -          -          -          -
    planning              -          -          e          e
    test_writing          w          -          e          e
    code_writing          -          -          w          w
    validating            -          -          -          -
    reviewing             -          -          -          -
    committing            -          -          -          -
    exploring             -          -          e          e
    retroactive_testing   w          -          e          e
    ");
}

#[test]
fn explore_mode_lets_exactly_this_be_written() {
    insta::assert_snapshot!(table(Mode::Explore, Access::Write), @r"
    explore:              test       lookalike  source     other
    idle                  -          -          -          -
    planning              -          -          e          e
    test_writing          w          -          e          e
    code_writing          -          -          w          w
    validating            -          -          -          -
    reviewing             -          -          -          -
    committing            -          -          -          -
    exploring             w          w          w          w
    retroactive_testing   w          -          e          e
    ");
}

#[test]
fn debug_mode_lets_the_same_be_written_as_explore() {
    let body = |mode| table(mode, Access::Write).split_once('\n').unwrap().1.to_owned();
    assert_eq!(body(Mode::Debug), body(Mode::Explore));
}

#[test]
fn a_read_only_session_lets_nothing_be_written() {
    for mode in Mode::ALL {
        let table = table(mode, Access::ReadOnly);
        let rows = table.lines().skip(1);
        assert!(rows.flat_map(|row| row.split_whitespace().skip(1)).all(|cell| cell == "-"));
    }
}

fn request(tool: &str, params: Value) -> KernelRequest {
    KernelRequest {
        request_id: "1".to_owned(),
        ts_ms: 0,
        actor: "model".to_owned(),
        intent: "work".to_owned(),
        tool_call: Some(ToolCall { name: tool.to_owned(), params: Json::new(params).unwrap() }),
        params: None,
        evidence: None,
    }
}

fn subject(paths: &[&str], root: bool) -> Subject {
    let paths = paths.iter().map(|path| ProjectPath::parse(path).unwrap()).collect();
    Subject { paths, root, changes: true, ..Subject::default() }
}

fn ask(workflow: &Workflow, tool: &str, params: Value, subject: &Subject) -> Verdict {
    let conventions = Conventions::default();
    let request = request(tool, params);
    let facts = Facts::new(&request, KernelState::Idle).about(subject);
    Gate::new(workflow, &conventions).judge(&facts)
}

fn writing(mode: Mode) -> Workflow {
    let events = [Event::TaskStarted, Event::PlanCompleted];
    Workflow::restore(mode, Access::Write, events).unwrap()
}

#[test]
fn a_denial_says_where_why_and_what_instead() {
    let verdict =
        ask(&writing(Mode::Strict), "fs.write", json!({}), &subject(&["src/a.rs"], false));
    let reason = verdict.reasons().unwrap().primary().clone();
    assert_eq!(
        reason.text(),
        "`src/a.rs` is not writable in `test_writing` (strict mode): no test of this task has failed \
         yet, and code comes after a failing test"
    );
    assert_eq!((reason.layer(), reason.rule()), (Layer::Workflow, WRITABLE));
    assert!(reason.hint().unwrap().contains("`test.run`"));
}

#[test]
fn every_path_of_a_call_is_judged() {
    let ask = |paths: &[&str]| {
        ask(&writing(Mode::Strict), "fs.write", json!({}), &subject(paths, false)).strength()
    };
    assert_eq!(ask(&["tests/a.rs"]), Strength::Pass);
    assert_eq!(ask(&["./tests//b.rs", "tests/x/../c.rs"]), Strength::Pass);
    assert_eq!(ask(&["tests/a.rs", "src/a.rs"]), Strength::Deny);
    assert_eq!(ask(&["tests/../src/a.rs"]), Strength::Deny);
}

#[test]
fn a_change_of_the_whole_project_or_of_nobody_knows_what_needs_everything_writable() {
    for (root, mode, expected) in [
        (true, Mode::Strict, Strength::Deny),
        (false, Mode::Strict, Strength::Deny),
        (true, Mode::Explore, Strength::Pass),
    ] {
        let verdict = ask(&writing(mode), "fs.delete", json!({}), &subject(&[], root));
        assert_eq!(verdict.strength(), expected, "{root} {mode}");
    }
}

#[test]
fn a_call_that_changes_nothing_is_not_the_gates_concern() {
    let reading = Subject { changes: false, ..subject(&["src/a.rs"], true) };
    assert_eq!(ask(&writing(Mode::Strict), "fs.read", json!({}), &reading), Verdict::Pass);
}

#[test]
fn a_commit_waits_for_its_approval() {
    let none = Subject::default();
    let mut workflow = writing(Mode::Explore);
    let commit = |workflow: &Workflow| ask(workflow, "git.commit", json!({}), &none).strength();
    assert_eq!(commit(&workflow), Strength::Deny);
    let path = ProjectPath::parse("src/a.rs").unwrap();
    let change = Change { path, kind: PathKind::Source, type_only: false };
    let run = crate::run::TestRun::new(crate::run::Extent::Whole, []).unwrap();
    for event in [
        Event::FilesChanged(vec![change]),
        Event::CodeCompleted,
        Event::TestsRan(run),
        Event::ReviewAnswered(crate::event::Answer::Approved),
    ] {
        workflow.apply(event).unwrap();
    }
    assert_eq!(commit(&workflow), Strength::Pass);
}

#[test]
fn containers_are_for_debug_mode_and_a_person() {
    let ask =
        |mode| ask(&writing(mode), "container.run", json!({}), &Subject::default()).strength();
    assert_eq!(ask(Mode::Strict), Strength::Deny);
    assert_eq!(ask(Mode::Explore), Strength::Deny);
    assert_eq!(ask(Mode::Debug), Strength::Review);
}

#[test]
fn leaving_tests_behind_takes_a_person() {
    let idle = Workflow::new(Mode::Strict, Access::Write);
    let begun = writing(Mode::Strict);
    let ask = |workflow: &Workflow, params: Value| {
        ask(workflow, "session.set_mode", params, &Subject::default()).strength()
    };
    assert_eq!(ask(&idle, json!({ "mode": "explore" })), Strength::Pass);
    assert_eq!(ask(&idle, json!({ "mode": "debug" })), Strength::Review);
    assert_eq!(ask(&begun, json!({ "mode": "explore" })), Strength::Review);
    assert_eq!(ask(&begun, json!({ "mode": "strict" })), Strength::Pass);
    for odd in [json!({}), json!({ "mode": "Debug" }), json!({ "mode": ["debug"] })] {
        assert_eq!(ask(&idle, odd), Strength::Deny);
    }
}
