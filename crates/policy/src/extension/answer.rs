//! What a rule file answers, and what it counts for.
//!
//! **Invariant.** A rule that gave no proper answer has denied.

use fluffy_base::Excerpt;
use serde::{Deserialize, Serialize};

use crate::verdict::{Reason, Source, Verdict};

/// How much of a rule's reason is kept.
pub const MAX_REASON_CHARS: usize = 500;

/// The answer of one rule file to one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RuleAnswer {
    /// The rule has no opinion.
    Pass,
    /// The rule allows the request.
    Allow,
    /// The rule wants a person to look, for this reason.
    RequireReview(String),
    /// The rule denies, for this reason.
    Deny(String),
    /// The rule came to no answer: it threw, ran too long, or returned something else.
    Failed(String),
}

impl RuleAnswer {
    /// A failure in the words of this crate.
    pub(crate) fn failed(why: impl AsRef<str>) -> Self {
        Self::Failed(cut(why.as_ref()))
    }

    /// What the answer counts for; `source` is the rule that gave it.
    pub fn verdict(&self, source: &Source) -> Verdict {
        let reason = |text: &str| {
            let text = format!("{} ({source})", cut(text));
            Reason::of(source.clone(), &text)
        };
        match self {
            Self::Pass => Verdict::Pass,
            Self::Allow => Verdict::Allow(source.clone()),
            Self::RequireReview(text) => Verdict::review(reason(text)),
            Self::Deny(text) => Verdict::deny(reason(text)),
            Self::Failed(why) => {
                let hint = "nothing until the rule is mended or taken out of the policy";
                Verdict::deny(reason(&format!("the rule {why}")).with_hint(hint))
            }
        }
    }
}

/// The beginning of a text, on one line and safe to show.
pub(crate) fn cut(text: &str) -> String {
    Excerpt::new(text, MAX_REASON_CHARS).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Layer, Place};

    #[test]
    fn a_failure_is_a_denial_and_a_reason_is_cut() {
        let place = Place { file: ".fluffy/rules/locks.ts".into(), line: 1 };
        let locks = Source::new(Layer::Extension, "locks").at(place);
        let verdict = RuleAnswer::failed("threw").verdict(&locks);
        assert_eq!(
            verdict.to_string(),
            "deny: the rule threw (rule `locks`, .fluffy/rules/locks.ts:1)"
        );
        let long = RuleAnswer::RequireReview("x\n".repeat(9999)).verdict(&locks);
        let reason = long.reasons().unwrap().primary();
        assert!(reason.text().chars().count() < MAX_REASON_CHARS + 100);
        assert_eq!((reason.rule(), reason.layer()), ("locks", Layer::Extension));
        assert_eq!(RuleAnswer::Pass.verdict(&locks), Verdict::Pass);
        assert_eq!(RuleAnswer::Allow.verdict(&locks).to_string(), "allow");
    }
}
