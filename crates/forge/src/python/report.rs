//! Findings while they are collected: placed, shortened and bounded.

use fluffy_base::{Excerpt, ProjectPath};

use crate::{Finding, Gate, GateResult};

/// The most that is told about one file; a file with more is no better understood by more.
const MAX_FINDINGS: usize = 100;
/// The longest piece of a file in a message.
const SHOWN_CHARS: usize = 80;

/// What is held against one file.
#[derive(Debug)]
pub(super) struct Report {
    file: ProjectPath,
    findings: Vec<Finding>,
}

impl Report {
    pub(super) fn of(file: &ProjectPath) -> Self {
        Self { file: file.clone(), findings: Vec::new() }
    }

    /// Adds a finding, unless it was told or there are too many.
    pub(super) fn add(&mut self, line: Option<u32>, rule: &str, message: impl Into<String>) {
        let message = message.into();
        let finding = Finding { file: self.file.clone(), line, rule: rule.to_owned(), message };
        if self.findings.len() < MAX_FINDINGS && !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// The findings, in the order of the lines.
    pub(super) fn finish(mut self) -> Vec<Finding> {
        self.findings.sort_by_key(|finding| finding.line);
        self.findings
    }
}

/// A piece of a file, fit for a message.
pub(super) fn shown(text: &str) -> String {
    Excerpt::new(text, SHOWN_CHARS).to_string()
}

/// What a gate says, from what it found.
pub(super) fn result(gate: Gate, files: usize, findings: Vec<Finding>) -> GateResult {
    let summary = match findings.len() {
        0 => format!("{files} files, nothing found"),
        1 => "1 finding".to_owned(),
        more => format!("{more} findings"),
    };
    GateResult { gate, passed: findings.is_empty(), summary, findings }
}
