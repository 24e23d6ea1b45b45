//! A recorded conversation as a text: one JSON object a line.
//!
//! ```text
//! {"v":1,"kind":"transcript"}
//! {"text":"…","tool_calls":[{"name":"fs.write","arguments":{…}}],"usage":{"input_tokens":9,"output_tokens":2}}
//! {"text":"…","expect":[{"tool":"fs.write","decision":"denied"}]}
//! ```
//!
//! Every key of a turn may be left out. `arguments` is an object or, where the model wrote something else, a
//! text that is handed on as it is. `stop` says how a turn ended that did not end by itself: `length`,
//! `pause`, `refusal` or `malformed_call`. Empty lines are skipped; an unknown key, another version or
//! anything that is not JSON is an error with its line.

use std::fmt;
use std::io;

use fluffy_base::{Excerpt, Json};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Call, CallOutcome, CallResult, StopReason, StreamEvent, Turn, Usage};

/// How large a transcript may be.
pub const MAX_TRANSCRIPT_BYTES: u64 = 64 << 20;

/// The version of the format.
pub(crate) const VERSION: u64 = 1;

/// What the first line says the file is.
pub(crate) const KIND: &str = "transcript";

/// A recorded conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Transcript {
    /// The model's turns, in their order.
    pub turns: Vec<TranscriptTurn>,
}

/// One turn of a recorded conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptTurn {
    /// What the model says.
    pub text: String,
    /// What it asks for: the tool's name, and the arguments as it writes them.
    pub calls: Vec<(String, String)>,
    /// What it uses.
    pub usage: Option<Usage>,
    /// How it ends.
    pub stop: StopReason,
    /// What the turn before must have been answered with.
    pub expect: Vec<Expected>,
}

/// A result that a transcript expects of the turn before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The tool.
    pub tool: String,
    /// What became of the call.
    pub decision: Expectation,
}

/// What a transcript says about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expectation {
    /// It was allowed, whatever came of it: a run of tests that fail is an allowed call.
    Allowed,
    /// It was not allowed, or not understood: nothing ran.
    Denied,
    /// It was allowed and did not do what was asked, or was not understood.
    Failed,
}

/// Why a file is not a transcript.
#[derive(Debug, thiserror::Error)]
pub enum TranscriptError {
    /// It could not be read.
    #[error("the transcript could not be read")]
    Read(#[from] io::Error),
    /// It is too large.
    #[error("the transcript is larger than {MAX_TRANSCRIPT_BYTES} bytes")]
    TooLarge,
    /// It is not UTF-8.
    #[error("the transcript is not UTF-8")]
    Encoding,
    /// There is nothing in it.
    #[error("the transcript is empty: its first line is {{\"v\":1,\"kind\":\"transcript\"}}")]
    Empty,
    /// A line is not what it should be.
    #[error("line {line} of the transcript: {problem}")]
    Line {
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: LineProblem,
    },
}

/// What is wrong with a line of a transcript.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LineProblem {
    /// Not acceptable JSON.
    #[error("not valid JSON: {0}")]
    Json(String),
    /// JSON of another form.
    #[error("{0}")]
    Form(String),
    /// The first line says something else.
    #[error("the first line is {{\"v\":1,\"kind\":\"transcript\"}}, and not `{0}`")]
    Kind(String),
    /// A version that this program does not know.
    #[error("version {0} is not known: this program reads version {VERSION}")]
    Version(u64),
    /// Arguments that are neither an object nor a text.
    #[error("`arguments` of call {0} is neither an object nor a text")]
    Arguments(usize),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    v: u64,
    kind: String,
}

/// A turn as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default)]
    text: String,
    #[serde(default)]
    tool_calls: Vec<LineCall>,
    usage: Option<Usage>,
    stop: Option<StopReason>,
    #[serde(default)]
    expect: Vec<Expected>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LineCall {
    name: String,
    #[serde(default)]
    arguments: Option<Value>,
}

impl Transcript {
    /// Reads a transcript.
    pub fn parse(text: &str) -> Result<Self, TranscriptError> {
        let mut lines =
            (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).peekable();
        let (line, head) = lines.next().ok_or(TranscriptError::Empty)?;
        let at = |line, problem| TranscriptError::Line { line, problem };
        check_head(head).map_err(|problem| at(line, problem))?;
        let turns = lines.map(|(line, text)| turn(text).map_err(|problem| at(line, problem)));
        Ok(Self { turns: turns.collect::<Result<_, _>>()? })
    }
}

impl TranscriptTurn {
    /// The pieces of the turn, its calls with ids that begin with `prefix`.
    pub(crate) fn events(&self, prefix: &str) -> Vec<StreamEvent> {
        let lines = self.text.split_inclusive('\n');
        let mut events: Vec<_> = lines.map(|line| StreamEvent::Text(line.to_owned())).collect();
        for (index, (name, arguments)) in (0_u32..).zip(&self.calls) {
            let id = format!("{prefix}{index}");
            events.push(StreamEvent::CallStarted { index, id, name: name.clone() });
            events.push(StreamEvent::CallArguments { index, fragment: arguments.clone() });
        }
        events.extend(self.usage.map(StreamEvent::Usage));
        events.push(StreamEvent::Stop(self.stop));
        events
    }

    /// What of a turn a transcript keeps.
    pub fn of(turn: &Turn, expect: Vec<Expected>) -> Self {
        let call = |call: &Call| (call.name.clone(), call.arguments.clone());
        Self {
            text: turn.text.clone(),
            calls: turn.calls.iter().map(call).collect(),
            usage: turn.usage,
            stop: turn.stop,
            expect,
        }
    }

    /// How a turn ends that nothing more is said about.
    pub(crate) fn plain_stop(calls: usize) -> StopReason {
        if calls == 0 { StopReason::End } else { StopReason::Calls }
    }
}

impl Expected {
    /// What to expect of a call that ended so.
    pub fn of(result: &CallResult) -> Self {
        let decision = match result.outcome {
            CallOutcome::Done => Expectation::Allowed,
            CallOutcome::Failed | CallOutcome::Invalid => Expectation::Failed,
            CallOutcome::Denied => Expectation::Denied,
        };
        Self { tool: result.tool.clone(), decision }
    }

    /// Whether a result is what is expected.
    pub fn is_met_by(&self, result: &CallResult) -> bool {
        self.tool == result.tool && self.decision.is_met_by(result.outcome)
    }
}

impl Expectation {
    fn is_met_by(self, outcome: CallOutcome) -> bool {
        match self {
            Self::Allowed => matches!(outcome, CallOutcome::Done | CallOutcome::Failed),
            Self::Denied => matches!(outcome, CallOutcome::Denied | CallOutcome::Invalid),
            Self::Failed => matches!(outcome, CallOutcome::Failed | CallOutcome::Invalid),
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decision = match self.decision {
            Expectation::Allowed => "allowed",
            Expectation::Denied => "denied",
            Expectation::Failed => "failed",
        };
        write!(f, "`{}` {decision}", Excerpt::new(&self.tool, 100))
    }
}

fn check_head(text: &str) -> Result<(), LineProblem> {
    let other = || LineProblem::Kind(Excerpt::new(text, 100).to_string());
    let value = json(text).map_err(|_| other())?;
    let head = Head::deserialize(&value).map_err(|_| other())?;
    if head.kind != KIND {
        return Err(other());
    }
    if head.v == VERSION { Ok(()) } else { Err(LineProblem::Version(head.v)) }
}

fn turn(text: &str) -> Result<TranscriptTurn, LineProblem> {
    let value = json(text)?;
    let line = Line::deserialize(&value)
        .map_err(|error| LineProblem::Form(Excerpt::new(&error.to_string(), 300).to_string()))?;
    let calls: Vec<_> = (1..)
        .zip(line.tool_calls)
        .map(|(number, call)| arguments(number, call))
        .collect::<Result<_, _>>()?;
    let stop = line.stop.unwrap_or_else(|| TranscriptTurn::plain_stop(calls.len()));
    Ok(TranscriptTurn { text: line.text, calls, usage: line.usage, stop, expect: line.expect })
}

fn arguments(number: usize, call: LineCall) -> Result<(String, String), LineProblem> {
    let text = match call.arguments {
        None => "{}".to_owned(),
        Some(Value::String(raw)) => raw,
        Some(object @ Value::Object(_)) => Json::new(object)
            .map_err(|error| LineProblem::Json(error.to_string()))?
            .canonical()
            .to_owned(),
        Some(_) => return Err(LineProblem::Arguments(number)),
    };
    Ok((call.name, text))
}

fn json(text: &str) -> Result<Value, LineProblem> {
    let parsed = Json::parse(text.as_bytes());
    parsed.map(|json| json.value().clone()).map_err(|error| LineProblem::Json(error.to_string()))
}
