//! Copies of the entries that say where skills stand, kept when the ledger's retention deletes them.
//!
//! **Invariant.** A copy is believed only where the ledger's signed tree has its hash at its place: the tree stays when
//! entries go, so that a skill is not less trusted because its promotion is old.

use std::ops::Range;
use std::path::{Path, PathBuf};

use fluffy_base::Digest;
use fluffy_kernel::KeptNote;

use super::{ShelfError, files};

/// The largest copy: an entry with its content once more in base 64.
const MAX_BYTES: u64 = 16 << 20;

/// The copies of one segment's entries.
#[derive(Debug)]
pub(super) struct Copies {
    dir: PathBuf,
    segment: u32,
}

impl Copies {
    pub(super) fn of(dir: &Path, segment: u32) -> Self {
        Self { dir: dir.to_owned(), segment }
    }

    /// Keeps an entry, unless it is kept already.
    pub(super) fn put(&self, note: &KeptNote<'_>) -> Result<(), ShelfError> {
        let name = self.name(note.seq, &note.entry_hash);
        if self.dir.join(&name).symlink_metadata().is_ok() {
            return Ok(());
        }
        let copy = note.copy()?;
        let beside = format!(".{}.new", std::process::id());
        files::open_dir(&self.dir)
            .and_then(|dir| files::put_new(&dir, &beside, &name, &copy))
            .map_err(unusable)
    }

    /// The copy of an entry. Nothing is proved.
    pub(super) fn get(&self, seq: u64, hash: &Digest) -> Result<Option<Vec<u8>>, ShelfError> {
        files::read(&self.dir.join(self.name(seq, hash)), MAX_BYTES).map_err(unusable)
    }

    /// The entries of which there are copies, in order.
    pub(super) fn within(&self, range: Range<u64>) -> Result<Vec<(u64, Digest)>, ShelfError> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.dir).map_err(unusable)? {
            let name = entry.map_err(unusable)?.file_name();
            found.extend(name.to_str().and_then(|name| self.named(name)));
        }
        found.retain(|(seq, _)| range.contains(seq));
        found.sort_unstable();
        Ok(found)
    }

    fn name(&self, seq: u64, hash: &Digest) -> String {
        format!("{:04}-{seq:016}-{hash}", self.segment)
    }

    fn named(&self, name: &str) -> Option<(u64, Digest)> {
        let mut parts = name.splitn(3, '-').skip(1);
        let (seq, hash) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        (self.name(seq, &hash) == name).then_some((seq, hash))
    }
}

fn unusable(source: std::io::Error) -> ShelfError {
    ShelfError::File { what: "copies of entries", source }
}
