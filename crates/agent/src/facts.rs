//! What happened, kept in few words when the turns themselves are left out.
//!
//! It needs no model and cannot be talked out of anything: which files were touched and how, which states
//! the work went through, what was refused, how the last tests went.

use std::collections::VecDeque;

use fluffy_base::{Excerpt, Json};
use fluffy_provider::{Call, CallOutcome, CallResult};

/// How many of each are kept, the latest.
const MAX_FILES: usize = 60;
const MAX_STATES: usize = 20;
const MAX_REFUSALS: usize = 12;

/// How much of a line is kept.
const LINE_CHARS: usize = 160;

/// What happened in the turns that are left out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    turns: usize,
    /// A path, and what was last done to it.
    files: VecDeque<(String, String)>,
    states: VecDeque<String>,
    refusals: VecDeque<String>,
    tests: Option<String>,
    said: Option<String>,
}

impl Facts {
    /// Takes in one turn.
    pub(crate) fn absorb(
        &mut self,
        state: &str,
        text: &str,
        calls: &[Call],
        results: &[CallResult],
    ) {
        self.turns = self.turns.saturating_add(1);
        if !state.is_empty() && self.states.back().is_none_or(|last| last != state) {
            push(&mut self.states, state.to_owned(), MAX_STATES);
        }
        if !text.trim().is_empty() {
            self.said = Some(Excerpt::new(text.trim(), 2 * LINE_CHARS).to_string());
        }
        for (call, result) in calls.iter().zip(results) {
            self.take(call, result);
        }
    }

    /// The facts as text.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{} earlier turns are left out.\n", self.turns);
        let mut section = |heading: &str, lines: &mut dyn Iterator<Item = String>| {
            let lines: Vec<_> = lines.collect();
            if !lines.is_empty() {
                text.push_str(&format!("{heading}:\n- {}\n", lines.join("\n- ")));
            }
        };
        let states: Vec<_> = self.states.iter().map(String::as_str).collect();
        let states = Some(states.join(" → ")).filter(|states| !states.is_empty());
        section("States", &mut states.into_iter());
        section("Last test run", &mut self.tests.iter().cloned());
        section("Refused", &mut self.refusals.iter().cloned());
        let files = self.files.iter().map(|(path, last)| format!("{path}: {last}"));
        section("Files, and what was last done with them", &mut files.rev());
        section("What you last said", &mut self.said.iter().cloned());
        text
    }

    fn take(&mut self, call: &Call, result: &CallResult) {
        let tool = Excerpt::new(&result.tool, 60);
        let done = format!("{tool} {}", result.outcome.name());
        if result.tool == "test.run" {
            let line = Excerpt::new(&result.content, LINE_CHARS);
            self.tests = Some(format!("{}: {line}", result.outcome.name()));
        }
        let path = path(call);
        if result.outcome == CallOutcome::Denied {
            let on = path.as_deref().unwrap_or("");
            let why = Excerpt::new(&result.content, LINE_CHARS);
            push(&mut self.refusals, format!("{tool} {on}: {why}"), MAX_REFUSALS);
        }
        if let Some(path) = path {
            self.files.retain(|(known, _)| *known != path);
            push(&mut self.files, (path, done), MAX_FILES);
        }
    }
}

fn path(call: &Call) -> Option<String> {
    let arguments = Json::parse(call.arguments.as_bytes()).ok()?;
    let path = arguments.as_object()?.get("path")?.as_str()?;
    Some(Excerpt::new(path, LINE_CHARS).to_string())
}

fn push<T>(list: &mut VecDeque<T>, item: T, most: usize) {
    list.push_back(item);
    if list.len() > most {
        list.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(path: &str) -> Call {
        let arguments = serde_json::json!({ "path": path }).to_string();
        Call { id: "1".to_owned(), name: "fs.write".to_owned(), arguments }
    }

    fn result(tool: &str, content: &str, outcome: CallOutcome) -> CallResult {
        let (call_id, tool, content) = ("1".to_owned(), tool.to_owned(), content.to_owned());
        CallResult { call_id, tool, content, outcome }
    }

    #[test]
    fn files_states_tests_and_refusals_are_kept() {
        let mut facts = Facts::default();
        let calls = [call("tests/a.rs"), call("src/lib.rs"), call("")];
        let results = [
            result("fs.write", "ok", CallOutcome::Done),
            result("fs.write", "not while tests\nare written", CallOutcome::Denied),
            result("test.run", "1 failed", CallOutcome::Failed),
        ];
        facts.absorb("test_writing", "I write tests.", &calls, &results);
        facts.absorb(
            "code_writing",
            "",
            &[call("src/lib.rs")],
            &[result("fs.write", "ok", CallOutcome::Done)],
        );
        let text = facts.text();
        for part in [
            "2 earlier turns",
            "test_writing → code_writing",
            "failed: 1 failed",
            "fs.write src/lib.rs: not while tests\\nare written",
            "tests/a.rs: fs.write done",
            "src/lib.rs: fs.write done",
            "I write tests.",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn any_number_of_turns_makes_a_bounded_text() {
        let mut facts = Facts::default();
        for turn in 0..500 {
            let calls = [call(&format!("{turn}/{}", "p".repeat(500)))];
            let results = [result("fs.write", &"why ".repeat(200), CallOutcome::Denied)];
            facts.absorb(&turn.to_string(), &"said ".repeat(300), &calls, &results);
        }
        assert!(facts.text().len() < 20_000, "{}", facts.text().len());
    }
}
