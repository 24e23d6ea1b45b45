//! `fluffy config init` and `fluffy policy check|explain|test|show|schema`.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use fluffy_policy::DEFAULT_POLICY;
use serde_json::{Value, json};

use crate::program::{Answer, User, echo};

const OWN: &str = ".fluffy/policy.yaml";

fn json_of(answer: &Answer) -> Value {
    assert_eq!(answer.err, "");
    serde_json::from_str(&answer.out).unwrap()
}

#[track_caller]
fn check(answer: &Answer, code: i32, parts: &[&str]) {
    let all = format!("{}{}", answer.out, answer.err);
    assert_eq!(answer.code, code, "{all}");
    for part in parts {
        assert!(all.contains(part), "{part} is not in: {all}");
    }
}

// --- config init ----------------------------------------------------------------------------------

#[test]
fn config_init_writes_the_shipped_policy_once_and_says_what_to_do_next() {
    let user = User::new();
    check(&user.run(&["config", "init"]), 0, &["Wrote .fluffy/policy.yaml", "policy check"]);
    assert_eq!(user.read(OWN), DEFAULT_POLICY);
    let mode = std::fs::metadata(user.project.root().join(OWN)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    user.write(OWN, "version: 1\n");
    let parts = ["ERROR: the project has a policy already", "Fix: ", "--force"];
    check(&user.run(&["config", "init"]), 1, &parts);
    assert_eq!(user.read(OWN), "version: 1\n");
    check(&user.run(&["config", "init", "--force"]), 0, &[]);
    assert_eq!(user.read(OWN), DEFAULT_POLICY);
    let files = std::fs::read_dir(user.project.root().join(".fluffy")).unwrap().count();
    assert_eq!(files, 1);
    check(&user.run(&["policy", "check", "--deny-warnings"]), 0, &["ok: 19 rules"]);
}

#[test]
fn config_init_writes_through_no_link() {
    let user = User::new();
    let elsewhere = user.project.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, user.project.root().join(".fluffy")).unwrap();
    check(&user.run(&["config", "init", "--force"]), 1, &["is a symbolic link", "Fix: "]);
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
    std::fs::remove_file(user.project.root().join(".fluffy")).unwrap();
    std::fs::create_dir(user.project.root().join(".fluffy")).unwrap();
    symlink(elsewhere.join("p"), user.project.root().join(OWN)).unwrap();
    check(&user.run(&["config", "init", "--force"]), 1, &["is a symbolic link"]);
    assert!(!elsewhere.join("p").exists());
}

// --- check ------------------------------------------------------------------------------------------

#[test]
fn check_names_file_line_and_column_of_an_error_and_a_fix() {
    let user = User::new();
    user.write(OWN, "jurisdiction:\n  allowed_actor: [user]\n");
    let parts = [".fluffy/policy.yaml:2:3: error: unknown key", "did you mean", "  fix: correct"];
    check(&user.run(&["policy", "check"]), 2, &parts);
    let told = user.run(&["policy", "check", "--json"]);
    assert_eq!(told.code, 2);
    let told = json_of(&told);
    assert_eq!((&told["ok"], &told["errors"][0]["line"]), (&json!(false), &json!(2)));
    for (text, part) in [
        ("version: 2\n", ":1:10: error: `version` cannot be the number 2"),
        ("a: [\n", "error:"),
        ("version: 1\nversion: 1\n", "stands twice"),
        (
            "capabilities:\n  - { name: a, match: { syscall: '*' } }\n",
            ":2:5: error: `capabilities[0].action` is missing",
        ),
        (
            "capabilities:\n  - { name: a, match: { syscall: fs.read }, action: deny, allows: [x] }\n",
            "the example says that `fs.read` on `x` is allowed, but the rules say deny",
        ),
    ] {
        let file = user.write("other.yaml", text);
        check(&user.run(&["policy", "check", file.to_str().unwrap()]), 2, &[part, "  fix: "]);
    }
    let file = user.project.root().join("bytes.yaml");
    std::fs::write(&file, b"version: 1\n# \xff\n").unwrap();
    check(
        &user.run(&["policy", "check", "bytes.yaml"]),
        2,
        &["bytes.yaml:2:3: error: the file is not UTF-8"],
    );
}

#[test]
fn check_warns_of_rules_that_never_apply_or_never_matter() {
    let user = User::new();
    user.write(
        OWN,
        "capabilities:
  - { name: empty, match: { syscall: fs.read, path_glob: [] }, action: allow }
  - { name: lifted, match: { syscall: fs.write, path_glob: ['a/**'] }, action: allow, except: [{ path_glob: ['a/**'] }] }
  - { name: shadowed, match: { syscall: fs.write, path_glob: ['b/c/**'] }, action: allow }
  - { name: shadow, match: { syscall: fs.*, path_glob: ['b/**'] }, action: deny }
  - { name: misspelt, match: { syscall: fs.wrte }, action: allow }
",
    );
    let parts = [
        ".fluffy/policy.yaml:2:5: warning: rule `empty`: an empty `path_glob`",
        ".fluffy/policy.yaml:3:5: warning: rule `lifted`: `except` covers all of `match`",
        ".fluffy/policy.yaml:4:5: warning: rule `shadowed`: it can never take effect: rule `shadow`",
        ".fluffy/policy.yaml:6:5: warning: rule `misspelt`: no tool of ours is called `fs.wrte`; did you mean `fs.write`?",
        "ok: 5 rules, 4 warnings",
    ];
    check(&user.run(&["policy", "check"]), 0, &parts);
    check(&user.run(&["policy", "check", "--deny-warnings"]), 1, &parts);
    let told = json_of(&user.run(&["policy", "check", "--json"]));
    assert_eq!(told["warnings"].as_array().unwrap().len(), 4);
    assert_eq!(
        (&told["warnings"][2]["line"], &told["warnings"][2]["column"]),
        (&json!(4), &json!(5))
    );
}

#[test]
fn a_policy_that_is_there_and_cannot_be_read_is_an_error_and_never_the_shipped_one() {
    let user = User::new();
    check(
        &user.run(&["policy", "check", "nowhere.yaml"]),
        1,
        &["cannot read `nowhere.yaml`", "Fix: "],
    );
    check(&user.run(&["policy", "check", "."]), 1, &["cannot read `.`"]);
    check(&user.run(&["policy", "check"]), 0, &["the shipped policy: ok"]);
    user.write(".fluffy/x", "");
    symlink("/nowhere/at/all", user.project.root().join(OWN)).unwrap();
    for args in [
        vec!["policy", "check"],
        vec!["policy", "show"],
        vec!["policy", "explain", "fs.read", "a"],
        vec!["kernel", "submit", "--json"],
        vec!["kernel", "halt"],
    ] {
        check(&user.run(&args), 1, &["cannot read", "policy.yaml"]);
    }
    std::fs::remove_dir_all(user.project.root().join(".fluffy")).unwrap();
    user.write(".fluffy", "a file instead of a folder");
    check(&user.run(&["policy", "show"]), 1, &["cannot read"]);
}

// --- explain ----------------------------------------------------------------------------------------

#[test]
fn explain_tells_the_decision_the_rule_the_reason_and_every_rule_that_looked() {
    let user = User::new();
    user.run(&["config", "init"]);
    let answer = user.run(&["policy", "explain", "fs.write", "src/../.env"]);
    check(
        &answer,
        0,
        &[
            "deny  fs.write on .env, by model",
            "decided by rule `secrets`, .fluffy/policy.yaml:",
            "because The file is likely to hold a secret",
            "allowed instead: the rule excepts",
            "change-project            .env: applies and allows",
            "review-build-and-delivery  .env: does not apply: `path_glob` differs",
            "secrets                   .env: applies and denies",
        ],
    );
    let excepted = user.run(&["policy", "explain", "fs.read", ".env.example"]);
    check(&excepted, 0, &["allow  fs.read", ".env.example: does not apply: it is excepted"]);
    let told = json_of(&user.run(&["policy", "explain", "--json", "fs.edit", "Cargo.toml"]));
    assert_eq!(
        (&told["decision"], &told["rule"]),
        (&json!("review"), &json!("review-build-and-delivery"))
    );
    assert_eq!(told["place"]["file"], OWN);
    assert!(told["looks"].as_array().unwrap().len() >= 3);
    let built_in = user.run(&["policy", "explain", "fs.write", ".Fluffy/policy.yaml"]);
    check(&built_in, 0, &["deny", "decided by rule `builtin.policy-files` (built_in)"]);
    let stranger = user.run(&["policy", "explain", "fs.read", "a", "--actor", "mallory"]);
    check(&stranger, 0, &["deny", "Actor 'mallory' is not in allowed actors"]);
}

#[test]
fn explain_takes_tags_modes_states_and_commands_into_account() {
    let user = User::new();
    user.write(
        "p.yaml",
        "jurisdiction: { allowed_actors: ['*'], allowed_tools: ['*'] }
capabilities:
  - name: narrow
    match: { syscall: shell.run, caller_tag: core_plugin, session_mode: strict, workflow_state: planning, command: cargo test }
    action: allow
",
    );
    let base = ["policy", "explain", "--policy", "p.yaml", "shell.run"];
    let told = |more: &[&str]| user.run(&[&base[..], more].concat());
    let options = [
        "--tag",
        "core_plugin",
        "--mode",
        "strict",
        "--state",
        "planning",
        "--command",
        "cargo test --all",
    ];
    check(&told(&options), 0, &["allow  shell.run", "by rule `narrow`, p.yaml:3"]);
    for (at, key) in [(0, "caller_tag"), (2, "session_mode"), (4, "workflow_state"), (6, "command")]
    {
        let mut fewer = options.to_vec();
        fewer.drain(at..at + 2);
        check(&told(&fewer), 0, &["deny  shell.run", &format!("`{key}` differs")]);
    }
}

#[test]
fn explain_reads_a_request_as_the_kernel_does() {
    let user = User::new();
    let request = r#"{"request_id":"r","ts_ms":1,"actor":"model","intent":"x","tool_call":{"name":"fs.write","params":{"path":"a/../Cargo.toml","content":"x"}}}"#;
    let file = user.write("request.json", request);
    let from_file = user.run(&["policy", "explain", "--request", file.to_str().unwrap()]);
    check(&from_file, 0, &["review  fs.write on Cargo.toml, by model"]);
    let from_stdin = user.run_with(&["policy", "explain", "--request", "-"], request.as_bytes());
    assert_eq!(from_stdin.out, from_file.out);
    let out = request.replace("a/../Cargo.toml", "../x");
    let told = user.run_with(&["policy", "explain", "--request", "-"], out.as_bytes());
    check(&told, 0, &["deny", "argument `path`: path `../x` leads out of the project"]);
    let unknown = request.replace("fs.write", "plugin.tool");
    let told = user.run_with(&["policy", "explain", "--request", "-"], unknown.as_bytes());
    check(&told, 0, &["deny", "note: `plugin.tool` is no tool of ours"]);
    let told = user.run_with(&["policy", "explain", "--request", "-"], b"{");
    check(&told, 2, &["ERROR: the request cannot be read", "Fix: "]);
    assert_eq!(user.run(&["policy", "explain"]).code, 2);
    assert_eq!(user.run(&["policy", "explain", "fs.read", "a", "--request", "r.json"]).code, 2);
    check(&user.run(&["policy", "explain", "--request", "nowhere"]), 1, &["cannot read"]);
    check(&user.run(&["policy", "explain", "fs.read", "/etc/passwd"]), 0, &["deny", "is absolute"]);
}

#[test]
fn an_explanation_and_the_kernel_come_to_the_same_decision() {
    let user = User::new();
    for (call, params) in [("echo", r#"{"text":"x"}"#), ("add", r#"{"a":1,"b":2}"#)] {
        for actor in ["user", "model", "mallory"] {
            let request = format!(
                r#"{{"request_id":"r","ts_ms":1,"actor":"{actor}","intent":"x","tool_call":{{"name":"{call}","params":{params}}}}}"#
            );
            let receipt = user.submit(&[], &[&request]).remove(0);
            let args = ["policy", "explain", "--json", "--request", "-"];
            let told = json_of(&user.run_with(&args, request.as_bytes()));
            let decision = told["decision"].as_str().unwrap().to_uppercase();
            assert_eq!(
                (json!(decision), &told["rule"]),
                (receipt["decision"].clone(), &receipt["rule"])
            );
        }
    }
}

#[test]
fn parts_of_the_system_that_lie_in_the_project_are_kept() {
    let user = User::new();
    let state = user.project.root().join("own/state");
    let program = user.project.root().join("bin/fluffy");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_fluffy"), &program).unwrap();
    let told = |args: &[&str]| {
        let mut command = std::process::Command::new(&program);
        command.args(["policy", "explain", "--json"]).args(args).env_clear();
        command.env("XDG_STATE_HOME", &state).current_dir(user.project.root());
        let output = command.output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    for (args, rule) in [
        (["fs.read", "own/state/fluffy/keys/x.key"], "builtin.state"),
        (["fs.write", "own/state/fluffy/keys/x.key"], "builtin.state"),
        (["fs.delete", "own"], "builtin.ledger"),
        (["fs.write", "bin/fluffy"], "builtin.kernel"),
        (["fs.delete", "bin"], "builtin.kernel"),
    ] {
        let told = told(&args);
        assert_eq!((&told["decision"], &told["rule"]), (&json!("deny"), &json!(rule)), "{told}");
    }
    assert_eq!(told(&["fs.read", "bin/fluffy"])["decision"], "allow");
    // And nobody works in the middle of the state.
    let inside = user.project.state().join("fluffy/project");
    std::fs::create_dir_all(&inside).unwrap();
    let refused = user.run(&["-C", inside.to_str().unwrap(), "kernel", "submit", "--json"]);
    check(&refused, 2, &["cannot use", "it lies where the ledger and its keys are kept"]);
}

// --- test, show, schema -----------------------------------------------------------------------------

#[test]
fn test_runs_the_cases_beside_the_policy() {
    let user = User::new();
    let missing = ["ERROR: there are no cases at `.fluffy/policy-tests.yaml`", "Fix: write some"];
    check(&user.run(&["policy", "test"]), 2, &missing);
    let shipped = include_str!("../../../../examples/policy/policy-tests.yaml");
    user.write(".fluffy/policy-tests.yaml", shipped);
    check(
        &user.run(&["policy", "test"]),
        0,
        &["ok      secrets are not read", "18 passed, 0 failed"],
    );
    user.write(
        "t.yaml",
        "cases:
  - { name: good, syscall: echo, expect: allow }
  - { name: bad, syscall: fs.read, path: .env, expect: allow }
",
    );
    let parts = [
        "ok      good",
        "FAILED  bad",
        "t.yaml:3: expected allow, the rules say deny",
        "1 passed, 1 failed",
    ];
    check(&user.run(&["policy", "test", "t.yaml"]), 1, &parts);
    user.write("t.yaml", "cases:\n  - { name: good, syscal: echo }\n");
    let parts = ["t.yaml:2:19: unknown key `cases[0].syscal`: did you mean `syscall`?", "Fix: "];
    check(&user.run(&["policy", "test", "t.yaml"]), 2, &parts);
    user.write("p.yaml", "version: 1\n");
    user.write("t.yaml", "cases: [{ name: a, syscall: echo, expect: deny }]\n");
    check(&user.run(&["policy", "test", "t.yaml", "--policy", "p.yaml"]), 0, &["of p.yaml"]);
}

#[test]
fn show_tells_what_is_in_force_and_where_it_comes_from() {
    let user = User::new();
    check(&user.run(&["policy", "show"]), 0, &["Policy   the shipped policy", "builtin.ledger"]);
    let shipped = json_of(&user.run(&["policy", "show", "--json"]));
    assert_eq!(shipped["from"], "shipped");
    user.write(
        OWN,
        "jurisdiction: { allowed_actors: [user], allowed_tools: ['*'] }
capabilities:
  - { name: one, match: { syscall: fs.*, path_glob: ['src/**'] }, action: deny }
network_whitelist: { crates: [index.crates.io] }
",
    );
    let text = user.run(&["policy", "show"]);
    check(&text, 0, &["one  deny            fs.*  src/**  line 3", "crates  index.crates.io"]);
    let own = json_of(&user.run(&["policy", "show", "--json"]));
    assert_eq!((&own["from"], &own["file"]), (&json!("file"), &json!(OWN)));
    assert_eq!(own["rules"][0]["path_globs"], json!(["src/**"]));
    assert_ne!(own["digest"], shipped["digest"]);
    user.write(OWN, "nonsense: 1\n");
    check(&user.run(&["policy", "show"]), 2, &[".fluffy/policy.yaml:1:1: unknown key"]);
}

#[test]
fn schema_is_written_for_editors() {
    let told = json_of(&User::new().run(&["policy", "schema"]));
    assert!(jsonschema::draft202012::meta::is_valid(&told));
    assert_eq!(told["$schema"], "https://json-schema.org/draft/2020-12/schema");
}

// --- every command that boots a kernel --------------------------------------------------------------

#[test]
fn every_command_that_boots_a_kernel_tells_of_a_damaged_ledger() {
    for args in [
        &["kernel", "halt"][..],
        &["audit", "rotate-key"],
        &["kernel", "submit", "--json"],
        &["policy", "update", "new.yaml", "--yes"],
    ] {
        let user = User::new();
        user.write("new.yaml", DEFAULT_POLICY);
        user.submit(&[], &[&echo("r", "hi")]);
        std::fs::write(user.ledger_dir().join("ledger/0001.db"), "garbage").unwrap();
        check(&user.run(args), 0, &["WARNING: the ledger was damaged", "Fix: the damaged file"]);
    }
}
