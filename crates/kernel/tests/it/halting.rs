//! `halt`: at once, recorded, and for good.

use std::thread;

use fluffy_base::{Decision, KernelState, StateError};
use fluffy_kernel::KernelError;

use crate::lab::{ALLOWED, HALTED, Lab, Runs, SECRET, call, detail, echo, ends, error};

#[test]
fn after_a_halt_nothing_is_allowed_and_everything_is_recorded() {
    let lab = Lab::new();
    let runs = Runs::default();
    let kernel = lab.boot(vec![runs.pure("look"), runs.effect("touch")]);
    assert_eq!(ends(&kernel.submit(echo("r1"))), ALLOWED);
    kernel.halt("enough").unwrap();
    assert_eq!(kernel.state(), KernelState::Halted);
    let before = lab.entries().len();
    let receipts = [
        kernel.submit(echo("r2")),
        kernel.submit(call("r3", "look", "{}")),
        kernel.submit(call("r4", "touch", "{}")),
        kernel.submit_json(b"nonsense"),
        kernel.refuse_unread("too long"),
    ];
    for receipt in &receipts {
        assert_eq!(ends(receipt), HALTED);
        assert_eq!(error(receipt), "Kernel is halted: enough");
        assert_eq!(
            (receipt.state_from, receipt.state_to),
            (KernelState::Halted, KernelState::Halted)
        );
    }
    let after = &lab.entries()[before..];
    assert_eq!(after.len(), receipts.len());
    for (record, receipt) in after.iter().zip(&receipts) {
        assert_eq!(Some(record.entry.entry_hash), receipt.evidence_hash);
        assert_eq!(record.entry.decision, Decision::Halt);
    }
    assert_eq!(after[2].entry.tool_name.as_deref(), Some("touch"));
    assert_eq!(runs.count(), 0);
    assert_eq!(kernel.state(), KernelState::Halted);
    lab.verify();
}

#[test]
fn a_second_halt_is_a_state_error_and_no_entry() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![]);
    let first = kernel.halt("first").unwrap();
    let KernelError::State(error) = kernel.halt("second").unwrap_err() else {
        panic!("a halted kernel cannot be halted")
    };
    let halted = KernelState::Halted;
    assert_eq!(error, StateError { from: halted, to: halted });
    assert_eq!(lab.last().entry.seq, first.seq);
    assert_eq!(lab.last().entry.intent, "first");
}

#[test]
fn the_reason_is_recorded_without_secrets_and_control_characters_and_not_at_any_length() {
    for (reason, expected) in [
        (format!("key {SECRET}\n\u{1b}[2J"), "key sk-***\\n\\u{1b}[2J".to_owned()),
        ("x".repeat(5_000), "x".repeat(999) + "…"),
        (String::new(), String::new()),
    ] {
        let lab = Lab::new();
        let kernel = lab.boot(vec![]);
        let appended = kernel.halt(&reason).unwrap();
        let last = lab.last();
        assert_eq!(last.entry.entry_hash, appended.entry_hash);
        assert_eq!(last.entry.intent, expected);
        assert_eq!(detail(&last).event, "kernel_halt");
        assert_eq!(error(&kernel.submit(echo("r"))), format!("Kernel is halted: {expected}"));
    }
}

#[test]
fn a_halt_among_submitting_threads_divides_them_into_before_and_after() {
    let lab = Lab::new();
    let runs = Runs::default();
    let kernel = lab.boot(vec![runs.pure("look")]);
    let receipts: Vec<_> = thread::scope(|scope| {
        let submit = |thread: usize| {
            let kernel = &kernel;
            let one = move |n| kernel.submit(call(&format!("{thread}-{n}"), "look", "{}"));
            move || (0..50).map(one).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..4).map(|n| scope.spawn(submit(n))).collect();
        while runs.count() < 20 {
            thread::yield_now();
        }
        kernel.halt("now").unwrap();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let entries = lab.entries();
    let halt = entries.iter().find(|r| detail(r).event == "kernel_halt").unwrap().entry.seq;
    for receipt in &receipts {
        let expected = if receipt.entry.unwrap() < halt { ALLOWED } else { HALTED };
        assert_eq!(ends(receipt), expected, "{receipt:?}");
    }
    // Each has one entry; the kernel's first two and the halt are not theirs.
    assert_eq!(entries.len(), receipts.len() + 3);
    assert!(receipts.iter().any(|receipt| receipt.decision == Decision::Allow));
    lab.verify();
}
