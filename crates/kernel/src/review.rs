//! The person who is asked where a rule wants one.
//!
//! **Invariant.** A review answers the objections that were shown and no others: if the rules say
//! something else by the time the person agreed, or another policy holds, nothing runs.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fluffy_base::{Digest, KernelRequest, sanitised};
use fluffy_policy::Reasons;

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
}

/// What the person said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Review {
    /// No.
    Refused {
        /// Who said so.
        by: String,
    },
    /// Yes.
    Approved {
        /// Who said so.
        by: String,
        /// What was typed, where a phrase was asked for.
        phrase: Option<String>,
    },
}

/// Proof that a person agreed to these objections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Approved {
    reasons: Reasons,
    /// The policy that the objections were raised under.
    policy: Digest,
    by: String,
}

impl Approved {
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
}

/// Asks; the proof of a yes, or the words of a no.
pub(crate) fn ask(
    reviewer: &dyn Reviewer,
    question: &Question<'_>,
    policy: Digest,
) -> Result<Approved, String> {
    // Unwind safety: a reviewer that panicked has agreed to nothing.
    let asked = catch_unwind(AssertUnwindSafe(|| reviewer.review(question)));
    let Ok(review) = asked else { return Err("the person could not be asked".to_owned()) };
    match review {
        Review::Refused { by } => Err(format!("{} refused", sanitised(&by))),
        Review::Approved { by, phrase } => {
            let by = sanitised(&by).into_owned();
            match question.phrase {
                Some(wanted) if phrase.as_deref().map(str::trim) != Some(wanted) => {
                    Err(format!("{by} did not type `{wanted}`"))
                }
                Some(_) | None => Ok(Approved { reasons: question.reasons.clone(), policy, by }),
            }
        }
    }
}

/// A reviewer that is shared.
impl<R: Reviewer + ?Sized> Reviewer for std::sync::Arc<R> {
    fn review(&self, question: &Question<'_>) -> Review {
        (**self).review(question)
    }
}
