//! `fluffy audit verify`: the project's ledger, a bundle, or a proof.

use std::path::Path;

use fluffy_ledger::{
    BundleCheck, ConsistencyProof, InclusionProof, LedgerError, ProofError, Pruned, SegmentCheck,
    Signer, VerifyingKey, verify_bundle, verify_segments,
};
use serde_json::{Value, json};

use crate::args::VerifyArgs;
use crate::explain::{CliError, DAMAGED, DONE};
use crate::output::{Output, Tone};
use crate::place::Place;

/// A proof is a few kilobytes.
const PROOF_LIMIT: u64 = 1 << 20;

pub(crate) fn run(
    place: &dyn Fn() -> Result<Place, CliError>,
    args: &VerifyArgs,
    output: &mut Output,
) -> Result<u8, CliError> {
    let key = args.key.as_deref().map(parse_key).transpose()?;
    if let Some(path) = &args.bundle {
        let check = verify_bundle(path, key.as_ref())?;
        return bundle(&check, args.json, output);
    }
    if let Some(path) = &args.proof {
        let key = match key {
            Some(key) => key,
            None => own_key(&place()?)?,
        };
        return proof(path, &key, args.json, output);
    }
    ledger(&place()?, key, args.json, output)
}

fn parse_key(text: &str) -> Result<VerifyingKey, CliError> {
    let wanted = "a public key as `fluffy doctor` shows it".to_owned();
    text.parse().map_err(|_| CliError::Value { given: text.to_owned(), wanted })
}

fn own_key(place: &Place) -> Result<VerifyingKey, CliError> {
    let key = place.existing_key()?.ok_or_else(|| CliError::Value {
        given: "no key".to_owned(),
        wanted: "enough to verify a proof: name one with --key".to_owned(),
    })?;
    Ok(key.verifying_key().clone())
}

fn ledger(
    place: &Place,
    key: Option<VerifyingKey>,
    json: bool,
    output: &mut Output,
) -> Result<u8, CliError> {
    let key = match key {
        Some(key) => Some(key),
        None => place.existing_key()?.map(|key| key.verifying_key().clone()),
    };
    let layout = place.layout();
    let segments = verify_segments(&layout, key.as_ref())?;
    if segments.is_empty() {
        return Err(CliError::NoLedger);
    }
    let intact = segments.iter().all(|segment| segment.findings().next().is_none());
    if json {
        let list: Vec<_> = segments.iter().map(segment_json).collect();
        output.line(json!({ "ok": intact, "segments": list }))?;
        return Ok(if intact { DONE } else { DAMAGED });
    }
    for segment in &segments {
        show_segment(segment, segments.len(), output)?;
    }
    if !intact {
        output.line("Fix: the next start keeps the damaged file, records the break and goes on")?;
    }
    Ok(if intact { DONE } else { DAMAGED })
}

fn show_segment(segment: &SegmentCheck, of: usize, output: &mut Output) -> Result<(), CliError> {
    let findings: Vec<_> = segment.findings().collect();
    let verdict = if findings.is_empty() {
        output.paint(Tone::Good, "intact")
    } else {
        output.paint(Tone::Bad, "DAMAGED")
    };
    let name = if of > 1 { format!("Segment {}", segment.number) } else { "Ledger".to_owned() };
    output.line(format!("{name}: {verdict}, {} entries", segment.bytes.entries))?;
    output.line(format!("  last hash  {}", segment.bytes.head))?;
    output.line(format!("  tree root  {}", segment.bytes.tree_root))?;
    let archives = &segment.archives;
    if !archives.held.is_empty() {
        let (held, left) = (archives.held.len(), archives.left);
        output
            .line(format!("  archives   {held}, {left} entries are no longer in the database"))?;
    }
    if let Some(Pruned { first, last, by }) = &archives.pruned {
        output
            .line(format!("  deleted    entries {first} to {last}, by retention (entry {by})"))?;
    }
    for finding in findings {
        output.line(format!("  {} {finding}", output.paint(Tone::Bad, "✗")))?;
    }
    let open = segment.protocol.iter().flat_map(|check| &check.open_intents);
    for seq in open {
        output.line(format!("  note: entry {seq} started something whose end is not recorded"))?;
    }
    Ok(())
}

fn segment_json(segment: &SegmentCheck) -> Value {
    let findings: Vec<_> = segment
        .findings()
        .map(|finding| json!({ "entry": finding.seq, "problem": finding.problem.to_string() }))
        .collect();
    json!({
        "segment": segment.number,
        "entries": segment.bytes.entries,
        "root_hash": segment.bytes.head,
        "tree_root": segment.bytes.tree_root,
        "open_intents": segment.protocol.as_ref().map(|check| &check.open_intents),
        "archives": segment.archives.held.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "pruned": segment.archives.pruned.as_ref().map(|pruned| {
            json!({ "first": pruned.first, "last": pruned.last, "by": pruned.by })
        }),
        "findings": findings,
    })
}

fn bundle(check: &BundleCheck, json: bool, output: &mut Output) -> Result<u8, CliError> {
    let code = if check.findings.is_empty() { DONE } else { DAMAGED };
    let signer = match &check.signer {
        Signer::Key(key) => Some(key.to_string()),
        Signer::Nobody => None,
    };
    if json {
        let findings: Vec<_> = check
            .findings
            .iter()
            .map(|finding| json!({ "entry": finding.seq, "problem": finding.problem.to_string() }))
            .collect();
        output.line(json!({
            "ok": check.findings.is_empty(),
            "entries": check.entries,
            "root_hash": check.root_hash,
            "signed_by": signer,
            "withheld": check.protocol.as_ref().map(|protocol| protocol.withheld),
            "findings": findings,
        }))?;
        return Ok(code);
    }
    let verdict = if check.findings.is_empty() {
        output.paint(Tone::Good, "verified")
    } else {
        output.paint(Tone::Bad, "NOT VERIFIED")
    };
    output.line(format!("Bundle: {verdict}, {} entries", check.entries))?;
    output.line(format!("  last hash  {}", check.root_hash))?;
    match signer {
        Some(key) => output.line(format!("  signed by  {key}"))?,
        None => output.line(
            "  signed by  nobody: the chain holds in itself, but its end and its writer are unproved",
        )?,
    }
    if let Some(withheld) = check.protocol.as_ref().map(|p| p.withheld).filter(|n| *n > 0) {
        output.line(format!("  withheld   {withheld} details"))?;
    }
    for finding in &check.findings {
        output.line(format!("  {} {finding}", output.paint(Tone::Bad, "✗")))?;
    }
    Ok(code)
}

fn proof(path: &Path, key: &VerifyingKey, json: bool, output: &mut Output) -> Result<u8, CliError> {
    let bytes = super::read_bounded(path, PROOF_LIMIT)?;
    let not_a_proof = |source| CliError::Proof { path: path.to_owned(), source };
    let value: Value = serde_json::from_slice(&bytes).map_err(not_a_proof)?;
    let result: Result<String, ProofError> = if value.get("old_size").is_some() {
        let proof: ConsistencyProof = serde_json::from_value(value).map_err(not_a_proof)?;
        proof.verify(key).map(|checkpoint| {
            format!(
                "the ledger of {} entries continues that of {}",
                checkpoint.size, proof.old_size
            )
        })
    } else {
        let proof: InclusionProof = serde_json::from_value(value).map_err(not_a_proof)?;
        proof.verify(key).map(|checkpoint| {
            format!("entry {} is in the ledger of {} entries", proof.seq, checkpoint.size)
        })
    };
    let (ok, text) = match result {
        Ok(text) => (true, text),
        Err(error) => {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            (false, format!("{error}{}", cause.unwrap_or_default()))
        }
    };
    if json {
        output.line(json!({ "ok": ok, "result": text }))?;
    } else {
        let (tone, word) = if ok { (Tone::Good, "verified") } else { (Tone::Bad, "NOT VERIFIED") };
        output.line(format!("Proof: {}: {text}", output.paint(tone, word)))?;
    }
    Ok(if ok { DONE } else { DAMAGED })
}

impl From<fluffy_ledger::KeyError> for CliError {
    fn from(error: fluffy_ledger::KeyError) -> Self {
        Self::Ledger(LedgerError::Key(error))
    }
}
