//! How much room the ledger takes, against how much it may take.

use crate::{Layout, LedgerError, RetentionOptions, files};

/// From this share on, in percent, the storage fills up.
const WARNING: u64 = 80;
/// From this share on it is nearly full.
const CRITICAL: u64 = 95;

/// How much room the ledger takes: databases, archives, snapshots and what was set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Storage {
    /// As much as it takes.
    pub bytes: u64,
    /// As much as it may take.
    pub max_bytes: u64,
}

/// How full the storage is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum StorageLevel {
    /// Below 80 %.
    #[default]
    Fine,
    /// From 80 % on.
    Warning,
    /// From 95 % on.
    Critical,
}

impl StorageLevel {
    /// Its name, as remembered between two starts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }

    /// The level with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Fine, Self::Warning, Self::Critical].into_iter().find(|level| level.name() == name)
    }
}

impl Storage {
    /// Measures the files of a ledger.
    pub fn of(layout: &Layout, options: &RetentionOptions) -> Result<Self, LedgerError> {
        let mut bytes = 0_u64;
        for dir in layout.stores() {
            for name in files::names(&dir)? {
                // One that is gone by now takes no room.
                let length = std::fs::symlink_metadata(dir.join(name)).map_or(0, |file| file.len());
                bytes = bytes.saturating_add(length);
            }
        }
        Ok(Self { bytes, max_bytes: options.max_bytes })
    }

    /// How full it is.
    pub fn level(&self) -> StorageLevel {
        match self.percent() {
            percent if percent >= CRITICAL => StorageLevel::Critical,
            percent if percent >= WARNING => StorageLevel::Warning,
            _ => StorageLevel::Fine,
        }
    }

    /// The share that is taken, in percent.
    pub fn percent(&self) -> u64 {
        let share = u128::from(self.bytes) * 100 / u128::from(self.max_bytes.max(1));
        u64::try_from(share).unwrap_or(u64::MAX)
    }

    /// Whether it takes more than it may.
    pub fn is_over(&self) -> bool {
        self.bytes > self.max_bytes
    }
}
