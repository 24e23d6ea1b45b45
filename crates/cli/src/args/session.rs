//! What was typed behind `fluffy session`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::task::{CapArgs, ModeName};

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List the sessions of this project, newest first
    List {
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Show what happened in a session: its task, its steps, where it stands
    Show {
        /// The session; the last one without it
        id: Option<String>,
        /// The result as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show what a session would change in the project
    Diff {
        /// The session; the last one without it
        id: Option<String>,
    },
    /// Take the last step of a session back
    Undo {
        /// The session; the last one without it
        id: Option<String>,
    },
    /// Take every step after STEP back
    Rewind {
        /// The step to go back to, as `fluffy session show` counts them
        step: u64,
        /// The session; the last one without it
        id: Option<String>,
    },
    /// Say how strictly a session works from now on: strict, explore or debug
    Mode {
        /// The mode; a person at a terminal agrees to debug, and to explore in the middle of a task
        #[arg(value_enum)]
        mode: ModeName,
        /// The session; the last one without it
        id: Option<String>,
    },
    /// Measure how the coverage of a session's work stands against the project's baseline
    Budget {
        /// The session; the last one without it
        id: Option<String>,
    },
    /// Go on with a session that was interrupted
    Resume(Box<ResumeArgs>),
    /// Remove a session; the ledger keeps what happened
    Rm {
        /// The session
        id: String,
    },
    /// Write what a model said in a session, to be played again
    Export(ExportSessionArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ResumeArgs {
    /// The session; the last one without it
    pub(crate) id: Option<String>,
    /// Who provides the model, if not whoever did: `replay:FILE` goes on where the session stopped in it
    #[arg(long, value_name = "P")]
    pub(crate) provider: Option<String>,
    /// The provider's model, if not the one it was
    #[arg(short, long)]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) caps: CapArgs,
    /// Events as JSON lines on the standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Agree to every review; what demands a person still does
    #[arg(long, conflicts_with = "no")]
    pub(crate) yes: bool,
    /// Refuse every review
    #[arg(long)]
    pub(crate) no: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExportSessionArgs {
    /// As a transcript for `--provider replay:FILE` (the only form there is)
    #[arg(long, required = true)]
    pub(crate) transcript: bool,
    /// The file to write; the standard output without it
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// The session; the last one without it
    pub(crate) id: Option<String>,
}
