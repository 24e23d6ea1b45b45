//! `fluffy policy update`: nothing changes without a person, and everything that changes is proved.

use std::os::unix::fs::symlink;

use fluffy_policy::DEFAULT_POLICY;
use serde_json::{Value, json};

use crate::program::{Answer, User, echo, request};

const OWN: &str = ".fluffy/policy.yaml";
const UPDATE: [&str; 3] = ["policy", "update", "new.yaml"];
/// Type this to agree to six.
const PHRASE: &str = "accept 6 breaking and 0 loosening changes";

/// A user with the shipped policy and a new one that no longer allows `echo`.
fn user() -> User {
    let user = User::new();
    user.run(&["config", "init"]);
    user.write("new.yaml", &without_echo());
    user
}

fn without_echo() -> String {
    DEFAULT_POLICY.replace("syscall: [echo, add]", "syscall: [add]")
}

fn echoes(user: &User, count: usize) {
    let lines: Vec<_> = (0..count).map(|n| echo(&format!("r{n}"), "hi")).collect();
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    assert!(
        user.submit(&[], &lines).iter().all(|receipt| receipt.get("decision").unwrap() == "ALLOW")
    );
}

#[track_caller]
fn check(answer: &Answer, code: i32, parts: &[&str]) {
    let all = format!("{}{}", answer.out, answer.err);
    assert_eq!(answer.code, code, "{all}");
    for part in parts {
        assert!(all.contains(part), "{part} is not in: {all}");
    }
}

#[track_caller]
fn check_replaced(user: &User, replaced: bool) {
    let expected = if replaced { without_echo() } else { DEFAULT_POLICY.to_owned() };
    assert_eq!(user.read(OWN), expected);
    let files = std::fs::read_dir(user.project.root().join(".fluffy")).unwrap().count();
    assert_eq!(files, 1, "nothing is left beside the policy");
    assert_eq!(user.run(&["audit", "verify"]).code, 0);
    let receipt = user.submit(&[], &[&echo("after", "hi")]).remove(0);
    let decision = receipt.get("decision").unwrap();
    assert_eq!(decision, if replaced { "DENY" } else { "ALLOW" });
}

fn events(user: &User) -> Vec<Value> {
    let log = user.run(&["audit", "log", "--json", "--limit", "1000"]).json_lines();
    log.iter().map(|entry| entry.pointer("/detail/event").unwrap().clone()).collect()
}

#[test]
fn an_update_that_is_agreed_to_holds_for_the_next_kernel_and_is_in_the_ledger() {
    let user = user();
    echoes(&user, 2);
    let answer = user.run_typing(&UPDATE, "y\n");
    let parts = [
        "user asks for policy.update: replace the policy by new.yaml",
        "a person has to agree to every change of the policy",
        "2 of the last 2 decisions would change:",
        "[BREAKING] #2 echo: allow (rule `plain-tools`, .fluffy/policy.yaml:34) -> deny: no rule allows",
        "Agree? [y/N]",
        "Replaced .fluffy/policy.yaml (entry ",
    ];
    check(&answer, 0, &parts);
    let events = events(&user);
    let wanted = ["human_decision", "tool_execute", "policy_update", "tool_result"];
    let at = events.iter().position(|event| event == wanted[0]).unwrap();
    assert_eq!(events[at..at + 4], wanted.map(|event| json!(event)));
    check_replaced(&user, true);
}

#[test]
fn a_project_without_a_policy_gets_its_first_one_the_same_way() {
    let user = User::new();
    user.write("new.yaml", &without_echo());
    check(&user.run(&["policy", "update", "new.yaml", "--yes"]), 0, &["Replaced"]);
    check_replaced(&user, true);
}

#[test]
fn whoever_does_not_clearly_agree_has_refused() {
    for typed in ["n\n", "\n", "maybe\n", "yes please\n", "\u{4}"] {
        let user = user();
        let answer = user.run_typing(&UPDATE, typed);
        check(&answer, 3, &["Not replaced (entry ", "(reviewed: the user refused)"]);
        check_replaced(&user, false);
    }
    let user = user();
    let answer = user.run_with(&UPDATE, b"y\n");
    check(&answer, 3, &["Nobody can be asked", "or agree with --yes", "Not replaced"]);
    check_replaced(&user, false);
}

#[test]
fn six_breaking_changes_need_the_phrase_and_yes_does_not_stand_for_it() {
    let attempt = |more: &[&str], typed: Option<&str>| {
        let user = user();
        echoes(&user, 6);
        let args = [&UPDATE[..], more].concat();
        let answer = match typed {
            Some(typed) => user.run_typing(&args, typed),
            None => user.run(&args),
        };
        (user, answer)
    };
    for (more, typed) in [
        (&["--yes"][..], None),
        (&["--yes", "--phrase", "yes"], None),
        (&[], Some("y\n")),
        (&[], Some("\n")),
        (&["--phrase", "accept 7 breaking and 0 loosening changes"], Some("y\n")),
    ] {
        let (user, answer) = attempt(more, typed);
        check(&answer, 3, &["6 of the last 6 decisions would change", "Not replaced"]);
        check_replaced(&user, false);
    }
    let (_, answer) = attempt(&["--yes"], None);
    check(&answer, 3, &[&format!("--phrase \"{PHRASE}\"")]);
    let (user, answer) = attempt(&[], Some(&format!("{PHRASE}\n")));
    check(&answer, 0, &["Replaced"]);
    check_replaced(&user, true);
    let (user, answer) = attempt(&["--yes", "--phrase", PHRASE], None);
    check(&answer, 0, &["Replaced"]);
    check_replaced(&user, true);
}

#[test]
fn what_gets_wider_is_marked_as_loosening() {
    let user = user();
    user.write(OWN, &without_echo());
    user.submit(&[], &[&echo("r1", "hi")]);
    user.write("new.yaml", DEFAULT_POLICY);
    let answer = user.run(&["policy", "update", "new.yaml", "--yes"]);
    check(&answer, 0, &["1 of the last 1 decisions would change:", "[LOOSENING] #2 echo: deny: "]);
    check_replaced(&user, false);
}

#[test]
fn a_file_that_is_no_policy_or_cannot_be_read_changes_and_records_nothing() {
    let user = user();
    echoes(&user, 1);
    let before = events(&user);
    user.write("bad.yaml", "jurisdiction:\n  allowed_actor: [user]\n");
    let bad = user.run(&["policy", "update", "bad.yaml", "--yes"]);
    check(&bad, 2, &["bad.yaml:2:3: unknown key", "Fix: correct the file"]);
    check(&user.run(&["policy", "update", "nowhere.yaml", "--yes"]), 1, &["cannot read", "Fix: "]);
    check(&user.run(&["policy", "update", ".", "--yes"]), 1, &["cannot read `.`"]);
    assert_eq!(user.run(&["policy", "update"]).code, 2);
    assert_eq!(events(&user), before);
    check_replaced(&user, false);
}

#[test]
fn a_policy_behind_a_link_is_not_replaced() {
    let user = user();
    let elsewhere = user.project.path("elsewhere.yaml");
    std::fs::write(&elsewhere, DEFAULT_POLICY).unwrap();
    std::fs::remove_file(user.project.root().join(OWN)).unwrap();
    symlink(&elsewhere, user.project.root().join(OWN)).unwrap();
    let answer = user.run(&["policy", "update", "new.yaml", "--yes"]);
    check(&answer, 1, &["Failed (entry ", "is a symbolic link"]);
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), DEFAULT_POLICY);
    check_replaced(&user, false);
}

#[test]
fn a_halted_kernel_and_one_that_runs_replace_nothing() {
    let user = user();
    user.run(&["kernel", "halt", "enough"]);
    let answer = user.run(&["policy", "update", "new.yaml", "--yes"]);
    check(&answer, 3, &["Not replaced", "Kernel is halted: enough"]);
    assert_eq!(user.read(OWN), DEFAULT_POLICY);
    let mut running = user.start(&["kernel", "submit", "--json", "--new-session"]);
    let mut stdin = running.stdin.take().unwrap();
    let mut stdout = std::io::BufReader::new(running.stdout.take().unwrap());
    std::io::Write::write_all(&mut stdin, (echo("r", "hi") + "\n").as_bytes()).unwrap();
    std::io::BufRead::read_line(&mut stdout, &mut String::new()).unwrap();
    let answer = user.run(&["policy", "update", "new.yaml", "--yes"]);
    check(&answer, 1, &["another kernel (process", "is writing this ledger"]);
    drop(stdin);
    assert!(running.wait().unwrap().success());
    check_replaced(&user, false);
}

#[test]
fn lesson_l12_no_request_replaces_the_policy_issues_a_token_or_changes_the_mode() {
    let user = user();
    let content = json!({ "content": without_echo() });
    for actor in ["model", "user"] {
        let call = format!(r#"{{"name":"policy.update","params":{content}}}"#);
        let receipt = user.submit(&[], &[&request("r", actor, "loosen it", &call)]).remove(0);
        assert_eq!(receipt["decision"], "DENY");
        assert_eq!(receipt["rule"], "builtin.policy-update");
        assert!(receipt["error"].as_str().unwrap().contains("a person has to review this"));
        for tool in [
            "token.issue",
            "capability.issue",
            "capability.request",
            "policy.load",
            "policy.reload",
            "policy.set",
            "session.mode",
            "session.set_mode",
            "mode.set",
            "kernel.variant",
            "config.init",
            "review.approve",
        ] {
            let call = format!(r#"{{"name":"{tool}","params":{{"path":"{OWN}","mode":"debug"}}}}"#);
            let receipt = user.submit(&[], &[&request("r", actor, "please", &call)]).remove(0);
            assert_eq!(
                (&receipt["decision"], &receipt["tool_result"]),
                (&json!("DENY"), &Value::Null),
                "{tool}"
            );
        }
    }
    // What a request says of itself is not what the kernel knows of it.
    for field in ["mode", "tags", "token", "workflow_state", "policy", "approved", "reviewer"] {
        let line = echo("r", "hi").replacen('{', &format!(r#"{{"{field}":"x","#), 1);
        let receipt = user.submit(&[], &[&line]).remove(0);
        assert_eq!(receipt["decision"], "DENY", "{field}");
    }
    check_replaced(&user, false);
}
