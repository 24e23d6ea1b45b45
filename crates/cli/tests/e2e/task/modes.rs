//! Explore, debug and read-only.

use serde_json::json;

use super::lab::{Lab, Language, call, complete, run_tests, say, write};

#[test]
fn explore_writes_code_first_and_a_person_looks_at_it() {
    let lab = Lab::new(Language::Python);
    let turns = [
        say("Code.", &[write("sums.py", &lab.language.solution())]),
        say("Run.", &[run_tests()]),
        complete(),
    ];
    let before = lab.snapshot();
    let refused = lab.run(&["--mode", "explore", "--no"], &turns);
    refused.assert_not_done(3);
    assert_eq!(lab.snapshot(), before, "after a refused review nothing is changed");
    let run = lab.run(&["--mode", "explore", "--yes"], &turns);
    run.assert_done();
    let asked = run.all("review.requested");
    let reasons = asked[0]["reasons"].to_string();
    assert!(reasons.contains("without a failing test"), "{}", run.told());
    assert!(asked[0]["diff"].as_str().unwrap().contains("+def double"), "{}", run.told());
    assert_eq!(lab.user.read("sums.py"), lab.language.solution());
}

#[test]
fn explore_is_locked_while_coverage_has_fallen_too_far() {
    let lab = Lab::new(Language::Python);
    lab.user.write("untested.py", "def nobody(a):\n    if a:\n        return 1\n    return 2\n");
    let baseline = json!({"version": 1, "covered": 100, "total": 100});
    lab.user.write(".fluffy/coverage-baseline.json", &baseline.to_string());
    let turns = [say("Code.", &[write("sums.py", &lab.language.solution())]), complete()];
    let before = lab.snapshot();
    let run = lab.run(&["--mode", "explore", "--yes"], &turns);
    assert_eq!(run.code, 3, "{}", run.told());
    assert!(run.told().contains("coverage"), "{}", run.told());
    assert_eq!(lab.snapshot(), before);
}

#[test]
fn debug_needs_a_persons_yes() {
    let lab = Lab::new(Language::Python);
    let turns = [say("Code.", &[write("sums.py", &lab.language.solution())]), complete()];
    let before = lab.snapshot();
    let run = lab.run(&["--mode", "debug", "--no"], &turns);
    assert_eq!(run.code, 3, "{}", run.told());
    assert_eq!(lab.snapshot(), before);
    for options in [&["--mode", "debug"][..], &["--mode", "debug", "--yes"]] {
        let run = lab.run(options, &turns);
        assert_eq!(run.code, 3, "nobody is there to ask: {}", run.told());
    }
    let answer = lab.typing(&["--mode", "debug"], &turns, "n\n");
    assert_eq!(answer.code, 3, "{}", answer.out);
    assert_eq!(lab.snapshot(), before);
    let answer = lab.typing(&["--mode", "debug"], &turns, "y\ny\ny\n");
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    assert_eq!(lab.user.read("sums.py"), lab.language.solution());
}

#[test]
fn a_read_only_task_reads_and_writes_nothing() {
    let lab = Lab::new(Language::Python);
    let before = lab.snapshot();
    let (test, text) = lab.language.test();
    let turns = [
        say("", &[call("fs.read", json!({"path": "sums.py"})), run_tests()]),
        say("", &[write(test, text), call("fs.delete", json!({"path": "sums.py"}))]),
        say("", &[call("shell.run", json!({"command": "touch", "args": ["made"]}))]),
        say("It adds.", &[]),
    ];
    for mode in ["strict", "explore"] {
        let run = lab.run(&["--read-only", "--mode", mode, "--yes"], &turns);
        for tool in ["fs.write", "fs.delete"] {
            assert_eq!(run.answers(tool)[0]["decision"], "denied", "{}", run.told());
        }
        assert_eq!(lab.snapshot(), before, "{mode}");
    }
}
