//! What the invariants gate says of files, scope and boundaries.

use fluffy_base::ProjectPath;
use fluffy_forge::SideEffect::{FileWrite, ReadOnly};
use fluffy_forge::{Gate, GateResult, Proposal, SUPPORT, SourceFile, check};

use crate::skill::{file, path, plain_tests, proposal, rules, subject, told};

fn judged(files: &[SourceFile], proposal: &Proposal, changed: &[&str]) -> GateResult {
    let changed: Vec<ProjectPath> = changed.iter().map(|text| path(text)).collect();
    check(files, proposal, &changed)
}

const BOTH: [&str; 2] = [".fluffy/skills/subject.py", ".fluffy/skills/tests/test_subject.py"];

#[test]
fn for_7_a_plain_skill_passes_for_its_own_proposal_and_no_other() {
    let mine = proposal("subject", ReadOnly);
    let files = [subject(ReadOnly, "", "pass"), plain_tests(&mine)];
    let result = judged(&files, &mine, &BOTH);
    assert_eq!(
        (result.gate, result.passed),
        (Gate::Invariants, true),
        "{}",
        told(&result.findings)
    );
    assert_eq!(result.summary, "2 files, nothing found");
    assert_eq!(rules(&judged(&files, &proposal("subject", FileWrite), &BOTH)), ["proposal"]);
    assert_eq!(rules(&judged(&files, &proposal("other", ReadOnly), &BOTH)), ["scope"]);
    let mut described = mine;
    described.description.push('!');
    assert_eq!(rules(&judged(&files, &described, &BOTH)), ["proposal"]);
}

#[test]
fn for_7_what_was_changed_is_the_skill_its_tests_and_shared_modules() {
    let mine = proposal("subject", ReadOnly);
    let files = [subject(ReadOnly, "", "pass"), plain_tests(&mine)];
    let with = |extra: &str| judged(&files, &mine, &[BOTH[0], BOTH[1], extra]);
    for shared in SUPPORT {
        assert!(with(shared).passed, "{shared}");
    }
    for other in [
        ".fluffy/skills/other.py",
        ".fluffy/skills/conftest.py",
        ".fluffy/skills/tests/conftest.py",
        ".fluffy/skills/support/__init__.py",
        ".fluffy/skills/fluffy_skill.py",
        ".fluffy/skills/registry.yaml",
        ".fluffy/policy.yaml",
        "pyproject.toml",
        "sitecustomize.py",
    ] {
        let result = with(other);
        assert_eq!(rules(&result), ["scope"], "{other}");
        assert_eq!(result.findings[0].file.as_str(), other);
    }
    for changed in [&[][..], &BOTH[..1], &BOTH[1..]] {
        assert_eq!(rules(&judged(&files, &mine, changed)), ["scope"]);
    }
    for files in [&files[..1], &files[1..], &[]] {
        assert_eq!(rules(&judged(files, &mine, &BOTH)), ["scope"]);
    }
    let twice = [files[0].clone(), files[0].clone(), files[1].clone()];
    assert_eq!(rules(&judged(&twice, &mine, &BOTH)), ["scope"]);
    let foreign = [files[0].clone(), files[1].clone(), file("conftest.py", "")];
    assert_eq!(rules(&judged(&foreign, &mine, &BOTH)), ["scope"]);
}

#[test]
fn for_7_skills_stand_on_the_library_the_base_and_shared_modules() {
    let mine = proposal("subject", ReadOnly);
    let with =
        |top: &str| judged(&[subject(ReadOnly, top, "pass"), plain_tests(&mine)], &mine, &BOTH);
    for top in [
        "import json, os.path",
        "from collections import abc",
        "import support.gateway",
        "from support import gateway, settings",
        "from support.settings import LIMIT",
        "import fluffy_skill",
    ] {
        let result = with(top);
        assert!(result.passed, "{top}: {}", told(&result.findings));
    }
    for top in [
        "import requests",
        "import numpy as np",
        "import kavi.forge",
        "from fluffy_forge import gates",
        "import other_skill",
        "import test_subject",
        "import subject",
        "import tests.test_subject",
        "import pytest",
        "import support",
        "from support import other",
        "import support.other",
        "from . import other",
        "import subprocess",
        "import _socket",
    ] {
        assert_eq!(rules(&with(top)), ["runtime_boundary"], "{top}");
    }
}

#[test]
fn for_7_shared_modules_stand_on_the_library_and_each_other() {
    let mine = proposal("subject", ReadOnly);
    let with = |text: &str| {
        let shared = file("support/gateway.py", text);
        let files = [subject(ReadOnly, "", "pass"), plain_tests(&mine), shared];
        judged(&files, &mine, &BOTH)
    };
    assert!(with("import json\nfrom support import settings\n").passed);
    for text in
        ["import fluffy_skill\n", "import subject\n", "import forge.gates\n", "import pytest\n"]
    {
        assert_eq!(rules(&with(text)), ["runtime_boundary"], "{text}");
    }
}

#[test]
fn for_7_importing_by_name_is_seen_in_every_spelling() {
    let mine = proposal("subject", ReadOnly);
    for (top, body) in [
        ("", "__import__('os')"),
        ("", "x = [__import__]"),
        ("", "__builtins__.__import__('os')"),
        ("", "x = '__import__'"),
        ("", "x = 'import' 'lib'"),
        ("import importlib", "pass"),
        ("import importlib.util as u", "pass"),
        ("from importlib import import_module as i", "pass"),
        ("from importlib import *", "pass"),
        ("", "import importlib"),
        ("import zipfile", "zipfile.importlib"),
    ] {
        let files = [subject(ReadOnly, top, body), plain_tests(&mine)];
        assert!(
            rules(&judged(&files, &mine, &BOTH)).contains(&"dynamic_import".to_owned()),
            "{top} {body}"
        );
    }
}

#[test]
fn a_skill_that_hides_a_module_of_python_is_refused() {
    for name in ["json", "socket", "queue"] {
        let mine = proposal(name, ReadOnly);
        let text = String::from_utf8(subject(ReadOnly, "", "pass").bytes).unwrap();
        let class = mine.name.class_name();
        let text =
            text.replace("SubjectSkill", &class).replace("\"subject\"", &format!("\"{name}\""));
        let files = [file(&format!("{name}.py"), text), plain_tests(&mine)];
        let changed: Vec<ProjectPath> = files.iter().map(|one| one.path.clone()).collect();
        assert_eq!(rules(&check(&files, &mine, &changed)), ["structure"], "{name}");
    }
}

#[test]
fn for_7_tests_import_the_skill_and_claim_something() {
    let mine = proposal("subject", ReadOnly);
    let with = |text: &str| {
        let files = [subject(ReadOnly, "", "pass"), file("tests/test_subject.py", text)];
        judged(&files, &mine, &BOTH)
    };
    assert!(with("import subject\n\n\ndef test_x() -> None:\n    assert subject\n").passed);
    for text in [
        "",
        "import subject\n",
        "import subject\nassert subject\n",
        "import subject\n\n\ndef check() -> None:\n    assert subject\n",
        "def test_x() -> None:\n    assert True\n",
        "import subject\n\n\ndef test_x() -> None:\n    subject.SubjectSkill()\n",
    ] {
        assert_eq!(rules(&with(text)), ["tests"], "{text}");
    }
}
