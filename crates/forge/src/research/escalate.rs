//! What makes a person have a look before the next attempt.
//!
//! **Invariant.** Where one trigger fires, nothing is tried again until a person has agreed; several fire together,
//! and each is told.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::advise::Advice;
use super::classify::{Classified, FailureKind, Told};

/// From how many failures in a row on somebody has a look.
const TOO_OFTEN: u32 = 3;

/// How much of a packet may change unseen, in per cent.
const TOO_MUCH_PERCENT: usize = 50;

/// Why a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Trigger {
    /// Three attempts or more failed in a row.
    RepeatedFailure,
    /// The advice would have the skill do more than was proposed.
    PermissionWidening,
    /// The code did what is forbidden, or is not what was proposed.
    SecurityClass,
    /// More than half of the packet would change.
    LargeDiff,
    /// What failed is not known, or advice was wanted and did not come.
    Ambiguous,
}

impl Trigger {
    /// All of them, in the order in which they are told.
    pub const ALL: [Self; 5] = [
        Self::RepeatedFailure,
        Self::PermissionWidening,
        Self::SecurityClass,
        Self::LargeDiff,
        Self::Ambiguous,
    ];

    /// Its name, as entries have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RepeatedFailure => "REPEATED_FAILURE",
            Self::PermissionWidening => "PERMISSION_WIDENING",
            Self::SecurityClass => "SECURITY_CLASS",
            Self::LargeDiff => "LARGE_DIFF",
            Self::Ambiguous => "AMBIGUOUS",
        }
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|trigger| trigger.name() == name)
    }

    /// Why it makes a person have a look.
    pub const fn about(self) -> &'static str {
        match self {
            Self::RepeatedFailure => "three attempts or more failed in a row",
            Self::PermissionWidening => {
                "the advice would have the skill do more than was proposed; it is not used"
            }
            Self::SecurityClass => "the code used what is forbidden, or is not what was proposed",
            Self::LargeDiff => "the advice changes more than half of the packet",
            Self::Ambiguous => "what failed is not known, or no advice came",
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The triggers that fire, in their order. `failed_in_a_row` counts this failure.
pub fn triggers(classified: Classified, failed_in_a_row: u32, advice: &Advice) -> Vec<Trigger> {
    let fires = |trigger: &Trigger| match trigger {
        Trigger::RepeatedFailure => failed_in_a_row >= TOO_OFTEN,
        Trigger::PermissionWidening => matches!(advice, Advice::Widens { .. }),
        Trigger::SecurityClass => classified.kind.is_about_security(),
        Trigger::LargeDiff => match advice {
            Advice::Given { changed_percent, .. } => *changed_percent > TOO_MUCH_PERCENT,
            Advice::NotAsked | Advice::Widens { .. } | Advice::Unusable(_) => false,
        },
        Trigger::Ambiguous => {
            let guessed = match classified.told {
                Told::Gates | Told::Build => false,
                Told::Log | Told::Nothing => true,
            };
            guessed
                || classified.kind == FailureKind::Unknown
                || matches!(advice, Advice::Unusable(_))
        }
    };
    Trigger::ALL.into_iter().filter(fires).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GatewayError;
    use crate::research::Unusable;

    fn classified(kind: FailureKind) -> Classified {
        Classified { kind, told: Told::Gates }
    }

    fn given(changed_percent: usize) -> Advice {
        Advice::Given { packet: String::new(), added: Vec::new(), changed_percent }
    }

    #[test]
    fn for_8_every_trigger_fires_alone() {
        let plain = classified(FailureKind::VerifyLint);
        let asked = Advice::NotAsked;
        assert_eq!(triggers(plain, 1, &asked), []);
        assert_eq!(triggers(plain, 2, &given(50)), []);
        assert_eq!(triggers(plain, 3, &asked), [Trigger::RepeatedFailure]);
        assert_eq!(triggers(plain, u32::MAX, &asked), [Trigger::RepeatedFailure]);
        let widens = Advice::Widens { reasons: vec!["x".to_owned()] };
        assert_eq!(triggers(plain, 1, &widens), [Trigger::PermissionWidening]);
        for kind in [FailureKind::VerifyPolicy, FailureKind::VerifyInvariant] {
            assert_eq!(triggers(classified(kind), 1, &asked), [Trigger::SecurityClass]);
        }
        assert_eq!(triggers(plain, 1, &given(51)), [Trigger::LargeDiff]);
        let unavailable = Advice::Unusable(Unusable::Gateway(GatewayError::Absent));
        assert_eq!(triggers(plain, 1, &unavailable), [Trigger::Ambiguous]);
        let unknown = classified(FailureKind::Unknown);
        assert_eq!(triggers(unknown, 1, &asked), [Trigger::Ambiguous]);
        for told in [Told::Log, Told::Nothing] {
            let guessed = Classified { told, ..plain };
            assert_eq!(triggers(guessed, 1, &asked), [Trigger::Ambiguous]);
        }
    }

    #[test]
    fn for_8_several_triggers_are_all_told() {
        let policy = classified(FailureKind::VerifyPolicy);
        let widens = Advice::Widens { reasons: vec!["x".to_owned()] };
        assert_eq!(
            triggers(policy, 4, &widens),
            [Trigger::RepeatedFailure, Trigger::PermissionWidening, Trigger::SecurityClass]
        );
    }

    #[test]
    fn triggers_have_names_that_entries_keep() {
        for trigger in Trigger::ALL {
            assert_eq!(Trigger::from_name(trigger.name()), Some(trigger));
            assert_eq!(serde_json::to_value(trigger).unwrap(), trigger.name());
            assert!(!trigger.about().is_empty());
        }
    }
}
