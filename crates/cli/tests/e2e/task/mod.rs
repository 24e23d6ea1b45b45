//! Whole tasks: `fluffy run` with transcripts on real projects in three languages.

mod attacks;
mod bad_input;
mod cancel;
mod commands;
mod coverage;
mod debug;
mod exercise;
mod export;
mod files;
mod forged;
mod fork;
mod gate;
mod happy;
pub(crate) mod lab;
mod modes;
mod no_result;
mod patches;
mod pins;
mod piped;
pub(crate) mod resume;
mod review;
mod standby;
mod steering;
mod turns;
