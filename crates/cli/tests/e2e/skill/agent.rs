//! Our own loop as a builder: what a model writes by calls is judged, compared and held against the allowlist like any build.

use serde_json::{Value, json};

use super::lab::{Forge, NAME, SKILL, SKILL_FILE, TEST_FILE, TESTS};
use crate::models::{KEY, Server, settings};
use crate::program::Answer;
use crate::task::lab::{call, complete, run_tests, say, write};

/// A turn with these calls.
fn turn(calls: &[Value]) -> Value {
    say("", calls)
}

/// Has the proposed skill built by a model that says this.
fn built(forge: &Forge, turns: &[Value], options: &[&str]) -> Answer {
    let path = forge.user.project.path("model.jsonl");
    let mut text = "{\"v\":1,\"kind\":\"transcript\"}\n".to_owned();
    for turn in turns {
        text += &format!("{turn}\n");
    }
    std::fs::write(&path, text).unwrap();
    let provider = format!("replay:{}", path.display());
    let mut args = vec!["build", NAME, "--builder", "agent", "--provider", &provider, "--json"];
    args.extend(options);
    forge.skill(&args)
}

/// Has it built by the model of a server, the user's own provider.
fn served(forge: &Forge, server: &Server) -> Answer {
    let config = settings(&forge.user, server, "");
    let mut command = forge.command(&["skill", "build", NAME, "--builder", "agent", "--json"]);
    command.env("XDG_CONFIG_HOME", config).env("WORK_KEY", KEY);
    Answer::of(command.stdin(std::process::Stdio::null()).output().unwrap())
}

/// Why the build failed.
#[track_caller]
fn failed(answer: &Answer, kind: &str) -> String {
    assert_eq!(answer.code, 1, "{}{}", answer.out, answer.err);
    let built: Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(built["end"]["failed"]["kind"], kind, "{built:#}");
    built["end"]["failed"]["why"].as_str().unwrap().to_owned()
}

#[test]
fn for_4_a_model_writes_a_skill_by_calls_asks_the_gates_and_it_becomes_trusted() {
    let forge = Forge::new();
    forge.proposed();
    forge.user.write("src/notes.py", "VAULT = 'notes'\n");
    forge.user.write(".env", "TOKEN=hidden-from-builders\n");
    let wrong = SKILL.replace("target.name}", "1}");
    let turns = [
        turn(&[
            call("fs.list", json!({})),
            call("fs.read", json!({ "path": "src/notes.py" })),
            call("fs.read", json!({ "path": ".env" })),
            write(SKILL_FILE, &wrong),
            write(TEST_FILE, TESTS),
        ]),
        turn(&[run_tests()]),
        turn(&[write(SKILL_FILE, SKILL), call("fs.read", json!({ "path": SKILL_FILE }))]),
        turn(&[run_tests()]),
        complete(),
    ];
    let answer = built(&forge, &turns, &[]);
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    let (shown, _) = forge.json(&["show", NAME]);
    let builder = shown["builds"][0]["attempt"]["builder"].as_str().unwrap();
    assert!(builder.starts_with("agent:replay"), "{builder}");
    assert!(!forge.root().join(SKILL_FILE).exists(), "nothing is in the project before the gates");
    // Each call is a request of the model's, and each turn is in the ledger before them.
    let log = forge.user.run(&["audit", "log", "--json", "--limit", "1000"]).json_lines();
    let of = |tool: &str| log.iter().filter(|entry| entry["tool_name"] == tool).count();
    assert_eq!((of("fs.write"), of("test.run"), of("task.complete")), (6, 4, 2), "{log:#?}");
    let turns = log.iter().filter(|entry| entry["detail"]["event"] == "ai_turn");
    assert_eq!(turns.count(), 5, "{log:#?}");
    let denied = log.iter().filter(|it| it["decision"] == "DENY" && it["tool_name"] == "fs.read");
    assert_eq!(denied.count(), 1, "the policy holds for builders, too");
    forge.done(&["verify", NAME]);
    assert_eq!(forge.user.read(SKILL_FILE), SKILL);
    assert_eq!(forge.agreeing(&["skill", "promote", NAME]).code, 0);
    assert_eq!(forge.run_it().code, 0);
    assert_eq!(forge.user.run(&["audit", "verify"]).code, 0);
}

#[test]
fn for_4_a_model_that_writes_elsewhere_or_asks_for_more_is_refused_and_leaves_nothing() {
    let forge = Forge::new();
    forge.proposed();
    let policy = call("policy.update", json!({ "policy": "version: 1" }));
    let turns = [
        turn(&[
            write("src/evil.py", "x = 1\n"),
            write(".fluffy/policy.yaml", "version: 1\n"),
            write(".fluffy/skills/registry.yaml", "version: 1\n"),
            write(".git/hooks/pre-commit", "#!/bin/sh\n"),
            write("../outside", "x"),
        ]),
        turn(&[
            policy,
            call("forge.promote", json!({ "name": NAME, "verification": "" })),
            call("shell.run", json!({ "command": "id" })),
            call("skill.write_note", json!({})),
        ]),
        complete(),
    ];
    let why = failed(&built(&forge, &turns, &[]), "BUILD_ERROR");
    assert!(why.contains("`.fluffy/skills/write_note.py` is not written"), "{why}");
    for path in ["src", "../outside", ".fluffy/policy.yaml", ".fluffy/skills/registry.yaml"] {
        assert!(!forge.root().join(path).exists(), "{path}");
    }
    assert_eq!(forge.standing(), "PROPOSED");
    let log = forge.user.run(&["audit", "log", "--json", "--limit", "1000"]).json_lines();
    let reviewed = log.iter().any(|it| it["detail"]["event"] == "human_decision");
    assert!(!reviewed, "nobody is asked about what is not offered: {log:#?}");
    // The next attempt is told of it, and one that keeps to its files succeeds.
    let turns = [turn(&[write(SKILL_FILE, SKILL), write(TEST_FILE, TESTS)]), complete()];
    let answer = built(&forge, &turns, &[]);
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    assert_eq!(forge.standing(), "BUILT");
}

#[test]
fn for_4_a_model_that_never_finishes_or_passes_a_cap_has_built_nothing() {
    let forge = Forge::new();
    forge.proposed();
    let again = turn(&[call("fs.list", json!({}))]);
    let turns: Vec<_> = std::iter::repeat_n(again, 9).collect();
    let why = failed(&built(&forge, &turns, &["--max-turns", "4"]), "BUILD_ERROR");
    assert!(why.contains("the cap of 4 turns"), "{why}");
    let why = failed(&built(&forge, &turns, &["--max-tokens", "2000"]), "BUILD_ERROR");
    assert!(why.contains("the cap of 2000 tokens"), "{why}");
    // Tests without end: the look of the gates is still on when the build's time is over.
    let endless = format!("{TESTS}\n\ndef test_ends() -> None:\n    while True:\n        pass\n");
    let files = turn(&[write(SKILL_FILE, SKILL), write(TEST_FILE, &endless)]);
    let turns = [files, turn(&[run_tests()]), complete()];
    let why = failed(&built(&forge, &turns, &["--timeout", "1s"]), "TIMEOUT");
    assert!(why.contains("longer than it may"), "{why}");
    assert_eq!(forge.standing(), "PROPOSED");
}

#[test]
fn for_4_a_provider_that_fails_or_says_too_little_fails_the_build() {
    let forge = Forge::new();
    forge.proposed();
    let why = failed(&built(&forge, &[turn(&[write(SKILL_FILE, SKILL)])], &[]), "BUILD_ERROR");
    assert!(why.contains("transcript ended"), "{why}");
    // A server that has nothing to say.
    let why = failed(&served(&forge, &Server::remembering(Vec::new())), "BUILD_ERROR");
    assert!(why.contains("the provider failed"), "{why}");
    assert!(!why.contains(KEY), "{why}");
    assert_eq!(forge.standing(), "PROPOSED");
}

#[test]
fn for_4_the_model_of_a_provider_builds_from_its_sandbox() {
    let forge = Forge::new();
    forge.proposed();
    let turns = vec![turn(&[write(SKILL_FILE, SKILL), write(TEST_FILE, TESTS)]), complete()];
    let answer = served(&forge, &Server::remembering(turns));
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    let (shown, _) = forge.json(&["show", NAME]);
    assert_eq!(shown["builds"][0]["attempt"]["builder"], "agent:work/big");
    assert!(!shown.to_string().contains(KEY));
    forge.done(&["verify", NAME]);
}

#[test]
fn a_builders_model_is_named_as_that_of_a_task_is() {
    let forge = Forge::new();
    forge.proposed();
    for (args, words) in [
        (&["--builder", "agent"][..], "no provider"),
        (&["--provider", "nobody"], "nobody"),
        (&["--provider", "replay:/nowhere"], "/nowhere"),
        (&["--builder", "codex", "--provider", "anthropic"], "takes no model"),
        (&["--builder", "nobody"], "`agent`"),
    ] {
        let mut all = vec!["build", NAME];
        all.extend(args);
        let answer = forge.skill(&all);
        assert_eq!(answer.code, 2, "{args:?}: {}{}", answer.out, answer.err);
        assert!(answer.err.contains(words), "{args:?}: {}", answer.err);
    }
    assert_eq!(forge.standing(), "PROPOSED");
}
