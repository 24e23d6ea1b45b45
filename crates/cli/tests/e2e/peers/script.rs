//! What a scripted model says, whichever vendor's words it says it in.

use serde_json::{Value, json};

use crate::task::lab::Language;

/// One turn of the model.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// What it thinks, and shows of that.
    pub(crate) thought: String,
    /// What it says.
    pub(crate) text: String,
    /// The tools it calls, by the names that the wire has, and with what.
    pub(crate) calls: Vec<(&'static str, Value)>,
    /// What the turn used.
    pub(crate) used: Used,
}

/// What a turn used, in tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    /// Sent, all of it.
    pub(crate) input: u64,
    /// Sent and found in a cache.
    pub(crate) cached: u64,
    /// Received, thoughts included.
    pub(crate) output: u64,
    /// Received and only thought.
    pub(crate) thoughts: u64,
}

impl Used {
    /// What it costs in millionths of a dollar: 2 dollars a million sent, a half if cached, 10 received.
    pub(crate) fn micros(&self) -> u64 {
        let tenths = (self.input - self.cached) * 20 + self.cached * 5 + self.output * 100;
        tenths.div_ceil(10)
    }
}

/// The turns of a model that brings a project from a failing test to a commit.
pub(crate) fn lines(language: Language) -> Vec<Line> {
    let (test, text) = language.test();
    let source = language.source();
    let write = |path: &str, content: &str| ("fs_write", json!({"path": path, "content": content}));
    let said: [(&str, Vec<(&'static str, Value)>); 7] = [
        (
            "Ich sehe zuerst nach. 🐑 “Gleich.”",
            vec![
                ("fs_read", json!({"path": source})),
                ("search_grep", json!({"pattern": "add", "path": "."})),
            ],
        ),
        ("", vec![("plan_complete", json!({"summary": "a test, then the code"}))]),
        ("A test.\n\nIt names `double`.", vec![write(test, text)]),
        ("", vec![("test_run", json!({}))]),
        ("Now the code: \u{1f9ee}", vec![write(source, &language.solution())]),
        ("It must pass.", vec![("test_run", json!({}))]),
        ("Done.", vec![("task_complete", json!({"summary": "add double"}))]),
    ];
    let lines = said.into_iter().zip(0_u64..).map(|((text, calls), number)| Line {
        thought: format!("Thought {number}: naïve – “{text}”"),
        text: text.to_owned(),
        calls,
        used: Used {
            input: 1_000 + 100 * number,
            cached: 64 * number,
            output: 40 + number,
            thoughts: 7,
        },
    });
    lines.collect()
}
