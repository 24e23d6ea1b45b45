//! A step that a person wants, and the request that it is.

use fluffy_base::{Digest, Secret};
use serde_json::{Value, json};

use super::StepError;
use crate::build::{Coder, ProgramBuilder, Transcript};
use crate::{Illegal, Proposal, SHIPPED, Shelf, ShelfError, Shipped, Skill, SkillName, Standing};

/// Who builds, with what no request can hold.
pub enum Craft {
    /// A program in a sandbox.
    Program {
        /// It.
        program: ProgramBuilder,
        /// The values of its keys, by the names of their variables.
        keys: Vec<(String, Secret)>,
    },
    /// What another builder once wrote.
    Transcript {
        /// What it is called.
        name: String,
        /// It.
        transcript: Transcript,
        /// Hash of the text that it was read from.
        sha256: Digest,
    },
    /// What was written of a skill that comes with this program.
    Shipped(&'static Shipped),
    /// Something that works for itself on the copy.
    Coder {
        /// What it is called.
        name: String,
        /// It.
        coder: Box<dyn Coder + Send + Sync>,
    },
}

/// A step that a person wants.
pub enum Wanted {
    /// Proposes a skill.
    Propose {
        /// What.
        spec: Box<Proposal>,
    },
    /// Has it built once.
    Build {
        /// Which skill.
        name: SkillName,
        /// By whom.
        craft: Craft,
    },
    /// Asks the five gates about its last build.
    Verify {
        /// Which skill.
        name: SkillName,
    },
    /// Looks into what failed.
    Research {
        /// Which skill.
        name: SkillName,
        /// Which build; the last one without it.
        build: Option<String>,
        /// What the person says about it.
        hint: Option<String>,
        /// Whether the local model is asked.
        advise: bool,
    },
    /// Agrees to another attempt after a failure that a person has to look at.
    Retry {
        /// Which skill.
        name: SkillName,
        /// After which build; found out when it is empty.
        build: String,
    },
    /// Trusts what was verified.
    Promote {
        /// Which skill.
        name: SkillName,
        /// On the strength of which verification; found out when it is empty.
        verification: String,
    },
    /// Takes trust back.
    Revoke {
        /// Which skill.
        name: SkillName,
        /// Why.
        why: String,
    },
}

impl Craft {
    /// What a request says of it: everything but the values of keys and the text of a transcript.
    fn told(&self) -> Value {
        match self {
            Self::Program { program, .. } => json!({
                "called": program.name, "program": program.program, "args": program.args,
                "hosts": program.hosts, "keys": program.keys, "time_ms": program.time.ms(),
            }),
            Self::Transcript { name, sha256, .. } => json!({ "called": name, "sha256": sha256 }),
            Self::Shipped(skill) => {
                json!({ "called": SHIPPED, "sha256": Digest::of(skill.transcript.as_bytes()) })
            }
            Self::Coder { name, .. } => json!({ "called": name }),
        }
    }
}

impl Wanted {
    /// Which skill it is about.
    pub fn name(&self) -> &SkillName {
        match self {
            Self::Propose { spec } => &spec.name,
            Self::Build { name, .. }
            | Self::Verify { name }
            | Self::Research { name, .. }
            | Self::Retry { name, .. }
            | Self::Promote { name, .. }
            | Self::Revoke { name, .. } => name,
        }
    }

    /// The same with what the forge knows by itself, so that what a person agrees to is one thing.
    pub(super) fn settled(self, shelf: &Shelf) -> Result<Self, StepError> {
        Ok(match self {
            Self::Retry { name, build } if build.is_empty() => {
                let skill = shelf.skill(&name)?;
                let build = skill.last_build().map(|build| build.attempt.build.clone());
                Self::Retry { name, build: build.unwrap_or_default() }
            }
            Self::Promote { name, verification } if verification.is_empty() => {
                let skill = shelf.skill(&name)?;
                let verified =
                    skill.verification().filter(|_| skill.standing == Standing::Verified);
                // Nobody is asked to trust what cannot be trusted now.
                let verified = verified.ok_or_else(|| unready(&skill))?;
                Self::Promote { name, verification: verified.id.clone() }
            }
            other => other,
        })
    }

    /// The tool that takes it.
    pub(super) const fn tool(&self) -> &'static str {
        match self {
            Self::Propose { .. } => "forge.propose",
            Self::Build { .. } => "forge.build",
            Self::Verify { .. } => "forge.verify",
            Self::Research { .. } => "forge.research",
            Self::Retry { .. } => "forge.retry",
            Self::Promote { .. } => "forge.promote",
            Self::Revoke { .. } => "forge.revoke",
        }
    }

    /// What for, in words.
    pub(super) fn intent(&self) -> String {
        let name = self.name();
        match self {
            Self::Propose { .. } => format!("propose skill {name}"),
            Self::Build { .. } => format!("build skill {name}"),
            Self::Verify { .. } => format!("verify skill {name}"),
            Self::Research { .. } => format!("look into the failure of skill {name}"),
            Self::Retry { .. } => format!("try to build skill {name} again"),
            Self::Promote { .. } => format!("trust skill {name}"),
            Self::Revoke { .. } => format!("trust skill {name} no more"),
        }
    }

    /// The parameters of its request.
    pub(super) fn params(&self) -> Value {
        match self {
            Self::Propose { spec } => json!({ "spec": spec }),
            Self::Build { name, craft } => json!({ "name": name, "builder": craft.told() }),
            Self::Verify { name } => json!({ "name": name }),
            Self::Research { name, build, hint, advise } => {
                json!({ "name": name, "build": build, "hint": hint, "advise": advise })
            }
            Self::Retry { name, build } => json!({ "name": name, "build": build }),
            Self::Promote { name, verification } => {
                json!({ "name": name, "verification": verification })
            }
            Self::Revoke { name, why } => json!({ "name": name, "why": why }),
        }
    }
}

/// Why a skill cannot be promoted where it stands.
fn unready(skill: &Skill) -> StepError {
    let (name, standing) = (skill.name.clone(), skill.standing);
    let (what, needs) = ("a promotion", Standing::needed_to_promote(standing));
    StepError::Shelf(ShelfError::Illegal(Illegal::Standing { name, standing, what, needs }))
}
