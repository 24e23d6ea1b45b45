//! The file that a final answer is also written to.
//!
//! **Invariant.** A file is replaced whole or not at all. What is no file, such as a device or a pipe, is
//! written to and never replaced.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use fluffy_base::{IdSource as _, SystemIds};

use crate::explain::CliError;

/// Where an answer will go: looked at before the work begins, so that nobody works for nothing.
#[derive(Debug)]
pub(crate) struct AnswerFile {
    path: PathBuf,
    is_file: bool,
}

impl AnswerFile {
    /// The file of this name, there or not.
    pub(crate) fn at(path: &Path) -> Result<Self, CliError> {
        let failed = |source| CliError::File { action: "write", path: path.to_owned(), source };
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => Err(failed(io::ErrorKind::IsADirectory.into())),
            // A link stays a link: what it leads to is what is replaced.
            Ok(found) => {
                let real = std::fs::canonicalize(path).map_err(failed)?;
                Ok(Self { path: real, is_file: found.is_file() })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let folder = folder.unwrap_or_else(|| Path::new("."));
                let name = path.file_name();
                let name = name.ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
                let folder = std::fs::canonicalize(folder).map_err(failed)?;
                Ok(Self { path: folder.join(name), is_file: true })
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Writes the answer.
    pub(crate) fn write(&self, answer: &str) -> Result<(), CliError> {
        let text = format!("{}\n", answer.trim_end());
        let written = if self.is_file {
            self.replace(text.as_bytes())
        } else {
            let device = OpenOptions::new().write(true).open(&self.path);
            device.and_then(|mut device| device.write_all(text.as_bytes()))
        };
        let failed = |source| CliError::File { action: "write", path: self.path.clone(), source };
        written.map_err(failed)
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that replaces an answer's file")]
    fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        let fresh = SystemIds.fresh().ok_or(io::ErrorKind::Other)?;
        let mark: String = fresh.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        let beside = self.path.with_file_name(format!(".fluffy-answer-{mark}"));
        let mut options = OpenOptions::new();
        // As any program would: readable to all, less what the user masks.
        let mut file = options.write(true).create_new(true).mode(0o644).open(&beside)?;
        let written = file
            .write_all(bytes)
            .and_then(|()| file.sync_all())
            .and_then(|()| std::fs::rename(&beside, &self.path));
        if written.is_err() {
            // The first error is the one to tell.
            let _left = std::fs::remove_file(&beside);
        }
        written
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make files to be replaced")]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn an_answer_replaces_a_file_whole_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("answer.md");
        for text in ["first, and long", "second\n"] {
            AnswerFile::at(&path).unwrap().write(text).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", text.trim_end()));
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o600, 0o600);
        assert_eq!(mode & 0o133, 0);
    }

    #[test]
    fn a_link_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        std::fs::write(&real, "old").unwrap();
        symlink(&real, &link).unwrap();
        AnswerFile::at(&link).unwrap().write("new").unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(&real).unwrap(), "new\n");
    }

    #[test]
    fn a_device_is_written_to_and_never_replaced() {
        AnswerFile::at(Path::new("/dev/null")).unwrap().write("x").unwrap();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn where_nothing_can_be_written_is_known_before_the_work_begins() {
        let dir = tempfile::tempdir().unwrap();
        assert!(AnswerFile::at(dir.path()).is_err());
        assert!(AnswerFile::at(&dir.path().join("none/answer.md")).is_err());
        assert!(AnswerFile::at(Path::new("..")).is_err());
    }
}
