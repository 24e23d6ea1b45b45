//! Rules in TypeScript, from the policy file to the receipt.

use std::fs;

use crate::program::User;

const POLICY: &str = "
jurisdiction: { allowed_actors: [user], allowed_tools: ['*'] }
capabilities:
  - { name: tools, match: { syscall: [echo, add] }, action: allow }
extensions: [.fluffy/rules/quiet.ts]
";

const QUIET: &str = "\
export default function (request: PolicyRequest): PolicyAnswer {
    const text = String(request.params.text ?? '');
    if (text === 'loop') for (;;) ;
    if (text === 'SHOUT') return { action: 'deny', reason: 'nobody shouts here' };
    return { action: 'pass' };
}
";

fn user(rule: &str) -> User {
    let user = User::new();
    user.write(".fluffy/policy.yaml", POLICY);
    user.write(".fluffy/rules/quiet.ts", rule);
    user
}

fn say(text: &str) -> String {
    format!(
        r#"{{"request_id":"r","ts_ms":1,"actor":"user","intent":"say","tool_call":{{"name":"echo","params":{{"text":"{text}"}}}}}}"#
    )
}

#[test]
fn a_rule_file_of_the_policy_denies_and_a_failing_one_never_abstains() {
    let requests = [say("hello"), say("SHOUT"), say("loop"), say("hello again")];
    let requests: Vec<_> = requests.iter().map(String::as_str).collect();
    let receipts = user(QUIET).submit(&[], &requests);
    let told: Vec<_> = receipts
        .iter()
        .map(|receipt| receipt.get("error").and_then(|e| e.as_str()).unwrap_or("-").to_owned())
        .collect();
    let [first, second, third, fourth] = told.as_slice() else {
        unreachable!("four requests, {told:?}")
    };
    assert_eq!((first.as_str(), fourth.as_str()), ("-", "-"));
    let expected = "Policy denied: nobody shouts here (rule `quiet`, .fluffy/rules/quiet.ts:1). Allowed instead: ";
    assert!(second.starts_with(expected), "{second}");
    assert!(third.contains("the rule took more than"), "{third}");
}

#[test]
fn aud_1_the_process_that_runs_rules_is_in_the_ledger_from_its_start_to_its_end() {
    let user = user(QUIET);
    user.submit(&[], &[&say("hello")]);
    let log = user.run(&["audit", "log", "--json", "--limit", "100"]).json_lines();
    let events: Vec<_> =
        log.iter().map(|entry| entry["detail"]["event"].as_str().unwrap()).collect();
    let expected =
        ["kernel_start", "sandbox_created", "syscall", "sandbox_destroyed", "kernel_shutdown"];
    assert_eq!(events.split_first().unwrap().1, expected, "{events:?}");
    let made = &log[2]["detail"]["metadata"];
    assert_eq!(made["program"], "fluffy policy-host");
    assert_eq!(made["sandbox"], log[4]["detail"]["metadata"]["sandbox"]);
}

#[test]
fn a_rule_file_that_is_wrong_or_a_link_stops_the_start() {
    let user = user("export default function (request { }");
    let answer = user.run(&["policy", "check"]);
    assert_eq!(answer.code, 2, "{}", answer.out);
    assert!(answer.err.contains(".fluffy/rules/quiet.ts:1:"), "{}", answer.err);
    let file = user.write(".fluffy/rules/quiet.ts", "");
    fs::remove_file(&file).unwrap();
    assert!(user.run(&["policy", "check"]).err.contains("cannot read"), "no such file");
    let elsewhere = user.write("elsewhere.ts", QUIET);
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    let answer = user.run(&["policy", "check"]);
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("cannot read `.fluffy/rules/quiet.ts`"), "{}", answer.err);
}

#[test]
fn explain_asks_rule_files_as_well() {
    let answer = user(QUIET).run(&["policy", "explain", "echo", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    assert!(answer.out.contains("quiet"), "{}", answer.out);
}
