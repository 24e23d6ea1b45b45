//! What happened to a skill, a line for each step, for people and programs.
//!
//! **Invariant.** A line holds one line of text that no terminal obeys, whatever a builder or a model wrote.

use fluffy_base::Excerpt;
use serde::Serialize;

use crate::{Attempt, BuildEnd, GateResult, Past, SkillEntry};

/// How much of others' words a line holds.
const CHARS: usize = 160;

/// One step of a skill's life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HistoryLine {
    /// Number of the ledger's entry.
    pub seq: u64,
    /// When, in milliseconds since the epoch.
    pub ts_ms: u64,
    /// What happened, in a word.
    pub event: &'static str,
    /// Which build it is about.
    pub build: Option<String>,
    /// Which attempt began.
    pub attempt: Option<u32>,
    /// The build that is tried again.
    pub parent: Option<String>,
    /// Who did it, of what a person does.
    pub by: Option<String>,
    /// What became of it, in a line.
    pub says: String,
    /// What demands a person before the next attempt.
    pub triggers: Vec<String>,
    /// Whether it was legal, and counts.
    pub counts: bool,
}

/// The lines, the first step first; runs are not among them.
pub fn history(past: &[Past]) -> Vec<HistoryLine> {
    past.iter().filter(|past| past.entry.is_step()).map(line).collect()
}

fn line(past: &Past) -> HistoryLine {
    let Past { seq, ts_ms, counts, entry } = past;
    let mut line = HistoryLine {
        seq: *seq,
        ts_ms: *ts_ms,
        event: entry.kind(),
        build: None,
        attempt: None,
        parent: None,
        by: None,
        says: String::new(),
        triggers: Vec::new(),
        counts: *counts,
    };
    match entry {
        SkillEntry::Proposed { spec, .. } => {
            line.says = format!("{}: {}", spec.side_effect, shown(&spec.description));
        }
        SkillEntry::BuildStarted { attempt, .. } => line.begins(attempt),
        SkillEntry::BuildEnded { build, end, .. } => {
            line.build = Some(shown(build));
            line.says = match end {
                BuildEnd::Built { files } => format!("{} files were built", files.len()),
                BuildEnd::Failed { kind, why } => format!("{}: {}", shown(kind), shown(why)),
            };
        }
        SkillEntry::Verified { build, gates, .. } => {
            line.build = Some(shown(build));
            line.says = judged(gates);
        }
        SkillEntry::Researched { build, failure, triggers, .. } => {
            line.build = Some(shown(build));
            line.says = shown(failure);
            line.triggers = triggers.iter().map(|trigger| shown(trigger)).collect();
        }
        SkillEntry::RetryApproved { build, by, .. } => {
            (line.build, line.by) = (Some(shown(build)), Some(shown(by)));
            line.says = "another attempt may be made".to_owned();
        }
        SkillEntry::Promoted { verification, by, .. } => {
            line.by = Some(shown(by));
            line.says = format!("on the strength of verification {}", shown(verification));
        }
        SkillEntry::Revoked { by, why, .. } => {
            (line.by, line.says) = (Some(shown(by)), shown(why));
        }
        SkillEntry::Ran { execution, .. } => line.says = shown(execution),
    }
    line
}

impl HistoryLine {
    fn begins(&mut self, attempt: &Attempt) {
        self.build = Some(shown(&attempt.build));
        self.attempt = Some(attempt.number);
        self.parent = attempt.parent.as_deref().map(shown);
        self.says = format!("by {}", shown(&attempt.builder));
    }
}

/// Which gates stand in the way.
fn judged(gates: &[GateResult]) -> String {
    let failed: Vec<_> =
        gates.iter().filter(|gate| !gate.passed).map(|it| it.gate.name()).collect();
    if failed.is_empty() {
        "all gates passed".to_owned()
    } else {
        format!("failed: {}", failed.join(", "))
    }
}

fn shown(text: &str) -> String {
    Excerpt::new(text, CHARS).to_string()
}

#[cfg(test)]
mod tests {
    use fluffy_base::Digest;
    use serde_json::json;

    use super::*;
    use crate::{Gate, SkillName};

    fn past(entry: SkillEntry) -> Past {
        Past { seq: 7, ts_ms: 9, counts: true, entry }
    }

    fn name() -> SkillName {
        SkillName::parse("write_note").unwrap()
    }

    #[test]
    fn for_9_a_retry_is_told_with_its_number_and_the_build_that_it_tries_again() {
        let attempt = Attempt {
            build: "b2".to_owned(),
            number: 2,
            parent: Some("b1".to_owned()),
            packet: Digest::of(b"p"),
            builder: "claude".to_owned(),
        };
        let lines = history(&[past(SkillEntry::BuildStarted { name: name(), attempt })]);
        assert_eq!(
            serde_json::to_value(&lines[0]).unwrap(),
            json!({
                "seq": 7, "ts_ms": 9, "event": "build_started", "build": "b2", "attempt": 2, "parent": "b1",
                "by": null, "says": "by claude", "triggers": [], "counts": true,
            })
        );
    }

    #[test]
    fn for_8_failures_triggers_and_approvals_are_told_and_runs_are_not() {
        let result = |gate| GateResult {
            gate,
            passed: gate != Gate::Policy,
            summary: String::new(),
            findings: vec![],
        };
        assert_eq!(judged(&Gate::ALL.map(result)), "failed: policy");
        let entries = [
            SkillEntry::Researched {
                name: name(),
                build: "b1".to_owned(),
                failure: "VERIFY_POLICY".to_owned(),
                triggers: vec!["SECURITY_CLASS".to_owned()],
                note: Digest::of(b"n"),
            },
            SkillEntry::RetryApproved {
                name: name(),
                build: "b1".to_owned(),
                by: "ada".to_owned(),
            },
            SkillEntry::Ran {
                name: name(),
                execution: "e1".to_owned(),
                parent: None,
                record: json!({}),
            },
        ];
        let lines = history(&entries.map(past));
        assert_eq!(lines.len(), 2);
        assert_eq!(
            (lines[0].says.as_str(), &lines[0].triggers[..]),
            ("VERIFY_POLICY", &["SECURITY_CLASS".to_owned()][..])
        );
        assert_eq!(lines[1].by.as_deref(), Some("ada"));
    }

    #[test]
    fn a_builders_words_are_one_line_that_no_terminal_obeys() {
        let end = BuildEnd::Failed {
            kind: "TIMEOUT".to_owned(),
            why: format!("a\n\u{1b}[2J sk-abcdefghijklmnop1234 {}", "x".repeat(1_000)),
        };
        let (build, log) = ("b1".to_owned(), Digest::of(b"l"));
        let lines = history(&[past(SkillEntry::BuildEnded { name: name(), build, end, log })]);
        let says = &lines[0].says;
        assert!(says.starts_with("TIMEOUT: a\\n\\u{1b}[2J sk-*** x"), "{says}");
        assert!(says.chars().count() < 200 && !says.chars().any(char::is_control));
    }
}
