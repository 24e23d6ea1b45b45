//! Where the files of one project's ledger lie.
//!
//! `ledger/0001.db` is the first segment; a break opens the next number. Completed days of it are in
//! `archive/`, as they are recorded. The last signed checkpoint
//! is remembered in another directory, so that replacing the ledger does not replace the memory of it.

use std::path::{Path, PathBuf};

use crate::{LedgerError, files};

/// How many snapshots are kept.
pub(crate) const SNAPSHOTS: usize = 5;

/// Name of the directory of archives.
pub(crate) const ARCHIVE: &str = "archive";

/// Name of the mark that rows are leaving the database.
pub(crate) const TRIMMING: &str = "trimming";

/// Where the files of one project's ledger lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    dir: PathBuf,
    remembered: PathBuf,
}

impl Layout {
    /// The ledger in `dir`, with its checkpoint remembered in the file `remembered`.
    pub fn new(dir: impl Into<PathBuf>, remembered: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), remembered: remembered.into() }
    }

    /// The directory of everything but the remembered checkpoint.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The file with the last signed checkpoint.
    pub fn remembered(&self) -> &Path {
        &self.remembered
    }

    /// The database of a segment.
    pub fn segment(&self, number: u32) -> PathBuf {
        self.dir.join("ledger").join(format!("{number:04}.db"))
    }

    /// The segments that are there, oldest first.
    pub fn segments(&self) -> Result<Vec<u32>, LedgerError> {
        let names = files::names(&self.dir.join("ledger"))?;
        let number = |name: &String| -> Option<u32> {
            let number = name.strip_suffix(".db")?.parse().ok()?;
            (format!("{number:04}.db") == *name && number > 0).then_some(number)
        };
        let mut numbers: Vec<u32> = names.iter().filter_map(number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The segment that is written to, if there is any.
    pub fn active(&self) -> Result<Option<u32>, LedgerError> {
        Ok(self.segments()?.pop())
    }

    pub(crate) fn make_dirs(&self) -> Result<(), LedgerError> {
        for name in ["ledger", "damaged", "snapshots", ARCHIVE] {
            files::make_dir(&self.dir.join(name))?;
        }
        self.remembered.parent().map_or(Ok(()), files::make_dir)
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.dir.join("lock")
    }

    /// There while the ledger is closed in order.
    pub(crate) fn clean_mark(&self) -> PathBuf {
        self.dir.join("clean")
    }

    /// There while damage is being set aside.
    pub(crate) fn unfinished(&self) -> PathBuf {
        self.dir.join("unfinished")
    }

    /// There while the signing key is being replaced.
    pub(crate) fn rotation(&self) -> PathBuf {
        self.dir.join("rotation")
    }

    /// Where the archives lie.
    pub fn archive(&self) -> PathBuf {
        self.dir.join(ARCHIVE)
    }

    /// There while rows leave the database: until the file is compact again, it has free pages.
    pub(crate) fn trimming(&self) -> PathBuf {
        self.dir.join(TRIMMING)
    }

    /// How full the storage was when that was last recorded.
    pub(crate) fn storage_mark(&self) -> PathBuf {
        self.dir.join("storage")
    }

    /// The directories whose files count as the ledger's storage.
    pub(crate) fn stores(&self) -> [PathBuf; 4] {
        ["ledger", "damaged", "snapshots", ARCHIVE].map(|name| self.dir.join(name))
    }

    /// The damaged databases of a segment, the first first.
    pub(crate) fn damaged_of(&self, number: u32) -> Result<Vec<PathBuf>, LedgerError> {
        let dir = self.dir.join("damaged");
        let prefix = format!("{number:04}-");
        let mut names = files::names(&dir)?;
        names.retain(|name| name.starts_with(&prefix) && name.ends_with(".db"));
        names.sort_by_key(|name| (name.len(), name.clone()));
        Ok(names.into_iter().map(|name| dir.join(name)).collect())
    }

    /// A name in `damaged/` that is not taken.
    pub(crate) fn damaged(&self, number: u32) -> Result<PathBuf, LedgerError> {
        let dir = self.dir.join("damaged");
        let taken = files::names(&dir)?;
        let free = (1_u32..).map(|n| format!("{number:04}-{n}.db")).find(|n| !taken.contains(n));
        Ok(dir.join(free.unwrap_or_default()))
    }

    /// The snapshots of a segment, newest first.
    pub(crate) fn snapshots(&self, number: u32) -> Result<Vec<PathBuf>, LedgerError> {
        let dir = self.dir.join("snapshots");
        let prefix = format!("{number:04}-");
        let mut names = files::names(&dir)?;
        names.retain(|name| name.starts_with(&prefix) && name.ends_with(".db"));
        Ok(names.into_iter().rev().map(|name| dir.join(name)).collect())
    }

    pub(crate) fn snapshot(&self, number: u32, size: u64) -> PathBuf {
        self.dir.join("snapshots").join(format!("{number:04}-{size:016}.db"))
    }

    /// Removes all but the newest snapshots.
    pub(crate) fn prune_snapshots(&self, kept: usize) -> Result<(), LedgerError> {
        let dir = self.dir.join("snapshots");
        let names = files::names(&dir)?;
        let (done, unfinished): (Vec<_>, Vec<_>) =
            names.iter().partition(|name| name.ends_with(".db"));
        let surplus = done.len().saturating_sub(kept);
        let old = done.into_iter().take(surplus);
        old.chain(unfinished).try_for_each(|name| files::remove(&dir.join(name)))
    }
}
