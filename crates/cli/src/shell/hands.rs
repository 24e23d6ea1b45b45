//! What the conversation has done: every piece of work on a thread of its own, told through one channel.

use std::sync::mpsc::{SyncSender, channel};
use std::thread;

use fluffy_base::{Event, Observer};
use fluffy_workflow::{Access, Mode};

use super::app::{Lookup, Message};
use super::complete::{Words, files_of};
use crate::client::{Follower, Link, Watched};
use crate::commands::run::Caps;
use crate::commands::session;
use crate::commands::skill::{handed, trusted};
use crate::environment::Environment;
use crate::explain::CliError;
use crate::interrupt::{How, Stop};
use crate::place::Place;
use crate::providers::Choice;
use crate::review::{Answers, Asked, Reply};
use crate::wire::{Act, Driver, End, Handed, Submission, Surroundings, Work};

/// How many sessions are listed.
const SESSIONS: usize = 20;

/// Whose conversation it is, and what its work is done with. It lives as long as the program.
#[derive(Clone, Copy)]
pub(crate) struct Home {
    pub(crate) place: &'static Place,
    pub(crate) environment: &'static Environment,
}

/// How messages are worked on.
#[derive(Clone)]
pub(crate) struct Manner {
    pub(crate) choice: Choice,
    pub(crate) caps: Caps,
    pub(crate) access: Access,
}

/// Starts pieces of work.
pub(crate) struct Hands {
    home: Home,
    manner: Manner,
    post: SyncSender<Message>,
    /// Ends what is under way.
    stop: Stop,
}

/// A message as it was sent.
pub(crate) struct Sent {
    pub(crate) text: String,
    pub(crate) mode: Mode,
    pub(crate) pins: Vec<String>,
}

impl Hands {
    pub(crate) fn new(home: Home, manner: Manner, post: SyncSender<Message>) -> Self {
        Self { home, manner, post, stop: Stop::default() }
    }

    /// Has a message worked on.
    pub(crate) fn begin(&mut self, sent: Sent) {
        let (home, manner) = (self.home, self.manner.clone());
        self.start(move || home.submission(sent, &manner));
    }

    /// Has something done to a session, the last one where none is named.
    pub(crate) fn act(&mut self, session: Option<String>, act: Act) {
        let home = self.home;
        self.start(move || {
            let session = session::meant(home.place, session.as_deref())?.to_string();
            Ok(home.personal(Work::Act { session, act }))
        });
    }

    /// Ends what is under way.
    pub(crate) fn cancel(&self) {
        let stop = self.stop.clone();
        // It waits for the kernel's answer, which whoever draws must not.
        self.spawn("cancel", move |_| stop.want(How::Now));
    }

    /// Looks something up.
    pub(crate) fn look(&self, lookup: Lookup) {
        let home = self.home;
        self.spawn("look", move |post| {
            let found = home.found(&lookup);
            let _gone = post.send(Message::Found(found));
        });
    }

    /// Finds what there is to be named.
    pub(crate) fn gather(&self) {
        let home = self.home;
        self.spawn("words", move |post| {
            let files = files_of(home.place.project());
            let skills = trusted(home.place).unwrap_or_default();
            let _gone = post.send(Message::Words(Words { files, skills }));
        });
    }

    fn start(&mut self, work: impl FnOnce() -> Result<Submission, CliError> + Send + 'static) {
        self.stop = Stop::default();
        let (home, stop) = (self.home, self.stop.clone());
        self.spawn("work", move |post| {
            let end = work().and_then(|submission| home.carry_out(submission, &post, &stop));
            let _gone = post.send(Message::Ended(end.map(Box::new)));
        });
    }

    fn spawn(&self, name: &str, work: impl FnOnce(SyncSender<Message>) + Send + 'static) {
        let post = self.post.clone();
        let spawned = thread::Builder::new().name(name.to_owned()).spawn(move || work(post));
        if let Err(error) = spawned {
            let _gone = self.post.try_send(Message::Ended(Err(error.into())));
        }
    }
}

impl Home {
    /// Where a message becomes work.
    fn submission(self, sent: Sent, manner: &Manner) -> Result<Submission, CliError> {
        let model = manner.choice.settle(self.environment)?;
        let Sent { text, mode, pins } = sent;
        let work = Work::Begin { task: text, mode, access: manner.access, pins };
        let driver = Some(Driver { model, caps: manner.caps });
        let handed = handed(self.place, self.environment, None)?;
        Ok(Submission { work, driver, handed, surroundings: Surroundings::of(self.environment) })
    }

    /// What a person does without a model.
    fn personal(self, work: Work) -> Submission {
        let surroundings = Surroundings::of(self.environment);
        Submission { work, driver: None, handed: Handed::default(), surroundings }
    }

    fn carry_out(
        self,
        submission: Submission,
        post: &SyncSender<Message>,
        stop: &Stop,
    ) -> Result<End, CliError> {
        let (observer, reviewer) = (Post(post.clone()), Post(post.clone()));
        let link = Link::new(self.place, self.environment);
        let watched = Watched { observer: &observer, reviewer: &reviewer, stop };
        Follower::new(&link, watched).carry_out(submission)
    }

    /// What was looked up, in lines.
    pub(crate) fn found(self, lookup: &Lookup) -> Result<Vec<String>, CliError> {
        match lookup {
            Lookup::Status(session) => session::shown(self.place, session.as_deref()),
            Lookup::Sessions => session::listed(self.place, SESSIONS),
            Lookup::Skills => {
                let skills = crate::commands::skill::listed(self.place)?;
                Ok(if skills.is_empty() { vec!["there are no skills yet".to_owned()] } else { skills })
            }
        }
    }
}

/// Tells and asks through the channel.
struct Post(SyncSender<Message>);

impl Observer for Post {
    fn notice(&self, event: Event) {
        let _gone = self.0.send(Message::Told(event));
    }
}

impl Answers for Post {
    fn answer(&self, asked: &Asked) -> Reply {
        let (reply, answer) = channel();
        let asked = Box::new(asked.clone());
        match self.0.send(Message::Asked(asked, reply)) {
            // Whoever was asked may have had enough.
            Ok(()) => answer.recv().unwrap_or(Reply::Nobody),
            Err(_gone) => Reply::Nobody,
        }
    }
}
