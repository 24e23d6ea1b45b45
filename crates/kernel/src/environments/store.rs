//! Keeps environments by key, for all projects of a user.

use std::fs::File;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use fluffy_base::Digest;
use fluffy_dependencies::{Manager, ResolvedPackage};
use fluffy_sandbox::remove_tree;
use rustix::fs::{FlockOperation, XattrFlags, flock, lsetxattr};
use serde::{Deserialize, Serialize};

use super::listing::{Listing, ListingError};

/// What an environment consists of.
const RECORD: &str = "record.json";
/// What the file system said of it when it was last found whole.
const STAMP: &str = "stamp";
/// Held by whoever uses it.
const LOCK: &str = "lock";
/// How the directory of one that is being made begins.
const MAKING: &str = ".making-";

/// Numbers for directories that nobody else in this process uses.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Where environments are kept.
#[derive(Debug, Clone)]
pub struct EnvironmentStore {
    directory: PathBuf,
}

/// What is known of an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentRecord {
    /// The hash of what decides what is installed.
    pub key: String,
    /// What installed it.
    pub manager: Manager,
    /// The manager's version, and that of what its packages run on.
    pub tool: String,
    /// The folder, from the project's root.
    pub folder: String,
    /// The packages.
    pub packages: Vec<ResolvedPackage>,
    /// When it was made, in milliseconds since the epoch.
    pub created_ms: u64,
    /// How many files and directories it has.
    pub files: u64,
    /// The bytes of its files.
    pub bytes: u64,
    /// The hash of the files of each of its layers, the lowest first.
    pub contents: Vec<Digest>,
}

/// An environment that is there. It is in use as long as this lives.
#[derive(Debug)]
pub struct Environment {
    /// What it is.
    pub record: EnvironmentRecord,
    directory: PathBuf,
    _in_use: File,
}

/// An environment that is being made, with room for what that takes. It is gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Making {
    directory: PathBuf,
    layers: usize,
}

/// Why an environment cannot be kept or used.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// The store cannot be used.
    #[error("the store of environments cannot be used: `{}`", path.display())]
    Store {
        /// What failed.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What was installed cannot be kept.
    #[error("what was installed cannot be kept")]
    Listing(#[from] ListingError),
    /// There is none of this key.
    #[error("there is no environment `{0}`")]
    Unknown(String),
    /// It is in use by a session.
    #[error("environment `{0}` is in use")]
    InUse(String),
}

impl EnvironmentStore {
    /// The store in this directory, which is made when something is kept.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The environment of this key, if there is one and its files are what was recorded. One that is not is removed.
    pub fn find(&self, key: &str) -> Result<Option<Environment>, EnvironmentError> {
        if !is_key(key) {
            return Ok(None);
        }
        let directory = self.directory.join(key);
        let Some(record) = read_record(&directory) else {
            self.discard(&directory);
            return Ok(None);
        };
        let in_use = lock(&directory, FlockOperation::LockShared)?;
        let environment = Environment { record, directory, _in_use: in_use };
        if environment.is_whole() {
            return Ok(Some(environment));
        }
        let directory = environment.directory.clone();
        drop(environment);
        self.discard(&directory);
        Ok(None)
    }

    /// Takes away what is no environment, unless somebody uses it.
    fn discard(&self, directory: &Path) {
        let free = lock(directory, FlockOperation::NonBlockingLockExclusive);
        if let Ok(_alone) = free {
            // What cannot be removed now is found again next time.
            let _left = remove_tree(directory);
        }
    }

    /// Every environment that is there, without looking at its files.
    pub fn list(&self) -> Result<Vec<EnvironmentRecord>, EnvironmentError> {
        let entries = match std::fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(failed(&self.directory, source)),
        };
        let records = entries.flatten().filter_map(|entry| read_record(&entry.path()));
        let mut records: Vec<_> = records.collect();
        records.sort_by_key(|record| record.created_ms);
        Ok(records)
    }

    /// When an environment was last used, in milliseconds since the epoch.
    pub fn last_used_ms(&self, key: &str) -> Option<u64> {
        let modified =
            std::fs::metadata(self.directory.join(key).join(LOCK)).ok()?.modified().ok()?;
        let since = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
        u64::try_from(since.as_millis()).ok()
    }

    /// Takes an environment away.
    pub fn remove(&self, key: &str) -> Result<EnvironmentRecord, EnvironmentError> {
        let unknown = || EnvironmentError::Unknown(fluffy_base::Excerpt::new(key, 80).to_string());
        if !is_key(key) {
            return Err(unknown());
        }
        let directory = self.directory.join(key);
        let record = read_record(&directory).ok_or_else(unknown)?;
        let _alone = match lock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(alone) => alone,
            Err(_used) => return Err(EnvironmentError::InUse(key.to_owned())),
        };
        remove_tree(&directory).map_err(|source| failed(&directory, source))?;
        Ok(record)
    }

    /// Begins an environment.
    pub(crate) fn begin(&self) -> Result<Making, EnvironmentError> {
        private(&self.directory).map_err(|source| failed(&self.directory, source))?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{MAKING}{}-{number}", std::process::id());
        let directory = self.directory.join(name);
        // A killed kernel of the same number left it.
        let _left = remove_tree(&directory);
        private(&directory).map_err(|source| failed(&directory, source))?;
        Ok(Making { directory, layers: 0 })
    }

    /// Takes away what interrupted installations left.
    pub fn sweep(&self) {
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let process = name
                .to_str()
                .and_then(|name| name.strip_prefix(MAKING)?.split('-').next()?.parse::<i32>().ok());
            let process = process.and_then(rustix::process::Pid::from_raw);
            if process.is_some_and(|process| rustix::process::test_kill_process(process).is_err()) {
                let _left = remove_tree(&entry.path());
            }
        }
    }
}

impl Environment {
    /// The directories to be laid over the project, the lowest first.
    pub fn layers(&self) -> Vec<PathBuf> {
        let count = self.record.contents.len();
        (0..count).map(|number| self.directory.join(number.to_string())).collect()
    }

    /// Whether its files are what was recorded: unchanged by the file system's word, or else by their contents.
    fn is_whole(&self) -> bool {
        let listings: Result<Vec<Listing>, _> =
            self.layers().iter().map(|layer| Listing::of(layer)).collect();
        let Ok(listings) = listings else { return false };
        let stamp = stamp_of(&listings);
        let at = self.directory.join(STAMP);
        if std::fs::read_to_string(&at).is_ok_and(|known| known == stamp) {
            return true;
        }
        let contents = listings.iter().zip(self.layers());
        let contents: Result<Vec<Digest>, _> =
            contents.map(|(listing, layer)| listing.content(&layer)).collect();
        let whole = contents.is_ok_and(|contents| contents == self.record.contents);
        if whole {
            // Otherwise the contents are looked at next time, too.
            let _kept = write(&at, stamp.as_bytes());
        }
        whole
    }
}

impl Making {
    /// Where files lie that are needed to make it, and are gone with this.
    pub(crate) fn work(&self, name: &str) -> PathBuf {
        self.directory.join(format!("work-{name}"))
    }

    /// A directory that becomes the next layer.
    pub(crate) fn layer(&mut self) -> Result<PathBuf, EnvironmentError> {
        let directory = self.directory.join(self.layers.to_string());
        make(&directory).map_err(|source| failed(&directory, source))?;
        self.layers += 1;
        Ok(directory)
    }

    /// Puts it into the store. If somebody else made the same meanwhile, theirs is used.
    pub(crate) fn finish(
        self,
        store: &EnvironmentStore,
        mut record: EnvironmentRecord,
    ) -> Result<Environment, EnvironmentError> {
        let layers: Vec<PathBuf> =
            (0..self.layers).map(|number| self.directory.join(number.to_string())).collect();
        let folder = Path::new(&record.folder);
        if let Some(lowest) = layers.first() {
            hide_below(&lowest.join(folder)).map_err(|source| failed(lowest, source))?;
        }
        let listings: Vec<Listing> =
            layers.iter().map(|layer| Listing::of(layer)).collect::<Result<_, _>>()?;
        let contents = listings.iter().zip(&layers);
        record.contents =
            contents.map(|(listing, layer)| listing.content(layer)).collect::<Result<_, _>>()?;
        record.files = listings.iter().map(Listing::count).sum();
        record.bytes = listings.iter().map(|listing| listing.bytes).sum();
        let text = serde_json::to_vec(&record).map_err(io::Error::from);
        let text = text.map_err(|source| failed(&self.directory, source))?;
        // What only served to make it does not stay.
        if let Ok(entries) = std::fs::read_dir(&self.directory) {
            for entry in entries
                .flatten()
                .filter(|entry| entry.file_name().to_string_lossy().starts_with("work-"))
            {
                let _left = remove_tree(&entry.path());
            }
        }
        for (name, bytes) in
            [(RECORD, text.as_slice()), (STAMP, stamp_of(&listings).as_bytes()), (LOCK, b"")]
        {
            let at = self.directory.join(name);
            write(&at, bytes).map_err(|source| failed(&at, source))?;
        }
        let to = store.directory.join(&record.key);
        // Where one stands already, this one goes.
        let _first = rustix::fs::rename(&self.directory, &to);
        store.find(&record.key)?.ok_or(EnvironmentError::Unknown(record.key))
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        // After it was finished there is nothing here any more.
        let _left = remove_tree(&self.directory);
    }
}

fn is_key(key: &str) -> bool {
    key.len() == 64 && key.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn read_record(directory: &Path) -> Option<EnvironmentRecord> {
    let text = std::fs::read(directory.join(RECORD)).ok()?;
    let record: EnvironmentRecord = serde_json::from_slice(&text).ok()?;
    let name = directory.file_name()?.to_str()?;
    (record.key == name && is_key(name)).then_some(record)
}

fn stamp_of(listings: &[Listing]) -> String {
    listings.iter().map(|listing| listing.stamp().to_string()).collect::<Vec<_>>().join("\n")
}

/// Has a folder hide what the layers below it have there, as a directory of overlayfs does that replaced another.
fn hide_below(folder: &Path) -> io::Result<()> {
    Ok(lsetxattr(folder, "user.overlay.opaque", b"y", XattrFlags::empty())?)
}

fn lock(directory: &Path, how: FlockOperation) -> Result<File, EnvironmentError> {
    let at = directory.join(LOCK);
    let file =
        File::options().read(true).write(true).open(&at).map_err(|source| failed(&at, source))?;
    flock(&file, how).map_err(|errno| failed(&at, errno.into()))?;
    // The time of its last use, for whoever cleans up.
    let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
    let times = rustix::fs::Timestamps { last_access: now, last_modification: now };
    let _noted = rustix::fs::futimens(&file, &times);
    Ok(file)
}

fn failed(path: &Path, source: io::Error) -> EnvironmentError {
    EnvironmentError::Store { path: path.to_owned(), source }
}

fn private(directory: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

fn make(directory: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o755).create(directory)
}

#[expect(clippy::disallowed_methods, reason = "the one place that writes records of environments")]
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    std::fs::write(path, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scene {
        _dir: tempfile::TempDir,
        store: EnvironmentStore,
    }

    fn scene() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let store = EnvironmentStore::new(dir.path().join("environments"));
        Scene { _dir: dir, store }
    }

    fn key() -> String {
        "ab".repeat(32)
    }

    fn make_one(store: &EnvironmentStore) -> Environment {
        let mut making = store.begin().unwrap();
        let layer = making.layer().unwrap();
        make(&layer.join("node_modules/a")).unwrap();
        write(&layer.join("node_modules/a/x.js"), b"one").unwrap();
        make(&making.work("cache")).unwrap();
        making.finish(store, record()).unwrap()
    }

    fn record() -> EnvironmentRecord {
        EnvironmentRecord {
            key: key(),
            manager: Manager::Npm,
            tool: "11".to_owned(),
            folder: "node_modules".to_owned(),
            packages: Vec::new(),
            created_ms: 1,
            files: 0,
            bytes: 0,
            contents: Vec::new(),
        }
    }

    #[test]
    fn finished_environment_is_found_again() {
        let Scene { _dir, store } = scene();
        assert!(store.find(&key()).unwrap().is_none());
        let made = make_one(&store);
        assert_eq!((made.record.files, made.record.bytes), (3, 3));
        assert!(made.layers()[0].join("node_modules/a/x.js").is_file());
        assert_eq!(store.list().unwrap(), std::slice::from_ref(&made.record));
        assert!(store.last_used_ms(&key()).is_some());
        let again = store.find(&key()).unwrap().unwrap();
        assert_eq!(again.record, made.record);
        assert!(!again.layers()[0].with_file_name("work-cache").exists());
    }

    #[test]
    fn corrupt_environment_is_not_used_and_removed() {
        let Scene { _dir, store } = scene();
        let made = make_one(&store);
        let file = made.layers()[0].join("node_modules/a/x.js");
        drop(made);
        write(&file, b"two").unwrap();
        assert!(store.find(&key()).unwrap().is_none());
        assert_eq!(store.list().unwrap(), []);
        make_one(&store);
        write(&store.directory.join(key()).join(RECORD), b"{").unwrap();
        assert!(store.find(&key()).unwrap().is_none());
    }

    #[test]
    fn environment_in_use_is_not_removed() {
        let Scene { _dir, store } = scene();
        let made = make_one(&store);
        assert!(matches!(store.remove(&key()), Err(EnvironmentError::InUse(_))));
        drop(made);
        assert_eq!(store.remove(&key()).unwrap().key, key());
        assert!(matches!(store.remove(&key()), Err(EnvironmentError::Unknown(_))));
        assert!(matches!(store.remove("../x"), Err(EnvironmentError::Unknown(_))));
    }

    #[test]
    fn interrupted_installation_is_swept_up() {
        let Scene { _dir, store } = scene();
        let left = store.directory.join(format!("{MAKING}{}-0", i32::MAX));
        make(&left).unwrap();
        let mine = store.begin().unwrap();
        store.sweep();
        assert!(!left.exists() && mine.directory.exists());
    }
}
