//! What was typed behind `fluffy session`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::task::{CapArgs, ModeName, SaidArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List the sessions of this project, newest first
    List {
        /// Archived ones, too
        #[arg(long)]
        all: bool,
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
    /// Keep a file before the model's eyes, as it is now
    Pin {
        /// The file, from the project's root
        path: String,
        /// The session; the last one without it
        id: Option<String>,
    },
    /// Keep a file before the model's eyes no more
    Unpin {
        /// The file, from the project's root
        path: String,
        /// The session; the last one without it
        id: Option<String>,
    },
    /// Show where a session stands: state, mode, what it used, what it waits for
    Status {
        /// The session; the last one without it
        id: Option<String>,
        /// The result as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// List what of a session works in sandboxes, and what waits for its turn
    Tasks {
        /// The session; the last one without it
        id: Option<String>,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// List what you agreed to for a whole session, or take it back
    Grants {
        /// The session; the last one without it
        id: Option<String>,
        /// Take this one back
        #[arg(long, value_name = "NUMBER")]
        revoke: Option<u64>,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Measure how the coverage of a session's work stands against the project's baseline
    Budget {
        /// The session; the last one without it
        id: Option<String>,
    },
    /// Go on with a session that was interrupted
    Resume(Box<ResumeArgs>),
    /// Say something more to a session: it goes on with that, also if it was done
    Say(Box<SayArgs>),
    /// Watch a session that is under way
    Attach {
        /// The session; whichever is under way without it
        id: Option<String>,
        /// Events as JSON lines on the standard output
        #[arg(long)]
        json: bool,
    },
    /// Begin a session that goes on from somewhere in another one, which stays as it is
    Fork {
        /// The session; the last one without it
        id: Option<String>,
        /// After which turn of the model (`turn:N`) or which step (`step:N`, or N alone); its end without it
        #[arg(long, value_name = "STEP|TURN")]
        at: Option<String>,
    },
    /// Remove a session; the ledger keeps what happened
    Rm {
        /// The session
        id: String,
    },
    /// Write a session down: to be played again, to be kept, or to be read
    Export(ExportSessionArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ResumeArgs {
    /// The session; the last one without it
    pub(crate) id: Option<String>,
    /// The last session, as without any id
    #[arg(long, conflicts_with = "id")]
    pub(crate) last: bool,
    #[command(flatten)]
    pub(crate) further: FurtherArgs,
}

/// How a session goes on.
#[derive(Debug, ClapArgs)]
pub(crate) struct FurtherArgs {
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
    #[command(flatten)]
    pub(crate) said: SaidArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SayArgs {
    /// The session and what you say to it; `--last` stands for the session, and `-` reads what you say from the standard input
    #[arg(value_names = ["ID", "TEXT"], num_args = 1..=2, required = true)]
    pub(crate) words: Vec<String>,
    /// The last session
    #[arg(long)]
    pub(crate) last: bool,
    #[command(flatten)]
    pub(crate) further: FurtherArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExportSessionArgs {
    #[command(flatten)]
    pub(crate) form: ExportForm,
    /// The file to write; the standard output without it
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// The session; the last one without it
    pub(crate) id: Option<String>,
}

/// Exactly one of them.
#[derive(Debug, ClapArgs)]
#[group(required = true, multiple = false, id = "form")]
pub(crate) struct ExportForm {
    /// As a transcript for `--provider replay:FILE`
    #[arg(long)]
    pub(crate) transcript: bool,
    /// All of it as one JSON object, with the ledger's entries and their hashes
    #[arg(long)]
    pub(crate) json: bool,
    /// As a text to be read: what was said, decided, changed and tested
    #[arg(long)]
    pub(crate) markdown: bool,
}
