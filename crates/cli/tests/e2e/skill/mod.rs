//! Skills from a proposal to trust and through their runs, with the real binary, sandboxes and tools.

mod killed;
pub(crate) mod lab;
mod refused;
mod session;
mod way;
