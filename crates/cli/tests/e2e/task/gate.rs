//! What the test-first gate does not let through.

use serde_json::json;

use super::lab::{Lab, Language, call, complete, run_tests, say, write};

#[test]
fn lesson_l13_source_before_tests_is_denied_and_the_model_is_told_what_to_do() {
    for language in Language::ALL {
        let lab = Lab::new(language);
        let before = lab.snapshot();
        let turns = [
            say("Code.", &[write(language.source(), &language.solution())]),
            say("Tests?", &[run_tests()]),
            complete(),
        ];
        let run = lab.run(&[], &turns);
        run.assert_not_done(1);
        let denied = run.answers("fs.write");
        assert_eq!(denied[0]["decision"], "denied", "{}", run.told());
        assert_eq!(denied[0]["rule"], "workflow.writable");
        let reason = denied[0]["reason"].as_str().unwrap();
        assert!(reason.contains("failing test") || reason.contains("write a test"), "{reason}");
        assert_eq!(lab.snapshot(), before, "{language:?}");
    }
}

#[test]
fn a_solution_that_comes_before_its_tests_never_gets_in() {
    for language in Language::ALL {
        let lab = Lab::new(language);
        let before = lab.snapshot();
        let (test, text) = language.test();
        let turns = [
            say("Code.", &[write(language.source(), &language.solution())]),
            say("Tests.", &[write(test, text)]),
            say("Run.", &[run_tests()]),
            complete(),
        ];
        lab.run(&[], &turns).assert_not_done(1);
        assert_eq!(lab.snapshot(), before, "{language:?}");
    }
}

#[test]
fn a_wrong_solution_never_gets_in() {
    for language in Language::ALL {
        let lab = Lab::new(language);
        let before = lab.snapshot();
        let (test, text) = language.test();
        let turns = [
            say("Tests.", &[write(test, text)]),
            say("Red.", &[run_tests()]),
            say("Code.", &[write(language.source(), &language.wrong_solution())]),
            say("Run.", &[run_tests()]),
            complete(),
        ];
        let run = lab.run(&[], &turns);
        run.assert_not_done(1);
        assert_eq!(lab.snapshot(), before, "{language:?}");
    }
}

#[test]
fn a_test_that_never_fails_opens_nothing() {
    let lab = Lab::new(Language::Python);
    let before = lab.snapshot();
    let turns = [
        say("Tests.", &[write("test_double.py", "def test_true():\n    assert True\n")]),
        say("Red?", &[run_tests()]),
        say("Code.", &[write("sums.py", &lab.language.solution())]),
        complete(),
    ];
    let run = lab.run(&[], &turns);
    run.assert_not_done(1);
    assert_eq!(run.answers("fs.write")[1]["decision"], "denied", "{}", run.told());
    assert_eq!(lab.snapshot(), before);
}

#[test]
fn assert_false_is_red_and_never_green() {
    let lab = Lab::new(Language::Python);
    let before = lab.snapshot();
    let turns = [
        say("Tests.", &[write("test_double.py", "def test_false():\n    assert False\n")]),
        say("Red.", &[run_tests()]),
        say("Code.", &[write("sums.py", &lab.language.solution())]),
        say("Green?", &[run_tests()]),
        complete(),
    ];
    lab.run(&[], &turns).assert_not_done(1);
    assert_eq!(lab.snapshot(), before);
}

#[test]
fn lesson_l15_tests_are_frozen_while_code_is_written_however_they_are_spelt() {
    let lab = Lab::new(Language::Python);
    let before = lab.snapshot();
    let (test, text) = lab.language.test();
    let easy = "def test_doubles():\n    assert True\n";
    let mut turns = vec![say("Tests.", &[write(test, text)]), say("Red.", &[run_tests()])];
    let spellings = [
        "test_double.py",
        "./test_double.py",
        "a/../test_double.py",
        "Test_double.py",
        "tests/more.py",
    ];
    for spelling in spellings {
        turns.push(say("Easier.", &[write(spelling, easy)]));
    }
    turns.push(say("Gone.", &[call("fs.delete", json!({"path": test}))]));
    turns.push(say(
        "Edit.",
        &[call("fs.edit", json!({"path": test, "old": "== 8", "new": "!= 8"}))],
    ));
    let script = ["-c", "open('test_double.py','w').write('def test_doubles(): pass')"];
    turns.push(say("Shell.", &[call("shell.run", json!({"command": "python3", "args": script}))]));
    turns.push(say("Run.", &[run_tests()]));
    turns.push(complete());
    let run = lab.run(&[], &turns);
    run.assert_not_done(1);
    for answer in &run.answers("fs.write")[1..] {
        assert_eq!(answer["decision"], "denied", "{answer}");
    }
    assert_eq!(run.answers("fs.delete")[0]["decision"], "denied");
    assert_eq!(run.answers("fs.edit")[0]["decision"], "denied");
    let summary = run.answers("shell.run")[0]["summary"].as_str().unwrap();
    assert!(summary.ends_with("its files were not taken"), "{}", run.told());
    assert_eq!(lab.snapshot(), before);
}

#[test]
fn lesson_l15_an_implementation_hidden_among_the_tests_opens_nothing() {
    let lab = Lab::new(Language::JavaScript);
    let before = lab.snapshot();
    let hidden = "export const double = (a) => 2 * a;\n";
    let test = "import test from 'node:test';\nimport { double } from './tests/impl.js';\ntest('doubles', () => { if (double(4) !== 8) throw new Error('no'); });\n";
    let turns = [
        say("Tests.", &[write("tests/impl.js", hidden), write("double.test.js", test)]),
        say("Red?", &[run_tests()]),
        say("Code.", &[write("sums.js", &lab.language.solution())]),
        complete(),
    ];
    let run = lab.run(&[], &turns);
    run.assert_not_done(1);
    assert_eq!(run.answers("fs.write")[2]["decision"], "denied", "{}", run.told());
    assert_eq!(lab.snapshot(), before);
}

#[test]
fn a_test_that_was_there_before_cannot_be_deleted_on_the_way() {
    let lab = Lab::new(Language::Python);
    let before = lab.snapshot();
    let (test, text) = lab.language.test();
    let turns = [
        say("Tests.", &[write(test, text), call("fs.delete", json!({"path": "test_add.py"}))]),
        say("Red.", &[run_tests()]),
        say("Code.", &[write("sums.py", &lab.language.solution())]),
        say("Green?", &[run_tests()]),
        complete(),
    ];
    let run = lab.run(&[], &turns);
    run.assert_not_done(1);
    assert_eq!(lab.snapshot(), before);
}

#[test]
fn lesson_l16_secrets_are_read_by_no_tool() {
    let lab = Lab::new(Language::Python);
    lab.user.write(".env", "PASSWORD=hunter2-hunter2\n");
    let turns = [
        say("", &[call("fs.read", json!({"path": ".env"}))]),
        say("", &[call("fs.read", json!({"path": "./a/../.env"}))]),
        say("", &[call("search.grep", json!({"pattern": "hunter2"}))]),
        say("", &[call("shell.run", json!({"command": "cat", "args": [".env"]}))]),
        say("", &[call("shell.run", json!({"command": "grep", "args": ["-r", "hunter2", "."]}))]),
        say(
            "",
            &[write("test_env.py", "def test_env():\n    assert False, open('.env').read()\n")],
        ),
        say("", &[run_tests()]),
        say("I could not read it.", &[]),
    ];
    let path = lab.transcript(&turns);
    let run = lab.run(&["--no"], &turns);
    drop(path);
    assert!(!run.told().contains("hunter2-hunter2"), "{}", run.told());
    assert!(!lab.heard(&run).contains("hunter2-hunter2"), "{}", lab.heard(&run));
    assert_eq!(run.answers("fs.read")[0]["decision"], "denied");
    assert_eq!(run.answers("fs.read")[1]["decision"], "denied");
}

#[test]
fn an_exemption_is_granted_by_pattern_and_refused_otherwise() {
    let lab = Lab::new(Language::Python);
    lab.user.write("README.md", "# Sums\n");
    let ask = |category: &str, path: &str| {
        call(
            "workflow.request_exemption",
            json!({"category": category, "paths": [path], "reason": "a word"}),
        )
    };
    let turns = [
        say("Code?", &[ask("documentation", "sums.py")]),
        say("Words.", &[ask("documentation", "README.md")]),
        say("Write.", &[write("README.md", "# Sums and more\n")]),
        say("And code.", &[write("sums.py", &lab.language.solution())]),
        complete(),
    ];
    let run = lab.run(&[], &turns);
    run.assert_done();
    let asked = run.answers("workflow.request_exemption");
    assert_eq!(
        (&asked[0]["success"], &asked[1]["success"]),
        (&json!(false), &json!(true)),
        "{}",
        run.told()
    );
    assert_eq!(run.answers("fs.write")[1]["decision"], "denied", "{}", run.told());
    assert_eq!(lab.user.read("README.md"), "# Sums and more\n");
    assert!(!lab.user.read("sums.py").contains("double"));
}

#[test]
fn a_change_that_touches_no_code_needs_no_test_and_a_change_of_code_does() {
    let lab = Lab::new(Language::Rust);
    let ask = call(
        "workflow.request_exemption",
        json!({"category": "type_refactor", "paths": ["src/lib.rs"], "reason": "a comment"}),
    );
    let code = "pub fn add(a: i64, b: i64) -> i64 {\n    a - b\n}\n";
    let types = "// Adds, and no more.\npub fn add(a: i64, b: i64) -> i64 {\n    a + b\n}\n";
    let turns = [
        say("Types.", &[ask]),
        say("Code, really.", &[write("src/lib.rs", code)]),
        say("Types, really.", &[write("src/lib.rs", types)]),
        complete(),
    ];
    let run = lab.run(&[], &turns);
    run.assert_done();
    assert_eq!(run.answers("fs.write")[0]["success"], false, "{}", run.told());
    assert_eq!(lab.user.read("src/lib.rs"), types);
}
