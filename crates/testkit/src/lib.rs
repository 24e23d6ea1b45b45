//! What tests of several crates need: projects in temporary directories, the contracts of seams, and
//! a server that speaks TLS.

pub mod runtime_contract;
pub mod server;

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A project and the user's state, in a temporary directory that goes away with the value.
#[derive(Debug)]
pub struct Project {
    dir: TempDir,
}

impl Project {
    /// An empty project of a user who has never used the product.
    ///
    /// # Errors
    ///
    /// When the system gives no temporary directory.
    pub fn new() -> std::io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("fluffy-test-").tempdir()?;
        for name in ["project", "state"] {
            std::fs::create_dir(dir.path().join(name))?;
        }
        Ok(Self { dir })
    }

    /// The project's root.
    pub fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    /// The user's state directory (`$XDG_STATE_HOME`).
    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// A path beside both, for whatever a test writes.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }
}
