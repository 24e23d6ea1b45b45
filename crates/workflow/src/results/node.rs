//! The file that our reporter for node:test writes.
//!
//! Node's TAP and JUnit reporters do not say which file a passed test is from, so two tests of one name
//! could not be told apart. A reporter of ours does, on Node 18, 20 and 22 alike, and writes to a file:
//! it runs in the parent process, while each file of tests runs in a child whose prints it never sees as
//! results. Node counts a file that runs no test, or leaves by `process.exit(0)` in the midst of one, as
//! a passed test. Here a file without tests has passed if it came to its end, which the reporter notes in the
//! child; otherwise it counts as skipped.
//!
//! Results come innermost first: a suite follows its tests.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Places, Report, ResultsError, TestResult, failed};

/// Deeper nesting than anybody writes.
const MAX_NESTING: usize = 64;

#[derive(Deserialize)]
#[serde(tag = "result", rename_all = "lowercase", deny_unknown_fields)]
enum Line {
    Pass(Event),
    Fail(Event),
    Stderr { file: Option<String>, message: String },
    End {},
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    file: Option<String>,
    name: String,
    nesting: usize,
    suite: bool,
    skipped: bool,
    /// Whether the file came to its end by itself.
    #[serde(default)]
    ended: bool,
    failure: Option<String>,
    message: Option<String>,
}

/// A result whose enclosing suites are not all known yet.
struct Pending {
    nesting: usize,
    names: Vec<String>,
    /// None for a suite, which is no test.
    outcome: Option<TestResult>,
}

#[derive(Default)]
struct File {
    pending: Vec<Pending>,
    errors: String,
    /// The file itself failed, with this message.
    broken: Option<String>,
    /// The file itself passed: whether it came to its end.
    passed: Option<bool>,
}

pub(super) fn read(text: &str, places: &Places<'_>) -> Result<Report, ResultsError> {
    let mut files: BTreeMap<String, File> = BTreeMap::new();
    let mut ended = false;
    for line in text.lines() {
        if ended {
            return Err(ResultsError::contradiction("the report goes on after its end"));
        }
        match serde_json::from_str(line).map_err(ResultsError::malformed)? {
            Line::Pass(event) => enter(&mut files, event, Ended::Passed)?,
            Line::Fail(event) => enter(&mut files, event, Ended::Failed)?,
            Line::Stderr { file, message } => {
                let file = files.entry(file.unwrap_or_default()).or_default();
                file.errors.push_str(&message);
            }
            Line::End {} => ended = true,
        }
    }
    if !ended {
        return Err(ResultsError::contradiction("the report has no end"));
    }
    let mut report = Report::default();
    for (name, file) in files {
        settle(&name, file, places, &mut report)?;
    }
    Ok(report)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Passed,
    Failed,
}

fn enter(
    files: &mut BTreeMap<String, File>,
    event: Event,
    ended: Ended,
) -> Result<(), ResultsError> {
    if event.nesting > MAX_NESTING {
        return Err(ResultsError::malformed("tests are nested too deeply"));
    }
    let path = event.file.clone().unwrap_or_default();
    let stands_for_file = event.nesting == 0 && is_file(&path, &event.name);
    let file = files.entry(path).or_default();
    if stands_for_file {
        match ended {
            Ended::Failed => file.broken = Some(event.message.unwrap_or_default()),
            Ended::Passed => file.passed = Some(event.ended),
        }
        return Ok(());
    }
    for inner in file.pending.iter_mut().rev() {
        if inner.nesting != event.nesting + 1 {
            break;
        }
        inner.nesting = event.nesting;
        inner.names.push(event.name.clone());
    }
    let outcome = match ended {
        Ended::Failed if event.failure.as_deref() == Some("subtestsFailed") && event.suite => None,
        // A test that is to be done may fail without failing the run.
        _ if event.skipped => Some(TestResult::Skipped),
        Ended::Failed => Some(failed(event.message.as_deref().unwrap_or_default())),
        Ended::Passed if event.suite => None,
        Ended::Passed => Some(TestResult::Passed),
    };
    file.pending.push(Pending { nesting: event.nesting, names: vec![event.name], outcome });
    Ok(())
}

/// Node names the test that stands for a whole file by its path, absolute or from where it was started.
fn is_file(path: &str, name: &str) -> bool {
    let tail = path.strip_suffix(name);
    !name.is_empty() && tail.is_some_and(|head| head.is_empty() || head.ends_with('/'))
}

fn settle(
    name: &str,
    file: File,
    places: &Places<'_>,
    report: &mut Report,
) -> Result<(), ResultsError> {
    let place = places.place(name);
    let (mut ran, mut outcomes) = (false, Vec::new());
    for pending in file.pending {
        if pending.nesting != 0 {
            return Err(ResultsError::contradiction("a test's suite has no result"));
        }
        let Some(outcome) = pending.outcome else { continue };
        ran = true;
        outcomes.push(outcome.clone());
        let names: Vec<String> = pending.names.into_iter().rev().collect();
        report.add(&place, &names.join(" > "), outcome)?;
    }
    let broken = file.broken.is_some();
    match file.broken {
        Some(message) if ran => report.add(&place, "(file)", failed(&message))?,
        Some(message) => {
            let errors = file.errors.trim();
            let message = if errors.is_empty() { message.as_str() } else { errors };
            report.add_load_failure(places.file(name), message, places);
        }
        None => {}
    }
    match file.passed {
        Some(true) if !ran => report.add(&place, "(file)", TestResult::Passed)?,
        Some(_) => report.add(&place, "(file)", TestResult::Skipped)?,
        None if !broken => report.add_end(&place, "(file)", outcomes.iter()),
        None => {}
    }
    Ok(())
}
