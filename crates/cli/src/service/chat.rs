//! Conversations in the kernel's process: whose they are, and what is done in them.
//!
//! **Invariant.** A conversation belongs to one client, known by its token, and to nobody else: what is asked in it is
//! answered in it. It is in memory alone and goes with its client.
//!
//! **Invariant.** What was agreed to, what was run and what was said is in the ledger before the reply leaves.

mod counted;
mod talks;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fluffy_base::{Clock as _, Event, Json, SessionId, SystemClock, SystemIds};
use fluffy_chat::{
    Answer, Coded, Consent, Done, Known, Next, Order, Said, Setting, Speech, TalkRecord,
};
use fluffy_forge::{ChainError, Standing};
use fluffy_kernel::{EventType, Journal as _, Kernel, KernelError, Note, causes};
use fluffy_provider::Provider;

use self::counted::counted;
pub(super) use self::talks::{Seat, Seated, Talks};
use super::run::Run;
use crate::commands::run::{Done as TaskDone, Outcome};
use crate::drive::{self, Scene};
use crate::explain::{CANCELLED, CliError, Explained, FAILED};
use crate::forge::{Forge, look, of_chain};
use crate::place::Place;
use crate::providers::Chosen;
use crate::settings::Settings;
use crate::wire::{ChatReply, ChatWork, Driver, Say};

/// Carries a turn out; what is said in reply.
pub(super) fn carry_out(
    work: ChatWork,
    driver: Option<Driver>,
    seated: &Seated,
    scene: &Scene<'_>,
    run: &Run,
) -> Result<ChatReply, CliError> {
    let mut seat = seated.seat();
    let mut table = Table::set(driver, scene, run, &seat)?;
    let reply = table.turn(&mut seat, work, seated.at_terminal);
    seat.played = table.played();
    reply
}

/// What a turn has at hand.
struct Table<'a> {
    scene: &'a Scene<'a>,
    run: &'a Run,
    known: Vec<Known>,
    /// Who drives a task.
    driver: Option<(Chosen, crate::commands::run::Caps)>,
    /// The local model, where it was chosen for conversation.
    talk: Option<Box<dyn Provider>>,
    counted: Arc<std::sync::atomic::AtomicUsize>,
    outcome: Option<Outcome>,
    failure: Option<Explained>,
}

impl<'a> Table<'a> {
    fn set(
        driver: Option<Driver>,
        scene: &'a Scene<'a>,
        run: &'a Run,
        seat: &Seat,
    ) -> Result<Self, CliError> {
        let counter = Arc::new(std::sync::atomic::AtomicUsize::new(seat.played));
        let open = |Driver { model, caps }: Driver| -> Result<_, CliError> {
            let chosen = model.open(scene.place, &scene.runtime, seat.played)?;
            Ok((counted(chosen, Arc::clone(&counter)), caps))
        };
        let driver = driver.map(open).transpose()?;
        let talk = scene.take_talk().map(|setup| setup.speaker(scene.place, &scene.runtime));
        let talk = talk.transpose()?.map(|remote| Box::new(remote) as Box<dyn Provider>);
        let known = known(scene.place)?;
        let (outcome, failure) = (None, None);
        Ok(Self { scene, run, known, driver, talk, counted: counter, outcome, failure })
    }

    /// How many turns of a transcript were played.
    fn played(&self) -> usize {
        self.counted.load(Ordering::SeqCst)
    }

    /// Whoever talks: the local model, or else whoever drives tasks.
    fn speaker(&self) -> Option<&dyn Provider> {
        let driver = self.driver.as_ref().map(|(chosen, _)| &*chosen.provider);
        self.talk.as_deref().or(driver)
    }

    fn turn(
        &mut self,
        seat: &mut Seat,
        work: ChatWork,
        at_terminal: bool,
    ) -> Result<ChatReply, CliError> {
        let say = match &work {
            ChatWork::Say(say) => Some(say.clone()),
            ChatWork::Confirm { .. } | ChatWork::Decline { .. } => None,
        };
        let why = say.as_ref().and_then(|say| say.no_model.as_ref()).map(|it| it.what.clone());
        let model = self.speaker().map(|speaker| speaker.model().to_owned());
        let known = std::mem::take(&mut self.known);
        let setting = || Setting {
            known: &known,
            now_ms: SystemClock.now_ms(),
            model: model.as_deref(),
            no_model: why.as_deref(),
        };
        let talk = &mut seat.conversation;
        let mut next = match &work {
            ChatWork::Say(say) => talk.say(said(say, at_terminal), setting()),
            ChatWork::Confirm { pending } => talk.confirm(pending, at_terminal, setting()),
            ChatWork::Decline { pending } => talk.decline(pending, setting()),
        };
        loop {
            if !matches!(next, Next::Done(_)) && self.run.stop.is_wanted() {
                return Err(cancelled());
            }
            next = match next {
                Next::Done(reply) => {
                    let reply = ChatReply::of(*reply);
                    let session = talk.session().map(str::to_owned);
                    let (task, failure) = (self.outcome.take(), self.failure.take());
                    return Ok(ChatReply { task, failure, session, ..reply });
                }
                Next::Speak(speech) => talk.spoke(self.ask(&speech), setting()),
                Next::Run(order) => talk.ran(self.perform(&order)?),
                Next::Code { task } => {
                    let session = talk.session().map(str::to_owned);
                    talk.coded(self.code(&task, session.as_deref(), say.as_deref())?)
                }
                Next::Log(record) => {
                    self.log(&record)?;
                    talk.logged()
                }
            };
        }
    }

    fn ask(&self, speech: &Speech) -> Result<Answer, String> {
        let speaker = self.speaker().ok_or("there is no model")?;
        let observer = &self.scene.observer;
        let mut tell = |text: &str| observer.notice(Event::TextDelta { text: text.to_owned() });
        let wanted = || !self.run.stop.is_wanted();
        fluffy_chat::ask(speaker, speech, &mut tell, &wanted).map_err(|error| error.to_string())
    }

    /// A coding task: the governed session does it, the same as before where there is one. The one place from which a
    /// conversation codes.
    fn code(
        &mut self,
        text: &str,
        session: Option<&str>,
        say: Option<&Say>,
    ) -> Result<Coded, CliError> {
        let no_model = say.and_then(|say| say.no_model.clone());
        let (Some(say), Some((chosen, caps))) = (say, self.driver.take()) else {
            return Err(no_model.map_or(CliError::NoProvider, CliError::Told));
        };
        let (scene, stop) = (self.scene, &self.run.stop);
        let outcome = match session.and_then(SessionId::named) {
            Some(id) => {
                self.run.works_on(id.as_str());
                let message = SessionId::fresh(&SystemIds).ok_or(KernelError::NoRandomness)?;
                let said = drive::Said { message: message.as_str(), text };
                // A transcript goes on where the conversation is, whatever the session had of it.
                drive::say(&id, &said, |_| Ok(chosen), caps, scene, stop)?
            }
            None => {
                let (mode, access, pins) = (say.mode, say.access, &say.pins);
                drive::begin(&drive::Task { text, mode, access, pins }, caps, chosen, scene, stop)?
            }
        };
        let (summary, done) = match &outcome {
            Outcome::Completed(TaskDone { summary, .. }) => (summary.clone(), true),
            Outcome::Cancelled => ("The task was cancelled.".to_owned(), false),
            Outcome::Failed(end)
            | Outcome::Denied(end)
            | Outcome::ProviderFailed(end)
            | Outcome::CapReached(end) => (format!("{}: {}", end.what, end.why), false),
        };
        self.outcome = Some(outcome);
        Ok(Coded { session: self.run.session(), summary, done })
    }

    /// Runs what was planned, with a kernel that knows those skills.
    fn perform(&mut self, order: &Order) -> Result<Done, CliError> {
        let forge = Forge::open(self.scene, self.scene.take_handed())?;
        let lab = Arc::clone(&forge.lab);
        self.run.stop.calls(move |_| lab.close());
        let names: Vec<_> = order.plan.steps.iter().map(|step| step.skill.clone()).collect();
        let kernel = super::skill::boot(&names, None, &forge, self.scene, self.run)?;
        if let Some(consent) = &order.consent {
            agreed(consent, &kernel)?;
        }
        let ran = forge.runs.chain(&kernel, &order.plan.chain(), &Json::empty_object());
        super::skill::close(kernel)?;
        let (finished, stopped) = match ran {
            Ok(run) => (run.finished, run.stopped),
            Err(error) => (Vec::new(), Some(error)),
        };
        let told = stopped.as_ref().map(|error| match error {
            ChainError::Nothing { .. } => "there is nothing for the next step to go on with".into(),
            error => {
                let it = of_chain(error);
                format!("{}: {}; {}", it.what, it.why, it.fix)
            }
        });
        self.failure = stopped.as_ref().map(of_chain);
        Ok(Done { finished, stopped: told })
    }

    /// Records what was said.
    fn log(&self, record: &TalkRecord) -> Result<(), CliError> {
        let settings = Settings::load(self.scene.place, self.scene.environment)?;
        let config = crate::commands::kernel(self.scene.place, &settings, None)?;
        let kernel = Kernel::boot(config)?;
        let content = serde_json::to_value(record).map_err(std::io::Error::from)?;
        let noted = kernel.record(Note {
            event: EventType::Talk,
            intent: format!("{}: {}", record.skill, fluffy_base::Excerpt::new(&record.input, 200)),
            request_id: Some(record.execution.clone()),
            workflow_state: None,
            metadata: vec![
                ("skill", record.skill.clone()),
                ("side_effect", record.side_effect.clone()),
                ("by", record.by.clone()),
                ("success", record.success.to_string()),
            ],
            content: Some(content),
        });
        let closed = kernel.close();
        noted.map_err(|error| unrecorded(&error))?;
        Ok(closed.map(drop)?)
    }
}

/// The skills that are trusted. One that cannot be used is left out: `fluffy skill doctor` names it.
fn known(place: &Place) -> Result<Vec<Known>, CliError> {
    let Some(shelf) = look(place)? else { return Ok(Vec::new()) };
    let listed = shelf.skills()?.into_iter().filter(|it| it.standing == Standing::Trusted);
    Ok(listed.filter_map(|it| shelf.trusted(&it.name).ok()).map(Known::of).collect())
}

fn said(say: &Say, at_terminal: bool) -> Said<'_> {
    Said {
        text: &say.text,
        answers: say.answers.as_deref(),
        confirmed: say.confirmed,
        at_terminal,
        verbose: say.verbose,
    }
}

/// Records that a person agreed, before anything of it is done.
fn agreed(consent: &Consent, kernel: &Kernel) -> Result<(), CliError> {
    let pending = consent.pending.clone().unwrap_or_default();
    let noted = kernel.record(Note {
        event: EventType::HumanDecision,
        intent: "a person agreed to a plan of a conversation".to_owned(),
        request_id: None,
        workflow_state: None,
        metadata: vec![
            ("plan", consent.digest.to_string()),
            ("asked", pending),
            ("by", consent.by.to_owned()),
        ],
        content: None,
    });
    noted.map(drop).map_err(|error| unrecorded(&error))
}

/// The person had enough before it was answered.
fn cancelled() -> CliError {
    CliError::Told(Explained {
        what: "it was cancelled".to_owned(),
        why: "you asked for it".to_owned(),
        fix: "say it again when you want it; what was done is in: fluffy audit log".to_owned(),
        code: CANCELLED,
    })
}

fn unrecorded(error: &dyn std::error::Error) -> CliError {
    CliError::Told(Explained {
        what: "it could not be recorded, and nothing is done without".to_owned(),
        why: causes(error),
        fix: "see what the ledger says: fluffy audit verify".to_owned(),
        code: FAILED,
    })
}
