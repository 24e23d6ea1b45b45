//! What cannot be recorded does not happen.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use fluffy_base::{Decision, KernelState, ReceiptStatus};
use fluffy_kernel::Kernel;

use crate::lab::{ALLOWED, Lab, Runs, call, echo, ends, error};

/// Destroys the ledger's files under the kernel's hands: whatever it writes next cannot be written,
/// because what it finds is not a database.
fn destroy(database: &Path) {
    let beside = |suffix: &str| {
        let mut name = database.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let open = |path: &Path| std::fs::OpenOptions::new().write(true).open(path).unwrap();
    open(database).write_all(&[b'x'; 4096]).unwrap();
    open(&beside("-wal")).set_len(0).unwrap();
    // The index of the log is mapped into memory: its header is overwritten and its length kept.
    open(&beside("-shm")).write_all(&[0; 136]).unwrap();
}

fn check_refused(kernel: &Kernel, receipt: &fluffy_base::KernelReceipt) {
    assert_eq!(ends(receipt), (Decision::Halt, ReceiptStatus::Rejected), "{receipt:?}");
    assert_eq!((receipt.evidence_hash, receipt.entry), (None, None));
    assert_eq!(receipt.tool_result, None);
    assert_eq!(receipt.state_to, KernelState::Halted);
    assert!(error(receipt).contains("the kernel cannot use its ledger"), "{receipt:?}");
    assert_eq!(kernel.state(), KernelState::Halted);
}

#[test]
fn a_request_that_cannot_be_recorded_is_refused_and_halts_the_kernel() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![]);
    assert_eq!(ends(&kernel.submit(echo("r1"))), ALLOWED);
    destroy(&lab.database());
    let receipt = kernel.submit(echo("r2"));
    check_refused(&kernel, &receipt);
    assert_eq!(receipt.request_id, "r2");
    assert_eq!(receipt.state_from, KernelState::Idle);
}

#[test]
fn an_effect_whose_decision_cannot_be_recorded_does_not_run() {
    let lab = Lab::new();
    let runs = Runs::default();
    let kernel = lab.boot(vec![runs.effect("touch")]);
    destroy(&lab.database());
    check_refused(&kernel, &kernel.submit(call("e1", "touch", "{}")));
    assert_eq!(runs.count(), 0);
}

#[test]
fn everything_after_a_failed_ledger_is_refused_for_the_first_reason() {
    let lab = Lab::new();
    let runs = Runs::default();
    let kernel = lab.boot(vec![runs.pure("look")]);
    destroy(&lab.database());
    let first = kernel.submit(echo("r1"));
    for receipt in [
        kernel.submit(call("r2", "look", "{}")),
        kernel.submit_json(b"nonsense"),
        kernel.refuse_unread("too long"),
    ] {
        check_refused(&kernel, &receipt);
        assert_eq!(receipt.error, first.error);
    }
    assert_eq!(runs.count(), 0);
    assert!(kernel.halt("again").is_err());
    assert!(kernel.close().is_err());
}

#[test]
fn a_halt_that_cannot_be_recorded_holds_all_the_same() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![]);
    destroy(&lab.database());
    assert!(kernel.halt("stop").is_err());
    assert_eq!(kernel.state(), KernelState::Halted);
    assert_eq!(kernel.submit(echo("r1")).decision, Decision::Halt);
}
