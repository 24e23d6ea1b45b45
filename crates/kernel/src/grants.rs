//! What a person agreed to for as long as a session lasts.
//!
//! **Invariant.** A grant is made in the kernel's process, from the question that was shown: the same actor, tool, target and
//! objections under the same policy. Nothing that an answer says widens it.
//!
//! **Invariant.** A grant is in the ledger before it counts. A revoked one counts no more from the moment it is revoked.

use std::sync::{Mutex, MutexGuard, PoisonError};

use fluffy_base::{Digest, Excerpt, KernelRequest, ProjectPath};
use fluffy_policy::{Layer, Reasons, Subject, canonical_call};
use serde::{Deserialize, Serialize};

use crate::SessionStart;

/// Tools that do one thing to one file: what a person agrees to is that thing to that file.
const OF_A_FILE: [&str; 5] = ["fs.read", "fs.exists", "fs.write", "fs.edit", "fs.delete"];
/// How much of a call is repeated where grants are listed, in characters.
const SHOWN: usize = 500;

/// What a person agreed to for as long as a session lasts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Which of the session's, from 1; a number is given once.
    pub number: u64,
    /// Who may ask.
    pub actor: String,
    /// For which tool.
    pub tool: String,
    /// For what.
    pub target: GrantTarget,
    /// What rules have against it: these objections, no more and no fewer.
    pub objections: Vec<Objection>,
    /// Under which policy.
    pub policy: Digest,
    /// Who agreed.
    pub by: String,
}

/// What a grant is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum GrantTarget {
    /// One file.
    Path(ProjectPath),
    /// One call, argument by argument.
    Call {
        /// The hash of its arguments.
        arguments: Digest,
        /// How they begin.
        shown: String,
    },
}

/// What a rule has against a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objection {
    /// The part of the system that the rule belongs to.
    pub layer: String,
    /// The rule.
    pub rule: String,
    /// Why it objects.
    pub text: String,
}

impl Grant {
    /// What it is for, on one line.
    pub fn shown_target(&self) -> &str {
        match &self.target {
            GrantTarget::Path(path) => path.as_str(),
            GrantTarget::Call { shown, .. } => shown,
        }
    }

    /// The names of the rules whose objections it answers, each once.
    pub fn rules(&self) -> Vec<&str> {
        let mut rules: Vec<&str> = self.objections.iter().map(|it| it.rule.as_str()).collect();
        rules.dedup();
        rules
    }

    fn covers(&self, asked: &Asked<'_>) -> bool {
        let Some(made) = asked.grant(self.number, &self.by) else { return false };
        made == *self
    }
}

/// A call that rules object to.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) request: &'a KernelRequest,
    pub(crate) subject: &'a Subject,
    pub(crate) reasons: &'a Reasons,
    pub(crate) policy: Digest,
}

impl Asked<'_> {
    /// The one file that the call does something to, if it is such a call.
    pub(crate) fn file(&self) -> Option<(&str, &ProjectPath)> {
        let tool = canonical_call(&self.request.tool_call.as_ref()?.name);
        match (self.subject.paths.as_slice(), self.subject.root) {
            ([path], false) if OF_A_FILE.contains(&tool) => Some((tool, path)),
            _other => None,
        }
    }

    /// The grant for this very call; nothing where a person has to be asked each time.
    pub(crate) fn grant(&self, number: u64, by: &str) -> Option<Grant> {
        let call = self.request.tool_call.as_ref()?;
        let tool = canonical_call(&call.name);
        let of_rules = |layer| matches!(layer, Layer::Yaml | Layer::Extension);
        if !self.reasons.iter().all(|reason| of_rules(reason.layer())) || is_own(tool) {
            return None;
        }
        let target = match self.file() {
            Some((_, path)) => GrantTarget::Path(path.clone()),
            None => GrantTarget::Call {
                arguments: Digest::of(call.params.canonical().as_bytes()),
                shown: Excerpt::new(call.params.canonical(), SHOWN).to_string(),
            },
        };
        let objections = self.reasons.iter().map(|reason| Objection {
            layer: reason.layer().name().to_owned(),
            rule: reason.rule().to_owned(),
            text: reason.text().to_owned(),
        });
        Some(Grant {
            number,
            actor: self.request.actor.clone(),
            tool: tool.to_owned(),
            target,
            objections: objections.collect(),
            policy: self.policy,
            by: by.to_owned(),
        })
    }
}

/// Whether a call is one of the system's own, such as a merge or another policy.
fn is_own(tool: &str) -> bool {
    ["session.", "policy.", "forge.", "plugin."].iter().any(|group| tool.starts_with(group))
}

/// The grants of a kernel's session.
#[derive(Debug, Default)]
pub(crate) struct Grants(Mutex<Option<Book>>);

#[derive(Debug, Default)]
struct Book {
    last: u64,
    grants: Vec<Grant>,
}

impl Grants {
    /// Those of a kernel that boots into a session: none yet, and there may be some where it has a name to last by.
    pub(crate) fn of(session: &SessionStart) -> Self {
        Self(Mutex::new(match session {
            SessionStart::Named(_) => Some(Book::default()),
            SessionStart::New | SessionStart::Continue => None,
        }))
    }

    fn book(&self) -> MutexGuard<'_, Option<Book>> {
        // A panic while it was held leaves it whole: every change is one step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on there may be some, and these there are; `last` is the greatest number ever given.
    pub(crate) fn keep(&self, last: u64, grants: Vec<Grant>) {
        *self.book() = Some(Book { last, grants });
    }

    /// Whether there may be any: a kernel without a session has none.
    pub(crate) fn are_kept(&self) -> bool {
        self.book().is_some()
    }

    /// A number for a grant that is to be made; it is given once.
    pub(crate) fn next(&self) -> Option<u64> {
        let mut book = self.book();
        let book = book.as_mut()?;
        book.last += 1;
        Some(book.last)
    }

    /// Has a grant count that is in the ledger.
    pub(crate) fn add(&self, grant: Grant) {
        if let Some(book) = self.book().as_mut() {
            book.grants.push(grant);
        }
    }

    /// Takes a grant back; whether there was one.
    pub(crate) fn revoke(&self, number: u64) -> bool {
        let mut book = self.book();
        let Some(book) = book.as_mut() else { return false };
        let before = book.grants.len();
        book.grants.retain(|grant| grant.number != number);
        book.grants.len() < before
    }

    /// Ends all of them; whether there were any.
    pub(crate) fn end(&self) -> bool {
        let mut book = self.book();
        book.as_mut().is_some_and(|book| !std::mem::take(&mut book.grants).is_empty())
    }

    /// The grant that covers a call, if one does.
    pub(crate) fn covering(&self, asked: &Asked<'_>) -> Option<Grant> {
        let book = self.book();
        book.as_ref()?.grants.iter().find(|grant| grant.covers(asked)).cloned()
    }

    /// Those that count under a policy.
    pub(crate) fn under(&self, policy: Digest) -> Vec<Grant> {
        let book = self.book();
        let grants = book.iter().flat_map(|book| &book.grants);
        grants.filter(|grant| grant.policy == policy).cloned().collect()
    }
}
