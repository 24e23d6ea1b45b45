//! One archive: the entries of a completed day as lines of JSON, each of which can be checked alone.
//!
//! The first line says what the file holds. Every other line is an entry as a bundle has it, with its
//! detail and its kept input: fields and detail give the hash that the line carries, and that hash is
//! a leaf of the segment's tree, whose tiles stay in the database.
//!
//! **Invariant.** No line is handed on that does not give its own hash.

use std::fmt;
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fluffy_base::{Digest, Hasher};
use serde::{Deserialize, Serialize};

use crate::encode::{Form, string};
use crate::store::StoredEntry;
use crate::verify::input_problem;
use crate::{AuditEntry, Blob, EntryView, LedgerError, Problem, export, files};

/// Version of the form, in every header.
const VERSION: u64 = 1;
/// No line is longer: an entry's 64 MiB, each byte escaped to six.
const LINE_LIMIT: u64 = 512 << 20;
/// A header is a few hundred bytes.
const HEADER_LIMIT: u64 = 4096;

/// What an archive holds, as its file is named: `0001-0000000000000001-0000000000000999.jsonl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArchiveName {
    /// The segment that the entries are of.
    pub segment: u32,
    /// Number of the first entry.
    pub first: u64,
    /// Number of the last entry.
    pub last: u64,
}

impl fmt::Display for ArchiveName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:016}-{:016}.jsonl", self.segment, self.first, self.last)
    }
}

impl FromStr for ArchiveName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.strip_suffix(".jsonl").ok_or(())?.splitn(3, '-');
        let mut number = || parts.next()?.parse::<u64>().ok();
        let parse = || -> Option<Self> {
            let segment = u32::try_from(number()?).ok()?;
            Some(Self { segment, first: number()?, last: number()? })
        };
        let named = { parse }().ok_or(())?;
        let sound = named.to_string() == text && 0 < named.first && named.first <= named.last;
        if sound { Ok(named) } else { Err(()) }
    }
}

/// An archive that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArchiveFile {
    pub(crate) name: ArchiveName,
    pub(crate) path: PathBuf,
}

/// The archives of a segment in a directory, oldest first.
pub(crate) fn list(dir: &Path, segment: u32) -> Result<Vec<ArchiveFile>, LedgerError> {
    let names = files::names(dir)?;
    let file = |text: &String| {
        let name: ArchiveName = text.parse().ok()?;
        (name.segment == segment).then(|| ArchiveFile { name, path: dir.join(text) })
    };
    let mut found: Vec<_> = names.iter().filter_map(file).collect();
    found.sort_by_key(|file| file.name);
    Ok(found)
}

/// The first line of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    /// Version of the form.
    pub(crate) archive: u64,
    /// The name under which the segment's checkpoints are signed.
    pub(crate) origin: String,
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// The earliest time of an entry.
    pub(crate) first_ms: u64,
    /// The latest time of an entry.
    pub(crate) last_ms: u64,
    /// Hash of the entry before the first.
    pub(crate) prev_hash: Digest,
    /// How many entries the tree had when this was written.
    pub(crate) tree_size: u64,
}

impl Header {
    pub(crate) fn version() -> u64 {
        VERSION
    }

    /// Reads the first line of an archive.
    pub(crate) fn read(file: &ArchiveFile) -> Result<Self, LedgerError> {
        Reader::open(file).map(|reader| reader.header)
    }
}

/// One line after the first.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    pub(crate) ledger_seq: u64,
    pub(crate) prev_hash: Digest,
    pub(crate) entry_hash: Digest,
    actor: String,
    decision: String,
    error: Option<String>,
    evidence_hash: Digest,
    intent: String,
    params_hash: Option<Digest>,
    #[serde(rename = "permit_denial_reasons")]
    _permit_denial_reasons: (),
    #[serde(rename = "permit_digest")]
    _permit_digest: (),
    #[serde(rename = "permit_issuer")]
    _permit_issuer: (),
    #[serde(rename = "permit_max_executions")]
    _permit_max_executions: (),
    #[serde(rename = "permit_nonce")]
    _permit_nonce: (),
    #[serde(rename = "permit_subject")]
    _permit_subject: (),
    #[serde(rename = "permit_verification")]
    _permit_verification: (),
    #[serde(rename = "proposal_hash")]
    _proposal_hash: (),
    request_id: String,
    state_from: String,
    state_to: String,
    tool_name: Option<String>,
    ts_ms: u64,
    detail: String,
    input: Option<String>,
    #[serde(skip)]
    salted: Option<Vec<u8>>,
}

impl Line {
    pub(crate) fn parse(text: &[u8], scratch: &mut Vec<u8>) -> Result<Self, Problem> {
        let mut line: Self =
            serde_json::from_slice(text).map_err(|error| Problem::Format(error.to_string()))?;
        if let Some(input) = line.input.take() {
            let bytes = STANDARD.decode(input).map_err(|e| Problem::Format(e.to_string()))?;
            line.salted = Some(bytes);
        }
        if Digest::of(line.detail.as_bytes()) != line.evidence_hash {
            return Err(Problem::DetailHash);
        }
        let (stored, computed) = (line.entry_hash, line.view().hash(&line.prev_hash, scratch));
        if stored != computed {
            return Err(Problem::EntryHash { stored, computed });
        }
        input_problem(line.detail.as_bytes(), line.salted.as_deref()).map_or(Ok(line), Err)
    }

    fn view(&self) -> EntryView<'_> {
        EntryView {
            request_id: &self.request_id,
            actor: &self.actor,
            intent: &self.intent,
            decision: &self.decision,
            state_from: &self.state_from,
            state_to: &self.state_to,
            ts_ms: self.ts_ms,
            tool_name: self.tool_name.as_deref(),
            params_hash: self.params_hash,
            evidence_hash: Some(self.evidence_hash),
            error: self.error.as_deref(),
        }
    }

    /// The entry, as a row of the database would give it.
    pub(crate) fn stored(&self) -> StoredEntry<'_> {
        StoredEntry {
            seq: self.ledger_seq,
            entry_hash: self.entry_hash,
            columns: self.view(),
            detail: self.detail.as_bytes(),
        }
    }

    /// The kept input with its salt.
    pub(crate) fn salted(&self) -> Option<&[u8]> {
        self.salted.as_deref()
    }

    /// The kept input.
    pub(crate) fn into_input(self) -> Option<Blob> {
        self.salted.map(Blob::from_salted)
    }
}

/// Reads an archive line by line, with one line in memory.
#[derive(Debug)]
pub(crate) struct Reader {
    path: PathBuf,
    file: BufReader<File>,
    pub(crate) header: Header,
    /// Over all bytes that were read in order.
    hasher: Hasher,
    /// Where the first entry's line begins.
    body: u64,
    line: u64,
    next: u64,
    text: Vec<u8>,
    scratch: Vec<u8>,
}

impl Reader {
    /// Opens an archive and reads its header, which must say what the name says.
    pub(crate) fn open(archive: &ArchiveFile) -> Result<Self, LedgerError> {
        let path = archive.path.clone();
        let file = files::open_regular(&path).map_err(LedgerError::file("read", &path))?;
        let mut file = BufReader::with_capacity(64 << 10, file);
        let mut text = Vec::new();
        file.by_ref()
            .take(HEADER_LIMIT)
            .read_until(b'\n', &mut text)
            .map_err(LedgerError::file("read", &path))?;
        let bad = |text: String| wrong(&path, 1, &Problem::Format(text));
        let header: Header =
            serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))?;
        let ArchiveName { first, last, .. } = archive.name;
        if header.archive != VERSION || (header.first, header.last) != (first, last) {
            return Err(bad("the header is of another archive".to_owned()));
        }
        let mut hasher = Hasher::default();
        hasher.update(&text);
        let body = text.len() as u64;
        Ok(Self {
            path,
            file,
            next: first,
            header,
            hasher,
            body,
            line: 1,
            text,
            scratch: Vec::new(),
        })
    }

    /// The next entry; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Line>, LedgerError> {
        let found = self.read_line()?;
        let ended = self.next > self.header.last;
        match (found, ended) {
            (false, true) => Ok(None),
            (false, false) => Err(self.wrong(&Problem::Format("the archive was cut off".into()))),
            (true, true) => {
                Err(self.wrong(&Problem::Format("it has more lines than entries".into())))
            }
            (true, false) => {
                let line =
                    Line::parse(&self.text, &mut self.scratch).map_err(|p| self.wrong(&p))?;
                if line.ledger_seq != self.next {
                    return Err(self.wrong(&Problem::PrevHash));
                }
                self.next += 1;
                Ok(Some(line))
            }
        }
    }

    /// The line that was read last, counted from 1.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// What is wrong at that line.
    pub(crate) fn wrong(&self, problem: &Problem) -> LedgerError {
        wrong(&self.path, self.line, problem)
    }

    /// The digest of the file, once it was read to its end.
    pub(crate) fn digest(self) -> Digest {
        self.hasher.finish()
    }

    fn read_line(&mut self) -> Result<bool, LedgerError> {
        self.text.clear();
        let read = self.file.by_ref().take(LINE_LIMIT).read_until(b'\n', &mut self.text);
        let read = read.map_err(LedgerError::file("read", &self.path))?;
        self.hasher.update(&self.text);
        self.line += u64::from(read > 0);
        Ok(read > 0)
    }

    /// The entry of this number, found by halving: lines are in the order of their numbers.
    pub(crate) fn find(mut self, seq: u64) -> Result<Option<Line>, LedgerError> {
        let reading = || LedgerError::file("read", self.path.clone());
        let end = self.file.get_ref().metadata().map_err(reading())?.len();
        // Line starts in `low..high` may be the one; `low` is one itself.
        let (mut low, mut high) = (self.body, end);
        while high - low > 256 << 10 {
            let middle = low + (high - low) / 2;
            self.seek(middle)?;
            let skipped = self.skip_line()?;
            match self.number_here()? {
                Some(number) if number <= seq && middle + skipped < high => low = middle + skipped,
                _ => high = middle,
            }
        }
        self.seek(low)?;
        loop {
            if !self.read_line()? {
                return Ok(None);
            }
            if number_of(&self.text) == Some(seq) {
                let line = Line::parse(&self.text, &mut self.scratch);
                return line.map(Some).map_err(|problem| self.wrong(&problem));
            }
            if number_of(&self.text).is_none_or(|number| number > seq) {
                return Ok(None);
            }
        }
    }

    /// Where every line after the header begins, for reading backwards.
    pub(crate) fn starts(&mut self) -> Result<Vec<u64>, LedgerError> {
        let (mut starts, mut at) = (Vec::new(), self.body);
        self.seek(at)?;
        loop {
            match self.skip_line()? {
                0 => return Ok(starts),
                length => {
                    starts.push(at);
                    at += length;
                }
            }
        }
    }

    /// The entry whose line begins here.
    pub(crate) fn at(&mut self, start: u64) -> Result<Line, LedgerError> {
        self.seek(start)?;
        self.read_line()?;
        Line::parse(&self.text, &mut self.scratch).map_err(|problem| self.wrong(&problem))
    }

    fn seek(&mut self, to: u64) -> Result<(), LedgerError> {
        let moved = self.file.seek(SeekFrom::Start(to));
        moved.map(drop).map_err(LedgerError::file("read", &self.path))
    }

    /// Reads over the rest of a line; gives its length.
    fn skip_line(&mut self) -> Result<u64, LedgerError> {
        let skipped = self.file.skip_until(b'\n');
        skipped.map(|n| n as u64).map_err(LedgerError::file("read", &self.path))
    }

    fn number_here(&mut self) -> Result<Option<u64>, LedgerError> {
        let mut start = Vec::new();
        let read = self.file.by_ref().take(64).read_to_end(&mut start);
        read.map_err(LedgerError::file("read", &self.path))?;
        Ok(number_of(&start))
    }
}

/// The number at the beginning of a line.
fn number_of(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(b"{\"ledger_seq\":")?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(digits.get(..end)?).ok()?.parse().ok()
}

fn wrong(path: &Path, line: u64, problem: &Problem) -> LedgerError {
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    LedgerError::Archive { file, line, problem: problem.to_string() }
}

/// Writes an archive; the file gets its name only once it is recorded.
pub(crate) struct Writer {
    path: PathBuf,
    file: BufWriter<File>,
    hasher: Hasher,
    bytes: u64,
    text: Vec<u8>,
}

impl Writer {
    /// Begins the file `path` with its header.
    pub(crate) fn create(path: PathBuf, header: &Header) -> Result<Self, LedgerError> {
        let file = files::private(&path).map_err(LedgerError::file("write", &path))?;
        let text =
            serde_json::to_vec(header).map_err(|error| LedgerError::Damaged(error.to_string()))?;
        let file = BufWriter::with_capacity(64 << 10, file);
        let mut writer = Self { path, file, hasher: Hasher::default(), bytes: 0, text };
        writer.end_line()?;
        Ok(writer)
    }

    /// Writes one entry with its detail and its salted input.
    pub(crate) fn entry(
        &mut self,
        entry: &AuditEntry,
        detail: &[u8],
        salted: Option<&[u8]>,
    ) -> Result<(), LedgerError> {
        write_line(&mut self.text, entry, detail, salted)?;
        self.end_line()
    }

    /// Makes the file durable; gives its digest and its length.
    pub(crate) fn finish(mut self) -> Result<(Digest, u64), LedgerError> {
        let written = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        written.map_err(LedgerError::file("write", &self.path))?;
        Ok((self.hasher.finish(), self.bytes))
    }

    fn end_line(&mut self) -> Result<(), LedgerError> {
        self.text.push(b'\n');
        self.hasher.update(&self.text);
        self.bytes += self.text.len() as u64;
        self.file.write_all(&self.text).map_err(LedgerError::file("write", &self.path))?;
        self.text.clear();
        Ok(())
    }
}

/// Writes the line of an entry, without its end.
pub(crate) fn write_line(
    text: &mut Vec<u8>,
    entry: &AuditEntry,
    detail: &[u8],
    salted: Option<&[u8]>,
) -> Result<(), LedgerError> {
    let unreadable = |_| LedgerError::Damaged(format!("entry {}: not a text", entry.seq));
    let detail = std::str::from_utf8(detail).map_err(unreadable)?;
    export::entry(text, entry);
    text.pop();
    text.extend_from_slice(b",\"detail\":");
    string(text, detail, Form::Utf8);
    text.extend_from_slice(b",\"input\":");
    match salted {
        None => text.extend_from_slice(b"null"),
        Some(salted) => string(text, &STANDARD.encode(salted), Form::Utf8),
    }
    text.push(b'}');
    Ok(())
}

/// The digest of a whole file.
pub(crate) fn digest_of(path: &Path) -> Result<Digest, LedgerError> {
    let reading = || LedgerError::file("read", path);
    let mut file = files::open_regular(path).map_err(reading())?;
    let (mut hasher, mut buffer) = (Hasher::default(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut buffer).map_err(reading())? {
            0 => return Ok(hasher.finish()),
            n => hasher.update(buffer.get(..n).unwrap_or_default()),
        }
    }
}
