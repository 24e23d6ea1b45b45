//! The blocks that test binaries print.
//!
//! **Invariant.** A finished block has as many results as it announced, no name twice, and sums that are
//! those of its lines. A block without its last line is unfinished and says so. Once failed tests are being
//! quoted, only the line with the right sums ends the block.

use std::collections::BTreeMap;

use super::super::{Counts, ResultsError, TestResult, failed};

/// What one test binary printed.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) tests: BTreeMap<String, TestResult>,
    pub(super) finished: bool,
    /// A pattern left tests out.
    pub(super) filtered: bool,
}

/// A block that is being read.
struct Open {
    announced: usize,
    tests: BTreeMap<String, TestResult>,
    /// Kept along, so that any number of last lines is checked quickly.
    counts: Counts,
    /// Behind `failures:`, where tests speak.
    telling: bool,
    /// The failed test whose output is being read.
    speaker: Option<String>,
    said: String,
}

/// More of a test's output than this is never shown.
const KEPT_OUTPUT: usize = 8192;

pub(super) fn read_blocks<'a>(
    lines: impl Iterator<Item = &'a str>,
) -> Result<Vec<Block>, ResultsError> {
    let mut blocks = Vec::new();
    let mut open: Option<Open> = None;
    for line in lines {
        let filtered = open.as_ref().and_then(|block| block.filtered_by(line));
        let talk = open.as_ref().is_some_and(|block| block.telling) && filtered.is_none();
        if let Some(announced) = announcement(line).filter(|_| !talk) {
            blocks.extend(open.take().map(Open::unfinished));
            open = Some(Open::new(announced));
            continue;
        }
        if let Some(filtered) = filtered {
            blocks.extend(open.take().map(|block| block.close(filtered > 0)));
            continue;
        }
        if line.starts_with("test result: ") && !talk {
            let why = "tests listed, announced and counted differ";
            return Err(ResultsError::contradiction(why));
        }
        if let Some(block) = open.as_mut() {
            block.enter(line)?;
        }
    }
    blocks.extend(open.take().map(Open::unfinished));
    Ok(blocks)
}

impl Open {
    fn new(announced: usize) -> Self {
        let (tests, said) = (BTreeMap::new(), String::new());
        Self { announced, tests, counts: Counts::default(), telling: false, speaker: None, said }
    }

    fn enter(&mut self, line: &str) -> Result<(), ResultsError> {
        if self.telling {
            self.listen(line);
            return Ok(());
        }
        if line == "failures:" {
            self.telling = true;
            return Ok(());
        }
        let Some((name, outcome)) = result(line) else { return Ok(()) };
        self.counts.add(&outcome);
        if self.tests.insert(name.to_owned(), outcome).is_some() {
            return Err(ResultsError::contradiction(format!("test `{name}` has two results")));
        }
        Ok(())
    }

    /// Keeps what a failed test said as its message.
    fn listen(&mut self, line: &str) {
        let title = line.strip_prefix("---- ").and_then(|line| line.strip_suffix(" stdout ----"));
        match title.map(bare_name) {
            Some(name) if matches!(self.tests.get(name), Some(TestResult::Failed { .. })) => {
                self.attribute();
                self.speaker = Some(name.to_owned());
            }
            _ if line == "failures:" => self.attribute(),
            _ if self.said.len() < KEPT_OUTPUT => {
                self.said.push_str(line);
                self.said.push('\n');
            }
            _ => {}
        }
    }

    fn attribute(&mut self) {
        let said = std::mem::take(&mut self.said);
        if let Some(test) = self.speaker.take().and_then(|name| self.tests.get_mut(&name)) {
            *test = failed(&said);
        }
    }

    /// How many tests a pattern left out, if the line is the whole of `test result: FAILED. 1 passed;
    /// 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.13s` with the right sums.
    fn filtered_by(&self, line: &str) -> Option<u64> {
        let rest = line.strip_prefix("test result: ")?;
        let Counts { passed, failed, skipped: ignored } = self.counts;
        let verdict = if failed == 0 { "ok" } else { "FAILED" };
        let sums =
            format!("{verdict}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; ");
        let rest = rest.strip_prefix(&sums)?;
        let (filtered, time) = rest.split_once(" filtered out; finished in ")?;
        let complete = time.ends_with('s') && self.tests.len() == self.announced;
        filtered.parse().ok().filter(|_| complete)
    }

    fn close(mut self, filtered: bool) -> Block {
        self.attribute();
        Block { tests: self.tests, finished: true, filtered }
    }

    fn unfinished(mut self) -> Block {
        self.attribute();
        Block { tests: self.tests, finished: false, filtered: false }
    }
}

/// `running 3 tests`
fn announcement(line: &str) -> Option<usize> {
    let (number, unit) = line.strip_prefix("running ")?.split_once(' ')?;
    let number = number.parse().ok()?;
    matches!((number, unit), (1, "test") | (_, "tests")).then_some(number)
}

/// `test tests::adds ... ok`; a line of any other form is none.
fn result(line: &str) -> Option<(&str, TestResult)> {
    let (name, status) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let outcome = match status {
        "ok" => TestResult::Passed,
        "FAILED" => failed(""),
        "ignored" => TestResult::Skipped,
        _ if status.starts_with("ignored, ") => TestResult::Skipped,
        _ => return None,
    };
    Some((bare_name(name), outcome))
}

/// The name without what libtest says about the test.
fn bare_name(name: &str) -> &str {
    [" - should panic", " - compile fail", " - compile"]
        .iter()
        .find_map(|mark| name.strip_suffix(mark))
        .unwrap_or(name)
}
