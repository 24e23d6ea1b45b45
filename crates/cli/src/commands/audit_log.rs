//! `fluffy audit log`: what happened, newest last.

use fluffy_base::{Clock as _, Decision, Excerpt, SystemClock};
use fluffy_ledger::{Category, DetailView, EventType, Page, Query, StoredRecord};
use serde_json::{Value, json};

use crate::args::LogArgs;
use crate::explain::{CliError, DONE};
use crate::output::{Output, Tone};
use crate::place::Place;
use crate::time;

pub(crate) fn run(place: &Place, args: &LogArgs, output: &mut Output) -> Result<u8, CliError> {
    let query = query(args)?;
    let layout = place.layout();
    let segment = match args.segment {
        Some(number) => number,
        None => layout.active()?.ok_or(CliError::NoLedger)?,
    };
    let path = layout.segment(segment);
    if !path.exists() {
        let wanted = "a segment of this ledger".to_owned();
        return Err(CliError::Value { given: segment.to_string(), wanted });
    }
    let page = Page { limit: args.limit, offset: args.offset, newest_first: true };
    let mut records = query.collect(&path, page)?;
    records.reverse();
    let mut next = 0;
    for record in &records {
        next = record.entry.seq + 1;
        show(record, args.json, output)?;
    }
    output.flush()?;
    if args.follow {
        follow(&path, query, next, args.json, output)?;
    }
    Ok(DONE)
}

/// Shows what is added, as it is added. SQLite tells of changes by a counter that is cheap to read.
#[expect(clippy::disallowed_methods, reason = "the ledger's writer is another process")]
fn follow(
    path: &std::path::Path,
    mut query: Query,
    mut next: u64,
    json: bool,
    output: &mut Output,
) -> Result<(), CliError> {
    let page = Page { limit: u64::MAX, offset: 0, newest_first: false };
    loop {
        query.from_seq = next;
        for record in query.collect(path, page)? {
            next = record.entry.seq + 1;
            show(&record, json, output)?;
        }
        output.flush()?;
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

fn query(args: &LogArgs) -> Result<Query, CliError> {
    fn named<T>(
        given: Option<&String>,
        find: impl Fn(&str) -> Option<T>,
        wanted: impl Fn() -> String,
    ) -> Result<Option<T>, CliError> {
        let Some(given) = given else { return Ok(None) };
        let found = find(given);
        found.map(Some).ok_or_else(|| CliError::Value { given: given.clone(), wanted: wanted() })
    }
    let list = |names: Vec<&str>| format!("one of {}", names.join(", "));
    let events = || list(EventType::ALL.iter().map(|event| event.name()).collect());
    let groups = || list(Category::ALL.iter().map(|category| category.name()).collect());
    let now = SystemClock.now_ms();
    let moment = |text: &str| time::parse(text, now);
    let times = || "a time: `10m`, `2026-11-15`, `2026-11-15T22:00` or milliseconds".to_owned();
    let decision = |name: &str| Decision::from_name(&name.to_uppercase());
    Ok(Query {
        event: named(args.event.as_ref(), EventType::from_name, events)?,
        category: named(args.category.as_ref(), Category::from_name, groups)?,
        decision: named(args.decision.as_ref(), decision, || "ALLOW, DENY or HALT".to_owned())?,
        since_ms: named(args.since.as_ref(), moment, times)?,
        until_ms: named(args.until.as_ref(), moment, times)?,
        actor: args.actor.as_deref().map(|actor| fluffy_base::normalised(actor).into_owned()),
        session: args.session.clone(),
        tool: args.tool.clone(),
        from_seq: 0,
    })
}

fn show(record: &StoredRecord, json: bool, output: &mut Output) -> Result<(), CliError> {
    if json {
        return output.line(as_json(record));
    }
    let entry = &record.entry;
    let tone = match entry.decision {
        Decision::Allow => Tone::Good,
        Decision::Deny | Decision::Halt => Tone::Bad,
    };
    let decision = output.paint(tone, &format!("{:5}", entry.decision));
    let detail = DetailView::parse(&record.detail).ok();
    let event = detail.as_ref().map_or("?", |detail| detail.event.as_ref());
    let what = entry.tool_name.as_deref().unwrap_or(event);
    let mut line = format!(
        "{:>6}  {}  {decision}  {:<12}  {:<16}  {}",
        entry.seq,
        output.paint(Tone::Quiet, &time::show(entry.ts_ms)),
        Excerpt::new(&entry.actor, 12).to_string(),
        Excerpt::new(what, 16).to_string(),
        Excerpt::new(&entry.intent, 60),
    );
    if let Some(error) = &entry.error {
        line += &format!("  — {}", Excerpt::new(error, 120));
    }
    output.line(line)
}

fn as_json(record: &StoredRecord) -> Value {
    let entry = &record.entry;
    json!({
        "seq": entry.seq,
        "ts_ms": entry.ts_ms,
        "entry_hash": entry.entry_hash,
        "prev_hash": entry.prev_hash,
        "request_id": entry.request_id,
        "actor": entry.actor,
        "intent": entry.intent,
        "decision": entry.decision,
        "state_from": entry.state_from,
        "state_to": entry.state_to,
        "tool_name": entry.tool_name,
        "params_hash": entry.params_hash,
        "evidence_hash": entry.evidence_hash,
        "error": entry.error,
        // A detail that is not readable is shown as the text it is.
        "detail": serde_json::from_slice::<Value>(&record.detail)
            .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&record.detail))),
    })
}
