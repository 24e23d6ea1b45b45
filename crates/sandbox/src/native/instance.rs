//! What one run of the driver owns on this machine, so that the next can tell what a killed one left.
//!
//! An instance is a directory with a lock that its process holds as long as it lives. Names of control groups
//! begin with the instance's name, volumes lie in its directory: whatever belongs to an instance whose lock is
//! free is left over, and nothing else is.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fluffy_base::{IdSource as _, SystemIds};
use rustix::fs::{FlockOperation, flock};

use crate::runtime::Swept;
use crate::tree::remove_tree;

use super::cgroup::Stale;

/// The file that the process of an instance keeps locked.
const LOCK: &str = "lock";

/// One run of the driver.
#[derive(Debug)]
pub(crate) struct Instance {
    name: String,
    directory: PathBuf,
    count: AtomicU64,
    /// Whether something that bears its name could not be taken away.
    left: AtomicBool,
    _lock: File,
}

impl Instance {
    /// A new one below this directory.
    #[expect(clippy::disallowed_methods, reason = "the one place that writes what an instance is")]
    pub(crate) fn begin(state: &Path) -> io::Result<Self> {
        private().recursive(true).create(state)?;
        let _alone = alone_in(state)?;
        let random = SystemIds.fresh().ok_or(io::ErrorKind::Unsupported)?;
        let name: String = random.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
        let directory = state.join(&name);
        private().create(&directory)?;
        let lock = File::create(directory.join(LOCK))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self {
            name,
            directory,
            count: AtomicU64::new(0),
            left: AtomicBool::new(false),
            _lock: lock,
        })
    }

    /// A name for a sandbox that nothing else has.
    pub(crate) fn next_name(&self) -> String {
        format!("fluffy-{}-{}", self.name, self.count.fetch_add(1, Ordering::Relaxed))
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Where what it owns lies.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Something that bears its name could not be taken away: the next sweep is to find out whose it is.
    pub(crate) fn leave(&self) {
        self.left.store(true, Ordering::Relaxed);
    }

    /// A fresh directory for what one sandbox needs.
    pub(crate) fn desk(&self, name: &str) -> io::Result<PathBuf> {
        let directory = self.directory.join(name);
        private().create(&directory)?;
        Ok(directory)
    }

    /// A fresh directory for a volume.
    pub(crate) fn volume(&self) -> io::Result<PathBuf> {
        let directory = self.directory.join(self.next_name());
        private().create(&directory)?;
        fs::create_dir(directory.join("upper"))?;
        fs::create_dir(directory.join("work"))?;
        Ok(directory)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if !self.left.load(Ordering::Relaxed) {
            // What cannot be removed now is swept up with the next start.
            let _left = remove_tree(&self.directory);
        }
    }
}

/// Makes directories that nobody else may enter: what a job leaves in a volume, marked as it likes, is out of
/// everybody's reach.
fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// Takes away what instances left whose process is gone: directories, and whatever else bears the name of one.
pub(crate) fn sweep(state: &Path, named: &dyn Fn(&str) -> Stale) -> Swept {
    let mut swept = Swept::default();
    let Ok(_alone) = alone_in(state) else { return swept };
    let Ok(entries) = fs::read_dir(state) else { return swept };
    for entry in entries.flatten().filter(|entry| is_name(&entry.file_name())) {
        let directory = entry.path();
        let free = match File::open(directory.join(LOCK)) {
            Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
            // Its process was killed before it had one, or while it took everything away.
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if free {
            take_away(&directory, named, &mut swept);
        }
    }
    swept
}

/// Whether this is a name that [`Instance::begin`] gives.
fn is_name(name: &OsStr) -> bool {
    let digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    name.len() == 10 && name.as_encoded_bytes().iter().all(digit)
}

/// Keeps everybody else from beginning an instance or sweeping as long as the descriptor is open: what is
/// seen without a lock then belongs to nobody.
fn alone_in(state: &Path) -> io::Result<File> {
    let directory = File::open(state)?;
    flock(&directory, FlockOperation::LockExclusive)?;
    Ok(directory)
}

fn take_away(directory: &Path, named: &dyn Fn(&str) -> Stale, swept: &mut Swept) {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let stale = named(&name);
    swept.processes += stale.processes;
    swept.groups += stale.groups;
    swept.left += stale.left;
    if stale.left > 0 {
        // The directory says whose it is: the next sweep tries again.
        return;
    }
    let volumes = fs::read_dir(directory)
        .map_or(0, |entries| entries.flatten().filter(|entry| entry.path().is_dir()).count());
    match remove_tree(directory) {
        Ok(()) => swept.directories += volumes + 1,
        Err(_) => swept.left += 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn nobody_else_enters_what_belongs_to_an_instance() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("a/b");
        let instance = Instance::begin(&state).unwrap();
        let volume = instance.volume().unwrap();
        for path in [&dir.path().join("a"), &state, &instance.directory, &volume] {
            let mode = fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o700, "{}", path.display());
        }
        drop(instance);
        assert_eq!(fs::read_dir(&state).unwrap().count(), 0);
    }
}
