//! Whole tasks: `fluffy run` with transcripts on real projects in three languages.

mod attacks;
mod bad_input;
mod cancel;
mod exercise;
mod files;
mod gate;
mod happy;
mod lab;
mod modes;
mod resume;
mod review;
