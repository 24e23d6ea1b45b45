//! Plugins with the real binary: installed by a person, called by people and models, written from templates.

mod examples;
pub(crate) mod lab;
mod session;
mod templates;
mod way;
