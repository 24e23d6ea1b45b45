//! Every kind of failure, and logs that claim one.

use proptest::prelude::*;

use super::*;

fn gate(gate: Gate, passed: bool) -> GateResult {
    GateResult { gate, passed, summary: String::new(), findings: Vec::new() }
}

fn gates(failing: &[Gate]) -> Vec<GateResult> {
    Gate::ALL.into_iter().map(|it| gate(it, !failing.contains(&it))).collect()
}

fn failed(kind: &str) -> BuildEnd {
    BuildEnd::Failed { kind: kind.to_owned(), why: "for some reason".to_owned() }
}

#[track_caller]
fn check(evidence: &Evidence<'_>, expected: Option<(FailureKind, Told)>) {
    let found = classify(evidence).map(|it| (it.kind, it.told));
    assert_eq!(found, expected, "{evidence:?}");
}

/// A log that claims every failure there is.
const EVERYTHING: &str = "\
ruff failed
.fluffy/skills/a.py:3:1: F401 [*] `os` imported but unused
Found 1 error.
.fluffy/skills/a.py:3: error: Incompatible types  [assignment]
Found 1 error in 1 file (checked 2 source files)
FAILED tests/test_a.py::test_b - assert 1 == 2
=================== 1 failed, 2 passed in 0.03s ===================
GATE_VIOLATION: policy.yaml
policy scanner: forbidden_import
TIMEOUT after 600 s
bash: line 1: claude: command not found
";

#[test]
fn for_8_every_kind_has_its_name() {
    for kind in FailureKind::ALL {
        assert_eq!(FailureKind::from_name(kind.name()), Some(kind));
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        assert!(!kind.about().is_empty());
    }
    assert_eq!(FailureKind::from_name("gate_violation"), None);
}

#[test]
fn for_8_the_recorded_end_of_a_build_is_its_kind_whatever_the_log_says() {
    for kind in FailureKind::ALL {
        let end = failed(kind.name());
        for log in ["", EVERYTHING] {
            check(&Evidence { end: Some(&end), gates: &[], log }, Some((kind, Told::Build)));
        }
    }
    let end = failed("SOMETHING_NEW");
    let unknown = Some((FailureKind::Unknown, Told::Build));
    check(&Evidence { end: Some(&end), gates: &[], log: EVERYTHING }, unknown);
}

#[test]
fn for_8_of_several_gates_that_fail_the_worst_counts() {
    use FailureKind::{VerifyInvariant, VerifyLint, VerifyPolicy, VerifyTest};
    for (failing, kind) in [
        (&[Gate::Policy][..], VerifyPolicy),
        (&[Gate::Invariants], VerifyInvariant),
        (&[Gate::Lint], VerifyLint),
        (&[Gate::Types], VerifyLint),
        (&[Gate::Tests], VerifyTest),
        (&Gate::ALL, VerifyPolicy),
        (&[Gate::Lint, Gate::Tests, Gate::Invariants], VerifyInvariant),
        (&[Gate::Tests, Gate::Types], VerifyLint),
    ] {
        let gates = gates(failing);
        for log in ["", EVERYTHING] {
            check(&Evidence { end: None, gates: &gates, log }, Some((kind, Told::Gates)));
        }
    }
}

#[test]
fn for_8_what_passed_is_no_failure_however_its_log_reads() {
    let gates = gates(&[]);
    let end = BuildEnd::Built { files: Vec::new() };
    check(&Evidence { end: Some(&end), gates: &gates, log: EVERYTHING }, None);
    check(&Evidence { end: Some(&end), gates: &[], log: EVERYTHING }, None);
    // Gates that were not all asked prove nothing.
    let some = &gates[..4];
    let unknown = Some((FailureKind::Unknown, Told::Nothing));
    check(&Evidence { end: Some(&end), gates: some, log: EVERYTHING }, unknown);
}

#[track_caller]
fn check_log(log: &str, expected: Option<FailureKind>) {
    let expected = match expected {
        Some(kind) => (kind, Told::Log),
        None => (FailureKind::Unknown, Told::Nothing),
    };
    check(&Evidence { end: None, gates: &[], log }, Some(expected));
}

#[test]
fn for_8_where_nothing_was_recorded_the_tools_own_last_words_count() {
    let ruff = "a.py:3:1: F401 [*] `os` imported but unused\nFound 1 error.\n";
    let mypy =
        "a.py:3:5: error: bad  [assignment]\nFound 2 errors in 1 file (checked 2 source files)\n";
    let pytest = "FAILED tests/test_a.py::test_b - x\n=== 1 failed, 2 passed in 0.03s ===\n";
    check_log(ruff, Some(FailureKind::VerifyLint));
    check_log(mypy, Some(FailureKind::VerifyLint));
    check_log(pytest, Some(FailureKind::VerifyTest));
    check_log(&[pytest, ruff].concat(), Some(FailureKind::VerifyLint));
    // Mended in the same attempt.
    check_log(&[ruff, "All checks passed!\n"].concat(), None);
    check_log(&[mypy, "Success: no issues found in 2 source files\n"].concat(), None);
    check_log(&[pytest, "3 passed in 0.02s\n"].concat(), None);
    check_log("sh: 1: claude: not found\n", Some(FailureKind::BuildError));
    check_log("env: ‘claude’: No such file or directory\n\n", Some(FailureKind::BuildError));
    check_log(EVERYTHING, Some(FailureKind::VerifyLint));
}

#[test]
fn for_8_words_about_a_failure_are_none() {
    for log in [
        "",
        "ruff failed",
        "I ran ruff and it failed: Found 1 error.",
        "Found 1 error.\n",
        "Found 12 errors in 3 files (checked 9 source files)",
        "1 failed in 0.1s",
        "FAILED tests/test_a.py::test_b - not the summary\n",
        "the tests: 1 failed, but then I mended them in 3s",
        "a.py:3:1: F401 unused\nFound 0 errors.\n",
        "a.py:x:1: F401 unused\nFound 1 error.\n",
        "a.py:3:1: because 1\nFound 1 error.\n",
        "GATE_VIOLATION",
        "TIMEOUT",
        "timed out after 600 s",
        "VERIFY_POLICY: forbidden import",
        "policy scan failed: subprocess",
        "invariants: no BaseSkill",
        "command not found",
        "bash: claude: command not found\nbut then it was installed\n",
        "\u{1b}[31mFound 1 error.\u{1b}[0m",
        "\0\0\0",
    ] {
        check_log(log, None);
    }
}

#[test]
fn for_8_no_log_speaks_for_the_policy_the_invariants_or_the_allowlist() {
    let kinds: Vec<_> = [EVERYTHING, "VERIFY_POLICY", "forbidden_import"]
        .iter()
        .filter_map(|log| of_log(log))
        .collect();
    assert_eq!(kinds, [FailureKind::VerifyLint]);
}

#[test]
fn of_a_huge_log_the_end_counts() {
    let noise = "é noise\n".repeat(100_000);
    let end = "a.py:3:1: F401 unused\nFound 1 error.\n";
    check_log(&format!("{noise}{end}"), Some(FailureKind::VerifyLint));
    check_log(&format!("{end}{noise}"), None);
    check_log(&"x".repeat(2 * LOOKED_AT), None);
}

proptest! {
    #[test]
    fn no_log_changes_what_was_recorded(log in "(\\PC|\n|Found 1 error.|FAILED x.py::t|1 failed in 1s){0,40}", at in 0_usize..8) {
        let end = failed(FailureKind::ALL[at].name());
        let found = classify(&Evidence { end: Some(&end), gates: &[], log: &log }).unwrap();
        prop_assert_eq!(found.kind, FailureKind::ALL[at]);
    }

    #[test]
    fn no_log_breaks_it(log in "(\\PC|\n|[a-z]\\.py:|[0-9]:|error: |Found |errors|FAILED ){0,60}") {
        let found = classify(&Evidence { end: None, gates: &[], log: &log }).unwrap();
        prop_assert!(matches!(
            found.kind,
            FailureKind::VerifyLint | FailureKind::VerifyTest | FailureKind::BuildError | FailureKind::Unknown
        ));
    }
}
