//! Where a skill stands: a fold over its entries, and the only code that says which entry may follow which.
//!
//! ```text
//!            BuildEnded(built)    Verified(all pass)     Promoted
//! PROPOSED ───────────────► BUILT ───────────────► VERIFIED ──────► TRUSTED
//!    ▲  ▲                     │                        └──────┬───────┘
//!    │  └──── BuildStarted ───┘                               │ Revoked
//!    └────────────── Proposed, BuildStarted ◄── REVOKED ◄─────┘
//! ```
//!
//! **Invariant.** What is refused before it is recorded and what counts when entries are read back is one function:
//! an entry that is not legal has no effect, wherever it comes from.
//!
//! **Invariant.** A parent is older than its child: it must be there when the child is recorded, and no id is given twice.
//! Whoever follows parents comes to an end.

use fluffy_base::{Digest, ProjectPath};
use serde::{Deserialize, Serialize};

use crate::{
    Attempt, BuildEnd, Gate, GateResult, Pinned, Proposal, SUPPORT, Sealed, SkillEntry, SkillName,
    Standing,
};

/// The longest id.
const MAX_ID: usize = 64;
/// The longest name of a person, a builder or a kind.
const MAX_LINE: usize = 4096;
/// The longest reason.
const MAX_WHY: usize = 64 << 10;

/// A skill, as its entries tell it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skill {
    /// What it is called.
    pub name: SkillName,
    /// How far it is.
    pub standing: Standing,
    /// What was proposed last.
    pub proposal: Proposed,
    /// Every attempt to build it, the first first.
    pub builds: Vec<Build>,
    /// Every verification, the first first.
    pub verifications: Vec<Verification>,
    /// Every promotion, the first first.
    pub promotions: Vec<Promotion>,
    /// Every time that trust was taken back.
    pub revocations: Vec<Revocation>,
}

/// What was proposed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposed {
    /// Number of the entry.
    pub seq: u64,
    /// The proposal's id.
    pub id: String,
    /// What.
    pub spec: Proposal,
    /// Its `SKILL_SPEC` artifact.
    pub artifact: Digest,
}

/// One attempt to build a skill, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// Number of the entry that began it.
    pub seq: u64,
    /// The proposal that it builds.
    pub proposal: String,
    /// Which attempt it is.
    pub attempt: Attempt,
    /// How it ended; none while it runs, and of one that was interrupted.
    pub ended: Option<BuildEnded>,
    /// What was found out about its failure.
    pub research: Vec<Research>,
}

/// How a build ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildEnded {
    /// Number of the entry.
    pub seq: u64,
    /// How.
    pub end: BuildEnd,
    /// Its `BUILD_LOG` artifact.
    pub log: Digest,
}

/// What was found out about a failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Research {
    /// Number of the entry.
    pub seq: u64,
    /// The failure kind.
    pub failure: String,
    /// What demands a person before the next attempt.
    pub triggers: Vec<String>,
    /// Its `RESEARCH_NOTE` artifact.
    pub note: Digest,
    /// Who agreed to the next attempt.
    pub approved: Option<String>,
}

/// What the gates said of a build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    /// Number of the entry.
    pub seq: u64,
    /// Its id.
    pub id: String,
    /// Of which build.
    pub build: String,
    /// What each gate said.
    pub gates: Vec<GateResult>,
    /// What they looked at.
    pub sealed: Sealed,
    /// Its `VERIFICATION_REPORT` artifact.
    pub report: Digest,
}

/// That a person trusted it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promotion {
    /// Number of the entry.
    pub seq: u64,
    /// On the strength of which verification.
    pub verification: String,
    /// What is trusted.
    pub sealed: Sealed,
    /// Who.
    pub by: String,
}

/// That a person trusts it no more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revocation {
    /// Number of the entry.
    pub seq: u64,
    /// Who.
    pub by: String,
    /// Why.
    pub why: String,
}

/// Why an entry may not follow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Illegal {
    /// There is no such skill.
    #[error("there is no skill `{0}`: propose it first")]
    Unknown(SkillName),
    /// Not where it stands.
    #[error("skill `{name}` is {}: {what} needs {needs}", standing_name(*.standing))]
    Standing {
        /// The skill.
        name: SkillName,
        /// Where it stands.
        standing: Standing,
        /// What was to be done.
        what: &'static str,
        /// What that needs, and how to get there.
        needs: &'static str,
    },
    /// An id that is none, or is taken.
    #[error("`{0}` cannot be the id of this {1}: ids are short, plain and given once")]
    Id(String, &'static str),
    /// Another number than the next.
    #[error("this is attempt {expected} of skill `{name}`, not {found}")]
    Number {
        /// The skill.
        name: SkillName,
        /// The next.
        expected: u32,
        /// What was said.
        found: u32,
    },
    /// A parent that is none of the skill's builds.
    #[error("build `{0}` cannot be tried again: it is none of this skill's builds")]
    Parent(String),
    /// Not the last build, or not in the state for it.
    #[error("build `{0}` is not this skill's last build, or {1}")]
    Build(String, &'static str),
    /// Files that a skill does not have, or the lack of those that it must have.
    #[error("{0}: a skill is its file, its tests and the shared support modules, each once")]
    Files(String),
    /// Files that were not built.
    #[error("`{0}` is not what the build left: verify the build's own files")]
    NotBuilt(ProjectPath),
    /// Gates that are missing or told twice.
    #[error("a verification tells each of the five gates once, and `{0}` is not")]
    Gates(Gate),
    /// Not what was verified.
    #[error("what is promoted is not what verification `{0}` looked at: verify again")]
    Unverified(String),
    /// A person must agree first.
    #[error("a person must agree to another attempt after build `{0}`: approve the retry first")]
    Unapproved(String),
    /// A text that is too long, empty or not for people.
    #[error("the {0} must be a text without control characters, and not too long")]
    Text(&'static str),
}

impl SkillEntry {
    /// Which skill it is about.
    pub fn name(&self) -> &SkillName {
        match self {
            Self::Proposed { spec, .. } => &spec.name,
            Self::BuildStarted { name, .. }
            | Self::BuildEnded { name, .. }
            | Self::Verified { name, .. }
            | Self::Researched { name, .. }
            | Self::RetryApproved { name, .. }
            | Self::Promoted { name, .. }
            | Self::Revoked { name, .. }
            | Self::Ran { name, .. } => name,
        }
    }

    /// What happened, in a word.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Proposed { .. } => "proposed",
            Self::BuildStarted { .. } => "build_started",
            Self::BuildEnded { .. } => "build_ended",
            Self::Verified { .. } => "verified",
            Self::Researched { .. } => "researched",
            Self::RetryApproved { .. } => "retry_approved",
            Self::Promoted { .. } => "promoted",
            Self::Revoked { .. } => "revoked",
            Self::Ran { .. } => "ran",
        }
    }

    /// Whether it says something about where the skill stands; a run does not.
    pub const fn is_step(&self) -> bool {
        !matches!(self, Self::Ran { .. })
    }
}

impl Standing {
    /// What a promotion needs of a skill that stands here.
    pub(crate) const fn needed_to_promote(self) -> &'static str {
        match self {
            Self::Trusted => "one that is not trusted already: run it",
            Self::Proposed | Self::Built | Self::Verified | Self::Revoked => {
                "all five gates passed: verify it first"
            }
        }
    }

    /// Its name, as the ledger and people write it.
    pub const fn name(self) -> &'static str {
        standing_name(self)
    }
}

const fn standing_name(standing: Standing) -> &'static str {
    match standing {
        Standing::Proposed => "PROPOSED",
        Standing::Built => "BUILT",
        Standing::Verified => "VERIFIED",
        Standing::Trusted => "TRUSTED",
        Standing::Revoked => "REVOKED",
    }
}

impl Skill {
    /// The build that counts.
    pub fn last_build(&self) -> Option<&Build> {
        self.builds.last()
    }

    /// The promotion that counts: of a trusted skill.
    pub fn promotion(&self) -> Option<&Promotion> {
        self.promotions.last().filter(|_| self.standing == Standing::Trusted)
    }

    /// The verification that counts: of a skill that is verified or trusted.
    pub fn verification(&self) -> Option<&Verification> {
        let counts = matches!(self.standing, Standing::Verified | Standing::Trusted);
        self.verifications.last().filter(|_| counts)
    }

    /// What demands a person before the next attempt, and nobody has agreed to yet.
    pub fn awaits(&self) -> impl Iterator<Item = &str> {
        let open = self.last_build().into_iter().flat_map(|build| &build.research);
        let open = open.filter(|research| research.approved.is_none());
        open.flat_map(|research| research.triggers.iter().map(String::as_str))
    }

    /// The number that the next attempt has.
    pub fn next_attempt(&self) -> u32 {
        u32::try_from(self.builds.len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    fn needs(&self, what: &'static str, needs: &'static str) -> Illegal {
        Illegal::Standing { name: self.name.clone(), standing: self.standing, what, needs }
    }
}

/// Lets an entry have its effect, if it is legal where the skill stands.
pub fn apply(skill: &mut Option<Skill>, seq: u64, entry: &SkillEntry) -> Result<(), Illegal> {
    if let SkillEntry::Proposed { proposal, spec, artifact } = entry {
        return proposed(
            skill,
            Proposed { seq, id: proposal.clone(), spec: spec.clone(), artifact: *artifact },
        );
    }
    let skill = match skill {
        Some(skill) if skill.name == *entry.name() => skill,
        Some(_) | None => return Err(Illegal::Unknown(entry.name().clone())),
    };
    match entry {
        SkillEntry::Proposed { .. } => Ok(()),
        SkillEntry::BuildStarted { attempt, .. } => build_started(skill, seq, attempt),
        SkillEntry::BuildEnded { build, end, log, .. } => {
            build_ended(skill, build, BuildEnded { seq, end: end.clone(), log: *log })
        }
        SkillEntry::Verified { build, verification, gates, sealed, report, .. } => {
            let verification = Verification {
                seq,
                id: verification.clone(),
                build: build.clone(),
                gates: gates.clone(),
                sealed: sealed.clone(),
                report: *report,
            };
            verified(skill, verification)
        }
        SkillEntry::Researched { build, failure, triggers, note, .. } => {
            let (failure, triggers) = (failure.clone(), triggers.clone());
            researched(
                skill,
                build,
                Research { seq, failure, triggers, note: *note, approved: None },
            )
        }
        SkillEntry::RetryApproved { build, by, .. } => retry_approved(skill, build, by),
        SkillEntry::Promoted { verification, sealed, by, .. } => {
            let (verification, sealed, by) = (verification.clone(), sealed.clone(), by.clone());
            promoted(skill, Promotion { seq, verification, sealed, by })
        }
        SkillEntry::Revoked { by, why, .. } => {
            revoked(skill, Revocation { seq, by: by.clone(), why: why.clone() })
        }
        SkillEntry::Ran { execution, parent, .. } => ran(skill, execution, parent.as_deref()),
    }
}

fn proposed(skill: &mut Option<Skill>, proposal: Proposed) -> Result<(), Illegal> {
    id(&proposal.id, "proposal")?;
    let Some(skill) = skill else {
        *skill = Some(Skill {
            name: proposal.spec.name.clone(),
            standing: Standing::Proposed,
            proposal,
            builds: Vec::new(),
            verifications: Vec::new(),
            promotions: Vec::new(),
            revocations: Vec::new(),
        });
        return Ok(());
    };
    let taken = skill.proposal.id == proposal.id
        || skill.builds.iter().any(|build| build.proposal == proposal.id);
    if skill.name != proposal.spec.name {
        return Err(Illegal::Unknown(proposal.spec.name));
    }
    if taken {
        return Err(Illegal::Id(proposal.id, "proposal"));
    }
    match skill.standing {
        Standing::Proposed | Standing::Revoked => {}
        Standing::Built | Standing::Verified | Standing::Trusted => {
            let needs = "one that is not built or is revoked: revoke it, or build it to the end";
            return Err(skill.needs("another proposal", needs));
        }
    }
    (skill.standing, skill.proposal) = (Standing::Proposed, proposal);
    Ok(())
}

fn build_started(skill: &mut Skill, seq: u64, attempt: &Attempt) -> Result<(), Illegal> {
    match skill.standing {
        Standing::Proposed | Standing::Built | Standing::Revoked => {}
        Standing::Verified | Standing::Trusted => {
            return Err(skill.needs("a build", "one that is not verified: revoke it first"));
        }
    }
    id(&attempt.build, "build")?;
    line(&attempt.builder, "builder")?;
    let known = |id: &str| skill.builds.iter().any(|build| build.attempt.build == id);
    if known(&attempt.build) {
        return Err(Illegal::Id(attempt.build.clone(), "build"));
    }
    if let Some(parent) = attempt.parent.as_deref().filter(|parent| !known(parent)) {
        return Err(Illegal::Parent(parent.to_owned()));
    }
    let (name, expected) = (&skill.name, skill.next_attempt());
    if attempt.number != expected {
        return Err(Illegal::Number { name: name.clone(), expected, found: attempt.number });
    }
    if skill.awaits().next().is_some() {
        let last = skill.last_build().map(|build| build.attempt.build.clone());
        return Err(Illegal::Unapproved(last.unwrap_or_default()));
    }
    let proposal = skill.proposal.id.clone();
    let (attempt, ended, research) = (attempt.clone(), None, Vec::new());
    skill.builds.push(Build { seq, proposal, attempt, ended, research });
    skill.standing = Standing::Proposed;
    Ok(())
}

fn build_ended(skill: &mut Skill, id: &str, ended: BuildEnded) -> Result<(), Illegal> {
    match skill.standing {
        Standing::Proposed => {}
        Standing::Built | Standing::Verified | Standing::Trusted | Standing::Revoked => {
            return Err(skill.needs("the end of a build", "a build that runs: start one"));
        }
    }
    let (name, proposal) = (skill.name.clone(), skill.proposal.id.clone());
    let runs = |build: &&mut Build| {
        build.attempt.build == id && build.ended.is_none() && build.proposal == proposal
    };
    let Some(build) = skill.builds.last_mut().filter(runs) else {
        return Err(Illegal::Build(id.to_owned(), "has ended: start another"));
    };
    let standing = match &ended.end {
        BuildEnd::Built { files } => {
            belongs(&name, files)?;
            Standing::Built
        }
        BuildEnd::Failed { kind, why } => {
            line(kind, "kind of failure")?;
            prose(why, "reason")?;
            Standing::Proposed
        }
    };
    build.ended = Some(ended);
    skill.standing = standing;
    Ok(())
}

fn verified(skill: &mut Skill, verification: Verification) -> Result<(), Illegal> {
    match skill.standing {
        Standing::Built => {}
        Standing::Proposed | Standing::Verified | Standing::Trusted | Standing::Revoked => {
            return Err(skill.needs("a verification", "a build that succeeded: build it first"));
        }
    }
    id(&verification.id, "verification")?;
    if skill.verifications.iter().any(|other| other.id == verification.id) {
        return Err(Illegal::Id(verification.id, "verification"));
    }
    let last = skill.last_build().filter(|build| build.attempt.build == verification.build);
    let built = match last.and_then(|build| build.ended.as_ref()) {
        Some(BuildEnded { end: BuildEnd::Built { files }, .. }) => files,
        Some(BuildEnded { end: BuildEnd::Failed { .. }, .. }) | None => {
            return Err(Illegal::Build(verification.build, "did not succeed: build it again"));
        }
    };
    for gate in Gate::ALL {
        if verification.gates.iter().filter(|result| result.gate == gate).count() != 1 {
            return Err(Illegal::Gates(gate));
        }
    }
    belongs(&skill.name, &verification.sealed.files)?;
    if !verification.sealed.files.is_sorted_by(|a, b| a.path < b.path) {
        return Err(Illegal::Files("the files are not in the order of their paths".to_owned()));
    }
    if let Some(file) = built.iter().find(|file| !verification.sealed.files.contains(file)) {
        return Err(Illegal::NotBuilt(file.path.clone()));
    }
    if verification.gates.iter().all(|result| result.passed) {
        skill.standing = Standing::Verified;
    }
    skill.verifications.push(verification);
    Ok(())
}

fn researched(skill: &mut Skill, id: &str, research: Research) -> Result<(), Illegal> {
    match skill.standing {
        Standing::Proposed | Standing::Built => {}
        Standing::Verified | Standing::Trusted | Standing::Revoked => {
            return Err(skill.needs("research", "a build or a verification that failed"));
        }
    }
    line(&research.failure, "kind of failure")?;
    research.triggers.iter().try_for_each(|trigger| line(trigger, "trigger"))?;
    let ended = |build: &&mut Build| build.attempt.build == id && build.ended.is_some();
    match skill.builds.last_mut().filter(ended) {
        Some(build) => build.research.push(research),
        None => return Err(Illegal::Build(id.to_owned(), "runs: wait for its end")),
    }
    Ok(())
}

fn retry_approved(skill: &mut Skill, id: &str, by: &str) -> Result<(), Illegal> {
    match skill.standing {
        Standing::Proposed | Standing::Built => {}
        Standing::Verified | Standing::Trusted | Standing::Revoked => {
            return Err(skill.needs("another attempt", "a build or a verification that failed"));
        }
    }
    line(by, "approver")?;
    let Some(build) = skill.builds.last_mut().filter(|build| build.attempt.build == id) else {
        return Err(Illegal::Build(id.to_owned(), "is not known"));
    };
    let mut open = build.research.iter_mut().filter(|research| research.approved.is_none());
    let Some(first) = open.next() else {
        return Err(Illegal::Build(id.to_owned(), "asks for nobody's agreement: just build again"));
    };
    first.approved = Some(by.to_owned());
    open.for_each(|research| research.approved = Some(by.to_owned()));
    Ok(())
}

fn promoted(skill: &mut Skill, promotion: Promotion) -> Result<(), Illegal> {
    match skill.standing {
        Standing::Verified => {}
        Standing::Proposed | Standing::Built | Standing::Trusted | Standing::Revoked => {
            return Err(skill.needs("a promotion", skill.standing.needed_to_promote()));
        }
    }
    line(&promotion.by, "approver")?;
    let verified = skill.verifications.last().is_some_and(|last| {
        last.id == promotion.verification
            && last.sealed == promotion.sealed
            && last.gates.iter().all(|result| result.passed)
    });
    if !verified {
        return Err(Illegal::Unverified(promotion.verification));
    }
    skill.promotions.push(promotion);
    skill.standing = Standing::Trusted;
    Ok(())
}

fn revoked(skill: &mut Skill, revocation: Revocation) -> Result<(), Illegal> {
    match skill.standing {
        Standing::Verified | Standing::Trusted => {}
        Standing::Proposed | Standing::Built | Standing::Revoked => {
            return Err(skill.needs("revoking", "one that is verified or trusted"));
        }
    }
    line(&revocation.by, "name of who revokes")?;
    prose(&revocation.why, "reason")?;
    skill.revocations.push(revocation);
    skill.standing = Standing::Revoked;
    Ok(())
}

/// A run is recorded once it has ended, whatever became of the skill meanwhile; one that was never trusted never ran.
fn ran(skill: &Skill, execution: &str, parent: Option<&str>) -> Result<(), Illegal> {
    if skill.promotions.is_empty() {
        return Err(skill.needs("a run", "a promotion: promote it first"));
    }
    id(execution, "run")?;
    match parent {
        Some(parent) if parent == execution => Err(Illegal::Id(parent.to_owned(), "run")),
        Some(parent) => id(parent, "run"),
        None => Ok(()),
    }
}

/// Whether these are files of a skill: its own and its tests', and none but the shared modules beside them, each once.
fn belongs(name: &SkillName, files: &[Pinned]) -> Result<(), Illegal> {
    let own = [name.skill_path(), name.test_path()];
    let own = own.into_iter().collect::<Result<Vec<_>, _>>();
    let own = own.map_err(|error| Illegal::Files(error.to_string()))?;
    if let Some(missing) = own.iter().find(|path| files.iter().all(|file| file.path != **path)) {
        return Err(Illegal::Files(format!("`{missing}` is missing")));
    }
    let strange =
        |file: &&Pinned| !own.contains(&file.path) && !SUPPORT.contains(&file.path.as_str());
    if let Some(file) = files.iter().find(strange) {
        return Err(Illegal::Files(format!("`{}` is none of its files", file.path)));
    }
    let mut paths: Vec<_> = files.iter().map(|file| &file.path).collect();
    paths.sort_unstable();
    paths.dedup();
    match paths.len() == files.len() {
        true => Ok(()),
        false => Err(Illegal::Files("a file is named twice".to_owned())),
    }
}

fn id(text: &str, of: &'static str) -> Result<(), Illegal> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let sound = (1..=MAX_ID).contains(&text.len()) && text.chars().all(plain);
    let shown = || text.chars().filter(|c| !c.is_control()).take(MAX_ID).collect();
    if sound { Ok(()) } else { Err(Illegal::Id(shown(), of)) }
}

fn line(text: &str, what: &'static str) -> Result<(), Illegal> {
    let sound = (1..=MAX_LINE).contains(&text.len()) && !text.chars().any(char::is_control);
    if sound { Ok(()) } else { Err(Illegal::Text(what)) }
}

/// A reason may be what a program printed: whoever shows it makes it harmless.
fn prose(text: &str, what: &'static str) -> Result<(), Illegal> {
    if text.len() <= MAX_WHY { Ok(()) } else { Err(Illegal::Text(what)) }
}
