//! Sessions that nothing happened to for long: their files go into one file, and come back when they are needed.
//!
//! ```text
//! sessions/<id>/blobs/<hash>  ┐
//! sessions/<id>/merge.log     ┴─ session-archive/<id>.tar
//! ```
//!
//! Layers and scratch files are made anew from these, and are not kept. The ledger has everything else.
//!
//! **Invariant.** Nothing is lost: files go only when the archive is on disk and the ledger says so, and the archive only
//! when they are back.
//!
//! **Invariant.** An archive is taken for what the ledger says it is, by its hash, or not at all.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use fluffy_base::{Digest, Hasher, SessionId};
use fluffy_ledger::EventType;
use rustix::fs::{CWD, Mode, OFlags, openat, renameat, unlinkat};

use super::SessionError;
use super::overview::sessions;
use crate::files::{BlobError, Blobs, Stored};
use crate::{Journal as _, Kernel, Note};

/// What names the session that was archived, in the metadata of the entry that says so.
pub(crate) const ARCHIVED_SESSION: &str = "archived_session";
/// What names the hash of its archive there.
pub(crate) const ARCHIVED_FILE: &str = "archived_file";

const DAY_MS: u64 = 86_400_000;
/// A session to which nothing happened for so long is put away.
const IDLE_MS: u64 = 30 * DAY_MS;
/// The merge's log among a session's files.
const MERGE_LOG: &str = "merge.log";
/// The unit of a tar file.
const BLOCK: usize = 512;

/// Why a session's files cannot be put away, or not be had back.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The operating system refused.
    #[error("`{}` cannot be used", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is not what was archived.
    #[error("the archive `{}` was changed on disk", .0.display())]
    Changed(PathBuf),
    /// The ledger names it, and it is not there.
    #[error("the archive `{}` is not there any more", .0.display())]
    Missing(PathBuf),
    /// A content cannot be kept.
    #[error(transparent)]
    Blob(#[from] BlobError),
}

/// Puts away the sessions to which nothing happened for thirty days; looks for them once a day. What cannot be put away
/// stays where it is.
pub(crate) fn tidy(kernel: &Kernel, dir: &Path) {
    let now = kernel.clock.now_ms();
    if is_due(dir, now) {
        // It is tried again tomorrow, and nothing depends on it.
        let _tried = put_away(kernel, dir, now);
    }
}

/// Whether nobody has looked since yesterday. Whoever asks is the one who looks.
fn is_due(sessions: &Path, now: u64) -> bool {
    let path = archive_dir(sessions).join("looked");
    let last = File::open(&path).ok().and_then(|file| {
        let mut text = String::new();
        file.take(32).read_to_string(&mut text).ok()?;
        text.trim().parse::<u64>().ok()
    });
    // A time that is not yet counts for nothing.
    if last.is_some_and(|last| last <= now && now - last < DAY_MS) {
        return false;
    }
    let noted = make_dir(sessions)
        .and_then(|()| private(&path))
        .and_then(|mut file| file.write_all(now.to_string().as_bytes()));
    noted.is_ok()
}

fn put_away(kernel: &Kernel, dir: &Path, now: u64) -> Result<(), SessionError> {
    for session in sessions(kernel.ledger.layout(), usize::MAX)? {
        let Some(id) = SessionId::named(&session.id) else { continue };
        let own = id == *kernel.session_id();
        let is_whole = !matches!(session.standing, "damaged" | "cut off");
        let idle = now.saturating_sub(session.last_ms) > IDLE_MS;
        if own || !is_whole {
            continue;
        }
        if session.archived_ms.is_some() {
            // What an interruption left behind; without its archive it is all there is.
            if path_of(dir, id.as_str()).exists() {
                remove_files(&dir.join(id.as_str()))?;
            }
        } else if idle {
            let file = pack(dir, id.as_str())?;
            kernel.record(note(&id, file))?;
            remove_files(&dir.join(id.as_str()))?;
        }
    }
    Ok(())
}

fn note(id: &SessionId, file: Option<Digest>) -> Note {
    let mut metadata = vec![(ARCHIVED_SESSION, id.to_string())];
    metadata.extend(file.map(|file| (ARCHIVED_FILE, file.to_string())));
    let (event, intent) = (EventType::StateTransition, "a session is archived".to_owned());
    Note { event, intent, request_id: None, workflow_state: None, metadata, content: None }
}

/// Takes a session's files out of the archive whose hash the ledger has.
pub(crate) fn take_out(dir: &Path, id: &str, file: &Digest) -> Result<(), ArchiveError> {
    let path = path_of(dir, id);
    let mut archive = Archive::open(dir, id)?.ok_or_else(|| ArchiveError::Missing(path.clone()))?;
    if archive.digest()? != *file {
        return Err(ArchiveError::Changed(path));
    }
    let session = dir.join(id);
    let blobs = Blobs::open(&session.join("blobs"))?;
    for name in archive.names() {
        let bytes = archive.bytes(&name)?;
        match name.strip_prefix("blobs/") {
            Some(digest) if Digest::of(&bytes).to_string() != digest => {
                return Err(ArchiveError::Changed(path));
            }
            Some(_) => drop(blobs.write(&bytes, false)?),
            None => {
                let at = session.join(MERGE_LOG);
                let written = private(&at).and_then(|mut log| {
                    log.write_all(&bytes)?;
                    log.sync_all()
                });
                written.map_err(|source| ArchiveError::Io { path: at, source })?;
            }
        }
    }
    Ok(blobs.settle()?)
}

/// Removes an archive whose files are back, or that is given up; it is fine if there is none.
pub fn remove_archive(sessions: &Path, id: &SessionId) -> Result<(), ArchiveError> {
    let path = path_of(sessions, id.as_str());
    match unlinkat(CWD, &path, rustix::fs::AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(errno) => Err(ArchiveError::Io { path, source: errno.into() }),
    }
}

/// Puts a session's files into one; gives its hash, or nothing where there are none.
fn pack(sessions: &Path, id: &str) -> Result<Option<Digest>, ArchiveError> {
    let from = sessions.join(id);
    let to = path_of(sessions, id);
    let beside = to.with_extension("new");
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| ArchiveError::Io { path, source }
    };
    let names = members(&from).map_err(io(&from))?;
    if names.is_empty() {
        return Ok(None);
    }
    make_dir(sessions).map_err(io(&to))?;
    let mut out =
        Hashed { file: private(&beside).map_err(io(&beside))?, hasher: Hasher::default() };
    for name in names {
        let path = from.join(&name);
        append(&mut out, &name, &path).map_err(io(&path))?;
    }
    out.write_all(&[0; 2 * BLOCK]).map_err(io(&beside))?;
    out.file.sync_all().map_err(io(&beside))?;
    renameat(CWD, &beside, CWD, &to).map_err(|errno| io(&to)(errno.into()))?;
    let dir = archive_dir(sessions);
    File::open(&dir).and_then(|dir| dir.sync_all()).map_err(io(&dir))?;
    Ok(Some(out.hasher.finish()))
}

/// The files of a session that are kept, by their names in an archive.
fn members(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    match std::fs::read_dir(dir.join("blobs")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
        Ok(entries) => {
            for entry in entries {
                let entry = entry?;
                let name = format!("blobs/{}", entry.file_name().to_string_lossy());
                if is_member(&name) && entry.file_type()?.is_file() {
                    names.push(name);
                }
            }
        }
    }
    names.sort();
    let log = std::fs::symlink_metadata(dir.join(MERGE_LOG));
    if log.is_ok_and(|log| log.is_file()) {
        names.push(MERGE_LOG.to_owned());
    }
    Ok(names)
}

/// Whether a name is one that archives have.
fn is_member(name: &str) -> bool {
    name == MERGE_LOG
        || name.strip_prefix("blobs/").is_some_and(|digest| digest.parse::<Digest>().is_ok())
}

fn append(out: &mut Hashed, name: &str, path: &Path) -> io::Result<()> {
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    out.write_all(&header(name, bytes.len() as u64)?)?;
    out.write_all(&bytes)?;
    let rest = bytes.len().next_multiple_of(BLOCK) - bytes.len();
    out.write_all(&vec![0; rest])
}

/// The header of one file in the form of POSIX (ustar).
fn header(name: &str, size: u64) -> io::Result<[u8; BLOCK]> {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, text: &str| -> io::Result<()> {
        let slot = header.get_mut(at..at + text.len());
        slot.ok_or(io::ErrorKind::InvalidInput)?.copy_from_slice(text.as_bytes());
        Ok(())
    };
    if name.len() > 99 || size >= 1 << 33 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    put(0, name)?;
    put(100, "0000600\0")?;
    put(108, "0000000\0")?;
    put(116, "0000000\0")?;
    put(124, &format!("{size:011o}\0"))?;
    put(136, "00000000000\0")?;
    put(148, "        ")?;
    put(156, "0")?;
    put(257, "ustar\x0000")?;
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    let text = format!("{sum:06o}\0 ");
    header.get_mut(148..156).ok_or(io::ErrorKind::InvalidInput)?.copy_from_slice(text.as_bytes());
    Ok(header)
}

/// An archive that is open for reading.
#[derive(Debug)]
pub(crate) struct Archive {
    path: PathBuf,
    file: File,
    /// Where each member begins, and how many bytes it has.
    members: BTreeMap<String, (u64, u64)>,
}

impl Archive {
    /// A session's archive, if it has one. What does not have the form that is written here is not one.
    pub(crate) fn open(sessions: &Path, id: &str) -> Result<Option<Self>, ArchiveError> {
        let path = path_of(sessions, id);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = match openat(CWD, &path, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(ArchiveError::Io { path, source: errno.into() }),
        };
        let mut archive = Self { path, file, members: BTreeMap::new() };
        let listed = archive.list();
        if archive.read(listed)? {
            Ok(Some(archive))
        } else {
            Err(ArchiveError::Changed(archive.path))
        }
    }

    /// A content, checked against its name; nothing if it is not in there.
    pub(crate) fn content(&mut self, stored: &Stored) -> Result<Option<Vec<u8>>, ArchiveError> {
        let name = format!("blobs/{}", stored.digest);
        if !self.members.contains_key(&name) {
            return Ok(None);
        }
        let bytes = self.bytes(&name)?;
        if Digest::of(&bytes) == stored.digest {
            Ok(Some(bytes))
        } else {
            Err(ArchiveError::Changed(self.path.clone()))
        }
    }

    fn names(&self) -> Vec<String> {
        self.members.keys().cloned().collect()
    }

    fn bytes(&mut self, name: &str) -> Result<Vec<u8>, ArchiveError> {
        let (at, size) = self.members.get(name).copied().unwrap_or_default();
        let mut bytes = Vec::new();
        let read = self.file.seek(SeekFrom::Start(at)).and_then(|_| {
            // No more than the file has, whatever a header says.
            (&self.file).take(size).read_to_end(&mut bytes)
        });
        let read = self.read(read)?;
        if read as u64 == size { Ok(bytes) } else { Err(ArchiveError::Changed(self.path.clone())) }
    }

    fn digest(&mut self) -> Result<Digest, ArchiveError> {
        let (mut hasher, mut buffer) = (Hasher::default(), vec![0; 64 << 10]);
        let started = self.file.seek(SeekFrom::Start(0));
        self.read(started)?;
        loop {
            let read = self.file.read(&mut buffer);
            match self.read(read)? {
                0 => return Ok(hasher.finish()),
                read => hasher.update(buffer.get(..read).unwrap_or_default()),
            }
        }
    }

    /// Finds the members; false if this is no archive.
    fn list(&mut self) -> io::Result<bool> {
        let length = self.file.metadata()?.len();
        let mut at = 0;
        loop {
            let mut header = [0; BLOCK];
            self.file.seek(SeekFrom::Start(at))?;
            if let Err(error) = self.file.read_exact(&mut header) {
                let short = error.kind() == io::ErrorKind::UnexpectedEof;
                return if short { Ok(false) } else { Err(error) };
            }
            if header == [0; BLOCK] {
                return Ok(true);
            }
            let Some((name, size)) = member(&header) else { return Ok(false) };
            let start = at + BLOCK as u64;
            at = start.saturating_add(size.next_multiple_of(BLOCK as u64));
            if at > length || self.members.insert(name, (start, size)).is_some() {
                return Ok(false);
            }
        }
    }

    fn read<T>(&self, read: io::Result<T>) -> Result<T, ArchiveError> {
        read.map_err(|source| ArchiveError::Io { path: self.path.clone(), source })
    }
}

/// Name and size in a header, if it is one that is written here.
fn member(found: &[u8; BLOCK]) -> Option<(String, u64)> {
    let text = |at: usize, length: usize| {
        let field = found.get(at..at + length)?;
        let end = field.iter().position(|byte| *byte == 0)?;
        str::from_utf8(field.get(..end)?).ok()
    };
    let name = text(0, 100).filter(|name| is_member(name))?;
    let size = u64::from_str_radix(text(124, 12)?, 8).ok()?;
    (header(name, size).ok()? == *found).then(|| (name.to_owned(), size))
}

/// A file with the hash of what was written.
struct Hashed {
    file: File,
    hasher: Hasher,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn archive_dir(sessions: &Path) -> PathBuf {
    sessions.with_file_name("session-archive")
}

fn path_of(sessions: &Path, id: &str) -> PathBuf {
    archive_dir(sessions).join(format!("{id}.tar"))
}

fn make_dir(sessions: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(archive_dir(sessions))
}

/// A file of the user's own, emptied.
fn private(path: &Path) -> io::Result<File> {
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(File::from(openat(CWD, path, flags, Mode::from_raw_mode(0o600))?))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that removes the files of archived sessions"
)]
fn remove_files(dir: &Path) -> Result<(), ArchiveError> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(ArchiveError::Io { path: dir.to_owned(), source: error })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
