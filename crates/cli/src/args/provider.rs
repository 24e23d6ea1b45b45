//! What was typed behind `fluffy auth` and `fluffy models`.

use clap::{Args as ClapArgs, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// Keep the key of a provider: typed where nobody sees it, or piped
    Set {
        /// The provider, such as `anthropic`; or `secret:NAME`, which skills may be given
        provider: String,
    },
    /// Tell which providers have a key, and where it comes from; no key is shown
    List {
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Forget the key of a provider
    Rm {
        /// The provider, or `secret:NAME`
        provider: String,
    },
    /// Ask a provider whether it takes the key; costs nothing
    Test {
        /// The provider
        provider: String,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ModelsArgs {
    /// The provider; without it, the one in your settings
    #[arg(conflicts_with = "local")]
    pub(crate) provider: Option<String>,
    /// Look for servers on this machine, on the ports that they usually have
    #[arg(long)]
    pub(crate) local: bool,
    /// One JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}
