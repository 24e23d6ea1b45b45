//! Three layers of files: the project, what the session made of it, and how both look together.
//!
//! [`Tree`] is the project by handle. [`Blobs`] keeps contents by their hash. [`StagedFiles`] says what the
//! session changed, and [`View`] is the project with those changes: what reads, tests and commands see.
//!
//! **Invariant.** Nothing here writes to the project.

mod blobs;
mod content;
mod directory;
mod ignored;
mod manifests;
mod tree;
mod view;
mod walk;

#[cfg(test)]
pub(crate) mod scene;
#[cfg(test)]
mod tests;

pub use blobs::{BlobError, Blobs};
pub use content::{Staged, StagedFiles, Stored};
pub use directory::{Entry, Listing};
pub use tree::{Found, Tree, TreeError};
pub use view::View;
pub use walk::Walked;
pub(crate) use walk::on_all_processors;
