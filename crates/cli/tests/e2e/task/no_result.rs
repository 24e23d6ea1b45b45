//! FLO-12: what no test of the task caused is no red.

use std::process::Stdio;

use super::lab::{Lab, Language, Run, complete, run_tests, say, write};
use crate::program::Answer;

/// The states that open the code are never reached, and the project stays as it was.
#[track_caller]
fn opens_nothing(lab: &Lab, test: &str, text: &str, told: &str) {
    let before = lab.snapshot();
    let turns = [
        say("A test that holds of anything.", &[write(test, text)]),
        say("Red?", &[run_tests()]),
        say("Code.", &[write(lab.language.source(), &lab.language.solution())]),
        say("Again.", &[run_tests()]),
        complete(),
    ];
    let run = lab.run(&[], &turns);
    run.assert_not_done(1);
    assert!(!run.states().contains(&"code_writing"), "{}", run.told());
    assert_eq!(run.answers("fs.write")[1]["decision"], "denied", "{}", run.told());
    for finished in run.all("tests.finished") {
        assert_eq!(finished["failed"], 0, "{}", run.told());
    }
    let heard = lab.heard(&run);
    assert!(heard.contains(told), "{heard}");
    assert!(heard.contains("which is no failing test"), "{heard}");
    assert_eq!(lab.snapshot(), before);
}

#[test]
fn lesson_l51_missing_runner_below_the_root_is_no_red() {
    let lab = Lab::new(Language::JavaScript);
    let test = "def test_true():\n    assert True\n";
    opens_nothing(&lab, "sub/test_a.py", test, "install the package `pytest` with `deps.install`");
    let lab = Lab::new(Language::Python);
    lab.user.write("web/package.json", r#"{"devDependencies":{"jest":"30"}}"#);
    let test = "test('a', () => expect(true).toBe(true));\n";
    opens_nothing(&lab, "web/a.test.js", test, "install the package `jest` with `deps.install`");
}

#[test]
fn flo_12_runner_that_is_killed_is_no_red() {
    let lab = Lab::new(Language::JavaScript);
    let test = "process.kill(process.ppid, 'SIGKILL');\n";
    opens_nothing(&lab, "kills.test.js", test, "ended before it finished");
}

#[test]
fn flo_12_package_that_is_not_installed_is_no_red() {
    let lab = Lab::new(Language::JavaScript);
    let test = "import test from 'node:test';\nimport 'no-such-package';\ntest('a', () => {});\n";
    opens_nothing(&lab, "a.test.js", test, "install it with `deps.install`");
}

#[test]
fn dep_7_unknown_runner_names_the_setting_and_a_command() {
    let lab = Lab::new(Language::JavaScript);
    for name in ["package.json", "sums.js", "add.test.js"] {
        std::fs::remove_file(lab.root().join(name)).unwrap();
    }
    lab.user.write("mix.exs", "defmodule A.MixProject do\nend\n");
    let turns = [
        say("A test.", &[write("test/a_test.exs", "defmodule ATest do\nend\n")]),
        say("Red?", &[run_tests()]),
        complete(),
    ];
    let run = lab.run(&[], &turns);
    run.assert_not_done(1);
    let command = "fluffy config set test.command '[mix, test]'";
    let heard = lab.heard(&run);
    assert!(heard.contains(command), "{heard}");
    let failed = run.all("task.failed")[0].to_string();
    assert!(failed.contains(command), "{failed}");
    assert!(run.all("tests.finished")[0]["not_run"][0].as_str().unwrap().contains(command));
}

#[test]
fn flo_12_test_that_waits_for_a_manifest_is_no_red_without_cargo() {
    let lab = Lab::empty(Language::Rust);
    let turns = [
        say("A test.", &[write("tests/a.rs", "#[test]\nfn a() {}\n")]),
        say("Red?", &[run_tests()]),
        complete(),
    ];
    let mut command = lab.command(&[], &turns);
    let output = command.env("PATH", "/usr/bin:/bin").stdin(Stdio::null()).output().unwrap();
    let run = Run::of(Answer::of(output));
    run.assert_not_done(1);
    assert!(!run.states().contains(&"code_writing"), "{}", run.told());
    let told = run.all("tests.finished")[0]["not_run"].to_string();
    assert!(told.contains("https://rustup.rs"), "{}", run.told());
    // With cargo it is red, as it cannot be built.
    let run = lab.run(&[], &turns);
    assert!(run.states().contains(&"code_writing"), "{}", run.told());
}
