//! The policy host as the kernel has it: the real binary behind pipes.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use fluffy_base::{Json, KernelRequest, KernelState};
use fluffy_kernel::{PolicyHost, PolicyHostError, RuleFile};
use fluffy_policy::{Facts, Rule};
use fluffy_sandbox::{Native, NativeOptions, Runtime};
use serde_json::json;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fluffy");

fn sandboxes() -> Arc<dyn Runtime> {
    let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join("policy-host-sandboxes");
    let program = PROGRAM.into();
    Arc::new(Native::open(NativeOptions { program, state, path: vec![], env: vec![] }).unwrap())
}

fn started(program: &str, files: Vec<RuleFile>) -> Result<Arc<PolicyHost>, PolicyHostError> {
    PolicyHost::start(sandboxes(), Path::new(program), files, Arc::default())
}

fn start(files: &[(&str, &str)]) -> Arc<PolicyHost> {
    let file = |(name, body): &(&str, &str)| RuleFile {
        name: (*name).to_owned(),
        path: format!(".fluffy/rules/{name}.ts"),
        text: format!(
            "export default function (request: PolicyRequest): PolicyAnswer {{\n{body}\n}}"
        ),
    };
    started(PROGRAM, files.iter().map(file).collect()).unwrap()
}

fn judged(rule: &dyn Rule, intent: &str) -> String {
    let params = Json::new(json!({ "path": "src/a.rs" })).unwrap();
    let request = KernelRequest {
        ts_ms: 5,
        ..KernelRequest::call("r1", "model", intent, "fs.write", params)
    };
    rule.judge(&Facts::new(&request, KernelState::Idle)).to_string()
}

const OBEYS: &str = "switch (request.intent) {
    case 'loop': for (;;) ;
    case 'native loop': return { action: String('a'.repeat(8e6).indexOf('a'.repeat(4e6) + 'b')) } as any;
    case 'regex': return { action: String(/^(a+)+$/.test('a'.repeat(99) + 'b')) } as any;
    case 'bomb': { let s = 'x'; for (;;) s += s; }
    case 'deep': return (function f(): any { return [f()] })();
    case 'throw': throw new Error('no');
    case 'nothing': return undefined as any;
    case 'code': return new Function('return { action: \"allow\" }')();
    case 'tamper': Object.prototype.toString = () => 'x'; (Object.prototype as any).action = 'allow';
        return {} as any;
    case 'long': return { action: 'deny', reason: 'x'.repeat(1 << 20) };
    case 'see': return { action: 'deny', reason: JSON.stringify(request) };
    default: return { action: 'allow' };
}";

#[test]
fn a_rule_is_told_the_request() {
    let host = start(&[("told", OBEYS)]);
    let rules = host.rules();
    assert_eq!(
        judged(&*rules[0], "see"),
        r#"deny: {"actor":"model","caller_tags":[],"intent":"see","params":{"path":"src/a.rs"},"paths":[],"request_id":"r1","session_mode":null,"syscall":"fs.write","ts_ms":5,"workflow_state":null} (rule `told`, .fluffy/rules/told.ts:1)"#
    );
}

#[test]
fn the_battery_denies_and_the_same_host_judges_on() {
    let host = start(&[("obeys", OBEYS), ("other", "return { action: 'pass' }")]);
    let (rules, pid) = (host.rules(), host.pid());
    for (intent, words) in [
        ("loop", "the rule took more than"),
        ("regex", "the rule took more than"),
        ("bomb", "the rule threw"),
        ("deep", "the rule threw `RangeError"),
        ("throw", "the rule threw `Error: no` at obeys.ts:8:"),
        ("nothing", "the rule returned `undefined`"),
        ("code", "the rule threw `TypeError: eval is not supported"),
        ("tamper", "the rule returned an answer without an action"),
        ("long", "xxxx…"),
    ] {
        let told = judged(&*rules[0], intent);
        assert!(told.starts_with("deny: ") && told.contains(words), "{intent}: {told}");
        assert_eq!(judged(&*rules[0], "good"), "allow", "{intent}");
        assert_eq!(judged(&*rules[1], intent), "pass", "{intent}");
        assert_eq!(host.pid(), pid, "{intent}");
    }
}

#[test]
fn lesson_l22_a_host_that_hangs_is_ended_and_denies() {
    let host = start(&[("obeys", OBEYS)]);
    let (rules, first) = (host.rules(), host.pid());
    assert_eq!(
        judged(&*rules[0], "native loop"),
        "deny: it was not evaluated: the policy host did not answer in time; it was ended (rule `obeys`, .fluffy/rules/obeys.ts:1)"
    );
    assert_eq!(host.pid(), None);
    assert_eq!(judged(&*rules[0], "good"), "allow");
    assert!(host.pid().is_some() && host.pid() != first);
}

#[test]
fn lesson_l22_a_host_that_was_killed_denies_once_and_is_started_again() {
    let host = start(&[("obeys", OBEYS)]);
    let rules = host.rules();
    for _ in 0..5 {
        assert_eq!(judged(&*rules[0], "good"), "allow");
        let pid = host.pid().unwrap().to_string();
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
        // Its sandbox ends with it, a moment later.
        while host.pid().is_some() {
            std::thread::yield_now();
        }
        assert_eq!(
            judged(&*rules[0], "good"),
            "deny: it was not evaluated: the policy host died; it was ended (rule `obeys`, .fluffy/rules/obeys.ts:1)"
        );
    }
    assert_eq!(judged(&*rules[0], "good"), "allow");
}

#[test]
fn a_bad_rule_file_is_named_with_line_and_column() {
    let refusal = |text: &str| {
        let file =
            RuleFile { name: "bad".to_owned(), path: "bad.ts".to_owned(), text: text.to_owned() };
        started(PROGRAM, vec![file]).map(|_| ()).unwrap_err().to_string()
    };
    assert!(refusal("export default function () {\n  let = ;\n}").starts_with("bad.ts:2:"));
    assert!(refusal("import fs from 'fs'").starts_with("bad.ts:1:1: `import` cannot be used"));
    // Nested deeper than any stack: an error either way, and never the kernel's end.
    let deep = format!("export default function () {{}}\n{}", "(".repeat(60_000));
    assert!(refusal(&deep).contains("bad.ts"));
    let deep = format!("export default function () {{}}\nlet a = {}1", "!".repeat(60_000));
    assert!(refusal(&deep).contains("bad.ts"));
}

#[test]
fn a_program_that_is_no_host_is_an_error() {
    let refusal = |program: &str| {
        let file = RuleFile { name: "a".into(), path: "a.ts".into(), text: String::new() };
        let host = started(program, vec![file]);
        host.map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(refusal("no-such-program"), "the policy host cannot be started");
    assert_eq!(refusal("/no/such/program"), "the policy host cannot be started");
    assert!(refusal("/usr/bin/false").contains("it died"));
    assert!(refusal("/usr/bin/yes").contains("it did not speak as agreed"));
}

#[test]
fn the_host_is_confined_by_the_operating_system() {
    let host = start(&[("obeys", OBEYS)]);
    let first = host.pid().unwrap();
    let children = format!("/proc/{first}/task/{first}/children");
    let children = std::fs::read_to_string(children).unwrap();
    let guest = children.split_whitespace().next().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{guest}/status")).unwrap();
    for line in ["CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"] {
        assert!(status.contains(line), "{line}: {status}");
    }
    for space in ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"] {
        let inode = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/{space}"));
        assert_ne!(inode(guest).unwrap(), inode("self").unwrap(), "{space}");
    }
    let root = std::fs::read_dir(format!("/proc/{guest}/root/home")).unwrap();
    assert!(root.flatten().all(|entry| entry.file_name() == "fluffy"));
    assert_eq!(judged(&*host.rules()[0], "good"), "allow");
}

#[test]
fn a_request_too_large_for_the_host_is_denied() {
    let host = start(&[("obeys", OBEYS)]);
    let rules = host.rules();
    let told = judged(&*rules[0], &"x".repeat(9 << 20));
    assert!(told.contains("cannot be asked"), "{told}");
    assert_eq!(judged(&*rules[0], &"x".repeat(1 << 18)), "allow");
}

#[test]
fn local_time_is_utc_whatever_the_machine_says() {
    let host = start(&[("zone", "return { action: 'deny', reason: new Date(0).toString() }")]);
    let told = judged(&*host.rules()[0], "good");
    assert!(told.contains("Thu Jan 01 1970 00:00:00 GMT+0000"), "{told}");
}

#[test]
fn garbage_ends_the_host_or_is_answered_as_such() {
    let frame =
        |payload: &[u8]| [&u32::try_from(payload.len()).unwrap().to_be_bytes(), payload].concat();
    for (bytes, answer, code) in [
        (frame(b"null"), "not_understood", 0),
        (frame(b"{\"evaluate\":{\"rule\":9,\"input\":\"\"}}"), "there is no rule 9", 0),
        ([frame(b"\xff\xfe"), frame(b"[]")].concat(), "not_understood", 0),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "", 1),
        (vec![0, 0, 0, 0], "", 1),
        (vec![0, 0, 0, 9, 1], "", 1),
        (vec![], "", 0),
    ] {
        let mut child = Command::new(PROGRAM)
            .arg("policy-host")
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        let mut out = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
        assert!(String::from_utf8_lossy(&out).contains(answer), "{bytes:?}: {out:?}");
        assert_eq!(child.wait().unwrap().code(), Some(code), "{bytes:?}");
    }
}
