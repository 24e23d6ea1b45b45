//! What a person is asked before something has an effect.
//!
//! **Invariant.** A yes belongs to one question of one conversation. It lasts as long as the question does, it is a person's,
//! and it stands for the plan that was shown: nothing is parsed, resolved or planned again.

use fluffy_base::Digest;

use crate::plan::Plan;
use crate::skill::Known;

/// How long a question can be answered.
pub const TTL_MS: u64 = 5 * 60 * 1_000;

/// Words that are a yes, and nothing but a yes.
const YES: [&str; 10] =
    ["y", "yes", "yep", "yeah", "ok", "okay", "sure", "go ahead", "do it", "confirm"];
/// Words that are a no.
const NO: [&str; 9] =
    ["n", "no", "nope", "cancel", "stop", "don't", "dont", "never mind", "nevermind"];

/// A plan that waits for a person.
#[derive(Debug, Clone, PartialEq)]
pub struct Pending {
    /// Its id.
    pub id: String,
    /// What would be done.
    pub plan: Plan,
    /// Hash of that.
    pub digest: Digest,
    /// What the person had said.
    pub message: String,
    /// When they were asked, in milliseconds since the epoch.
    pub asked_ms: u64,
}

/// Who agreed to a plan, and to what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consent {
    /// Which question; nothing where the yes was said beforehand.
    pub pending: Option<String>,
    /// Hash of the plan.
    pub digest: Digest,
    /// Who, in words.
    pub by: &'static str,
}

/// Why a yes does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfirmError {
    /// Nothing of that name is asked in this conversation.
    NotAsked,
    /// It came too late.
    Expired,
    /// A skill is not what it was when the person was asked.
    Changed,
    /// Nobody at a terminal says it.
    NoPerson,
}

impl Pending {
    /// Until when it can be answered.
    pub fn expires_ms(&self) -> u64 {
        self.asked_ms.saturating_add(TTL_MS)
    }

    /// Whether it can be answered still. A clock that was set back is no more time.
    pub fn is_alive(&self, now_ms: u64) -> bool {
        now_ms >= self.asked_ms && now_ms < self.expires_ms()
    }

    /// The plan that was shown, if a yes counts now.
    pub fn agreed(self, now_ms: u64, known: &[Known]) -> Result<(Plan, Consent), ConfirmError> {
        if !self.is_alive(now_ms) {
            return Err(ConfirmError::Expired);
        }
        let now = self.plan.as_trusted_now(known).ok_or(ConfirmError::Changed)?;
        if now.digest() != self.digest || self.plan.digest() != self.digest {
            return Err(ConfirmError::Changed);
        }
        let by = "the user, at the terminal";
        let consent = Consent { pending: Some(self.id), digest: self.digest, by };
        Ok((self.plan, consent))
    }
}

/// Whether an answer is a yes: one of a few words, and nothing beside it.
pub fn is_yes(text: &str) -> bool {
    is_one_of(text, &YES)
}

/// Whether an answer is a no; no answer at all is one.
pub fn is_no(text: &str) -> bool {
    text.trim().is_empty() || is_one_of(text, &NO)
}

fn is_one_of(text: &str, words: &[&str]) -> bool {
    let text = text.trim().trim_end_matches(['.', '!']).to_ascii_lowercase();
    words.contains(&text.as_str())
}
