//! Judges what the tests of a skill did by what their driver said. Pure.
//!
//! Tests run in the process that reports on them, so their exit code and whatever they print prove nothing. A line
//! counts if it bears the tag of the key and the next number; and a skill's tests passed if every test that stands in
//! their source was said to have passed, and nothing else was said of any.
//!
//! **Invariant.** Silence is failure: a process that ends early, for whatever reason, leaves tests of which nothing was
//! said.

use std::collections::{BTreeMap, BTreeSet};

use fluffy_base::Digest;
use serde::Deserialize;

use super::reading::{about, finding};
use crate::{Finding, SourceFile};

/// What the tests' driver is given to sign with.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key([u8; 32]);

/// What the tests did.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tested {
    /// How many passed.
    pub(super) passed: usize,
    /// What stands in the way.
    pub(super) findings: Vec<Finding>,
}

/// A line of the driver's: exactly one of the first four is there.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Line {
    n: u64,
    expected: Option<String>,
    begin: Option<u64>,
    id: Option<String>,
    end: Option<i64>,
    phase: String,
    outcome: String,
    file: Option<String>,
    line: Option<u32>,
    message: String,
}

impl Key {
    pub(super) fn new(one: [u8; 16], two: [u8; 16]) -> Self {
        Self(*Digest::of_parts(&[&one, &two]).as_bytes())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn tag(&self, text: &[u8]) -> Digest {
        let inner = Digest::of_parts(&[&self.0, text]);
        Digest::of_parts(&[&self.0, inner.as_bytes()])
    }
}

/// What is known while the lines are read.
#[derive(Default)]
struct Heard {
    /// Tests that stand in the source, and their lines.
    expected: BTreeMap<String, Option<u32>>,
    begun: bool,
    ended: Option<i64>,
    passed: BTreeSet<String>,
    /// Tests of which something else was said.
    told: BTreeSet<String>,
    findings: Vec<Finding>,
}

/// Judges what was printed.
pub(super) fn judge(printed: &[u8], key: &Key, files: &[SourceFile]) -> Tested {
    let mut heard = Heard::default();
    let lines = printed.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    for (number, line) in lines.enumerate() {
        let line = authentic(line, key, number as u64);
        if !line.is_some_and(|line| heard.hear(line, files)) {
            heard.findings.extend(files.first().map(|file| {
                about(&file.path, "forged", "something else than the tests' driver spoke for it")
            }));
            return Tested { passed: 0, findings: heard.findings };
        }
    }
    heard.close(files)
}

/// A line that the driver said, in its turn.
fn authentic(line: &[u8], key: &Key, number: u64) -> Option<Line> {
    let (tag, text) = line.split_at_checked(64)?;
    let text = text.strip_prefix(b" ")?;
    if key.tag(text).hex() != tag {
        return None;
    }
    let line: Line = serde_json::from_slice(text).ok()?;
    (line.n == number).then_some(line)
}

impl Heard {
    /// Takes a line; false if the driver would not have said it here.
    fn hear(&mut self, line: Line, files: &[SourceFile]) -> bool {
        let Line { expected, begin, id, end, .. } = &line;
        match (expected, begin, id, end) {
            (Some(name), None, None, None) if !self.begun => {
                if self.expected.insert(name.clone(), line.line).is_some() {
                    let message = "a test of the same name stands before it and is never run";
                    self.finds(name, line.line, "twice", message, files);
                }
            }
            (None, Some(_), None, None) if !self.begun => self.begun = true,
            (None, None, Some(id), None) if self.begun && self.ended.is_none() => {
                self.report(id, &line, files);
            }
            (None, None, None, Some(code)) if self.begun && self.ended.is_none() => {
                self.ended = Some(*code);
            }
            _ => return false,
        }
        true
    }

    fn report(&mut self, id: &str, line: &Line, files: &[SourceFile]) {
        match (line.phase.as_str(), line.outcome.as_str()) {
            ("call", "passed") => drop(self.passed.insert(id.to_owned())),
            (_, "passed") => {}
            (phase, outcome) => {
                let rule = match outcome {
                    "failed" if phase == "call" => "failed",
                    "failed" => "error",
                    "skipped" | "xfail" | "deselected" => "skipped",
                    _ => "unknown",
                };
                let name = id.split_once("::").map_or(id, |(_, name)| name);
                let message = format!("`{name}` {outcome} ({phase}): {}", line.message);
                self.told.insert(id.to_owned());
                let place = line.file.as_deref().filter(|file| is_ours(file, files));
                let place = place.map_or((id, None), |file| (file, line.line));
                self.finds(place.0, place.1, rule, &message, files);
            }
        }
    }

    /// A finding at a file, or at the file of a test.
    fn finds(
        &mut self,
        place: &str,
        line: Option<u32>,
        rule: &str,
        message: &str,
        files: &[SourceFile],
    ) {
        let file = place.split_once("::").map_or(place, |(file, _)| file);
        self.findings.extend(finding(files, file, line, rule, message));
    }

    fn close(mut self, files: &[SourceFile]) -> Tested {
        let is_one = |id: &str, name: &str| {
            id.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
        };
        let (is_clean, is_empty) = (self.findings.is_empty(), self.expected.is_empty());
        for (name, line) in std::mem::take(&mut self.expected) {
            let mut said = self.passed.iter().chain(&self.told);
            if !said.any(|id| is_one(id, &name)) {
                let short = name.split_once("::").map_or(name.as_str(), |(_, short)| short);
                let message = format!("`{short}` was not run to its end");
                self.finds(&name, line, "missing", &message, files);
            }
        }
        let file = files.iter().find(|it| it.path.as_str().contains("/tests/"));
        let mut closing = |rule, message| {
            self.findings.extend(file.map(|file| about(&file.path, rule, message)));
        };
        if is_empty {
            closing("no-tests", "there are no tests");
        }
        if self.ended != Some(0) && is_clean {
            closing("ended", "the tests' run did not come to its end");
        }
        Tested { passed: self.passed.len(), findings: self.findings }
    }
}

fn is_ours(file: &str, files: &[SourceFile]) -> bool {
    files.iter().any(|ours| file.ends_with(ours.path.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fluffy_base::ProjectPath;

    const TEST: &str = ".fluffy/skills/tests/test_x.py";

    fn files() -> Vec<SourceFile> {
        let path = ProjectPath::parse(TEST).unwrap();
        vec![SourceFile { path, bytes: Vec::new() }]
    }

    fn key() -> Key {
        Key::new([1; 16], [2; 16])
    }

    fn said(key: &Key, texts: &[&str]) -> Vec<u8> {
        let mut printed = Vec::new();
        for (n, text) in texts.iter().enumerate() {
            let text = format!("{{\"n\":{n},{text}}}").replace("$", TEST);
            printed.extend_from_slice(format!("{} {text}\n", key.tag(text.as_bytes())).as_bytes());
        }
        printed
    }

    #[track_caller]
    fn check(texts: &[&str], expected: &[&str]) {
        let tested = judge(&said(&key(), texts), &key(), &files());
        let rules: Vec<_> = tested.findings.iter().map(|it| it.rule.as_str()).collect();
        assert_eq!(rules, expected, "{texts:?}: {tested:?}");
    }

    const ONE: &str = r#""expected":"$::test_a","line":3"#;
    const TWO: &str = r#""expected":"$::T::test_b","line":7"#;
    const BEGIN: &str = r#""begin":1"#;
    const A: &str = r#""id":"$::test_a","phase":"call","outcome":"passed""#;
    const B: &str = r#""id":"$::T::test_b[x]","phase":"call","outcome":"passed""#;
    const END: &str = r#""end":0"#;

    #[test]
    fn every_test_of_the_source_has_to_be_said_to_have_passed() {
        check(&[ONE, TWO, BEGIN, A, B, END], &[]);
        check(&[ONE, TWO, BEGIN, A, END], &["missing"]);
        check(&[ONE, TWO, BEGIN], &["missing", "missing", "ended"]);
        check(&[ONE, BEGIN, A], &["ended"]);
        check(&[ONE, BEGIN, A, r#""end":5"#], &["ended"]);
        check(&[], &["no-tests", "ended"]);
        check(&[BEGIN, END], &["no-tests"]);
        check(&[ONE, ONE, BEGIN, A, END], &["twice"]);
        check(
            &[ONE, BEGIN, r#""id":"$::test_ab","phase":"call","outcome":"passed""#, END],
            &["missing"],
        );
        check(
            &[ONE, BEGIN, r#""id":"$::test_a","phase":"setup","outcome":"passed""#, END],
            &["missing"],
        );
    }

    #[test]
    fn what_failed_was_skipped_or_was_to_fail_is_a_finding_with_its_line() {
        let fails = r#""id":"$::test_a","phase":"call","outcome":"failed","file":"/fluffy-gate/$","line":9,"message":"assert 1 == 2""#;
        check(&[ONE, BEGIN, fails, r#""end":1"#], &["failed"]);
        let tested = judge(&said(&key(), &[ONE, BEGIN, fails, END]), &key(), &files());
        assert_eq!(tested.findings[0].line, Some(9));
        for outcome in ["skipped", "xfail", "deselected"] {
            let line = format!(r#""id":"$::test_a","phase":"call","outcome":"{outcome}""#);
            check(&[ONE, BEGIN, &line, END], &["skipped"]);
        }
        let setup = r#""id":"$::test_a","phase":"teardown","outcome":"failed","message":"x""#;
        check(&[ONE, BEGIN, A, setup, r#""end":1"#], &["error"]);
        check(
            &[ONE, BEGIN, A, r#""id":"$::test_a","phase":"call","outcome":"odd""#, END],
            &["unknown"],
        );
        let collect = r#""id":"$","phase":"collect","outcome":"failed","message":"SyntaxError""#;
        check(&[ONE, BEGIN, collect, r#""end":2"#], &["error", "missing"]);
    }

    #[test]
    fn lesson_l30_lines_that_the_driver_did_not_say_are_forged() {
        let honest = said(&key(), &[ONE, BEGIN, A, END]);
        assert_eq!(judge(&honest, &key(), &files()).findings, []);
        let forged = |printed: &[u8]| {
            let tested = judge(printed, &key(), &files());
            assert_eq!(tested.findings.last().unwrap().rule, "forged");
            assert_eq!(tested.passed, 0);
        };
        forged(&said(&Key::new([0; 16], [0; 16]), &[ONE, BEGIN, A, END]));
        forged(&[honest.as_slice(), b"1 passed\n"].concat());
        forged(&[b"x".as_slice(), &honest].concat());
        forged(&[honest.as_slice(), &honest].concat());
        // A line that is left out, said twice, or out of turn.
        let lines: Vec<_> = honest.split_inclusive(|byte| *byte == b'\n').collect();
        forged(&[lines[0], lines[2], lines[3]].concat());
        forged(&[lines[0], lines[1], lines[1]].concat());
        check(&[ONE, BEGIN, A, TWO, END], &["forged"]);
        check(&[ONE, A, BEGIN, END], &["forged"]);
        check(&[ONE, BEGIN, A, END, A], &["forged"]);
        check(&[ONE, BEGIN, A, END, END], &["forged"]);
        check(&[ONE, BEGIN, r#""end":0,"id":"x""#], &["forged"]);
    }
}
