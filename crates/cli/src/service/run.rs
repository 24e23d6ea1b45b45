//! A piece of work under way: what happened in it, who watches and who drives it.
//!
//! **Invariant.** One peer drives. Questions go to the driver alone, and only the driver's answer to the very question that is
//! open counts; who it is was found out from its socket.
//!
//! **Invariant.** Every watcher is told everything from where it came in, in order, once; the numbers show what is not kept any
//! more.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::time::Duration;

use fluffy_base::{ClientId, Event, Excerpt, Fault, FaultCode, Message, Observer};
use fluffy_kernel::{Peer, Question, Review, Reviewer, Scope, Session};
use serde::Serialize;
use serde_json::Value;

use crate::interrupt::{How, Stop};
use crate::review::{Asked, Reply, judged};
use crate::status::OpenQuestion;
use crate::terminal::nobody;
use crate::wire::{self, End, Ended, Joined, ReviewRequest, ReviewResponse, Told};

/// How long a driver may be away before its work is stopped: a client that lost its connection is back by then.
const AWAY: Duration = Duration::from_secs(30);
/// How much is kept for watchers that come later: what fits into one peer's queue, with what is told meanwhile.
const KEPT_BYTES: usize = 8 << 20;
/// How much of what a person says to the model every watcher is told, in characters.
const WORDS_TOLD: usize = 500;
/// What a message costs beside its bytes.
const MESSAGE_BYTES: usize = 64;

/// Halts a kernel for a reason; the number of the entry, or why not.
pub(crate) type Halt = Arc<dyn Fn(&str) -> Result<u64, String> + Send + Sync>;

/// A piece of work under way.
pub(crate) struct Run {
    /// Which of this process's.
    pub(crate) number: u64,
    /// Ends it when the person has enough.
    pub(crate) stop: Stop,
    inside: Mutex<Inside>,
    changed: Condvar,
    /// One question at a time.
    asking: Mutex<u64>,
    /// The session that is worked on, for whoever changes something about it meanwhile.
    at_work: RwLock<Option<Arc<Session>>>,
}

struct Inside {
    session: Option<String>,
    told: VecDeque<(u64, usize, Message)>,
    bytes: usize,
    last: u64,
    watchers: Vec<Peer>,
    driver: Driver,
    open: Option<Open>,
    end: Option<End>,
    halt: Option<Halt>,
}

/// Who drives.
struct Driver {
    client: ClientId,
    peer: Option<Peer>,
}

/// A question that waits for its answer.
struct Open {
    request: ReviewRequest,
    reply: Option<(Reply, bool)>,
}

impl Inside {
    fn tell(&self, message: &Message) {
        for watcher in &self.watchers {
            // Who is gone is noticed when it leaves.
            let _gone = watcher.send(message.clone());
        }
    }
}

impl Run {
    /// Work that this peer drives.
    pub(crate) fn new(number: u64, driver: &Peer) -> Self {
        let inside = Inside {
            session: None,
            told: VecDeque::new(),
            bytes: 0,
            last: 0,
            watchers: vec![driver.clone()],
            driver: Driver { client: driver.id(), peer: Some(driver.clone()) },
            open: None,
            end: None,
            halt: None,
        };
        Self {
            number,
            stop: Stop::default(),
            inside: Mutex::new(inside),
            changed: Condvar::new(),
            asking: Mutex::new(0),
            at_work: RwLock::default(),
        }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        self.inside().end.is_some()
    }

    /// Whether it works on this session.
    pub(crate) fn is_of(&self, session: &str) -> bool {
        self.inside().session.as_deref() == Some(session)
    }

    /// It works on this session.
    pub(crate) fn works_on(&self, session: &str) {
        self.inside().session = Some(session.to_owned());
    }

    /// It works with this session, which others may change something about from now on.
    pub(crate) fn works_with(&self, session: &Arc<Session>) {
        self.works_on(session.id().as_str());
        let mut at_work = self.at_work.write().unwrap_or_else(PoisonError::into_inner);
        *at_work = Some(Arc::clone(session));
    }

    /// It works with it no more; waits for whoever changes something about it.
    pub(crate) fn parts(&self) {
        drop(self.at_work.write().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Does something to the session that is worked on; nothing where it comes to its end. May wait for the model's calls.
    pub(crate) fn steered<T>(&self, act: impl FnOnce(&Session) -> T) -> Option<T> {
        let at_work = match self.at_work.try_read() {
            Ok(at_work) => at_work,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        at_work.as_deref().map(act)
    }

    /// The session that it works on, where it is known.
    pub(crate) fn session(&self) -> Option<String> {
        self.inside().session.clone()
    }

    /// The question that waits for an answer, if one does.
    pub(crate) fn open_question(&self) -> Option<OpenQuestion> {
        let inside = self.inside();
        let open = inside.open.as_ref()?;
        let (id, action) = (open.request.id.clone(), open.request.asked.action.clone());
        Some(OpenQuestion { id, action })
    }

    /// This halts its kernel, as long as it works.
    pub(crate) fn halted_by(&self, halt: Halt) {
        self.inside().halt = Some(halt);
    }

    /// What halts its kernel. It waits for the disk.
    pub(crate) fn halt(&self) -> Option<Halt> {
        self.inside().halt.clone()
    }

    /// Has a peer told everything after a number, and from now on; makes it the driver if it asks for that and may.
    pub(crate) fn join(&self, peer: &Peer, after: u64, drive: bool) -> Joined {
        let mut inside = self.inside();
        let is_own = inside.driver.client == peer.id();
        let drives = is_own || drive && inside.driver.peer.is_none();
        if drives {
            inside.driver = Driver { client: peer.id(), peer: Some(peer.clone()) };
        }
        inside.watchers.retain(|watcher| watcher.id() != peer.id());
        inside.watchers.push(peer.clone());
        for (_, _, message) in inside.told.iter().filter(|(seq, ..)| *seq > after) {
            let _gone = peer.send(message.clone());
        }
        if let Some(open) = inside.open.as_ref().filter(|_| drives) {
            let _gone = peer.send(event(wire::REVIEW, &open.request));
        }
        if let Some(end) = &inside.end {
            let _gone = peer.send(ended(self.number, end));
        }
        drop(inside);
        self.changed.notify_all();
        Joined { run: self.number, drives }
    }

    /// A peer is gone.
    pub(crate) fn leave(&self, peer: &Peer) {
        let mut inside = self.inside();
        inside.watchers.retain(|watcher| !watcher.is_same(peer));
        if inside.driver.peer.as_ref().is_some_and(|driver| driver.is_same(peer)) {
            inside.driver.peer = None;
        }
        drop(inside);
        self.changed.notify_all();
    }

    /// Whether whoever drove it is gone.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.inside().driver.peer.is_none()
    }

    /// Waits until it is over.
    pub(crate) fn wait_for_end(&self) {
        let waited = self.changed.wait_while(self.inside(), |inside| inside.end.is_none());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether this peer drives.
    pub(crate) fn is_driven_by(&self, peer: &Peer) -> bool {
        self.inside().driver.client == peer.id()
    }

    /// Takes an answer, if it is the driver's to the question that is open.
    pub(crate) fn reviewed(&self, peer: &Peer, response: ReviewResponse) -> Result<(), Fault> {
        let at_terminal = peer.has_terminal();
        let mut inside = self.inside();
        if inside.driver.client != peer.id() {
            return Err(Fault::new(FaultCode::NotYours, "another client drives this session"));
        }
        match &mut inside.open {
            Some(open) if open.request.id == response.id && response.run == self.number => {
                open.reply.get_or_insert((response.reply, at_terminal));
            }
            Some(_) | None => {
                return Err(Fault::new(FaultCode::NotFound, "nothing of that name is asked"));
            }
        }
        drop(inside);
        self.changed.notify_all();
        Ok(())
    }

    /// It is over, like this.
    pub(crate) fn finish(&self, end: End) {
        let mut inside = self.inside();
        inside.halt = None;
        let message = ended(self.number, &end);
        inside.tell(&message);
        inside.end = Some(end);
        drop(inside);
        self.changed.notify_all();
    }

    /// Stops the work if its driver stays away; returns when it is over.
    pub(crate) fn guard(&self) {
        let mut inside = self.inside();
        while inside.end.is_none() {
            let here = inside.driver.peer.is_some();
            let waited = self.changed.wait_timeout_while(inside, AWAY, |inside| {
                inside.end.is_none() && inside.driver.peer.is_some() == here
            });
            let (after, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            inside = after;
            if timeout.timed_out() && inside.driver.peer.is_none() && inside.end.is_none() {
                drop(inside);
                self.stop.want(How::Gently);
                inside = self.inside();
            }
        }
    }

    /// Asks the driver; nobody's answer where it stays away.
    fn ask(&self, id: &str, asked: &Asked) -> Review {
        let request = ReviewRequest { run: self.number, id: id.to_owned(), asked: asked.clone() };
        let mut inside = self.inside();
        if let Some(driver) = &inside.driver.peer {
            let _gone = driver.send(event(wire::REVIEW, &request));
        }
        inside.open = Some(Open { request, reply: None });
        loop {
            let here = inside.driver.peer.is_some();
            let waiting = |inside: &mut Inside| {
                inside.open.as_ref().is_some_and(|open| open.reply.is_none())
                    && inside.driver.peer.is_some() == here
                    && !self.stop.is_wanted()
            };
            let waited = self.changed.wait_timeout_while(inside, AWAY, waiting);
            let (after, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            inside = after;
            let reply = inside.open.as_mut().and_then(|open| open.reply.take());
            let given_up = timeout.timed_out() && inside.driver.peer.is_none();
            if let Some((reply, at_terminal)) = reply {
                inside.open = None;
                return judged(asked, reply, at_terminal);
            }
            if given_up || self.stop.is_wanted() {
                inside.open = None;
                return nobody();
            }
        }
    }

    /// The person has enough.
    pub(crate) fn cancel(&self) {
        self.end(How::Now);
    }

    /// Ends it; whoever waits for an answer is woken.
    pub(crate) fn end(&self, how: How) {
        self.stop.want(how);
        drop(self.inside());
        self.changed.notify_all();
    }
}

impl Observer for Run {
    fn notice(&self, happened: Event) {
        let mut inside = self.inside();
        inside.last += 1;
        let (run, seq) = (self.number, inside.last);
        let message = event(wire::STREAM, &Told { run, seq, event: happened });
        inside.tell(&message);
        let size = message.to_bytes().len() + MESSAGE_BYTES;
        inside.bytes += size;
        inside.told.push_back((seq, size, message));
        while inside.bytes > KEPT_BYTES
            && let Some((_, size, _)) = inside.told.pop_front()
        {
            inside.bytes -= size;
        }
    }
}

impl Reviewer for Run {
    fn review(&self, question: &Question<'_>) -> Review {
        let mut count = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        let (id, asked) = (format!("review-{}", *count), Asked::of(question));
        self.notice(asked.event(&id));
        let review = self.ask(&id, &asked);
        self.notice(answered(id, &review));
        review
    }
}

/// What whoever watches is told of an answer.
fn answered(id: String, review: &Review) -> Event {
    let (approved, by, scope, words) = match review {
        Review::Approved { by, scope, .. } => (true, by, Some(*scope), None),
        Review::Refused { by, words } => (false, by, None, words.as_deref()),
    };
    let scope = scope.filter(|scope| *scope != Scope::Once).map(|scope| scope.name().to_owned());
    let words = words.map(|words| Excerpt::new(words, WORDS_TOLD).to_string());
    Event::ReviewAnswered { id, approved, by: by.clone(), scope, words }
}

/// A message that is not answered.
pub(crate) fn event(method: &str, params: &impl Serialize) -> Message {
    // Values of ours are texts, numbers and lists of them, which cannot fail to be written.
    let params = serde_json::to_value(params).unwrap_or(Value::Null);
    Message::Event { method: method.to_owned(), params }
}

fn ended(run: u64, end: &End) -> Message {
    let method = match end {
        End::Task(_) | End::Done(_) | End::Skill(_) | End::Plugin(_) | End::Chat(_) => {
            wire::COMPLETE
        }
        End::Error(_) => wire::ERROR,
    };
    event(method, &Ended { run, end: end.clone() })
}
