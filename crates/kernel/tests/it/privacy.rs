//! What the ledger shows of inputs and outputs: bounded, on one line, without secrets.

use fluffy_base::{Digest, KernelRequest};
use fluffy_ledger::input_of;
use serde_json::json;

use crate::lab::{FAILED, Lab, Probe, SECRET, call, detail, echo, ends, error, json as read};

/// What can be read in the ledger without the private inputs.
fn public(lab: &Lab) -> String {
    let entries = lab.entries();
    let details: String =
        entries.iter().map(|record| String::from_utf8_lossy(&record.detail)).collect();
    format!("{entries:?}{details}")
}

#[test]
fn a_secret_in_a_result_is_masked_and_both_forms_are_accounted_for() {
    let lab = Lab::new();
    let tool = Probe::pure("read", |_| Ok(json!({"key": SECRET, "list": ["a", SECRET]})));
    let kernel = lab.boot(vec![tool]);
    let receipt = kernel.submit(call("r", "read", "{}"));
    let result = receipt.tool_result.unwrap();
    assert_eq!(result.canonical(), r#"{"key":"sk-***","list":["a","sk-***"]}"#);
    let last = lab.last();
    let original = format!(r#"{{"key":"{SECRET}","list":["a","{SECRET}"]}}"#);
    assert_eq!(detail(&last).result_hash, Some(Digest::of(original.as_bytes())));
    assert_eq!(detail(&last).sanitised_hash, Some(Digest::of(result.canonical().as_bytes())));
    assert_eq!(detail(&last).output_summary.as_deref(), Some(result.canonical()));
    assert!(!public(&lab).contains(SECRET));
}

#[test]
fn a_result_without_a_secret_has_one_hash() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![]);
    kernel.submit(echo("r"));
    let last = lab.last();
    assert_eq!(detail(&last).result_hash, Some(Digest::of(br#""hi""#)));
    assert_eq!(detail(&last).sanitised_hash, None);
    assert_eq!(detail(&last).output_summary.as_deref(), Some(r#""hi""#));
}

#[test]
fn secrets_in_intents_errors_and_parameters_are_masked_in_the_entry() {
    let lab = Lab::new();
    let failing = Probe::effect("fails", |_| Err(fluffy_kernel::ToolError(format!("no {SECRET}"))));
    let kernel = lab.boot(vec![failing]);
    let intent = format!("use {SECRET} now");
    kernel.submit(KernelRequest { intent, ..echo("r1") });
    assert_eq!(lab.last().entry.intent, "use sk-*** now");
    let receipt = kernel.submit(call("r2", "fails", &format!(r#"{{"text":"{SECRET}"}}"#)));
    assert_eq!(ends(&receipt), FAILED);
    assert_eq!(error(&receipt), "Tool execution failed: no sk-***");
    assert!(!public(&lab).contains("abcdefghijklmnop"));
}

#[test]
fn a_secret_behind_an_escape_is_masked_as_well() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![]);
    for before in ["\\n", "\\t", "\\u000b"] {
        kernel.submit(call("r", "echo", &format!(r#"{{"text":"key:{before}{SECRET}"}}"#)));
    }
    assert!(!public(&lab).contains("abcdefghijklmnop"), "{}", public(&lab));
}

#[test]
fn the_full_input_is_kept_privately_under_a_salted_hash() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![]);
    let request = call("r", "echo", &format!(r#"{{"text":"{SECRET}"}}"#));
    let receipt = kernel.submit(request.clone());
    let blob = input_of(&lab.database(), receipt.entry.unwrap()).unwrap().unwrap();
    assert_eq!(blob.input(), request.canonical().as_bytes());
    assert_eq!(detail(&lab.last()).input_blob, Some(blob.hash()));
    assert_ne!(blob.hash(), Digest::of(blob.input()));
}

#[test]
fn summaries_have_at_most_500_characters_and_no_control_characters() {
    let lab = Lab::new();
    let tool = Probe::pure("loud", |_| Ok(json!("\u{1b}[31mé\u{202e}".repeat(400))));
    let kernel = lab.boot(vec![tool]);
    let text = "\\u001b[2J\u{202e}\u{200b}ü".repeat(300);
    kernel.submit(call("r", "loud", &format!(r#"{{"text":"{text}"}}"#)));
    let last = lab.last();
    let detail = detail(&last);
    for summary in [detail.input_summary.unwrap(), detail.output_summary.unwrap()] {
        assert_eq!(summary.chars().count(), 500);
        assert!(!summary.chars().any(char::is_control), "{summary}");
        assert!(!summary.contains(['\u{202e}', '\u{200b}']), "{summary}");
    }
}

#[test]
fn an_error_of_a_tool_is_one_bounded_line() {
    let lab = Lab::new();
    let tool = Probe::pure("bad", |_| Err(fluffy_kernel::ToolError("line\n".repeat(5_000))));
    let kernel = lab.boot(vec![tool]);
    let receipt = kernel.submit(call("r", "bad", "{}"));
    assert!(error(&receipt).starts_with("Tool execution failed: line\\nline\\n"));
    assert_eq!(error(&receipt).chars().count(), 2_000);
    assert_eq!(lab.last().entry.error, receipt.error);
}

#[test]
fn an_entry_names_rule_verdict_session_policy_and_duration() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![]);
    kernel.submit(echo("r1"));
    let allowed = lab.last();
    let told = detail(&allowed);
    assert_eq!(told.rule.as_deref(), Some("jurisdiction"));
    assert_eq!(told.policy_decision.as_deref(), Some("allowed"));
    assert_eq!(told.session_id, kernel.session_id().as_str());
    assert_eq!(told.kernel_id, "kernel-test");
    assert_eq!(told.duration_ms, Some(5));
    assert!(told.policy_digest.is_some());
    kernel.submit(KernelRequest { actor: "mallory".to_owned(), ..echo("r2") });
    let denied = lab.last();
    let told = detail(&denied);
    assert_eq!(told.rule.as_deref(), Some("jurisdiction.allowed_actors"));
    assert_eq!(told.policy_decision.as_deref(), Some("denied"));
    let reason = "Jurisdiction denied: Actor 'mallory' is not in allowed actors";
    assert_eq!(told.deny_reason.as_deref(), Some(reason));
    assert_eq!(told.metadata["allowed_instead"], "the actors alice, béa");
    assert_eq!(told.input_summary.as_deref(), Some(read(r#"{"text":"hi"}"#).canonical()));
}
