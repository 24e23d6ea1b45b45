//! A bench and a provider that do what a test tells them, and remember what they were asked.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use fluffy_agent::{
    Agent, AgentError, Bench, Caps, Conversation, Ended, Failure, ParsedCall, Rules, Spent,
    Standing, TaskStatus,
};
use fluffy_base::{Event, Observer, Waiter};
use fluffy_provider::{
    Call, CallOutcome, CallResult, ModelRequest, Prices, Provider, ProviderError, StopReason,
    StreamEvent, ToolDefinition, Turn, Usage,
};

/// What the provider does next.
pub(crate) enum Script {
    /// Streams these pieces.
    Say(Vec<StreamEvent>),
    /// Streams these pieces, then fails.
    Fail(Vec<StreamEvent>, ProviderError),
}

pub(crate) struct ScriptedProvider {
    pub(crate) script: Mutex<VecDeque<Script>>,
    pub(crate) requests: Mutex<Vec<ModelRequest>>,
    pub(crate) window: u64,
    pub(crate) prices: Option<Prices>,
    pub(crate) summary: Option<&'static str>,
    /// How many pieces were handed out.
    pub(crate) pieces: AtomicUsize,
    pub(crate) summaries: AtomicUsize,
    /// How many tokens it counts in any request, if it can count, and how often it was asked to.
    pub(crate) tokens: Option<u64>,
    pub(crate) counted: AtomicUsize,
    pub(crate) longest: Option<u64>,
}

impl ScriptedProvider {
    pub(crate) fn new(script: Vec<Script>) -> Self {
        Self {
            script: Mutex::new(script.into()),
            requests: Mutex::default(),
            window: 200_000,
            prices: Some(Prices::FREE),
            summary: None,
            pieces: AtomicUsize::new(0),
            summaries: AtomicUsize::new(0),
            tokens: None,
            counted: AtomicUsize::new(0),
            longest: None,
        }
    }

    /// A provider that makes these calls, a turn each, and then has nothing more to say.
    pub(crate) fn calling(turns: &[&[(&str, &str)]]) -> Self {
        Self::new(turns.iter().map(|calls| say("", calls)).collect())
    }

    pub(crate) fn asked(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap().clone()
    }
}

impl Provider for ScriptedProvider {
    fn name(&self) -> &str {
        "scripted"
    }

    fn model(&self) -> &str {
        "model"
    }

    fn prices(&self) -> Option<Prices> {
        self.prices
    }

    fn context_window(&self) -> u64 {
        self.window
    }

    fn max_output_tokens(&self) -> Option<u64> {
        self.longest
    }

    fn count(&self, _: &ModelRequest, _: &mut dyn FnMut() -> ControlFlow<()>) -> Option<u64> {
        self.counted.fetch_add(1, Ordering::SeqCst);
        self.tokens
    }

    fn can_summarise(&self) -> bool {
        self.summary.is_some()
    }

    fn turn(
        &self,
        request: &ModelRequest,
        sink: &mut dyn FnMut(StreamEvent) -> ControlFlow<()>,
    ) -> Result<(), ProviderError> {
        let script = match self.summary.filter(|_| request.tools.is_empty()) {
            Some(summary) => {
                self.summaries.fetch_add(1, Ordering::SeqCst);
                say(summary, &[])
            }
            None => {
                self.requests.lock().unwrap().push(request.clone());
                self.script.lock().unwrap().pop_front().unwrap_or_else(|| say("done", &[]))
            }
        };
        let (events, end) = match script {
            Script::Say(events) => (events, Ok(())),
            Script::Fail(events, error) => (events, Err(error)),
        };
        for event in events {
            self.pieces.fetch_add(1, Ordering::SeqCst);
            if sink(event).is_break() {
                return Err(ProviderError::Cancelled);
            }
        }
        end
    }
}

/// A turn with this text and these calls.
pub(crate) fn say(text: &str, calls: &[(&str, &str)]) -> Script {
    let with_ids: Vec<_> = calls
        .iter()
        .enumerate()
        .map(|(n, (name, arguments))| (format!("id{n}"), *name, *arguments))
        .collect();
    Script::Say(pieces(text, &with_ids, None))
}

/// A turn that used so much.
pub(crate) fn say_using(text: &str, calls: &[(&str, &str)], input: u64, output: u64) -> Script {
    let Script::Say(mut events) = say(text, calls) else { return say("", &[]) };
    events.push(StreamEvent::Usage(Usage { input, output, ..Usage::default() }));
    Script::Say(events)
}

pub(crate) fn pieces(
    text: &str,
    calls: &[(String, &str, &str)],
    stop: Option<StopReason>,
) -> Vec<StreamEvent> {
    let mut events: Vec<_> =
        text.split_inclusive(' ').map(|word| StreamEvent::Text(word.to_owned())).collect();
    for (index, (id, name, arguments)) in (0..).zip(calls) {
        let (id, name) = (id.clone(), (*name).to_owned());
        events.push(StreamEvent::CallStarted { index, id, name });
        events.push(StreamEvent::CallArguments { index, fragment: (*arguments).to_owned() });
    }
    let plain = if calls.is_empty() { StopReason::End } else { StopReason::Calls };
    events.push(StreamEvent::Stop(stop.unwrap_or(plain)));
    events
}

/// A bench on which every tool but a few does what is asked:
/// `task.complete` ends the task, `fail.*` fails, `deny.*` is denied, `no.*` does not exist.
#[derive(Default)]
pub(crate) struct ScriptedBench {
    pub(crate) done: Mutex<Option<String>>,
    pub(crate) calls: Mutex<Vec<Vec<ParsedCall>>>,
    pub(crate) refused: Mutex<Vec<(String, String)>>,
    pub(crate) turns: Mutex<Vec<Turn>>,
    pub(crate) finished: Mutex<Vec<String>>,
    /// What `finish` says is missing; nothing: the task is done.
    pub(crate) missing: Option<&'static str>,
    pub(crate) failed: Option<Failure>,
    pub(crate) broken: bool,
    /// Cancelled when it was asked more often than this.
    pub(crate) cancel_after: Option<usize>,
    pub(crate) asked: AtomicUsize,
    pub(crate) tools: Vec<ToolDefinition>,
    pub(crate) tree: Vec<String>,
    pub(crate) rules: Vec<Rules>,
    /// How long answers are.
    pub(crate) answer: usize,
}

impl Bench for ScriptedBench {
    fn tools(&self) -> Vec<ToolDefinition> {
        self.tools.clone()
    }

    fn state(&self) -> Standing {
        Standing {
            state: "planning".to_owned(),
            mode: "strict".to_owned(),
            allowed: vec!["read anything".to_owned()],
            hint: "write a test".to_owned(),
        }
    }

    fn call(&self, calls: &[ParsedCall]) -> Vec<CallResult> {
        self.calls.lock().unwrap().push(calls.to_vec());
        calls.iter().map(|call| self.answer(call)).collect()
    }

    fn refused(&self, call: &Call, reason: &str) {
        self.refused.lock().unwrap().push((call.name.clone(), reason.to_owned()));
    }

    fn turn(&self, turn: &Turn) -> Result<(), AgentError> {
        if self.broken {
            return Err(AgentError::NotRecorded("the disk is full".to_owned()));
        }
        self.turns.lock().unwrap().push(turn.clone());
        Ok(())
    }

    fn status(&self) -> TaskStatus {
        if let Some(failure) = &self.failed {
            return TaskStatus::Failed(failure.clone());
        }
        match &*self.done.lock().unwrap() {
            Some(summary) => TaskStatus::Done { summary: summary.clone() },
            None => TaskStatus::Working { missing: String::new() },
        }
    }

    fn finish(&self, text: &str) -> Result<TaskStatus, AgentError> {
        self.finished.lock().unwrap().push(text.to_owned());
        Ok(match self.missing {
            Some(missing) => TaskStatus::Working { missing: missing.to_owned() },
            None => TaskStatus::Done { summary: text.to_owned() },
        })
    }

    fn is_cancelled(&self) -> bool {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        self.cancel_after.is_some_and(|after| asked >= after)
    }

    fn tree(&self) -> Vec<String> {
        self.tree.clone()
    }

    fn rules(&self) -> Vec<Rules> {
        self.rules.clone()
    }
}

impl ScriptedBench {
    fn answer(&self, call: &ParsedCall) -> CallResult {
        if call.name == "task.complete" {
            *self.done.lock().unwrap() = Some("all done".to_owned());
        }
        let outcome = match call.name.split('.').next() {
            Some("fail") => CallOutcome::Failed,
            Some("deny") => CallOutcome::Denied,
            Some("no") => CallOutcome::Invalid,
            _ => CallOutcome::Done,
        };
        CallResult {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            content: "x".repeat(self.answer),
            outcome,
        }
    }
}

/// Remembers events.
#[derive(Default)]
pub(crate) struct Watching(pub(crate) Mutex<Vec<Event>>);

impl Observer for Watching {
    fn notice(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

/// Remembers how long it should have waited.
#[derive(Default)]
pub(crate) struct Patient(pub(crate) Mutex<Vec<u64>>);

impl Waiter for Patient {
    fn wait(&self, ms: u64, _: &dyn Fn() -> bool) {
        self.0.lock().unwrap().push(ms);
    }
}

pub(crate) fn run(bench: &ScriptedBench, provider: &dyn Provider) -> Ended {
    run_within(bench, provider, Caps::default())
}

pub(crate) fn run_within(bench: &ScriptedBench, provider: &dyn Provider, caps: Caps) -> Ended {
    let agent = Agent {
        bench,
        provider,
        observer: &(),
        waiter: &Patient::default(),
        caps,
        spent: Spent::default(),
    };
    agent.run(&mut Conversation::new(), Some("the task"))
}
