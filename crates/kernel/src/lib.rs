//! The only door: every action of any participant is a request that is validated, arbitrated,
//! executed and recorded, in that order, and answered with a receipt.
//!
//! ```text
//! submit ── VALIDATING ── ARBITRATING ── EXECUTING ── AUDITING ── receipt
//!              structure     every rule    with a        the ledger
//!              ambiguity     is asked      `Permit`      has it
//! ```
//!
//! **Invariant.** Nothing runs without a permit, which names one call, is used up by running it and
//! comes from arbitration only.
//!
//! **Invariant.** Every entry is made by whoever holds the door, and so is a halt: after the halt's
//! entry nothing is allowed.
//!
//! **Invariant.** What is checked, hashed, run and recorded is one value: the normalised request.

mod answer;
mod arbitration;
mod builtin;
mod clerk;
mod config;
mod context;
mod dependencies;
mod door;
mod environments;
mod error;
mod exception;
mod execution;
mod files;
mod git;
mod grants;
mod guest;
mod ipc;
mod kernel;
mod lab;
mod masking;
mod merge;
mod narrate;
mod notes;
mod past;
mod plugin;
mod policy_host;
mod policy_store;
mod policy_update;
mod provider_host;
mod registry;
mod review;
mod reviewing;
pub mod schedule;
mod session;
mod staging;
mod start;
mod token_use;
mod tool;
mod tools;
mod validation;
mod variant;
mod walk;
mod witness;
mod workshop;

pub use fluffy_ledger::{
    Appended, EventType, KeyName, Layout, LedgerError, RetentionOptions, SigningKey, VerifyingKey,
};
pub use fluffy_policy::PolicyFile;

pub use builtin::{Add, Echo};
pub use clerk::{Clerk, Journal, May, Note};
pub use config::KernelConfig;
pub use context::{CallContext, Presented};
pub use dependencies::DependencyOptions;
pub use environments::{Environment, EnvironmentError, EnvironmentRecord, EnvironmentStore};
pub use error::{KernelError, RegistryError};
pub use files::{
    BlobError, Blobs, Entry, Found, Listing, Staged, StagedFiles, Stored, Tree, TreeError, View,
    Walked,
};
pub use git::{
    Changed, Commit, Committed, FileState, Git, GitDiff, GitError, GitLog, GitOptions, GitPath,
    GitStatus, Hook, HookAnswer, HookPolicy, Identity, IdentityOverrides, Logged, Message,
    MessageError, ObjectError, ObjectId, Recorded, Trailer,
};
pub use grants::{Grant, GrantTarget, Objection};
pub use guest::{Guest, GuestError, GuestFailure};
pub use ipc::{
    CallError, Client, ClientOptions, ConnectError, Gone, ListenError, Listener, Peer,
    ReceiveError, Server, ServerOptions, Service, Token, Welcome, listen,
};
pub use kernel::{Kernel, causes};
pub use lab::{
    Asked, Conversation, Errand, Errands, Folders, Keeps, Lab, LabError, Left, LeftFile, Talk,
    hidden_in,
};
pub use merge::{
    Conflict, MergeError, Merged, MergedFile, Operation, Outcome, Plan, Recovered, carry_out,
    recover,
};
pub use notes::{KeptNote, NotesError, Span, newest_note, notes, proved_copy, proved_note};
pub use plugin::{
    Disabled, Installed, Interpreters, MANIFEST, Manifest, PLUGIN_API, PLUGIN_API_OLDEST, Package,
    PackageError, PackedFile, PluginChange, PluginDone, PluginError, PluginName, PluginOptions,
    PluginRuntime, PluginStep, PluginTemplate, PluginTool, Plugins, Roll, Stage, Surveyed,
    ToolDefinition, Unpacked,
};
pub use policy_host::{PolicyHost, PolicyHostError, RuleFile};
pub use policy_store::{Extensions, LoadedExtensions, NoExtensions};
pub use provider_host::{Destination, ProviderHost, ProviderHostError};
pub use registry::Registry;
pub use review::{Question, Review, Reviewer, Scope, is_personal};
pub use session::{
    ArchiveError, Archived, CallAnswer, Cancel, CommitOptions, Dossier, DossierEntry, Driver,
    ForkPoint, Forked, ForkedFrom, Message as PersonMessage, ModelCall, OFFERED,
    Outcome as SessionOutcome, Outline, Pin, RestoreError, Session, SessionConfig, SessionError,
    SessionSummary, Status as SessionStatus, StepDiff, StoredSession, TaskStatus, TurnRecord, fork,
    remove_archive, sessions,
};
pub use staging::{
    Base, BelowError, Diff, FileDiff, FileKind, Layer, Staging, StagingError, Step, StepChange,
};
pub use start::SessionStart;
pub use token_use::IssueError;
pub use tool::{CalledPrograms, Effect, Failure, Tool, ToolError, ToolSpec};
pub use tools::{FsExists, FsList, FsRead, SearchGlob, SearchGrep, Views, reading_tools};
pub use variant::{
    Ambiguity, DualChannel, EvidenceFirst, Permissive, Strict, Variant, variant_named,
};
pub use witness::{Telling, Told, Witness};
// What an errand is bounded by and how it ends, for those who may not know the sandbox itself.
pub use fluffy_policy::{Isolation, Shape};
pub use fluffy_sandbox::proxy::{Upstream, UpstreamError};
pub use fluffy_sandbox::{Captured, End, Limit, Limits, sandbox_init};
pub use workshop::{
    CommandError, CommandLine, CommandRun, CommandScript, Current, Edit, EditError, JobLimits,
    Like, LineError, Lost, MAX_EDIT_BYTES, MAX_LINE_BYTES, Measured, NotTaken, Originals, Printed,
    ProduceError, Produced, ProgramCall, Ran, Refused, ScriptStep, Sight, SightError, SuiteRun,
    Taken, Taking, TestPlan, TestSummary, Tested, TestsError, Workshop, WorkshopError,
    WorkshopOptions, file_host, parse_line, pipeline_host,
};
