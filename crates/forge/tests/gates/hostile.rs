//! What a hostile skill or test could do, were it to get past the policy gate: it is refused or contained.

use fluffy_forge::Gate;

use crate::scene::{SKILL, Scene, TEST_PATH, TESTS, files, found, refusing};

/// Tests of a skill that begin with this.
fn beginning(with: &str) -> String {
    TESTS.replace("from pathlib import Path\n", &format!("{with}\nfrom pathlib import Path\n"))
}

/// One test with this body beside the honest ones.
fn with_body(body: &str) -> String {
    format!("{TESTS}\n\ndef test_hostile() -> None:\n    {}\n", body.replace('\n', "\n    "))
}

/// The tests are refused, and by these rules among others.
#[track_caller]
fn refused(tests: &str, rule: &str) {
    let judgement = Scene::new().ask(&files(SKILL, tests)).unwrap();
    assert!(refusing(&judgement).contains(&Gate::Tests), "{tests}\n{:#?}", judgement.gates);
    let rules: Vec<_> = found(&judgement, Gate::Tests).into_iter().map(|it| it.2).collect();
    assert!(rules.contains(&rule), "{tests}\n{rules:?}");
}

#[test]
fn lesson_l30_ending_early_with_code_0_is_no_pass() {
    refused(&beginning("import os\nos._exit(0)"), "missing");
    refused(&with_body("import os\nos._exit(0)"), "missing");
    refused(&with_body("import os\nos.kill(os.getpid(), 9)"), "missing");
    refused(&beginning("raise SystemExit(0)"), "missing");
    refused(&with_body("import pytest\npytest.exit('done', returncode=0)"), "missing");
}

#[test]
fn lesson_l30_what_is_printed_or_written_is_no_result() {
    let passed = r#"{"n":1,"id":"x::test_hostile","phase":"call","outcome":"passed"}"#;
    // To standard output, which is not the channel any more; then the test fails all the same.
    refused(&with_body(&format!("print('{passed}', flush=True)\nraise OSError")), "failed");
    // To every descriptor that is open: the channel is among them, and the line bears no tag.
    let everywhere = format!(
        "import os\nfor fd in range(3, 64):\n    try:\n        os.write(fd, b'{} {passed}\\n')\n    except OSError:\n        pass",
        "0".repeat(64)
    );
    refused(&with_body(&everywhere), "forged");
    // The same for a report that was copied from an earlier line.
    refused(&with_body("import os\nos.write(3, b'1 passed\\n')"), "forged");
}

#[test]
fn lesson_l30_tests_that_are_not_run_are_missing_and_not_to_be_run_is_no_pass() {
    let skip = "@pytest.mark.skip\ndef test_hostile() -> None:\n    raise OSError\n";
    refused(&format!("{TESTS}\n\n{skip}"), "skipped");
    let xfail = "@pytest.mark.xfail\ndef test_hostile() -> None:\n    raise OSError\n";
    refused(&format!("{TESTS}\n\n{xfail}"), "skipped");
    refused(&format!("{TESTS}\n\n{}", xfail.replace("raise OSError", "pass")), "skipped");
    let hidden = "if len('') > 0:\n\n    def test_hostile() -> None:\n        raise OSError\n";
    refused(&format!("{TESTS}\n\n{hidden}"), "missing");
    let not_collected =
        "class Hostile:\n    def test_hostile(self) -> None:\n        raise OSError\n";
    refused(&format!("{TESTS}\n\n{not_collected}"), "missing");
    let deleted = "def test_hostile() -> None:\n    raise OSError\n\n\ndel test_hostile\n";
    refused(&format!("{TESTS}\n\n{deleted}"), "missing");
    let twice = "def test_hostile() -> None:\n    raise OSError\n\n\ndef test_hostile() -> None:\n    pass\n";
    refused(&format!("{TESTS}\n\n{twice}"), "twice");
    refused("\"\"\"No tests.\"\"\"\n", "no-tests");
}

#[test]
fn lesson_l24_nothing_that_a_test_writes_reaches_the_gate_its_tools_or_the_next_run() {
    let scene = Scene::new();
    let before = scene.warm();
    let writes = r#"import pathlib, sys
here = pathlib.Path("/fluffy-gate")
places = [here / "conftest.py", here / "pytest.ini", here / "sitecustomize.py", here / "gate/gate_tests.py"]
places += [here / "gate/mypy.ini", here / "base/fluffy_skill.py", here / "cache/3.11/cache.0.db"]
places += [pathlib.Path(sys.prefix) / "sitecustomize.py", pathlib.Path(sys.executable), pathlib.Path(pytest.__file__)]
places += [here / ".fluffy/skills/__pycache__/write_note.cpython-311.pyc", here / ".fluffy/skills/write_note.py"]
for place in places:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("raise SystemExit(0)")
    except OSError:
        continue
    raise AssertionError(place)"#;
    let judgement = scene.ask(&files(SKILL, &with_body(writes))).unwrap();
    assert!(!refusing(&judgement).contains(&Gate::Tests), "{:#?}", judgement.gates[2]);
    assert_eq!(scene.warm(), before);
    let judgement = scene.ask(&files(SKILL, TESTS)).unwrap();
    assert!(judgement.passed(), "{:#?}", judgement.gates);
}

#[test]
fn a_skill_cannot_stand_for_a_module_that_is_there_already() {
    // Found behind everything else: `import json` means what it always means.
    let tests = with_body(
        "import json\nimport sys\nassert sys.path[-1] == '/fluffy-gate/.fluffy/skills'\nassert 'fluffy-gate' not in json.__file__",
    );
    let judgement = Scene::new().ask(&files(SKILL, &tests)).unwrap();
    assert!(!refusing(&judgement).contains(&Gate::Tests), "{:#?}", judgement.gates[2]);
}

#[test]
fn tests_have_no_network_no_variables_and_no_key_to_read() {
    let body = r#"import os, socket, sys
assert socket.socket().connect_ex(("1.1.1.1", 53)) != 0
assert not [name for name in os.environ if "KEY" in name or "TOKEN" in name or "SECRET" in name]
assert os.read(0, 1) == b""
assert len(sys.argv) == 1"#;
    let judgement = Scene::new().ask(&files(SKILL, &with_body(body))).unwrap();
    assert!(!refusing(&judgement).contains(&Gate::Tests), "{:#?}", judgement.gates[2]);
}

#[test]
fn printing_megabytes_and_forking_are_contained() {
    let judgement = Scene::new().ask(&files(SKILL, &with_body("print('x' * 50_000_000)"))).unwrap();
    let tests = &judgement.gates[2];
    assert!(judgement.report.len() < 100_000, "{}", judgement.report.len());
    assert!(tests.findings.iter().all(|finding| finding.message.len() < 4_000));
    let forks = "import os\nfor _ in range(10_000):\n    try:\n        child = os.fork()\n    except OSError:\n        break\n    if child == 0:\n        while True:\n            pass\nelse:\n    raise AssertionError";
    let judgement = Scene::new().ask(&files(SKILL, &with_body(forks))).unwrap();
    // What was forked ends with the sandbox; whatever the tests say of themselves, the answer came.
    assert_eq!(judgement.gates.len(), 5);
}

#[test]
fn a_forked_process_cannot_pass_for_the_first() {
    let body = "import os\nif os.fork() == 0:\n    return\nos._exit(0)";
    refused(&with_body(body), "missing");
}

#[test]
fn what_would_silence_a_tool_is_a_finding_of_its_gate() {
    let scene = Scene::new();
    for (text, gate, rule) in [
        ("import json\nimport math  # noqa: F401\n", Gate::Lint, "noqa"),
        ("# ruff: noqa\nimport json\nimport math\n", Gate::Lint, "noqa"),
        (
            "import json\n\nNUMBER: int = \"\"  # type: ignore[assignment]\n",
            Gate::Types,
            "type-comment",
        ),
        ("# mypy: ignore-errors\nimport json\n\nNUMBER: int = \"\"\n", Gate::Types, "mypy-comment"),
    ] {
        let judgement = scene.ask(&files(&SKILL.replace("import json\n", text), TESTS)).unwrap();
        let rules: Vec<_> = found(&judgement, gate).into_iter().map(|it| it.2).collect();
        assert!(rules.contains(&rule), "{text}: {:#?}", judgement.gates);
    }
}

#[test]
fn sources_that_no_tool_can_read_are_findings_and_no_crash() {
    let scene = Scene::new();
    for text in ["def (", &"(".repeat(100_000), "x = 'é\u{0}'\n", &"-".repeat(60_000)] {
        let judgement = scene.ask(&files(text, TESTS)).unwrap();
        assert!(!judgement.passed());
        for gate in [Gate::Types, Gate::Tests] {
            assert!(refusing(&judgement).contains(&gate), "{:#?}", judgement.gates);
        }
    }
    let mut latin = files(SKILL, TESTS);
    latin[1].bytes = b"x = '\xe9'\n".to_vec();
    let judgement = scene.ask(&latin).unwrap();
    assert!(refusing(&judgement).contains(&Gate::Tests));
    assert!(found(&judgement, Gate::Tests).iter().all(|it| it.0 == TEST_PATH));
}

#[test]
fn slow_tests_that_hang_end_by_the_time_limit() {
    let judgement = Scene::new().ask(&files(SKILL, &with_body("while True:\n    pass"))).unwrap();
    assert_eq!(refusing(&judgement), [Gate::Tests]);
    let rules: Vec<_> = found(&judgement, Gate::Tests).into_iter().map(|it| it.2).collect();
    assert!(rules.contains(&"missing") && rules.contains(&"time"), "{rules:?}");
}
