//! Verification, level *protocol*: the entries are in an order that a kernel produces.
//!
//! Bytes can be right and the story wrong: a result without a decision, an allowed request after a
//! halt, a number that does not count. Memory grows only with the effects that are under way.

use std::collections::HashMap;
use std::path::Path;

use fluffy_base::{Decision, Digest, KernelState};

use crate::store::{self, ENTRY_COLUMNS, StoredEntry};
use crate::verify::MAX_FINDINGS;
use crate::{
    DETAIL_VERSION, DetailView, EntryView, EventType, LedgerError, Located, Problem, VerifyingKey,
    verify_rotation,
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
}

/// Verifies the order of events of a stored segment.
pub fn verify_protocol(path: &Path) -> Result<ProtocolCheck, LedgerError> {
    let connection = store::open_reader(path)?;
    let reading = LedgerError::database;
    let mut statement = connection
        .prepare(&format!("SELECT {ENTRY_COLUMNS} FROM entries ORDER BY seq"))
        .map_err(reading("reading"))?;
    let mut rows = statement.query([]).map_err(reading("reading"))?;
    let mut checker = Checker::default();
    while let Some(row) = rows.next().map_err(reading("reading"))? {
        let stored = StoredEntry::from_row(row)?;
        checker.entry(stored.seq, &stored.columns, Some(stored.detail));
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
            _ => {}
        }
        let Some(session) = &mut self.session else {
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
