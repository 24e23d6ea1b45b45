//! What the loop itself costs per turn: prompt, window, stream, calls to a bench that does nothing.
//!
//! `cargo bench --package fluffy-agent --bench turn`

#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]

use std::sync::atomic::{AtomicUsize, Ordering};

use divan::Bencher;
use divan::counter::ItemsCount;
use fluffy_agent::{
    Agent, AgentError, Bench, Caps, Conversation, ParsedCall, Rules, Spent, Standing, TaskStatus,
};
use fluffy_base::{Json, SystemWaiter};
use fluffy_provider::{Call, CallOutcome, CallResult, Replay, ToolDefinition, Turn};
use serde_json::json;

const TURNS: usize = 50;

fn main() {
    divan::main();
}

/// A bench on which nothing is done, with as much to show as a real one.
struct Idle {
    turns: AtomicUsize,
    answer: String,
}

impl Idle {
    fn new(answer: usize) -> Self {
        Self { turns: AtomicUsize::new(0), answer: "a line of a file\n".repeat(answer / 17) }
    }
}

impl Bench for Idle {
    fn tools(&self) -> Vec<ToolDefinition> {
        let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
        let schema = Json::new(schema).unwrap();
        let tool = |n| ToolDefinition {
            name: format!("tool.{n}"),
            summary: "Does what tools do with a path of the project".to_owned(),
            schema: schema.clone(),
        };
        (0..19).map(tool).collect()
    }

    fn state(&self) -> Standing {
        Standing { state: "planning".to_owned(), mode: "strict".to_owned(), ..Standing::default() }
    }

    fn call(&self, calls: &[ParsedCall]) -> Vec<CallResult> {
        let answer = |call: &ParsedCall| CallResult {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            content: self.answer.clone(),
            outcome: CallOutcome::Done,
        };
        calls.iter().map(answer).collect()
    }

    fn refused(&self, _: &Call, _: &str) {}

    fn turn(&self, _: &Turn) -> Result<(), AgentError> {
        self.turns.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn status(&self) -> TaskStatus {
        if self.turns.load(Ordering::Relaxed) == TURNS {
            return TaskStatus::Done { summary: String::new() };
        }
        TaskStatus::Working { missing: String::new() }
    }

    fn finish(&self, _: &str) -> Result<TaskStatus, AgentError> {
        Ok(self.status())
    }

    fn is_cancelled(&self) -> bool {
        false
    }

    fn tree(&self) -> Vec<String> {
        (0..200).map(|n| format!("src/part/file_{n}.rs")).collect()
    }

    fn rules(&self) -> Vec<Rules> {
        let text = "Use four spaces. Run the tests.\n".repeat(100);
        vec![Rules { path: "AGENTS.md".to_owned(), text }]
    }
}

/// Fifty turns with one call each, whose answers have so many bytes.
#[divan::bench(args = [100, 5_000, 12_000])]
fn fifty_turns(bencher: Bencher<'_, '_>, answer: usize) {
    let line = "{\"text\":\"I look.\",\"tool_calls\":[{\"name\":\"tool.1\",\"arguments\":{\"path\":\"a\"}}]}\n";
    let transcript = format!("{{\"v\":1,\"kind\":\"transcript\"}}\n{}", line.repeat(TURNS));
    bencher
        .counter(ItemsCount::new(TURNS))
        .with_inputs(|| (Replay::parse(&transcript).unwrap(), Idle::new(answer)))
        .bench_values(|(replay, bench)| {
            let agent = Agent {
                bench: &bench,
                provider: &replay,
                observer: &(),
                waiter: &SystemWaiter,
                caps: Caps { turns: 1_000, ..Caps::default() },
                spent: Spent::default(),
            };
            agent.run(&mut Conversation::new(), Some("look at everything"))
        });
}
