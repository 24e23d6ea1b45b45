//! What was typed behind `fluffy policy`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Find mistakes in a policy: errors, and rules that never apply or never matter
    Check(CheckArgs),
    /// Tell why a request is decided as it is, by every rule that looks at it
    Explain(ExplainArgs),
    /// Try the cases beside the policy
    Test(TestArgs),
    /// Show the policy in force
    Show(ShowArgs),
    /// Write the JSON Schema of a policy to the standard output, for editors
    Schema,
    /// Replace the project's policy, once you have agreed to what changes
    Update(UpdateArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CheckArgs {
    /// The policy; the project's own without it
    pub(crate) file: Option<PathBuf>,
    /// Exit with 1 where there are warnings
    #[arg(long)]
    pub(crate) deny_warnings: bool,
    /// The result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExplainArgs {
    /// The call, such as fs.write
    #[arg(required_unless_present = "request")]
    pub(crate) syscall: Option<String>,
    /// The paths it names; `.` is the project's root
    pub(crate) paths: Vec<String>,
    /// A request as JSON, in a file or on the standard input (`-`), instead of a call
    #[arg(long, value_name = "FILE", conflicts_with_all = ["syscall", "paths", "actor", "command"])]
    pub(crate) request: Option<PathBuf>,
    /// A policy to ask instead of the project's
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// Who asks; the model without it
    #[arg(long)]
    pub(crate) actor: Option<String>,
    /// A tag of who asks; may be given more than once
    #[arg(long)]
    pub(crate) tag: Vec<String>,
    /// The session's mode
    #[arg(long)]
    pub(crate) mode: Option<String>,
    /// State of the test-first workflow
    #[arg(long)]
    pub(crate) state: Option<String>,
    /// The command that the call would run, such as "cargo test"
    #[arg(long)]
    pub(crate) command: Option<String>,
    /// The result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TestArgs {
    /// The cases; .fluffy/policy-tests.yaml without it
    pub(crate) file: Option<PathBuf>,
    /// A policy to try instead of the project's
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ShowArgs {
    /// The policy as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct UpdateArgs {
    /// The new policy
    pub(crate) file: PathBuf,
    /// Agree without being asked, unless a phrase has to be typed
    #[arg(long)]
    pub(crate) yes: bool,
    /// The phrase that many changes have to be agreed to with
    #[arg(long, value_name = "TEXT")]
    pub(crate) phrase: Option<String>,
}
