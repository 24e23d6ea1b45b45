//! Verifies the last build of a skill: the gates look at the kept bytes, the ledger has what they said, and what passed
//! all five is brought into the project.
//!
//! **Invariant.** The gates, the seal and the project get the same bytes: those that the build's entry names by their
//! hashes. Nothing of the project is read, and nothing reaches it before the entry that all five gates passed.
//!
//! **Invariant.** It may be interrupted anywhere and called again: before the entry the gates are asked again, after it
//! the files are brought.

use std::path::Path;
use std::sync::Arc;

use fluffy_base::{Digest, IdSource, ProjectPath};
use fluffy_kernel::{Journal, Lab, Tree};

use crate::build::{BringError, BuildError, Shelved, bring, patch_of};
use crate::{
    ArtifactError, ArtifactKind, BuildEnd, GateResult, Inspected, Judgement, Proposal, Sealed,
    Shelf, ShelfError, Skill, SkillEntry, SkillName, SourceFile, Standing, Tools, Verification,
    VerifyError, inspect,
};

/// Reads a skill's text without running it: its files, what was proposed, and what the build changed.
pub type Reading<'a> = &'a (dyn Fn(&[SourceFile], &Proposal, &[ProjectPath]) -> GateResult + Sync);

/// What a verification is made of.
pub struct VerifyOrder<'a> {
    /// Which skill.
    pub name: &'a SkillName,
    /// The forge's memory.
    pub shelf: &'a Shelf,
    /// What remembers.
    pub journal: &'a (dyn Journal + Sync),
    /// The policy gate.
    pub policy: Reading<'a>,
    /// The invariants gate.
    pub invariants: Reading<'a>,
    /// Where tools run.
    pub lab: &'a Lab,
    /// The tools.
    pub tools: &'a Tools,
    /// A directory of ours, in which files are laid out for the gates.
    pub scratch: &'a Path,
    /// A directory of ours for bringing files into the project, kept between calls.
    pub bringing: &'a Path,
    /// The project.
    pub tree: &'a Arc<Tree>,
    /// Where ids and keys come from.
    pub ids: &'a dyn IdSource,
}

/// What became of a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The verification's id.
    pub verification: String,
    /// The build that the gates looked at.
    pub build: String,
    /// The `VERIFICATION_REPORT` artifact.
    pub report: Digest,
    /// Number of the entry.
    pub entry: u64,
    /// What each gate said, in their order.
    pub gates: Vec<GateResult>,
    /// What they looked at.
    pub sealed: Sealed,
    /// Whether all five let it through.
    pub passed: bool,
    /// Files that were brought into the project, and were not there already.
    pub brought: Vec<ProjectPath>,
}

/// Why a skill was not verified, or not yet brought.
#[derive(Debug, thiserror::Error)]
pub enum VerificationError {
    /// There is nothing to verify.
    #[error("skill `{name}` is {} and has no build to verify: run `fluffy skill build {name}`", .standing.name())]
    Unbuilt {
        /// The skill.
        name: SkillName,
        /// Where it stands.
        standing: Standing,
    },
    /// The shelf does not answer or take the entry.
    #[error(transparent)]
    Shelf(#[from] ShelfError),
    /// A kept file or the report cannot be had or kept.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// What the build changed cannot be told.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The gates could not be asked.
    #[error(transparent)]
    Gates(#[from] VerifyError),
    /// The machine gives no randomness.
    #[error("the machine gives no randomness for an id")]
    NoRandomness,
    /// It is verified, and its files are not in the project yet.
    #[error(
        "skill `{name}` is verified, and its files are not yet in the project: `fluffy skill verify {name}` tries it again"
    )]
    NotBrought {
        /// The skill.
        name: SkillName,
        /// Why not.
        source: Box<BringError>,
    },
}

/// The last build of a skill, with the bytes that it kept.
struct LastBuild {
    id: String,
    files: Vec<SourceFile>,
    changed: Vec<ProjectPath>,
}

/// Verifies the last build of a skill. Of one that is verified already, what is missing in the project is brought.
pub fn verify(order: &VerifyOrder<'_>) -> Result<Verified, VerificationError> {
    let skill = order.shelf.skill(order.name)?;
    if skill.standing == Standing::Verified
        && let Some(known) = skill.verification()
    {
        let brought = brought(order, &skill)?;
        return Ok(Verified { brought, ..Verified::of(known) });
    }
    if skill.standing != Standing::Built {
        return Err(unbuilt(&skill));
    }
    let build = last_build(order.shelf, order.journal, &skill)?;
    let judgement = judged(order, &skill, &build)?;
    let passed = judgement.passed();
    let Judgement { gates, sealed, report } = judgement;
    let report = order.shelf.artifacts().put(ArtifactKind::VerificationReport, &report)?;
    let id = order.ids.fresh().ok_or(VerificationError::NoRandomness)?;
    let verification = format!("{:032x}", u128::from_be_bytes(id));
    let entry = SkillEntry::Verified {
        name: order.name.clone(),
        build: build.id.clone(),
        verification: verification.clone(),
        gates: gates.clone(),
        sealed: sealed.clone(),
        report,
    };
    let entry = order.shelf.record(order.journal, &entry)?.seq;
    let brought = match passed {
        true => brought(order, &order.shelf.skill(order.name)?)?,
        false => Vec::new(),
    };
    Ok(Verified { verification, build: build.id, report, entry, gates, sealed, passed, brought })
}

impl Verified {
    /// One that all five gates passed, of which nothing was brought.
    pub(crate) fn of(known: &Verification) -> Self {
        let Verification { seq, id, build, gates, sealed, report } = known.clone();
        let (passed, brought) = (true, Vec::new());
        Self { verification: id, build, report, entry: seq, gates, sealed, passed, brought }
    }
}

/// Asks the invariants gate alone about the last build of a skill. Nothing is recorded, and nothing runs.
pub fn check_invariants(
    shelf: &Shelf,
    journal: &dyn Journal,
    name: &SkillName,
    invariants: Reading<'_>,
) -> Result<GateResult, VerificationError> {
    let skill = shelf.skill(name)?;
    let build = last_build(shelf, journal, &skill)?;
    Ok(invariants(&build.files, &skill.proposal.spec, &build.changed))
}

fn judged(
    order: &VerifyOrder<'_>,
    skill: &Skill,
    build: &LastBuild,
) -> Result<Judgement, VerifyError> {
    let proposal = &skill.proposal.spec;
    inspect(&Inspected {
        proposal,
        files: &build.files,
        policy: &|files| (order.policy)(files, proposal, &build.changed),
        invariants: &|files| (order.invariants)(files, proposal, &build.changed),
        lab: order.lab,
        tools: order.tools,
        scratch: order.scratch,
        ids: order.ids,
        journal: order.journal,
        most: None,
    })
}

/// The last build, if it succeeded and counts for what is proposed now.
fn last_build(
    shelf: &Shelf,
    journal: &dyn Journal,
    skill: &Skill,
) -> Result<LastBuild, VerificationError> {
    let unbuilt = || unbuilt(skill);
    let build = skill.last_build().filter(|build| build.proposal == skill.proposal.id);
    let build = build.ok_or_else(unbuilt)?;
    let ended = build.ended.as_ref().ok_or_else(unbuilt)?;
    let BuildEnd::Built { files: pinned } = &ended.end else { return Err(unbuilt()) };
    let mut files = Vec::new();
    for file in pinned {
        let bytes = shelf.artifacts().get(&file.sha256)?;
        files.push(SourceFile { path: file.path.clone(), bytes });
    }
    let patch = patch_of(&Shelved { shelf, journal }, &ended.log)?;
    let changed = patch.changes.into_iter().map(|change| change.path).collect();
    Ok(LastBuild { id: build.attempt.build.clone(), files, changed })
}

fn unbuilt(skill: &Skill) -> VerificationError {
    VerificationError::Unbuilt { name: skill.name.clone(), standing: skill.standing }
}

fn brought(order: &VerifyOrder<'_>, skill: &Skill) -> Result<Vec<ProjectPath>, VerificationError> {
    let shelved = Shelved { shelf: order.shelf, journal: order.journal };
    bring(&shelved, skill, order.tree, order.bringing).map_err(|error| {
        VerificationError::NotBrought { name: order.name.clone(), source: Box::new(error) }
    })
}
