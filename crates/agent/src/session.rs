//! The kernel's session as a bench: what the model asks for becomes requests there.

use std::sync::{Mutex, PoisonError};

use fluffy_base::Json;
use fluffy_kernel::{
    CallAnswer, Cancel, ModelCall, Outline, Session, StoredSession, TaskStatus as Status,
};
use fluffy_provider::{
    Call, CallOutcome, CallResult, Message, Prices, ToolDefinition, Turn, Usage, header, to_line,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    AgentError, Bench, Conversation, Failure, ParsedCall, Rules, Spent, Standing, TaskStatus, calls,
};

/// A session of the kernel's.
pub struct SessionBench<'a> {
    session: &'a Session,
    cancel: Cancel,
    tools: Vec<ToolDefinition>,
    told: Mutex<Option<Told>>,
    prices: Option<Prices>,
}

/// What was told of the project's files.
struct Told {
    /// After how many changes.
    changes: u64,
    tree: Vec<String>,
    rules: Vec<Rules>,
}

/// A turn as a session keeps it.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// The line of a transcript.
    line: Value,
    /// What the model said, as it is handed back to it.
    message: Message,
    usage: Usage,
    /// What it cost in millionths of a dollar, where the price is known.
    #[serde(default)]
    cost: Option<u64>,
}

/// What a session used, as the provider counted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spending {
    /// Tokens.
    pub usage: Usage,
    /// Millionths of a dollar; nothing where the price of a turn is not known.
    pub cost: Option<u64>,
}

/// An interrupted session, ready to go on.
pub struct Resumed {
    /// What was said.
    pub conversation: Conversation,
    /// What was spent.
    pub spent: Spent,
}

/// Why an interrupted session cannot go on.
#[derive(Debug, thiserror::Error)]
#[error("turn {turn} of the session cannot be read")]
pub struct ResumeError {
    turn: usize,
    source: serde_json::Error,
}

impl<'a> SessionBench<'a> {
    /// The bench of a session.
    pub fn new(session: &'a Session) -> Self {
        let tools = session.tools().filter_map(|spec| {
            // A schema that was accepted at registration is JSON that can be kept.
            let schema = Json::new(spec.schema.clone()).ok()?;
            let (name, summary) = (spec.name.to_string(), spec.summary.to_string());
            Some(ToolDefinition { name, summary, schema })
        });
        let tools = tools.collect();
        let cancel = session.cancel_handle();
        Self { session, cancel, tools, told: Mutex::default(), prices: None }
    }

    /// The same bench, which keeps what turns cost at these prices.
    #[must_use]
    pub fn priced(mut self, prices: Option<Prices>) -> Self {
        self.prices = prices;
        self
    }

    /// A conversation in which nothing was said, with what the person pinned.
    pub fn conversation(&self) -> Conversation {
        self.pinned(Conversation::new())
    }

    fn pinned(&self, mut conversation: Conversation) -> Conversation {
        conversation.set_pins(self.pin_texts());
        conversation
    }

    fn pin_texts(&self) -> Vec<String> {
        let pins = self.session.pins().into_iter();
        pins.map(|pin| format!("{}\n{}", pin.path, pin.text)).collect()
    }

    /// Answers what an interrupted session left unanswered, and gives the conversation so far.
    pub fn resume(&self, stored: &StoredSession) -> Result<Resumed, ResumeError> {
        let mut messages = vec![Message::User { text: stored.task.clone() }];
        let said_after = |turns: usize| {
            let said = stored.messages.iter().filter(move |said| said.after == turns as u64);
            said.map(|said| Message::User { text: said.text.clone() })
        };
        // What was used for what the person said before is not counted against what they say now.
        let first_counted = stored.turns.len().saturating_sub(stored.turns_since_said());
        let mut spent = Spent::default();
        for (at, record) in stored.turns.iter().enumerate() {
            messages.extend(said_after(at));
            let kept = Kept::deserialize(&record.turn)
                .map_err(|source| ResumeError { turn: at + 1, source })?;
            let calls = match &kept.message {
                Message::Assistant { calls, .. } => calls.clone(),
                Message::User { .. } | Message::Results { .. } => Vec::new(),
            };
            if at >= first_counted {
                spent.turns += 1;
                spent.usage = spent.usage.plus(kept.usage);
                let cost = kept.cost.unwrap_or_else(|| Prices::ASSUMED.cost(&kept.usage));
                spent.cost = spent.cost.saturating_add(cost);
            }
            messages.push(kept.message);
            let mut results: Vec<CallResult> = record.answers.values().map(result).collect();
            if at + 1 == stored.turns.len() {
                let lost = |call: &&Call| !record.answers.contains_key(&call.id);
                let lost: Vec<_> = calls.iter().filter(lost).filter_map(understood).collect();
                results.extend(self.session.call_again(&lost).iter().map(result));
            }
            messages.push(Message::Results { results });
        }
        messages.extend(said_after(stored.turns.len()));
        let conversation = self.pinned(Conversation::resumed(messages));
        Ok(Resumed { conversation, spent })
    }

    /// What is told of the files, looked up again after they changed.
    fn look<T>(&self, part: impl FnOnce(&[String], &[Rules]) -> T) -> T {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = self.session.changes();
        if told.as_ref().is_none_or(|told| told.changes != changes) {
            let Outline { lines: tree, notes } = self.session.outline();
            let rules = notes.into_iter().map(|(path, text)| Rules { path, text }).collect();
            *told = Some(Told { changes, tree, rules });
        }
        match told.as_ref() {
            Some(Told { tree, rules, .. }) => part(tree, rules),
            // It was filled right above.
            None => part(&[], &[]),
        }
    }
}

/// What a session used.
pub fn spending(stored: &StoredSession) -> Result<Spending, ResumeError> {
    let mut spending = Spending { cost: Some(0), ..Spending::default() };
    for (at, record) in stored.turns.iter().enumerate() {
        let kept = Kept::deserialize(&record.turn)
            .map_err(|source| ResumeError { turn: at + 1, source })?;
        spending.usage = spending.usage.plus(kept.usage);
        let both = spending.cost.zip(kept.cost);
        spending.cost = both.map(|(sum, cost)| sum.saturating_add(cost));
    }
    Ok(spending)
}

/// What a model said in one turn of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// Its words.
    pub text: String,
    /// What it asked for.
    pub calls: Vec<Call>,
    /// Tokens.
    pub usage: Usage,
    /// What it cost in millionths of a dollar, where the price is known.
    pub cost: Option<u64>,
}

/// What a model said in a session, turn by turn.
pub fn said(stored: &StoredSession) -> Result<Vec<Said>, ResumeError> {
    let turns = stored.turns.iter().enumerate().map(|(at, record)| {
        let Kept { message, usage, cost, .. } = Kept::deserialize(&record.turn)
            .map_err(|source| ResumeError { turn: at + 1, source })?;
        let (text, calls) = match message {
            Message::Assistant { text, calls, .. } => (text, calls),
            Message::User { text } => (text, Vec::new()),
            Message::Results { .. } => (String::new(), Vec::new()),
        };
        Ok(Said { text, calls, usage, cost })
    });
    turns.collect()
}

/// The lines of a session's transcript, the header first.
pub fn transcript(stored: &StoredSession) -> Result<Vec<String>, ResumeError> {
    let mut lines = vec![header()];
    for (at, record) in stored.turns.iter().enumerate() {
        let kept = Kept::deserialize(&record.turn)
            .map_err(|source| ResumeError { turn: at + 1, source })?;
        lines.push(kept.line.to_string());
    }
    Ok(lines)
}

impl SessionBench<'_> {
    /// This status, unless nothing can run any more.
    fn unless_lost(&self, status: TaskStatus) -> TaskStatus {
        let Some(lost) = self.session.lost() else { return status };
        TaskStatus::Failed(Failure {
            what: "no sandbox can be made any more".to_owned(),
            why: lost.why,
            fix: format!("{}; then go on: fluffy session resume", lost.fix),
        })
    }
}

impl Bench for SessionBench<'_> {
    fn tools(&self) -> Vec<ToolDefinition> {
        self.tools.clone()
    }

    fn state(&self) -> Standing {
        let standing = self.session.standing();
        let text =
            |name: &str| standing.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let allowed = self.session.available().into_iter().map(str::to_owned).collect();
        let hint = match text("warning") {
            warning if warning.is_empty() => text("next"),
            warning => format!("{}\nWarning: {warning}", text("next")),
        };
        Standing { state: text("state"), mode: text("mode"), allowed, hint }
    }

    fn call(&self, calls: &[ParsedCall]) -> Vec<CallResult> {
        let calls = calls.iter().map(|call| ModelCall {
            id: call.id.clone(),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
        });
        let calls: Vec<ModelCall> = calls.collect();
        self.session.call(&calls).iter().map(result).collect()
    }

    fn refused(&self, call: &Call, reason: &str) {
        self.session.refuse(&call.id, &call.name, reason);
    }

    fn turn(&self, turn: &Turn) -> Result<(), AgentError> {
        let failed = |error: &dyn std::fmt::Display| AgentError::NotRecorded(error.to_string());
        let line = serde_json::from_str(&to_line(turn, &[])).map_err(|error| failed(&error))?;
        let (message, usage) = (turn.message(), turn.usage.unwrap_or_default());
        let cost = self.prices.map(|prices| prices.cost(&usage));
        let kept = serde_json::to_value(Kept { line, message, usage, cost });
        let kept = kept.map_err(|error| failed(&error))?;
        self.session.record_turn(kept).map_err(|error| failed(&error))
    }

    fn status(&self) -> TaskStatus {
        match self.session.is_done() {
            Some(summary) => TaskStatus::Done { summary },
            None => self.unless_lost(TaskStatus::Working { missing: String::new() }),
        }
    }

    fn finish(&self, text: &str) -> Result<TaskStatus, AgentError> {
        Ok(match self.session.finish(text) {
            Status::Done { summary } => TaskStatus::Done { summary },
            Status::Working { missing } => self.unless_lost(TaskStatus::Working { missing }),
        })
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    fn tree(&self) -> Vec<String> {
        self.look(|tree, _| tree.to_vec())
    }

    fn pins(&self) -> Option<Vec<String>> {
        Some(self.pin_texts())
    }

    fn rules(&self) -> Vec<Rules> {
        self.look(|_, rules| rules.to_vec())
    }
}

/// A call of a turn that the loop would have submitted.
fn understood(call: &Call) -> Option<ModelCall> {
    let arguments = calls::arguments(call).ok()?;
    Some(ModelCall { id: call.id.clone(), tool: call.name.clone(), arguments })
}

fn result(answer: &CallAnswer) -> CallResult {
    let outcome = match (answer.allowed, answer.success) {
        (true, true) => CallOutcome::Done,
        (true, false) => CallOutcome::Failed,
        (false, _) => CallOutcome::Denied,
    };
    let (call_id, tool) = (answer.id.clone(), answer.tool.clone());
    CallResult { call_id, tool, content: answer.content.to_string(), outcome }
}
