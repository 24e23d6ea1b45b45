//! What whoever watches a task is told, as it happens.
//!
//! Each event is one line of JSON for programs and one piece of rendering for people. The names and fields
//! are an interface: they change only with [`EVENT_VERSION`].

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Usd;

/// The version in every event.
pub const EVENT_VERSION: u64 = 1;

/// Something that a watcher of a task is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum Event {
    /// A session begins, or goes on.
    #[serde(rename = "session.started")]
    SessionStarted {
        /// Its id.
        session_id: String,
        /// Its mode.
        mode: String,
        /// Who provides the model.
        provider: String,
        /// The model.
        model: String,
        /// Digest of the policy in force.
        policy: String,
        /// What the model is shown from the beginning, by path: the project's own notes, and what was pinned.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    /// The work stands elsewhere.
    #[serde(rename = "state.changed")]
    StateChanged {
        /// Where it stood.
        from: String,
        /// Where it stands.
        to: String,
    },
    /// The model says something.
    #[serde(rename = "text.delta")]
    TextDelta {
        /// What.
        text: String,
    },
    /// A call is about to be submitted.
    #[serde(rename = "tool.started")]
    ToolStarted {
        /// Which call.
        call_id: String,
        /// Which tool.
        tool: String,
        /// What it acts on, in a few words.
        summary: String,
    },
    /// A call is answered.
    #[serde(rename = "tool.finished")]
    ToolFinished {
        /// Which call.
        call_id: String,
        /// Which tool.
        tool: String,
        /// `allowed` or `denied`.
        decision: String,
        /// The rule that decided.
        #[serde(skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// Why it was denied.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Whether it did what was asked.
        success: bool,
        /// How long it took.
        duration_ms: u64,
        /// What came of it, in a few words.
        summary: String,
        /// Why it failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Hash of its ledger entry.
        #[serde(skip_serializing_if = "Option::is_none")]
        entry: Option<String>,
    },
    /// Packages were installed.
    #[serde(rename = "dependency.installed")]
    DependencyInstalled {
        /// The package manager.
        manager: String,
        /// All packages of the environment, as `name@version`.
        packages: Vec<String>,
        /// The key of the environment in the store, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        environment: Option<String>,
    },
    /// Tests ran.
    #[serde(rename = "tests.finished")]
    TestsFinished {
        /// How many passed.
        passed: usize,
        /// How many failed.
        failed: usize,
        /// How many were skipped.
        skipped: usize,
        /// Those that failed.
        ids_failed: Vec<String>,
        /// Suites that gave no result, each with the reason: a missing runner or a limit is no failing test.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        not_run: Vec<String>,
    },
    /// Coverage was measured.
    #[serde(rename = "coverage.measured")]
    CoverageMeasured {
        /// Lines that tests reach.
        covered: u64,
        /// All lines.
        total: u64,
        /// The covered share that the project is held to, in hundredths of a percent, if it keeps one.
        #[serde(skip_serializing_if = "Option::is_none")]
        baseline: Option<u32>,
        /// `kept`, `lower`, `warned` or `locked`: how it stands against that.
        level: String,
        /// The same in words.
        text: String,
    },
    /// A person is asked.
    #[serde(rename = "review.requested")]
    ReviewRequested {
        /// Which question.
        id: String,
        /// What is to be done.
        action: String,
        /// Why a person is asked.
        reasons: Vec<String>,
        /// What would change.
        #[serde(skip_serializing_if = "Option::is_none")]
        diff: Option<String>,
    },
    /// A person answered.
    #[serde(rename = "review.answered")]
    ReviewAnswered {
        /// Which question.
        id: String,
        /// Whether they agreed.
        approved: bool,
        /// Who.
        by: String,
        /// How far a yes reaches beyond this call: `session` or `rule`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<String>,
        /// What the person says to the model, refusing it; how it begins.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        words: Option<String>,
    },
    /// The work is in the project.
    #[serde(rename = "merge.completed")]
    MergeCompleted {
        /// What changed there.
        files: Vec<MergedFile>,
        /// The commit, if one was made.
        #[serde(skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
    },
    /// What a turn of the model used.
    #[serde(rename = "usage")]
    Usage {
        /// Tokens sent.
        input_tokens: u64,
        /// Tokens received.
        output_tokens: u64,
        /// How many of those sent were read from a cache.
        #[serde(skip_serializing_if = "Option::is_none")]
        cached_tokens: Option<u64>,
        /// What it cost in US dollars, where prices are known: a decimal number.
        #[serde(skip_serializing_if = "Option::is_none")]
        cost_usd: Option<Usd>,
    },
    /// The provider failed for the moment and is asked again after a pause.
    #[serde(rename = "provider.retry")]
    ProviderRetry {
        /// What it said.
        what: String,
        /// How long is waited.
        wait_ms: u64,
        /// The how many-th time it will be asked again.
        attempt: u32,
        /// Whether a part of its answer was told already: that part does not count, and the answer begins anew.
        discarded: bool,
    },
    /// No sandbox can be made yet, and the work waits: what they are made of is being prepared.
    #[serde(rename = "sandbox.pending")]
    SandboxPending {
        /// What is being done.
        what: String,
        /// How far it is, in hundredths, where that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        progress: Option<u8>,
    },
    /// The kernel's process ended in the middle of the session and was started again; the session goes on.
    #[serde(rename = "kernel.restarted")]
    KernelRestarted {
        /// The how many-th time.
        attempt: u32,
    },
    /// The task is done.
    #[serde(rename = "task.completed")]
    TaskCompleted {
        /// What was done.
        summary: String,
        /// The files that were changed.
        files_changed: Vec<String>,
        /// How many turns the model had.
        turns: u64,
        /// Root of the ledger's tree.
        ledger_root: String,
    },
    /// The task did not get to its end.
    #[serde(rename = "task.failed")]
    TaskFailed {
        /// What happened.
        what: String,
        /// Why.
        why: String,
        /// What to do about it.
        fix: String,
    },
}

/// A file that a merge changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergedFile {
    /// Its path.
    pub path: String,
    /// `added`, `modified` or `deleted`.
    pub change: String,
}

/// Someone who watches a task. Called from whichever thread it happens in, and quick: what it is told has
/// happened already.
pub trait Observer: Send + Sync {
    /// Something happened.
    fn notice(&self, event: Event);
}

/// Nobody watches.
impl Observer for () {
    fn notice(&self, _: Event) {}
}

impl Event {
    /// The event as one line for programs, without the line's end.
    pub fn line(&self, seq: u64, ts_ms: u64) -> String {
        let mut members = Map::new();
        members.insert("v".to_owned(), EVENT_VERSION.into());
        members.insert("seq".to_owned(), seq.into());
        members.insert("ts_ms".to_owned(), ts_ms.into());
        // An event is texts, numbers and lists of them, which cannot fail to be written.
        if let Ok(Value::Object(own)) = serde_json::to_value(self) {
            members.extend(own);
        }
        Value::Object(members).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_version_number_time_type_and_the_events_own_fields() {
        let event = Event::StateChanged { from: "idle".to_owned(), to: "planning".to_owned() };
        let line: Value = serde_json::from_str(&event.line(3, 7)).unwrap();
        let expected = serde_json::json!({
            "v": 1, "seq": 3, "ts_ms": 7, "type": "state.changed", "from": "idle", "to": "planning"
        });
        assert_eq!(line, expected);
    }

    #[test]
    fn what_is_absent_is_left_out() {
        let event = Event::MergeCompleted {
            files: vec![MergedFile { path: "a".to_owned(), change: "added".to_owned() }],
            commit: None,
        };
        let line: Value = serde_json::from_str(&event.line(0, 0)).unwrap();
        assert_eq!(line.get("commit"), None);
        assert_eq!(line["files"][0]["change"], "added");
    }
}
