//! Tests of real projects, with the runners that are on this machine.

use fluffy_base::Span;
use fluffy_kernel::{Measured, Tested, TestsError};
use fluffy_workflow::{Extent, NotGreen, NotRed, Outcome, Suite, green, red};

use crate::scene::{Ask, Scene, Tools, path};

const CARGO: &str = "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";

/// What each test ended as, what is around tests left out.
pub(crate) fn told(tested: &Tested) -> Vec<String> {
    let cases = tested.run.cases().filter(|(id, _)| !id.contains('('));
    cases
        .map(|(id, case)| {
            let place = case.place.as_ref().map_or("-", |place| place.as_str());
            format!("{:?} {id} @ {place}", case.outcome)
        })
        .collect()
}

#[track_caller]
pub(crate) fn counts(tested: &Tested, passed: usize, failed: usize, skipped: usize) {
    let found = (tested.summary.passed, tested.summary.failed, tested.summary.skipped);
    assert_eq!(found, (passed, failed, skipped), "{}", tested.summary);
}

/// The suite gave no result: nothing passed, nothing failed, and it says why.
#[track_caller]
pub(crate) fn no_result(tested: &Tested, suite: &str) {
    counts(tested, 0, 0, 0);
    assert!(tested.run.suites_without_result().contains(suite), "{}", tested.summary);
    let [(named, why)] = tested.summary.not_run.as_slice() else { panic!("{}", tested.summary) };
    assert_eq!(named, suite);
    assert!(!why.is_empty());
    green(None, None, &tested.run).unwrap_err();
}

/// Covered and all lines of a file.
#[track_caller]
pub(crate) fn lines(tested: &Tested, file: &str) -> (u64, u64) {
    let [Measured::Lines(coverage)] = tested.coverage.as_slice() else {
        panic!("{:?}: {}", tested.coverage, tested.summary)
    };
    let lines = coverage.files().get(&path(file));
    lines.map_or((0, 0), |lines| (lines.covered, lines.total))
}

#[test]
fn cargo_goes_from_a_broken_build_over_red_to_green() {
    let files = [
        ("Cargo.toml", CARGO),
        ("src/lib.rs", "pub mod deep;\n"),
        ("src/deep.rs", "#[test]\nfn passes() {}\n#[test]\n#[ignore]\nfn later() {}\n"),
    ];
    let scene = Scene::with(&files, Tools::rust());
    let before = scene.test();
    let passes = "Passed src/lib.rs: small deep::passes @ src/deep.rs";
    let later = "Skipped src/lib.rs: small deep::later @ src/deep.rs";
    assert_eq!(told(&before), [later, passes]);
    counts(&before, 1, 0, 1);
    scene.stage("tests/adds.rs", "#[test]\nfn adds() {\n    assert_eq!(small::add(1, 2), 3);\n}\n");
    let broken = scene.test();
    let written = [path("tests/adds.rs")].into();
    assert_eq!(broken.run.broken(), Some(&written));
    let text = broken.summary.to_string();
    assert!(text.contains("the build failed (tests/adds.rs)"), "{text}");
    assert!(text.contains("cannot find function `add` in crate `small`"), "{text}");
    let proof = red(Some(&before.run), &broken.run, &written).unwrap();
    scene.stage("src/lib.rs", "pub mod deep;\npub fn add(a: u32, b: u32) -> u32 {\n    a * b\n}\n");
    let wrong = scene.test();
    counts(&wrong, 1, 1, 1);
    assert!(wrong.summary.to_string().contains("left: 2"), "{}", wrong.summary);
    green(Some(&before.run), Some(&proof), &wrong.run).unwrap_err();
    scene.stage("src/lib.rs", "pub mod deep;\npub fn add(a: u32, b: u32) -> u32 {\n    a + b\n}\n");
    let done = scene.test();
    let adds = "Passed tests/adds.rs: small::adds adds @ tests/adds.rs";
    assert_eq!(told(&done), [later, passes, adds]);
    green(Some(&before.run), Some(&proof), &done.run).unwrap();
    let part = scene.test_with(&Ask { pattern: Some("adds"), ..Ask::default() }).unwrap();
    assert_eq!((told(&part).len(), part.run.extent()), (1, Extent::Part));
}

#[test]
fn pytest_tells_each_test_with_its_file() {
    let files = [
        ("calc.py", "def add(a, b):\n    return a - b\n"),
        (
            "tests/test_calc.py",
            "import calc, pytest\ndef test_add():\n    assert calc.add(1, 2) == 3\ndef test_zero():\n    assert calc.add(0, 0) == 0\n@pytest.mark.skip\ndef test_later():\n    pass\n",
        ),
        ("conftest.py", ""),
    ];
    let scene = Scene::with(&files, Tools::python());
    let first = scene.test();
    assert_eq!(
        told(&first),
        [
            "Failed tests/test_calc.py: test_add @ tests/test_calc.py",
            "Skipped tests/test_calc.py: test_later @ tests/test_calc.py",
            "Passed tests/test_calc.py: test_zero @ tests/test_calc.py",
        ]
    );
    assert!(first.summary.to_string().contains("assert -1 == 3"), "{}", first.summary);
    let proof = red(None, &first.run, &[path("tests/test_calc.py")].into()).unwrap();
    scene.stage("calc.py", "def add(a, b):\n    return a + b\n");
    let second = scene.test();
    green(None, Some(&proof), &second.run).unwrap();
    let part = scene.test_with(&Ask { pattern: Some("zero"), ..Ask::default() }).unwrap();
    assert_eq!(told(&part), ["Passed tests/test_calc.py: test_zero @ tests/test_calc.py"]);
    scene.stage("tests/test_calc.py", "import no_such_module\n");
    let broken = scene.test();
    assert_eq!(broken.run.broken(), Some(&[path("tests/test_calc.py")].into()));
    assert!(broken.summary.to_string().contains("No module named 'no_such_module'"));
}

#[test]
fn pytest_finds_its_way_in_a_src_layout_and_measures_all_of_it() {
    let files = [
        (
            "pyproject.toml",
            "[tool.pytest.ini_options]\npythonpath = ['src']\ntestpaths = ['tests']\n[tool.coverage.report]\nfail_under = 100\n",
        ),
        ("src/sums/__init__.py", "def add(a, b):\n    return a + b\n"),
        ("src/sums/never.py", "def never():\n    return 1\n"),
        (
            "tests/test_sums.py",
            "import pytest, sums\n@pytest.mark.parametrize('a', [1, 2])\ndef test_add(a):\n    assert sums.add(a, 1) == a + 1\n",
        ),
    ];
    let scene = Scene::with(&files, Tools::python());
    let tested = scene.test_with(&Ask { coverage: true, ..Ask::default() }).unwrap();
    let expected = [
        "Passed tests/test_sums.py: test_add[1] @ tests/test_sums.py",
        "Passed tests/test_sums.py: test_add[2] @ tests/test_sums.py",
    ];
    assert_eq!(told(&tested), expected, "{}", tested.summary);
    // What nothing imports counts as well, and how much the project wants is not asked here.
    assert_eq!(lines(&tested, "src/sums/__init__.py"), (2, 2));
    assert_eq!(lines(&tested, "src/sums/never.py"), (0, 2));
}

#[test]
fn a_workspace_is_run_by_cargo_whatever_else_is_configured() {
    let member = |name: &str| CARGO.replace("small", name);
    let files = [
        ("Cargo.toml", "[workspace]\nmembers = ['crates/*']\nresolver = '2'\n"),
        (".config/nextest.toml", "[profile.default]\nretries = 3\n"),
        ("crates/one/Cargo.toml", &member("one")),
        (
            "crates/one/src/lib.rs",
            "/// ```\n/// assert_eq!(one::one(), 1);\n/// ```\npub fn one() -> u32 {\n    1\n}\n",
        ),
        ("crates/two/Cargo.toml", &member("two")),
        ("crates/two/src/lib.rs", "pub fn two() -> u32 {\n    std::process::abort()\n}\n"),
    ];
    let scene = Scene::with(&files, Tools::rust());
    let before = scene.test();
    let written = [path("crates/two/tests/two.rs")].into();
    scene.stage(
        "crates/two/tests/two.rs",
        "#[test]\nfn two() {\n    assert_eq!(two::two(), 2);\n}\n",
    );
    // A test binary that dies tells of none of its tests. It is red, and can be green.
    let died = scene.test();
    let end = "crates/two/tests/two.rs: two::two (end)";
    assert_eq!(died.run.outcome(end), Some(Outcome::Failed), "{}", died.summary);
    let proof = red(Some(&before.run), &died.run, &written).unwrap();
    scene.stage("crates/two/src/lib.rs", "pub fn two() -> u32 {\n    3\n}\n");
    green(Some(&before.run), Some(&proof), &scene.test().run).unwrap_err();
    scene.stage("crates/two/src/lib.rs", "pub fn two() -> u32 {\n    2\n}\n");
    let done = scene.test();
    green(Some(&before.run), Some(&proof), &done.run).unwrap();
    let expected = [
        "Passed crates/one/src/lib.rs: doc one #1 @ crates/one/src/lib.rs",
        "Passed crates/two/tests/two.rs: two::two two @ crates/two/tests/two.rs",
    ];
    assert_eq!(told(&done), expected);
    assert!(done.summary.suites[0].command.starts_with("cargo test --workspace"));
}

#[test]
fn node_tells_each_test_with_its_file_and_measures_only_the_project() {
    let test = "const test = require('node:test'); const assert = require('node:assert');\nconst { add } = require('../add.js');\ntest('adds', () => assert.strictEqual(add(1, 2), 3));\ntest('throws', () => { throw new Error('no') });\n";
    let files = [
        ("package.json", r#"{"scripts":{"test":"node --test"}}"#),
        ("add.js", "exports.add = (a, b) => a + b;\nexports.never = () => {\n  return 1;\n};\n"),
        ("test/add.test.js", test),
    ];
    let scene = Scene::new(&files);
    let tested = scene.test();
    assert_eq!(
        told(&tested),
        [
            "Passed test/add.test.js: adds @ test/add.test.js",
            "Failed test/add.test.js: throws @ test/add.test.js",
        ]
    );
    scene.stage("test/add.test.js", test.replace("throw new Error('no')", ""));
    let measured = scene.test_with(&Ask { coverage: true, ..Ask::default() }).unwrap();
    counts(&measured, 2, 0, 0);
    let [Measured::Lines(coverage)] = measured.coverage.as_slice() else {
        panic!("{:?}", measured.coverage)
    };
    let names: Vec<_> = coverage.files().keys().map(|path| path.as_str()).collect();
    assert!(
        names.contains(&"add.js") && !names.iter().any(|name| name.contains("fluffy")),
        "{names:?}"
    );
}

#[test]
fn a_monorepo_is_one_run_of_all_its_suites() {
    let files = [
        ("api/pytest.ini", "[pytest]\n"),
        ("api/test_a.py", "def test_a():\n    assert True\n"),
        ("web/package.json", r#"{"scripts":{"test":"node --test"}}"#),
        ("web/a.test.js", "require('node:test')('a', () => { throw new Error('wrong') });\n"),
    ];
    let scene = Scene::with(&files, Tools::python());
    let tested = scene.test();
    assert_eq!(
        told(&tested),
        [
            "Passed api: api/test_a.py: test_a @ api/test_a.py",
            "Failed web: web/a.test.js: a @ web/a.test.js",
        ]
    );
    assert_eq!(tested.summary.suites.len(), 2);
    assert_eq!(tested.run.outcome("api: (pytest)"), Some(Outcome::Passed));
    assert_eq!(tested.run.outcome("web: (node --test)"), Some(Outcome::Passed));
}

#[test]
fn a_suite_without_tests_is_empty_and_no_error() {
    let scene = Scene::with(&[("pytest.ini", "[pytest]\n"), ("a.py", "")], Tools::python());
    counts(&scene.test(), 0, 0, 0);
    let scene = Scene::new(&[("package.json", r#"{"scripts":{"test":"node --test"}}"#)]);
    counts(&scene.test(), 0, 0, 0);
    let scene = Scene::with(&[("Cargo.toml", CARGO), ("src/lib.rs", "")], Tools::rust());
    counts(&scene.test(), 0, 0, 0);
    let scene = Scene::new(&[("readme.md", "")]);
    assert!(matches!(scene.test_with(&Ask::default()), Err(TestsError::NoSuite)));
}

#[test]
fn flo_12_missing_runner_is_no_failure_and_has_a_fix() {
    let python = Scene::new(&[("pytest.ini", ""), ("test_a.py", "def test_a(): pass\n")]);
    let cargo = Scene::new(&[("Cargo.toml", CARGO), ("src/lib.rs", "")]);
    let jest = Scene::new(&[("package.json", r#"{"scripts":{"test":"jest"}}"#), ("a.test.js", "")]);
    let vitest = [("package.json", r#"{"devDependencies":{"vitest":"3"}}"#), ("a.test.ts", "")];
    let vitest = Scene::new(&vitest);
    let go = [("go.mod", "module m\n"), ("a_test.go", "package m\n")];
    let elsewhere = vec!["/usr/share".into()];
    let go = Scene::with(&go, Tools { path: elsewhere, nothing_else: true, ..Tools::default() });
    for (scene, id, fix) in [
        (python, "(pytest)", "`pytest` with `deps.install`"),
        (cargo, "(cargo test)", "https://rustup.rs"),
        (jest, "(jest)", "`jest` with `deps.install`"),
        (vitest, "(vitest)", "`vitest` with `deps.install`"),
        (go, "(go test)", "install Go"),
    ] {
        let tested = scene.test();
        no_result(&tested, id);
        let text = tested.summary.to_string();
        assert!(text.contains(fix), "{text}");
    }
}

#[test]
fn tests_with_endless_names_are_told_apart() {
    let test = "import pytest\n@pytest.mark.parametrize('x', ['ä' * 1500 + 'a', 'ä' * 1500 + 'b'])\ndef test_a(x):\n    assert x.endswith('a')\n";
    let scene = Scene::with(&[("pytest.ini", ""), ("tests/test_a.py", test)], Tools::python());
    let tested = scene.test();
    counts(&tested, 1, 1, 0);
    assert_eq!(told(&tested).len(), 2);
    assert!(tested.run.cases().all(|(id, _)| id.len() <= 1024));
    assert_eq!(scene.test().run, tested.run, "identities are the same in every run");
}

#[test]
fn flo_12_suite_without_time_has_no_result() {
    let scene =
        Scene::with(&[("pytest.ini", ""), ("test_a.py", "def test_a(): pass\n")], Tools::python());
    let ask = Ask { timeout: Some(Span::from_ms(0)), ..Ask::default() };
    let tested = scene.test_with(&ask).unwrap();
    no_result(&tested, "(pytest)");
}

#[test]
fn a_configured_command_counts_by_its_code() {
    let scene = Scene::new(&[("check", "#!/bin/sh\necho looked at $CI; exit $1\n")]);
    for (code, expected) in [("0", Outcome::Passed), ("3", Outcome::Failed)] {
        let suites = [Suite::configured(vec!["./check".to_owned(), code.to_owned()])];
        let ask = Ask { suites: Some(&suites), pattern: Some("x"), ..Ask::default() };
        let tested = scene.test_with(&ask).unwrap();
        let id = format!(".: ./check {code}");
        assert_eq!(tested.run.outcome(&id), Some(expected), "{}", tested.summary);
        assert_eq!(tested.run.extent(), Extent::Part);
    }
}

#[test]
fn flo_12_suite_that_hangs_is_neither_red_nor_green() {
    let test = "import time, os\ndef test_waits():\n    while not os.path.exists('done'):\n        time.sleep(0.01)\n";
    let files = [("pytest.ini", "[pytest]\n"), ("test_a.py", "def test_a():\n    pass\n")];
    let scene = Scene::with(&files, Tools::python());
    let before = scene.test();
    scene.stage("test_waits.py", test);
    let ask = Ask { timeout: Some(Span::from_ms(4_000)), ..Ask::default() };
    let hung = scene.test_with(&ask).unwrap();
    no_result(&hung, "(pytest)");
    let text = hung.summary.to_string();
    assert!(text.contains("the time limit was reached"), "{text}");
    let written = [path("test_waits.py")].into();
    let error = red(Some(&before.run), &hung.run, &written).unwrap_err();
    assert!(matches!(error, NotRed::NoResult(_)), "{error}");
    let error = green(Some(&before.run), None, &hung.run).unwrap_err();
    assert!(matches!(error, NotGreen::NoResult(_)), "{error}");
    scene.stage("done", "");
    green(Some(&before.run), None, &scene.test().run).unwrap();
}

#[test]
fn flo_12_failures_beside_a_limit_prove_nothing() {
    let test = "import os, time\ndef test_a():\n    children = []\n    try:\n        while True:\n            pid = os.fork()\n            if pid == 0:\n                time.sleep(2)\n                os._exit(0)\n            children.append(pid)\n    finally:\n        for pid in children:\n            os.kill(pid, 9)\n            os.waitpid(pid, 0)\n";
    let scene = Scene::with(&[("pytest.ini", "")], Tools::python());
    let before = scene.test();
    scene.stage("test_a.py", test);
    let limited = scene.test();
    no_result(&limited, "(pytest)");
    let text = limited.summary.to_string();
    assert!(text.contains("the limit of processes was reached"), "{text}");
    red(Some(&before.run), &limited.run, &[path("test_a.py")].into()).unwrap_err();
}

#[test]
fn flo_12_command_that_cannot_start_its_program_has_no_result() {
    let makefile = "test:\n\tno-such-runner\n";
    let scene = Scene::new(&[("Makefile", makefile), ("check", "#!/bin/sh\nexit 126\n")]);
    for argv in [&["make", "test"][..], &["./check"], &["no-such-program"], &["make", "nothing"]] {
        let suites = [Suite::configured(argv.iter().map(|word| (*word).to_owned()).collect())];
        let ask = Ask { suites: Some(&suites), ..Ask::default() };
        let tested = scene.test_with(&ask).unwrap();
        no_result(&tested, "(test command)");
        assert!(tested.summary.to_string().contains("test.command"), "{}", tested.summary);
    }
}

#[test]
fn flo_12_missing_package_of_the_code_is_no_red() {
    let files = [
        ("pytest.ini", ""),
        ("app.py", "import no_such_package\n"),
        ("package.json", r#"{"scripts":{"test":"node --test"}}"#),
        ("app.js", "require('no-such-package');\n"),
    ];
    let scene = Scene::with(&files, Tools::python());
    let before = scene.test();
    scene.stage("test_app.py", "import app\ndef test_true():\n    assert True\n");
    scene.stage("app.test.js", "require('./app.js');\nrequire('node:test')('a', () => {});\n");
    let tested = scene.test();
    let written = [path("test_app.py"), path("app.test.js")].into();
    let error = red(Some(&before.run), &tested.run, &written).unwrap_err();
    assert!(matches!(error, NotRed::BuildFailsElsewhere(_)), "{error}: {}", tested.summary);
    let text = tested.summary.to_string();
    assert!(text.contains("`no-such-package` is not installed"), "{text}");
    assert!(text.contains("deps.install"), "{text}");
    // A module that the test itself asks for is still to be written.
    scene.stage("test_app.py", "import slug\ndef test_true():\n    assert True\n");
    let proof = red(Some(&before.run), &scene.test().run, &written).unwrap();
    assert_eq!(proof.broken().len(), 1, "{:?}", proof.broken());
}

#[test]
fn lesson_l16_tests_do_not_see_what_must_not_be_read() {
    let test = "import os\ndef test_no_secret():\n    assert not os.path.exists('.env')\n";
    let scene = Scene::with(
        &[("pytest.ini", ""), ("test_a.py", test), (".env", "secret")],
        Tools::python(),
    );
    counts(&scene.test_with(&Ask { hidden: &[".env"], ..Ask::default() }).unwrap(), 1, 0, 0);
    counts(&scene.test(), 0, 1, 0);
}

#[test]
fn a_projects_own_virtual_environment_is_used_unless_the_session_touched_it() {
    let tools = Tools::python();
    let (environment, shown) = (tools.shown[0].clone(), tools.shown);
    let files = [("pytest.ini", ""), ("test_a.py", "def test_a():\n    pass\n")];
    let scene = Scene::with(&files, Tools { shown, ..Tools::default() });
    let venv = scene.project().join(".venv/bin");
    std::fs::create_dir_all(&venv).unwrap();
    let interpreter = std::fs::canonicalize(environment.join("bin/python3")).unwrap();
    std::os::unix::fs::symlink(interpreter, venv.join("python3")).unwrap();
    std::fs::copy(environment.join("pyvenv.cfg"), scene.project().join(".venv/pyvenv.cfg"))
        .unwrap();
    std::os::unix::fs::symlink(environment.join("lib"), scene.project().join(".venv/lib")).unwrap();
    counts(&scene.test(), 1, 0, 0);
    scene.stage(".venv/bin/python3", "#!/bin/sh\necho forged\n");
    no_result(&scene.test(), "(pytest)");
}
