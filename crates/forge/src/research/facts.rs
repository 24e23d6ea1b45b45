//! What is known of a failure, in plain values: bounded, masked, one line each.

use std::fmt::Display;

use fluffy_base::{Excerpt, ProjectPath};
use serde::{Deserialize, Serialize};

use super::classify::{Evidence, FailureKind};
use crate::{BuildEnd, Finding, Gate};

/// How many things of one kind are told.
const MOST: usize = 40;

/// How much is told of each.
const CHARS: usize = 240;

/// What is known of a failure.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// Why the build failed, in the words that were recorded.
    pub why: Option<String>,
    /// Files that the attempt had no business with, or did not write.
    pub paths: Vec<String>,
    /// How the builder ended.
    pub exit_code: Option<i32>,
    /// The program that is not there.
    pub missing_program: Option<String>,
    /// How long it was waited for.
    pub waited_ms: Option<u64>,
    /// What the gates hold against files, those of the worst gate first.
    pub faults: Vec<Fault>,
    /// Tests that did not pass.
    pub tests: Vec<FailedTest>,
    /// What the gates that failed said, in a line each.
    pub gates: Vec<String>,
    /// How many faults and tests are left out here.
    pub left_out: usize,
}

/// Something that a gate holds against a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The gate.
    pub gate: Gate,
    /// The rule.
    pub rule: String,
    /// The file.
    pub file: String,
    /// The line.
    pub line: Option<u32>,
    /// What is wrong.
    pub message: String,
}

/// A test that did not pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailedTest {
    /// Which.
    pub id: String,
    /// What it said.
    pub message: String,
}

impl Facts {
    /// What the evidence of a failure tells.
    pub fn of(kind: FailureKind, evidence: &Evidence<'_>) -> Self {
        let mut facts = Self::default();
        if let Some(BuildEnd::Failed { why, .. }) = evidence.end {
            facts.why = Some(short(why));
            facts.read_why(kind, why);
        }
        // Gates in the order of how bad they are, so that what is left out matters least.
        for gate in [Gate::Policy, Gate::Invariants, Gate::Lint, Gate::Types, Gate::Tests] {
            for result in evidence.gates.iter().filter(|it| it.gate == gate && !it.passed) {
                facts.gates.push(format!("{gate}: {}", short(&result.summary)));
                result.findings.iter().for_each(|finding| facts.take(gate, finding));
            }
        }
        facts.gates.truncate(MOST);
        facts
    }

    fn take(&mut self, gate: Gate, finding: &Finding) {
        let (rule, message) = (short(&finding.rule), short(&finding.message));
        let file = short(finding.file.as_str());
        if gate == Gate::Tests {
            if self.tests.len() < MOST {
                self.tests.push(FailedTest { id: test_id(&file, &rule, &message), message });
                return;
            }
        } else if self.faults.len() < MOST {
            self.faults.push(Fault { gate, rule, file, line: finding.line, message });
            return;
        }
        self.left_out = self.left_out.saturating_add(1);
    }

    /// What was recorded names paths, programs and numbers; the words of strangers stand in back quotes.
    fn read_why(&mut self, kind: FailureKind, why: &str) {
        let quoted = why.split('`').skip(1).step_by(2);
        match kind {
            FailureKind::GateViolation => {
                let paths = quoted.filter(|text| ProjectPath::parse(text).is_ok());
                let mut paths: Vec<String> = paths.map(short).collect();
                paths.dedup();
                self.left_out = self.left_out.saturating_add(paths.len().saturating_sub(MOST));
                paths.truncate(MOST);
                self.paths = paths;
            }
            FailureKind::BuildError => {
                let missing = ["not found", "no program", "not there", "no such", "not installed"];
                let lower = why.to_ascii_lowercase();
                if missing.iter().any(|words| lower.contains(words)) {
                    self.missing_program = quoted.map(short).next();
                }
                self.exit_code = after(
                    why,
                    &["exit code ", "exit status ", "exited with code ", "exited with "],
                );
            }
            FailureKind::Timeout => self.waited_ms = waited(why),
            FailureKind::VerifyLint
            | FailureKind::VerifyTest
            | FailureKind::VerifyPolicy
            | FailureKind::VerifyInvariant
            | FailureKind::Unknown => {}
        }
    }
}

/// Which test a finding is about: its message begins with the name in back quotes, or its rule is the id.
fn test_id(file: &str, rule: &str, message: &str) -> String {
    let named = message.strip_prefix('`').and_then(|rest| rest.split_once('`'));
    match named {
        _ if rule.contains("::") => rule.to_owned(),
        Some((name, _)) => format!("{file}::{name}"),
        None => format!("{file}::{rule}"),
    }
}

/// The number behind one of these words.
fn after(text: &str, words: &[&str]) -> Option<i32> {
    words.iter().find_map(|word| {
        let (_, rest) = text.split_once(word)?;
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
        rest.get(..end)?.parse().ok()
    })
}

/// The first time in a text: `600 s`, `600000ms`, `10m`.
fn waited(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let digits = word.trim_end_matches(|c: char| !c.is_ascii_digit());
        let Ok(number) = digits.parse::<u64>() else { continue };
        let unit = match word.get(digits.len()..) {
            Some("") | None => words.peek().copied().unwrap_or_default(),
            Some(unit) => unit,
        };
        let factor = match unit.trim_matches(|c: char| !c.is_ascii_alphabetic()) {
            "ms" => 1,
            "s" | "seconds" => 1_000,
            "m" | "min" | "minutes" => 60_000,
            "h" => 3_600_000,
            _ => continue,
        };
        return number.checked_mul(factor);
    }
    None
}

fn short(text: impl Display + AsRef<str>) -> String {
    Excerpt::new(text.as_ref(), CHARS).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::GateResult;

    fn failed(kind: FailureKind, why: &str) -> Facts {
        let end = BuildEnd::Failed { kind: kind.name().to_owned(), why: why.to_owned() };
        Facts::of(kind, &Evidence { end: Some(&end), gates: &[], log: "" })
    }

    fn finding(rule: &str, message: &str) -> Finding {
        let file = ProjectPath::parse(".fluffy/skills/a.py").unwrap();
        Finding { file, line: Some(3), rule: rule.to_owned(), message: message.to_owned() }
    }

    fn result(gate: Gate, findings: Vec<Finding>) -> GateResult {
        GateResult { gate, passed: false, summary: format!("{gate} fails"), findings }
    }

    #[test]
    fn for_8_a_violation_names_the_paths() {
        let facts = failed(
            FailureKind::GateViolation,
            "the builder changed `policy.yaml` and `src/x.py`, and did not write `.fluffy/skills/a.py`",
        );
        assert_eq!(facts.paths, ["policy.yaml", "src/x.py", ".fluffy/skills/a.py"]);
    }

    #[test]
    fn for_8_an_error_of_the_build_names_exit_code_or_missing_program() {
        let facts = failed(FailureKind::BuildError, "the builder ended with exit code 3");
        assert_eq!((facts.exit_code, facts.missing_program), (Some(3), None));
        let facts = failed(FailureKind::BuildError, "the program `claude` was not found");
        assert_eq!((facts.exit_code, facts.missing_program.as_deref()), (None, Some("claude")));
        let facts = failed(FailureKind::BuildError, "the builder exited with code 127");
        assert_eq!(facts.exit_code, Some(127));
        let facts = failed(FailureKind::BuildError, "exit code 99999999999999999999");
        assert_eq!(facts.exit_code, None);
    }

    #[test]
    fn for_8_a_timeout_names_the_time() {
        for (why, ms) in [
            ("not done after 600 s", Some(600_000)),
            ("not done within 600000ms", Some(600_000)),
            ("limit of 10 min reached", Some(600_000)),
            ("after 2 attempts and 5s.", Some(5_000)),
            ("the builder was ended after 10m", Some(600_000)),
            ("the builder was ended after 1h", Some(3_600_000)),
            ("at some time", None),
            ("99999999999999999999 s", None),
            ("18446744073709551615 min", None),
        ] {
            assert_eq!(failed(FailureKind::Timeout, why).waited_ms, ms, "{why}");
        }
    }

    #[test]
    fn for_8_faults_have_rule_file_and_line_and_tests_their_ids() {
        let gates = [
            result(Gate::Tests, vec![finding("tests/test_a.py::test_b", "assert 1 == 2")]),
            result(Gate::Lint, vec![finding("F401", "unused import")]),
            result(Gate::Policy, vec![finding("forbidden_import", "`ctypes`")]),
        ];
        let evidence = Evidence { end: None, gates: &gates, log: "" };
        let facts = Facts::of(FailureKind::VerifyPolicy, &evidence);
        let rules = facts.faults.iter().map(|it| (it.gate, it.rule.as_str(), it.line));
        assert_eq!(
            rules.collect::<Vec<_>>(),
            [(Gate::Policy, "forbidden_import", Some(3)), (Gate::Lint, "F401", Some(3))]
        );
        assert_eq!(facts.tests[0].id, "tests/test_a.py::test_b");
        assert_eq!(facts.gates[0], "policy: policy fails");
        assert_eq!(test_id("t.py", "failed", "`test_a` failed (call): x"), "t.py::test_a");
        assert_eq!(test_id("t.py", "empty", "there are no tests"), "t.py::empty");
    }

    #[test]
    fn facts_are_bounded_and_hold_no_key() {
        let long = format!("sk-abcdefghijklmnop1234 {}", "x".repeat(10_000));
        let gates = [result(Gate::Lint, vec![finding("E\n1", &long); 1_000])];
        let facts =
            Facts::of(FailureKind::VerifyLint, &Evidence { end: None, gates: &gates, log: "" });
        assert_eq!((facts.faults.len(), facts.left_out), (MOST, 960));
        let text = serde_json::to_string(&facts).unwrap();
        assert!(text.len() < 20_000 && !text.contains("abcdefgh"));
        assert_eq!(facts.faults[0].rule, "E\\n1");
    }

    proptest! {
        #[test]
        fn no_reason_breaks_it(why in "\\PC{0,200}", at in 0_usize..8) {
            let facts = failed(FailureKind::ALL[at], &why);
            prop_assert!(facts.paths.len() <= MOST);
        }
    }
}
