//! What was typed behind `fluffy chat`.

use std::io::IsTerminal as _;

use clap::Args as ClapArgs;

use super::task::CapArgs;

/// What `fluffy chat --help` says below the options.
const EXIT_CODES: &str = "\
Exit codes:
  0    it is done, or answered
  1    it was tried and failed
  2    something is asked back: a confirmation, or what was meant; also wrong usage or configuration
  3    denied, declined or refused
  4    no sandbox runtime
  5    the provider failed
  6    ledger or state damaged
  7    a cap on turns, tokens or cost was reached
  130  cancelled";

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ChatArgs {
    /// What you say; `-`, or nothing where input is piped, reads it from the standard input
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) message: Option<String>,
    /// Agree beforehand to what your own words ask for; what demands a person still does
    #[arg(long)]
    pub(crate) confirmed: bool,
    /// Events as JSON lines on the standard output, the reply last
    #[arg(long)]
    pub(crate) json: bool,
    /// Also show what was understood, what it refers to, the plan, the records and what can be referred to
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Who provides the model: a provider such as `anthropic`, or `replay:FILE` for a recorded transcript
    #[arg(long, value_name = "P")]
    pub(crate) provider: Option<String>,
    /// The provider's model
    #[arg(long)]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) caps: CapArgs,
}

impl ChatArgs {
    /// Whether there is no message, somebody to talk with, and nothing that only a message has a use for.
    pub(crate) fn is_talk(&self) -> bool {
        let is_plain = !self.json && !self.confirmed && !self.verbose;
        self.message.is_none() && is_plain && std::io::stdin().is_terminal()
    }
}
