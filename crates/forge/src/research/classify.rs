//! What kind of failure an attempt is.
//!
//! **Invariant.** Where a gate spoke or a build's end was recorded, that decides and no log is read: whoever writes
//! the log cannot choose what is made of it. A log alone never speaks for the policy, the invariants or the allowlist.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{BuildEnd, Gate, GateResult};

/// How much of a log is looked at, from its end.
const LOOKED_AT: usize = 256 << 10;

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FailureKind {
    /// The builder changed what it may not change, or left out what it must write.
    GateViolation,
    /// The builder took too long.
    Timeout,
    /// The builder failed, or could not be started.
    BuildError,
    /// Lint or types.
    VerifyLint,
    /// Tests.
    VerifyTest,
    /// Something forbidden is used.
    VerifyPolicy,
    /// It is not what was proposed.
    VerifyInvariant,
    /// Nobody can say.
    Unknown,
}

/// What a failure was told by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// The gates.
    Gates,
    /// The recorded end of the build.
    Build,
    /// The log alone: a guess.
    Log,
    /// Nothing.
    Nothing,
}

/// What is known of an attempt.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// How the build ended, if that was recorded.
    pub end: Option<&'a BuildEnd>,
    /// What the gates said, if they were asked.
    pub gates: &'a [GateResult],
    /// The builder's log: a stranger's text.
    pub log: &'a str,
}

/// What a failure was found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Classified {
    /// The kind.
    pub kind: FailureKind,
    /// What told it.
    pub told: Told,
}

/// Gates from the worst.
const WORST: [(Gate, FailureKind); 5] = [
    (Gate::Policy, FailureKind::VerifyPolicy),
    (Gate::Invariants, FailureKind::VerifyInvariant),
    (Gate::Lint, FailureKind::VerifyLint),
    (Gate::Types, FailureKind::VerifyLint),
    (Gate::Tests, FailureKind::VerifyTest),
];

impl FailureKind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::GateViolation,
        Self::Timeout,
        Self::BuildError,
        Self::VerifyLint,
        Self::VerifyTest,
        Self::VerifyPolicy,
        Self::VerifyInvariant,
        Self::Unknown,
    ];

    /// Its name, as entries have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GateViolation => "GATE_VIOLATION",
            Self::Timeout => "TIMEOUT",
            Self::BuildError => "BUILD_ERROR",
            Self::VerifyLint => "VERIFY_LINT",
            Self::VerifyTest => "VERIFY_TEST",
            Self::VerifyPolicy => "VERIFY_POLICY",
            Self::VerifyInvariant => "VERIFY_INVARIANT",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// What the next attempt is told about it, in a line.
    pub const fn about(self) -> &'static str {
        match self {
            Self::GateViolation => {
                "the attempt changed files that it may not change, or did not write those that it must"
            }
            Self::Timeout => "the attempt was not done in time",
            Self::BuildError => "the builder failed or could not be started",
            Self::VerifyLint => "lint or types found faults",
            Self::VerifyTest => "tests failed",
            Self::VerifyPolicy => "the code uses something that is forbidden",
            Self::VerifyInvariant => "the code is not the skill that was proposed",
            Self::Unknown => "why it failed is not known",
        }
    }

    /// Whether it is about what a skill may do, and not about how well it does it.
    pub const fn is_about_security(self) -> bool {
        match self {
            Self::VerifyPolicy | Self::VerifyInvariant => true,
            Self::GateViolation
            | Self::Timeout
            | Self::BuildError
            | Self::VerifyLint
            | Self::VerifyTest
            | Self::Unknown => false,
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Told {
    /// The words for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gates => "the gates",
            Self::Build => "the end of the build",
            Self::Log => "the log alone, which is a guess",
            Self::Nothing => "nothing",
        }
    }
}

/// What failed; nothing where nothing did.
pub fn classify(evidence: &Evidence<'_>) -> Option<Classified> {
    let found = |kind, told| Some(Classified { kind, told });
    let failed = |gate: Gate| evidence.gates.iter().any(|it| it.gate == gate && !it.passed);
    if let Some((_, kind)) = WORST.into_iter().find(|(gate, _)| failed(*gate)) {
        return found(kind, Told::Gates);
    }
    if !evidence.gates.is_empty() {
        let asked = |gate: Gate| evidence.gates.iter().any(|it| it.gate == gate);
        let all = Gate::ALL.into_iter().all(asked);
        return if all { None } else { found(FailureKind::Unknown, Told::Nothing) };
    }
    match evidence.end {
        Some(BuildEnd::Built { .. }) => None,
        Some(BuildEnd::Failed { kind, .. }) => {
            found(FailureKind::from_name(kind).unwrap_or(FailureKind::Unknown), Told::Build)
        }
        None => match of_log(evidence.log) {
            Some(kind) => found(kind, Told::Log),
            None => found(FailureKind::Unknown, Told::Nothing),
        },
    }
}

/// A guess from a log whose attempt has no recorded end: the tools' own last words, and never somebody's words about
/// them. A tool counts as failing if it named a fault and then, in its last summary, said that there are some.
fn of_log(log: &str) -> Option<FailureKind> {
    let mut tools = [Tool::new(ruff), Tool::new(mypy), Tool::new(pytest)];
    let mut last = "";
    for line in tail(log).lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        for tool in &mut tools {
            tool.take((tool.read)(line));
        }
        last = line;
    }
    let [ruff, mypy, pytest] = &tools;
    if ruff.failed || mypy.failed {
        return Some(FailureKind::VerifyLint);
    }
    if pytest.failed {
        return Some(FailureKind::VerifyTest);
    }
    was_not_started(last).then_some(FailureKind::BuildError)
}

/// What a line of a tool says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Nothing,
    /// A fault, with its place.
    Fault,
    /// The end: with faults or without.
    End(bool),
}

struct Tool {
    read: fn(&str) -> Said,
    named: bool,
    failed: bool,
}

impl Tool {
    fn new(read: fn(&str) -> Said) -> Self {
        Self { read, named: false, failed: false }
    }

    fn take(&mut self, said: Said) {
        match said {
            Said::Nothing => {}
            Said::Fault => self.named = true,
            Said::End(faults) => {
                self.failed = faults && self.named;
                self.named = false;
            }
        }
    }
}

/// `x.py:3:1: F401 …`, `Found 2 errors.`, `All checks passed!`
fn ruff(line: &str) -> Said {
    if line == "All checks passed!" {
        return Said::End(false);
    }
    let counted = line.strip_prefix("Found ").and_then(|rest| rest.split_once(' '));
    if let Some((count, "error." | "errors.")) = counted {
        return if is_number(count) { Said::End(count != "0") } else { Said::Nothing };
    }
    let Some((_, rest)) = line.split_once(".py:") else { return Said::Nothing };
    let mut parts = rest.splitn(3, ':');
    let (row, column, code) = (parts.next(), parts.next(), parts.next());
    let code = code.and_then(|code| code.trim_start().split(' ').next()).unwrap_or_default();
    let is_code = code.starts_with(|c: char| c.is_ascii_uppercase())
        && code.ends_with(|c: char| c.is_ascii_digit());
    let placed = row.is_some_and(is_number) && column.is_some_and(is_number);
    if placed && is_code { Said::Fault } else { Said::Nothing }
}

/// `x.py:3: error: …`, `Found 1 error in 1 file (checked 2 source files)`, `Success: no issues found in …`
fn mypy(line: &str) -> Said {
    if line.starts_with("Success: no issues found in ") {
        return Said::End(false);
    }
    let counted = line.strip_prefix("Found ").and_then(|rest| rest.split_once(' '));
    if let Some((count, rest)) = counted {
        let is_end = (rest.starts_with("error in ") || rest.starts_with("errors in "))
            && rest.contains(" (checked ")
            && is_number(count);
        return if is_end { Said::End(count != "0") } else { Said::Nothing };
    }
    let placed = line.split_once(".py:").and_then(|(_, rest)| rest.split_once(": error: "));
    let is_fault =
        placed.is_some_and(|(place, _)| place.split(':').all(is_number) && !place.is_empty());
    if is_fault { Said::Fault } else { Said::Nothing }
}

/// `FAILED x.py::test_y - …`, `==== 1 failed, 2 passed in 0.03s ====`
fn pytest(line: &str) -> Said {
    let named = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR "));
    if named.is_some_and(|rest| rest.contains(".py")) {
        return Said::Fault;
    }
    let bare = line.trim_matches(['=', ' ']);
    let Some((counts, time)) = bare.rsplit_once(" in ") else { return Said::Nothing };
    let seconds = time.split(' ').next().and_then(|time| time.strip_suffix('s'));
    if seconds.is_none_or(|time| time.parse::<f64>().is_err()) {
        return Said::Nothing;
    }
    let counts: Vec<_> = counts.split(", ").filter_map(|part| part.split_once(' ')).collect();
    let is_summary = !counts.is_empty() && counts.iter().all(|(count, _)| is_number(count));
    let faults = counts.iter().any(|(_, word)| matches!(*word, "failed" | "error" | "errors"));
    if is_summary { Said::End(faults) } else { Said::Nothing }
}

/// A shell's or a loader's last word.
fn was_not_started(line: &str) -> bool {
    let shells = ["sh: ", "bash: ", "dash: ", "env: ", "/bin/sh: ", "/bin/bash: "];
    shells.iter().any(|shell| line.starts_with(shell))
        && ["not found", "No such file or directory", "Permission denied"]
            .iter()
            .any(|words| line.ends_with(words))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The end of a log, whole lines of it.
fn tail(log: &str) -> &str {
    let Some(from) = log.len().checked_sub(LOOKED_AT) else { return log };
    let from = log.ceil_char_boundary(from);
    let rest = log.get(from..).unwrap_or_default();
    rest.split_once('\n').map_or(rest, |(_, rest)| rest)
}

#[cfg(test)]
mod tests;
