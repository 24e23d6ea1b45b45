//! Why a step was not taken.

use fluffy_base::JsonError;

use crate::build::{BringError, BuildError};
use crate::{ResearchError, ShelfError, ShippedError, SkillName, ToolsError, VerificationError};

/// Why a step was not taken, or is not known to be.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// It may not follow where the skill stands, or the forge's memory cannot answer.
    #[error(transparent)]
    Shelf(#[from] ShelfError),
    /// There was no build.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// What is shipped of it cannot be read.
    #[error(transparent)]
    Shipped(#[from] ShippedError),
    /// The last attempt failed, and nobody looked into it.
    #[error("the last attempt to build skill `{0}` failed and was not looked into")]
    Unresearched(SkillName),
    /// The tools that check skills are not there.
    #[error(transparent)]
    Tools(#[from] ToolsError),
    /// The gates could not be asked.
    #[error(transparent)]
    Verify(#[from] VerificationError),
    /// Verified files are not in the project.
    #[error(transparent)]
    Bring(#[from] BringError),
    /// Nothing was found out.
    #[error(transparent)]
    Research(#[from] ResearchError),
    /// The rules or a person said no.
    #[error("it was not allowed: {reason}")]
    Denied {
        /// Why.
        reason: String,
        /// The rule that decided.
        rule: Option<String>,
    },
    /// What was agreed to is not what there is now.
    #[error("the skill changed since it was asked about")]
    Another,
    /// Nobody ordered it.
    #[error("a step of a skill is taken by the program alone")]
    Unordered,
    /// The project cannot be opened.
    #[error("the project cannot be opened")]
    Project(#[source] std::io::Error),
    /// No request can hold it.
    #[error("it cannot be made a request")]
    Json(#[source] JsonError),
    /// The machine gives no randomness.
    #[error("there is no randomness for an id")]
    NoRandomness,
    /// The kernel allowed it and did not do it.
    #[error("the kernel did not do it: {0}")]
    NotTaken(String),
}

impl StepError {
    /// What to do about it, where the text itself does not say it.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Shelf(_) | Self::Build(_) | Self::Research(_) | Self::Bring(_) => {
                "`fluffy skill show NAME` tells where the skill stands"
            }
            Self::Unresearched(_) => "`fluffy skill research NAME` looks into it",
            Self::Tools(error) => error.fix(),
            Self::Verify(_) => "`fluffy skill doctor` tells what is missing; then verify again",
            Self::Denied { .. } => {
                "agree at a terminal, or see which rule decided: `fluffy policy explain forge.build`"
            }
            Self::Another => "look at it again, then try again",
            Self::Unordered => "use `fluffy skill`",
            Self::Project(_) => "check that the project's directory can be read",
            Self::Json(_) => "shorten what you gave, and write numbers that JSON can hold",
            Self::Shipped(_) => "install fluffy again",
            Self::NoRandomness | Self::NotTaken(_) => "try again",
        }
    }
}
