//! The JSON file of jest (`--json --outputFile`) and of vitest (`--reporter=json --outputFile`), which
//! writes the same form.
//!
//! Both write the file when the run is over, from the process that collects the results. Standard output,
//! where tests print, is not looked at. A file of tests that could not be loaded has a failed status and
//! no test.

use serde::Deserialize;

use super::{Places, Report, ResultsError, TestResult, failed};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Results {
    num_total_tests: usize,
    num_passed_tests: usize,
    num_failed_tests: usize,
    success: bool,
    test_results: Vec<File>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    name: String,
    status: String,
    #[serde(default)]
    message: String,
    assertion_results: Vec<Test>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Test {
    ancestor_titles: Vec<String>,
    title: String,
    status: String,
    #[serde(default)]
    failure_messages: Option<Vec<String>>,
}

pub(super) fn read(text: &str, places: &Places<'_>) -> Result<Report, ResultsError> {
    let results: Results = serde_json::from_str(text).map_err(ResultsError::malformed)?;
    let mut report = Report::default();
    let mut sums = Sums::default();
    for file in &results.test_results {
        read_file(file, places, &mut report, &mut sums)?;
    }
    let counted = (results.num_total_tests, results.num_passed_tests, results.num_failed_tests);
    if counted != (sums.total, sums.passed, sums.failed) {
        return Err(ResultsError::contradiction("tests listed and counted differ"));
    }
    let clean = report.build.is_none() && sums.failed == 0;
    if results.success && !clean {
        return Err(ResultsError::contradiction("it claims success and has failures"));
    }
    Ok(report)
}

#[derive(Default)]
struct Sums {
    total: usize,
    passed: usize,
    failed: usize,
}

fn read_file(
    file: &File,
    places: &Places<'_>,
    report: &mut Report,
    sums: &mut Sums,
) -> Result<(), ResultsError> {
    let place = places.place(&file.name);
    let (mut any_failed, mut outcomes) = (false, Vec::new());
    for test in &file.assertion_results {
        let outcome = outcome(test)?;
        outcomes.push(outcome.clone());
        sums.total += 1;
        match outcome {
            TestResult::Passed => sums.passed += 1,
            TestResult::Failed { .. } => (sums.failed, any_failed) = (sums.failed + 1, true),
            TestResult::Skipped => {}
        }
        let mut name = test.ancestor_titles.clone();
        name.push(test.title.clone());
        report.add(&place, &name.join(" > "), outcome)?;
    }
    if file.status == "failed" && !any_failed {
        if file.assertion_results.is_empty() {
            report.add_load_failure(places.file(&file.name), &file.message, places);
        } else {
            // Something around the tests failed, such as a hook: no single test is to blame.
            report.add(&place, "(file)", failed(&file.message))?;
        }
    } else {
        report.add_end(&place, "(file)", outcomes.iter());
    }
    Ok(())
}

fn outcome(test: &Test) -> Result<TestResult, ResultsError> {
    match test.status.as_str() {
        "passed" => Ok(TestResult::Passed),
        "failed" => {
            let messages = test.failure_messages.as_deref().unwrap_or_default();
            Ok(failed(&messages.join("\n")))
        }
        "pending" | "skipped" | "todo" | "disabled" => Ok(TestResult::Skipped),
        other => Err(ResultsError::malformed(format!("status `{other}` is unknown"))),
    }
}
