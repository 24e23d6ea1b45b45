//! The JSON file of RSpec (`--format json --out`), written when the run is over.
//!
//! A test is named by its file and its whole description. Examples of one description are numbered in the order in which
//! they stand. A file that could not be loaded is told in a message, and no example runs then.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Places, Report, ResultsError, TestResult, failed};

#[derive(Deserialize)]
struct Results {
    examples: Vec<Example>,
    #[serde(default)]
    messages: Vec<String>,
    summary: Summary,
}

#[derive(Deserialize)]
struct Summary {
    example_count: usize,
    failure_count: usize,
    #[serde(default)]
    errors_outside_of_examples_count: usize,
}

#[derive(Deserialize)]
struct Example {
    full_description: String,
    status: String,
    file_path: String,
    exception: Option<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    class: String,
    message: String,
}

/// Stands before the file in a message about one that could not be loaded.
const LOADING: &str = "An error occurred while loading ";

pub(super) fn read_into(
    text: &str,
    places: &Places<'_>,
    report: &mut Report,
) -> Result<(), ResultsError> {
    let results: Results = serde_json::from_str(text).map_err(ResultsError::malformed)?;
    let mut numbers: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut failures = 0;
    for example in &results.examples {
        let outcome = match example.status.as_str() {
            "passed" => TestResult::Passed,
            "pending" => TestResult::Skipped,
            "failed" => {
                failures += 1;
                let exception = example.exception.as_ref();
                let told = exception.map(|it| format!("{}: {}", it.class, it.message.trim()));
                failed(&told.unwrap_or_default())
            }
            other => return Err(ResultsError::malformed(format!("status `{other}` is unknown"))),
        };
        let (file, name) = (example.file_path.as_str(), example.full_description.as_str());
        let number = numbers.entry((file, name)).and_modify(|count| *count += 1).or_insert(1);
        let name = if *number == 1 { name.to_owned() } else { format!("{name} #{number}") };
        report.add(&places.place(file.trim_start_matches("./")), &name, outcome)?;
    }
    let summary = &results.summary;
    if (summary.example_count, summary.failure_count) != (results.examples.len(), failures) {
        return Err(ResultsError::contradiction("examples listed and counted differ"));
    }
    if summary.errors_outside_of_examples_count > 0 {
        report.add_build(None, &results.messages.join("\n"));
        for message in &results.messages {
            let file = message.split_once(LOADING).and_then(|(_, rest)| rest.split_once(".rb"));
            let file = file.map(|(stem, _)| format!("{}.rb", stem.trim_start_matches("./")));
            report.add_load_failure(file.and_then(|file| places.file(&file)), message, places);
        }
    }
    Ok(())
}
