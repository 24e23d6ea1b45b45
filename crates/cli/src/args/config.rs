//! What was typed behind `fluffy config`.

use clap::{Args as ClapArgs, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Write the shipped policy with its comments to .fluffy/policy.yaml
    Init {
        /// Replace the policy that is there
        #[arg(long)]
        force: bool,
    },
    /// Tell what a setting is, arguments left aside
    Get(GetArgs),
    /// Tell what all settings are
    List(ListArgs),
    /// Say a setting in a file; comments and everything else in it stay
    Set(SetArgs),
    /// Take a setting out of a file
    Unset(UnsetArgs),
    /// Tell where the files are
    Path {
        /// The result as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Write the reference of all settings to the standard output
    Reference,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct GetArgs {
    /// The setting, such as `max_turns` or `test.command`
    pub(crate) key: String,
    /// Tell also where it comes from
    #[arg(long)]
    pub(crate) origin: bool,
    /// The result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ListArgs {
    /// Tell also where each comes from
    #[arg(long)]
    pub(crate) origin: bool,
    /// Also those that have no value
    #[arg(long)]
    pub(crate) all: bool,
    /// One JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Whose file is meant.
#[derive(Debug, ClapArgs)]
pub(crate) struct Whose {
    /// In your own file; the default, unless only a project says it
    #[arg(long, conflicts_with = "in_project")]
    pub(crate) user: bool,
    /// In the project's file
    #[arg(long)]
    pub(crate) in_project: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SetArgs {
    /// The setting
    pub(crate) key: String,
    /// What it is to be; a list as `[a, b]`
    #[arg(allow_hyphen_values = true)]
    pub(crate) value: String,
    #[command(flatten)]
    pub(crate) whose: Whose,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct UnsetArgs {
    /// The setting
    pub(crate) key: String,
    #[command(flatten)]
    pub(crate) whose: Whose,
}
