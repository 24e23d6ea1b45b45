//! `fluffy demo`: requests judged, executed and proved, and a forgery found.

use std::path::{Path, PathBuf};

use fluffy_base::{Clock as _, KernelReceipt, ReceiptStatus, SystemClock};
use fluffy_kernel::{KernelConfig, Registry, SessionStart};
use fluffy_ledger::{BundleCheck, ExportOptions, Segment, export, verify_bundle, verify_segments};
use fluffy_policy::PolicyFile;

use crate::environment::Environment;
use crate::explain::{CliError, DONE, FAILED};
use crate::output::{Output, Tone};
use crate::place::{Place, state_dir};

/// Who may do what in the demonstration.
const POLICY: &str = "\
jurisdiction:
  allowed_actors: [alice, model]
  allowed_tools: [echo, add]
";

/// The requests, each with what it shows.
const REQUESTS: [(&str, &str); 5] = [
    (
        "An allowed request runs its tool",
        r#"{"request_id":"demo-1","ts_ms":1,"actor":"alice","intent":"say hello","tool_call":{"name":"echo","params":{"text":"hello"}}}"#,
    ),
    (
        "The model may add numbers, too",
        r#"{"request_id":"demo-2","ts_ms":2,"actor":"model","intent":"add two numbers","tool_call":{"name":"add","params":{"a":19,"b":23}}}"#,
    ),
    (
        "A stranger is refused, and told why",
        r#"{"request_id":"demo-3","ts_ms":3,"actor":"mallory","intent":"say hello","tool_call":{"name":"echo","params":{"text":"hello"}}}"#,
    ),
    (
        "A tool that nobody allowed is refused",
        r#"{"request_id":"demo-4","ts_ms":4,"actor":"model","intent":"clean up","tool_call":{"name":"shell.run","params":{"command":"rm"}}}"#,
    ),
    (
        "An intent that only looks like one is refused",
        "{\"request_id\":\"demo-5\",\"ts_ms\":5,\"actor\":\"model\",\"intent\":\"\u{200b}\",\"tool_call\":{\"name\":\"echo\",\"params\":{\"text\":\"hi\"}}}",
    ),
];

/// What the forger changes, and into what.
const FORGED: (&str, &str) = ("\"actor\":\"mallory\"", "\"actor\":\"alice\"");

pub(crate) fn run(environment: &Environment, output: &mut Output) -> Result<u8, CliError> {
    let state = state_dir(environment)?.join("demo");
    let place = Place::at(state.join("project"), state.clone());
    heading(output, "1. Requests go to the kernel; each gets a receipt")?;
    submit_all(&place, output)?;
    heading(output, "2. The ledger is verified: every hash, the tree, the signed checkpoint")?;
    let key = place.key()?;
    let segments = verify_segments(&place.layout(), Some(key.verifying_key()))?;
    let intact = segments.iter().all(|segment| segment.findings().next().is_none());
    let entries: u64 = segments.iter().map(|segment| segment.bytes.entries).sum();
    verdict(output, intact, &format!("{entries} entries"))?;
    heading(output, "3. Evidence is exported and verified with nothing but the file")?;
    let bundle = state.join("evidence.json");
    write_bundle(&place, &bundle)?;
    let genuine = verify_bundle(&bundle, None)?;
    verdict(output, genuine.findings.is_empty(), &bundle.display().to_string())?;
    heading(output, "4. In a copy of the evidence one name is changed: `mallory` becomes `alice`")?;
    let forged = forge(&bundle)?;
    let found = verify_bundle(&forged, None)?;
    show_findings(&found, output)?;
    output.line("")?;
    let program = &environment.program;
    output
        .line(format!("Look around:     {program} audit verify --bundle {}", bundle.display()))?;
    output.line(format!("Start yourself:  {program} kernel submit --json < requests.jsonl"))?;
    let ok = intact && genuine.findings.is_empty() && !found.findings.is_empty();
    Ok(if ok { DONE } else { FAILED })
}

fn submit_all(place: &Place, output: &mut Output) -> Result<(), CliError> {
    let policy = PolicyFile::parse("the demo's policy", POLICY)?;
    let registry = Registry::with_builtins()?;
    let mut config = KernelConfig::new(policy, registry, place.layout(), place.key()?);
    config.session = SessionStart::New;
    let kernel = super::boot(config, output)?;
    for (title, request) in REQUESTS {
        let receipt = kernel.submit_json(request.as_bytes());
        output.line(format!("  {title}"))?;
        show_receipt(&receipt, output)?;
    }
    kernel.close()?;
    Ok(())
}

fn show_receipt(receipt: &KernelReceipt, output: &mut Output) -> Result<(), CliError> {
    let tone = if receipt.status == ReceiptStatus::Accepted { Tone::Good } else { Tone::Bad };
    let status = output.paint(tone, receipt.status.name());
    let answer = match (&receipt.error, &receipt.tool_result) {
        (Some(error), _) => error.clone(),
        (None, Some(result)) => format!("result {}", result.canonical()),
        (None, None) => "recorded".to_owned(),
    };
    let rule = receipt.rule.as_deref().unwrap_or("structure");
    output.line(format!("    {status} by rule `{rule}`: {answer}"))?;
    if let (Some(entry), Some(hash)) = (receipt.entry, receipt.evidence_hash) {
        let proof = format!("    entry {entry}, hash {hash}");
        output.line(output.paint(Tone::Quiet, &proof))?;
    }
    Ok(())
}

fn heading(output: &mut Output, text: &str) -> Result<(), CliError> {
    output.line("")?;
    output.line(output.paint(Tone::Strong, text))
}

fn verdict(output: &mut Output, ok: bool, text: &str) -> Result<(), CliError> {
    let (tone, word) = if ok { (Tone::Good, "verified") } else { (Tone::Bad, "NOT VERIFIED") };
    output.line(format!("  {}: {text}", output.paint(tone, word)))
}

fn show_findings(check: &BundleCheck, output: &mut Output) -> Result<(), CliError> {
    verdict(output, check.findings.is_empty(), "the forged copy")?;
    for finding in check.findings.iter().take(3) {
        output.line(format!("    {finding}"))?;
    }
    Ok(())
}

fn write_bundle(place: &Place, path: &Path) -> Result<(), CliError> {
    let segment = Segment::active(&place.layout())?.ok_or(CliError::NoLedger)?;
    let options = ExportOptions { exported_at_ms: SystemClock.now_ms(), ..Default::default() };
    let mut text = Vec::new();
    export(&segment, &place.key()?, &options, &mut text)?;
    super::write(path, &text)
}

/// A copy of the bundle in which one name was changed.
fn forge(bundle: &Path) -> Result<PathBuf, CliError> {
    let text = super::read_bounded(bundle, 1 << 30)?;
    let text = String::from_utf8(text).map_err(|_| CliError::NotText(bundle.to_owned()))?;
    let forged = bundle.with_file_name("forged.json");
    super::write(&forged, text.replacen(FORGED.0, FORGED.1, 1).as_bytes())?;
    Ok(forged)
}
