//! Errors of the forge as what, why and fix, each with its exit code.

use std::error::Error;

use fluffy_forge::build::{BringError, BuildError, CopyBackError};
use fluffy_forge::steps::StepError;
use fluffy_forge::{
    ChainError, Illegal, ResearchError, RunError, ShelfError, VerificationError, VerifyError,
};

use crate::explain::{CliError, DAMAGED, DENIED, Explained, FAILED, NO_SANDBOX, USAGE};

impl From<ShelfError> for CliError {
    fn from(error: ShelfError) -> Self {
        Self::Told(of_shelf(&error))
    }
}

impl From<StepError> for CliError {
    fn from(error: StepError) -> Self {
        Self::Told(of_step(&error))
    }
}

impl From<RunError> for CliError {
    fn from(error: RunError) -> Self {
        Self::Told(of_run(&error))
    }
}

/// Why the forge's memory does not answer, or does not take something.
fn of_shelf(error: &ShelfError) -> Explained {
    let (why, code) = match error {
        ShelfError::File { .. } => ("the forge keeps its memory there", FAILED),
        ShelfError::Tables(_) | ShelfError::Damaged(_) | ShelfError::Newer { .. } => {
            ("the tables do not say what the ledger says", DAMAGED)
        }
        ShelfError::Notes(_) | ShelfError::Ledger(_) | ShelfError::Entry { .. } => {
            ("what a skill is, the ledger says; and it does not hold", DAMAGED)
        }
        ShelfError::Strange(_) | ShelfError::Gone { .. } => {
            ("every step of a skill is an entry of the ledger, and must be found there", DAMAGED)
        }
        ShelfError::Illegal(Illegal::Unapproved(_)) => {
            ("what failed is of a kind that a person looks at", DENIED)
        }
        ShelfError::Illegal(Illegal::Unknown(_)) | ShelfError::Unknown(_) => {
            ("no skill of this project has that name", USAGE)
        }
        ShelfError::Illegal(_) => {
            ("the way of a skill is proposed, built, verified, trusted", FAILED)
        }
        ShelfError::Proposal(_) => ("a proposal says all that a skill may ever do", USAGE),
        ShelfError::Untrusted { .. } => ("nobody trusts it, so it does not run", DENIED),
        ShelfError::OtherBase(_) => ("it was verified with another version of fluffy", DAMAGED),
        ShelfError::Seal(_) => ("only what was verified is trusted", DAMAGED),
        ShelfError::Registry(_) => ("somebody changed what only the ledger may say", DAMAGED),
        ShelfError::NoExecution(_) => ("no run of this project has that id", USAGE),
        ShelfError::ExecutionTaken(_) | ShelfError::Large(_) | ShelfError::Written(_) => {
            ("it cannot be recorded as it is", FAILED)
        }
        ShelfError::Journal(_) => ("what cannot be recorded is not done", FAILED),
        ShelfError::Artifact(_) => ("it is kept by its hash", DAMAGED),
        ShelfError::Recorded { .. } => ("something failed after it was recorded", FAILED),
    };
    told(error, why, "`fluffy skill doctor` looks at the forge's state", code)
}

/// Why a step was not taken.
fn of_step(error: &StepError) -> Explained {
    let fix = error.fix();
    match error {
        StepError::Shelf(error) | StepError::Research(ResearchError::Shelf(error)) => {
            of_shelf(error)
        }
        StepError::Build(BuildError::Shelf(boxed)) => match boxed.downcast_ref::<ShelfError>() {
            Some(error) => of_shelf(error),
            None => told(error, "a build is recorded or not made", fix, FAILED),
        },
        StepError::Build(_) => told(error, "there was no build", fix, FAILED),
        StepError::Bring(BringError::CopyBack(CopyBackError::Changed(_))) => {
            told(error, "what is there is not what was verified", fix, DAMAGED)
        }
        StepError::Bring(_) => told(error, "the project is as it was", fix, FAILED),
        StepError::Research(_) => {
            told(error, "research is about an attempt that failed", fix, FAILED)
        }
        StepError::Unresearched(_) => {
            told(error, "the next attempt is told what went wrong with the last", fix, FAILED)
        }
        StepError::Tools(_) => {
            told(error, "the gates ask ruff, mypy and pytest, of pinned versions", fix, USAGE)
        }
        StepError::Verify(VerificationError::Shelf(error)) => of_shelf(error),
        StepError::Verify(VerificationError::Unbuilt { .. }) => {
            told(error, "the gates look at a build that succeeded", fix, FAILED)
        }
        StepError::Verify(VerificationError::Gates(VerifyError::Lab { .. })) => {
            told(error, "gates look at skills in sandboxes alone", fix, NO_SANDBOX)
        }
        StepError::Verify(_) => told(error, "the gates could not be asked", fix, FAILED),
        StepError::Denied { .. } => told(error, "", fix, DENIED),
        StepError::Another | StepError::Unordered => {
            told(error, "what was agreed to is what must be done", fix, DENIED)
        }
        StepError::Shipped(_)
        | StepError::Project(_)
        | StepError::Json(_)
        | StepError::NoRandomness
        | StepError::NotTaken(_) => told(error, "nothing was done", fix, FAILED),
    }
}

/// Why a skill was not run.
fn of_run(error: &RunError) -> Explained {
    let code = match error {
        RunError::Shelf(error) => return of_shelf(error),
        RunError::Trust(_) | RunError::Record(_) | RunError::Unreadable(..) => DAMAGED,
        RunError::Denied { .. } => DENIED,
        RunError::Input(_) | RunError::NoSecret(_) | RunError::Masked(_) => USAGE,
        RunError::Lab(_) => NO_SANDBOX,
        RunError::Schema { .. }
        | RunError::Folder(_)
        | RunError::NoRandomness
        | RunError::NotRun(_) => FAILED,
    };
    let why = match error {
        RunError::Trust(_) => "the bytes that were promoted are the bytes that run, and no others",
        _other => "it was not run",
    };
    let text = error.to_string();
    // What follows the colon is why; what to do about it stands elsewhere.
    let (what, rest) = text.split_once(": ").unwrap_or((&text, ""));
    let causes = causes(error);
    let why = [rest, &causes, why].into_iter().find(|text| !text.is_empty()).unwrap_or_default();
    Explained { what: what.to_owned(), why: why.to_owned(), fix: error.fix().to_owned(), code }
}

/// Why a chain did not start, or stopped.
pub(crate) fn of_chain(error: &ChainError) -> Explained {
    match error {
        ChainError::Run { source, .. } => {
            let inner = of_run(source);
            Explained { what: format!("{error}: {}", inner.what), ..inner }
        }
        ChainError::Failed { .. } => {
            told(error, "", "`fluffy skill log` tells what it was given", FAILED)
        }
        ChainError::Steps(_)
        | ChainError::Name { .. }
        | ChainError::Nothing { .. }
        | ChainError::Input { .. } => {
            told(error, "a step is given what is there before it", "correct the chain", USAGE)
        }
    }
}

/// An error whose text says after a colon what to do, or why.
fn told(error: &dyn Error, why: &str, fix: &str, code: u8) -> Explained {
    let text = error.to_string();
    let (what, rest) = match text.split_once(": ") {
        Some((what, rest)) => (what.to_owned(), Some(rest.to_owned())),
        None => (text, None),
    };
    let causes = causes(error);
    let (why, fix) = match (why, rest) {
        // Nothing is known but what the text says.
        ("", Some(rest)) => (rest, fix.to_owned()),
        (why, Some(rest)) if causes.is_empty() => (why.to_owned(), rest),
        (_, Some(rest)) => (causes, rest),
        (why, None) if causes.is_empty() => (why.to_owned(), fix.to_owned()),
        (_, None) => (causes, fix.to_owned()),
    };
    Explained { what, why, fix, code }
}

/// What lies behind an error, without repeating it.
fn causes(error: &dyn Error) -> String {
    let mut texts = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        texts.push(error.to_string());
        cause = error.source();
    }
    texts.join(": ")
}
