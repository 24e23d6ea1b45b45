//! What tests of several crates need: projects in temporary directories, the contracts of seams, and
//! a server that speaks TLS.

pub mod engines;
pub mod fuzz;
pub mod mounts;
pub mod runtime_contract;
pub mod server;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fluffy_sandbox::{Native, NativeOptions, Runtime, RuntimeError};
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

/// The native driver, for tests of crates that may not know the sandbox. `program` answers to `sandbox-init`.
///
/// # Errors
///
/// When the driver's directory cannot be made or its surroundings not be read.
pub fn native(program: &Path, state: &Path) -> Result<Arc<dyn Runtime>, RuntimeError> {
    let (program, state) = (program.to_owned(), state.to_owned());
    let options = NativeOptions { program, state, path: Vec::new(), env: Vec::new() };
    Ok(Arc::new(Native::open(options)?))
}

/// Where `scripts/test` puts the tools that check skills.
pub fn skill_tools() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/skills");
    // Sandboxes show paths that mean one thing.
    std::path::absolute(root.canonicalize().unwrap_or(root.clone())).unwrap_or(root)
}
