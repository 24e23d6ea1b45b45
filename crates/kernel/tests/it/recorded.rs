//! A session that the Python system recorded, played again.

use fluffy_base::{Decision, KernelState};
use fluffy_kernel::Kernel;
use serde_json::Value;

use crate::lab::{Lab, detail};

fn fixture() -> Value {
    let text = include_str!("../../../../tests/fixtures/kernels/strict-session.json");
    serde_json::from_str(text).unwrap()
}

/// The recorded policy in our words.
fn policy(fixture: &Value) -> String {
    let list = |name: &str| fixture.pointer(&format!("/policy/{name}")).unwrap();
    let (actors, tools) = (list("allowed_actors"), list("allowed_tools"));
    format!("version: 1\njurisdiction:\n  allowed_actors: {actors}\n  allowed_tools: {tools}\n")
}

#[test]
fn the_recorded_session_gets_the_same_decisions_and_the_same_outcomes() {
    let fixture = fixture();
    let lab = Lab::new();
    let kernel = Kernel::boot(lab.config_with(&policy(&fixture), vec![])).unwrap();
    let steps = fixture["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 9);
    for step in steps {
        let request = step["request"].to_string();
        let receipt = kernel.submit_json(request.as_bytes());
        let recorded = &step["receipt"];
        let ours = (receipt.decision.name(), receipt.status.name());
        let theirs = (recorded["decision"].as_str().unwrap(), recorded["status"].as_str().unwrap());
        assert_eq!(ours, theirs, "{request}: {receipt:?}");
        let result = receipt.tool_result.map_or(Value::Null, |json| json.value().clone());
        assert_eq!(result, recorded["tool_result"], "{request}");
        assert_eq!(receipt.error.is_some(), recorded["error"].is_string(), "{request}");
    }
    kernel.halt("done").unwrap();
    let halt = lab.last().entry;
    let recorded = fixture["bundle"]["ledger_entries"].as_array().unwrap().last().unwrap();
    for (field, ours) in [
        ("request_id", halt.request_id.as_str()),
        ("actor", &halt.actor),
        ("intent", &halt.intent),
        ("decision", halt.decision.name()),
        ("state_from", halt.state_from.name()),
        ("state_to", halt.state_to.name()),
    ] {
        assert_eq!(recorded[field], ours, "{field}");
    }
    drop(kernel);
    lab.verify();
}

#[test]
fn the_recorded_session_gets_the_same_reasons() {
    let fixture = fixture();
    let lab = Lab::new();
    let kernel = Kernel::boot(lab.config_with(&policy(&fixture), vec![])).unwrap();
    for step in fixture["steps"].as_array().unwrap() {
        let receipt = kernel.submit_json(step["request"].to_string().as_bytes());
        let recorded = step["receipt"]["error"].as_str();
        if receipt.decision == Decision::Deny && !recorded.unwrap().contains("argument") {
            let (ours, theirs) = (receipt.error.unwrap(), recorded.unwrap());
            let (who, reasons) = theirs.split_once(": ").unwrap();
            assert!(ours.starts_with(&format!("{who}: ")), "{ours}");
            assert!(reasons.split("; ").all(|reason| ours.contains(reason)), "{ours}");
        }
    }
}

#[test]
fn ordinary_requests_are_recorded_from_idle_to_idle() {
    let fixture = fixture();
    let lab = Lab::new();
    let kernel = Kernel::boot(lab.config_with(&policy(&fixture), vec![])).unwrap();
    for step in fixture["steps"].as_array().unwrap() {
        kernel.submit_json(step["request"].to_string().as_bytes());
    }
    let idle = (KernelState::Idle, KernelState::Idle);
    let requests = lab.entries().into_iter().filter(|entry| detail(entry).event == "syscall");
    let states: Vec<_> = requests.map(|r| (r.entry.state_from, r.entry.state_to)).collect();
    assert_eq!(states, [idle; 9]);
}
