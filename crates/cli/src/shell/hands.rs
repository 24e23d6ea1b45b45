//! What the conversation has done: every piece of work on a thread of its own, told through one channel.

use std::sync::mpsc::{SyncSender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use fluffy_base::{Event, Observer};

use super::app::{Lookup, Message};
use super::complete::{Words, files_of};
use crate::client::{Follower, Line, Link, Reach, Watched};
use crate::commands::chat::submission;
use crate::commands::run::Caps;
use crate::commands::session;
use crate::commands::skill::trusted;
use crate::environment::Environment;
use crate::explain::CliError;
use crate::interrupt::{How, Stop};
use crate::place::Place;
use crate::providers::Choice;
use crate::review::{Answers, Asked, Reply};
use crate::wire::{Act, ChatWork, Handed, Submission, Surroundings, Work};

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
}

/// Starts pieces of work.
pub(crate) struct Hands {
    home: Home,
    manner: Manner,
    post: SyncSender<Message>,
    /// The way to the kernel. It is one for the whole conversation, which is remembered by it.
    link: &'static Link<'static>,
    /// The connection between two pieces of work: as long as there is one, the kernel remembers.
    kept: Arc<Mutex<Option<Line>>>,
    /// Ends what is under way.
    stop: Stop,
    /// Reaches it.
    reach: Reach,
}

impl Hands {
    pub(crate) fn new(home: Home, manner: Manner, post: SyncSender<Message>) -> Self {
        // As its home, it is needed as long as the program runs.
        let link: &'static Link<'static> =
            Box::leak(Box::new(Link::new(home.place, home.environment)));
        let (stop, reach) = (Stop::default(), Reach::default());
        Self { home, manner, post, link, kept: Arc::default(), stop, reach }
    }

    /// Has a turn of the conversation carried out: the one place where a message becomes work.
    pub(crate) fn turn(&mut self, work: ChatWork) {
        let (Home { place, environment }, manner) = (self.home, self.manner.clone());
        self.start(move || submission(place, environment, &manner.choice, manner.caps, work));
    }

    /// Does something to the session that is under way.
    pub(crate) fn steer(&self, act: Act) {
        let reach = self.reach.clone();
        self.spawn("steer", move |post| {
            let shown = reach.steer(act.clone());
            let _gone = post.send(Message::Steered(act, shown));
        });
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
        (self.stop, self.reach) = (Stop::default(), Reach::default());
        let (link, stop, reach) = (self.link, self.stop.clone(), self.reach.clone());
        let kept = Arc::clone(&self.kept);
        self.spawn("work", move |post| {
            let carry_out = |submission| {
                let told = Post(post.clone());
                let watched = Watched { observer: &told, reviewer: &told, stop: &stop };
                Follower::new(link, watched).reached_by(&reach).carry_out(submission)
            };
            let end = work().and_then(carry_out);
            // Where there is no kernel any more, there is nothing to be remembered.
            *kept.lock().unwrap_or_else(PoisonError::into_inner) = link.existing().ok().flatten();
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
    /// What a person does without a model.
    fn personal(self, work: Work) -> Submission {
        let surroundings = Surroundings::of(self.environment);
        Submission { work, driver: None, handed: Handed::default(), surroundings }
    }

    /// What was looked up, in lines.
    pub(crate) fn found(self, lookup: &Lookup) -> Result<Vec<String>, CliError> {
        match lookup {
            Lookup::Status(session) => {
                session::told(self.place, self.environment, session.as_deref())
            }
            Lookup::Grants(session) => {
                session::granted(self.place, self.environment, session.as_deref())
            }
            Lookup::Sessions => session::listed(self.place, SESSIONS),
            Lookup::Plugins => {
                let plugins = crate::commands::plugin::listed(self.place, self.environment)?;
                Ok(if plugins.is_empty() {
                    vec!["there are no plugins yet".to_owned()]
                } else {
                    plugins
                })
            }
            Lookup::Skills => {
                let skills = crate::commands::skill::listed(self.place)?;
                Ok(if skills.is_empty() {
                    vec!["there are no skills yet".to_owned()]
                } else {
                    skills
                })
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
