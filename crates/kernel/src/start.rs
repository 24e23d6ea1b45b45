//! Which session a kernel boots into.

use fluffy_base::{IdSource, KernelState, SessionId};
use fluffy_ledger::{DetailView, EventType, Layout, LedgerError, Page, Query, StoredRecord};

/// How a kernel's session begins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SessionStart {
    /// A new session, unless the last one was halted: then that one goes on, halted.
    #[default]
    Continue,
    /// A new session in any case: a person's decision after a halt.
    New,
    /// The session of this id: an earlier one that goes on, or a new one.
    Named(SessionId),
}

impl SessionStart {
    /// The id of the session, if there are bytes for a fresh one.
    pub(crate) fn id(&self, ids: &dyn IdSource) -> Option<SessionId> {
        match self {
            Self::Continue | Self::New => SessionId::fresh(ids),
            Self::Named(id) => Some(id.clone()),
        }
    }
}

/// A session that was halted and not followed by another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HaltedSession {
    pub(crate) id: SessionId,
    pub(crate) reason: String,
}

/// What an entry tells about its session.
enum Told {
    /// It was halted, here and for this reason.
    Halted(Option<HaltedSession>),
    /// It was not halted.
    Running,
    /// Nothing, or only that it was halted earlier.
    Nothing,
}

/// The last session, if it ended by a halt. Damage that began a new segment does not undo a halt
/// that the old one still shows, and neither does the end of its retention: what was entered after it
/// says HALTED as well.
pub(crate) fn last_halted(layout: &Layout) -> Result<Option<HaltedSession>, LedgerError> {
    let page = Page { limit: u64::MAX, offset: 0, newest_first: true };
    let (mut since, mut newest) = (None, None);
    for number in layout.segments()?.into_iter().rev() {
        let mut told = Told::Nothing;
        let read = Query::default().run(&layout.segment(number), page, |record| {
            told = tell(&record);
            newest = newest.take().or_else(|| session_of(&record));
            if since.is_none() && record.entry.state_to == KernelState::Halted {
                since = session_of(&record);
            }
            matches!(told, Told::Nothing)
        });
        match (read, told) {
            (Ok(()), Told::Halted(session)) => return Ok(session),
            (Ok(()), Told::Running) => return Ok(None),
            (Ok(()), Told::Nothing) => {}
            // Where it cannot be known whether there was a halt, there was one.
            (Err(error @ LedgerError::Archive { .. }), _) => {
                let reason = error.to_string();
                return Ok(since.or(newest).map(|id| HaltedSession { id, reason }));
            }
            (Err(error), _) => return Err(error),
        }
    }
    let reason = "it was halted before the oldest entry that is held".to_owned();
    Ok(since.map(|id| HaltedSession { id, reason }))
}

fn session_of(record: &StoredRecord) -> Option<SessionId> {
    let detail = DetailView::parse(&record.detail).ok()?;
    SessionId::named(&detail.session_id)
}

/// Everything that a kernel enters after a halt says HALTED, so its newest entry usually decides.
fn tell(record: &StoredRecord) -> Told {
    // A detail that cannot be read was reported when the ledger was opened.
    let Ok(detail) = DetailView::parse(&record.detail) else { return Told::Nothing };
    match EventType::from_name(&detail.event) {
        Some(EventType::KernelHalt) => {
            let reason = record.entry.intent.clone();
            let id = SessionId::named(&detail.session_id);
            Told::Halted(id.map(|id| HaltedSession { id, reason }))
        }
        Some(
            EventType::KernelStart
            | EventType::KernelShutdown
            | EventType::Syscall
            | EventType::ToolExecute
            | EventType::ToolResult,
        ) if record.entry.state_to == KernelState::Idle => Told::Running,
        // What others enter, such as a new key or a segment's beginning, says nothing about it.
        Some(_) | None => Told::Nothing,
    }
}
