//! Coverage reports in their formats.

use fluffy_base::ProjectPath;
use fluffy_workflow::{Coverage, CoverageError, CoverageFormat};

use crate::fixtures::{ROOT, bytes, path};

fn read(format: CoverageFormat, name: &str, base: Option<&str>) -> Coverage {
    let base = base.map(path);
    Coverage::parse(format, &bytes(name), ROOT, base.as_ref()).unwrap()
}

fn outline(coverage: &Coverage) -> Vec<String> {
    let files = coverage.files().iter();
    files.map(|(file, lines)| format!("{file} {}/{}", lines.covered, lines.total)).collect()
}

fn refused(format: CoverageFormat, text: &str) -> CoverageError {
    Coverage::parse(format, text.as_bytes(), ROOT, None).unwrap_err()
}

#[test]
fn lcov_and_cobertura_of_one_run_agree() {
    let lcov = read(CoverageFormat::Lcov, "coverage/coverage-py.info", Some("py"));
    let xml = read(CoverageFormat::Cobertura, "coverage/coverage-py.xml", Some("py"));
    assert_eq!(outline(&lcov), ["py/calc.py 3/4", "py/tests/test_calc.py 13/13"]);
    assert_eq!(lcov, xml);
    assert_eq!(lcov.basis_points(), Ok(9411));
}

#[test]
fn the_four_reports_of_jest_agree() {
    let expected = ["jest/calc.js 1/1"];
    let of = |format, name| outline(&read(format, name, Some("jest")));
    assert_eq!(of(CoverageFormat::Istanbul, "coverage/istanbul-final.json"), expected);
    assert_eq!(of(CoverageFormat::IstanbulSummary, "coverage/istanbul-summary.json"), expected);
    assert_eq!(of(CoverageFormat::Lcov, "coverage/jest.info"), expected);
    assert_eq!(of(CoverageFormat::Cobertura, "coverage/jest-cobertura.xml"), expected);
}

#[test]
fn llvm_cov_gives_sums_by_file() {
    let coverage = read(CoverageFormat::LlvmCov, "coverage/llvm-cov.json", None);
    assert_eq!(outline(&coverage), ["rust/alpha/src/lib.rs 3/8"]);
    assert_eq!(coverage.basis_points(), Ok(3750));
}

#[test]
fn tests_can_be_left_out_of_coverage() {
    let all = read(CoverageFormat::Lcov, "coverage/coverage-py.info", Some("py"));
    let is_source = |file: &ProjectPath| !file.as_str().contains("tests/");
    assert_eq!(all.clone().filtered(is_source).unwrap().basis_points(), Ok(7500));
    assert_eq!(all.filtered(|_| false), Err(CoverageError::Empty));
}

#[test]
fn files_outside_the_project_do_not_count() {
    let text = "SF:/elsewhere/a.py\nDA:1,1\nend_of_record\nSF:../b.py\nDA:1,1\nend_of_record\n";
    assert_eq!(refused(CoverageFormat::Lcov, text), CoverageError::Empty);
    let text = "SF:/tmp/project-2/a.py\nDA:1,1\nend_of_record\n";
    assert_eq!(refused(CoverageFormat::Lcov, text), CoverageError::Empty);
}

#[test]
fn numbers_that_contradict_are_refused() {
    let contradicts = |format, text| {
        let found = refused(format, text);
        assert!(matches!(found, CoverageError::Contradiction(_)), "{found}");
    };
    contradicts(CoverageFormat::Lcov, "SF:a\nDA:1,0\nLF:1\nLH:1\nend_of_record\n");
    let text = r#"{"a":{"lines":{"total":1,"covered":2}}}"#;
    contradicts(CoverageFormat::IstanbulSummary, text);
    let text =
        r#"{"total":{"lines":{"total":9,"covered":9}},"a":{"lines":{"total":9,"covered":1}}}"#;
    contradicts(CoverageFormat::IstanbulSummary, text);
    let text = r#"{"a":{"statementMap":{"0":{"start":{"line":1}}},"s":{"1":1}}}"#;
    contradicts(CoverageFormat::Istanbul, text);
    // Two spellings of one file.
    contradicts(
        CoverageFormat::Lcov,
        "SF:a\nDA:1,1\nend_of_record\nSF:./a\nDA:2,1\nend_of_record\n",
    );
}

#[test]
fn a_cut_report_is_refused() {
    for text in ["SF:a\nDA:1,1\n", "SF:a\nSF:b\n", "end_of_record\n", "SF:a\nDA:1\nend_of_record"] {
        let found = refused(CoverageFormat::Lcov, text);
        assert!(matches!(found, CoverageError::Malformed(_)), "{found}");
    }
}

#[test]
fn cobertura_may_name_its_type_but_declare_nothing() {
    let body = "<coverage><packages><package><classes><class filename=\"a\"><lines><line number=\"1\" hits=\"1\"/></lines></class></classes></package></packages></coverage>";
    let named = format!("<!DOCTYPE coverage SYSTEM \"http://example.com/c.dtd\">{body}");
    assert!(Coverage::parse(CoverageFormat::Cobertura, named.as_bytes(), ROOT, None).is_ok());
    let declared = format!("<!DOCTYPE coverage [<!ENTITY x \"y\">]>{body}");
    let found = refused(CoverageFormat::Cobertura, &declared);
    assert!(matches!(found, CoverageError::Malformed(_)), "{found}");
}
