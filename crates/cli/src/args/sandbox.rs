//! What was typed behind `fluffy sandbox`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use fluffy_base::{ByteSize, Span};
use fluffy_sandbox::Template;

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Run a command in a sandbox; the project is left as it is
    Run(RunArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    /// The kind of sandbox: code-executor, integration-test, ai-provider, policy-sandbox
    #[arg(long, default_value = "code-executor")]
    pub(crate) template: Template,
    /// What it reaches: nothing, or the hosts of policy.yaml's network_whitelist through the proxy
    #[arg(long, value_enum)]
    pub(crate) net: Option<NetName>,
    /// A host beside those of the policy: `pypi.org`, `*.crates.io`, `127.0.0.1:8080` (implies --net restricted)
    #[arg(long, value_name = "HOST")]
    pub(crate) allow: Vec<String>,
    /// Show a file or directory of this machine, read-only
    #[arg(long, value_name = "PATH")]
    pub(crate) show: Vec<PathBuf>,
    /// Make the project read-only; without this, changes are possible and thrown away
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Put what the command changed into this directory, which must not exist yet
    #[arg(long, value_name = "DIR", conflicts_with = "read_only")]
    pub(crate) save: Option<PathBuf>,
    /// At most this much memory, such as `512MiB`
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<ByteSize>,
    /// At most this long, such as `30s`
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<Span>,
    /// At most this many processes and threads
    #[arg(long, value_name = "N")]
    pub(crate) processes: Option<u32>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetName {
    None,
    Restricted,
}
