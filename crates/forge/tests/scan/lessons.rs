//! What went wrong elsewhere.

use fluffy_forge::SideEffect::{FileWrite, Network, ReadOnly};
use fluffy_forge::{Gate, ScanRules, scan};

use crate::skill::{broken, file, judge, plain_tests, proposal, rules, subject, told};

#[test]
fn lesson_l26_the_scanner_sees_every_way_that_was_missed() {
    let ways = [
        ("import os", "os.system('id')"),
        ("import os", "os.popen('id')"),
        ("import os", "os.execv('sh', ['sh'])"),
        ("import os", "os.execvpe('sh', ['sh'], {})"),
        ("import os", "os.fork()"),
        ("import os", "os.forkpty()"),
        ("e = eval", "e('1')"),
        ("from importlib import import_module", "import_module('os')"),
        ("import builtins", "getattr(builtins, 'ev' + 'al')('1')"),
        ("import sys", "sys.modules['os']"),
        ("import ctypes", "ctypes.CDLL(None)"),
        ("import pickle", "pickle.loads(b'')"),
        ("import socket", "socket.socket()"),
        ("", "open('/etc/x', 'w')"),
    ];
    for (top, body) in ways {
        for effect in [ReadOnly, FileWrite, Network] {
            assert_ne!(broken(effect, top, body), Vec::<String>::new(), "{effect}: {top} {body}");
        }
    }
}

#[test]
fn lesson_l26_what_only_looks_like_it_is_not_flagged() {
    for (top, body) in [
        ("import re\nWORD = re.compile('a')", "WORD.match('a')"),
        (
            "class Model:\n    def eval(self) -> int:\n        return 1\n\n\nmodel = Model()",
            "model.eval()",
        ),
    ] {
        assert_eq!(broken(ReadOnly, top, body), Vec::<String>::new(), "{top}");
    }
}

#[test]
fn lesson_l26_deep_nesting_is_a_finding_and_not_a_crash() {
    let deep = 100_000;
    for text in [
        format!("x = {}{}\n", "(".repeat(deep), ")".repeat(deep)),
        format!("x = {}\n", "(".repeat(deep)),
        format!("x = {}{}\n", "[".repeat(deep), "]".repeat(deep)),
        format!("x = {}1{}\n", "{".repeat(deep), "}".repeat(deep)),
        format!("x = {}1\n", "lambda: ".repeat(30_000)),
        format!("x = {}1\n", "lambda a, b: ".repeat(20_000)),
        format!("x = {}1\n", "not ".repeat(50_000)),
        format!("x = {}1\n", "-".repeat(deep)),
        format!("x = {}1\n", "1+".repeat(deep)),
        format!("x = {}1\n", "1**".repeat(50_000)),
        format!("x = {}1\n", "1 if 1 else ".repeat(20_000)),
        format!("x = a{}\n", ".b".repeat(deep)),
        format!("x = a{}\n", "()".repeat(deep)),
        format!("x = a{}\n", "[0]".repeat(80_000)),
        format!("x = {}1{}\n", "f(".repeat(deep), ")".repeat(deep)),
        format!("x = {}1{}\n", "f'{".repeat(50_000), "}'".repeat(50_000)),
        format!("x = {}\n", "await ".repeat(40_000)),
        format!("match x:\n    case {}:\n        pass\n", "[".repeat(deep)),
        (0..700).map(|depth| format!("{}if x:\n", " ".repeat(depth))).collect(),
        (0..700).map(|depth| format!("{}if (\n", " ".repeat(depth))).collect(),
        format!("x: \"{}\" = 1\n", "(".repeat(deep)),
    ] {
        let proposal = proposal("subject", ReadOnly);
        let files = [file("subject.py", text.clone()), plain_tests(&proposal)];
        let answers = judge(&files, &proposal);
        let start: String = text.chars().take(20).collect();
        assert!(!answers.policy.passed, "{start}");
        assert!(!answers.invariants.passed, "{start}");
    }
}

#[test]
fn lesson_l26_a_latin_one_file_is_a_finding_and_not_a_crash() {
    let files = [file("subject.py", b"NAME = 'caf\xe9'\n".to_vec())];
    let result = scan(&files, &ScanRules::default());
    assert_eq!(result.gate, Gate::Policy);
    assert_eq!(rules(&result), ["unreadable"]);
    assert_eq!(result.findings[0].line, Some(1));
}

#[test]
fn lesson_l26_the_test_file_is_scanned_too() {
    let proposal = proposal("subject", ReadOnly);
    let text = "import subprocess\nfrom subject import SubjectSkill\n\n\ndef test_x() -> None:\n    assert SubjectSkill\n";
    let files = [subject(ReadOnly, "", "pass"), file("tests/test_subject.py", text)];
    let answers = judge(&files, &proposal);
    assert_eq!(rules(&answers.policy), ["forbidden_import"], "{}", told(&answers.policy.findings));
    assert_eq!(answers.policy.findings[0].file, files[1].path);
}

#[test]
fn lesson_l27_side_effects_that_are_annotated_computed_or_in_a_second_class_are_seen() {
    let written = |effects: &str, rest: &str| {
        let text = format!(
            "from fluffy_skill import BaseSkill\n\n\nclass SubjectSkill(BaseSkill):\n    name = \"subject\"\n    \
             description = \"A skill of the corpus.\"\n    {effects}\n\n    \
             def execute(self, input: dict[str, object]) -> dict[str, object]:\n        return {{}}\n{rest}"
        );
        let proposal = proposal("subject", ReadOnly);
        let files = [file("subject.py", text), plain_tests(&proposal)];
        judge(&files, &proposal).invariants
    };
    assert!(written("side_effect_class = \"READ_ONLY\"", "").passed);
    assert!(written("side_effect_class: str = \"READ_ONLY\"", "").passed);
    for (effects, rest) in [
        ("side_effect_class: str = \"NETWORK\"", ""),
        ("side_effect_class: str", ""),
        ("side_effect_class: str = str(\"READ_ONLY\")", ""),
        ("side_effect_class = \"READ_\" + \"ONLY\"", ""),
        (
            "side_effect_class = \"NETWORK\"",
            "\n\nclass Other:\n    side_effect_class = \"READ_ONLY\"\n",
        ),
        (
            "side_effect_class = \"READ_ONLY\"",
            "\n\nclass Other:\n    side_effect_class = \"NETWORK\"\n",
        ),
        ("side_effect_class = \"READ_ONLY\"", "\n\nclass Other(SubjectSkill):\n    pass\n"),
        ("side_effect_class = other = \"READ_ONLY\"", ""),
        ("pass", "\n\nSubjectSkill.side_effect_class = \"READ_ONLY\"\n"),
    ] {
        assert!(!written(effects, rest).passed, "{effects} {rest}");
    }
}
