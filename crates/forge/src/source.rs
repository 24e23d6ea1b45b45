//! A file of a skill as it was read: its name in the project and its bytes, nothing decoded yet.

use fluffy_base::ProjectPath;

/// A file, with the bytes that are judged, hashed and run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Where it is in the project.
    pub path: ProjectPath,
    /// Its bytes.
    pub bytes: Vec<u8>,
}
