//! Tests that work against their own runner, inside the sandbox only.

use fluffy_base::Span;
use fluffy_kernel::Tested;
use fluffy_workflow::{NotGreen, Outcome, green, red};

use crate::scene::{Ask, Scene, Tools, path};

const PACKAGE: (&str, &str) = ("package.json", r#"{"scripts":{"test":"node --test"}}"#);
const HEAD: &str = "const test = require('node:test'); const fs = require('node:fs'); const assert = require('node:assert');\n";
/// Finds the directory that reports are written to.
const REPORTS: &str = "import glob, os\nreports = glob.glob('.fluffy-run-*')[0]\n";

fn pytest(test: &str) -> Tested {
    let text = format!("{REPORTS}{test}");
    let files = [("pytest.ini", "[pytest]\n"), ("test_a.py", text.as_str())];
    let scene = Scene::with(&files, Tools::python());
    scene.test_with(&Ask { timeout: Some(Span::from_ms(20_000)), ..Ask::default() }).unwrap()
}

fn node(test: &str) -> Tested {
    let text = format!("{HEAD}{test}");
    let scene = Scene::new(&[PACKAGE, ("a.test.js", text.as_str())]);
    scene.test_with(&Ask { timeout: Some(Span::from_ms(20_000)), ..Ask::default() }).unwrap()
}

/// The run is not green: a suite gave no result, or a test failed.
#[track_caller]
fn failed(tested: &Tested) {
    let is_bad = tested.summary.failed > 0 || tested.has_suite_without_result();
    assert!(is_bad, "{}", tested.summary);
    green(None, None, &tested.run).unwrap_err();
}

#[test]
fn a_report_that_is_deleted_replaced_or_led_elsewhere_is_no_report() {
    let bad = "def test_a():\n    assert False\n";
    for attack in [
        // Nothing is left by whoever leaves early.
        "def test_b():\n    os._exit(0)\n".to_owned(),
        format!(
            "{bad}import atexit\natexit.register(lambda: os.unlink(reports + '/report.xml'))\n"
        ),
        format!(
            "{bad}import atexit\ndef swap():\n    os.unlink(reports + '/report.xml')\n    os.symlink('/etc/passwd', reports + '/report.xml')\natexit.register(swap)\n"
        ),
        format!("{bad}import atexit, shutil\natexit.register(lambda: shutil.rmtree(reports))\n"),
        format!(
            "{bad}import atexit\natexit.register(lambda: os.link(reports + '/report.xml', 'b'))\n"
        ),
    ] {
        let tested = pytest(&attack);
        assert!(tested.has_suite_without_result(), "{attack}");
        failed(&tested);
    }
}

#[test]
fn a_forged_report_is_overwritten_or_contradicts() {
    let forged = "<testsuites><testsuite tests='1' failures='0' errors='0'><testcase classname='test_a' name='test_a' file='test_a.py'/></testsuite></testsuites>";
    // Written while tests run: the runner writes its own at the end.
    let tested = pytest(&format!(
        "def test_a():\n    open(reports + '/report.xml', 'w').write(\"{forged}\")\n    assert False\n"
    ));
    assert_eq!(tested.run.outcome("test_a.py: test_a"), Some(Outcome::Failed));
    // Written when all is over: the code still tells.
    failed(&pytest(&format!(
        "import atexit\natexit.register(lambda: open(reports + '/report.xml', 'w').write(\"{forged}\"))\ndef test_a():\n    assert False\n"
    )));
    failed(&node(
        "const dir = fs.readdirSync('.').find((name) => name.startsWith('.fluffy-run-'));\nconst line = JSON.stringify({ result: 'pass', file: __filename, name: 'a', nesting: 0, suite: false, skipped: false, failure: null, message: null });\ntest('a', () => { fs.appendFileSync(dir + '/report.jsonl', line + '\\n{\"result\":\"end\"}\\n'); assert.fail(); });\n",
    ));
}

#[test]
fn a_test_that_kills_its_runner_fails() {
    failed(&node("test('a', () => { process.kill(process.ppid, 'SIGKILL'); });\n"));
    failed(&pytest("import signal\ndef test_a():\n    os.kill(os.getpid(), signal.SIGKILL)\n"));
    // The first process of the sandbox is nobody's to kill.
    let tested = pytest("import signal\ndef test_a():\n    os.kill(1, signal.SIGKILL)\n");
    assert_eq!(tested.run.outcome("(pytest)"), Some(Outcome::Passed), "{}", tested.summary);
    let kills = "extern \"C\" { fn kill(pid: i32, signal: i32) -> i32; fn getppid() -> i32; }\n#[test]\nfn a() {\n    unsafe { kill(getppid(), 9) };\n    std::thread::sleep(std::time::Duration::from_secs(60));\n}\n";
    let manifest = "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    let files = [("Cargo.toml", manifest), ("src/lib.rs", kills)];
    failed(&Scene::with(&files, Tools::rust()).test());
}

#[test]
fn endless_output_and_endless_processes_end_only_their_sandbox() {
    let tested = node("test('a', () => { for (;;) fs.writeSync(1, 'x'.repeat(65536)); });\n");
    failed(&tested);
    assert!(tested.summary.to_string().len() < 6 << 10);
    let bomb = "def test_a():\n    while True:\n        if os.fork() == 0:\n            import time\n            time.sleep(60)\n            os._exit(0)\n";
    failed(&pytest(bomb));
    let endless =
        pytest("import sys\ndef test_a():\n    while True:\n        os.write(2, b'x' * 65536)\n");
    failed(&endless);
}

#[test]
fn what_a_test_writes_into_the_project_is_gone_with_it() {
    let write = "def test_a():\n    open('made', 'w').write('x')\n    open('test_a.py', 'a').write('# more')\n    os.unlink('pytest.ini')\n    assert os.path.exists('made')\n";
    // That the project is as it was, the scene itself looks at.
    let tested = pytest(write);
    assert_eq!(tested.run.outcome("test_a.py: test_a"), Some(Outcome::Passed));
}

#[test]
fn lesson_l13_a_file_that_leaves_without_running_its_tests_is_missed() {
    let tests = format!(
        "{HEAD}const {{ one, two }} = require('./code.js');\ntest('one', () => assert.strictEqual(one(), 1));\ntest('two', () => assert.strictEqual(two(), 2));\n"
    );
    let scene = Scene::new(&[PACKAGE, ("a.test.js", tests.as_str())]);
    scene.stage("code.js", "exports.one = () => 0; exports.two = () => 0;\n");
    let first = scene.test();
    let proof = red(None, &first.run, &[path("a.test.js")].into()).unwrap();
    assert_eq!(proof.failing().len(), 2);
    // The code ends the process with success before, between or after the tests.
    for code in [
        "process.exit(0);\n",
        "exports.one = () => 1; exports.two = () => process.exit(0);\n",
        "exports.one = () => { setImmediate(() => process.exit(0)); return 1; };\nexports.two = () => new Promise(() => {});\n",
        "const real = require('node:test'); require.cache[require.resolve('./code.js')].exports = { one: () => 1, two: () => 2 }; process.on('exit', () => { process.exitCode = 0; }); process.exit();\n",
    ] {
        scene.stage("code.js", code);
        let run = scene.test().run;
        let error = green(None, Some(&proof), &run).unwrap_err();
        let is_missed = matches!(error, NotGreen::StillRed(_) | NotGreen::NoResult(_));
        assert!(is_missed, "{error}: {code}");
    }
    scene.stage("code.js", "exports.one = () => 1; exports.two = () => 2;\n");
    green(None, Some(&proof), &scene.test().run).unwrap();
}

#[test]
fn a_panic_an_abort_and_an_exit_are_failures_of_cargos_tests() {
    let manifest = "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    let tests = "#[test]\nfn panics() {\n    panic!(\"told why\");\n}\n#[test]\nfn passes() {}\n";
    let files = [("Cargo.toml", manifest), ("src/lib.rs", ""), ("tests/a.rs", tests)];
    let scene = Scene::with(&files, Tools::rust());
    let tested = scene.test();
    assert_eq!(tested.run.outcome("tests/a.rs: small::a panics"), Some(Outcome::Failed));
    assert_eq!(tested.run.outcome("tests/a.rs: small::a passes"), Some(Outcome::Passed));
    assert!(tested.summary.to_string().contains("told why"), "{}", tested.summary);
    for leave in ["std::process::abort()", "std::process::exit(0)"] {
        scene.stage("tests/a.rs", format!("#[test]\nfn a() {{\n    {leave};\n}}\n"));
        failed(&scene.test());
    }
}
