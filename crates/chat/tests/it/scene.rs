//! A conversation at a table: the shipped skills are trusted, time moves when told, and runs come out as they are told to.

use std::sync::LazyLock;

use fluffy_base::{Digest, Json, SeededIds};
use fluffy_chat::{
    Answer, Conversation, Done, Intent, Kind, Known, Next, Order, Parsed, Reply, Said, Setting,
    Speech, parse,
};
use fluffy_forge::{ExecutionRecord, Finished, Kept, shipped};
use serde_json::{Value, json};

/// A day on which everything happens.
pub(crate) const NOW: u64 = 1_763_400_000_000;
pub(crate) const DAYS: [&str; 3] = ["2025-11-16", "2025-11-17", "2025-11-18"];

/// The shipped skills, as if they were trusted.
pub(crate) fn known() -> Vec<Known> {
    static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
        let known = |it: &fluffy_forge::Shipped| Known {
            spec: it.proposal().unwrap(),
            promotion: Digest::of(it.name.as_bytes()),
        };
        shipped().iter().map(known).collect()
    });
    KNOWN.clone()
}

pub(crate) fn parsed(text: &str) -> Parsed {
    parse(text, &known(), &DAYS.map(str::to_owned))
}

pub(crate) fn intent(text: &str) -> Intent {
    parsed(text).intent
}

/// A person at a terminal, and a conversation.
pub(crate) struct Scene {
    pub(crate) talk: Conversation,
    pub(crate) known: Vec<Known>,
    pub(crate) now: u64,
    pub(crate) model: Option<&'static str>,
    pub(crate) at_terminal: bool,
    /// What a model says when it is asked, one after another.
    pub(crate) says: Vec<&'static str>,
    /// What it was asked.
    pub(crate) asked: Vec<Speech>,
    /// What was run.
    pub(crate) orders: Vec<Order>,
    /// What was recorded.
    pub(crate) logged: Vec<fluffy_chat::TalkRecord>,
    count: u32,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self {
            talk: Conversation::new(Box::new(SeededIds::new(7))),
            known: known(),
            now: NOW,
            model: None,
            at_terminal: true,
            says: Vec::new(),
            asked: Vec::new(),
            orders: Vec::new(),
            logged: Vec::new(),
            count: 0,
        }
    }

    /// One in which a model says these things.
    pub(crate) fn scripted(says: &[&'static str]) -> Self {
        Self { model: Some("scripted"), says: says.to_vec(), ..Self::new() }
    }

    pub(crate) fn say(&mut self, text: &str) -> Reply {
        self.turn(|talk, setting, at_terminal| {
            talk.say(Said { text, at_terminal, ..Said::default() }, setting)
        })
    }

    /// Said with the yes beforehand.
    pub(crate) fn say_confirmed(&mut self, text: &str) -> Reply {
        self.turn(|talk, setting, _| {
            talk.say(Said { text, confirmed: true, ..Said::default() }, setting)
        })
    }

    /// Typed under a question.
    pub(crate) fn answer(&mut self, pending: &str, text: &str) -> Reply {
        let answers = Some(pending);
        self.turn(|talk, setting, at_terminal| {
            talk.say(Said { text, answers, at_terminal, ..Said::default() }, setting)
        })
    }

    pub(crate) fn confirm(&mut self, pending: &str) -> Reply {
        self.turn(|talk, setting, at_terminal| talk.confirm(pending, at_terminal, setting))
    }

    pub(crate) fn decline(&mut self, pending: &str) -> Reply {
        self.turn(|talk, setting, _| talk.decline(pending, setting))
    }

    /// Says something that is asked back; gives the question's id.
    #[track_caller]
    pub(crate) fn ask(&mut self, text: &str) -> String {
        let reply = self.say(text);
        assert_eq!(reply.kind, Kind::Confirm, "{text}: {}", reply.text);
        reply.pending.unwrap().id
    }

    fn turn(&mut self, begin: impl FnOnce(&mut Conversation, Setting<'_>, bool) -> Next) -> Reply {
        let known = self.known.clone();
        let setting =
            Setting { known: &known, now_ms: self.now, model: self.model, no_model: None };
        let mut next = begin(&mut self.talk, setting, self.at_terminal);
        loop {
            next = match next {
                Next::Done(reply) => return *reply,
                Next::Speak(speech) => {
                    self.asked.push(*speech);
                    let answer = match self.says.is_empty() {
                        true => Err("it has nothing more to say".to_owned()),
                        false => {
                            let text = self.says.remove(0).to_owned();
                            Ok(Answer { text, streamed: false })
                        }
                    };
                    self.talk.spoke(answer, setting)
                }
                Next::Run(order) => {
                    let done = self.run(&order);
                    self.orders.push(*order);
                    self.talk.ran(done)
                }
                Next::Code { task } => self.talk.coded(fluffy_chat::Coded {
                    session: Some(format!("session-{}", self.orders.len())),
                    summary: format!("did: {task}"),
                    done: true,
                }),
                Next::Log(record) => {
                    self.logged.push(*record);
                    self.talk.logged()
                }
            };
        }
    }

    fn run(&mut self, order: &Order) -> Done {
        let mut finished: Vec<Finished> = Vec::new();
        for step in &order.plan.chain().steps {
            self.count += 1;
            let input: Value = step.input.clone().into();
            let output = output(step.skill.as_str(), &input);
            let parent = finished.last().map(|it| it.record.execution.clone());
            finished.push(ran(step.skill.as_str(), self.count, parent, &input, &output));
        }
        Done { finished, stopped: None }
    }
}

/// What a shipped skill gives, roughly.
fn output(skill: &str, input: &Value) -> Value {
    let text = |name: &str| input[name].as_str().unwrap_or("x").to_owned();
    match skill {
        "write_note" => json!({ "note": format!("{}.md", text("title")), "replaced": false }),
        "search_notes" => json!({ "method": "lexical", "results": [
            { "note": "tea.md", "title": "Tea", "score": 2, "excerpt": "Two litres of tea." },
            { "note": "milk.md", "title": "Milk", "score": 1, "excerpt": "Milk for the tea." } ] }),
        "summarize_note" => json!({ "note": text("note"), "title": "Tea",
            "summary": "It is about tea.", "method": "extractive" }),
        "create_daily_note" => json!({ "note": "day.md", "created": true, "added": false }),
        "read_notes_by_tag" => json!({ "found": 0, "notes": [] }),
        _ => json!({ "status": 200, "json": { "name": "rust" } }),
    }
}

/// A run as the runner tells it. Ids begin with the number of the run.
pub(crate) fn ran(
    skill: &str,
    number: u32,
    parent: Option<String>,
    input: &Value,
    output: &Value,
) -> Finished {
    let kept = |value: &Value| Kept {
        sha256: Digest::of(value.to_string().as_bytes()),
        masked: false,
        value: Some(value.clone()),
    };
    let known = known();
    let spec = &known.iter().find(|it| it.name().as_str() == skill).unwrap().spec;
    let record = ExecutionRecord {
        execution: format!("run-ab{number:02}{:028x}", number),
        skill: spec.name.clone(),
        parent,
        request: "skill-1".to_owned(),
        side_effect: spec.side_effect,
        sealed: Digest::of(b"sealed"),
        input: kept(input),
        output: Some(kept(output)),
        files: Vec::new(),
        success: true,
        error: None,
        printed: String::new(),
        sandbox: String::new(),
        started_ms: NOW,
        ended_ms: NOW,
        duration_ms: 0,
    };
    Finished { record, output: Some(Json::new(output.clone()).unwrap()) }
}
