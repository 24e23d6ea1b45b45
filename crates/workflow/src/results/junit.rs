//! JUnit XML, as pytest writes it with `junit_family=xunit1` and many others nearly so.
//!
//! A test is named by its `file` (or else its `classname`) and its name with the classes around it. The
//! file is written by pytest when the run is over; what tests print does not get into it
//! (`junit_logging=no`), and would be escaped.

use roxmltree::Node;

use super::{Places, Report, ResultsError, TestResult, failed};
use crate::xml::{self, Doctype};

pub(super) fn read(text: &str, places: &Places<'_>) -> Result<Report, ResultsError> {
    let mut report = Report::default();
    read_into(text, places, &mut report)?;
    Ok(report)
}

/// Adds what one of several files tells.
pub(super) fn read_into(
    text: &str,
    places: &Places<'_>,
    report: &mut Report,
) -> Result<(), ResultsError> {
    let document = xml::parse(text, Doctype::Refused).map_err(ResultsError::malformed)?;
    let root = document.root_element();
    if !matches!(root.tag_name().name(), "testsuites" | "testsuite") {
        return Err(ResultsError::malformed("it is no JUnit report"));
    }
    let mut suites = 0_usize;
    for suite in root.descendants().filter(|node| node.has_tag_name("testsuite")) {
        suites += 1;
        read_suite(suite, places, report)?;
    }
    if suites == 0 {
        return Err(ResultsError::malformed("it holds no test suite"));
    }
    Ok(())
}

fn read_suite(
    suite: Node<'_, '_>,
    places: &Places<'_>,
    report: &mut Report,
) -> Result<(), ResultsError> {
    let (mut listed, mut broken) = (0_u64, 0_u64);
    for case in suite.children().filter(|node| node.has_tag_name("testcase")) {
        listed += 1;
        broken += u64::from(read_case(case, places, report)?);
    }
    let nested = suite.children().any(|node| node.has_tag_name("testsuite"));
    if nested {
        // The sums of a suite of suites are those of the inner ones, which are checked by themselves.
        return Ok(());
    }
    let sum = |name| xml::number(suite, name).map_err(ResultsError::malformed);
    let (tests, failures, errors) = (sum("tests")?, sum("failures")?, sum("errors")?);
    // The numbers differ in both directions: a test that fails and then fails to clean up is listed twice and
    // counted once, and subtests are counted and not listed. A test that is missing is missed by its name.
    if listed == 0 && tests.is_some_and(|tests| tests > 0) {
        return Err(ResultsError::contradiction("tests are counted and none is listed"));
    }
    let counted = failures.unwrap_or(0).saturating_add(errors.unwrap_or(0));
    if (counted > 0) != (broken > 0) {
        return Err(ResultsError::contradiction("failures listed and counted differ"));
    }
    Ok(())
}

/// Adds one case; true if it failed or could not be loaded.
fn read_case(
    case: Node<'_, '_>,
    places: &Places<'_>,
    report: &mut Report,
) -> Result<bool, ResultsError> {
    let name =
        case.attribute("name").ok_or_else(|| ResultsError::malformed("a test has no name"))?;
    let class = case.attribute("classname").unwrap_or_default();
    let child = |tag: &str| case.children().find(|node| node.has_tag_name(tag));
    let problem = ["failure", "error", "warning"].into_iter().find_map(child);
    let file = case.attribute("file");
    if let Some(problem) = problem.filter(|_| is_loading(case)) {
        let text = problem.text().or(problem.attribute("message")).unwrap_or_default();
        report.add_load_failure(file.and_then(|file| places.file(file)), text, places);
        return Ok(true);
    }
    let outcome = match problem {
        Some(problem) => {
            failed(problem.attribute("message").or(problem.text()).unwrap_or_default())
        }
        None if child("skipped").is_some() => TestResult::Skipped,
        None => TestResult::Passed,
    };
    let broken = problem.is_some();
    match file {
        Some(file) => {
            let classes = inner_classes(file, class);
            let name =
                if classes.is_empty() { name.to_owned() } else { format!("{classes}::{name}") };
            report.add(&places.place(file), &name, outcome)?;
        }
        None => report.add(class, name, outcome)?,
    }
    Ok(broken)
}

/// pytest reports a file that it could not import as a case without a class.
fn is_loading(case: Node<'_, '_>) -> bool {
    let message = |node: Node<'_, '_>| node.attribute("message") == Some("collection failure");
    case.attribute("classname") == Some("") && case.children().any(message)
}

/// `tests.test_calc.TestMore` in `tests/test_calc.py` is `TestMore`.
fn inner_classes(file: &str, class: &str) -> String {
    let module = file.strip_suffix(".py").unwrap_or(file).replace('/', ".");
    match class.strip_prefix(&module) {
        Some(rest) => rest.trim_start_matches('.').replace('.', "::"),
        None => class.to_owned(),
    }
}
