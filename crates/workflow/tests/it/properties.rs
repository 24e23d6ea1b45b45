//! No input breaks a reader, and less of a report is never more of a success.

use fluffy_workflow::{
    Baseline, Coverage, CoverageFormat, Pattern, Report, Run, TestId, TestResult, read,
};
use proptest::prelude::*;

use crate::fixtures::{CASES, ROOT, Recorded, bytes, recorded, suites};

const FORMATS: &[(CoverageFormat, &str)] = &[
    (CoverageFormat::Lcov, "coverage/jest.info"),
    (CoverageFormat::Istanbul, "coverage/istanbul-final.json"),
    (CoverageFormat::IstanbulSummary, "coverage/istanbul-summary.json"),
    (CoverageFormat::Cobertura, "coverage/jest-cobertura.xml"),
    (CoverageFormat::LlvmCov, "coverage/llvm-cov.json"),
];

fn passed(report: &Report) -> Vec<TestId> {
    let passed = report.tests().iter().filter(|(_, outcome)| **outcome == TestResult::Passed);
    passed.map(|(id, _)| id.clone()).collect()
}

/// What was left of a run may pass no test that the whole did not, and be green only if the whole is.
fn holds_less(case: &str, whole: Option<&Report>, cut: &Recorded) {
    let Ok(found) = cut.read() else { return };
    let green = whole.is_some_and(Report::is_green);
    assert!(green || !found.is_green(), "{case}: green by a cut");
    if let Some(whole) = whole {
        for id in passed(&found) {
            assert!(whole.passed(&id), "{case}: `{id}` passes by a cut");
        }
    }
}

#[test]
fn a_cut_at_any_line_never_makes_a_run_better() {
    for case in CASES {
        let whole = recorded(case).read().ok();
        let ends = |text: &[u8]| -> Vec<usize> {
            (0..text.len()).filter(|at| *at == 0 || text[*at - 1] == b'\n').collect()
        };
        let run = recorded(case);
        for at in ends(&run.stdout) {
            let stdout = run.stdout[..at].to_vec();
            holds_less(case, whole.as_ref(), &Recorded { stdout, ..recorded(case) });
        }
        for at in ends(&run.stderr) {
            let stderr = run.stderr[..at].to_vec();
            holds_less(case, whole.as_ref(), &Recorded { stderr, ..recorded(case) });
        }
        for at in run.report.as_deref().map(ends).unwrap_or_default() {
            let report = run.report.as_ref().map(|report| report[..at].to_vec());
            holds_less(case, whole.as_ref(), &Recorded { report, ..recorded(case) });
        }
    }
}

#[test]
fn a_cut_at_any_byte_of_libtest_never_makes_a_run_better() {
    for case in ["cargo-abort", "cargo-filtered"] {
        let run = recorded(case);
        let whole = run.read().ok();
        let printed = run.stdout.iter().rposition(|byte| *byte == b'}').unwrap();
        for at in printed..run.stdout.len() {
            let stdout = run.stdout[..at].to_vec();
            holds_less(case, whole.as_ref(), &Recorded { stdout, ..recorded(case) });
        }
    }
}

proptest! {
    #[test]
    fn a_cut_anywhere_never_makes_a_run_better(case in 0..CASES.len(), share in 0.0..1.0_f64) {
        let case = CASES[case];
        let whole = recorded(case).read().ok();
        let cut = |text: &[u8]| text[..(text.len() as f64 * share) as usize].to_vec();
        let run = recorded(case);
        let stdout = cut(&run.stdout);
        holds_less(case, whole.as_ref(), &Recorded { stdout, ..recorded(case) });
        let report = run.report.as_deref().map(cut);
        holds_less(case, whole.as_ref(), &Recorded { report, ..recorded(case) });
    }

    #[test]
    fn no_bytes_break_a_reader_of_results(
        case in 0..CASES.len(),
        stdout in proptest::collection::vec(any::<u8>(), 0..300),
        report in proptest::collection::vec(any::<u8>(), 0..300),
        exit in proptest::option::of(-1..3_i32),
    ) {
        let suite = recorded(CASES[case]).suite;
        let run = Run { stdout: &stdout, stderr: &report, exit, report: Some(&report), reports: &[], root: ROOT };
        if let Ok(found) = read(&suite, &run) {
            prop_assert!(!found.is_green());
        }
    }

    #[test]
    fn a_changed_byte_breaks_no_reader(case in 0..CASES.len(), at: usize, byte: u8) {
        let change = |text: &mut Vec<u8>| {
            let length = text.len().max(1);
            if let Some(found) = text.get_mut(at % length) {
                *found = byte;
            }
        };
        let mut run = recorded(CASES[case]);
        change(&mut run.stdout);
        change(&mut run.stderr);
        if let Some(report) = run.report.as_mut() {
            change(report);
        }
        let green = run.read().is_ok_and(|report| report.is_green());
        prop_assert!(!green || run.exit == 0);
    }

    #[test]
    fn no_bytes_break_a_reader_of_coverage(
        format in 0..FORMATS.len(),
        noise in proptest::collection::vec(any::<u8>(), 0..200),
        at: usize,
        byte: u8,
    ) {
        let (format, name) = FORMATS[format];
        let _ = Coverage::parse(format, &noise, ROOT, None);
        let mut real = bytes(name);
        let length = real.len();
        real[at % length] = byte;
        if let Ok(found) = Coverage::parse(format, &real, ROOT, None) {
            prop_assert!(found.basis_points().unwrap() <= 10_000);
        }
        let _ = Coverage::parse(format, &real[..at % length], ROOT, None);
        let _ = Baseline::parse(&noise);
    }

    #[test]
    fn no_manifest_breaks_detection(text in ".{0,200}", toml in "[\\[\\]a-z=\"\\n ]{0,80}") {
        for name in ["Cargo.toml", "package.json", "go.mod", "pyproject.toml", "setup.cfg", "tox.ini"] {
            let _ = suites(&[(name, &text)]);
            let _ = suites(&[(name, &toml), ("a/Cargo.toml", &text)]);
        }
        let script = serde_json::json!({ "scripts": { "test": text } }).to_string();
        let _ = suites(&[("package.json", &script)]);
    }

    #[test]
    fn a_pattern_is_never_an_option(text in ".{0,40}", dashes in "-{0,3}") {
        let Ok(pattern) = Pattern::parse(&format!("{dashes}{text}")) else { return Ok(()) };
        prop_assert!(!pattern.as_str().starts_with('-'));
        prop_assert!(!pattern.as_str().chars().any(char::is_control));
    }
}
