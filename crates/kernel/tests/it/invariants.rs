//! The ten invariants, each under random sequences of requests.

use fluffy_base::{Decision, KernelReceipt, KernelRequest, KernelState, ReceiptStatus};
use fluffy_kernel::{Kernel, Permissive, ToolError};
use fluffy_ledger::{EvidenceBundle, StoredRecord};
use proptest::prelude::*;

use crate::lab::{
    ALLOWED, DENIED, FAILED, HALTED, Lab, POLICY, Probe, Runs, UNFIT, call, detail, echo, ends,
};

/// Something that happens to a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Read,
    Effect,
    ReadFails,
    EffectFails,
    EffectCrashes,
    Spoken,
    SpokenWithEvidence,
    Stranger,
    UnknownTool,
    BadParams,
    Blank,
    NoId,
    NotJson,
    UnknownField,
    Unread,
    Halt,
}

use Step::{
    BadParams, Blank, Effect, EffectCrashes, EffectFails, Halt, NoId, NotJson, Read, ReadFails,
    Spoken, SpokenWithEvidence, Stranger, UnknownField, UnknownTool, Unread,
};

/// Every step but the halt.
const REQUESTS: [Step; 15] = [
    Read,
    Effect,
    ReadFails,
    EffectFails,
    EffectCrashes,
    Spoken,
    SpokenWithEvidence,
    Stranger,
    UnknownTool,
    BadParams,
    Blank,
    NoId,
    NotJson,
    UnknownField,
    Unread,
];

impl Step {
    /// How a kernel that is not halted answers.
    fn expected(self) -> (Decision, ReceiptStatus) {
        match self {
            Read | Effect | SpokenWithEvidence => ALLOWED,
            ReadFails | EffectFails | EffectCrashes => FAILED,
            BadParams => UNFIT,
            Spoken | Stranger | UnknownTool | Blank | NoId | NotJson | UnknownField | Unread => {
                DENIED
            }
            Halt => HALTED,
        }
    }

    fn runs(self) -> bool {
        matches!(self, Read | Effect | ReadFails | EffectFails | EffectCrashes)
    }

    /// How many entries it makes.
    fn entries(self) -> usize {
        if matches!(self, Effect | EffectFails | EffectCrashes) { 2 } else { 1 }
    }

    fn request(self) -> Option<KernelRequest> {
        let spoken = KernelRequest::intent_only("r", "alice", "a plan");
        Some(match self {
            Read => call("r", "read", r#"{"n":1}"#),
            Effect => call("r", "touch", r#"{"n":2}"#),
            ReadFails => call("r", "read.fails", "{}"),
            EffectFails => call("r", "touch.fails", "{}"),
            EffectCrashes => call("r", "touch.crashes", "{}"),
            Spoken => spoken,
            SpokenWithEvidence => KernelRequest { evidence: Some("e".to_owned()), ..spoken },
            Stranger => KernelRequest { actor: "mallory".to_owned(), ..echo("r") },
            UnknownTool => call("r", "nope", "{}"),
            BadParams => call("r", "touch", r#"{"colour":"red"}"#),
            Blank => KernelRequest { intent: "\u{200b}".to_owned(), ..echo("r") },
            NoId => KernelRequest { request_id: String::new(), ..echo("r") },
            NotJson | UnknownField | Unread | Halt => return None,
        })
    }

    /// The receipt; `None` for a halt, which has none.
    fn take(self, kernel: &Kernel) -> Option<KernelReceipt> {
        match (self, self.request()) {
            (_, Some(request)) => Some(kernel.submit(request)),
            (NotJson, None) => Some(kernel.submit_json(b"{\"a\":")),
            (UnknownField, None) => Some(kernel.submit_json(br#"{"request_id":"r","x":1}"#)),
            (Unread, None) => Some(kernel.refuse_unread("too long")),
            (_, None) => {
                // A second halt is an error and changes nothing.
                let _ = kernel.halt("by the test");
                None
            }
        }
    }
}

fn tools(runs: &Runs) -> Vec<Probe> {
    let (first, second, third) = (runs.clone(), runs.clone(), runs.clone());
    let failed = || Err(ToolError("not today".to_owned()));
    vec![
        runs.pure("read"),
        runs.effect("touch"),
        Probe::pure("read.fails", move |_| {
            first.add();
            failed()
        }),
        Probe::effect("touch.fails", move |_| {
            second.add();
            failed()
        }),
        Probe::effect("touch.crashes", move |_| {
            third.add();
            panic!("on purpose")
        }),
    ]
}

/// One step as it went.
struct Taken {
    step: Step,
    /// Whether a halt came before.
    after_halt: bool,
    receipt: Option<KernelReceipt>,
    /// State of the kernel afterwards.
    state: KernelState,
    /// How many entries there were before and after.
    entries: (usize, usize),
    /// How many tools ran.
    runs: u64,
}

/// A whole run.
struct Played {
    lab: Lab,
    taken: Vec<Taken>,
    entries: Vec<StoredRecord>,
    bundle: EvidenceBundle,
}

fn play(steps: &[Step]) -> Played {
    play_under(POLICY, steps)
}

fn play_under(policy: &str, steps: &[Step]) -> Played {
    let (lab, runs) = (Lab::new(), Runs::default());
    let mut config = lab.config_with(policy, tools(&runs));
    if policy != POLICY {
        config.variant = Box::new(Permissive);
    }
    let kernel = Kernel::boot(config).unwrap();
    let (mut taken, mut halted, mut before) = (Vec::new(), false, lab.entries().len());
    for step in steps.iter().copied() {
        let ran = runs.count();
        let receipt = step.take(&kernel);
        let after = lab.entries().len();
        taken.push(Taken {
            step,
            after_halt: halted,
            receipt,
            state: kernel.state(),
            entries: (before, after),
            runs: runs.count() - ran,
        });
        before = after;
        halted |= step == Halt;
    }
    let bundle = kernel.export_evidence().unwrap();
    kernel.close().unwrap();
    let entries = lab.entries();
    Played { lab, taken, entries, bundle }
}

/// Sequences in which a halt is rare.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        30 => prop::sample::select(REQUESTS.as_slice()),
        1 => Just(Halt),
    ];
    prop::collection::vec(step, 1..16)
}

/// Sequences with a halt in them.
fn halted_steps() -> impl Strategy<Value = Vec<Step>> {
    (steps(), steps()).prop_map(|(before, after)| [before, vec![Halt], after].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn inv_state_the_kernel_is_idle_between_requests_or_halted(steps in halted_steps()) {
        for taken in play(&steps).taken {
            let halted = taken.after_halt || taken.step == Halt;
            let expected = if halted { KernelState::Halted } else { KernelState::Idle };
            prop_assert_eq!(taken.state, expected);
            if let Some(receipt) = taken.receipt {
                prop_assert_eq!((receipt.state_from, receipt.state_to), (expected, expected));
            }
        }
    }

    #[test]
    fn inv_transition_entries_follow_each_other_as_the_states_do(steps in halted_steps()) {
        use KernelState::{Booting, Halted, Idle};
        let mut at = Booting;
        for record in play(&steps).entries {
            let (from, to) = (record.entry.state_from, record.entry.state_to);
            prop_assert_eq!(from, at, "entry {}", record.entry.seq);
            let known = [(Booting, Booting), (Booting, Idle), (Idle, Idle), (Idle, Halted), (Halted, Halted)];
            prop_assert!(known.contains(&(from, to)), "{from} to {to}");
            at = to;
        }
    }

    #[test]
    fn inv_jurisdiction_nobody_gets_what_the_policy_does_not_give(steps in steps()) {
        let policy = "version: 1\njurisdiction:\n  allowed_actors: [alice]\n  allowed_tools: [read]\n";
        let played = play_under(policy, &steps);
        for taken in &played.taken {
            let allowed = taken.receipt.as_ref().is_some_and(|r| r.decision == Decision::Allow);
            if allowed {
                // The permissive variant lets intents stand alone.
                prop_assert!(matches!(taken.step, Read | Spoken | SpokenWithEvidence));
            }
            prop_assert_eq!(taken.runs, u64::from(allowed && taken.step == Read));
        }
        for record in played.entries.iter().filter(|r| r.entry.decision == Decision::Allow) {
            let entry = &record.entry;
            prop_assert!(["alice", "SYSTEM"].contains(&entry.actor.as_str()));
            prop_assert!(entry.tool_name.as_deref().is_none_or(|tool| tool == "read"));
        }
    }

    #[test]
    fn inv_audit_every_request_is_recorded_and_its_receipt_names_the_entry(steps in halted_steps()) {
        let played = play(&steps);
        for taken in &played.taken {
            let added = taken.entries.1 - taken.entries.0;
            let expected = match taken.step {
                Halt => usize::from(!taken.after_halt),
                _ if taken.after_halt => 1,
                step => step.entries(),
            };
            prop_assert_eq!(added, expected, "{:?}", taken.step);
            let Some(receipt) = &taken.receipt else { continue };
            let record = &played.entries[taken.entries.1 - 1];
            prop_assert_eq!(receipt.evidence_hash, Some(record.entry.entry_hash));
            prop_assert_eq!(receipt.entry, Some(record.entry.seq));
            prop_assert_eq!(receipt.decision, record.entry.decision);
            prop_assert_eq!(&receipt.error, &record.entry.error);
            prop_assert_eq!(receipt.ts_ms, record.entry.ts_ms);
            prop_assert_eq!(receipt.state_from, record.entry.state_from);
            prop_assert_eq!(receipt.state_to, record.entry.state_to);
            let told = detail(record);
            prop_assert_eq!(receipt.rule.as_deref(), told.rule.as_deref());
        }
    }

    #[test]
    fn inv_hash_chain_every_entry_is_linked_to_the_one_before(steps in steps()) {
        let (mut prev, mut scratch) = (fluffy_base::Digest::GENESIS, Vec::new());
        for (number, record) in play(&steps).entries.iter().enumerate() {
            let entry = &record.entry;
            prop_assert_eq!(entry.seq, number as u64);
            prop_assert_eq!(entry.prev_hash, prev);
            prop_assert_eq!(entry.view().hash(&prev, &mut scratch), entry.entry_hash);
            prop_assert_eq!(entry.evidence_hash, Some(fluffy_base::Digest::of(&record.detail)));
            prev = entry.entry_hash;
        }
    }

    #[test]
    fn inv_fail_closed_what_is_unclear_or_unknown_runs_nothing(steps in halted_steps()) {
        for taken in play(&steps).taken {
            let ran = taken.step.runs() && !taken.after_halt;
            prop_assert_eq!(taken.runs, u64::from(ran), "{:?}", taken.step);
            let Some(receipt) = taken.receipt else { continue };
            let expected = if taken.after_halt { HALTED } else { taken.step.expected() };
            prop_assert_eq!(ends(&receipt), expected, "{:?}", taken.step);
            prop_assert_eq!(receipt.error.is_none(), receipt.status == ReceiptStatus::Accepted);
        }
    }

    #[test]
    fn inv_determinism_the_same_requests_give_the_same_ledger(steps in halted_steps()) {
        let (first, second) = (play(&steps), play(&steps));
        prop_assert_eq!(first.bundle, second.bundle);
        prop_assert_eq!(first.entries, second.entries);
        for (a, b) in first.taken.iter().zip(&second.taken) {
            prop_assert_eq!(&a.receipt, &b.receipt);
        }
    }

    #[test]
    fn inv_halt_after_the_halt_there_are_only_halts(steps in halted_steps()) {
        let played = play(&steps);
        for taken in played.taken.iter().filter(|taken| taken.after_halt) {
            prop_assert_eq!((taken.state, taken.runs), (KernelState::Halted, 0));
            if let Some(receipt) = &taken.receipt {
                prop_assert_eq!(ends(receipt), HALTED);
                prop_assert_eq!(&receipt.tool_result, &None);
            }
        }
        let halts = played.entries.iter().filter(|r| detail(r).event == "kernel_halt").count();
        prop_assert_eq!(halts, 1);
        let after = played.entries.iter().skip_while(|r| detail(r).event != "kernel_halt");
        for record in after {
            prop_assert_eq!(record.entry.decision, Decision::Halt);
            prop_assert_eq!(record.entry.state_to, KernelState::Halted);
        }
    }

    #[test]
    fn inv_evidence_what_is_exported_verifies_by_itself(steps in halted_steps()) {
        let played = play(&steps);
        prop_assert_eq!(played.bundle.verify(), vec![]);
        // The bundle lacks only the kernel's end, which came after it.
        let size = played.bundle.entries.len();
        prop_assert_eq!(size + 1, played.entries.len());
        prop_assert_eq!(played.bundle.entries.last(), played.entries.get(size - 1).map(|r| &r.entry));
        played.lab.verify();
    }

    #[test]
    fn inv_no_implicit_allow_without_a_rule_that_allows_nothing_runs(steps in steps()) {
        let played = play_under("version: 1\n", &steps);
        for taken in &played.taken {
            prop_assert_eq!(taken.runs, 0);
            let allowed = taken.receipt.as_ref().is_some_and(|r| r.decision == Decision::Allow);
            prop_assert!(!allowed, "{:?}", taken.step);
        }
    }
}

#[test]
fn every_kind_of_step_ends_as_expected() {
    for (step, taken) in REQUESTS.iter().zip(play(&REQUESTS).taken) {
        assert_eq!(ends(&taken.receipt.unwrap()), step.expected(), "{step:?}");
    }
}
