//! Rules that people write in TypeScript.
//!
//! A rule file is one module with an `export default function` from a request to an answer; what it may
//! use is in `policy.d.ts`. The kernel keeps a *policy host*, a process of its own without files,
//! network or environment, that runs [`host::serve`]. There each file is stripped of its types
//! ([`source`]), compiled once ([`bytecode`]) and run in an engine of its own for each request
//! ([`engine`]); [`protocol`] is what is said between the two processes.
//!
//! **Invariant.** Rule files run in the host only. A host that is away, late or not understood is a
//! denial.

pub(crate) mod answer;
mod bytecode;
pub(crate) mod engine;
pub(crate) mod host;
pub(crate) mod input;
pub(crate) mod protocol;
pub(crate) mod source;
