//! What came of a step, as people and programs are told of it.

use fluffy_base::{Digest, ProjectPath};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Advice, BuildEnd, Facts, GateResult, Inquiry, Proposal, Sealed, SkillName, build};

/// What came of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Done {
    /// It was proposed.
    Proposed(Proposed),
    /// It was built, well or badly.
    Built(Built),
    /// The gates were asked.
    Verified(Verified),
    /// A failure was looked into.
    Researched(Researched),
    /// A person agreed to another attempt.
    RetryAgreed(RetryAgreed),
    /// It is trusted.
    Promoted(Promoted),
    /// It is not trusted any more.
    Revoked(Revoked),
}

/// A skill that was proposed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proposed {
    /// Which skill.
    pub name: SkillName,
    /// The proposal's id.
    pub proposal: String,
    /// What was proposed, as it is recorded.
    pub spec: Proposal,
    /// Its `SKILL_SPEC`.
    pub artifact: Digest,
    /// Number of the ledger's entry.
    pub entry: u64,
}

/// A build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Built {
    /// Which skill.
    pub name: SkillName,
    /// The build's id.
    pub build: String,
    /// Which attempt it was.
    pub attempt: u32,
    /// How it ended.
    pub end: BuildEnd,
    /// Its `BUILD_LOG`.
    pub log: Digest,
}

/// A verification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verified {
    /// Which skill.
    pub name: SkillName,
    /// The verification's id.
    pub verification: String,
    /// Of which build.
    pub build: String,
    /// Whether all five gates let it through.
    pub passed: bool,
    /// What each gate said.
    pub gates: Vec<GateResult>,
    /// What they looked at.
    pub sealed: Sealed,
    /// Its `VERIFICATION_REPORT`.
    pub report: Digest,
    /// The files that were brought into the project.
    pub brought: Vec<ProjectPath>,
    /// Why they were not, though the gates let them through.
    pub not_brought: Option<String>,
    /// Number of the ledger's entry.
    pub entry: u64,
}

/// What was found out about a failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Researched {
    /// Which skill.
    pub name: SkillName,
    /// Which build.
    pub build: String,
    /// Which attempt it was.
    pub attempt: u32,
    /// The failure kind.
    pub failure: String,
    /// What told it, in words.
    pub told_by: String,
    /// What is known of it.
    pub facts: Facts,
    /// How many attempts failed one after the other.
    pub failed_in_a_row: u32,
    /// What came of asking the local model: `not_asked`, `given`, `widens` or `unusable`.
    pub advice: String,
    /// What demands a person before the next attempt.
    pub triggers: Vec<String>,
    /// The `RESEARCH_NOTE`.
    pub note: Digest,
    /// What it says.
    pub text: String,
}

/// Another attempt that a person agreed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryAgreed {
    /// Which skill.
    pub name: SkillName,
    /// After which build.
    pub build: String,
    /// Who.
    pub by: String,
    /// Number of the ledger's entry.
    pub entry: u64,
}

/// A promotion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Promoted {
    /// Which skill.
    pub name: SkillName,
    /// On the strength of which verification.
    pub verification: String,
    /// Who.
    pub by: String,
    /// What is trusted.
    pub sealed: Sealed,
    /// Number of the ledger's entry.
    pub entry: u64,
}

/// The end of trust.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// Which skill.
    pub name: SkillName,
    /// Who.
    pub by: String,
    /// Why.
    pub why: String,
    /// Number of the ledger's entry.
    pub entry: u64,
}

impl Built {
    pub(super) fn of(name: SkillName, built: build::Built) -> Self {
        let build::Built { build, number, end, log } = built;
        Self { name, build, attempt: number, end, log }
    }

    /// Whether it succeeded.
    pub const fn succeeded(&self) -> bool {
        matches!(self.end, BuildEnd::Built { .. })
    }
}

impl Researched {
    pub(super) fn of(inquiry: Inquiry) -> Self {
        let advice = match inquiry.advice {
            Advice::NotAsked => "not_asked",
            Advice::Given { .. } => "given",
            Advice::Widens { .. } => "widens",
            Advice::Unusable(_) => "unusable",
        };
        Self {
            name: inquiry.name,
            build: inquiry.build,
            attempt: inquiry.attempt,
            failure: inquiry.failure.name().to_owned(),
            told_by: inquiry.told.name().to_owned(),
            facts: inquiry.facts,
            failed_in_a_row: inquiry.failed_in_a_row,
            advice: advice.to_owned(),
            triggers: inquiry.triggers.iter().map(|trigger| trigger.name().to_owned()).collect(),
            note: inquiry.note,
            text: inquiry.text,
        }
    }
}

impl Done {
    /// Whether the step did what it was for.
    pub const fn succeeded(&self) -> bool {
        match self {
            Self::Built(built) => built.succeeded(),
            Self::Verified(verified) => verified.passed && verified.not_brought.is_none(),
            Self::Proposed(_)
            | Self::Researched(_)
            | Self::RetryAgreed(_)
            | Self::Promoted(_)
            | Self::Revoked(_) => true,
        }
    }

    /// The short of it, for the request's own entry: what is more is in the skill's entry.
    pub(super) fn short(&self) -> Value {
        match self {
            Self::Proposed(it) => json!({ "proposal": it.proposal, "entry": it.entry }),
            Self::Built(it) => json!({ "build": it.build, "built": it.succeeded() }),
            Self::Verified(it) => json!({ "verification": it.verification, "passed": it.passed }),
            Self::Researched(it) => json!({ "failure": it.failure, "triggers": it.triggers }),
            Self::RetryAgreed(it) => json!({ "by": it.by, "entry": it.entry }),
            Self::Promoted(it) => json!({ "by": it.by, "entry": it.entry }),
            Self::Revoked(it) => json!({ "by": it.by, "entry": it.entry }),
        }
    }
}
