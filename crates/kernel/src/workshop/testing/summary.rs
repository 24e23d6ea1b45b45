//! What a run of tests found, in words for a model.
//!
//! **Invariant.** Bounded, however many tests fail and whatever they print.

use std::fmt::{self, Write as _};

use fluffy_base::{Excerpt, Span};

/// The longest text, in bytes.
pub(super) const MAX_TEXT_BYTES: usize = 6 << 10;

const MAX_FAILURES: usize = 50;
const MESSAGE_CHARS: usize = 500;
const ID_CHARS: usize = 200;
/// What may be said about builds and runners before failures are listed, and about failures before suites are.
const PROBLEMS_END: usize = 3 << 10;
const FAILURES_END: usize = 5 << 10;

/// What a run of tests found, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestSummary {
    /// Tests that passed.
    pub passed: usize,
    /// Tests that failed.
    pub failed: usize,
    /// Tests that did not run.
    pub skipped: usize,
    /// The first failures: which test, and what its runner says.
    pub failures: Vec<(String, String)>,
    /// Suites that gave no result, each with the reason. None of them is a failing test.
    pub not_run: Vec<(String, String)>,
    /// What could not be built, and runners that told nothing, with the end of what they printed.
    pub problems: Vec<String>,
    /// What was run.
    pub suites: Vec<SuiteRun>,
}

/// One command that ran tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteRun {
    /// The suite.
    pub suite: String,
    /// The command as it was run.
    pub command: String,
    /// How it ended.
    pub end: String,
    /// How long it ran.
    pub duration: Span,
    /// The sandbox's name in records; none if it was not run.
    pub sandbox: Option<String>,
}

impl TestSummary {
    pub(super) fn add_not_run(&mut self, suite: &str, why: &str) {
        let why = Excerpt::new(why.trim(), MESSAGE_CHARS).to_string();
        self.not_run.push((suite.to_owned(), why));
    }

    pub(super) fn fail(&mut self, id: &str, message: &str) {
        self.failed += 1;
        if self.failures.len() < MAX_FAILURES {
            let message = Excerpt::new(message.trim(), MESSAGE_CHARS).to_string();
            self.failures.push((id.to_owned(), message));
        }
    }
}

impl fmt::Display for TestSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (passed, failed, skipped) = (self.passed, self.failed, self.skipped);
        let mut text = format!("{passed} passed, {failed} failed, {skipped} skipped\n");
        for (suite, why) in &self.not_run {
            let suite = Excerpt::new(suite, ID_CHARS);
            push(&mut text, &format!("\nNO RESULT {suite}\n    {why}\n"), PROBLEMS_END);
        }
        for problem in &self.problems {
            push(&mut text, &format!("\n{problem}\n"), PROBLEMS_END);
        }
        let mut told = 0;
        for (id, message) in &self.failures {
            let id = Excerpt::new(id, ID_CHARS);
            let line = format!("\nFAILED {id}\n    {}\n", message.replace("\\n", "\n    "));
            if text.len() + line.len() > FAILURES_END {
                break;
            }
            text.push_str(&line);
            told += 1;
        }
        if told < failed {
            writeln!(text, "\n… and {} more that failed", failed - told)?;
        }
        for suite in &self.suites {
            let command = Excerpt::new(&suite.command, ID_CHARS);
            let (end, ms) = (&suite.end, suite.duration.ms());
            let line = format!("\nran in {ms} ms, {end}: {command}");
            push(&mut text, &line, MAX_TEXT_BYTES - 64);
        }
        f.write_str(text.trim_end())
    }
}

/// Adds what there is room for.
fn push(text: &mut String, more: &str, end: usize) {
    let room = end.saturating_sub(text.len());
    if more.len() <= room {
        text.push_str(more);
    } else if room > 100 {
        text.push_str(more.get(..more.floor_char_boundary(room)).unwrap_or_default());
        text.push_str(" …\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_short_whatever_was_found() {
        let mut summary = TestSummary { passed: 3, ..TestSummary::default() };
        for number in 0..10_000 {
            let id = format!("{}{number}", "ä".repeat(2_000));
            summary.fail(&id, &"\u{1b}ö\n".repeat(5_000));
            summary.problems.push("ü".repeat(3_000));
            summary.add_not_run(&id, &"\u{1b}ö\n".repeat(5_000));
            summary.suites.push(SuiteRun {
                suite: id.clone(),
                command: id,
                end: "exited with code 1".to_owned(),
                duration: Span::from_ms(1),
                sandbox: None,
            });
        }
        let text = summary.to_string();
        assert!(text.len() <= MAX_TEXT_BYTES, "{}", text.len());
        assert!(text.starts_with("3 passed, 10000 failed, 0 skipped\n"));
        assert!(text.contains("more that failed"), "{text}");
    }

    #[test]
    fn a_small_summary_tells_everything() {
        let mut summary = TestSummary { passed: 1, ..TestSummary::default() };
        summary.fail("tests/a.py: test_a", "assert 1 == 2");
        summary.suites.push(SuiteRun {
            suite: "pytest".to_owned(),
            command: "python3 -m pytest".to_owned(),
            end: "exited with code 1".to_owned(),
            duration: Span::from_ms(12),
            sandbox: Some("s".to_owned()),
        });
        let expected = "1 passed, 1 failed, 0 skipped\n\nFAILED tests/a.py: test_a\n    assert 1 == 2\n\nran in 12 ms, exited with code 1: python3 -m pytest";
        assert_eq!(summary.to_string(), expected);
    }
}
