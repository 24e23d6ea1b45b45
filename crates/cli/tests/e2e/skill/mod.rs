//! Skills from a proposal to trust and through their runs, with the real binary, sandboxes and tools.

mod agent;
mod install;
mod killed;
pub(crate) mod lab;
mod refused;
mod session;
mod way;
