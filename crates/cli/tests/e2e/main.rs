//! The real binary on real projects in temporary directories.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    clippy::disallowed_methods,
    reason = "tests start the binary, change files behind its back, and fail by panicking"
)]

mod audit;
mod chat;
mod config;
mod demo;
mod demo_projects;
mod engines;
mod gateway;
mod halt;
mod independent;
mod keys;
mod models;
mod packages;
mod peers;
mod plugin;
mod policy;
mod policy_host;
mod policy_update;
mod processes;
mod program;
mod provider_host;
mod rule_files;
mod sandbox;
mod shell;
mod skill;
mod submit;
mod task;
