//! Verifying archives: every byte against the digest that was recorded, every line against the tree.
//!
//! What retention deleted is told and is no finding; what is missing without a record is one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fluffy_base::Digest;

use crate::archive::{self, ArchiveFile, ArchiveName, Reader};
use crate::retention::{BYTES_HASH, FILE, LAST};
use crate::trim::{self, Leaves, Recorded, Trim};
use crate::verify::MAX_FINDINGS;
use crate::{DetailView, EventType, Layout, LedgerError, Located, Problem, store};

/// What verifying the archives of a segment found.
#[derive(Debug, Default)]
pub struct ArchiveCheck {
    /// The archives that are there, oldest first.
    pub held: Vec<ArchiveName>,
    /// How many of the segment's entries are in archives alone.
    pub left: u64,
    /// What retention deleted.
    pub pruned: Option<Pruned>,
    /// Everything that is wrong.
    pub findings: Vec<Located>,
}

/// Entries that retention deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pruned {
    /// Number of the first.
    pub first: u64,
    /// Number of the last.
    pub last: u64,
    /// The entry that recorded the last deletion.
    pub by: u64,
}

/// What the entries of a segment say about its archives.
#[derive(Debug, Clone, Default)]
pub(crate) struct Books {
    /// The digest of every archive that was recorded.
    archived: BTreeMap<ArchiveName, Option<Digest>>,
    /// The last entry that was deleted, and the entry that says so.
    deleted: Option<(u64, u64)>,
}

impl Books {
    /// Remembers what one entry says.
    pub(crate) fn note(&mut self, event: EventType, detail: &DetailView<'_>) {
        let Some(record) = Recorded::of(event, detail) else { return };
        let get = |key: &str| record.metadata.get(key);
        match event {
            EventType::AuditArchived => {
                let name = get(FILE).and_then(|file| file.parse().ok());
                let digest = get(BYTES_HASH).and_then(|digest| digest.parse().ok());
                self.archived.extend(name.map(|name| (name, digest)));
            }
            EventType::AuditArchiveDeleted => {
                self.deleted = self.deleted.max(deletion(&record));
            }
            _ => {}
        }
    }
}

/// The last entry that a record says is deleted, and the record's number.
fn deletion(record: &Recorded) -> Option<(u64, u64)> {
    Some((record.metadata.get(LAST)?.parse().ok()?, record.seq))
}

/// Verifies the archives of a segment; without the books, of a ledger whose entries could not be
/// followed, each by itself.
pub(crate) fn verify(
    layout: &Layout,
    segment: u32,
    books: Option<&Books>,
) -> Result<ArchiveCheck, LedgerError> {
    let mut files = archive::list(&layout.archive(), segment)?;
    let connection = store::open_reader(&layout.segment(segment)).ok();
    // Read after the list: a kernel may have deleted something since the entries were followed.
    let newest = |connection| trim::newest(connection, EventType::AuditArchiveDeleted, deletion);
    let newest = connection.as_ref().and_then(|connection| newest(connection).ok().flatten());
    let books = books.map(|books| Books { deleted: books.deleted.max(newest), ..books.clone() });
    let books = books.as_ref();
    let mut check = ArchiveCheck::default();
    if let Some(books) = books {
        check.findings.extend(missing(layout, books, &mut files));
    }
    check.held = files.iter().map(|file| file.name).collect();
    check.findings.extend(contents(&layout.segment(segment), &files, books)?);
    let left = connection.and_then(|connection| Trim::of(&connection).ok().flatten());
    let Some(trim) = left else { return Ok(check) };
    check.left = trim.to - 1;
    let mut next = 1;
    let starts = check.held.iter().map(|name| (name.first, name.last + 1));
    for (first, after) in starts.chain([(trim.to, trim.to)]) {
        let first = first.min(trim.to);
        if first > next {
            match books.and_then(|books| books.deleted).filter(|(last, _)| first - 1 <= *last) {
                Some((_, by)) => check.pruned = Some(Pruned { first: 1, last: first - 1, by }),
                None if books.is_none() => {}
                None => check
                    .findings
                    .push(Located::at(next, Problem::ArchivesMissing { last: first - 1 })),
            }
        }
        next = next.max(after);
    }
    check.findings.truncate(MAX_FINDINGS);
    Ok(check)
}

/// Recorded archives that are not there. One that was recorded a moment before its process died has
/// not got its name yet: it is verified all the same.
fn missing(layout: &Layout, books: &Books, files: &mut Vec<ArchiveFile>) -> Vec<Located> {
    let deleted = books.deleted.map_or(0, |(last, _)| last);
    let mut findings = Vec::new();
    for name in books.archived.keys().filter(|name| name.last > deleted) {
        if files.iter().any(|file| file.name == *name) {
            continue;
        }
        let path = layout.archive().join(crate::retention::unfinished(name));
        if path.exists() {
            files.push(ArchiveFile { name: *name, path });
        } else {
            let problem = Problem::ArchiveMissing(name.to_string());
            findings.push(Located::at(name.first, problem));
        }
    }
    files.sort_by_key(|file| file.name);
    findings
}

/// Checks the files, one after the other on each processor.
fn contents(
    database: &Path,
    files: &[ArchiveFile],
    books: Option<&Books>,
) -> Result<Vec<Located>, LedgerError> {
    let workers = thread::available_parallelism().map_or(1, usize::from).min(files.len());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let recorded =
                books.and_then(|books| books.archived.get(&file.name).copied().flatten());
            match check_file(database, file, recorded) {
                Ok(()) => {}
                Err(LedgerError::Archive { file: name, line, problem }) => {
                    let problem = Problem::Archive { file: name, line, problem };
                    found.push(Located { seq: entry_at(file, line), problem });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    };
    let mut findings = Vec::new();
    thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        running.into_iter().try_for_each(|worker| {
            let stopped = |_| LedgerError::Stopped("a verification thread panicked".to_owned());
            findings.extend(worker.join().map_err(stopped)??);
            Ok::<_, LedgerError>(())
        })
    })?;
    findings.sort_by_key(|finding| finding.seq);
    Ok(findings)
}

/// The entry that should stand in a line, below the header.
fn entry_at(file: &ArchiveFile, line: u64) -> Option<u64> {
    line.checked_sub(2).map(|entries| file.name.first + entries).filter(|s| *s <= file.name.last)
}

fn check_file(
    database: &Path,
    file: &ArchiveFile,
    recorded: Option<Digest>,
) -> Result<(), LedgerError> {
    let connection = store::open_reader(database)?;
    let mut leaves = Leaves::new(&connection);
    let mut agrees = |seq, hash: &Digest| {
        // What a break cut off is in no tree any more; its lines are held by their own hashes.
        leaves
            .agrees(seq, hash)
            .map(|agrees| agrees.unwrap_or(true))
            .map_err(|error| LedgerError::Damaged(error.to_string()))
    };
    let mut reader = Reader::open(file)?;
    let mut prev = reader.header.prev_hash;
    if !agrees(file.name.first - 1, &prev)? {
        return Err(reader.wrong(&Problem::NotInTree));
    }
    while let Some(line) = reader.next()? {
        if line.prev_hash != prev {
            return Err(reader.wrong(&Problem::PrevHash));
        }
        if !agrees(line.ledger_seq, &line.entry_hash)? {
            return Err(reader.wrong(&Problem::NotInTree));
        }
        prev = line.entry_hash;
    }
    let line = reader.line();
    if recorded.is_some_and(|recorded| recorded != reader.digest()) {
        let text = "its bytes are not those that were recorded".to_owned();
        let file = file.name.to_string();
        return Err(LedgerError::Archive { file, line, problem: text });
    }
    Ok(())
}
