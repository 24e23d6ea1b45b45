//! Tasks that go well.

use serde_json::json;

use super::lab::{Lab, Language, call, complete, run_tests, say, write};

#[test]
fn a_task_goes_from_a_failing_test_to_a_commit_in_every_language() {
    for language in Language::ALL {
        let lab = Lab::new(language);
        let before = lab.snapshot();
        let run = lab.run(&[], &lab.good_turns());
        run.assert_done();
        assert_eq!(
            run.states(),
            [
                "planning",
                "test_writing",
                "code_writing",
                "validating",
                "reviewing",
                "committing",
                "idle"
            ],
            "{}",
            run.told()
        );
        let (test, text) = language.test();
        assert_eq!(lab.user.read(test), text);
        assert_eq!(lab.user.read(language.source()), language.solution());
        let changed = [test, language.source()];
        for (path, kept) in lab.snapshot() {
            let name = path.to_str().unwrap();
            if let Some(earlier) = before.get(&path)
                && !changed.contains(&name)
                && !lab.root().join(&path).is_dir()
            {
                assert_eq!(*earlier, kept, "{language:?}: {name} was touched");
            }
        }
        let log = lab.git(&["log", "-1", "--format=%an <%ae>%n%B"]);
        assert!(log.starts_with("Ada <ada@example.org>\nadd double\n"), "{log}");
        assert!(log.contains("\nFluffy-Checkpoint: "), "{log}");
        assert_eq!(lab.git(&["status", "--porcelain"]), "", "{language:?}");
        let shown = lab.git(&["show", "--name-status", "--format=", "HEAD"]);
        assert_eq!(shown.lines().count(), 2, "{shown}");
        let merged = run.all("merge.completed");
        assert_eq!(merged.len(), 1, "{}", run.told());
        assert_eq!(merged[0]["commit"].as_str().unwrap(), lab.git(&["rev-parse", "HEAD"]).trim());
        let verified = lab.user.run(&["audit", "verify"]);
        assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    }
}

#[test]
fn events_are_numbered_and_say_who_worked_how() {
    let lab = Lab::new(Language::Python);
    let run = lab.run(&[], &lab.good_turns());
    run.assert_done();
    let numbers: Vec<u64> = run.events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, expected);
    let first = &run.events[0];
    assert_eq!(first["type"], "session.started");
    assert_eq!((&first["mode"], &first["provider"]), (&json!("strict"), &json!("replay")));
    let tests = run.all("tests.finished");
    assert_eq!(
        (&tests[0]["failed"], &tests[1]["failed"]),
        (&json!(1), &json!(0)),
        "{}",
        run.told()
    );
    for finished in run.all("tool.finished") {
        assert_eq!(finished["entry"].as_str().map(str::len), Some(64), "{finished}");
    }
    let last = run.events.last().unwrap();
    assert_eq!((&last["summary"], &last["turns"]), (&json!("add double"), &json!(6)));
    assert_eq!(last["files_changed"].as_array().unwrap().len(), 2);
}

#[test]
fn a_model_that_only_writes_and_tests_gets_to_the_end() {
    let lab = Lab::new(Language::JavaScript);
    let mut turns = lab.good_turns();
    turns.pop();
    let run = lab.run(&[], &turns);
    run.assert_done();
    assert_eq!(lab.user.read("sums.js"), lab.language.solution());
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
}

#[test]
fn the_answer_of_a_question_is_printed_and_nothing_is_touched() {
    let lab = Lab::new(Language::Rust);
    let before = lab.snapshot();
    let turns = [
        say(
            "",
            &[
                call("fs.read", json!({"path": "src/lib.rs"})),
                call("search.grep", json!({"pattern": "fn "})),
            ],
        ),
        say("It adds two numbers.", &[]),
    ];
    let provider = format!("replay:{}", lab.transcript(&turns).display());
    let answer = lab.user.run(&["run", "--provider", &provider, "what does it do?"]);
    assert_eq!((answer.out.as_str(), answer.code), ("It adds two numbers.\n", 0), "{}", answer.err);
    assert_eq!(lab.snapshot(), before);
}

#[test]
fn two_pieces_of_work_in_one_task_are_two_commits() {
    let lab = Lab::new(Language::Python);
    let mut turns = lab.good_turns();
    turns.pop();
    let triple = "from sums import triple\n\n\ndef test_triples():\n    assert triple(2) == 6\n";
    let solution = lab.language.solution() + "\n\ndef triple(a):\n    return 3 * a\n";
    turns.extend([
        say("More.", &[write("test_triple.py", triple)]),
        say("Red.", &[run_tests()]),
        say("Code.", &[write("sums.py", &solution)]),
        say("Green.", &[run_tests()]),
        complete(),
    ]);
    let run = lab.run(&[], &turns);
    run.assert_done();
    assert_eq!(lab.git(&["rev-list", "--count", "HEAD"]).trim(), "3");
    assert_eq!(lab.user.read("sums.py"), solution);
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_project_without_git_is_merged_and_not_committed() {
    let lab = Lab::without_git(Language::Python);
    let run = lab.run(&[], &lab.good_turns());
    run.assert_done();
    assert_eq!(lab.user.read("sums.py"), lab.language.solution());
    assert!(!lab.root().join(".git").exists());
    assert_eq!(run.all("merge.completed")[0].get("commit"), None);
}

#[test]
fn a_project_without_tests_gets_its_first() {
    let lab = Lab::empty(Language::Python);
    lab.user.write("sums.py", "def add(a, b):\n    return a + b\n");
    let run = lab.run(&[], &lab.good_turns());
    run.assert_done();
    assert_eq!(lab.user.read("sums.py"), lab.language.solution());
}

#[test]
fn a_suite_that_fails_from_the_start_is_not_held_against_the_task() {
    let lab = Lab::new(Language::Python);
    lab.user.write("test_old.py", "def test_old():\n    assert False\n");
    let run = lab.run(&[], &lab.good_turns());
    run.assert_done();
    assert_eq!(lab.user.read("sums.py"), lab.language.solution());
}

#[test]
fn a_monorepo_with_two_languages_is_tested_as_a_whole() {
    let lab = Lab::empty(Language::Python);
    for (name, text) in [
        ("py/sums.py", "def add(a, b):\n    return a + b\n"),
        ("py/tests/test_add.py", "def test_true():\n    assert True\n"),
        ("js/package.json", "{\"name\":\"js\"}"),
        ("js/ok.test.js", "require('node:test')('ok', () => {});\n"),
    ] {
        lab.user.write(name, text);
    }
    let broken = "const { double } = require('./double.js');\nrequire('node:test')('doubles', () => { if (double(4) !== 8) throw new Error('no'); });\n";
    let turns = [
        say("A test.", &[write("js/double.test.js", broken)]),
        say("Red.", &[run_tests()]),
        say("Code.", &[write("js/double.js", "exports.double = (a) => 2 * a;\n")]),
        say("Green.", &[run_tests()]),
        complete(),
    ];
    let run = lab.run(&[], &turns);
    run.assert_done();
    let last = run.all("tests.finished").last().copied().unwrap().clone();
    assert_eq!((&last["passed"], &last["failed"]), (&json!(3), &json!(0)), "{}", run.told());
}

#[test]
fn a_configured_command_counts_by_its_exit_code() {
    let lab = Lab::empty(Language::JavaScript);
    let runner = "for (const file of require('node:fs').readdirSync(__dirname)) {\n  if (file.endsWith('.check.js')) require('./' + file);\n}\n";
    lab.user.write("checks/run.js", runner);
    let settings = "test:\n  command: [node, checks/run.js]\n  files: [\"checks/**\"]\n";
    lab.user.write(".fluffy/config.yaml", settings);
    let check = "if (require('../double.js')(4) !== 8) throw new Error('no');\n";
    let turns = [
        say("Code first?", &[write("double.js", "module.exports = (a) => 2 * a;\n")]),
        say("A check.", &[write("checks/double.check.js", check)]),
        say("Red.", &[run_tests()]),
        say("Code.", &[write("double.js", "module.exports = (a) => 2 * a;\n")]),
        say("Green.", &[run_tests()]),
        complete(),
    ];
    let run = lab.run(&[], &turns);
    run.assert_done();
    assert_eq!(run.answers("fs.write")[0]["decision"], "denied", "{}", run.told());
    assert_eq!(lab.user.read("checks/double.check.js"), check);
    lab.user.write(".fluffy/config.yaml", "test: {comand: [x]}\n");
    let answer = lab.user.run(&["run", "--provider", "replay:x", "a task"]);
    assert_eq!(answer.code, 2, "{}", answer.err);
}
