//! Verification, level *protocol*: the entries are in an order that a kernel produces.
//!
//! Bytes can be right and the story wrong: a result without a decision, an allowed request after a
//! halt, a number that does not count. Memory grows only with the effects that are under way.

use std::collections::HashMap;
use std::path::Path;

use fluffy_base::{Decision, Digest, KernelState};

use crate::archive_check::Books;
use crate::held::{Held, Part};
use crate::store::StoredEntry;
use crate::verify::MAX_FINDINGS;
use crate::{
    Category, DETAIL_VERSION, DetailView, EntryView, EventType, LedgerError, Located, Problem,
    VerifyingKey, verify_rotation,
};

/// What a verification of the protocol found.
#[derive(Debug, Default)]
pub struct ProtocolCheck {
    /// Everything that is wrong, in order.
    pub findings: Vec<Located>,
    /// Decisions whose effect has no recorded result: what a crash leaves.
    pub open_intents: Vec<u64>,
    /// How many sessions there are.
    pub sessions: u64,
    /// Details that were withheld and could not be checked.
    pub withheld: u64,
    /// What the entries say about archives.
    pub(crate) books: Books,
}

/// Verifies the order of events of a stored segment.
pub fn verify_protocol(path: &Path) -> Result<ProtocolCheck, LedgerError> {
    let held = Held::open(path)?;
    let mut checker = Checker::default();
    for part in held.parts(u64::MAX) {
        let mut judge = |stored: &StoredEntry<'_>| {
            checker.entry(stored.seq, &stored.columns, Some(stored.detail));
            Ok(())
        };
        match part {
            Part::Rows(range) => held.rows(range, &mut judge)?,
            Part::Archived(file) => {
                match held.lines(&file, &mut |line| judge(&line.stored()).map(|()| true)) {
                    // What is wrong with an archive is found where archives are verified.
                    Err(LedgerError::Archive { .. }) => checker.pass_over(file.name.last + 1),
                    judged => drop(judged?),
                }
            }
            Part::Gone(range) => checker.pass_over(range.end),
        }
    }
    Ok(checker.finish())
}

/// Reads entries in order and remembers what it has to.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    check: ProtocolCheck,
    next: u64,
    kernel_id: Option<String>,
    session: Option<Session>,
    /// Entries below this number may be unknown: their archive is gone.
    unknown_to: u64,
    /// The key in force, as far as the entries that tell it were not withheld.
    key: Option<VerifyingKey>,
    /// Decisions whose result is still to come: by number, the request and the tool.
    open: HashMap<u64, (String, Option<String>, Option<Digest>)>,
}

#[derive(Debug)]
struct Session {
    id: String,
    halted: bool,
}

impl Checker {
    /// Judges one entry; `None` for a detail that was withheld.
    pub(crate) fn entry(&mut self, seq: u64, entry: &EntryView<'_>, detail: Option<&[u8]>) {
        if seq != self.next {
            self.find(seq, format!("number {} should stand here", self.next));
        }
        self.next = seq + 1;
        self.states(seq, entry);
        match detail.map(DetailView::parse) {
            None => {
                self.check.withheld += 1;
                self.key = None;
            }
            Some(Err(error)) => self.find(seq, format!("the detail is not readable: {error}")),
            Some(Ok(detail)) => self.detail(seq, entry, &detail),
        }
    }

    /// Goes on at `next`; what lies before it is not known.
    fn pass_over(&mut self, next: u64) {
        (self.next, self.unknown_to) = (next, next);
        (self.session, self.key) = (None, None);
    }

    pub(crate) fn finish(mut self) -> ProtocolCheck {
        self.check.open_intents.extend(self.open.into_keys());
        self.check.open_intents.sort_unstable();
        self.check
    }

    fn states(&mut self, seq: u64, entry: &EntryView<'_>) {
        use KernelState::{Booting, Halted, Idle};
        let from = KernelState::from_name(entry.state_from);
        let to = KernelState::from_name(entry.state_to);
        let decision = Decision::from_name(entry.decision);
        let (Some(from), Some(to), Some(decision)) = (from, to, decision) else {
            return self.find(seq, "a state or decision is not one of a kernel's".to_owned());
        };
        let legal = match (from, to) {
            (Booting, Booting | Idle) | (Idle, Idle) => decision != Decision::Halt,
            (_, Halted) => decision == Decision::Halt,
            _ => false,
        };
        if !legal {
            self.find(seq, format!("no kernel goes from {from} to {to} with {decision}"));
        }
    }

    fn detail(&mut self, seq: u64, entry: &EntryView<'_>, detail: &DetailView<'_>) {
        if detail.v != DETAIL_VERSION || detail.seq != seq {
            self.find(seq, format!("the detail is of entry {}, version {}", detail.seq, detail.v));
        }
        let kernel = self.kernel_id.get_or_insert_with(|| detail.kernel_id.clone().into_owned());
        if *kernel != detail.kernel_id {
            self.find(seq, "the entry is of another kernel".to_owned());
        }
        match EventType::from_name(&detail.event) {
            None => self.find(seq, "the event is not a known one".to_owned()),
            Some(event) => {
                self.check.books.note(event, detail);
                self.key(seq, event, detail);
                self.session(seq, event, entry, detail);
                self.effects(seq, event, entry, detail);
            }
        }
    }

    /// The key is named by the first entry, and from then on every key by the one before it.
    fn key(&mut self, seq: u64, event: EventType, detail: &DetailView<'_>) {
        let named = |key: &str| detail.metadata.get(key).map(|value| &**value);
        if seq == 0 {
            self.key = named("public_key").and_then(|key| key.parse().ok());
        } else if event == EventType::KeyRotation {
            let Some(old) = &self.key else { return };
            match verify_rotation(named("rotation").unwrap_or_default(), old) {
                Ok(new) => self.key = Some(new),
                Err(error) => self.find(seq, format!("the key was not handed over: {error}")),
            }
        }
    }

    /// Sessions begin with a start, and nothing is allowed after a halt.
    fn session(
        &mut self,
        seq: u64,
        event: EventType,
        entry: &EntryView<'_>,
        detail: &DetailView<'_>,
    ) {
        match event {
            EventType::KernelStart => {
                let resumed = self.session.as_ref().filter(|s| s.id == detail.session_id);
                let halted = resumed.is_some_and(|session| session.halted);
                self.check.sessions += u64::from(resumed.is_none());
                self.session = Some(Session { id: detail.session_id.clone().into_owned(), halted });
                return;
            }
            EventType::AuditChainBreak | EventType::StateTransition if seq == 0 => return,
            // The ledger's own: one that was interrupted is finished before the next session.
            EventType::KeyRotation => return,
            _ if event.category() == Category::Storage => return,
            _ => {}
        }
        let Some(session) = &mut self.session else {
            if self.unknown_to > 0 {
                return;
            }
            return self.find(seq, "the entry belongs to no session".to_owned());
        };
        let (same, was_halted) = (session.id == detail.session_id, session.halted);
        session.halted |= event == EventType::KernelHalt;
        if !same {
            self.find(seq, "the entry belongs to another session".to_owned());
        }
        let request = matches!(event, EventType::Syscall | EventType::ToolExecute);
        if was_halted && request && entry.decision != Decision::Halt.name() {
            self.find(seq, "a request was answered after the halt".to_owned());
        }
    }

    /// Every result has its decision, once, for the same request, tool and parameters.
    fn effects(
        &mut self,
        seq: u64,
        event: EventType,
        entry: &EntryView<'_>,
        detail: &DetailView<'_>,
    ) {
        let what = || {
            let tool = entry.tool_name.map(str::to_owned);
            (entry.request_id.to_owned(), tool, entry.params_hash)
        };
        let denied = entry.decision == Decision::Deny.name();
        match event {
            EventType::ToolExecute if denied => {
                self.find(seq, "an effect was started that was not allowed".to_owned());
            }
            EventType::ToolExecute => {
                self.open.insert(seq, what());
            }
            EventType::ToolResult => {
                let decision = detail.decision_seq.and_then(|seq| self.open.remove(&seq));
                match decision {
                    None if detail.decision_seq.is_some_and(|seq| seq < self.unknown_to) => {}
                    None => self.find(seq, "a result without a decision of its own".to_owned()),
                    Some(decided) if decided != what() => {
                        self.find(seq, "a result for something else than was allowed".to_owned());
                    }
                    Some(_) => {}
                }
            }
            EventType::Syscall
                if denied
                    && detail.policy_decision.as_deref() == Some("allowed")
                    && entry.error.is_none() =>
            {
                self.find(seq, "a refusal without a reason".to_owned());
            }
            _ => {}
        }
    }

    fn find(&mut self, seq: u64, text: String) {
        if self.check.findings.len() < MAX_FINDINGS {
            self.check.findings.push(Located::at(seq, Problem::Protocol(text)));
        }
    }
}
