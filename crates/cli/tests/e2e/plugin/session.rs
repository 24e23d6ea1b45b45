//! A model uses the tools of plugins beside our own, under the same rules.

use std::process::Stdio;

use serde_json::{Value, json};

use super::lab::{Lab, sdk};
use crate::program::{Answer, one_a_turn};

/// A task whose model calls these tools, one a turn.
fn task(lab: &Lab, calls: &[Value]) -> Answer {
    let path = lab.user.transcript(&one_a_turn(calls));
    let provider = format!("replay:{}", path.display());
    let args = [
        "run",
        "--json",
        "--provider",
        &provider,
        "--read-only",
        "--max-turns",
        "6",
        "look around",
    ];
    Answer::of(lab.user.command(&args).stdin(Stdio::null()).output().unwrap())
}

#[test]
fn plg_2_a_model_calls_a_plugins_tool_and_no_call_about_plugins() {
    let lab = Lab::new();
    lab.user.write("src/a.py", "# HACK soon\n");
    lab.install(&sdk().join("python/examples/todo"));
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let calls = [
        call("todo.find", json!({})),
        call("todo.find", json!({ "limit": 0 })),
        call("plugin.enable", json!({ "name": "todo" })),
        call("fs.list", json!({ "path": "src" })),
    ];
    let answer = task(&lab, &calls);
    let found = answer.finished("todo.find");
    assert_eq!(
        (&found["decision"], &found["success"]),
        (&json!("allowed"), &json!(true)),
        "{found:#}"
    );
    assert_eq!(answer.finished("plugin.enable")["decision"], "denied");
    assert_eq!(answer.finished("fs.list")["success"], true);
    let stages = ["REGISTERED", "LOADED", "ACTIVE", "UNLOADED"];
    assert_eq!(lab.recorded(), [&["installed"][..], &stages].concat());
    assert_eq!(lab.user.run(&["audit", "verify"]).code, 0);
}

#[test]
fn a_plugin_that_crashes_in_a_session_is_disabled_and_the_session_goes_on() {
    let lab = Lab::new();
    let dir = lab.user.project.path("frail");
    assert_eq!(lab.plugin(&["new", "frail", "--dir", dir.to_str().unwrap()]).code, 0);
    let main = std::fs::read_to_string(dir.join("main.py")).unwrap();
    let main = main.replace("    return {", "    import os\n    os._exit(7)\n    return {");
    std::fs::write(dir.join("main.py"), main).unwrap();
    lab.install(&dir);
    let greet = json!({ "name": "frail.greet", "arguments": { "name": "Ada" } });
    let answer = task(&lab, &[greet, json!({ "name": "fs.list", "arguments": { "path": "." } })]);
    let failed = answer.finished("frail.greet");
    assert_eq!(failed["success"], false);
    assert!(failed["error"].as_str().unwrap().contains("it is disabled now"), "{failed:#}");
    assert_eq!(answer.finished("fs.list")["success"], true);
    let shown = lab.done(&["show", "frail", "--json"]).json_lines().remove(0);
    assert_eq!((&shown["stage"], &shown["disabled"]["by"]), (&json!("DISABLED"), &json!("kernel")));
}
