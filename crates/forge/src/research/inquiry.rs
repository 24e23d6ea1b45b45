//! Research on what the forge remembers: reads the evidence, writes the note, records it.
//!
//! **Invariant.** The evidence is what the ledger names, by hash. The note is kept before the entry that names it; when
//! [`research`] returns, the triggers in the entry hold back the next attempt until a person agreed.

use fluffy_base::Digest;
use fluffy_kernel::{Appended, Journal};
use serde::Serialize;

use super::advise::{Advice, Question, advise};
use super::classify::{Classified, Evidence, FailureKind, Told, classify};
use super::escalate::{Trigger, triggers};
use super::facts::Facts;
use super::note::{NoteParts, fact_lines, note};
use crate::build::Findings;
use crate::{
    ArtifactError, ArtifactKind, Artifacts, Build, BuildEnd, BuildEnded, GateResult, Gateway,
    Shelf, ShelfError, Skill, SkillEntry, SkillName,
};

/// How long a person's hint may be, in characters.
const MAX_HINT: usize = 4_000;

/// What is to be looked into.
#[derive(Clone, Copy)]
pub struct Inquire<'a> {
    /// Which skill.
    pub name: &'a SkillName,
    /// Which build; its last one where none is named.
    pub build: Option<&'a str>,
    /// What the person says about it.
    pub hint: Option<&'a str>,
    /// Whom to ask for advice, if advice is wanted.
    pub advisor: Option<&'a dyn Gateway>,
}

/// What was found out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Inquiry {
    /// Which skill.
    pub name: SkillName,
    /// Which build.
    pub build: String,
    /// Which attempt that was.
    pub attempt: u32,
    /// What failed.
    pub failure: FailureKind,
    /// What told it.
    pub told: Told,
    /// What is known of it.
    pub facts: Facts,
    /// How many attempts failed one after the other, this one included.
    pub failed_in_a_row: u32,
    /// What came of asking for advice.
    pub advice: Advice,
    /// What demands a person before the next attempt.
    pub triggers: Vec<Trigger>,
    /// The `RESEARCH_NOTE`.
    pub note: Digest,
    /// What it says.
    pub text: String,
}

/// Why nothing was found out.
#[derive(Debug, thiserror::Error)]
pub enum ResearchError {
    /// It was never built.
    #[error("skill `{0}` was not built yet: build it first")]
    NeverBuilt(SkillName),
    /// There is no such build.
    #[error(
        "build `{build}` is not the last one of skill `{name}`: only the last can be tried again"
    )]
    OtherBuild {
        /// The skill.
        name: SkillName,
        /// The build.
        build: String,
    },
    /// It has no end.
    #[error("build `{0}` runs, or was interrupted and left nothing: build the skill again")]
    NoEnd(String),
    /// Nothing failed.
    #[error("nothing failed in build `{0}`: verify it, or promote it")]
    NotFailed(String),
    /// There is no such build anywhere.
    #[error("no skill has a build `{0}`: `fluffy skill history NAME` names the builds of one")]
    NoBuild(String),
    /// The hint is too long.
    #[error("the hint is longer than {MAX_HINT} characters: shorten it")]
    LongHint,
    /// What the ledger names cannot be had.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// The forge's memory does not answer, or does not take it.
    #[error(transparent)]
    Shelf(#[from] ShelfError),
}

/// Looks into the last attempt to build a skill, and records what was found.
pub fn research(
    order: &Inquire<'_>,
    shelf: &Shelf,
    journal: &dyn Journal,
) -> Result<Inquiry, ResearchError> {
    if order.hint.is_some_and(|hint| hint.chars().nth(MAX_HINT).is_some()) {
        return Err(ResearchError::LongHint);
    }
    let skill = shelf.skill(order.name)?;
    let failed = Failed::of(&skill, order.build, shelf.artifacts())?;
    let packet = shelf.artifacts().get(&failed.build.attempt.packet)?;
    let packet = String::from_utf8_lossy(&packet);
    let advice = order.advisor.map_or(Advice::NotAsked, |gateway| {
        let question = Question {
            proposal: &skill.proposal.spec,
            packet: &packet,
            classified: failed.classified,
            facts: &failed.facts,
            hint: order.hint,
        };
        advise(&question, gateway)
    });
    let failed_in_a_row = failed_in_a_row(&skill);
    let triggers = triggers(failed.classified, failed_in_a_row, &advice);
    let attempt = &failed.build.attempt;
    let text = note(&NoteParts {
        name: &skill.name,
        build: &attempt.build,
        attempt: attempt.number,
        classified: failed.classified,
        facts: &failed.facts,
        log: &failed.log,
        hint: order.hint,
        advice: &advice,
        triggers: &triggers,
    });
    let kept = shelf.artifacts().put(ArtifactKind::ResearchNote, text.as_bytes())?;
    let Classified { kind: failure, told } = failed.classified;
    shelf.record(
        journal,
        &SkillEntry::Researched {
            name: skill.name.clone(),
            build: attempt.build.clone(),
            failure: failure.name().to_owned(),
            triggers: triggers.iter().map(|trigger| trigger.name().to_owned()).collect(),
            note: kept,
        },
    )?;
    let (build, attempt) = (attempt.build.clone(), attempt.number);
    let (name, facts) = (skill.name.clone(), failed.facts);
    Ok(Inquiry {
        name,
        build,
        attempt,
        failure,
        told,
        facts,
        failed_in_a_row,
        advice,
        triggers,
        note: kept,
        text,
    })
}

/// Records that a person agrees to another attempt after a skill's last build.
pub fn approve_retry(
    name: &SkillName,
    by: &str,
    shelf: &Shelf,
    journal: &dyn Journal,
) -> Result<Appended, ResearchError> {
    let skill = shelf.skill(name)?;
    let build = skill.last_build().ok_or_else(|| ResearchError::NeverBuilt(name.clone()))?;
    let (name, build, by) = (name.clone(), build.attempt.build.clone(), by.to_owned());
    Ok(shelf.record(journal, &SkillEntry::RetryApproved { name, build, by })?)
}

/// What the next attempt is told about the last: the newest note on it, or what can be said without one. Nothing where
/// the last attempt did not fail.
pub fn findings(name: &SkillName, shelf: &Shelf) -> Result<Option<Findings>, ResearchError> {
    let skill = shelf.skill(name)?;
    let failed = match Failed::of(&skill, None, shelf.artifacts()) {
        Ok(failed) => failed,
        Err(
            ResearchError::NeverBuilt(_) | ResearchError::NotFailed(_) | ResearchError::NoEnd(_),
        ) => return Ok(None),
        Err(error) => return Err(error),
    };
    let failure = failed.classified.kind.name().to_owned();
    let Some(newest) = failed.build.research.last() else {
        let analysis = fact_lines(&failed.facts).join("\n");
        return Ok(Some(Findings { failure, analysis, ..Findings::default() }));
    };
    let note = shelf.artifacts().get(&newest.note)?;
    let note = Some(String::from_utf8_lossy(&note).into_owned());
    Ok(Some(Findings { failure, note, ..Findings::default() }))
}

/// The skill that a build belongs to.
pub fn skill_of_build(build: &str, shelf: &Shelf) -> Result<SkillName, ResearchError> {
    let is_it = |entry: &SkillEntry| match entry {
        SkillEntry::BuildStarted { attempt, .. } => attempt.build == build,
        _ => false,
    };
    for listed in shelf.skills()?.into_iter().filter(|listed| listed.attempts > 0) {
        let past = shelf.history(&listed.name)?;
        if past.iter().any(|past| past.counts && is_it(&past.entry)) {
            return Ok(listed.name);
        }
    }
    Err(ResearchError::NoBuild(fluffy_base::Excerpt::new(build, 64).to_string()))
}

/// An attempt that failed, with what is known of it.
struct Failed<'a> {
    build: &'a Build,
    classified: Classified,
    facts: Facts,
    log: String,
}

impl<'a> Failed<'a> {
    /// The skill's last attempt, if it is the one that is meant and failed.
    fn of(
        skill: &'a Skill,
        named: Option<&str>,
        artifacts: &Artifacts,
    ) -> Result<Self, ResearchError> {
        let never = || ResearchError::NeverBuilt(skill.name.clone());
        let build = skill.last_build().ok_or_else(never)?;
        let id = build.attempt.build.as_str();
        if let Some(named) = named.filter(|named| *named != id) {
            let build = fluffy_base::Excerpt::new(named, 64).to_string();
            return Err(ResearchError::OtherBuild { name: skill.name.clone(), build });
        }
        let Some(BuildEnded { end, log, .. }) = &build.ended else {
            return Err(ResearchError::NoEnd(id.to_owned()));
        };
        let log = artifacts.get(log)?;
        let log = String::from_utf8_lossy(&log).into_owned();
        let evidence = Evidence { end: Some(end), gates: gates(skill, id), log: &log };
        let classified =
            classify(&evidence).ok_or_else(|| ResearchError::NotFailed(id.to_owned()))?;
        let facts = Facts::of(classified.kind, &evidence);
        Ok(Self { build, classified, facts, log })
    }
}

/// What the gates said last of a build.
fn gates<'a>(skill: &'a Skill, build: &str) -> &'a [GateResult] {
    let last = skill.verifications.iter().rev().find(|it| it.build == build);
    last.map(|it| it.gates.as_slice()).unwrap_or_default()
}

/// How many of the last attempts failed one after the other; one that was interrupted did.
fn failed_in_a_row(skill: &Skill) -> u32 {
    let failed = |build: &&Build| match &build.ended {
        None | Some(BuildEnded { end: BuildEnd::Failed { .. }, .. }) => true,
        Some(BuildEnded { end: BuildEnd::Built { .. }, .. }) => {
            gates(skill, &build.attempt.build).iter().any(|gate| !gate.passed)
        }
    };
    let count = skill.builds.iter().rev().take_while(failed).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
