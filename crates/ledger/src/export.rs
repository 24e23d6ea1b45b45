//! Writing an evidence bundle: everything an outsider needs, in one file, sealed.
//!
//! The seal is a signed note over the hash of every byte before it. So each byte of the file counts:
//! the chain proves the entries, the checkpoint their number, and the seal all the rest.

use std::io::{self, Write};

use fluffy_base::{Digest, Hasher, SessionId};
use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::checkpoint::sign_note;
use crate::encode::{Form, digest, integer, optional, string};
use crate::held::Held;
use crate::segment::Segment;
use crate::store::StoredEntry;
use crate::{AuditEntry, DetailView, EventType, LedgerError, SigningKey};

/// First line of a seal's text.
pub(crate) const SEAL_KIND: &str = "fluffy-evidence-v1";
/// Version of the bundle's format.
pub(crate) const BUNDLE_VERSION: u64 = 1;

/// What to leave out of a bundle, and when it was made.
#[derive(Debug, Clone, Default)]
pub struct ExportOptions {
    /// Only the details of this session; the chain is always whole.
    pub session: Option<SessionId>,
    /// Withhold details whose event, tool, actor or named path matches one of these globs.
    pub redact: Vec<String>,
    /// When the bundle is made.
    pub exported_at_ms: u64,
}

/// What was exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exported {
    /// How many entries.
    pub entries: u64,
    /// How many details were withheld.
    pub withheld: u64,
}

/// Writes the bundle of a segment.
pub fn export(
    segment: &Segment,
    key: &SigningKey,
    options: &ExportOptions,
    out: &mut dyn Write,
) -> Result<Exported, LedgerError> {
    let writing = || LedgerError::file("write", "the bundle");
    let redaction = Redaction::new(options)?;
    let held = Held::open(segment.path())?;
    let mut out = Sealed { out, hasher: Hasher::default(), buffer: Vec::new() };
    header(&mut out.buffer, segment, key, options, &variant(&held.connection)?)?;
    let mut withheld = 0;
    for list in ["ledger_entries", "entries"] {
        out.buffer.extend_from_slice(format!(",\"{list}\":[").as_bytes());
        let mut prev = Digest::GENESIS;
        held.each(segment.size(), |stored| {
            separator(&mut out.buffer, stored.seq);
            entry(&mut out.buffer, &crate::query::owned(stored, prev)?);
            prev = stored.entry_hash;
            out.flush_large().map_err(writing())
        })?;
        out.buffer.extend_from_slice(b"\n]");
    }
    out.buffer.extend_from_slice(b",\"details\":{");
    held.each(segment.size(), |stored| {
        separator(&mut out.buffer, stored.seq);
        digest(&mut out.buffer, Some(&Digest::of(stored.detail)));
        out.buffer.push(b':');
        let text = std::str::from_utf8(stored.detail).ok();
        let shown = text.filter(|_| redaction.shows(stored));
        withheld += u64::from(shown.is_none());
        optional(&mut out.buffer, shown, Form::Utf8);
        out.flush_large().map_err(writing())
    })?;
    out.buffer.extend_from_slice(b"\n}");
    out.seal(key)?.flush().map_err(writing())?;
    Ok(Exported { entries: segment.size(), withheld })
}

fn header(
    out: &mut Vec<u8>,
    segment: &Segment,
    key: &SigningKey,
    options: &ExportOptions,
    variant: &str,
) -> Result<(), LedgerError> {
    out.extend_from_slice(b"{\"version\":");
    integer(out, BUNDLE_VERSION);
    out.extend_from_slice(b",\"kernel_id\":");
    string(out, segment.kernel_id().as_str(), Form::Utf8);
    out.extend_from_slice(b",\"variant\":");
    string(out, variant, Form::Utf8);
    out.extend_from_slice(b",\"exported_at_ms\":");
    integer(out, options.exported_at_ms);
    out.extend_from_slice(b",\"root_hash\":");
    digest(out, Some(&segment.head()));
    out.extend_from_slice(b",\"public_key\":");
    string(out, &key.verifying_key().to_string(), Form::Utf8);
    out.extend_from_slice(b",\"checkpoint\":");
    string(out, &segment.checkpoint(key)?, Form::Utf8);
    Ok(())
}

fn separator(out: &mut Vec<u8>, seq: u64) {
    out.extend_from_slice(if seq == 0 { b"\n" } else { b",\n" });
}

/// One entry as the peer's verifiers read it.
pub(crate) fn entry(out: &mut Vec<u8>, entry: &AuditEntry) {
    out.extend_from_slice(b"{\"ledger_seq\":");
    integer(out, entry.seq);
    out.extend_from_slice(b",\"prev_hash\":");
    digest(out, Some(&entry.prev_hash));
    out.extend_from_slice(b",\"entry_hash\":");
    digest(out, Some(&entry.entry_hash));
    out.push(b',');
    let at = out.len();
    entry.view().encode(out);
    // The canonical text is an object of its own: its opening brace is already there.
    out.remove(at);
}

/// The variant of the last session.
fn variant(connection: &rusqlite::Connection) -> Result<String, LedgerError> {
    let detail: Vec<u8> = connection
        .query_row("SELECT detail FROM entries ORDER BY seq DESC LIMIT 1", [], |row| row.get(0))
        .map_err(LedgerError::database("reading the last entry"))?;
    let detail =
        DetailView::parse(&detail).map_err(|error| LedgerError::Damaged(error.to_string()))?;
    Ok(detail.variant.into_owned())
}

/// Which details stay out of the bundle.
struct Redaction {
    session: Option<SessionId>,
    globs: GlobSet,
}

impl Redaction {
    fn new(options: &ExportOptions) -> Result<Self, LedgerError> {
        let mut globs = GlobSetBuilder::new();
        for pattern in &options.redact {
            let glob = Glob::new(pattern).map_err(|error| LedgerError::Pattern {
                pattern: pattern.clone(),
                problem: error.kind().to_string(),
            })?;
            globs.add(glob);
        }
        let globs = globs.build().map_err(|error| LedgerError::Pattern {
            pattern: options.redact.join(", "),
            problem: error.to_string(),
        })?;
        Ok(Self { session: options.session.clone(), globs })
    }

    /// A detail that cannot be read, or that a pattern matches, is not shown.
    fn shows(&self, stored: &StoredEntry<'_>) -> bool {
        let Ok(detail) = DetailView::parse(stored.detail) else { return false };
        let of_session =
            self.session.as_ref().is_none_or(|wanted| detail.session_id == wanted.as_str());
        let mut names = vec![detail.event.as_ref(), stored.columns.actor];
        names.extend(stored.columns.tool_name);
        let path = |(key, value)| (AsRef::<str>::as_ref(key) == "path").then_some(value);
        names.extend(detail.metadata.iter().filter_map(path).map(AsRef::as_ref));
        let opening = EventType::from_name(&detail.event) == Some(EventType::KernelStart);
        (of_session || opening) && !names.into_iter().any(|name| self.globs.is_match(name))
    }
}

/// The end of a bundle: what stands after the bytes that its seal is over.
pub(crate) fn seal_ending(note: &str) -> Vec<u8> {
    let mut ending = b",\"seal\":".to_vec();
    string(&mut ending, note, Form::Utf8);
    ending.extend_from_slice(b"}\n");
    ending
}

/// Hashes everything it writes.
struct Sealed<'a> {
    out: &'a mut dyn Write,
    hasher: Hasher,
    buffer: Vec<u8>,
}

impl<'a> Sealed<'a> {
    fn flush_large(&mut self) -> io::Result<()> {
        if self.buffer.len() < 64 << 10 { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.hasher.update(&self.buffer);
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn seal(mut self, key: &SigningKey) -> Result<&'a mut dyn Write, LedgerError> {
        let writing = || LedgerError::file("write", "the bundle");
        self.flush().map_err(writing())?;
        let body = format!("{SEAL_KIND}\n{}\n", self.hasher.finish());
        let note = sign_note(&body, key).map_err(crate::CheckpointError::from)?;
        self.out.write_all(&seal_ending(&note)).map_err(writing())?;
        Ok(self.out)
    }
}
