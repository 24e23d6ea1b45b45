//! Contents of files, each under the hash of its bytes.
//!
//! **Invariant.** A name is the SHA-256 of what lies under it: a blob is written beside and renamed, never
//! changed, and checked when it is read.
//!
//! **Invariant.** What [`Blobs::put`] has given survives a power cut, bytes and name: whoever refers to it in the ledger
//! refers to nothing that could be lost. A name that is there always has its bytes on disk; whether the name is there
//! after a power cut, the directory's sync decides.
//!
//! **Invariant.** They have a bound together, whoever fills them and however often.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fluffy_base::{Digest, Hasher};
use rustix::fs::{CWD, Mode, OFlags, openat, renameat};

use super::Stored;

/// The most bytes that are kept in one directory. What a command left is kept before it is judged, so that a
/// model could otherwise fill the disk with files that nobody takes.
const ROOM: u64 = 8 << 30;

/// A directory of contents.
#[derive(Debug)]
pub struct Blobs {
    dir: PathBuf,
    /// How many more bytes are kept.
    room: AtomicU64,
    /// Whether the directory has names that a power cut could take. Held while one is added, and while they are synced.
    unsynced: Mutex<bool>,
}

/// Why a content could not be kept or given back.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The operating system refused.
    #[error("the content `{digest}` cannot be {action}")]
    Io {
        /// Which.
        digest: Digest,
        /// What was attempted.
        action: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// What lies there is something else.
    #[error("the content `{0}` was changed on disk")]
    Changed(Digest),
    /// There is no room for it.
    #[error("the session has kept {} GiB of contents, and keeps no more", ROOM >> 30)]
    Full,
    /// The directory cannot be made.
    #[error("the directory for contents cannot be made")]
    Directory(#[source] io::Error),
    /// The names in it cannot be synced.
    #[error("the directory for contents cannot be synced")]
    Unsynced(#[source] io::Error),
}

impl Blobs {
    /// The contents in this directory, which is made if need be, private to the user.
    pub fn open(dir: &Path) -> Result<Self, BlobError> {
        use std::os::unix::fs::DirBuilderExt as _;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.map_err(BlobError::Directory)?;
        let mut kept = 0_u64;
        for entry in std::fs::read_dir(dir).map_err(BlobError::Directory)? {
            // What is gone meanwhile takes no room.
            let found = entry.and_then(|entry| entry.metadata()).map_or(0, |found| found.len());
            kept = kept.saturating_add(found);
        }
        let room = AtomicU64::new(ROOM.saturating_sub(kept));
        // Whoever was here before may have been killed before its sync.
        Ok(Self { dir: dir.to_owned(), room, unsynced: Mutex::new(true) })
    }

    /// The contents in this directory, to be looked at: nothing is made, and there is no room for more.
    pub(crate) fn of(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), room: AtomicU64::new(0), unsynced: Mutex::new(true) }
    }

    /// Keeps a content for good. One that is kept already is not written again.
    pub fn put(&self, bytes: &[u8], executable: bool) -> Result<Stored, BlobError> {
        let stored = self.write(bytes, executable)?;
        self.settle()?;
        Ok(stored)
    }

    /// Keeps a content whose name is not kept for good before [`Blobs::settle`]: for many of them, which are settled
    /// together.
    pub(crate) fn write(&self, bytes: &[u8], executable: bool) -> Result<Stored, BlobError> {
        let digest = Digest::of(bytes);
        let stored = Stored { digest, bytes: bytes.len() as u64, executable };
        let path = self.path(&digest);
        if path.exists() {
            return Ok(stored);
        }
        let taken = self.room.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |room| {
            room.checked_sub(stored.bytes)
        });
        taken.map_err(|_room| BlobError::Full)?;
        let failed = |source| BlobError::Io { digest, action: "kept", source };
        let beside = self.dir.join(format!("{digest}.{:?}", std::thread::current().id()));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
        let opened = openat(CWD, &beside, flags, Mode::from_raw_mode(0o600));
        let mut file = File::from(opened.map_err(|errno| failed(errno.into()))?);
        file.write_all(bytes).and_then(|()| file.sync_data()).map_err(failed)?;
        let mut unsynced = self.unsynced();
        renameat(CWD, &beside, CWD, &path).map_err(|errno| failed(errno.into()))?;
        *unsynced = true;
        Ok(stored)
    }

    /// Has every name that is there survive a power cut.
    pub(crate) fn settle(&self) -> Result<(), BlobError> {
        let mut unsynced = self.unsynced();
        if *unsynced {
            File::open(&self.dir).and_then(|dir| dir.sync_all()).map_err(BlobError::Unsynced)?;
            *unsynced = false;
        }
        Ok(())
    }

    /// A content, checked against its name.
    pub fn get(&self, stored: &Stored) -> Result<Vec<u8>, BlobError> {
        let digest = stored.digest;
        let failed = |source| BlobError::Io { digest, action: "read", source };
        let mut bytes = Vec::with_capacity(usize::try_from(stored.bytes).unwrap_or_default());
        File::open(self.path(&digest))
            .and_then(|file| file.take(stored.bytes.saturating_add(1)).read_to_end(&mut bytes))
            .map_err(failed)?;
        if Digest::of(&bytes) == digest { Ok(bytes) } else { Err(BlobError::Changed(digest)) }
    }

    /// A content for reading piece by piece, checked against its name before the first of them.
    pub(crate) fn open_file(&self, stored: &Stored) -> Result<File, BlobError> {
        let digest = stored.digest;
        let failed = |source| BlobError::Io { digest, action: "read", source };
        let mut file = File::open(self.path(&digest)).map_err(failed)?;
        let found = hash(&mut file, stored.bytes).map_err(failed)?;
        if found != Some(digest) {
            return Err(BlobError::Changed(digest));
        }
        file.rewind().map_err(failed)?;
        Ok(file)
    }

    fn unsynced(&self) -> MutexGuard<'_, bool> {
        // A thread that panicked left it as it was or true, which costs one sync more.
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a content lies.
    pub(crate) fn path(&self, digest: &Digest) -> PathBuf {
        self.dir.join(digest.to_string())
    }
}

/// The hash of a file that has this many bytes; nothing if it has more.
fn hash(file: &mut File, expected: u64) -> io::Result<Option<Digest>> {
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; 64 * 1024];
    let mut rest = expected.saturating_add(1);
    loop {
        let read = file.read(&mut buffer)?;
        let Some(left) = rest.checked_sub(read as u64).filter(|left| *left > 0) else {
            return Ok(None);
        };
        if read == 0 {
            return Ok(Some(hasher.finish()));
        }
        rest = left;
        hasher.update(buffer.get(..read).unwrap_or_default());
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make the files they read")]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_kept_than_there_is_room_for_and_what_is_kept_counts_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(dir.path()).unwrap();
        blobs.put(b"hello", false).unwrap();
        assert_eq!(blobs.room.load(Ordering::SeqCst), ROOM - 5);
        let blobs = Blobs::open(dir.path()).unwrap();
        assert_eq!(blobs.room.load(Ordering::SeqCst), ROOM - 5);
        blobs.room.store(3, Ordering::SeqCst);
        assert!(matches!(blobs.put(b"worlds", false), Err(BlobError::Full)));
        blobs.put(b"hello", true).unwrap();
        blobs.put(b"abc", false).unwrap();
    }

    #[test]
    fn nothing_that_is_kept_waits_for_its_sync_and_what_an_earlier_process_left_is_synced_first() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(dir.path()).unwrap();
        blobs.write(b"hello", false).unwrap();
        assert!(*blobs.unsynced());
        // It is there, and still it is not kept before the names are.
        blobs.put(b"hello", false).unwrap();
        assert!(!*blobs.unsynced());
        blobs.put(b"world", false).unwrap();
        assert!(!*blobs.unsynced());
        blobs.write(b"again", false).unwrap();
        assert!(*blobs.unsynced());
        assert!(*Blobs::open(dir.path()).unwrap().unsynced());
    }

    #[test]
    fn a_content_is_given_back_and_a_changed_one_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(&dir.path().join("blobs")).unwrap();
        let stored = blobs.put(b"hello", true).unwrap();
        assert_eq!(blobs.put(b"hello", true).unwrap(), stored);
        assert_eq!(blobs.get(&stored).unwrap(), b"hello");
        let mut read = Vec::new();
        blobs.open_file(&stored).unwrap().read_to_end(&mut read).unwrap();
        assert_eq!(read, b"hello");
        std::fs::write(blobs.path(&stored.digest), b"hellO").unwrap();
        assert!(matches!(blobs.get(&stored), Err(BlobError::Changed(_))));
        assert!(matches!(blobs.open_file(&stored), Err(BlobError::Changed(_))));
        std::fs::write(blobs.path(&stored.digest), vec![0; 100]).unwrap();
        assert!(matches!(blobs.get(&stored), Err(BlobError::Changed(_))));
        assert!(matches!(blobs.open_file(&stored), Err(BlobError::Changed(_))));
    }
}
