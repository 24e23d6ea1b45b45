//! What was typed behind `fluffy plugin`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::skill::MannerArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// List the plugins: those that come with fluffy, and those that are installed in this project
    List {
        /// Those that are rejected, and why
        #[arg(long)]
        rejected: bool,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Show a plugin: what it asks for, its tools, its files
    Show(PluginNamedArgs),
    /// Install a plugin from its directory: a person at a terminal sees what it asks for, and agrees
    Install {
        /// The directory with `plugin.yaml`
        path: PathBuf,
        /// The result as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Remove a plugin
    Remove(PluginNamedArgs),
    /// Let a plugin run again that was disabled: a person at a terminal agrees
    Enable(PluginNamedArgs),
    /// Keep a plugin from running
    Disable {
        /// The plugin
        name: String,
        /// Why
        #[arg(long, default_value = "disabled by the user")]
        reason: String,
        /// The result as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Call a tool of a plugin, as a model would
    Call {
        /// The tool, such as `todo.find`
        tool: String,
        /// What it is given: JSON, `@FILE`, or `-` for the standard input
        #[arg(long, default_value = "{}", value_name = "JSON")]
        input: String,
        #[command(flatten)]
        manner: MannerArgs,
    },
    /// Begin a plugin of your own, from a template
    New(NewPluginArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PluginNamedArgs {
    /// The plugin
    pub(crate) name: String,
    /// The result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct NewPluginArgs {
    /// What it is called: lower-case letters, digits, `-` and `_`
    pub(crate) name: String,
    /// What it is written in
    #[arg(long, value_enum, default_value_t = PluginLanguage::Python)]
    pub(crate) language: PluginLanguage,
    /// Where to put it, instead of a directory of its name
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// The result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PluginLanguage {
    Python,
    Typescript,
    Rust,
}
