//! What a new policy would have said to past requests.
//!
//! **Invariant.** Both policies are asked anew, with the same facts: what changed is the policy and
//! nothing else.

use std::fmt;

use fluffy_base::{KernelRequest, KernelState};

use crate::facts::{Caller, Facts, Subject};
use crate::rule::{Rule, decide, quoted};
use crate::verdict::{Strength, Verdict};

/// A request that was decided before, with everything that rules could look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastDecision {
    /// Number of its entry in the ledger.
    pub seq: u64,
    /// The request.
    pub request: KernelRequest,
    /// What it acted on.
    pub subject: Subject,
    /// Who asked.
    pub caller: Caller,
}

/// What a new policy changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trial {
    /// How many decisions were tried.
    pub looked_at: usize,
    /// Those that come out differently, in their order.
    pub changes: Vec<Change>,
}

/// A decision that comes out differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Number of its entry.
    pub seq: u64,
    /// What was asked: the call and its paths.
    pub asked: String,
    /// What the policy in force says.
    pub before: Verdict,
    /// What the new one says.
    pub after: Verdict,
}

/// Which way a change goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// What was possible no longer is, or not so easily.
    Breaking,
    /// What was not possible is, or more easily: the dangerous direction.
    Loosening,
}

/// Asks both sets of rules about every decision, and keeps what differs in strength.
pub fn try_on<'r>(
    in_force: impl Iterator<Item = &'r dyn Rule> + Clone,
    proposed: impl Iterator<Item = &'r dyn Rule> + Clone,
    past: &[PastDecision],
) -> Trial {
    let changes = past.iter().filter_map(|decision| {
        let facts = Facts::new(&decision.request, KernelState::Idle)
            .about(&decision.subject)
            .by(&decision.caller);
        let before = decide(in_force.clone(), &facts).verdict;
        let after = decide(proposed.clone(), &facts).verdict;
        (before.strength() != after.strength()).then(|| Change {
            seq: decision.seq,
            asked: asked(decision),
            before,
            after,
        })
    });
    Trial { looked_at: past.len(), changes: changes.collect() }
}

impl Trial {
    /// How many changes go one way.
    pub fn count(&self, direction: Direction) -> usize {
        self.changes.iter().filter(|change| change.direction() == direction).count()
    }
}

impl Change {
    /// Which way it goes.
    pub fn direction(&self) -> Direction {
        if self.after.strength() > self.before.strength() {
            Direction::Breaking
        } else {
            Direction::Loosening
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Breaking => "[BREAKING]",
            Self::Loosening => "[LOOSENING]",
        })
    }
}

/// `[BREAKING] #12 fs.write src/a.rs: allow (rule …) -> deny: reason`.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seq, asked, before, after } = self;
        write!(f, "{} #{seq} {asked}: ", self.direction())?;
        said(f, before)?;
        f.write_str(" -> ")?;
        said(f, after)
    }
}

fn said(f: &mut fmt::Formatter<'_>, verdict: &Verdict) -> fmt::Result {
    match verdict {
        Verdict::Allow(source) => write!(f, "{} ({source})", Strength::Allow.name()),
        Verdict::Pass | Verdict::Review(_) | Verdict::Deny(_) => write!(f, "{verdict}"),
    }
}

fn asked(decision: &PastDecision) -> String {
    let call = decision.request.tool_call.as_ref();
    let mut text = call.map_or_else(
        || "a request without a tool".to_owned(),
        |call| quoted(&call.name).to_string(),
    );
    for path in decision.subject.paths.iter().take(3) {
        text += &format!(" {}", quoted(path.as_str()));
    }
    text
}
