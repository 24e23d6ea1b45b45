//! Chat as client and kernel speak of it: the edge of `fluffy_chat`, whose own types stay inside.

use fluffy_chat::{Kind, Origin, Plan, Record, Reply, Slot, Step};
use fluffy_workflow::{Access, Mode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::commands::run::Outcome;
use crate::explain::{DENIED, DONE, Explained, FAILED, USAGE};

/// A turn of a conversation. The conversation is the client's whose turn it is, and dies with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ChatWork {
    /// Somebody says something.
    Say(Box<Say>),
    /// A person agrees to what was asked, with a key.
    Confirm {
        /// What was asked, by its id.
        pending: String,
    },
    /// A person does not agree.
    Decline {
        /// What was asked, by its id.
        pending: String,
    },
}

/// What somebody says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Say {
    /// The words, as they were typed.
    pub(crate) text: String,
    /// The question under which they were typed, by its id: then, and only then, a yes is one.
    pub(crate) answers: Option<String>,
    /// Whether a yes was said beforehand, with the command.
    pub(crate) confirmed: bool,
    /// Whether everything is to be shown.
    pub(crate) verbose: bool,
    /// How strictly a coding task works.
    pub(crate) mode: Mode,
    /// Whether a coding task may write anything.
    pub(crate) access: Access,
    /// Files to be kept before the model's eyes in a coding task.
    pub(crate) pins: Vec<String>,
    /// Why there is no model, where one was named and cannot be had.
    pub(crate) no_model: Option<Explained>,
}

/// What became of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatReply {
    /// What kind of answer it is.
    pub(crate) kind: ReplyKind,
    /// The answer in words, as Markdown. Strangers may have written it.
    pub(crate) text: String,
    /// Whether those words were told already, as `text.delta`.
    pub(crate) streamed: bool,
    /// Whether everything is to be shown.
    pub(crate) verbose: bool,
    /// What a person is asked.
    pub(crate) pending: Option<PendingReply>,
    /// How a coding task ended.
    pub(crate) task: Option<Outcome>,
    /// The coding session of this conversation.
    pub(crate) session: Option<String>,
    /// Why a run of skills stopped.
    pub(crate) failure: Option<Explained>,
    /// How it came about.
    pub(crate) trace: TraceReply,
}

/// What kind of answer a reply is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReplyKind {
    /// Words.
    Talk,
    /// An earlier result in another form.
    Transform,
    /// Skills ran.
    Ran,
    /// A coding task ended.
    Task,
    /// A person has to agree first.
    Confirm,
    /// Something has to be said more clearly.
    Question,
    /// Something about the conversation.
    Meta,
    /// It is not done.
    Unsupported,
    /// The person said no.
    Declined,
    /// A yes that does not count.
    Refused,
    /// It was tried, and failed.
    Failed,
}

/// What a person is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PendingReply {
    /// By which it is answered.
    pub(crate) id: String,
    /// Until when, in milliseconds since the epoch.
    pub(crate) expires_ms: u64,
    /// Hash of what would be done.
    pub(crate) digest: String,
    /// What would be done.
    pub(crate) steps: Vec<StepReply>,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepReply {
    /// The skill.
    pub(crate) skill: String,
    /// Its class.
    pub(crate) effect: String,
    /// What it is given.
    pub(crate) input: Map<String, Value>,
    /// What it is given of what the step before gives: the way to it.
    pub(crate) before: Map<String, Value>,
    /// What it can touch, in words.
    pub(crate) touches: Vec<String>,
}

/// How a reply came about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TraceReply {
    /// What was wanted, in a word.
    pub(crate) intent: String,
    /// Who found that out: `words` or `model`.
    pub(crate) understood_by: Option<String>,
    /// Why a model's object did not count.
    pub(crate) odd: Option<String>,
    /// What references meant.
    pub(crate) resolved: Vec<ResolvedReply>,
    /// What was planned.
    pub(crate) plan: Vec<StepReply>,
    /// What the ledger has of it.
    pub(crate) records: Vec<Value>,
    /// What can be referred to now, the newest first.
    pub(crate) anchors: Vec<AnchorReply>,
}

/// What a reference meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResolvedReply {
    /// The reference.
    pub(crate) reference: String,
    /// The run or the session.
    pub(crate) to: String,
}

/// Something that can be referred to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnchorReply {
    /// `execution`, `artifact`, `talk` or `task`.
    pub(crate) kind: String,
    /// What it is.
    pub(crate) label: String,
    /// The run or the session.
    pub(crate) execution: String,
    /// What it follows.
    pub(crate) parent: Option<String>,
    /// The skill.
    pub(crate) skill: String,
    /// Some of what came out.
    pub(crate) data: Value,
}

impl ChatReply {
    /// The reply of a conversation.
    pub(crate) fn of(reply: Reply) -> Self {
        let pending = reply.pending.map(|pending| PendingReply {
            expires_ms: pending.expires_ms(),
            digest: pending.digest.to_string(),
            steps: steps(&pending.plan),
            id: pending.id,
        });
        let trace = reply.trace;
        let record = |record: Record| match record {
            Record::Run(record) => serde_json::to_value(record),
            Record::Talk(record) => serde_json::to_value(record),
        };
        let resolved = trace.resolved.into_iter();
        let anchors = trace.anchors.into_iter().map(|anchor| AnchorReply {
            kind: anchor.kind.name().to_owned(),
            label: anchor.label,
            execution: anchor.execution,
            parent: anchor.parent,
            skill: anchor.skill,
            data: anchor.data,
        });
        Self {
            kind: ReplyKind::of(reply.kind),
            text: reply.text,
            streamed: reply.streamed,
            verbose: reply.verbose,
            pending,
            task: None,
            session: None,
            failure: None,
            trace: TraceReply {
                intent: trace.intent.to_owned(),
                understood_by: trace.origin.map(|origin| match origin {
                    Origin::Words => "words".to_owned(),
                    Origin::Model => "model".to_owned(),
                }),
                odd: trace.odd.map(str::to_owned),
                resolved: resolved.map(|(reference, to)| ResolvedReply { reference, to }).collect(),
                plan: trace.plan.as_ref().map(steps).unwrap_or_default(),
                records: trace.records.into_iter().filter_map(|it| record(it).ok()).collect(),
                anchors: anchors.collect(),
            },
        }
    }

    /// The exit code for it: 2 where something is asked back.
    pub(crate) fn code(&self) -> u8 {
        if let Some(task) = &self.task {
            return task.code();
        }
        match self.kind {
            ReplyKind::Talk
            | ReplyKind::Transform
            | ReplyKind::Ran
            | ReplyKind::Task
            | ReplyKind::Meta => DONE,
            ReplyKind::Confirm | ReplyKind::Question => USAGE,
            ReplyKind::Unsupported | ReplyKind::Declined | ReplyKind::Refused => DENIED,
            ReplyKind::Failed => match self.failure.as_ref().map(|failure| failure.code) {
                // What was tried is not asked back.
                None | Some(USAGE) => FAILED,
                Some(code) => code,
            },
        }
    }
}

impl ReplyKind {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Talk => Self::Talk,
            Kind::Transform => Self::Transform,
            Kind::Ran => Self::Ran,
            Kind::Task => Self::Task,
            Kind::Confirm => Self::Confirm,
            Kind::Question => Self::Question,
            Kind::Meta => Self::Meta,
            Kind::Unsupported => Self::Unsupported,
            Kind::Declined => Self::Declined,
            Kind::Refused => Self::Refused,
            Kind::Failed => Self::Failed,
        }
    }
}

fn steps(plan: &Plan) -> Vec<StepReply> {
    let step = |step: &Step| {
        let (mut input, mut before) = (Map::new(), Map::new());
        for (name, slot) in &step.input {
            match slot {
                Slot::Value(value) => drop(input.insert(name.clone(), value.clone())),
                Slot::Before(way) => drop(before.insert(name.clone(), way.as_str().into())),
            }
        }
        StepReply {
            skill: step.skill.to_string(),
            effect: step.effect.name().to_owned(),
            input,
            before,
            touches: step.touches.clone(),
        }
    };
    plan.steps.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The members of an object, by name.
    fn names(value: &Value) -> Vec<&str> {
        value.as_object().unwrap().keys().map(String::as_str).collect()
    }

    #[test]
    fn cha_5_a_reply_is_written_and_read_in_its_one_documented_form() {
        let reply = fluffy_chat::Reply {
            kind: Kind::Talk,
            text: "\u{1b}[31m[/bold]".to_owned(),
            streamed: false,
            pending: None,
            verbose: false,
            trace: fluffy_chat::Trace { intent: "talk", ..fluffy_chat::Trace::default() },
        };
        let reply = ChatReply::of(reply);
        let value = json!(reply);
        let page = include_str!("../../../../docs/chat.md");
        for name in names(&value).into_iter().chain(names(&value["trace"])) {
            assert!(page.contains(&format!("\"{name}\":")), "`{name}` is not documented");
        }
        assert_eq!(serde_json::from_value::<ChatReply>(value.clone()).unwrap(), reply);
        let mut more = value;
        more["more"] = json!(1);
        assert!(serde_json::from_value::<ChatReply>(more).is_err());
        assert_eq!(reply.code(), DONE);
    }

    #[test]
    fn every_kind_of_reply_has_its_exit_code_and_is_on_the_page() {
        let page = include_str!("../../../../docs/chat.md");
        for (kind, name, code) in [
            (Kind::Talk, "talk", DONE),
            (Kind::Transform, "transform", DONE),
            (Kind::Ran, "ran", DONE),
            (Kind::Task, "task", DONE),
            (Kind::Meta, "meta", DONE),
            (Kind::Confirm, "confirm", USAGE),
            (Kind::Question, "question", USAGE),
            (Kind::Unsupported, "unsupported", DENIED),
            (Kind::Declined, "declined", DENIED),
            (Kind::Refused, "refused", DENIED),
            (Kind::Failed, "failed", FAILED),
        ] {
            let (text, trace) = (String::new(), fluffy_chat::Trace::default());
            let (streamed, verbose, pending) = (false, false, None);
            let reply = ChatReply::of(Reply { kind, text, streamed, pending, verbose, trace });
            assert_eq!((json!(reply.kind), reply.code()), (json!(name), code));
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }
}
