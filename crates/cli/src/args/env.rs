//! `fluffy env` and `fluffy audit sbom`, as typed.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use fluffy_base::Span;

#[derive(Debug, Subcommand)]
pub(crate) enum EnvCommand {
    /// List environments: what package managers installed, shared by all projects
    List {
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Show the packages of an environment
    Show {
        /// Its key, or how it begins
        key: String,
        /// As one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Remove environments; a task that needs one installs it again
    Rm {
        /// Their keys, or how they begin
        #[arg(required = true)]
        keys: Vec<String>,
    },
    /// Remove environments that were not used for a while
    Gc {
        /// Not used for this long
        #[arg(long, value_name = "TIME", default_value = "720h")]
        older_than: Span,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SbomArgs {
    /// The commit; the last one that a task made without it
    pub(crate) commit: Option<String>,
    /// The file to write; the standard output without it
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}
