//! Environments: what package managers installed, kept once and shown to sandboxes read-only.
//!
//! An [`EnvironmentStore`] keeps them by key: the hash of everything that decides what is installed. One that is there is an
//! [`Environment`], a stack of directories to be laid over a project. [`place_in_project`] copies its folder to where the
//! person's own commands look for it.
//!
//! **Invariant.** An environment is complete or not there: it is made beside the others and renamed into place, and one whose
//! files are not what was recorded is not used.

mod listing;
mod place;
mod store;

pub(crate) use self::place::place_in_project;
pub(crate) use self::store::Making;
pub use self::store::{Environment, EnvironmentError, EnvironmentRecord, EnvironmentStore};
