//! `fluffy kernel submit`, with good and bad input.

use std::io::{BufRead as _, BufReader, Write as _};

use serde_json::Value;

use crate::program::{User, echo, request};

fn decisions(receipts: &[Value]) -> Vec<String> {
    let text = |receipt: &Value, key: &str| receipt[key].as_str().unwrap().to_owned();
    receipts.iter().map(|r| format!("{} {}", text(r, "decision"), text(r, "status"))).collect()
}

#[test]
fn the_recorded_strict_session_gets_the_same_decisions() {
    let text = include_str!("../../../../tests/fixtures/kernels/strict-session.json");
    let session: Value = serde_json::from_str(text).unwrap();
    let user = User::new();
    let policy = user.project.path("policy.yaml");
    let policy_text = format!("jurisdiction: {}\n", session["policy"]);
    std::fs::write(&policy, policy_text).unwrap();
    let steps = session["steps"].as_array().unwrap();
    let lines: Vec<_> = steps.iter().map(|step| step["request"].to_string()).collect();
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    let receipts = user.submit(&["--policy", policy.to_str().unwrap()], &lines);
    let recorded: Vec<_> = steps.iter().map(|step| step["receipt"].clone()).collect();
    assert_eq!(decisions(&receipts), decisions(&recorded));
    for (ours, theirs) in receipts.iter().zip(&recorded) {
        assert_eq!(ours["tool_result"], theirs["tool_result"]);
    }
}

#[test]
fn a_receipt_is_written_before_the_next_request_is_read() {
    let user = User::new();
    let mut child = user.start(&["kernel", "submit", "--json"]);
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for id in ["one", "two"] {
        writeln!(stdin, "{}", echo(id, "hello")).unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let receipt: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(receipt["request_id"], id);
        assert_eq!(receipt["tool_result"], "hello");
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn every_kind_of_bad_input_gets_a_receipt_and_the_next_request_is_answered() {
    let deep = format!(r#"{{"params":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    let call = |call: &str| request("r", "user", "x", call);
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"nonsense".to_vec(), "not valid JSON"),
        (b"null".to_vec(), "not a JSON object"),
        (br#"{"ts_ms":NaN}"#.to_vec(), "not valid JSON"),
        (br#"{"ts_ms":1,"ts_ms":2}"#.to_vec(), "stands twice"),
        (deep.into_bytes(), "nested deeper than 64"),
        (b"{\"actor\":\"\xff\"}".to_vec(), "not UTF-8"),
        (br#"{"ts_ms":1,"colour":"red"}"#.to_vec(), "unknown field `colour`"),
        (
            br#"{"request_id":"r","ts_ms":-1,"actor":"user","intent":"x"}"#.to_vec(),
            "ts_ms must be non-negative",
        ),
        (call(r#"{"name":"echo","params":[1]}"#).into_bytes(), "must be an object"),
        (call(r#"{"name":"echo","params":{"text":7}}"#).into_bytes(), "Invalid parameters"),
        (call(r#"{"name":"add","params":{"a":9007199254740993,"b":1}}"#).into_bytes(), "exactly"),
    ];
    let mut input = Vec::new();
    for (line, _) in &cases {
        input.extend_from_slice(line);
        input.extend_from_slice(b"\n\n");
        input.extend_from_slice(echo("next", "still here").as_bytes());
        input.push(b'\n');
    }
    let user = User::new();
    let answer = user.run_with(&["kernel", "submit", "--json"], &input);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    let receipts = answer.json_lines();
    assert_eq!(receipts.len(), cases.len() * 2);
    for (pair, (_, expected)) in receipts.chunks(2).zip(&cases) {
        assert_eq!(pair[0]["decision"], "DENY");
        let error = pair[0]["error"].as_str().unwrap();
        assert!(error.contains(expected), "{error}");
        assert_eq!(pair[0]["rule"] == "schema", *expected == "Invalid parameters");
        assert_eq!(pair[1]["tool_result"], "still here");
    }
    assert_eq!(user.run(&["audit", "verify"]).code, 0);
}

#[test]
fn a_request_of_a_hundred_megabytes_is_refused_and_the_next_one_answered() {
    let user = User::new();
    let mut input = echo("big", &"x".repeat(100_000_000)).into_bytes();
    input.push(b'\n');
    input.extend_from_slice(echo("small", "hi").as_bytes());
    let receipts = user.run_with(&["kernel", "submit", "--json"], &input).json_lines();
    let error = receipts[0]["error"].as_str().unwrap();
    assert!(error.contains("at most 16777216 are read"), "{error}");
    assert_eq!(receipts[1]["tool_result"], "hi");
}

#[test]
fn a_request_larger_than_the_policy_allows_is_denied_by_name() {
    let user = User::new();
    let receipts = user.submit(&[], &[&echo("big", &"x".repeat(2_000_000))]);
    assert_eq!(receipts[0]["rule"], "jurisdiction.max_param_bytes");
}

#[test]
fn variants_differ_in_what_they_demand() {
    let bare = r#"{"request_id":"r","ts_ms":1,"actor":"user","intent":"x"}"#;
    let with = |extra: &str| bare.replace('}', &format!(",{extra}}}"));
    let evidence = with(r#""evidence":"ticket 7""#);
    let bound = with(r#""evidence":"e","params":{"constraints":{}}"#);
    for (variant, expected) in [
        ("strict", ["DENY", "ALLOW", "ALLOW"]),
        ("permissive", ["ALLOW", "ALLOW", "ALLOW"]),
        ("evidence-first", ["DENY", "ALLOW", "ALLOW"]),
        ("dual-channel", ["DENY", "DENY", "ALLOW"]),
    ] {
        let receipts = User::new().submit(&["--variant", variant], &[bare, &evidence, &bound]);
        let found: Vec<_> = receipts.iter().map(|r| r["decision"].as_str().unwrap()).collect();
        assert_eq!(found, expected, "{variant}");
    }
}

#[test]
fn the_projects_own_policy_is_used_and_its_errors_name_file_line_and_key() {
    let user = User::new();
    let dir = user.project.root().join(".fluffy");
    std::fs::create_dir(&dir).unwrap();
    let file = dir.join("policy.yaml");
    std::fs::write(&file, "jurisdiction:\n  allowed_actors: [zoe]\n  allowed_tools: [echo]\n")
        .unwrap();
    let receipts = user.submit(&[], &[&echo("r", "hi")]);
    assert_eq!(receipts[0]["rule"], "jurisdiction.allowed_actors");
    std::fs::write(&file, "jurisdiction:\n  allowed_actor: [user]\n").unwrap();
    let answer = user.run(&["kernel", "submit", "--json"]);
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("policy.yaml:2:3"), "{}", answer.err);
    assert!(answer.err.contains("did you mean `allowed_actors`?"), "{}", answer.err);
    assert!(answer.err.contains("Fix: "), "{}", answer.err);
}

#[test]
fn a_second_kernel_on_the_same_project_is_told_who_has_the_ledger() {
    let user = User::new();
    let mut first = user.start(&["kernel", "submit", "--json"]);
    let mut stdin = first.stdin.take().unwrap();
    let mut stdout = BufReader::new(first.stdout.take().unwrap());
    writeln!(stdin, "{}", echo("one", "hello")).unwrap();
    stdout.read_line(&mut String::new()).unwrap();
    let second = user.run(&["kernel", "submit", "--json"]);
    assert_eq!(second.code, 1);
    assert!(second.err.contains(&format!("process {}", first.id())), "{}", second.err);
    drop(stdin);
    assert!(first.wait().unwrap().success());
}

#[test]
fn wrong_usage_exits_with_2_and_wrong_places_are_explained() {
    let user = User::new();
    assert_eq!(user.run(&["kernel", "submit"]).code, 2);
    assert_eq!(user.run(&["nonsense"]).code, 2);
    let answer = user.run(&["-C", "/does/not/exist", "audit", "log"]);
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("ERROR: cannot use `/does/not/exist`"), "{}", answer.err);
    let answer = user.run(&["audit", "log"]);
    assert_eq!(answer.code, 1);
    assert!(answer.err.contains("no ledger yet"), "{}", answer.err);
}

#[test]
fn the_state_is_private_to_the_user() {
    use std::os::unix::fs::PermissionsExt as _;
    let user = User::new();
    user.submit(&[], &[&echo("r", "hi")]);
    let mut dirs = vec![user.project.state().join("fluffy")];
    while let Some(dir) = dirs.pop() {
        let mode = std::fs::metadata(&dir).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", dir.display());
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            }
        }
    }
    let keys = std::fs::read_dir(user.project.state().join("fluffy/keys")).unwrap();
    let key = keys.map(|key| key.unwrap().path()).next().unwrap();
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let answer = user.run(&["kernel", "submit", "--json"]);
    assert_ne!(answer.code, 0);
    assert!(answer.err.contains("chmod 600"), "{}", answer.err);
}

#[test]
fn an_ordinary_user_works_and_one_who_may_not_write_the_state_is_told_why() {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    use std::os::unix::process::CommandExt as _;
    let user = User::new();
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    // As root nothing is forbidden, so root becomes somebody else, with a copy it can reach.
    let root = rustix::process::geteuid().is_root();
    let program = user.project.path("fluffy");
    std::fs::copy(env!("CARGO_BIN_EXE_fluffy"), &program).unwrap();
    mode(&user.project.path(""), 0o755);
    let run = || {
        let mut command = std::process::Command::new(&program);
        command.arg("demo").env_clear().env("XDG_STATE_HOME", user.project.state());
        command.current_dir(user.project.root());
        if root {
            command.uid(65534).gid(65534);
        }
        command.output().unwrap()
    };
    mode(&user.project.state(), 0o500);
    let refused = run();
    let err = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(4), "{err}");
    assert!(err.contains("Permission denied") && err.contains("Fix: "), "{err}");
    mode(&user.project.state(), 0o700);
    if root {
        chown(user.project.state(), Some(65534), Some(65534)).unwrap();
    }
    let answer = run();
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
}

#[test]
fn completions_the_manual_and_the_version_are_written() {
    let user = User::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(user.run(&["completions", shell]).out.contains("fluffy"), "{shell}");
    }
    assert!(user.run(&["man"]).out.contains(".TH fluffy"));
    assert_eq!(user.run(&["--version"]).out, "fluffy 0.1.0\n");
    assert!(user.run(&["--help"]).out.contains("kernel disposes"));
}

#[test]
fn the_doctor_looks_at_the_machine_and_the_ledger() {
    let user = User::new();
    let before = user.run(&["doctor", "--json"]);
    let before: Value = serde_json::from_str(&before.out).unwrap();
    assert_eq!(before["ok"], true);
    user.submit(&[], &[&echo("r", "hi")]);
    let after = user.run(&["doctor"]);
    assert_eq!(after.code, 0);
    assert!(after.out.contains("4 entries"), "{}", after.out);
    assert!(after.out.contains("fluffy-ledger+"), "{}", after.out);
    std::fs::write(user.ledger_dir().join("ledger/0001.db"), "garbage").unwrap();
    let damaged = user.run(&["doctor"]);
    assert_eq!(damaged.code, 1, "{}", damaged.out);
    assert!(damaged.out.contains("WRONG"), "{}", damaged.out);
}
