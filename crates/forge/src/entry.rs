//! What the forge writes into the ledger.
//!
//! **Invariant.** Where a skill stands is a fold over these entries in the ledger's order, and nothing else says it.

use fluffy_base::{Digest, ProjectPath};
use serde::{Deserialize, Serialize};

use crate::{GateResult, Proposal, SkillName};

/// How far a skill is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Standing {
    /// It was proposed, and has no build that counts.
    Proposed,
    /// A build of it passed the allowlist and was copied back.
    Built,
    /// Its last build passed the five gates.
    Verified,
    /// A person promoted what was verified.
    Trusted,
    /// A person took the trust back.
    Revoked,
}

/// A file as it was hashed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pinned {
    /// Where it is in the project.
    pub path: ProjectPath,
    /// Hash of its bytes.
    pub sha256: Digest,
}

/// All that was verified together: skill, tests, support modules in the order of their paths, and the base they stand on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sealed {
    /// The files.
    pub files: Vec<Pinned>,
    /// Hash of the base class and the runner that this program ships.
    pub base: Digest,
}

/// One attempt to build a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// The build's id.
    pub build: String,
    /// Which attempt it is, from one.
    pub number: u32,
    /// The build that it tries again.
    pub parent: Option<String>,
    /// The packet that the builder gets, frozen.
    pub packet: Digest,
    /// The builder, as the person named it.
    pub builder: String,
}

/// How a build ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum BuildEnd {
    /// What it wrote was allowed. It is kept by hash and copied back once it is verified.
    Built {
        /// The files.
        files: Vec<Pinned>,
    },
    /// It failed.
    Failed {
        /// One of the failure kinds (`TIMEOUT`, `GATE_VIOLATION`, …).
        kind: String,
        /// Why, in words.
        why: String,
    },
}

/// Something that happened to a skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SkillEntry {
    /// It was proposed.
    Proposed {
        /// The proposal's id.
        proposal: String,
        /// What was proposed.
        spec: Proposal,
        /// Its `SKILL_SPEC` artifact.
        artifact: Digest,
    },
    /// A build begins.
    BuildStarted {
        /// Which skill.
        name: SkillName,
        /// Which attempt.
        attempt: Attempt,
    },
    /// A build ended.
    BuildEnded {
        /// Which skill.
        name: SkillName,
        /// Which build.
        build: String,
        /// How.
        end: BuildEnd,
        /// Its `BUILD_LOG` artifact.
        log: Digest,
    },
    /// The gates were asked.
    Verified {
        /// Which skill.
        name: SkillName,
        /// Of which build.
        build: String,
        /// The verification's id.
        verification: String,
        /// What each gate said.
        gates: Vec<GateResult>,
        /// What they looked at.
        sealed: Sealed,
        /// Its `VERIFICATION_REPORT` artifact.
        report: Digest,
    },
    /// What went wrong was looked into.
    Researched {
        /// Which skill.
        name: SkillName,
        /// Which build.
        build: String,
        /// The failure kind.
        failure: String,
        /// What demands a person before the next attempt.
        triggers: Vec<String>,
        /// Its `RESEARCH_NOTE` artifact.
        note: Digest,
    },
    /// A person agreed to another attempt.
    RetryApproved {
        /// Which skill.
        name: SkillName,
        /// After which build.
        build: String,
        /// Who.
        by: String,
    },
    /// A person trusts it.
    Promoted {
        /// Which skill.
        name: SkillName,
        /// On the strength of which verification.
        verification: String,
        /// What is trusted: what was verified.
        sealed: Sealed,
        /// Who.
        by: String,
    },
    /// A person does not trust it any more.
    Revoked {
        /// Which skill.
        name: SkillName,
        /// Who.
        by: String,
        /// Why.
        why: String,
    },
    /// It was run.
    Ran {
        /// Which skill.
        name: SkillName,
        /// The run's id.
        execution: String,
        /// The run that it follows, in a chain or as a replay.
        parent: Option<String>,
        /// What became of it, as the runner tells it.
        record: serde_json::Value,
    },
}
