//! The person who is asked where a rule wants one.
//!
//! **Invariant.** A review answers the objections that were shown and no others: if the rules say
//! something else by the time the person agreed, or another policy holds, nothing runs.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fluffy_base::{Digest, KernelRequest, is_blank, sanitised};
use fluffy_policy::{Layer, Reason, Reasons};
use serde::{Deserialize, Serialize};

use crate::grants::Grant;
use crate::narrate::bounded;
use crate::session::COMMAND_HOSTS;

/// The most of a person's words that is recorded and told, in characters.
const MAX_WORDS: usize = 2000;
/// Rules of the workflow that loosen it: a person's alone.
const LOOSENING: [&str; 3] = ["workflow.mode", "workflow.container", COMMAND_HOSTS];

/// Someone who can be asked. Every implementation keeps these promises:
///
/// 1. it answers for a person, not for the model;
/// 2. it shows the request, every reason and every note before it asks;
/// 3. what is unclear is a refusal.
pub trait Reviewer: Send + Sync {
    /// Asks. The kernel goes on answering other requests meanwhile.
    fn review(&self, question: &Question<'_>) -> Review;
}

/// What a person is asked.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The request.
    pub request: &'a KernelRequest,
    /// Why it is not simply allowed.
    pub reasons: &'a Reasons,
    /// What else there is to know, line by line.
    pub notes: &'a [String],
    /// What must be typed to agree, where a simple yes is too little.
    pub phrase: Option<&'a str>,
    /// How far a yes may reach. [`Scope::Once`] is always among it; what is not is refused.
    pub scopes: &'a [Scope],
    /// What [`Scope::Rule`] would change in the policy's file, in the form of `git diff`.
    pub exception: Option<&'a str>,
}

/// How far a yes reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This call alone.
    #[default]
    Once,
    /// Calls of the same tool with the same target and the same objections, as long as the session lasts.
    Session,
    /// An exception in the policy's file, for this target alone.
    Rule,
}

impl Scope {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Rule => "rule",
        }
    }
}

/// Whether only a person may answer for a reason, each time anew.
pub fn is_personal(reason: &Reason) -> bool {
    match reason.layer() {
        Layer::Yaml | Layer::Extension => false,
        Layer::Workflow => LOOSENING.contains(&reason.rule()),
        // The system's own rules, and those that are not known to ask anybody.
        Layer::BuiltIn
        | Layer::Validation
        | Layer::Ambiguity
        | Layer::Jurisdiction
        | Layer::Variant
        | Layer::Token
        | Layer::Silence => true,
    }
}

/// What the person said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Review {
    /// No.
    Refused {
        /// Who said so.
        by: String,
        /// What whoever asked is told beside it.
        words: Option<String>,
    },
    /// Yes.
    Approved {
        /// Who said so.
        by: String,
        /// What was typed, where a phrase was asked for.
        phrase: Option<String>,
        /// How far it reaches.
        scope: Scope,
    },
}

/// Proof that a person agreed to these objections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Approved {
    reasons: Reasons,
    /// The policy that the objections were raised under.
    policy: Digest,
    by: String,
    /// The grant by which it counts, if the person agreed before.
    grant: Option<u64>,
}

/// A yes, and how far it reaches.
#[derive(Debug)]
pub(crate) struct Agreed {
    pub(crate) approved: Approved,
    pub(crate) scope: Scope,
}

/// A no, safe to show and of bounded length.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// Who refused, or why nobody agreed.
    pub(crate) why: String,
    /// What the person says to whoever asked.
    pub(crate) words: Option<String>,
}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self { why, words: None }
    }
}

impl Approved {
    /// What a person agreed to before, for objections that the grant covers.
    pub(crate) fn by_grant(grant: &Grant, reasons: &Reasons, policy: Digest) -> Self {
        let (reasons, by) = (reasons.clone(), grant.by.clone());
        Self { reasons, policy, by, grant: Some(grant.number) }
    }

    /// The same under the policy to which the person added an exception.
    pub(crate) fn under(self, policy: Digest) -> Self {
        Self { policy, ..self }
    }

    /// What a person agreed to.
    pub(crate) fn reasons(&self) -> &Reasons {
        &self.reasons
    }

    /// Whether the person agreed to these objections, under this policy.
    pub(crate) fn covers(&self, reasons: &Reasons, policy: Digest) -> bool {
        self.reasons == *reasons && self.policy == policy
    }

    /// Who agreed.
    pub(crate) fn by(&self) -> &str {
        &self.by
    }

    /// The grant by which it counts, if it is one.
    pub(crate) fn grant(&self) -> Option<u64> {
        self.grant
    }
}

/// Asks; the proof of a yes, or the words of a no.
pub(crate) fn ask(
    reviewer: &dyn Reviewer,
    question: &Question<'_>,
    policy: Digest,
) -> Result<Agreed, Refusal> {
    // Unwind safety: a reviewer that panicked has agreed to nothing.
    let asked = catch_unwind(AssertUnwindSafe(|| reviewer.review(question)));
    let Ok(review) = asked else { return Err("the person could not be asked".to_owned().into()) };
    let (by, phrase, scope) = match review {
        Review::Refused { by, words } => {
            let words = words.filter(|words| !is_blank(words));
            let words = words.map(|words| shown(&words));
            return Err(Refusal { why: format!("{} refused", shown(&by)), words });
        }
        Review::Approved { by, phrase, scope } => (shown(&by), phrase, scope),
    };
    match question.phrase {
        Some(wanted) if phrase.as_deref().map(str::trim) != Some(wanted) => {
            return Err(format!("{by} did not type `{wanted}`").into());
        }
        Some(_) | None => {}
    }
    if !question.scopes.contains(&scope) {
        let scope = scope.name();
        return Err(format!("{by} agreed with the scope `{scope}`, which was not offered").into());
    }
    let reasons = question.reasons.clone();
    Ok(Agreed { approved: Approved { reasons, policy, by, grant: None }, scope })
}

/// A person's text: on one line, without anything a terminal obeys, and bounded before and after it is made so.
fn shown(text: &str) -> String {
    bounded(&sanitised(&bounded(text, MAX_WORDS)), MAX_WORDS)
}

/// A reviewer that is shared.
impl<R: Reviewer + ?Sized> Reviewer for std::sync::Arc<R> {
    fn review(&self, question: &Question<'_>) -> Review {
        (**self).review(question)
    }
}
