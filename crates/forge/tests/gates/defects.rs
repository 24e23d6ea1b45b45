//! An honest skill passes all five gates; each defect is found by the gate that is there for it, with file and line.

use fluffy_base::Digest;
use fluffy_forge::{Finding, Gate, GateResult, VerifyError, base};

use crate::scene::{SKILL, SKILL_PATH, Scene, TEST_PATH, TESTS, file, files, found, refusing};

/// Where a text stands in a source.
fn line_of(source: &str, text: &str) -> Option<u32> {
    source.lines().position(|line| line.contains(text)).map(|line| line as u32 + 1)
}

#[test]
fn for_5_an_honest_skill_passes_all_five_gates_and_is_sealed() {
    let scene = Scene::new();
    let judgement = scene.ask(&files(SKILL, TESTS)).unwrap();
    assert!(judgement.passed(), "{:#?}", judgement.gates);
    let gates: Vec<_> = judgement.gates.iter().map(|result| result.gate).collect();
    assert_eq!(gates, Gate::ALL);
    assert_eq!(judgement.gates[2].summary, "3 tests passed");
    assert_eq!(judgement.sealed.base, base().digest());
    let sealed: Vec<_> =
        judgement.sealed.files.iter().map(|it| (it.path.as_str(), it.sha256)).collect();
    let of = |text: &str| Digest::of(text.as_bytes());
    assert_eq!(sealed, [(TEST_PATH, of(TESTS)), (SKILL_PATH, of(SKILL))]);
    let report: serde_json::Value = serde_json::from_slice(&judgement.report).unwrap();
    assert_eq!(report["runs"].as_array().unwrap().len(), 3);
    assert_eq!(scene.sandboxes(), 3);
    let left = std::fs::read_dir(scene.scratch()).unwrap().count();
    assert_eq!(left, 0, "nothing is left of the bench");
}

#[test]
fn for_5_a_support_module_is_looked_at_with_the_skill() {
    let scene = Scene::new();
    let mut all = files(SKILL, TESTS);
    all[0].bytes = SKILL
        .replace(
            "from fluffy_skill import BaseSkill\n",
            "from fluffy_skill import BaseSkill\nfrom support.settings import ENDING\n",
        )
        .replace(".md\"", "{ENDING}\"")
        .into_bytes();
    let settings = ".fluffy/skills/support/settings.py";
    all.push(file(settings, "\"\"\"Settings.\"\"\"\n\nENDING = \".md\"\n"));
    let judgement = scene.ask(&all).unwrap();
    assert!(judgement.passed(), "{:#?}", judgement.gates);
    all[2].bytes = b"ENDING: int = \".md\"\n".to_vec();
    let judgement = scene.ask(&all).unwrap();
    assert_eq!(refusing(&judgement), [Gate::Types]);
    assert_eq!(found(&judgement, Gate::Types), [(settings, Some(1), "assignment")]);
}

#[test]
fn for_5_a_defect_of_style_is_found_by_lint_alone() {
    let scene = Scene::new();
    let skill = SKILL.replace("import json\n", "import json\nimport math\n");
    let judgement = scene.ask(&files(&skill, TESTS)).unwrap();
    assert_eq!(refusing(&judgement), [Gate::Lint]);
    let line = line_of(&skill, "import math");
    assert_eq!(found(&judgement, Gate::Lint), [(SKILL_PATH, line, "F401")]);
}

#[test]
fn for_5_a_defect_of_types_is_found_by_types_alone() {
    let scene = Scene::new();
    let skill = SKILL.replace("return {\"path\": path.name}", "return {1: path.name}");
    let tests = TESTS.replace("out[\"path\"]", "list(out.values())[0]");
    let judgement = scene.ask(&files(&skill, &tests)).unwrap();
    assert_eq!(refusing(&judgement), [Gate::Types]);
    let line = line_of(&skill, "return {1");
    assert_eq!(found(&judgement, Gate::Types), [(SKILL_PATH, line, "dict-item")]);
}

#[test]
fn for_5_a_test_that_fails_is_found_by_tests_alone() {
    let scene = Scene::new();
    let tests = TESTS.replace("pytest.raises(KeyError)", "pytest.raises(OSError)");
    let judgement = scene.ask(&files(SKILL, &tests)).unwrap();
    assert_eq!(refusing(&judgement), [Gate::Tests]);
    // It is told where it failed: in the skill.
    let line = line_of(SKILL, "input[\"title\"]");
    assert_eq!(found(&judgement, Gate::Tests), [(SKILL_PATH, line, "failed")]);
    let tests = TESTS.replace(".exists()", ".is_dir()");
    let judgement = scene.ask(&files(SKILL, &tests)).unwrap();
    let line = line_of(&tests, ".is_dir()");
    let both = [(TEST_PATH, line, "failed"), (TEST_PATH, line, "failed")];
    assert_eq!(found(&judgement, Gate::Tests), both);
}

#[test]
fn lesson_l30_what_the_policy_gate_refuses_is_never_run() {
    let scene = Scene::new();
    let refuses = |files: &[fluffy_forge::SourceFile]| GateResult {
        gate: Gate::Policy,
        passed: false,
        summary: "1 finding".to_owned(),
        findings: vec![Finding {
            file: files[0].path.clone(),
            line: Some(1),
            rule: "forbidden_import".to_owned(),
            message: "`os` is forbidden".to_owned(),
        }],
    };
    let judgement = scene.ask_after(&files(SKILL, TESTS), &refuses).unwrap();
    assert_eq!(refusing(&judgement), [Gate::Tests, Gate::Policy]);
    assert_eq!(judgement.gates[2].summary, "not run: policy");
    assert_eq!(scene.sandboxes(), 2, "for ruff and mypy, which run nothing of it");
}

#[test]
fn a_gate_that_passes_with_findings_or_for_another_gate_does_not_pass() {
    let scene = Scene::new();
    let other = |_: &[_]| crate::scene::passed(Gate::Lint);
    let judgement = scene.ask_after(&files(SKILL, TESTS), &other).unwrap();
    assert!(refusing(&judgement).contains(&Gate::Policy));
}

#[test]
fn files_that_do_not_belong_to_the_skill_are_refused() {
    let scene = Scene::new();
    for path in [
        ".fluffy/skills/tests/conftest.py",
        ".fluffy/skills/conftest.py",
        ".fluffy/skills/pytest.ini",
        ".fluffy/skills/other.py",
        "pyproject.toml",
        "gate/gate_tests.py",
        "base/fluffy_skill.py",
        ".fluffy/skills/__pycache__/write_note.cpython-311.pyc",
    ] {
        let mut all = files(SKILL, TESTS);
        all.push(file(path, ""));
        assert!(matches!(scene.ask(&all), Err(VerifyError::Foreign(_))), "{path}");
    }
    let all = [files(SKILL, TESTS), files(SKILL, "")].concat();
    assert!(matches!(scene.ask(&all), Err(VerifyError::Twice(_))));
    assert!(matches!(scene.ask(&files(SKILL, TESTS)[..1]), Err(VerifyError::Missing(_))));
    assert_eq!(scene.sandboxes(), 0);
}
