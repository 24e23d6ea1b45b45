//! Archives and database as one: every entry that is held, wherever it is.
//!
//! **Invariant.** A line of an archive is believed only where the tree has its hash at its place.

use std::ops::Range;
use std::path::{Path, PathBuf};

use fluffy_base::Digest;
use rusqlite::Connection;

use crate::archive::{self, ArchiveFile, Line, Reader};
use crate::store::{self, ENTRY_COLUMNS, StoredEntry, key};
use crate::trim::{Leaves, Trim};
use crate::{LedgerError, Problem};

/// A segment's database with the archives beside it.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) connection: Connection,
    trim: Option<Trim>,
    archives: Vec<ArchiveFile>,
}

/// Where neighbouring entries are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// In the database.
    Rows(Range<u64>),
    /// In an archive.
    Archived(ArchiveFile),
    /// Nowhere any more.
    Gone(Range<u64>),
}

impl Held {
    /// Opens a database of a ledger and looks for the archives that belong to it.
    pub(crate) fn open(path: &Path) -> Result<Self, LedgerError> {
        let connection = store::open_reader(path)?;
        // One moment for what is asked of the database, whatever leaves it meanwhile.
        connection.execute_batch("BEGIN").map_err(LedgerError::database("reading"))?;
        let trim = Trim::of(&connection)?;
        let archives = match (&trim, beside(path)) {
            (Some(_), Some((dir, segment))) => archive::list(&dir, segment)?,
            _ => Vec::new(),
        };
        Ok(Self { connection, trim, archives })
    }

    /// Where the first `size` entries are, in order.
    pub(crate) fn parts(&self, size: u64) -> Vec<Part> {
        let Some(trim) = &self.trim else { return vec![Part::Rows(0..size)] };
        let mut parts = vec![Part::Rows(0..1)];
        let mut next = 1;
        for file in self.archives.iter().filter(|file| file.name.last < trim.to) {
            if file.name.first < next {
                continue;
            }
            if file.name.first > next {
                parts.push(Part::Gone(next..file.name.first));
            }
            parts.push(Part::Archived(file.clone()));
            next = file.name.last + 1;
        }
        if next < trim.to {
            parts.push(Part::Gone(next..trim.to));
        }
        parts.push(Part::Rows(trim.to..size));
        parts
    }

    /// Calls `f` for the first `size` entries in order; what is gone is an error.
    pub(crate) fn each(
        &self,
        size: u64,
        mut f: impl FnMut(&StoredEntry<'_>) -> Result<(), LedgerError>,
    ) -> Result<(), LedgerError> {
        for part in self.parts(size) {
            match part {
                Part::Rows(range) => self.rows(range, &mut f)?,
                Part::Archived(file) => {
                    self.lines(&file, &mut |line| f(&line.stored()).map(|()| true))?;
                }
                Part::Gone(range) => {
                    return Err(LedgerError::Gone { first: range.start, last: range.end - 1 });
                }
            }
        }
        Ok(())
    }

    /// Calls `f` for rows of the database in order.
    pub(crate) fn rows(
        &self,
        range: Range<u64>,
        f: &mut dyn FnMut(&StoredEntry<'_>) -> Result<(), LedgerError>,
    ) -> Result<(), LedgerError> {
        let reading = LedgerError::database;
        let sql = format!(
            "SELECT {ENTRY_COLUMNS} FROM entries WHERE seq >= ?1 AND seq < ?2 ORDER BY seq"
        );
        let mut statement = self.connection.prepare_cached(&sql).map_err(reading("reading"))?;
        let mut rows =
            statement.query([key(range.start), key(range.end)]).map_err(reading("reading"))?;
        while let Some(row) = rows.next().map_err(reading("reading"))? {
            f(&StoredEntry::from_row(row)?)?;
        }
        Ok(())
    }

    /// Calls `f` for the lines of an archive in order, until it says stop; tells whether it did not.
    pub(crate) fn lines(
        &self,
        file: &ArchiveFile,
        f: &mut dyn FnMut(&Line) -> Result<bool, LedgerError>,
    ) -> Result<bool, LedgerError> {
        let mut reader = Reader::open(file)?;
        let mut leaves = Leaves::new(&self.connection);
        while let Some(line) = reader.next()? {
            anchored(&mut leaves, &line).map_err(|problem| reader.wrong(&problem))?;
            if !f(&line)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The same, the last first.
    pub(crate) fn lines_backwards(
        &self,
        file: &ArchiveFile,
        f: &mut dyn FnMut(&Line) -> Result<bool, LedgerError>,
    ) -> Result<bool, LedgerError> {
        let mut reader = Reader::open(file)?;
        let mut leaves = Leaves::new(&self.connection);
        for start in reader.starts()?.into_iter().rev() {
            let line = reader.at(start)?;
            anchored(&mut leaves, &line).map_err(|problem| reader.wrong(&problem))?;
            if !f(&line)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The archived entry of this number, if it left the database and its archive is there.
    pub(crate) fn archived(&self, seq: u64) -> Result<Option<Line>, LedgerError> {
        if !self.trim.as_ref().is_some_and(|trim| trim.covers(seq..seq + 1)) {
            return Ok(None);
        }
        let holds = |file: &&ArchiveFile| (file.name.first..=file.name.last).contains(&seq);
        let Some(file) = self.archives.iter().find(holds) else {
            return Err(LedgerError::Gone { first: seq, last: seq });
        };
        let found = Reader::open(file)?.find(seq)?;
        let missing = || LedgerError::Archive {
            file: file.name.to_string(),
            line: 0,
            problem: format!("entry {seq} is not in it"),
        };
        let line = found.ok_or_else(missing)?;
        let problem = anchored(&mut Leaves::new(&self.connection), &line).err();
        problem.map_or(Ok(Some(line)), |problem| {
            Err(LedgerError::Archive {
                file: file.name.to_string(),
                line: 0,
                problem: format!("entry {seq}: {problem}"),
            })
        })
    }

    /// Number of the archived entry with this hash.
    pub(crate) fn find(&self, hash: &Digest) -> Result<Option<u64>, LedgerError> {
        for part in self.parts(u64::MAX) {
            let Part::Archived(file) = part else { continue };
            let mut found = None;
            self.lines(&file, &mut |line| {
                found = (line.entry_hash == *hash).then_some(line.ledger_seq);
                Ok(found.is_none())
            })?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

/// A line whose hash the tree has at its place.
fn anchored(leaves: &mut Leaves<'_>, line: &Line) -> Result<(), Problem> {
    match leaves.agrees(line.ledger_seq, &line.entry_hash) {
        Ok(Some(true)) => Ok(()),
        Ok(Some(false) | None) => Err(Problem::NotInTree),
        Err(error) => Err(Problem::Database(error.to_string())),
    }
}

/// Where the archives of a database lie, and its segment: the directories of a ledger are neighbours,
/// and every database in them is named by its segment.
pub(crate) fn beside(path: &Path) -> Option<(PathBuf, u32)> {
    let number = path.file_stem()?.to_str()?.split('-').next()?.parse().ok()?;
    Some((path.parent()?.parent()?.join(crate::layout::ARCHIVE), number))
}
