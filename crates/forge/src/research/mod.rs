//! Looks into a failed attempt, so that the next one is told more than the last.
//!
//! Nothing is tried again within an attempt: each has one frozen packet. Between two attempts stands research:
//! [`classify`] says what failed, [`Facts`] say where, [`advise`] asks a local model for a better packet,
//! [`triggers`] say whether a person has to look first, and [`note`] writes it all down for the next attempt.
//! [`research`] does all of it on what the forge remembers.
//!
//! **Invariant.** Research changes nothing that is enforced. Paths, side effects, folders, hosts and secrets come
//! from the proposal in the ledger; what is written here is text in the next packet.

mod advise;
mod changes;
mod classify;
mod escalate;
mod facts;
mod inquiry;
mod note;
#[cfg(test)]
mod samples;
mod spelling;
mod tokens;
mod widening;

pub use advise::{Advice, Question, Unusable, advise};
pub use classify::{Classified, Evidence, FailureKind, Told, classify};
pub use escalate::{Trigger, triggers};
pub use facts::{Facts, FailedTest, Fault};
pub use inquiry::{
    Inquire, Inquiry, ResearchError, approve_retry, findings, research, skill_of_build,
};
pub use note::{NoteParts, note};
