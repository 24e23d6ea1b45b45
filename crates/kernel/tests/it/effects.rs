//! Intent before effect: the decision is on disk before the tool starts, the outcome after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;

use fluffy_base::{Clock, Decision, KernelState, ReceiptStatus};
use fluffy_kernel::{Kernel, ToolError};
use fluffy_ledger::{EventType, Page, Query};
use serde_json::json;

use crate::lab::{
    ALLOWED, DENIED, FAILED, HALTED, Lab, Probe, Reach, Runs, UNFIT, call, detail, ends, error,
};

fn events(lab: &Lab) -> Vec<String> {
    lab.entries().iter().map(|record| detail(record).event.into_owned()).collect()
}

#[test]
fn the_decision_is_in_the_ledger_before_the_tool_starts() {
    let lab = Lab::new();
    let (path, (seen, found)) = (lab.database(), channel());
    let tool = Probe::effect("touch", move |_| {
        let query = Query { event: Some(EventType::ToolExecute), ..Query::default() };
        let page = Page { limit: 10, offset: 0, newest_first: true };
        seen.send(query.collect(&path, page).unwrap()).unwrap();
        Ok(json!("done"))
    });
    let kernel = lab.boot(vec![tool]);
    let receipt = kernel.submit(call("e1", "touch", r#"{"n":1}"#));
    assert_eq!(ends(&receipt), ALLOWED);
    let decisions = found.recv().unwrap();
    let [decision] = decisions.as_slice() else { panic!("{decisions:?}") };
    assert_eq!(decision.entry.request_id, "e1");
    assert_eq!(decision.entry.decision, Decision::Allow);
    assert!(detail(decision).input_blob.is_some());
    assert_eq!(detail(decision).result_hash, None);
}

#[test]
fn the_result_is_an_entry_of_its_own_that_refers_to_its_decision() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![Runs::default().effect("touch")]);
    let receipt = kernel.submit(call("e1", "touch", r#"{"n":1}"#));
    let entries = lab.entries();
    let [decision, result] = &entries[entries.len() - 2..] else { panic!("{entries:?}") };
    assert_eq!(detail(decision).event, "tool_execute");
    assert_eq!(detail(result).event, "tool_result");
    assert_eq!(detail(result).decision_seq, Some(decision.entry.seq));
    assert_eq!(receipt.evidence_hash, Some(result.entry.entry_hash));
    assert_eq!(receipt.entry, Some(result.entry.seq));
    assert_eq!(decision.entry.params_hash, result.entry.params_hash);
    assert_eq!(detail(result).input_blob, None);
    assert!(detail(result).result_hash.is_some());
    lab.verify();
}

#[test]
fn an_effect_that_fails_or_crashes_leaves_both_entries() {
    let lab = Lab::new();
    let fails = Probe::effect("fails", |_| Err(ToolError("no such thing".to_owned())));
    let crashes = Probe::effect("crashes", |_| panic!("on purpose"));
    let kernel = lab.boot(vec![fails, crashes]);
    for (tool, text) in [("fails", "no such thing"), ("crashes", "the tool crashed")] {
        let before = lab.entries().len();
        let receipt = kernel.submit(call("e", tool, "{}"));
        assert_eq!(ends(&receipt), FAILED);
        assert_eq!(error(&receipt), format!("Tool execution failed: {text}"));
        assert_eq!(events(&lab)[before..], ["tool_execute", "tool_result"]);
        assert_eq!(lab.last().entry.error, receipt.error);
    }
    assert_eq!(ends(&kernel.submit(call("e", "echo", r#"{"text":""}"#))), ALLOWED);
    lab.verify();
}

#[test]
fn a_refused_effect_has_one_entry_and_does_not_run() {
    let lab = Lab::new();
    let runs = Runs::default();
    let kernel = lab.boot(vec![runs.effect("touch")]);
    let before = lab.entries().len();
    let mut stranger = call("e1", "touch", "{}");
    stranger.actor = "mallory".to_owned();
    assert_eq!(ends(&kernel.submit(stranger)), DENIED);
    assert_eq!(ends(&kernel.submit(call("e2", "touch", r#"{"n":"text"}"#))), UNFIT);
    assert_eq!(events(&lab)[before..], ["syscall", "syscall"]);
    assert_eq!(runs.count(), 0);
}

/// A clock that does something when it is read for the `n`th time.
struct Alarm {
    left: AtomicU64,
    ring: Box<dyn Fn() + Send + Sync>,
}

impl Clock for Alarm {
    fn now_ms(&self) -> u64 {
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            (self.ring)();
        }
        1_000
    }
}

#[test]
fn a_halt_between_decision_and_run_keeps_the_tool_from_running() {
    let lab = Lab::new();
    let (runs, reach) = (Runs::default(), Reach::default());
    let mut config = lab.config(vec![runs.effect("touch")]);
    let inside = reach.clone();
    let alarm = Arc::new(Alarm {
        left: AtomicU64::new(u64::MAX),
        ring: Box::new(move || {
            inside.kernel().halt("between").unwrap();
        }),
    });
    config.clock = alarm.clone();
    let kernel = reach.connect(Kernel::boot(config).unwrap());
    // The decision reads the clock first; the next reading is when the tool would start.
    alarm.left.store(2, Ordering::SeqCst);
    let receipt = kernel.submit(call("e1", "touch", "{}"));
    assert_eq!(runs.count(), 0);
    assert_eq!(ends(&receipt), HALTED);
    assert_eq!(error(&receipt), "Kernel is halted: between");
    assert_eq!(receipt.state_from, KernelState::Idle);
    assert_eq!(receipt.state_to, KernelState::Halted);
    let seen = events(&lab);
    assert_eq!(seen[seen.len() - 3..], ["tool_execute", "kernel_halt", "tool_result"]);
    assert_eq!(lab.last().entry.decision, Decision::Halt);
    assert_eq!(lab.last().entry.error, receipt.error);
    lab.verify();
}

#[test]
fn a_halt_while_a_pure_tool_runs_keeps_its_result_back() {
    let lab = Lab::new();
    let reach = Reach::default();
    let inside = reach.clone();
    let tool = Probe::pure("slow", move |_| {
        inside.kernel().halt("meanwhile").unwrap();
        Ok(json!("too late"))
    });
    let kernel = reach.connect(lab.boot(vec![tool]));
    let receipt = kernel.submit(call("p1", "slow", "{}"));
    assert_eq!(ends(&receipt), HALTED);
    assert_eq!(receipt.tool_result, None);
    let last = lab.last();
    assert_eq!(last.entry.decision, Decision::Halt);
    assert_eq!(last.entry.state_to, KernelState::Halted);
    assert!(detail(&last).result_hash.is_some(), "that it ran is recorded all the same");
    lab.verify();
}

#[test]
fn a_halt_while_an_effect_runs_is_answered_as_a_failure_because_something_happened() {
    let lab = Lab::new();
    let reach = Reach::default();
    let inside = reach.clone();
    let tool = Probe::effect("slow", move |_| {
        inside.kernel().halt("meanwhile").unwrap();
        Ok(json!("done"))
    });
    let kernel = reach.connect(lab.boot(vec![tool]));
    let receipt = kernel.submit(call("p1", "slow", "{}"));
    assert_eq!(ends(&receipt), (Decision::Halt, ReceiptStatus::Failed));
    assert_eq!(error(&receipt), "Kernel is halted: meanwhile (while the tool was running)");
    assert_eq!(receipt.tool_result, None);
    let last = lab.last();
    assert_eq!((last.entry.decision, last.entry.state_to), (Decision::Halt, KernelState::Halted));
    assert!(detail(&last).result_hash.is_some());
    lab.verify();
}
