//! Puts what happened to a request into the words of the ledger.

use std::borrow::Cow;
use std::collections::BTreeSet;

use fluffy_base::{
    Decision, Digest, Excerpt, IdSource, Json, KernelRequest, KernelState, sanitised,
};
use fluffy_ledger::{Blob, Detail, EventType, Origin, PolicyDecision, Record};
use fluffy_policy::{Decided, Layer, Reasons, Sanitiser, THIRD_PARTY, Verdict};
use serde_json::json;

use crate::CallContext;
use crate::execution::Outcome;
use crate::masking::masked_json;
use crate::review::{Approved, Refusal};
use crate::validation::MAX_NAME;

/// The longest summary, in characters.
const SUMMARY: usize = 500;
/// The longest intent that is recorded; a longer one is refused by every variant.
const MAX_INTENT: usize = 8192;
/// The longest reason that is recorded.
const MAX_ERROR: usize = 2000;
/// Inputs up to this size are kept whole; of larger ones only size and hash.
const MAX_INPUT: usize = 4 << 20;

/// The metadata with the session's mode.
pub(crate) const SESSION_MODE: &str = "session_mode";
/// The metadata with the tags of the sender, as a list in JSON.
pub(crate) const CALLER_TAGS: &str = "caller_tags";

/// The record of a request, before it is judged: whatever is not filled in later is a denial.
pub(crate) fn asked(
    request: &KernelRequest,
    origin: &Origin,
    sanitiser: &Sanitiser,
    ids: &dyn IdSource,
) -> Record {
    let call = request.tool_call.as_ref();
    let params = call.map(|call| &call.params).or(request.params.as_ref());
    let hashed = params.filter(|params| params.canonical() != "{}");
    let mut record = unread(origin);
    record.request_id = bounded(&request.request_id, MAX_NAME);
    record.actor = bounded(&request.actor, MAX_NAME);
    record.intent = bounded(&request.intent, MAX_INTENT);
    record.tool_name = call.map(|call| bounded(&call.name, MAX_NAME));
    record.params_hash = hashed.map(|params| Digest::of(params.canonical().as_bytes()));
    record.detail.input_summary = params.map(|params| summary(&shown(sanitiser, params)));
    keep(&mut record, Cow::Owned(request.canonical().into_bytes()), ids);
    record
}

/// Writes into a detail what the kernel knows of the sender: with the kept input it is everything
/// that rules look at. Of the tags of the tool that it calls, those of plugins: ours follow from its name.
pub(crate) fn sent_by(detail: &mut Detail, context: &CallContext, tool: &'static [&'static str]) {
    detail.workflow_state.clone_from(&context.workflow_state);
    if let Some(mode) = &context.mode {
        detail.metadata.insert(SESSION_MODE, mode.clone());
    }
    let tool = tool.iter().copied().filter(|tag| *tag == THIRD_PARTY);
    let tags: BTreeSet<_> = context.tags.iter().map(String::as_str).chain(tool).collect();
    if !tags.is_empty() {
        detail.metadata.insert(CALLER_TAGS, json!(tags).to_string());
    }
}

/// The record of bytes that are no request.
pub(crate) fn unreadable(
    id: Option<&str>,
    text: &[u8],
    origin: &Origin,
    ids: &dyn IdSource,
) -> Record {
    let mut record = unread(origin);
    record.request_id = id.map_or_else(String::new, |id| bounded(id, MAX_NAME));
    let beginning = String::from_utf8_lossy(text.get(..SUMMARY * 4).unwrap_or(text));
    record.detail.input_summary = Some(summary(&beginning)).filter(|text| !text.is_empty());
    keep(&mut record, Cow::Borrowed(text), ids);
    record
}

/// The record of a request of which nothing is known.
pub(crate) fn unread(origin: &Origin) -> Record {
    Record {
        ts_ms: 0,
        request_id: String::new(),
        actor: String::new(),
        intent: String::new(),
        decision: Decision::Deny,
        state_from: KernelState::Idle,
        state_to: KernelState::Idle,
        tool_name: None,
        params_hash: None,
        error: None,
        detail: Detail::new(origin.clone(), EventType::Syscall),
        input: None,
    }
}

/// The record of a call's result, without the input: it refers to that of its decision.
pub(crate) fn result_of(decision: &mut Record) -> Record {
    let input = decision.input.take();
    let mut record = decision.clone();
    decision.input = input;
    record.detail.event = EventType::ToolResult;
    record
}

/// Writes into a detail what became of a call.
pub(crate) fn ran(detail: &mut Detail, outcome: &Outcome, duration_ms: u64) {
    detail.duration_ms = Some(duration_ms);
    detail.result_hash = outcome.original_hash;
    detail.sanitised_hash = outcome.sanitised_hash;
    detail.output_summary = outcome.result.as_ref().ok().map(|json| summary(json.canonical()));
    if let Some(why) = &outcome.failed_before {
        detail.metadata.insert("failed_before", safe_error(why));
    }
}

/// Writes into a detail that the tool's own schema refused what the policy had allowed.
pub(crate) fn unfit(detail: &mut Detail, reason: Option<&str>) {
    detail.rule = Some("schema".to_owned());
    detail.policy_decision = Some(PolicyDecision::Denied);
    detail.deny_reason = reason.map(str::to_owned);
}

/// Writes into a detail what the policy said.
pub(crate) fn judged(detail: &mut Detail, decided: &Decided) {
    detail.rule = decided.verdict.source().map(|source| source.rule().to_owned());
    detail.policy_decision = Some(match &decided.verdict {
        Verdict::Allow(source) if source.layer() == Layer::Token => PolicyDecision::AllowedByToken,
        Verdict::Allow(_) => PolicyDecision::Allowed,
        Verdict::Review(_) => PolicyDecision::ReviewRequired,
        Verdict::Pass | Verdict::Deny(_) => PolicyDecision::Denied,
    });
    if let Some(reasons) = decided.verdict.reasons() {
        detail.deny_reason = Some(reason_text(reasons));
        if let Some(place) = reasons.primary().source().place() {
            detail.metadata.insert("rule_at", bounded(&place.to_string(), MAX_NAME));
        }
    }
    if let Some(instead) = &decided.instead {
        detail.metadata.insert("allowed_instead", bounded(instead, MAX_ERROR));
    }
}

/// Writes into a detail that a person agreed to what rules objected to: nothing was denied.
pub(crate) fn agreed(detail: &mut Detail, approved: &Approved) {
    detail.deny_reason = None;
    detail.metadata.insert("approved_by", bounded(approved.by(), MAX_NAME));
    if let Some(grant) = approved.grant() {
        detail.metadata.insert("grant", grant.to_string());
    }
}

/// Writes into a detail what a person said to whoever asked, refusing it.
pub(crate) fn refused(detail: &mut Detail, refusal: &Refusal) {
    if let Some(words) = &refusal.words {
        detail.metadata.insert("said", words.clone());
    }
}

/// A denial in words: who denied, and every reason.
pub(crate) fn reason_text(reasons: &Reasons) -> String {
    let who = match reasons.primary().layer() {
        Layer::Validation => "Validation failed",
        Layer::Ambiguity => "Ambiguity detected",
        Layer::Jurisdiction => "Jurisdiction denied",
        Layer::Variant => "Variant denied",
        Layer::Workflow => "Workflow denied",
        Layer::BuiltIn | Layer::Token | Layer::Yaml | Layer::Extension => "Policy denied",
        Layer::Silence => "Not allowed",
    };
    bounded(&format!("{who}: {reasons}"), MAX_ERROR)
}

/// At most 500 characters, on one line, secrets masked.
fn summary(text: &str) -> String {
    Excerpt::new(text, SUMMARY).to_string()
}

/// A text of bounded length; a longer one is cut and marked.
pub(crate) fn bounded(text: &str, max_chars: usize) -> String {
    if text.chars().nth(max_chars).is_none() {
        return text.to_owned();
    }
    let kept: String = text.chars().take(max_chars.saturating_sub(1)).collect();
    kept + "…"
}

/// A stranger's text as an error, safe to show and record.
pub(crate) fn safe_error(text: &str) -> String {
    bounded(&sanitised(text), MAX_ERROR)
}

/// Parameters as a text without secrets.
fn shown<'a>(sanitiser: &Sanitiser, params: &'a Json) -> Cow<'a, str> {
    match masked_json(sanitiser, params) {
        None => Cow::Borrowed(params.canonical()),
        Some(Ok(masked)) => Cow::Owned(masked.canonical().to_owned()),
        // Masking keeps what made the value acceptable; should it ever not, nothing is shown.
        Some(Err(_)) => Cow::Borrowed(""),
    }
}

/// Keeps an input whole, or what is needed to recognise it.
fn keep(record: &mut Record, bytes: Cow<'_, [u8]>, ids: &dyn IdSource) {
    let length = bytes.len();
    if length <= MAX_INPUT {
        // Without a salt the hash of a guessable input would give the input away.
        if let Some(salt) = ids.fresh() {
            record.input = Some(Blob::new(salt, &bytes));
            return;
        }
    } else {
        record.detail.metadata.insert("input_sha256", Digest::of(&bytes).to_string());
    }
    record.detail.metadata.insert("input_bytes", length.to_string());
}
