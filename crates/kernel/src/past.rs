//! Past decisions, read from the ledger with the inputs they were taken on.

use std::collections::BTreeSet;
use std::path::Path;

use fluffy_base::KernelRequest;
use fluffy_ledger::{DetailView, EventType, LedgerError, Page, Query, StoredRecord, input_of};
use fluffy_policy::{Caller, PastDecision, Subject};

use crate::{Registry, narrate};

/// The last `count` decisions whose inputs are kept, oldest first; each counts once, whatever became
/// of it.
pub(crate) fn decisions(
    database: &Path,
    registry: &Registry,
    count: usize,
) -> Result<Vec<PastDecision>, LedgerError> {
    let mut found = Vec::new();
    let mut failed = None;
    let page = Page { limit: u64::MAX, offset: 0, newest_first: true };
    Query::default().run(database, page, |record| {
        match decision(database, registry, &record) {
            Ok(decision) => found.extend(decision),
            Err(error) => failed = Some(error),
        }
        failed.is_none() && found.len() < count
    })?;
    found.reverse();
    failed.map_or(Ok(found), Err)
}

fn decision(
    database: &Path,
    registry: &Registry,
    record: &StoredRecord,
) -> Result<Option<PastDecision>, LedgerError> {
    let Ok(detail) = DetailView::parse(&record.detail) else { return Ok(None) };
    let decided = [EventType::Syscall, EventType::ToolExecute].map(EventType::name);
    if !decided.contains(&&*detail.event) {
        return Ok(None);
    }
    let Some(input) = input_of(database, record.entry.seq)? else { return Ok(None) };
    // What was no request was never judged.
    let Ok(request) = KernelRequest::parse(input.input()) else { return Ok(None) };
    let call = request.tool_call.as_ref();
    let tool = call.and_then(|call| Some((registry.find(&call.name)?, call)));
    let subject = match tool.map(|(tool, call)| tool.subject(&call.params)) {
        None => Subject::default(),
        Some(Ok(subject)) => subject,
        Some(Err(_)) => return Ok(None),
    };
    let Some(mut caller) = caller(&detail) else { return Ok(None) };
    caller.tags.extend(registry.tags(&request).iter().map(|tag| (*tag).to_owned()));
    Ok(Some(PastDecision { seq: record.entry.seq, request, subject, caller }))
}

/// Who asked. A token that was shown then does not count: it ends with the policy.
fn caller(detail: &DetailView<'_>) -> Option<Caller> {
    let tags = match detail.metadata.get(narrate::CALLER_TAGS) {
        None => BTreeSet::new(),
        Some(text) => serde_json::from_str(text).ok()?,
    };
    let mode = detail.metadata.get(narrate::SESSION_MODE).or(detail.mode.as_ref());
    Some(Caller {
        tags,
        mode: mode.map(|mode| mode.to_string()),
        workflow_state: detail.workflow_state.as_deref().map(str::to_owned),
        ..Caller::default()
    })
}
