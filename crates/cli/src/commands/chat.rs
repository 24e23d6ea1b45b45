//! `fluffy chat -m`: one turn of a conversation, from what was typed to an exit code.

use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use fluffy_base::{Event, Observer, SystemClock};
use fluffy_workflow::Access;
use serde_json::{Value, json};

use crate::args::ChatArgs;
use crate::client::{Follower, Link, Watched};
use crate::commands::run::{Caps, Outcome};
use crate::commands::skill::handed;
use crate::environment::Environment;
use crate::explain::{CliError, Explained, USAGE};
use crate::inert::{Inert, inert};
use crate::interrupt::Stop;
use crate::output::{Output, Tone};
use crate::place::Place;
use crate::providers::{Catalogue, Choice};
use crate::render::{JsonLines, Look, Parts, People};
use crate::review::{AtTerminal, Said, TaskReviewer};
use crate::settings::Settings;
use crate::task_text::{self, TaskError};
use crate::wire::{ChatReply, ChatWork, Driver, ReplyKind, Say, Submission, Surroundings, Work};

pub(crate) fn run(
    place: &Place,
    environment: &Environment,
    args: &ChatArgs,
    stop: &Stop,
    output: &mut Output,
) -> Result<u8, CliError> {
    let text = task_text::read(args.message.as_deref(), &mut io::stdin().lock());
    let text = text.map_err(|error| unsaid(&error))?;
    let choice = Choice::typed(args.provider.as_deref(), args.model.as_deref())?;
    let settings = Settings::load(place, environment)?;
    let say = Say {
        text,
        answers: None,
        confirmed: args.confirmed,
        verbose: args.verbose,
        mode: settings.mode(args.confirmed)?,
        access: Access::Write,
        pins: Vec::new(),
        no_model: None,
    };
    let caps = Caps::of(&args.caps, settings)?;
    let work = ChatWork::Say(Box::new(say));
    let link = Link::new(place, environment);
    let turn = Turn { link: &link, environment, stop, said: said(args.confirmed) };
    let submission = submission(place, environment, &choice, caps, work)?;
    if args.json {
        return turn.for_programs(submission);
    }
    let reply = turn.for_people(submission, output)?;
    if reply.kind == ReplyKind::Confirm {
        output.notice("Nothing was done. To agree beforehand, say it again with --confirmed");
    }
    Ok(reply.code())
}

/// A turn of a conversation with everything that may be needed for it: the models and what skills are given.
pub(crate) fn submission(
    place: &Place,
    environment: &Environment,
    choice: &Choice,
    caps: Caps,
    mut work: ChatWork,
) -> Result<Submission, CliError> {
    let mut handed = handed(place, environment, None)?;
    let driver = match choice.settle(environment) {
        Ok(model) => Some(Driver { model, caps }),
        // Whoever was named has to be there; without anybody, everything that needs none goes on.
        Err(error) if choice.provider.is_some() => return Err(error),
        Err(CliError::NoProvider) => None,
        Err(error) => {
            if let ChatWork::Say(say) = &mut work {
                say.no_model = Some(error.explained());
            }
            None
        }
    };
    if choice.provider.is_none() {
        handed.talk = Catalogue::of(environment)?.gateway_for_talk()?;
    }
    let surroundings = Surroundings::of(environment);
    Ok(Submission { work: Work::Chat(work), driver, handed, surroundings })
}

/// Nothing was said that could be answered.
fn unsaid(error: &TaskError) -> CliError {
    CliError::Told(Explained {
        what: "there is nothing to answer".to_owned(),
        why: fluffy_kernel::causes(error).replace("the task", "the message"),
        fix: "say something: fluffy chat -m \"what you want\"".to_owned(),
        code: USAGE,
    })
}

/// What a yes beforehand says of reviews.
fn said(confirmed: bool) -> Said {
    if confirmed { Said::Yes } else { Said::Nothing }
}

/// One turn, and who watches it.
pub(crate) struct Turn<'a> {
    /// The way to the kernel, which remembers a conversation by it.
    pub(crate) link: &'a Link<'a>,
    pub(crate) environment: &'a Environment,
    pub(crate) stop: &'a Stop,
    pub(crate) said: Said,
}

impl Turn<'_> {
    fn follow(
        &self,
        submission: Submission,
        observer: &dyn Observer,
    ) -> Result<ChatReply, CliError> {
        let look = Look::of_stderr(self.environment);
        let reviewer = TaskReviewer::new(self.said, Box::new(AtTerminal), look);
        let watched = Watched { observer, reviewer: &reviewer, stop: self.stop };
        Follower::new(self.link, watched).carry_out(submission)?.chat()
    }

    /// The turn as JSON lines: never through anything that writes for people.
    fn for_programs(&self, submission: Submission) -> Result<u8, CliError> {
        let lines = JsonLines::new(Box::new(io::stdout()), Arc::new(SystemClock));
        let code = match self.follow(submission, &lines) {
            Ok(reply) => {
                if let Some(task) = &reply.task {
                    lines.notice(task.event());
                }
                if let Value::Object(mut members) = json!(reply) {
                    members.insert("code".to_owned(), reply.code().into());
                    lines.tell("chat.reply", members);
                }
                reply.code()
            }
            Err(error) => {
                let it = error.explained();
                lines.notice(Event::TaskFailed { what: it.what, why: it.why, fix: it.fix });
                it.code
            }
        };
        match lines.failure() {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            Some(_) | None => Ok(code),
        }
    }

    /// The turn as it goes on, and what was replied.
    pub(crate) fn for_people(
        &self,
        submission: Submission,
        output: &mut Output,
    ) -> Result<ChatReply, CliError> {
        let teller = Teller::new(self.environment);
        let reply = self.follow(submission, &teller)?;
        teller.end(reply.task.as_ref())?;
        if reply.verbose {
            output.notice(output.paint(Tone::Quiet, &shown(&reply)));
        }
        if reply.task.is_none() && !reply.streamed {
            reply.text.lines().try_for_each(|line| output.line(inert(line)))?;
        }
        Ok(reply)
    }
}

/// Everything that led to a reply, line by line.
pub(crate) fn shown(reply: &ChatReply) -> String {
    let trace = &reply.trace;
    let by = trace.understood_by.as_deref().unwrap_or("nobody");
    let mut lines = vec![format!("intent    {} (by {by})", trace.intent)];
    let mut add = |what: &str, text: &str| lines.push(format!("{what:<9} {}", inert(text)));
    if let Some(odd) = &trace.odd {
        add("model", &format!("what it said does not count: {odd}"));
    }
    for it in &trace.resolved {
        add("reference", &format!("{} is {}", it.reference, it.to));
    }
    for step in &trace.plan {
        add("plan", &json!(step).to_string());
    }
    if let Some(pending) = &reply.pending {
        add("asked", &format!("{} until {} ({})", pending.id, pending.expires_ms, pending.digest));
    }
    for record in &trace.records {
        add("record", &record.to_string());
    }
    for anchor in &trace.anchors {
        add("anchor", &json!(anchor).to_string());
    }
    lines.join("\n")
}

/// Shows words as they come on the standard output, and the work of a coding task as any task is shown.
struct Teller {
    people: People,
    talk: Mutex<Talk>,
}

#[derive(Default)]
struct Talk {
    filter: Inert,
    is_task: bool,
    spoke: bool,
    failed: Option<io::Error>,
}

impl Teller {
    fn new(environment: &Environment) -> Self {
        let people = People::new(Parts {
            progress: Box::new(io::stderr()),
            answer: Box::new(io::stdout()),
            look: Look::of_stderr(environment),
            clock: Arc::new(SystemClock),
        });
        Self { people, talk: Mutex::default() }
    }

    /// Tells how a task ended, and ends the line of what was said.
    fn end(&self, task: Option<&Outcome>) -> Result<(), CliError> {
        if let Some(task) = task {
            self.people.notice(task.event());
        }
        let mut talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
        if talk.spoke {
            io::stdout().write_all(b"\n")?;
        }
        match talk.failed.take().or(self.people.failure()) {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }
}

impl Observer for Teller {
    fn notice(&self, event: Event) {
        let mut talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
        talk.is_task |= matches!(event, Event::SessionStarted { .. });
        match event {
            Event::TextDelta { text } if !talk.is_task => {
                talk.spoke = true;
                let shown = talk.filter.pass(text.as_bytes());
                let mut out = io::stdout().lock();
                let written = out.write_all(&shown).and_then(|()| out.flush());
                talk.failed = talk.failed.take().or(written.err());
            }
            event => self.people.notice(event),
        }
    }
}
