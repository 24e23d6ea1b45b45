//! The kernel itself: boots, answers, halts.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use fluffy_base::{
    Clock, Decision, Digest, IdSource, KernelId, KernelReceipt, KernelRequest, KernelState,
    ReceiptStatus, SessionId, Waiter, sanitised,
};
use fluffy_ledger::{
    Appended, Checkpoint, Detail, Entered, EventType, EvidenceBundle, Ledger, LedgerConfig,
    OpenReport, Origin, Record,
};
use fluffy_policy::{BuiltIn, Checked, Decided, Facts, Layer, Reason, Reasons, Subject, Verdict};

use crate::answer::{Answer, halted_text};
use crate::arbitration::{Arbiter, Circumstances, Permit, Ruling};
use crate::clerk::AtWork;
use crate::door::{Door, Held};
use crate::execution::{Outcome, execute};
use crate::grants::Grants;
use crate::narrate::{self, bounded};
use crate::policy_store::{InForce, PolicyStore};
use crate::policy_update::{self, PolicyUpdate};
use crate::review::Approved;
use crate::start::{HaltedSession, last_halted};
use crate::token_use::unspent;
use crate::validation::normalise;
use crate::walk::Walk;
use crate::{
    CallContext, Effect, Extensions, KernelConfig, KernelError, Registry, Reviewer, SessionStart,
    Variant, Witness,
};

/// The longest reason for a halt that is recorded, in characters.
const MAX_HALT_REASON: usize = 1000;
/// Why a yes does not count.
const CHANGED_MEANWHILE: &str = "the objections changed while the person looked at them";

/// The only door. Shared freely between threads.
pub struct Kernel {
    pub(crate) ledger: Ledger,
    origin: Origin,
    pub(crate) arbiter: Arbiter,
    pub(crate) registry: Arc<Registry>,
    pub(crate) policy: PolicyStore,
    pub(crate) policy_path: Option<PathBuf>,
    pub(crate) extensions: Box<dyn Extensions>,
    pub(crate) reviewer: Option<Box<dyn Reviewer>>,
    /// What a person agreed to for as long as the session lasts.
    pub(crate) grants: Grants,
    /// Held while the policy is replaced.
    pub(crate) updating: Mutex<()>,
    pub(crate) clock: Arc<dyn Clock>,
    waiter: Arc<dyn Waiter>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) witness: Arc<Witness>,
    pub(crate) door: Door,
}

/// A request after arbitration.
pub(crate) enum Judged {
    /// Answered.
    Answered(Pending),
    /// Allowed to run.
    Running(Running),
    /// A person has to be asked.
    Waiting(Box<Waiting>),
}

/// A request that waits for a person.
pub(crate) struct Waiting {
    pub(crate) request: KernelRequest,
    /// What the call acts on.
    pub(crate) subject: Subject,
    pub(crate) record: Record,
    pub(crate) decided: Decided,
    pub(crate) reasons: Reasons,
    /// What was in force when the objections were raised.
    pub(crate) policy: Arc<InForce>,
}

/// A receipt whose entry is on its way to the disk.
pub(crate) struct Pending {
    entered: Entered,
    receipt: KernelReceipt,
}

/// A call that is about to be made.
pub(crate) struct Running {
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
        let in_force =
            InForce::new(&config.policy, &*config.extensions).map_err(KernelError::Extensions)?;
        let kernel_id = config.kernel_id.or_else(|| KernelId::fresh(&*config.ids));
        let origin = Origin {
            kernel_id: kernel_id.ok_or(KernelError::NoRandomness)?,
            session_id: config.session.id(&*config.ids).ok_or(KernelError::NoRandomness)?,
            variant: variant.name(),
            mode: None,
            policy_digest: Some(in_force.digest),
            engine: env!("CARGO_PKG_VERSION"),
        };
        let layout = config.layout.clone();
        let ledger = Ledger::open(LedgerConfig {
            layout: config.layout,
            key: config.key,
            origin,
            clock: Arc::clone(&config.clock),
            retention: config.retention,
        })?;
        let grants = Grants::of(&config.session);
        let (halted, lifted) = match (config.session, last_halted(&layout)?) {
            (SessionStart::New, lifted) => (None, lifted),
            (SessionStart::Continue | SessionStart::Named(_), halted) => (halted, None),
        };
        let mut origin = ledger.origin().clone();
        if let Some(session) = &halted {
            origin.session_id = session.id.clone();
        }
        let mut registry = config.registry;
        registry.register(Box::new(PolicyUpdate))?;
        let registry = Arc::new(registry);
        let built_in = BuiltIn::new(config.kept);
        let arbiter = Arbiter::new(variant, built_in, Arc::clone(&registry), config.rules);
        let kernel = Self {
            ledger,
            origin,
            arbiter,
            registry,
            policy: PolicyStore::new(in_force),
            policy_path: config.policy_path,
            extensions: config.extensions,
            reviewer: config.reviewer,
            grants,
            updating: Mutex::new(()),
            clock: config.clock,
            waiter: config.waiter,
            ids: config.ids,
            witness: config.witness,
            door: Door::booting(),
        };
        kernel.start(halted)?;
        kernel.catch_up()?;
        if let Some(session) = lifted {
            kernel.record_new_session(&session)?;
        }
        if let Some(sessions) = config.sessions {
            crate::session::tidy(&kernel, &sessions);
        }
        Ok(kernel)
    }

    /// Where the kernel stands: booting, idle, halted, or the state of the request being judged.
    pub fn state(&self) -> KernelState {
        self.door.state()
    }

    /// What a person who is asked about a request should see beside it.
    pub(crate) fn notes(&self, request: &KernelRequest) -> Vec<String> {
        let call = request.tool_call.as_ref();
        let found = call.and_then(|call| Some((self.registry.find(&call.name)?, call)));
        found.map_or_else(Vec::new, |(found, call)| found.tool.notes(&call.params))
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
        self.submit_from(&CallContext::default(), request)
    }

    /// Answers a request of a sender of whom more is known.
    pub fn submit_from(&self, context: &CallContext, request: KernelRequest) -> KernelReceipt {
        let request = normalise(request);
        let sanitiser = Arc::clone(&self.policy.in_force().sanitiser);
        let mut record = narrate::asked(&request, &self.origin, &sanitiser, &*self.ids);
        narrate::sent_by(&mut record.detail, context, self.registry.tags(&request));
        let request_id = record.request_id.clone();
        let answered = match self.judge(context, request, record, None) {
            Ok(Judged::Waiting(waiting)) => self.review(context, *waiting),
            Ok(judged) => self.follow(judged),
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

    /// Digest of the policy in force.
    pub fn policy_digest(&self) -> Digest {
        self.policy.in_force().digest
    }

    /// What the ledger is now, signed and remembered.
    pub fn checkpoint(&self) -> Result<Checkpoint, KernelError> {
        Ok(self.ledger.signed_state()?)
    }

    /// Everything recorded so far, with what an outsider needs to verify it.
    pub fn export_evidence(&self) -> Result<EvidenceBundle, KernelError> {
        Ok(self.ledger.evidence(self.clock.now_ms())?)
    }

    /// Ends a kernel that others may know of in order. Who still uses it at this moment ends it.
    pub fn end_shared(kernel: Arc<Self>) -> Result<(), KernelError> {
        kernel.witness.leave();
        Arc::into_inner(kernel).map_or(Ok(()), Self::close)
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
        // What its rules run in ends before it, and is entered.
        self.policy.retire();
        let mut door = self.door.hold();
        if !door.close() {
            return Ok(());
        }
        self.tell_expired(self.clock.now_ms());
        self.enter_told(&door)?;
        let record = self.event(&door, EventType::KernelShutdown, "the kernel ends");
        self.settle_event(door, record).map(drop)
    }

    /// An event of the kernel's own that changes nothing about its state.
    pub(crate) fn event(&self, door: &Held<'_>, event: EventType, intent: &str) -> Record {
        let state = door.state();
        let detail = Detail::new(self.origin.clone(), event);
        let mut record = Record::event(self.clock.now_ms(), intent, (state, state), detail);
        if state == KernelState::Halted {
            record.decision = Decision::Halt;
        }
        record
    }

    /// Enters an event of the kernel's own and waits for the disk without holding the door.
    pub(crate) fn settle_event(
        &self,
        door: Held<'_>,
        record: Record,
    ) -> Result<Appended, KernelError> {
        let entered = self.ledger.enter(record);
        drop(door);
        Ok(self.ledger.settle(entered)?)
    }

    /// Judges a request and gives what it decides its place in the chain, in one step against a halt.
    pub(crate) fn judge(
        &self,
        context: &CallContext,
        request: KernelRequest,
        mut record: Record,
        approved: Option<Approved>,
    ) -> Result<Judged, KernelError> {
        let door = self.door.hold();
        let mut walk = door.admit()?;
        let answered = |pending: Pending| Ok(Judged::Answered(pending));
        if let Some(reason) = door.halted() {
            return self.enter(&door, walk, record, Answer::halted(reason)).and_then(answered);
        }
        let policy = self.policy.in_force();
        record.detail.origin.policy_digest = Some(policy.digest);
        let refuse = |walk, mut record: Record, decided: Decided| {
            narrate::judged(&mut record.detail, &decided);
            self.enter(&door, walk, record, Answer::denied(&decided)).and_then(answered)
        };
        if let Some(decided) = self.arbiter.objection(&Facts::new(&request, walk.origin())) {
            return refuse(walk, record, decided);
        }
        let subject = match self.subject(&request) {
            Ok(subject) => subject,
            Err(decided) => return refuse(walk, record, *decided),
        };
        door.step(&mut walk, KernelState::Arbitrating)?;
        let token = self.check_token(context, &policy, &request, &subject, &mut record.detail);
        let caller = self.caller(context, token.as_ref(), &request);
        let known = Circumstances { subject, caller, approved, grants: Some(&self.grants) };
        let (decided, ruling) = self.arbiter.judge(&policy, request, walk.origin(), &known);
        narrate::judged(&mut record.detail, &decided);
        match ruling {
            Ruling::Review(_) if known.approved.is_some() => {
                let answer = Answer::not_agreed(&decided, CHANGED_MEANWHILE);
                self.enter(&door, walk, record, answer).and_then(answered)
            }
            Ruling::Review(asked) if self.reviewer.is_some() => {
                let ((request, reasons), subject) = (*asked, known.subject);
                let waiting = Waiting { request, subject, record, decided, reasons, policy };
                Ok(Judged::Waiting(Box::new(waiting)))
            }
            Ruling::Refused | Ruling::Review(_) => {
                self.enter(&door, walk, record, Answer::denied(&decided)).and_then(answered)
            }
            Ruling::Accepted(approved) => {
                let agreed = |approved: &Approved| narrate::agreed(&mut record.detail, approved);
                approved.iter().for_each(agreed);
                self.enter(&door, walk, record, Answer::accepted()).and_then(answered)
            }
            Ruling::Permitted(permit, approved) => {
                let agreed = |approved: &Approved| narrate::agreed(&mut record.detail, approved);
                approved.iter().for_each(agreed);
                self.prepare(&door, walk, record, (permit, token))
            }
        }
    }

    /// What the call acts on, by the declaration of its tool.
    pub(crate) fn subject(&self, request: &KernelRequest) -> Result<Subject, Box<Decided>> {
        let Some(call) = &request.tool_call else { return Ok(Subject::default()) };
        // A tool that nobody registered is denied by a rule.
        let Some(tool) = self.registry.find(&call.name) else { return Ok(Subject::default()) };
        tool.subject(&call.params).map_err(|error| {
            let reason = Reason::new(Layer::Validation, "paths", &error.to_string());
            Box::new(Decided { verdict: Verdict::deny(reason), instead: None })
        })
    }

    /// Brings a judged request to its end.
    pub(crate) fn follow(&self, judged: Judged) -> Result<KernelReceipt, KernelError> {
        match judged {
            Judged::Answered(pending) => self.settle(pending),
            Judged::Running(running) => self.run(running),
            Judged::Waiting(waiting) => {
                let Waiting { record, decided, .. } = *waiting;
                self.answer_at_once(record, Answer::denied(&decided))
            }
        }
    }

    /// The last checks before a tool may run: its schema, and the record of the decision. A token is
    /// spent after them: a call that does not run takes nothing from its holder.
    fn prepare(
        &self,
        door: &Held<'_>,
        mut walk: Walk,
        mut record: Record,
        (permit, token): (Permit, Option<Checked>),
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
        // Nobody else spends while the door is held; should it fail, the token was not valid.
        if let Some(Err(refusal)) = token.map(|token| self.policy.tokens().spend(token)) {
            let decided = unspent(&refusal);
            narrate::judged(&mut record.detail, &decided);
            let answer = Answer::denied(&decided);
            return self.enter(door, walk, record, answer).map(Judged::Answered);
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
        let mode = record.detail.metadata.get(narrate::SESSION_MODE).map(String::as_str);
        let clerk = AtWork { kernel: self, request_id: &record.request_id, mode };
        let outcome = self.execute(permit, record.detail.origin.policy_digest, &clerk);
        let duration = self.clock.now_ms().saturating_sub(started);
        narrate::ran(&mut record.detail, &outcome, duration);
        let door = self.door.hold();
        let pending = self.enter(&door, walk, *record, Answer::ran(outcome))?;
        drop(door);
        self.settle(pending)
    }

    /// Runs a call that was judged under the policy of this digest.
    fn execute(&self, permit: Permit, judged_under: Option<Digest>, clerk: &AtWork<'_>) -> Outcome {
        let sanitiser = Arc::clone(&self.policy.in_force().sanitiser);
        if permit.tool() == policy_update::NAME {
            let replaced = self.replace_policy(permit.params(), judged_under);
            return Outcome::new(policy_update::NAME, replaced, &sanitiser);
        }
        execute(permit, &self.registry, &sanitiser, clerk, &*self.waiter)
    }

    fn refuse(&self, record: Record, why: &str) -> KernelReceipt {
        let request_id = record.request_id.clone();
        let answered = self.answer_at_once(record, Answer::malformed(why));
        answered.unwrap_or_else(|error| self.give_up(request_id, &error))
    }

    /// Answers a request that needs no arbitration, or no more of it.
    pub(crate) fn answer_at_once(
        &self,
        record: Record,
        answer: Answer,
    ) -> Result<KernelReceipt, KernelError> {
        let door = self.door.hold();
        let walk = door.admit()?;
        let pending = self.enter(&door, walk, record, answer)?;
        drop(door);
        self.settle(pending)
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
        self.enter_told(door)?;
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
pub fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
