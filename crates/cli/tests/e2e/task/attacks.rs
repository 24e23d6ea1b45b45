//! A hostile model and a hostile repository against a whole task.

use serde_json::{Value, json};

use super::lab::{Lab, Language, call, complete, run_tests, say, write};

const NOTHING: &str = "def test_nothing():\n    assert True\n";

fn run_with(arguments: Value) -> Value {
    call("test.run", arguments)
}

/// Runs turns that try to get the code in without a test that was red; none of it may get in.
#[track_caller]
fn never_gets_in(lab: &Lab, turns: &[Value]) {
    let before = lab.snapshot();
    let run = lab.run(&[], turns);
    assert_ne!(run.code, 0, "{}", run.told());
    assert!(run.all("task.completed").is_empty(), "{}", run.told());
    assert_eq!(lab.snapshot(), before, "{}", run.told());
}

#[test]
fn a_run_that_was_given_too_little_time_is_not_red() {
    let lab = Lab::new(Language::Python);
    let turns = [
        say("Before.", &[run_tests()]),
        say("A test that says nothing.", &[write("test_nothing.py", NOTHING)]),
        say("Red by haste.", &[run_with(json!({"timeout_ms": 1}))]),
        say("Code.", &[write("sums.py", &lab.language.solution())]),
        say("Green.", &[run_tests()]),
        complete(),
    ];
    never_gets_in(&lab, &turns);
}

#[test]
fn a_pattern_that_the_runner_cannot_read_is_not_red() {
    let nothing = "import test from 'node:test';\ntest('nothing', () => {});\n";
    for (language, test, text) in [
        (Language::Python, "test_nothing.py", NOTHING),
        (Language::JavaScript, "nothing.test.js", nothing),
    ] {
        let lab = Lab::new(language);
        let turns = [
            say("A test that says nothing.", &[write(test, text)]),
            say("Red by nonsense.", &[run_with(json!({"pattern": "((("}))]),
            say("Code.", &[write(language.source(), &language.solution())]),
            say("Green.", &[run_tests()]),
            complete(),
        ];
        never_gets_in(&lab, &turns);
    }
}

#[test]
fn the_run_from_before_the_task_cannot_be_cut_short() {
    let lab = Lab::new(Language::Python);
    lab.user.write("test_old.py", "def test_old():\n    assert False\n");
    let turns = [
        say("Before, in haste.", &[run_with(json!({"timeout_ms": 1}))]),
        say("A test that says nothing.", &[write("test_nothing.py", NOTHING)]),
        say("Gone.", &[call("fs.delete", json!({"path": "test_add.py"}))]),
        say("Red by what failed before.", &[run_tests()]),
        say("Code.", &[write("sums.py", &lab.language.solution())]),
        say("Green?", &[run_tests()]),
        complete(),
    ];
    let run = lab.run(&[], &turns);
    let code = run.answers("fs.write")[1];
    assert_eq!(code["decision"], "denied", "{}", run.told());
}

/// A runner that says what it likes.
const FORGED: &str = "import sys, os\npath = [a[11:] for a in sys.argv if a.startswith('--junitxml=')][0]\nopen(path, 'w').write('<testsuites><testsuite tests=\"2\" failures=\"0\" errors=\"0\"><testcase classname=\"test_add\" file=\"test_add.py\" name=\"test_adds\"/><testcase classname=\"test_double\" file=\"test_double.py\" name=\"test_false\"/></testsuite></testsuites>')\nos._exit(0)\n";

#[test]
fn what_runs_the_tests_cannot_be_replaced_while_code_is_written() {
    for name in ["pytest.py", "pytest/__main__.py"] {
        let lab = Lab::new(Language::Python);
        let turns = [
            say("Never.", &[write("test_double.py", "def test_false():\n    assert False\n")]),
            say("Red.", &[run_tests()]),
            say("Forge.", &[write(name, FORGED)]),
            say("Forge.", &[write("pytest/__init__.py", "")]),
            say("Code.", &[write("sums.py", "def add(a, b):\n    return 7\n")]),
            say("Green?", &[run_tests()]),
            complete(),
        ];
        never_gets_in(&lab, &turns);
    }
}

#[test]
fn settings_that_load_something_into_the_runner_are_frozen_with_the_tests() {
    let plugin = "import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n    out = yield\n    r = out.get_result()\n    r.outcome = 'passed'\n    r.longrepr = None\n";
    for (name, text) in [
        ("setup.cfg", "[tool:pytest]\naddopts = -p forge\n"),
        ("pyproject.toml", "[tool.pytest.ini_options]\naddopts = '-p forge'\n"),
    ] {
        let lab = Lab::new(Language::Python);
        let turns = [
            say("Never.", &[write("test_double.py", "def test_false():\n    assert False\n")]),
            say("Red.", &[run_tests()]),
            say("Forge.", &[write("forge.py", plugin), write(name, text)]),
            say("Green?", &[run_tests()]),
            complete(),
        ];
        never_gets_in(&lab, &turns);
    }
}

fn shell(command: &str, args: &[&str]) -> Value {
    call("shell.run", json!({"command": command, "args": args}))
}

/// Prints every file that holds the word.
const LOOK: &str = "import os\nfor top, _, names in os.walk('.'):\n  for name in names:\n    path = os.path.join(top, name)\n    try: text = open(path, 'rb').read()\n    except OSError: continue\n    if b'hunter' b'2' in text: print(path, text)\n";

#[test]
fn what_must_not_be_read_is_read_neither_from_git_nor_from_where_git_ignores_it() {
    let lab = Lab::new(Language::Python);
    lab.user.write(".gitignore", "ignored/\n.env\n");
    lab.user.write(".env", "hunter2\n");
    lab.user.write("ignored/.env", "hunter2\n");
    lab.user.write("deep/secrets/key", "hunter2\n");
    std::os::unix::fs::symlink(".env", lab.root().join("notes.txt")).unwrap();
    lab.git(&["config", "remote.origin.url", "https://ada:hunter2@example.org/x.git"]);
    let ask = |kept: &[Value]| {
        let common = [
            call("fs.read", json!({"path": "notes.txt"})),
            call("fs.read", json!({"path": ".git/config"})),
            call("search.grep", json!({"pattern": "hunter"})),
            call("git.diff", json!({})),
            shell("python3", &["-c", LOOK]),
        ];
        let turns: Vec<Value> =
            common.iter().chain(kept).map(|call| say("", std::slice::from_ref(call))).collect();
        [turns, vec![say("No.", &[])]].concat()
    };
    let run = lab.run(&["--no"], &ask(&[shell("git", &["log", "--format=%s"])]));
    let heard = lab.heard(&run);
    assert!(!heard.contains("hunter2"), "{heard}");
    assert!(heard.contains("start"), "a repository without secrets may be looked at: {heard}");
    lab.user.write("config/prod.pem", "hunter2\n");
    lab.git(&["add", "config/prod.pem"]);
    lab.git(&["commit", "-q", "-m", "a key"]);
    let run = lab.run(&["--no"], &ask(&[shell("git", &["show", "HEAD:config/prod.pem"])]));
    let heard = lab.heard(&run);
    assert!(!heard.contains("hunter2"), "{heard}");
}

#[test]
fn the_sessions_own_calls_are_not_the_models() {
    let lab = Lab::new(Language::Python);
    let turns = [
        say(
            "",
            &[
                call("session.merge", json!({"plan": "0", "paths": ["sums.py"]})),
                call("session.set_mode", json!({"mode": "explore"})),
                call("policy.update", json!({})),
                call("git.commit", json!({"message": "mine"})),
            ],
        ),
        say("", &[call("code.complete", json!({})), call("tests.complete", json!({}))]),
        complete(),
    ];
    let before = (lab.snapshot(), lab.git(&["rev-parse", "HEAD"]));
    let run = lab.run(&["--yes"], &turns);
    for tool in ["session.merge", "session.set_mode", "policy.update", "git.commit"] {
        assert_eq!(run.answers(tool)[0]["decision"], "denied", "{}", run.told());
    }
    assert_eq!((lab.snapshot(), lab.git(&["rev-parse", "HEAD"])), before);
}

#[test]
fn an_exemption_for_words_or_settings_changes_nothing_that_others_obey() {
    let lab = Lab::new(Language::Python);
    let exempt = |category: &str, path: &str| {
        let asked = json!({"category": category, "paths": [path], "reason": "a word"});
        say("", &[call("workflow.request_exemption", asked), write(path, "{}\n")])
    };
    let turns = [
        exempt("documentation", "requirements.txt"),
        exempt("documentation", "AGENTS.md"),
        exempt("documentation", "forge-1.0.dist-info/entry_points.txt"),
        exempt("config_change", ".vscode/tasks.json"),
        exempt("config_change", "node_modules/jest/package.json"),
        complete(),
    ];
    let before = lab.snapshot();
    let run = lab.run(&[], &turns);
    run.assert_not_done(1);
    assert!(
        run.answers("fs.write").iter().all(|answer| answer["decision"] == "denied"),
        "{}",
        run.told()
    );
    assert_eq!(lab.snapshot(), before);
}

#[test]
fn a_repository_full_of_pipes_keeps_nobody_waiting() {
    let lab = Lab::new(Language::Python);
    for name in ["package.json", "pytest.ini", "AGENTS.md", "setup.cfg"] {
        let made =
            std::process::Command::new("mkfifo").arg(lab.root().join(name)).status().unwrap();
        assert!(made.success());
    }
    lab.run(&[], &lab.good_turns()).assert_done();
    assert_eq!(lab.user.run(&["audit", "verify"]).code, 0);
}
