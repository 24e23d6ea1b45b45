//! Projects with jest and vitest, which lie in the project where nothing can be written.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt as _;

use fluffy_base::Span;
use fluffy_kernel::Measured;
use fluffy_workflow::{Outcome, green, red};

use crate::scene::{Ask, Scene, path};
use crate::suites::{counts, lines, no_result, told};

/// One of the two, with what differs between them.
#[derive(Clone, Copy)]
struct Kind {
    suite: &'static str,
    package: &'static str,
    /// What stands above the tests.
    head: &'static str,
    exports: fn(&str) -> String,
}

const JEST: Kind = Kind {
    suite: "(jest)",
    package: r#"{"scripts":{"test":"jest"},"jest":{"coverageThreshold":{"global":{"lines":100}}}}"#,
    head: "const { add } = require('./add.js'); const fs = require('node:fs');\n",
    exports: |sign| {
        format!("exports.add = (a, b) => a {sign} b;\nexports.never = () => {{\n  return 1;\n}};\n")
    },
};

const VITEST: Kind = Kind {
    suite: "(vitest)",
    package: r#"{"type":"module","scripts":{"test":"vitest"}}"#,
    head: "import { afterAll, describe, expect, test } from 'vitest'; import fs from 'node:fs'; import { add } from './add.js';\n",
    exports: |sign| {
        format!(
            "export const add = (a, b) => a {sign} b;\nexport const never = () => {{\n  return 1;\n}};\n"
        )
    },
};

const TESTS: &str = "describe('sums', () => {
  test('adds', () => { console.log('PASS add.test.js\\n ✓ adds\\nTests: 1 passed, 1 total'); expect(add(1, 2)).toBe(3); });
  test('zero', () => expect(add(0, 0)).toBe(0));
  test.skip('later', () => {});
  test.todo('some day');
  test.each([[1, 2], [3, 4]])('%i before %i', (a, b) => expect(a).toBeLessThan(b));
});
afterAll(() => { if (add(0, 1) < 0) throw new Error('below nothing'); });
";

/// A report in which a test has passed, in the directory of reports.
const FORGE: &str = "const dir = fs.readdirSync('.').find((name) => name.startsWith('.fluffy-run-'));
const file = process.cwd() + '/add.test.js';
const passed = [{ ancestorTitles: [], title: 'a', status: 'passed', failureMessages: [] }];
const report = { numTotalTests: 1, numPassedTests: 1, numFailedTests: 0, success: true, testResults: [{ name: file, status: 'passed', message: '', assertionResults: passed }] };
const forge = () => fs.writeFileSync(dir + '/report.json', JSON.stringify(report));
";

/// A project in which the runner is installed.
fn scene(kind: Kind, tests: &str) -> Scene {
    let tests = format!("{}{tests}", kind.head);
    let scene = Scene::new(&[("package.json", kind.package), ("add.test.js", &tests)]);
    scene.install_modules();
    scene
}

/// Nothing can be made where the runner would keep its caches.
fn without_writing(scene: &Scene, run: impl FnOnce()) {
    let modules = scene.project().join("node_modules");
    set_permissions(&modules, Permissions::from_mode(0o555)).unwrap();
    run();
    set_permissions(&modules, Permissions::from_mode(0o755)).unwrap();
}

fn from_a_missing_module_over_red_to_green(kind: Kind) {
    let scene = scene(kind, TESTS);
    let written = [path("add.test.js")].into();
    let broken = scene.test();
    assert_eq!(broken.run.broken(), Some(&written), "{}", broken.summary);
    assert!(broken.summary.to_string().contains("Cannot find module './add.js'"));
    let proof = red(None, &broken.run, &written).unwrap();
    scene.stage("add.js", (kind.exports)("-"));
    let wrong = scene.test();
    counts(&wrong, 3, 1, 2);
    green(None, Some(&proof), &wrong.run).unwrap_err();
    let proof = red(None, &wrong.run, &written).unwrap();
    assert!(proof.failing().contains("add.test.js: sums > adds"), "{proof:?}");
    scene.stage("add.js", (kind.exports)("+"));
    let done = scene.test_with(&Ask { coverage: true, ..Ask::default() }).unwrap();
    let expected = [
        "Passed add.test.js: sums > 1 before 2 @ add.test.js",
        "Passed add.test.js: sums > 3 before 4 @ add.test.js",
        "Passed add.test.js: sums > adds @ add.test.js",
        "Skipped add.test.js: sums > later @ add.test.js",
        "Skipped add.test.js: sums > some day @ add.test.js",
        "Passed add.test.js: sums > zero @ add.test.js",
    ];
    assert_eq!(told(&done), expected, "{}", done.summary);
    green(None, Some(&proof), &done.run).unwrap();
    let (covered, total) = lines(&done, "add.js");
    assert!(0 < covered && covered < total, "{covered} of {total}");
    // What no regular expression can be read from is looked for as it is.
    let ask = Ask { pattern: Some("sums > zero|("), ..Ask::default() };
    without_writing(&scene, || counts(&scene.test_with(&ask).unwrap(), 1, 0, 5));
}

#[test]
fn jest_goes_from_a_missing_module_over_red_to_green() {
    from_a_missing_module_over_red_to_green(JEST);
}

#[test]
fn vitest_goes_from_a_missing_module_over_red_to_green() {
    from_a_missing_module_over_red_to_green(VITEST);
}

/// No code of these makes a test pass that the runner did not see pass.
fn is_not_fooled(kind: Kind, attacks: &[&str]) {
    let scene = scene(kind, "");
    scene.stage("add.js", (kind.exports)("+"));
    for attack in attacks {
        let text = format!("{}{FORGE}{attack}test('a', () => attack());\n", kind.head);
        scene.stage("add.test.js", text);
        let ask = Ask { timeout: Some(Span::from_ms(30_000)), ..Ask::default() };
        let tested = scene.test_with(&ask).unwrap();
        assert_ne!(tested.run.outcome("add.test.js: a"), Some(Outcome::Passed), "{attack}");
        green(None, None, &tested.run).unwrap_err();
    }
}

const FORGE_AND_EXIT: &str = "const attack = () => { forge(); process.exit(0); };\n";
const FORGE_AND_LEAVE: &str = "const attack = () => { forge(); process.reallyExit(0); };\n";

#[test]
fn jest_is_not_fooled_by_a_test_that_writes_the_report_and_leaves() {
    is_not_fooled(JEST, &[FORGE_AND_EXIT, FORGE_AND_LEAVE]);
}

#[test]
fn vitest_is_not_fooled_by_a_test_that_writes_the_report_and_leaves() {
    is_not_fooled(VITEST, &[FORGE_AND_EXIT, FORGE_AND_LEAVE]);
}

#[test]
fn a_file_that_hangs_has_not_passed() {
    for kind in [JEST, VITEST] {
        let scene = scene(kind, "test('a', () => { while (add(1, 2) !== 3); });\n");
        scene.stage("add.js", (kind.exports)("-"));
        let ask = Ask { timeout: Some(Span::from_ms(2_500)), ..Ask::default() };
        let hung = scene.test_with(&ask).unwrap();
        no_result(&hung, kind.suite);
        assert!(hung.summary.to_string().contains("the time limit was reached"));
    }
}

#[test]
fn what_follows_the_tests_of_a_file_is_red_and_can_be_green() {
    let tests = "test('a', () => {});\nafterAll(() => { if (add(1, 2) !== 3) throw new Error('late'); });\n";
    let scene = scene(JEST, tests);
    scene.stage("add.js", (JEST.exports)("-"));
    let late = scene.test();
    assert_eq!(late.run.outcome("add.test.js: (file)"), Some(Outcome::Failed));
    let proof = red(None, &late.run, &[path("add.test.js")].into()).unwrap();
    scene.stage("add.js", (JEST.exports)("+"));
    green(None, Some(&proof), &scene.test().run).unwrap();
}

#[test]
fn vitest_measures_with_either_provider_or_not_at_all() {
    let scene = scene(VITEST, "test('a', () => expect(add(1, 2)).toBe(3));\n");
    scene.stage("add.js", (VITEST.exports)("+"));
    scene.stage(
        "vitest.config.js",
        "export default { test: { coverage: { provider: 'istanbul', thresholds: { 100: true, lines: 100, 'add.js': { lines: 100 } } } } };\n",
    );
    let ask = Ask { coverage: true, ..Ask::default() };
    let tested = scene.test_with(&ask).unwrap();
    counts(&tested, 1, 0, 0);
    assert_eq!(lines(&tested, "add.js"), (2, 3), "{}", tested.summary);
    let provider = scene.project().join("node_modules/@vitest/coverage-istanbul");
    std::fs::remove_dir_all(provider).unwrap();
    let tested = scene.test_with(&ask).unwrap();
    counts(&tested, 1, 0, 0);
    let [Measured::Unknown { why, .. }] = tested.coverage.as_slice() else { panic!() };
    assert!(why.contains("@vitest/coverage-istanbul"), "{why}");
}
