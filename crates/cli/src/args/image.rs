//! What was typed behind `fluffy image`.

use clap::{Args as ClapArgs, Subcommand};
use fluffy_sandbox::EngineKind;

#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// Make or fetch the image that sandboxes of an engine are made of, and print its digest
    Build(ImageArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ImageArgs {
    /// The engine: docker, podman; without it, the one that `sandbox.runtime` names
    #[arg(long, value_name = "ENGINE")]
    pub(crate) engine: Option<EngineKind>,
}
