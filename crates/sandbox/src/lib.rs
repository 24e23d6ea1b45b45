//! Runs a job in isolation and hands back what it left.
//!
//! A [`Config`] says what a sandbox is made of: it comes from a [`Template`] and can only be narrowed, but for limits that the user sets.
//! A [`Job`] says what runs in it. A [`Runtime`] makes a [`Sandbox`] of the two, which runs once and is
//! taken away with everything that it started. What it wrote lies in its [`Volume`], and [`harvest`]
//! reads that as one reads a stranger's parcel.
//!
//! **Invariant.** There is no unsandboxed mode: where isolation cannot be had, nothing runs.

mod config;
mod engine;
pub mod harvest;
mod job;
mod life;
mod limits;
mod native;
mod network;
mod profile;
pub mod proxy;
mod runtime;
mod template;
mod tree;
mod volume;

pub use config::{Changes, Config, ConfigError, Parts, Shown, Workspace};
pub use engine::{
    About, BadImageName, ContainOptions, Contained, Engine, EngineError, EngineKind, EngineOptions,
    Fetch, Gate, GateOptions, ImageChoice, ImageName, UnknownEngine, contain,
};
pub use job::{Captured, End, Input, Job, Limit, Outcome, Output, Start, Stream, Usage, Watcher};
pub use limits::{Limits, UserLimits};
pub use native::l1;
pub use native::seccomp::{Refused, refused};
pub use native::{Guest, Native, NativeOptions, sandbox_entry, sandbox_init};
pub use network::Network;
pub use profile::Profile;
pub use runtime::{
    Failure, Health, Inspection, MadeOf, Runtime, RuntimeError, Sandbox, State, Swept,
};
pub use template::Template;
pub use tree::remove_tree;
pub use volume::{Store, Volume};
