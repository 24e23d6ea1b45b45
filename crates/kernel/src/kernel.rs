//! The kernel itself: boots, answers, halts.

use std::path::Path;
use std::sync::Arc;

use fluffy_base::{
    Clock, Decision, IdSource, KernelId, KernelReceipt, KernelRequest, KernelState, ReceiptStatus,
    SessionId, sanitised,
};
use fluffy_ledger::{
    Appended, Detail, Entered, EventType, EvidenceBundle, Ledger, LedgerConfig, OpenReport, Origin,
    Record,
};
use fluffy_policy::Facts;

use crate::answer::{Answer, halted_text};
use crate::arbitration::{Arbiter, Permit, Ruling};
use crate::door::{Door, Held};
use crate::execution::execute;
use crate::narrate::{self, bounded};
use crate::session::{HaltedSession, last_halted};
use crate::validation::normalise;
use crate::walk::Walk;
use crate::{Effect, KernelConfig, KernelError, Registry, SessionStart, Variant};

/// The longest reason for a halt that is recorded, in characters.
const MAX_HALT_REASON: usize = 1000;

/// The only door. Shared freely between threads.
pub struct Kernel {
    ledger: Ledger,
    origin: Origin,
    arbiter: Arbiter,
    registry: Arc<Registry>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    door: Door,
}

/// A request after arbitration.
enum Judged {
    /// Answered.
    Answered(Pending),
    /// Allowed to run.
    Running(Running),
}

/// A receipt whose entry is on its way to the disk.
struct Pending {
    entered: Entered,
    receipt: KernelReceipt,
}

/// A call that is about to be made.
struct Running {
    permit: Permit,
    walk: Walk,
    /// What will be entered when it is done.
    record: Box<Record>,
    /// The decision, where it must be on disk first.
    decision: Option<Entered>,
}

impl Kernel {
    /// Boots a kernel on its ledger: opened, checked, and with the start recorded.
    pub fn boot(config: KernelConfig) -> Result<Self, KernelError> {
        let variant: Arc<dyn Variant> = config.variant.into();
        let kernel_id = config.kernel_id.or_else(|| KernelId::fresh(&*config.ids));
        let origin = Origin {
            kernel_id: kernel_id.ok_or(KernelError::NoRandomness)?,
            session_id: SessionId::fresh(&*config.ids).ok_or(KernelError::NoRandomness)?,
            variant: variant.name(),
            mode: None,
            policy_digest: Some(config.policy.digest()),
            engine: env!("CARGO_PKG_VERSION"),
        };
        let layout = config.layout.clone();
        let ledger = Ledger::open(LedgerConfig {
            layout: config.layout,
            key: config.key,
            origin,
            clock: Arc::clone(&config.clock),
        })?;
        let (halted, lifted) = match (config.session, last_halted(&layout)?) {
            (SessionStart::New, lifted) => (None, lifted),
            (SessionStart::Continue, halted) => (halted, None),
        };
        let mut origin = ledger.origin().clone();
        if let Some(session) = &halted {
            origin.session_id = session.id.clone();
        }
        let registry = Arc::new(config.registry);
        let jurisdiction = config.policy.jurisdiction().clone();
        let arbiter = Arbiter::new(variant, jurisdiction, Arc::clone(&registry), config.rules);
        let (clock, ids, door) = (config.clock, config.ids, Door::booting());
        let kernel = Self { ledger, origin, arbiter, registry, clock, ids, door };
        kernel.start(halted)?;
        if let Some(session) = lifted {
            kernel.record_new_session(&session)?;
        }
        Ok(kernel)
    }

    /// Where the kernel stands: booting, idle, halted, or the state of the request being judged.
    pub fn state(&self) -> KernelState {
        self.door.state()
    }

    /// What opening the ledger found.
    pub fn ledger_report(&self) -> &OpenReport {
        self.ledger.report()
    }

    /// The session that entries are recorded under.
    pub fn session_id(&self) -> &SessionId {
        &self.origin.session_id
    }

    /// Answers a request.
    pub fn submit(&self, request: KernelRequest) -> KernelReceipt {
        let request = normalise(request);
        let record = narrate::asked(&request, &self.origin, &*self.ids);
        let request_id = record.request_id.clone();
        let answered = match self.judge(request, record) {
            Ok(Judged::Answered(pending)) => self.settle(pending),
            Ok(Judged::Running(running)) => self.run(running),
            Err(error) => Err(error),
        };
        answered.unwrap_or_else(|error| self.give_up(request_id, &error))
    }

    /// Answers a request as JSON. What is no request is refused, recorded and answered as well.
    pub fn submit_json(&self, text: &[u8]) -> KernelReceipt {
        match KernelRequest::parse(text) {
            Ok(request) => self.submit(request),
            Err(error) => {
                let id = error.request_id.as_deref();
                let record = narrate::unreadable(id, text, &self.origin, &*self.ids);
                self.refuse(record, &error.to_string())
            }
        }
    }

    /// Refuses a request that was too large to be read; `why` is all that is known of it.
    pub fn refuse_unread(&self, why: &str) -> KernelReceipt {
        self.refuse(narrate::unread(&self.origin), why)
    }

    /// Ends the session for good: recorded at once, and nothing is allowed afterwards. A kernel that
    /// is halted already keeps its first reason and answers with a [`KernelError::State`].
    pub fn halt(&self, reason: &str) -> Result<Appended, KernelError> {
        let reason = bounded(&sanitised(reason), MAX_HALT_REASON);
        let mut door = self.door.hold();
        let from = door.state();
        door.halt(reason.clone())?;
        let detail = Detail::new(self.origin.clone(), EventType::KernelHalt);
        let states = (from, KernelState::Halted);
        let mut record = Record::event(self.clock.now_ms(), &reason, states, detail);
        record.request_id = "HALT".to_owned();
        record.decision = Decision::Halt;
        self.settle_event(door, record)
    }

    /// Replaces the ledger's signing key, whose file is at `path`, by the one of a fresh `seed`. The
    /// rotation is an entry that both keys signed.
    pub fn rotate_key(&self, path: &Path, seed: [u8; 32]) -> Result<Appended, KernelError> {
        let record =
            self.event(&self.door.hold(), EventType::KeyRotation, "the signing key was replaced");
        Ok(self.ledger.rotate_key(path, seed, record)?)
    }

    /// Everything recorded so far, with what an outsider needs to verify it.
    pub fn export_evidence(&self) -> Result<EvidenceBundle, KernelError> {
        Ok(self.ledger.evidence(self.clock.now_ms())?)
    }

    /// Ends in order: the end is recorded, the ledger signed and closed.
    pub fn close(mut self) -> Result<(), KernelError> {
        self.end()?;
        Ok(self.ledger.close()?)
    }

    fn start(&self, halted: Option<HaltedSession>) -> Result<(), KernelError> {
        let mut door = self.door.hold();
        let from = door.state();
        let reason = halted.map(|session| session.reason);
        match &reason {
            None => door.open()?,
            Some(reason) => door.halt(reason.clone())?,
        }
        let mut detail = Detail::new(self.origin.clone(), EventType::KernelStart);
        detail.metadata.insert("segment", self.ledger.report().segment.to_string());
        let states = (from, door.state());
        let mut record = Record::event(self.clock.now_ms(), "the kernel starts", states, detail);
        if let Some(reason) = &reason {
            record.decision = Decision::Halt;
            record.error = Some(halted_text(reason));
        }
        self.settle_event(door, record).map(drop)
    }

    /// A person decided to go on after a halt.
    fn record_new_session(&self, halted: &HaltedSession) -> Result<(), KernelError> {
        let door = self.door.hold();
        let intent = "a new session after the halt";
        let mut record = self.event(&door, EventType::HumanDecision, intent);
        record.detail.metadata.insert("halted_session", halted.id.to_string());
        record.detail.metadata.insert("halt_reason", halted.reason.clone());
        self.settle_event(door, record).map(drop)
    }

    fn end(&self) -> Result<(), KernelError> {
        let mut door = self.door.hold();
        if !door.close() {
            return Ok(());
        }
        let record = self.event(&door, EventType::KernelShutdown, "the kernel ends");
        self.settle_event(door, record).map(drop)
    }

    /// An event of the kernel's own that changes nothing about its state.
    fn event(&self, door: &Held<'_>, event: EventType, intent: &str) -> Record {
        let state = door.state();
        let detail = Detail::new(self.origin.clone(), event);
        let mut record = Record::event(self.clock.now_ms(), intent, (state, state), detail);
        if state == KernelState::Halted {
            record.decision = Decision::Halt;
        }
        record
    }

    /// Enters an event of the kernel's own and waits for the disk without holding the door.
    fn settle_event(&self, door: Held<'_>, record: Record) -> Result<Appended, KernelError> {
        let entered = self.ledger.enter(record);
        drop(door);
        Ok(self.ledger.settle(entered)?)
    }

    /// Judges a request and gives what it decides its place in the chain, in one step against a halt.
    fn judge(&self, request: KernelRequest, mut record: Record) -> Result<Judged, KernelError> {
        let door = self.door.hold();
        let mut walk = door.admit()?;
        let answered = |pending: Pending| Ok(Judged::Answered(pending));
        if let Some(reason) = door.halted() {
            return self.enter(&door, walk, record, Answer::halted(reason)).and_then(answered);
        }
        let facts = Facts { request: &request, state: walk.origin() };
        if let Some(decided) = self.arbiter.objection(&facts) {
            narrate::judged(&mut record.detail, &decided);
            return self.enter(&door, walk, record, Answer::denied(&decided)).and_then(answered);
        }
        door.step(&mut walk, KernelState::Arbitrating)?;
        let (decided, ruling) = self.arbiter.judge(request, walk.origin());
        narrate::judged(&mut record.detail, &decided);
        match ruling {
            Ruling::Refused => {
                self.enter(&door, walk, record, Answer::denied(&decided)).and_then(answered)
            }
            Ruling::Accepted => {
                self.enter(&door, walk, record, Answer::accepted()).and_then(answered)
            }
            Ruling::Permitted(permit) => self.prepare(&door, walk, record, permit),
        }
    }

    /// The last checks before a tool may run: its schema, and the record of the decision.
    fn prepare(
        &self,
        door: &Held<'_>,
        mut walk: Walk,
        mut record: Record,
        permit: Permit,
    ) -> Result<Judged, KernelError> {
        let unfit = |walk, mut record: Record, text: &str| {
            let answer = Answer::unfit(text);
            narrate::unfit(&mut record.detail, answer.error.as_deref());
            self.enter(door, walk, record, answer).map(Judged::Answered)
        };
        let name = permit.tool();
        let Some(tool) = self.registry.find(name) else {
            // Arbitration denies what is not registered; should it ever not, nothing runs.
            return unfit(walk, record, "the tool is not registered");
        };
        if let Some(objections) = tool.objections(permit.params()) {
            let text = format!("Invalid parameters for tool '{name}': {objections}");
            return unfit(walk, record, &text);
        }
        door.step(&mut walk, KernelState::Executing)?;
        Ok(Judged::Running(match tool.effect() {
            Effect::None => Running { permit, walk, record: Box::new(record), decision: None },
            Effect::Some => {
                let result = Box::new(narrate::result_of(&mut record));
                let decision = Some(self.enter_decision(record));
                Running { permit, walk, record: result, decision }
            }
        }))
    }

    /// Enters that an effect is about to start.
    fn enter_decision(&self, mut record: Record) -> Entered {
        record.ts_ms = self.clock.now_ms();
        record.decision = Decision::Allow;
        record.detail.event = EventType::ToolExecute;
        self.ledger.enter(record)
    }

    /// Makes a call. A decision that must be on disk first is waited for; a halt until then comes
    /// first as well, and one that comes while the tool runs keeps its result back.
    fn run(&self, running: Running) -> Result<KernelReceipt, KernelError> {
        let Running { permit, walk, mut record, decision } = running;
        if let Some(entered) = decision {
            record.detail.decision_seq = Some(self.ledger.settle(entered)?.seq);
        }
        let started = self.clock.now_ms();
        let door = self.door.hold();
        if let Some(reason) = door.halted() {
            let pending = self.enter(&door, walk, *record, Answer::halted(reason))?;
            drop(door);
            return self.settle(pending);
        }
        drop(door);
        let outcome = execute(permit, &self.registry);
        let duration = self.clock.now_ms().saturating_sub(started);
        narrate::ran(&mut record.detail, &outcome, duration);
        let door = self.door.hold();
        let pending = self.enter(&door, walk, *record, Answer::ran(outcome))?;
        drop(door);
        self.settle(pending)
    }

    fn refuse(&self, record: Record, why: &str) -> KernelReceipt {
        let request_id = record.request_id.clone();
        let door = self.door.hold();
        let entered =
            door.admit().and_then(|walk| self.enter(&door, walk, record, Answer::malformed(why)));
        drop(door);
        let answered = entered.and_then(|pending| self.settle(pending));
        answered.unwrap_or_else(|error| self.give_up(request_id, &error))
    }

    /// Ends a request's walk with its entry. Whoever holds the door sees whether a halt came first,
    /// and then it is a halt that is entered and answered.
    fn enter(
        &self,
        door: &Held<'_>,
        walk: Walk,
        mut record: Record,
        answer: Answer,
    ) -> Result<Pending, KernelError> {
        let answer = match door.halted() {
            Some(reason) => answer.overtaken(reason, record.detail.event),
            None => answer,
        };
        let walked = door.end(walk)?;
        record.ts_ms = self.clock.now_ms();
        record.decision = answer.decision;
        record.state_from = walked.from();
        record.state_to = walked.to();
        record.error.clone_from(&answer.error);
        let receipt = KernelReceipt {
            request_id: record.request_id.clone(),
            status: answer.status,
            decision: answer.decision,
            state_from: walked.from(),
            state_to: walked.to(),
            ts_ms: record.ts_ms,
            tool_result: answer.tool_result,
            error: answer.error,
            rule: record.detail.rule.clone(),
            evidence_hash: None,
            entry: None,
        };
        Ok(Pending { entered: self.ledger.enter(record), receipt })
    }

    /// Waits for the entry and completes the receipt.
    fn settle(&self, pending: Pending) -> Result<KernelReceipt, KernelError> {
        let Appended { seq, entry_hash } = self.ledger.settle(pending.entered)?;
        Ok(KernelReceipt { evidence_hash: Some(entry_hash), entry: Some(seq), ..pending.receipt })
    }

    /// What could not be recorded is refused, and so is everything after it.
    fn give_up(&self, request_id: String, error: &KernelError) -> KernelReceipt {
        let mut door = self.door.hold();
        let state_from = door.state();
        let reason = door.give_up(causes(error));
        KernelReceipt {
            request_id,
            status: ReceiptStatus::Rejected,
            decision: Decision::Halt,
            state_from,
            state_to: KernelState::Halted,
            ts_ms: self.clock.now_ms(),
            tool_result: None,
            error: Some(halted_text(&reason)),
            rule: None,
            evidence_hash: None,
            entry: None,
        }
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // Whoever wants to hear of errors calls `close`.
        drop(self.end());
    }
}

/// An error with all its causes.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
