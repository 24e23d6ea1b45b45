//! What was typed.

mod chat;
mod config;
mod env;
mod image;
mod plugin;
mod policy;
mod provider;
mod sandbox;
mod session;
mod skill;
mod task;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use fluffy_kernel::{DualChannel, EvidenceFirst, Permissive, Strict, Variant};

pub(crate) use self::chat::ChatArgs;
pub(crate) use self::config::{ConfigCommand, GetArgs, ListArgs, SetArgs, UnsetArgs, Whose};
pub(crate) use self::env::{EnvCommand, SbomArgs};
pub(crate) use self::image::ImageCommand;
pub(crate) use self::plugin::{NewPluginArgs, PluginCommand, PluginLanguage, PluginNamedArgs};
pub(crate) use self::policy::{
    CheckArgs, ExplainArgs, PolicyCommand, ShowArgs, TestArgs, UpdateArgs,
};
pub(crate) use self::provider::{AuthCommand, ModelsArgs};
pub(crate) use self::sandbox::{NetName, RunArgs, SandboxCommand};
pub(crate) use self::session::{
    ExportForm, ExportSessionArgs, FurtherArgs, ResumeArgs, SayArgs, SessionCommand,
};
pub(crate) use self::skill::{
    BuildArgs, InstallArgs, MannerArgs, NamedArgs, ProposeArgs, ResearchArgs, RevokeArgs,
    RunSkillArgs, SkillCommand, SkillDoctorArgs,
};
pub(crate) use self::task::{
    CapArgs, DemoArgs, LanguageName, ModeName, SaidArgs, TaskArgs, is_bare, with_run, with_tip,
};

/// An AI programming CLI in which the model proposes and a kernel disposes.
#[derive(Debug, Parser)]
#[command(name = "fluffy", version, arg_required_else_help = true, after_help = crate::shell::manual())]
pub(crate) struct Args {
    /// Act on the project in DIR instead of the current directory
    #[arg(short = 'C', long = "project", value_name = "DIR", global = true)]
    pub(crate) project: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Do a task: tests first, then code, then review, merge and commit
    Run(Box<TaskArgs>),
    /// Say one thing in plain words: a task, a skill, a question about what came before
    Chat(Box<ChatArgs>),
    /// See a task done, from a failing test to a proved commit, in half a minute
    Demo(DemoArgs),
    /// Look at tasks, take their steps back, go on with them
    #[command(subcommand)]
    Session(SessionCommand),
    /// Make skills that earn their trust, and run them
    #[command(subcommand)]
    Skill(SkillCommand),
    /// Install tools of others, each in a sandbox of its own, and write your own
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Keep, list, test and forget the keys of providers
    #[command(subcommand)]
    Auth(AuthCommand),
    /// List the models of a provider
    Models(ModelsArgs),
    /// Drive the kernel directly
    #[command(subcommand)]
    Kernel(KernelCommand),
    /// Read, verify, export and prove the ledger
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Check, explain, test, show and replace the policy
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Run commands in a sandbox
    #[command(subcommand)]
    Sandbox(SandboxCommand),
    /// List, show and remove the packages that tasks installed
    #[command(subcommand)]
    Env(EnvCommand),
    /// Make the image that sandboxes of Docker and Podman are made of
    #[command(subcommand)]
    Image(ImageCommand),
    /// Set a project up; read and change settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Tell what this machine offers and what is missing
    Doctor(DoctorArgs),
    /// Write a completion script for a shell to the standard output
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual to the standard output, or a page for every command to a directory
    Man(ManArgs),
    /// Start the kernel of a project and keep it alive
    #[command(hide = true)]
    Boot,
    /// Change one file, for the kernel at the other end of the pipes
    #[command(hide = true)]
    FileHost,
    /// Run the programs of a command line, for the kernel at the other end of the standard input
    #[command(hide = true)]
    PipelineHost,
    /// Judge requests by rule files, for the kernel at the other end of the pipes
    #[command(hide = true)]
    PolicyHost,
    /// Speak with a provider, for the kernel at the other end of the pipes
    #[command(hide = true)]
    ProviderHost,
    /// Set a sandbox up, for the kernel at the other end of the standard input
    #[command(hide = true)]
    SandboxInit,
    /// Be the first process of a container that an engine made
    #[command(hide = true)]
    SandboxEntry,
    /// Talk at a terminal: `fluffy` without a task
    #[command(skip)]
    Talk(Box<TaskArgs>),
}

impl Args {
    /// The same, except that a run without a task is a conversation.
    pub(crate) fn or_talk(self) -> Self {
        match self.command {
            Command::Run(task) if task.is_talk() => Self { command: Command::Talk(task), ..self },
            command => Self { command, ..self },
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum KernelCommand {
    /// Read requests as JSON lines, write a receipt for each
    Submit(SubmitArgs),
    /// Halt the kernel of this project: nothing is allowed until a new session is begun
    Halt {
        /// Why
        #[arg(default_value = "halted by the user")]
        reason: String,
    },
    /// End the process that works for this project, if nothing is under way
    Stop,
    /// Work for the clients of one project, for the bootstrap at the other end of the standard input
    #[command(hide = true)]
    Serve(ServeArgs),
    /// Be the door to an engine for the kernel that started this
    #[command(hide = true)]
    Gate(GateArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct GateArgs {
    /// Where that kernel listens
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: PathBuf,
    /// That kernel's process
    #[arg(long, value_name = "NUMBER")]
    pub(crate) kernel: i32,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ServeArgs {
    /// Where to listen
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: PathBuf,
    /// End after so many seconds without clients and work
    #[arg(long, value_name = "SECONDS")]
    pub(crate) idle: u64,
    /// Be in a container already, whose maker listens there
    #[arg(long, value_name = "PATH")]
    pub(crate) inside: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SubmitArgs {
    /// Requests and receipts are JSON lines (the only form there is)
    #[arg(long, required = true)]
    pub(crate) json: bool,
    /// How strict the kernel is
    #[arg(long, value_enum, default_value_t = VariantName::Strict)]
    pub(crate) variant: VariantName,
    /// A policy.yaml to use instead of the project's
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// Begin a new session even if the last one was halted
    #[arg(long)]
    pub(crate) new_session: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum VariantName {
    Strict,
    Permissive,
    EvidenceFirst,
    DualChannel,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Show entries, newest last
    Log(LogArgs),
    /// Verify the project's ledger, a bundle or a proof
    Verify(VerifyArgs),
    /// Write evidence that an outsider can verify with nothing else
    Export(ExportArgs),
    /// Prove that an entry is in the ledger, or that the ledger continues an earlier state
    Prove(ProveArgs),
    /// Archive completed days, and delete what is past its retention; every start does it once a day
    Rotate,
    /// Replace the signing key; the rotation is an entry that both keys signed
    RotateKey,
    /// Write a bill of materials: the packages that a commit was made with, as CycloneDX
    Sbom(SbomArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LogArgs {
    /// Only events of this kind (`syscall`, `kernel_halt`, …)
    #[arg(long)]
    pub(crate) event: Option<String>,
    /// Only events of this group: security, operation, sandbox, lifecycle, storage
    #[arg(long)]
    pub(crate) category: Option<String>,
    /// Only by this actor
    #[arg(long)]
    pub(crate) actor: Option<String>,
    /// Only decided like this: ALLOW, DENY, HALT
    #[arg(long)]
    pub(crate) decision: Option<String>,
    /// Only of this session
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// Only for this tool
    #[arg(long)]
    pub(crate) tool: Option<String>,
    /// Not before this time: `10m`, `2026-11-15`, `2026-11-15T22:00`, milliseconds
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Not after this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// At most so many entries, the newest that match
    #[arg(long, default_value_t = 50, value_name = "N")]
    pub(crate) limit: u64,
    /// Leave out so many of the newest
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) offset: u64,
    /// Another segment than the newest
    #[arg(long, value_name = "N")]
    pub(crate) segment: Option<u32>,
    /// Go on with new entries as they come
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// One JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct VerifyArgs {
    /// Verify an exported bundle; needs nothing else on this machine
    #[arg(long, value_name = "FILE", conflicts_with = "proof")]
    pub(crate) bundle: Option<PathBuf>,
    /// Verify a proof made by `fluffy audit prove`
    #[arg(long, value_name = "FILE")]
    pub(crate) proof: Option<PathBuf>,
    /// The key that must have signed it (`fluffy-ledger+…`); for a proof the default is your own
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// The result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExportArgs {
    /// The file to write; `-` for the standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Show the details of this session only; the chain is always whole
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Withhold details whose event, tool, actor or path matches; may be given more than once
    #[arg(long, value_name = "GLOB")]
    pub(crate) redact: Vec<String>,
}

#[derive(Debug, ClapArgs)]
#[group(required = true, multiple = false, id = "what")]
pub(crate) struct What {
    /// Number or hash of the entry
    pub(crate) entry: Option<String>,
    /// Prove that the ledger continues the state in which it had SIZE entries
    #[arg(long, value_name = "SIZE")]
    pub(crate) since: Option<u64>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ProveArgs {
    #[command(flatten)]
    pub(crate) what: What,
    /// The file to write; the standard output without it
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ManArgs {
    /// Write a page for every command into DIR, which is made if need be
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Write the page of all commands as Markdown
    #[arg(long, conflicts_with = "dir")]
    pub(crate) markdown: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DoctorArgs {
    /// The result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl VariantName {
    /// The variant of the kernel.
    pub(crate) fn variant(self) -> Box<dyn Variant> {
        match self {
            Self::Strict => Box::new(Strict),
            Self::Permissive => Box::new(Permissive),
            Self::EvidenceFirst => Box::new(EvidenceFirst),
            Self::DualChannel => Box::new(DualChannel),
        }
    }
}
