//! Exercises as they are found in the world: a description, a stub, and tests from elsewhere.

use super::lab::{Lab, Language, complete, run_tests, say, write};

#[test]
fn an_exercise_with_a_stub_is_solved_in_every_language() {
    let exercises = [
        (
            Language::Rust,
            vec![
                (
                    "Cargo.toml",
                    "[package]\nname = \"leap\"\nversion = \"1.6.0\"\nedition = \"2021\"\n",
                ),
                (
                    "src/lib.rs",
                    "pub fn is_leap_year(year: u64) -> bool {\n    panic!(\"not yet: {year}\")\n}\n",
                ),
            ],
            (
                "tests/leap.rs",
                "#[test]\nfn common() {\n    assert!(!leap::is_leap_year(2015));\n}\n#[test]\n#[ignore]\nfn by_four() {\n    assert!(leap::is_leap_year(1996));\n}\n",
            ),
            (
                "src/lib.rs",
                "pub fn is_leap_year(year: u64) -> bool {\n    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)\n}\n",
            ),
        ),
        (
            Language::Python,
            vec![("leap.py", "def leap_year(year):\n    pass\n")],
            (
                "leap_test.py",
                "import unittest\nfrom leap import leap_year\n\n\nclass LeapTest(unittest.TestCase):\n    def test_common(self):\n        self.assertIs(leap_year(2015), False)\n\n    def test_by_four(self):\n        self.assertIs(leap_year(1996), True)\n",
            ),
            (
                "leap.py",
                "def leap_year(year):\n    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)\n",
            ),
        ),
        (
            Language::JavaScript,
            vec![
                ("leap.js", "export const isLeap = () => {\n  throw new Error('not yet');\n};\n"),
                ("package.json", "{\"type\":\"module\",\"scripts\":{\"test\":\"node --test\"}}\n"),
            ],
            (
                "leap.test.js",
                "import { test } from 'node:test';\nimport assert from 'node:assert';\nimport { isLeap } from './leap.js';\n\ntest('common', () => assert.equal(isLeap(2015), false));\ntest('by four', () => assert.equal(isLeap(1996), true));\n",
            ),
            (
                "leap.js",
                "export const isLeap = (year) => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);\n",
            ),
        ),
    ];
    for (language, project, test, solution) in exercises {
        let lab = Lab::empty(language);
        for (name, text) in project {
            lab.user.write(name, text);
        }
        let turns = [
            say("", &[write(test.0, test.1)]),
            say("", &[run_tests()]),
            say("", &[write(solution.0, solution.1)]),
            say("", &[run_tests()]),
            complete(),
        ];
        let run = lab.run(&[], &turns);
        run.assert_done();
        assert_eq!(lab.user.read(solution.0), solution.1);
        assert_eq!(lab.user.read(test.0), test.1);
    }
}

#[test]
fn an_exercise_without_any_file_is_solved_in_every_language() {
    let exercises = [
        (
            Language::Python,
            ("test_one.py", "from one import one\n\ndef test_one():\n    assert one() == 1\n"),
            ("one.py", "def one():\n    return 1\n"),
        ),
        (
            Language::JavaScript,
            (
                "one.test.js",
                "const test = require('node:test');\nconst { one } = require('./one.js');\ntest('one', () => { if (one() !== 1) throw new Error('no'); });\n",
            ),
            ("one.js", "exports.one = () => 1;\n"),
        ),
    ];
    for (language, test, solution) in exercises {
        let lab = Lab::empty(language);
        let turns = [
            say("", &[write(test.0, test.1)]),
            say("", &[run_tests()]),
            say("", &[write(solution.0, solution.1)]),
            say("", &[run_tests()]),
            complete(),
        ];
        lab.run(&[], &turns).assert_done();
        assert_eq!(lab.user.read(solution.0), solution.1);
    }
}

/// One exercise: its files, the test with its name, the code with its name, and code that is wrong.
struct Exercise {
    language: Language,
    project: Vec<(&'static str, &'static str)>,
    test: (&'static str, &'static str),
    solution: (&'static str, &'static str),
    wrong: &'static str,
}

/// Exercises whose tests were written by somebody else, in ways of their own.
fn given() -> Vec<Exercise> {
    vec![
        Exercise {
            language: Language::Rust,
            project: vec![
                (
                    "Cargo.toml",
                    "[package]\nname = \"leap\"\nversion = \"1.6.0\"\nedition = \"2021\"\n",
                ),
                ("src/lib.rs", ""),
            ],
            test: (
                "tests/leap.rs",
                "use leap::leap;\n\n#[test]\nfn common() {\n    assert!(!leap(2015));\n}\n#[test]\nfn by_four() {\n    assert!(leap(1996));\n}\n#[test]\n#[ignore]\nfn by_hundred() {\n    assert!(!leap(1900));\n}\n",
            ),
            solution: (
                "src/lib.rs",
                "pub fn leap(year: u64) -> bool {\n    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)\n}\n",
            ),
            wrong: "pub fn leap(_: u64) -> bool {\n    false\n}\n",
        },
        Exercise {
            language: Language::Python,
            project: vec![
                ("leap.py", "def leap_year(year):\n    pass\n"),
                (
                    "other_test.py",
                    "from other import other\n\n\ndef test_other():\n    assert other()\n",
                ),
            ],
            test: (
                "leap_test.py",
                "import unittest\nfrom leap import leap_year\n\n\nclass LeapTest(unittest.TestCase):\n    def test_years(self):\n        for year, leap in [(2015, False), (1996, True)]:\n            with self.subTest(year=year):\n                self.assertIs(leap_year(year), leap)\n",
            ),
            solution: (
                "leap.py",
                "def leap_year(year):\n    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)\n",
            ),
            wrong: "def leap_year(year):\n    return False\n",
        },
        Exercise {
            language: Language::JavaScript,
            project: vec![("package.json", "{\"scripts\":{\"test\":\"node test.js\"}}\n")],
            test: (
                "test.js",
                "const assert = require('node:assert');\nconst { leap } = require('./leap.js');\n\nassert.equal(leap(2015), false);\nassert.equal(leap(1996), true);\n",
            ),
            solution: (
                "leap.js",
                "exports.leap = (year) => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);\n",
            ),
            wrong: "process.exit(0);\n",
        },
    ]
}

#[test]
fn an_exercise_with_tests_that_fail_already_is_solved_and_never_by_a_wrong_solution() {
    for exercise in given() {
        let Exercise { language, project, test, solution, wrong } = exercise;
        for (code, is_right) in [(solution.1, true), (wrong, false)] {
            let lab = Lab::empty(language);
            for (name, text) in project.iter().chain([&test]) {
                lab.user.write(name, text);
            }
            let before = lab.snapshot();
            let turns = [
                say("They fail.", &[run_tests()]),
                say("Code.", &[write(solution.0, code)]),
                say("They pass.", &[run_tests()]),
                complete(),
            ];
            let run = lab.run(&[], &turns);
            if is_right {
                run.assert_done();
                assert_eq!(lab.user.read(solution.0), code, "{language:?}");
            } else {
                run.assert_not_done(1);
                assert_eq!(lab.snapshot(), before, "{language:?}");
            }
        }
    }
}

#[test]
fn tests_of_many_styles_are_red_and_then_green_and_are_run_once_to_validate() {
    for Exercise { language, project, test, solution, wrong } in given() {
        let lab = Lab::empty(language);
        for (name, text) in project {
            lab.user.write(name, text);
        }
        let turns = [
            say("", &[write(test.0, test.1), run_tests()]),
            say("", &[write(solution.0, wrong), run_tests()]),
            say("", &[write(solution.0, solution.1)]),
            complete(),
        ];
        let run = lab.run(&[], &turns);
        run.assert_done();
        assert_eq!(lab.user.read(test.0), test.1);
        assert_eq!(run.all("tests.finished").len(), 3, "{}", run.told());
    }
}

#[test]
fn a_rust_exercise_without_any_file_begins_with_its_test_and_asks_for_its_manifest() {
    let lab = Lab::empty(Language::Rust);
    let manifest = "[package]\nname = \"one\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    let code = "pub fn one() -> u8 {\n    1\n}\n";
    let turns = [
        say(
            "",
            &[write("tests/one.rs", "#[test]\nfn one() {\n    assert_eq!(one::one(), 1);\n}\n")],
        ),
        say("", &[run_tests()]),
        say("", &[write("Cargo.toml", manifest), write("src/lib.rs", code)]),
        say("", &[run_tests()]),
        complete(),
    ];
    let refused = lab.run(&["--no"], &turns);
    refused.assert_not_done(1);
    assert!(!lab.root().join("src").exists());
    lab.run(&["--yes"], &turns).assert_done();
    assert_eq!(lab.user.read("src/lib.rs"), code);
}
