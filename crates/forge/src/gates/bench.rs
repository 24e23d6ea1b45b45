//! Lays a skill out where the gates look at it: its files, the base and what drives the tools.
//!
//! **Invariant.** A bench is private, holds nothing but what was given, and is gone with its value. What a killed process
//! left is removed with the next one: whoever is at work has his bench locked.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use fluffy_base::IdSource;

use crate::{Base, SKILLS, SourceFile, base, tools};

/// Where a sandbox sees the bench.
pub(super) const AT: &str = "/fluffy-gate";

/// What runs the tests.
const DRIVER: &str = include_str!("../../profiles/gate_tests.py");

/// How the names of benches begin.
const PREFIX: &str = "verify-";

/// A directory with a skill in it.
#[derive(Debug)]
pub(super) struct Bench {
    dir: PathBuf,
    /// Locked until it is dropped.
    _lock: File,
}

/// Why a skill could not be laid out.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A file or directory could not be made.
    #[error("`{}` cannot be made", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// There is no name for it.
    #[error("the machine gives no randomness for a name")]
    NoName,
}

impl Bench {
    pub(super) fn new(
        scratch: &Path,
        ids: &dyn IdSource,
        files: &[SourceFile],
    ) -> Result<Self, BenchError> {
        make(scratch)?;
        sweep(scratch);
        let name = u128::from_be_bytes(ids.fresh().ok_or(BenchError::NoName)?);
        let dir = scratch.join(format!("{PREFIX}{name:032x}"));
        make(&dir)?;
        let failed = |source| BenchError::Io { path: dir.clone(), source };
        let lock = File::open(&dir).and_then(|it| it.lock().map(|()| it)).map_err(failed)?;
        let bench = Self { dir, _lock: lock };
        for file in files {
            bench.write(file.path.as_str(), &file.bytes)?;
        }
        bench.write(&format!("base/{}.py", Base::MODULE), base().skill)?;
        bench.write("gate/gate_tests.py", DRIVER.as_bytes())?;
        bench.write("gate/mypy.ini", tools::MYPY.as_bytes())?;
        make(&bench.dir.join(SKILLS))?;
        Ok(bench)
    }

    /// Where it is on this machine.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), BenchError> {
        let path = self.dir.join(name);
        if let Some(parent) = path.parent() {
            make(parent)?;
        }
        let mut options = OpenOptions::new();
        let made = options.write(true).create_new(true).mode(0o600).open(&path);
        let written = made.and_then(|mut file| file.write_all(bytes));
        written.map_err(|source| BenchError::Io { path, source })
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        remove(&self.dir);
    }
}

/// Removes benches that nobody has locked.
fn sweep(scratch: &Path) {
    // What cannot be looked at or removed now is so the next time.
    let Ok(entries) = std::fs::read_dir(scratch) else { return };
    for entry in entries.flatten() {
        let is_bench = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let free = || File::open(entry.path()).is_ok_and(|dir| dir.try_lock().is_ok());
        if is_bench && is_directory && free() {
            remove(&entry.path());
        }
    }
}

fn make(dir: &Path) -> Result<(), BenchError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|source| BenchError::Io { path: dir.to_owned(), source })
}

#[expect(clippy::disallowed_methods, reason = "the one place that removes benches")]
fn remove(dir: &Path) {
    // What cannot be removed now is swept up with the next one.
    let _left = std::fs::remove_dir_all(dir);
}

#[cfg(test)]
mod tests {
    use super::*;
    use fluffy_base::{ProjectPath, SeededIds};

    #[test]
    fn benches_are_gone_with_their_value_and_swept_when_their_process_was_killed() {
        let dir = tempfile::tempdir().unwrap();
        let ids = SeededIds::new(1);
        let path = ProjectPath::parse(".fluffy/skills/x.py").unwrap();
        let files = [SourceFile { path, bytes: b"x = 1\n".to_vec() }];
        let one = Bench::new(dir.path(), &ids, &files).unwrap();
        make(&dir.path().join("verify-killed/base")).unwrap();
        make(&dir.path().join("other")).unwrap();
        let two = Bench::new(dir.path(), &ids, &files).unwrap();
        assert!(one.dir().join(".fluffy/skills/x.py").exists());
        assert!(two.dir().join("base/fluffy_skill.py").exists());
        assert!(!dir.path().join("verify-killed").exists());
        drop((one, two));
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().collect();
        assert_eq!(left.len(), 1);
    }
}
