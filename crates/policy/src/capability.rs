//! One rule of a policy file.

use std::fmt;

use fluffy_base::ByteSize;

use crate::condition::{Condition, Reading, Target, careless};
use crate::facts::{Facts, Isolation};
use crate::verdict::{Reason, Source, Verdict};

/// One rule of a policy file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Capability {
    /// Its name and place.
    pub(crate) source: Source,
    /// The column in which it begins, from 1.
    pub(crate) column: u64,
    /// What it says where it applies.
    pub(crate) action: Action,
    /// When it applies.
    pub(crate) condition: Condition,
    /// When it does not, although it would.
    pub(crate) except: Vec<Condition>,
    /// What must hold besides for what it lets through.
    pub(crate) constraints: Constraints,
    /// Why, in its author's words.
    pub(crate) reason: Option<String>,
    /// Its objection, made once.
    pub(crate) objection: Reason,
    /// What it must and must not let through, checked when the file is read.
    pub(crate) examples: Vec<Example>,
}

/// What a rule says where it applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It may proceed.
    Allow,
    /// It may not.
    Deny,
    /// It may once a person has agreed.
    RequireReview,
    /// Nothing.
    Pass,
}

/// What must hold for what a rule lets through; what does not hold denies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Constraints {
    /// It runs in a sandbox.
    pub(crate) require_sandbox: bool,
    /// It shows a token of the kernel's.
    pub(crate) require_capability_token: bool,
    /// It writes no more than this.
    pub(crate) max_file_size: Option<ByteSize>,
}

/// A call with what the policy must say to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Example {
    pub(crate) syscall: String,
    pub(crate) path: Option<String>,
    pub(crate) expected: Expected,
    pub(crate) line: u64,
    pub(crate) column: u64,
}

/// What an example promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    Allows,
    Denies,
}

impl Action {
    /// Every action, as it is written.
    pub const ALL: [Self; 4] = [Self::Allow, Self::Deny, Self::RequireReview, Self::Pass];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::RequireReview => "require_review",
            Self::Pass => "pass",
        }
    }

    /// Whether it can only keep something from happening.
    pub(crate) const fn objects(self) -> bool {
        match self {
            Self::Deny | Self::RequireReview => true,
            Self::Allow | Self::Pass => false,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Capability {
    /// Whether it can only ever object.
    pub(crate) fn objects(&self) -> bool {
        self.action.objects()
    }

    /// What the rule says to one target of a call.
    pub(crate) fn judge(&self, facts: &Facts<'_>, target: Target<'_>) -> Verdict {
        let exact = self.judge_as(facts, target, Reading::Exact);
        match target {
            Target::Path(path) if self.objects() => {
                let folded = careless(path);
                let target = Target::Path(folded.as_ref().unwrap_or(path));
                exact.join(self.judge_as(facts, target, Reading::Careless))
            }
            Target::Path(_) | Target::Root | Target::Nothing => exact,
        }
    }

    fn judge_as(&self, facts: &Facts<'_>, target: Target<'_>, reading: Reading) -> Verdict {
        if self.condition.holds(facts, target, reading) {
            self.judge_matched(facts, target, reading)
        } else {
            Verdict::Pass
        }
    }

    /// The same where the index found that call and target match.
    pub(crate) fn judge_found(
        &self,
        facts: &Facts<'_>,
        target: Target<'_>,
        reading: Reading,
    ) -> Verdict {
        if self.condition.difference_beside(facts).is_none() {
            self.judge_matched(facts, target, reading)
        } else {
            Verdict::Pass
        }
    }

    fn is_excepted(&self, facts: &Facts<'_>, target: Target<'_>, reading: Reading) -> bool {
        let excepted = |target: Target<'_>, reading: Reading| {
            self.except.iter().any(|except| except.holds(facts, target, reading))
        };
        if excepted(target, reading) {
            return true;
        }
        match target {
            Target::Path(path) if !self.objects() && !self.except.is_empty() => {
                let folded = careless(path);
                excepted(Target::Path(folded.as_ref().unwrap_or(path)), Reading::Careless)
            }
            Target::Path(_) | Target::Root | Target::Nothing => false,
        }
    }

    fn judge_matched(&self, facts: &Facts<'_>, target: Target<'_>, reading: Reading) -> Verdict {
        if self.is_excepted(facts, target, reading) {
            return Verdict::Pass;
        }
        match self.action {
            Action::Pass => Verdict::Pass,
            Action::Deny => Verdict::deny(self.objection.clone()),
            Action::Allow => {
                self.unmet(facts).unwrap_or_else(|| Verdict::Allow(self.source.clone()))
            }
            Action::RequireReview => {
                self.unmet(facts).unwrap_or_else(|| Verdict::review(self.objection.clone()))
            }
        }
    }

    /// The denial for the first constraint that does not hold.
    fn unmet(&self, facts: &Facts<'_>) -> Option<Verdict> {
        let Constraints { require_sandbox, require_capability_token, max_file_size } =
            self.constraints;
        let (text, hint) = if require_sandbox && facts.subject.isolation < Isolation::Sandbox {
            let text = "it would not run in a sandbox, which `require_sandbox` demands".to_owned();
            (text, "call a tool that runs in a sandbox".to_owned())
        } else if require_capability_token && !shows_token(facts) {
            let text =
                "it shows no valid token, which `require_capability_token` demands".to_owned();
            (text, "ask the kernel for a token first".to_owned())
        } else {
            let (max, bytes) = (max_file_size?, facts.subject.file_bytes?);
            if bytes <= max.bytes() {
                return None;
            }
            let text = format!("it would write {bytes} bytes, `max_file_size` is {max}");
            (text, format!("up to {max} a file"))
        };
        let text = format!("{text} ({})", self.source);
        Some(Verdict::deny(Reason::of(self.source.clone(), &text).with_hint(&hint)))
    }
}

fn shows_token(facts: &Facts<'_>) -> bool {
    facts.caller.token.is_some() || facts.caller.wants_token
}
