//! Remembers what becomes of guests' sandboxes, and what any sandbox asks of the network.
//!
//! A policy host is made before there is a kernel, and again while the kernel decides; a model's process outlives the kernel of
//! one sentence of a conversation. So a witness is there as long as the process is: it has the kernel at work write down what it
//! is told, and keeps what cannot be written yet.
//!
//! **Invariant.** What was told is entered in the order in which it was told, under its own time, before the kernel's next
//! entry. What a kernel at work cannot write down is said to whoever told it, and does not happen.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use fluffy_base::{Clock, SystemClock};
use fluffy_ledger::EventType;
use fluffy_sandbox::proxy::{Decision, Ending, Record};
use fluffy_sandbox::{Sandbox, Watcher};

use crate::kernel::causes;
use crate::workshop::Life;
use crate::{Kernel, Note};

/// The most that is kept where no kernel is at work.
const MAX_WAITING: usize = 10_000;

/// The most requests of one sandbox that have entries of their own; the others are counted.
const MAX_TOLD: u64 = 1_000;

/// Who sees what becomes of guests. There is one for a process.
pub struct Witness {
    clock: Arc<dyn Clock>,
    /// The kernel at work. Held while it writes, so that whoever ends it does not find it in use.
    kernel: Mutex<Weak<Kernel>>,
    waiting: Mutex<VecDeque<Told>>,
}

/// Something that happened, and when.
#[derive(Debug, Clone)]
pub struct Told {
    /// When, in milliseconds since the epoch.
    pub ts_ms: u64,
    /// What.
    pub note: Note,
    /// Why it was refused, if it was.
    pub refused: Option<String>,
}

/// When what is told is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// Before it goes on, if a kernel is at work.
    Now,
    /// Before the kernel's next entry: whoever tells it may be asked by the kernel just now.
    Later,
}

/// A witness, and when it is told.
#[derive(Debug, Clone)]
pub struct Telling {
    witness: Arc<Witness>,
    when: When,
}

impl Default for Witness {
    fn default() -> Self {
        Self::new(Arc::new(SystemClock))
    }
}

impl Witness {
    /// A witness with this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, kernel: Mutex::default(), waiting: Mutex::default() }
    }

    /// This kernel is at work: it writes down what is told from now on.
    pub fn attend(&self, kernel: &Arc<Kernel>) {
        *self.kernel() = Arc::downgrade(kernel);
    }

    /// No kernel is at work any more.
    pub(crate) fn leave(&self) {
        *self.kernel() = Weak::new();
    }

    /// What waits for a kernel, in order.
    pub fn untold(&self) -> Vec<Told> {
        self.waiting().iter().cloned().collect()
    }

    /// All that waits, in order, for whoever writes it down.
    pub(crate) fn take(&self) -> VecDeque<Told> {
        std::mem::take(&mut *self.waiting())
    }

    /// Keeps it for the kernel's next entry.
    pub(crate) fn keep(&self, told: Told) {
        let mut waiting = self.waiting();
        // So much waits only where no kernel is ever started: a person lists models, again and again.
        if waiting.len() >= MAX_WAITING {
            waiting.pop_front();
        }
        waiting.push_back(told);
    }

    fn tell(&self, note: Note, refused: Option<String>, when: When) -> Result<(), String> {
        self.keep(Told { ts_ms: self.clock.now_ms(), note, refused });
        if when == When::Later {
            return Ok(());
        }
        let at = self.kernel();
        at.upgrade().map_or(Ok(()), |kernel| kernel.catch_up().map_err(|error| causes(&error)))
    }

    fn kernel(&self) -> MutexGuard<'_, Weak<Kernel>> {
        self.kernel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Told>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Witness").field("waiting", &self.waiting().len()).finish_non_exhaustive()
    }
}

impl Telling {
    /// What is told is written down before it goes on, if a kernel is at work.
    pub fn now(witness: &Arc<Witness>) -> Self {
        Self { witness: Arc::clone(witness), when: When::Now }
    }

    /// What is told is written down before the kernel's next entry: for those whom the kernel may be asking just now.
    pub fn later(witness: &Arc<Witness>) -> Self {
        Self { witness: Arc::clone(witness), when: When::Later }
    }

    /// Hears what a sandbox that is yet to be made will ask of the network.
    pub(crate) fn traffic(&self) -> Traffic {
        Traffic::new(Arc::clone(&self.witness))
    }

    /// Tells what becomes of a sandbox.
    pub(crate) fn life(&self, life: Life<'_>) -> Result<(), String> {
        self.witness.tell(life.note(), None, self.when)
    }
}

/// Has everything remembered that a sandbox asks of the network, before it is answered. Where that is not possible, the
/// sandbox is killed.
pub(crate) struct Traffic {
    witness: Arc<Witness>,
    sandbox: OnceLock<(String, Weak<dyn Sandbox>)>,
    more_passed: AtomicU64,
    more_refused: AtomicU64,
}

impl Traffic {
    /// What a sandbox that is yet to be made will ask.
    pub(crate) fn new(witness: Arc<Witness>) -> Self {
        let (more_passed, more_refused) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { witness, sandbox: OnceLock::new(), more_passed, more_refused }
    }

    /// It is this sandbox, which has not started yet.
    pub(crate) fn is_of(&self, sandbox: &Arc<dyn Sandbox>) {
        let _once = self.sandbox.set((sandbox.id().to_owned(), Arc::downgrade(sandbox)));
    }

    fn tell(&self, note: Note, refused: Option<String>) {
        let told = self.witness.tell(note, refused, When::Now);
        let sandbox = self.sandbox.get().and_then(|(_, sandbox)| sandbox.upgrade());
        if let (Err(_unwritten), Some(sandbox)) = (told, sandbox) {
            sandbox.kill();
        }
    }

    fn id(&self) -> String {
        self.sandbox.get().map(|(id, _)| id.clone()).unwrap_or_default()
    }
}

impl Watcher for Traffic {
    fn proxied(&self, record: &Record) {
        if record.request <= MAX_TOLD {
            let (note, refused) = note(record, self.id());
            return self.tell(note, refused);
        }
        match record.decision {
            Decision::Passed | Decision::Failed(_) => &self.more_passed,
            Decision::Refused(_) => &self.more_refused,
            // It was counted when it began.
            Decision::Closed(_) => return,
        }
        .fetch_add(1, Ordering::Relaxed);
    }
}

/// What was too much to be told one by one.
impl Drop for Traffic {
    fn drop(&mut self) {
        let [passed, refused] =
            [&mut self.more_passed, &mut self.more_refused].map(|it| *it.get_mut());
        if passed == 0 && refused == 0 {
            return;
        }
        let intent = format!("a sandbox asked {} times more of the network", passed + refused);
        let metadata = vec![
            ("sandbox", self.id()),
            ("passed", passed.to_string()),
            ("refused", refused.to_string()),
        ];
        self.tell(of(intent, metadata), None);
    }
}

/// One request as the ledger has it, and why it was refused.
fn note(record: &Record, sandbox: String) -> (Note, Option<String>) {
    let host = if record.host.is_empty() { "an unreadable host" } else { &record.host };
    let port = record.port.map(|port| format!(":{port}")).unwrap_or_default();
    let (did, became, refused) = match record.decision {
        Decision::Passed => ("reaches", "passed".to_owned(), None),
        Decision::Refused(why) => ("is kept from", "refused".to_owned(), Some(why.to_string())),
        Decision::Failed(why) => ("does not reach", format!("failed: {why}"), None),
        Decision::Closed(end) => ("leaves", format!("closed: {}", ended(end)), None),
    };
    let mut metadata = vec![
        ("sandbox", sandbox),
        ("request", record.request.to_string()),
        ("method", record.method.clone()),
        ("host", record.host.clone()),
        ("became", became),
    ];
    let optional = [
        ("port", record.port.map(|port| port.to_string())),
        ("address", record.address.map(|address| address.to_string())),
        ("server_name", record.server_name.clone()),
        ("bytes_up", (record.up > 0).then(|| record.up.to_string())),
        ("bytes_down", (record.down > 0).then(|| record.down.to_string())),
    ];
    metadata.extend(optional.into_iter().filter_map(|(name, text)| Some((name, text?))));
    (of(format!("a sandbox {did} {host}{port}"), metadata), refused)
}

fn ended(end: Ending) -> &'static str {
    match end {
        Ending::Complete => "both sides were done",
        Ending::Broken => "one side broke off",
        Ending::Idle => "nothing came for too long",
        Ending::Stopped => "the sandbox ended",
    }
}

fn of(intent: String, metadata: Vec<(&'static str, String)>) -> Note {
    let event = EventType::NetworkRequest;
    Note { event, intent, request_id: None, workflow_state: None, metadata, content: None }
}
