//! One conversation, turn by turn, without doing anything itself.
//!
//! Whoever calls it tells what was said, does what [`Next`] says and tells what came of it, until the reply is there. A turn is
//! `say` (or `confirm`, `decline`) and then `spoke`, `ran`, `coded` and `logged` as they are asked for.
//!
//! **Invariant.** What has an effect leaves here as an [`Order`] with the consent for it, and only from [`Pending::agreed`] or
//! from a yes that was said beforehand of what the words themselves say.

use fluffy_base::IdSource;
use fluffy_forge::Finished;
use fluffy_provider::Message;

use crate::anchors::{Anchor, Anchors};
use crate::confirm::{ConfirmError, Consent, Pending, is_no, is_yes};
use crate::day::day_of;
use crate::history::{History, Voice};
use crate::intent::{Change, Command, Intent};
use crate::model::{self, Answer, Heard, heard};
use crate::parse::parse;
use crate::plan::{Origin, Plan, plan};
use crate::present::{self, Coded};
use crate::record::{TALK, TRANSFORM, TalkRecord};
use crate::reply::{Kind, Record, Reply, Trace};
use crate::resolve::{Action, Bound, resolve};
use crate::skill::Known;

/// What somebody said.
#[derive(Debug, Clone, Copy, Default)]
pub struct Said<'a> {
    /// The words.
    pub text: &'a str,
    /// The question under which they were typed, by its id.
    pub answers: Option<&'a str>,
    /// Whether a yes was said beforehand.
    pub confirmed: bool,
    /// Whether a person at a terminal says it.
    pub at_terminal: bool,
    /// Whether everything is to be shown.
    pub verbose: bool,
}

/// What holds while a turn is answered.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// The skills that are trusted.
    pub known: &'a [Known],
    /// The time, in milliseconds since the epoch.
    pub now_ms: u64,
    /// The model that can be asked, by its name.
    pub model: Option<&'a str>,
    /// Why there is none.
    pub no_model: Option<&'a str>,
}

/// What is to be done next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Nothing: this is the reply.
    Done(Box<Reply>),
    /// Skills are run, and [`Conversation::ran`] is told of it.
    Run(Box<Order>),
    /// A coding task is done, and [`Conversation::coded`] is told of it.
    Code {
        /// What the person said.
        task: String,
    },
    /// A model is asked, and [`Conversation::spoke`] is told what it said.
    Speak(Box<Speech>),
    /// It is recorded, and then [`Conversation::logged`] is told.
    Log(Box<TalkRecord>),
}

/// A plan that is to be carried out, and who agreed to it where that was needed.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// What.
    pub plan: Plan,
    /// Who agreed; nothing where nobody has to.
    pub consent: Option<Consent>,
}

/// What a model is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Speech {
    /// What stands above.
    pub system: String,
    /// The conversation.
    pub messages: Vec<Message>,
    /// Whether an object instead of words is read as what is wanted.
    pub may_act: bool,
    /// What it is about, by its id.
    pub about: Option<String>,
}

/// What came of an order.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// The runs that are recorded, the first first.
    pub finished: Vec<Finished>,
    /// Why the rest did not run.
    pub stopped: Option<String>,
}

/// A turn under way.
#[derive(Debug, Default)]
struct Turn {
    message: String,
    confirmed: bool,
    verbose: bool,
    started_ms: u64,
    /// What the words gave, for when a model does not do better.
    fallback: Option<Intent>,
    /// What is being changed.
    change: Option<(Anchor, Change)>,
    /// What may follow from what a model says.
    may_act: bool,
    streamed: bool,
    record: Option<TalkRecord>,
    trace: Trace,
}

/// A conversation.
pub struct Conversation {
    ids: Box<dyn IdSource>,
    anchors: Anchors,
    history: History,
    pending: Option<Pending>,
    verbose: bool,
    session: Option<String>,
    turn: Turn,
}

impl Conversation {
    /// A new one, in which nothing was said.
    pub fn new(ids: Box<dyn IdSource>) -> Self {
        Self {
            ids,
            anchors: Anchors::default(),
            history: History::default(),
            pending: None,
            verbose: false,
            session: None,
            turn: Turn::default(),
        }
    }

    /// The coding session of this conversation, by its id: the last that was begun in it.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Somebody said something.
    pub fn say(&mut self, said: Said<'_>, setting: Setting<'_>) -> Next {
        self.begin(said, setting);
        let pending = self.pending.take();
        if let Some(id) = said.answers {
            let asked = pending.filter(|pending| pending.id == id);
            if is_yes(said.text) {
                return self.agree(asked, said.at_terminal, setting);
            }
            if is_no(said.text) {
                return self.done(Kind::Declined, present::DECLINED.to_owned());
            }
        }
        // Whatever else is said, what was asked before it is not agreed to.
        let parsed = parse(said.text, setting.known, &day(setting.now_ms));
        if !parsed.sure && setting.model.is_some() {
            let speech = model::understand(said.text, &self.history, &self.anchors, setting.known);
            self.turn.fallback = Some(parsed.intent);
            return self.speak(speech);
        }
        self.proceed(parsed.intent, Origin::Words, setting)
    }

    /// A person agrees to what is asked by this id.
    pub fn confirm(&mut self, id: &str, at_terminal: bool, setting: Setting<'_>) -> Next {
        self.begin(Said { text: "yes", at_terminal, ..Said::default() }, setting);
        let asked = self.pending.take().filter(|pending| pending.id == id);
        self.agree(asked, at_terminal, setting)
    }

    /// A person does not agree to what is asked by this id.
    pub fn decline(&mut self, id: &str, setting: Setting<'_>) -> Next {
        self.begin(Said { text: "no", ..Said::default() }, setting);
        match self.pending.take().filter(|pending| pending.id == id) {
            Some(_) => self.done(Kind::Declined, present::DECLINED.to_owned()),
            None => self.refused(ConfirmError::NotAsked),
        }
    }

    /// A model was asked: what it said, or why it did not.
    pub fn spoke(&mut self, answer: Result<Answer, String>, setting: Setting<'_>) -> Next {
        let by = setting.model.unwrap_or("model").to_owned();
        let fallback = self.turn.fallback.take();
        let (answer, may_act) = match answer {
            Ok(answer) => (answer, std::mem::take(&mut self.turn.may_act)),
            Err(why) => return self.unsaid(fallback, &why, setting),
        };
        self.turn.streamed |= answer.streamed;
        if !may_act {
            return self.log(answer.text.trim(), &by, None, setting);
        }
        match heard(&answer.text, &self.anchors, setting.known) {
            Heard::Words(text) => {
                self.turn.trace.intent = Intent::Talk.name();
                self.turn.trace.origin = Some(Origin::Model);
                self.log(&text, &by, None, setting)
            }
            Heard::Intent(intent) => self.proceed(intent, Origin::Model, setting),
            Heard::Odd(why) => {
                self.turn.trace.odd = Some(why);
                self.proceed(fallback.unwrap_or(Intent::Talk), Origin::Words, setting)
            }
        }
    }

    /// Skills were run.
    pub fn ran(&mut self, done: Done) -> Next {
        for finished in &done.finished {
            if let Some(anchor) = Anchor::of_run(finished) {
                self.anchors.add(anchor);
            }
            let record = Record::Run(Box::new(finished.record.clone()));
            self.turn.trace.records.push(record);
        }
        match done.stopped {
            None => self.done(Kind::Ran, present::ran(&done.finished)),
            Some(why) => self.done(Kind::Failed, present::failed(&done.finished, &why)),
        }
    }

    /// A coding task came to its end.
    pub fn coded(&mut self, coded: Coded) -> Next {
        if let Some(session) = &coded.session {
            if coded.done {
                self.anchors.add(Anchor::of_task(session, &self.turn.message, &coded.summary));
            }
            self.session = Some(session.clone());
        }
        self.done(Kind::Task, coded.summary)
    }

    /// What was to be recorded is in the ledger.
    pub fn logged(&mut self) -> Next {
        let Some(record) = self.turn.record.take() else {
            return self.done(Kind::Failed, "there is nothing to be recorded".to_owned());
        };
        let kind = if record.skill == TALK { Kind::Talk } else { Kind::Transform };
        if record.success && record.by != TEMPLATE {
            self.anchors.add(Anchor::of_talk(&record));
        }
        let text = record.output.clone();
        self.turn.trace.records.push(Record::Talk(Box::new(record)));
        self.done(kind, text)
    }

    fn begin(&mut self, said: Said<'_>, setting: Setting<'_>) {
        self.turn = Turn {
            message: said.text.to_owned(),
            confirmed: said.confirmed,
            verbose: said.verbose,
            started_ms: setting.now_ms,
            ..Turn::default()
        };
    }

    fn agree(&mut self, asked: Option<Pending>, at_terminal: bool, setting: Setting<'_>) -> Next {
        let Some(asked) = asked else { return self.refused(ConfirmError::NotAsked) };
        if !at_terminal {
            return self.refused(ConfirmError::NoPerson);
        }
        self.turn.trace.intent = "skill";
        self.turn.message.clone_from(&asked.message);
        match asked.agreed(setting.now_ms, setting.known) {
            Ok((plan, consent)) => self.run(plan, Some(consent)),
            Err(why) => self.refused(why),
        }
    }

    fn refused(&mut self, why: ConfirmError) -> Next {
        self.done(Kind::Refused, present::refused(why).to_owned())
    }

    /// What follows from what is wanted.
    fn proceed(&mut self, intent: Intent, origin: Origin, setting: Setting<'_>) -> Next {
        self.turn.trace.intent = intent.name();
        self.turn.trace.origin = Some(origin);
        let (action, resolved) = match resolve(intent, &self.anchors, setting.known) {
            Ok(bound) => bound,
            Err(why) => return self.done(Kind::Question, present::unresolved(&why)),
        };
        self.turn.trace.resolved = resolved;
        match action {
            Action::Code => Next::Code { task: self.turn.message.clone() },
            Action::Skills(steps) => self.planned(steps, origin, setting),
            Action::Talk => self.talk(setting),
            Action::Transform { of, change } => self.transform(*of, change, setting),
            Action::Meta(command) => self.meta(&command, setting),
            Action::Clarify(question) => self.done(Kind::Question, question),
            Action::Unsupported(why) => self.done(Kind::Unsupported, present::unsupported(&why)),
        }
    }

    fn planned(&mut self, steps: Vec<Bound>, origin: Origin, setting: Setting<'_>) -> Next {
        let plan = match plan(steps, setting.known, origin) {
            Ok(plan) => plan,
            Err(why) => return self.done(Kind::Question, present::unplanned(&why)),
        };
        if !plan.asks() {
            return self.run(plan, None);
        }
        let digest = plan.digest();
        if self.turn.confirmed && origin == Origin::Words {
            let consent = Consent { pending: None, digest, by: "the user, with --confirmed" };
            return self.run(plan, Some(consent));
        }
        let Some(id) = self.fresh("ask") else { return self.no_chance() };
        let text = present::question(&plan, self.turn.confirmed);
        self.turn.trace.plan = Some(plan.clone());
        let (message, asked_ms) = (self.turn.message.clone(), setting.now_ms);
        self.pending = Some(Pending { id, plan, digest, message, asked_ms });
        self.done(Kind::Confirm, text)
    }

    fn run(&mut self, plan: Plan, consent: Option<Consent>) -> Next {
        self.turn.trace.plan = Some(plan.clone());
        Next::Run(Box::new(Order { plan, consent }))
    }

    fn talk(&mut self, setting: Setting<'_>) -> Next {
        let message = self.turn.message.clone();
        match (setting.model, present::small_talk(&message)) {
            (Some(_), None) => self.speak(model::converse(&message, &self.history)),
            (_, Some(words)) => self.log(words, TEMPLATE, None, setting),
            (None, None) => {
                let words = present::speechless(setting.no_model);
                self.log(&words, TEMPLATE, None, setting)
            }
        }
    }

    fn transform(&mut self, of: Anchor, change: Change, setting: Setting<'_>) -> Next {
        let text = of.text.clone().unwrap_or_default();
        let speech = model::transform(&text, &change, &of.execution);
        let label = of.label.clone();
        self.turn.change = Some((of, change.clone()));
        match setting.model {
            Some(_) => self.speak(speech),
            None => {
                let words = present::unchanged(&label, &change, setting.no_model);
                self.log(&words, TEMPLATE, None, setting)
            }
        }
    }

    fn speak(&mut self, speech: Speech) -> Next {
        self.turn.may_act = speech.may_act;
        Next::Speak(Box::new(speech))
    }

    /// A model failed: what can be said and done without one.
    fn unsaid(&mut self, fallback: Option<Intent>, why: &str, setting: Setting<'_>) -> Next {
        let without = Setting { model: None, no_model: Some(why), ..setting };
        match (fallback, self.turn.change.take()) {
            (Some(intent), _) if intent != Intent::Talk => {
                self.proceed(intent, Origin::Words, without)
            }
            (_, Some((of, change))) => {
                let words = present::unchanged(&of.label, &change, Some(why));
                self.turn.change = Some((of, change));
                self.log(&words, TEMPLATE, Some(why), setting)
            }
            (_, None) => {
                self.turn.trace.intent = Intent::Talk.name();
                let words = present::speechless(Some(why));
                self.log(&words, TEMPLATE, Some(why), setting)
            }
        }
    }

    /// Has words recorded before they are the reply.
    fn log(&mut self, words: &str, by: &str, error: Option<&str>, setting: Setting<'_>) -> Next {
        let Some(execution) = self.fresh("run") else { return self.no_chance() };
        let change = self.turn.change.as_ref();
        let record = TalkRecord {
            execution,
            skill: if change.is_some() { TRANSFORM } else { TALK }.to_owned(),
            parent: change.map(|(of, _)| of.execution.clone()),
            side_effect: "NONE".to_owned(),
            input: self.turn.message.clone(),
            output: words.to_owned(),
            by: by.to_owned(),
            success: error.is_none(),
            error: error.map(str::to_owned),
            started_ms: self.turn.started_ms,
            ended_ms: setting.now_ms,
        };
        let record = record.veiled();
        self.turn.record = Some(record.clone());
        Next::Log(Box::new(record))
    }

    fn meta(&mut self, command: &Command, setting: Setting<'_>) -> Next {
        match command {
            Command::Verbose(wanted) => self.verbose = wanted.unwrap_or(!self.verbose),
            Command::Forget => {
                self.anchors.clear();
                self.history.clear();
                self.session = None;
            }
            Command::Help
            | Command::Skills
            | Command::Anchors
            | Command::History
            | Command::Other(_) => {}
        }
        let (anchors, history) = (&self.anchors, &self.history);
        let text = present::meta(command, setting.known, anchors, history, self.verbose);
        let kind = match command {
            Command::Other(_) => Kind::Question,
            _known => Kind::Meta,
        };
        let reply = self.reply(kind, text);
        // What is said about a conversation is no part of it.
        Next::Done(Box::new(reply))
    }

    fn done(&mut self, kind: Kind, text: String) -> Next {
        let message = std::mem::take(&mut self.turn.message);
        self.history.add(Voice::Person, &message);
        self.history.add(Voice::Program, &text);
        Next::Done(Box::new(self.reply(kind, text)))
    }

    fn reply(&mut self, kind: Kind, text: String) -> Reply {
        let mut trace = std::mem::take(&mut self.turn.trace);
        trace.anchors = self.anchors.newest().cloned().collect();
        Reply {
            kind,
            text,
            streamed: self.turn.streamed,
            pending: self.pending.clone(),
            verbose: self.verbose || self.turn.verbose,
            trace,
        }
    }

    fn no_chance(&mut self) -> Next {
        self.done(Kind::Failed, "The machine gives no randomness for an id.".to_owned())
    }

    fn fresh(&self, prefix: &str) -> Option<String> {
        let bytes = self.ids.fresh()?;
        Some(format!("{prefix}-{:032x}", u128::from_be_bytes(bytes)))
    }
}

/// Who answers where no model does.
const TEMPLATE: &str = "template";

/// Yesterday, today and tomorrow.
fn day(now_ms: u64) -> [String; 3] {
    [day_of(now_ms, -1), day_of(now_ms, 0), day_of(now_ms, 1)]
}
