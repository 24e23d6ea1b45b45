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
