//! A session that goes on from somewhere in another one.
//!
//! What was recorded of the other one up to there is recorded once more, under a new id: a fork is a fold over its own
//! entries like any session, and needs the other one for nothing.
//!
//! **Invariant.** What is taken over is proved first. The other session is not touched.
//!
//! **Invariant.** A fork says how much it takes over before it does; one that was interrupted is not gone on with.

use std::ops::ControlFlow;
use std::path::Path;

use fluffy_base::SessionId;
use fluffy_ledger::{Layout, VerifyingKey, look_back, verify_segments};

use super::archive::Archive;
use super::chronicle::{Chronicle, SESSION_ENTRY, Told, left_of};
use super::restore::Fold;
use super::{Entry, ForkedFrom, RestoreError, SessionError, StoredSession};
use crate::files::Blobs;
use crate::staging::StagingError;
use crate::{Journal as _, Kernel, KernelConfig, KernelError, SessionStart};

/// Where in a session a fork begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkPoint {
    /// At its end.
    End,
    /// After so many turns of the model, with what was answered; 0 is before the first.
    Turn(u64),
    /// After the turn that made this step, without the steps after it.
    Step(u64),
}

/// A fork that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forked {
    /// Its id.
    pub id: SessionId,
    /// What it goes on from.
    pub from: ForkedFrom,
    /// How many turns it has.
    pub turns: usize,
    /// How many steps are staged in it.
    pub steps: usize,
}

/// Makes a session that goes on from another one. `sessions` is where they keep their files.
pub fn fork(
    mut kernel: KernelConfig,
    sessions: &Path,
    from: &SessionId,
    at: ForkPoint,
) -> Result<Forked, SessionError> {
    let taken = taken(&kernel.layout, kernel.key.verifying_key(), from.as_str(), at)?;
    let id = SessionId::fresh(&*kernel.ids).ok_or(KernelError::NoRandomness)?;
    let (stored, entries, fork) = taken.entries(from.as_str(), at)?;
    copy_contents(&stored, sessions, from, &id)?;
    kernel.session = SessionStart::Named(id.clone());
    let kernel = Kernel::boot(kernel)?;
    let recorded = entries.iter().try_for_each(|entry| kernel.record(entry.note()?).map(drop));
    kernel.close()?;
    recorded?;
    Ok(Forked { id, from: fork, turns: stored.turns.len(), steps: stored.steps.len() })
}

/// What is taken over of a session, in its order.
struct Taken(Vec<Told>);

fn taken(
    layout: &Layout,
    key: &VerifyingKey,
    id: &str,
    at: ForkPoint,
) -> Result<Taken, SessionError> {
    let until = until(layout, id, at)?;
    match Chronicle::read(layout, key, id, until) {
        Ok(chronicle) => Ok(Taken(chronicle.entries)),
        Err(RestoreError::CutOff(_)) => {
            // What is left of it is sealed by what came after the damage, which is all verified.
            let (segment, mut entries) = left_of(layout, id)?;
            for check in verify_segments(layout, Some(key)).map_err(RestoreError::from)? {
                if check.number >= segment
                    && let Some(found) = check.findings().next()
                {
                    let (id, found) = (id.to_owned(), Box::new(found.clone()));
                    return Err(RestoreError::Forged { id, found, turns: 0 }.into());
                }
            }
            entries.retain(|told| until.is_none_or(|until| told.seq < until));
            Ok(Taken(entries))
        }
        Err(error) => Err(error.into()),
    }
}

/// The number of the first entry that is not taken over. Only looked for, not proved: what lies before it is.
fn until(layout: &Layout, id: &str, at: ForkPoint) -> Result<Option<u64>, RestoreError> {
    for number in layout.segments()?.into_iter().rev() {
        let (mut turns, mut step) = (Vec::new(), None);
        look_back(&layout.segment(number), |glimpse| {
            let metadata = &glimpse.detail.metadata;
            let Some(kind) =
                metadata.get(SESSION_ENTRY).filter(|_| glimpse.detail.session_id == id)
            else {
                return ControlFlow::Continue(());
            };
            let made = metadata.get("step").and_then(|number| number.parse().ok());
            match (&**kind, at) {
                ("opened", _) => return ControlFlow::Break(()),
                ("turn", _) => turns.push(glimpse.seq),
                ("happened", ForkPoint::Step(wanted)) if made == Some(wanted) => {
                    step = Some(glimpse.seq);
                }
                _other => {}
            }
            ControlFlow::Continue(())
        })?;
        turns.reverse();
        let cut = match at {
            ForkPoint::End => None,
            ForkPoint::Turn(turn) => {
                usize::try_from(turn).ok().and_then(|turn| turns.get(turn)).copied()
            }
            ForkPoint::Step(_) => step.and_then(|step| turns.into_iter().find(|turn| *turn > step)),
        };
        if cut.is_some() {
            return Ok(cut);
        }
    }
    Ok(None)
}

impl Taken {
    /// The entries of the fork, the session that they make, and what it says of where it is from.
    fn entries(
        self,
        id: &str,
        at: ForkPoint,
    ) -> Result<(StoredSession, Vec<Entry>, ForkedFrom), SessionError> {
        let unknown = || RestoreError::Unknown(id.to_owned());
        let last = self.0.last().ok_or_else(unknown)?;
        let (entry, hash) = (last.seq, last.hash);
        let mut told = self.0.into_iter().map(|told| told.entry);
        let Some(Entry::Opened { mode, access, task, .. }) = told.next() else {
            return Err(unknown().into());
        };
        // What a person agreed to for as long as a session lasts is not agreed to for another one.
        let is_history = |entry: &Entry| {
            !matches!(
                entry,
                Entry::Completed { .. }
                    | Entry::Unarchived
                    | Entry::Granted(_)
                    | Entry::Revoked { .. }
            )
        };
        let mut copies: Vec<Entry> = told.filter(is_history).collect();
        let opened = |fork| Entry::Opened { mode, access, task: task.clone(), fork };
        if let ForkPoint::Step(step) = at {
            let stored = folded(opened(None), &copies, id)?;
            if !stored.steps.iter().any(|known| known.number == step) {
                return Err(StagingError::Unknown(step).into());
            }
            if stored.steps.iter().any(|known| known.number > step) {
                copies.push(Entry::Rewound { to: step });
            }
        }
        let copied = copies.len() as u64;
        let fork = ForkedFrom { session: id.to_owned(), entry, hash, copied };
        let opened = opened(Some(fork.clone()));
        let stored = folded(opened.clone(), &copies, id)?;
        let turns = stored.turns.len() as u64;
        if let ForkPoint::Turn(turn) = at
            && turn != turns
        {
            return Err(SessionError::NoTurn { turn, turns });
        }
        copies.insert(0, opened);
        Ok((stored, copies, fork))
    }
}

fn folded(opened: Entry, copies: &[Entry], id: &str) -> Result<StoredSession, RestoreError> {
    let mut fold = Fold::default();
    std::iter::once(opened).chain(copies.iter().cloned()).for_each(|entry| fold.add(0, entry));
    fold.finish(id)
}

/// Gives the fork the contents of its steps, each checked against its name.
fn copy_contents(
    stored: &StoredSession,
    sessions: &Path,
    from: &SessionId,
    to: &SessionId,
) -> Result<(), SessionError> {
    let contents = stored.contents();
    if contents.is_empty() {
        return Ok(());
    }
    let old = Blobs::of(&sessions.join(from.as_str()).join("blobs"));
    let mut archive = Archive::open(sessions, from.as_str())?;
    let new = Blobs::open(&sessions.join(to.as_str()).join("blobs")).map_err(StagingError::from)?;
    for content in contents.values() {
        let packed = archive.as_mut().map(|archive| archive.content(content)).transpose();
        let bytes = match packed?.flatten() {
            Some(bytes) => bytes,
            None => old.get(content).map_err(StagingError::from)?,
        };
        new.write(&bytes, content.executable).map_err(StagingError::from)?;
    }
    new.settle().map_err(StagingError::from)?;
    Ok(())
}
