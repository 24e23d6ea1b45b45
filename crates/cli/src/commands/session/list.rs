//! `fluffy session list`: the sessions of a project, and which of them is meant.

use fluffy_base::{Excerpt, SessionId};
use fluffy_kernel::{SessionSummary, sessions};
use serde_json::json;

use crate::explain::{CliError, DONE};
use crate::output::{Output, Tone};
use crate::place::Place;
use crate::time;

/// How many sessions are listed.
const LISTED: usize = 100;
/// How much of a task a list shows.
const SHOWN: usize = 60;

pub(super) fn run(
    place: &Place,
    everything: bool,
    json: bool,
    output: &mut Output,
) -> Result<u8, CliError> {
    let shown = |session: &SessionSummary| everything || session.archived_ms.is_none();
    let limit = if everything { usize::MAX } else { LISTED };
    for session in known(place, limit)?.into_iter().filter(shown) {
        let SessionSummary { id, started_ms, last_ms, task, standing, archived_ms, forked } =
            session;
        if json {
            output.line(json!({ "id": id, "started_ms": started_ms, "last_ms": last_ms,
                "state": standing, "task": task, "archived_ms": archived_ms,
                "forked_from": forked.map(|fork| fork.session) }))?;
            continue;
        }
        let when = output.paint(Tone::Quiet, &time::show(started_ms));
        let task = Excerpt::new(&task, SHOWN);
        let put_away = if archived_ms.is_some() { "  (archived)" } else { "" };
        output.line(format!("{id}  {when}  {standing:<13} {task}{put_away}"))?;
    }
    Ok(DONE)
}

/// The last sessions that are not archived, a line each.
pub(crate) fn listed(place: &Place, most: usize) -> Result<Vec<String>, CliError> {
    let kept = known(place, most)?.into_iter().filter(|session| session.archived_ms.is_none());
    let line = |SessionSummary { id, started_ms, task, standing, .. }| {
        let own: String =
            id.split_once('-').map_or(id.as_str(), |(_, own)| own).chars().take(8).collect();
        let when = time::show(started_ms);
        format!("{own}  {when}  {standing:<13} {}", Excerpt::new(&task, SHOWN))
    };
    Ok(kept.map(line).collect())
}

/// The sessions of the project, newest first.
pub(super) fn known(place: &Place, limit: usize) -> Result<Vec<SessionSummary>, CliError> {
    let layout = place.layout();
    layout.active()?.ok_or(CliError::NoLedger)?;
    Ok(sessions(&layout, limit)?)
}

/// The session that is meant: by its id, the beginning of it, or the last one.
pub(crate) fn meant(place: &Place, id: Option<&str>) -> Result<SessionId, CliError> {
    let Some(id) = id else {
        let last = known(place, 1)?.into_iter().next().ok_or(CliError::NoSession)?;
        return SessionId::named(&last.id).ok_or(CliError::NoSession);
    };
    let known = known(place, usize::MAX)?;
    let found: Vec<_> = known.iter().filter(|session| is_called(&session.id, id)).collect();
    match found.as_slice() {
        [session] => SessionId::named(&session.id).ok_or(CliError::NoSession),
        [] => Err(CliError::UnknownSession(Excerpt::new(id, SHOWN).to_string())),
        _several => Err(CliError::AmbiguousSession(Excerpt::new(id, SHOWN).to_string())),
    }
}

/// Whether a session is meant by this: its id, or the beginning of what is its own in it.
fn is_called(full: &str, given: &str) -> bool {
    let own = full.split_once('-').map_or(full, |(_, own)| own);
    !given.is_empty() && (full == given || own.starts_with(given))
}
