//! A model uses a trusted skill as a tool, under the same rules.

use std::process::Stdio;

use serde_json::{Value, json};

use super::lab::{Forge, NAME};
use crate::program::{Answer, one_a_turn, typing};

/// A task whose model calls these tools, one a turn.
fn task(forge: &Forge, calls: &[Value]) -> std::process::Command {
    let path = forge.user.transcript(&one_a_turn(calls));
    let provider = format!("replay:{}", path.display());
    let mode = ["--mode", "explore", "--max-turns", "3"];
    let mut args = vec!["run", "--json", "--provider", &provider];
    args.extend(mode);
    args.push("write a note");
    forge.command(&args)
}

#[test]
fn for_13_a_model_uses_a_trusted_skill_if_the_person_agrees() {
    let forge = Forge::trusting();
    let tool = format!("skill.{NAME}");
    let call = json!({ "name": tool, "arguments": { "title": "model", "text": "hi" } });
    // What a skill writes is written as anything is: not while the work is planned.
    let planned = json!({ "name": "plan.complete", "arguments": { "summary": "write it" } });
    let early = task(&forge, std::slice::from_ref(&call)).stdin(Stdio::null()).output().unwrap();
    assert_eq!(Answer::of(early).finished(&tool)["rule"], "workflow.writable");
    let calls = [planned, call];
    let alone = task(&forge, &calls).stdin(Stdio::null()).output().unwrap();
    let denied = Answer::of(alone).finished(&tool);
    assert_eq!(denied["decision"], "denied", "{denied:#}");
    assert!(!forge.root().join("notes/model.md").exists());
    let agreed = typing(task(&forge, &calls), "y\ny\n").finished(&tool);
    assert_eq!((&agreed["decision"], &agreed["success"]), (&json!("allowed"), &json!(true)));
    assert_eq!(forge.user.read("notes/model.md"), "hi");
    let log = forge.done(&["log", "--json"]).json_lines();
    assert_eq!(log.len(), 1, "its run is recorded as any other");
}

#[test]
fn a_model_takes_no_step_of_a_skills_way() {
    let forge = Forge::new();
    forge.verified();
    for (tool, arguments) in [
        ("forge.promote", json!({ "name": NAME, "verification": "x" })),
        ("forge.propose", json!({ "spec": {} })),
        ("forge.revoke", json!({ "name": NAME, "why": "x" })),
    ] {
        let call = json!({ "name": tool, "arguments": arguments });
        let answer = typing(task(&forge, &[call]), "y\n");
        let denied = answer.finished(tool);
        assert_eq!(denied["decision"], "denied", "{denied:#}");
    }
    assert_eq!(forge.standing(), "VERIFIED");
}
