//! What was typed behind `fluffy skill`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::task::{CapArgs, SaidArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum SkillCommand {
    /// Propose a skill: what it does, what it takes and gives, and all that it may ever touch
    Propose(Box<ProposeArgs>),
    /// Have a proposed skill written by a coder, in a throw-away copy of the project
    Build(BuildArgs),
    /// Ask the five gates about the last build; what passes them is brought into the project
    Verify(NamedArgs),
    /// Check whether the skill's files are what was proposed, and nothing else
    CheckInvariants(NamedArgs),
    /// Trust a verified skill: a person at a terminal agrees
    Promote(NamedArgs),
    /// Trust a skill no more
    Revoke(RevokeArgs),
    /// Run a trusted skill
    Run(RunSkillArgs),
    /// Install skills that come with fluffy: proposed, built, verified, and promoted if you agree
    Install(InstallArgs),
    /// List the skills of this project
    List {
        /// Those that come with fluffy, and where they stand here
        #[arg(long)]
        shipped: bool,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Show a skill: where it stands, what it may do, what the gates said
    Show(NamedArgs),
    /// Look into a failed build or verification, for the next attempt
    Research(ResearchArgs),
    /// Show every step of a skill, the first first
    History(NamedArgs),
    /// Tell what the forge needs and has: Python, the tools of the gates, builders, the local model
    Doctor(SkillDoctorArgs),
    /// Run again what was run, and compare
    Replay {
        /// The run, as `fluffy skill log` names it
        execution: String,
        #[command(flatten)]
        manner: MannerArgs,
    },
    /// Run several skills in a row, each given what those before it gave
    Chain {
        /// The chain: YAML or JSON with `steps`, each with `skill` and `input`
        file: PathBuf,
        /// What the chain is given: JSON, `@FILE`, or `-` for the standard input
        #[arg(long, default_value = "{}", value_name = "JSON")]
        input: String,
        #[command(flatten)]
        manner: MannerArgs,
    },
    /// Show runs of skills, the newest last
    Log {
        /// Only of this skill
        #[arg(long)]
        skill: Option<String>,
        /// At most so many, the newest
        #[arg(long, default_value_t = 50, value_name = "N")]
        limit: u64,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
}

/// How a command is answered for, and answers.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct MannerArgs {
    /// The result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) said: SaidArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct NamedArgs {
    /// The skill
    pub(crate) name: String,
    /// The result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ProposeArgs {
    /// The whole proposal, as YAML or JSON; `-` for the standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "description", "input_schema",
        "output_schema", "side_effect", "reads", "writes", "hosts", "secrets", "model"])]
    pub(crate) file: Option<PathBuf>,
    /// What it is called: lower-case letters, digits and `_`
    #[arg(long, required_unless_present = "file")]
    pub(crate) name: Option<String>,
    /// What it does, in a sentence or two
    #[arg(long, required_unless_present = "file")]
    pub(crate) description: Option<String>,
    /// JSON Schema of what it takes: a file, or JSON
    #[arg(long, value_name = "FILE|JSON", required_unless_present = "file")]
    pub(crate) input_schema: Option<String>,
    /// JSON Schema of what it gives: a file, or JSON
    #[arg(long, value_name = "FILE|JSON", required_unless_present = "file")]
    pub(crate) output_schema: Option<String>,
    /// What running it can do: READ_ONLY, FILE_WRITE, NETWORK, SECRET_READ, MONEY or MESSAGING
    #[arg(long, value_name = "CLASS", required_unless_present = "file", ignore_case = true,
        value_parser = ["READ_ONLY", "FILE_WRITE", "NETWORK", "SECRET_READ", "MONEY", "MESSAGING"])]
    pub(crate) side_effect: Option<String>,
    /// Folders of the project that it reads
    #[arg(long, value_name = "DIR")]
    pub(crate) reads: Vec<String>,
    /// Folders of the project that it changes
    #[arg(long, value_name = "DIR")]
    pub(crate) writes: Vec<String>,
    /// Hosts that it reaches
    #[arg(long, value_name = "HOST")]
    pub(crate) hosts: Vec<String>,
    /// Names of the secrets that it is given
    #[arg(long, value_name = "NAME")]
    pub(crate) secrets: Vec<String>,
    /// It asks the local model
    #[arg(long)]
    pub(crate) model: bool,
    /// The result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct BuildArgs {
    /// The skill
    pub(crate) name: String,
    /// Who writes it: `claude`, `codex`, `agent`, `command` or `transcript:FILE`; without it, what the settings say
    #[arg(long, value_name = "BUILDER")]
    pub(crate) builder: Option<String>,
    /// For the builder `agent`, who provides the model: such as `anthropic`, or `replay:FILE` for a recorded transcript
    #[arg(long, value_name = "P")]
    pub(crate) provider: Option<String>,
    /// For the builder `agent`, the provider's model
    #[arg(short, long)]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) caps: CapArgs,
    /// How long it may take, such as `90s` or `10m`
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,
    #[command(flatten)]
    pub(crate) manner: MannerArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InstallArgs {
    /// The skills, as `fluffy skill list --shipped` names them
    #[arg(value_name = "NAME", required_unless_present = "all")]
    pub(crate) names: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with = "names")]
    pub(crate) all: bool,
    /// The result as one JSON object a skill
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RevokeArgs {
    /// The skill
    pub(crate) name: String,
    /// Why
    #[arg(long, default_value = "revoked by the user")]
    pub(crate) reason: String,
    /// The result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RunSkillArgs {
    /// The skill
    pub(crate) name: String,
    /// What it is given: JSON, `@FILE`, or `-` for the standard input
    #[arg(long, default_value = "{}", value_name = "JSON")]
    pub(crate) input: String,
    #[command(flatten)]
    pub(crate) manner: MannerArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ResearchArgs {
    /// The skill
    pub(crate) name: String,
    /// What you know about it; the next attempt is told
    #[arg(long, value_name = "TEXT")]
    pub(crate) hint: Option<String>,
    /// Ask the local model for advice
    #[arg(long, conflicts_with = "no_advise")]
    pub(crate) advise: bool,
    /// Ask nobody (as without both)
    #[arg(long)]
    pub(crate) no_advise: bool,
    /// The result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SkillDoctorArgs {
    /// Install the tools of the gates into your cache: ruff, mypy and pytest, of pinned versions, from PyPI
    #[arg(long)]
    pub(crate) install: bool,
    /// Make the forge's tables and `.fluffy/skills/registry.yaml` again from the ledger
    #[arg(long)]
    pub(crate) rebuild: bool,
    /// The result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
