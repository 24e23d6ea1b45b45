//! Verifying an evidence bundle with nothing but the bundle.
//!
//! The file is read twice at the same time, once for its entries and once for its details, so that
//! both can be judged together in memory that does not grow with the bundle. This half shares the
//! formula with the writer and nothing else: entries are encoded by a general encoder from the JSON
//! that was read.
//!
//! **Invariant.** A list under another name, no entries under a root, or a signature that is gone
//! never pass for a verified bundle.

use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use fluffy_base::{Digest, Hasher};
use serde_json::{Map, Value};

use crate::bundle_reader::{Details, Entries, Head};
use crate::checkpoint::open_note;
use crate::encode::{Form, string};
use crate::export::SEAL_KIND;
use crate::merkle::{Frontier, leaf_hash};
use crate::protocol::Checker;
use crate::verify::MAX_FINDINGS;
use crate::{
    EntryView, LedgerError, Located, Problem, ProtocolCheck, SignedCheckpoint, VerifyingKey,
};

/// How many entries may wait between a reader and the judge.
const WAITING: usize = 256;
/// Where the seal begins; it ends the file.
const SEAL: &[u8] = b",\"seal\":";
/// Longer than any seal.
const SEAL_LIMIT: u64 = 8 << 10;

/// The fields under the hash of an entry.
const HASHED: [&str; 19] = [
    "actor",
    "decision",
    "error",
    "evidence_hash",
    "intent",
    "params_hash",
    "permit_denial_reasons",
    "permit_digest",
    "permit_issuer",
    "permit_max_executions",
    "permit_nonce",
    "permit_subject",
    "permit_verification",
    "proposal_hash",
    "request_id",
    "state_from",
    "state_to",
    "tool_name",
    "ts_ms",
];

/// Who vouches for a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signer {
    /// The key in the bundle signed every byte of it.
    Key(VerifyingKey),
    /// Nobody: the chain holds, but its end and its writer are unproved.
    Nobody,
}

/// What verifying a bundle found.
#[derive(Debug)]
pub struct BundleCheck {
    /// How many entries were verified.
    pub entries: u64,
    /// Hash of the last of them.
    pub root_hash: Digest,
    /// Who vouches for it.
    pub signer: Signer,
    /// Level *protocol*; `None` where the bundle has no details.
    pub protocol: Option<ProtocolCheck>,
    /// Everything that is wrong; empty for an intact bundle.
    pub findings: Vec<Located>,
}

/// Verifies a bundle. With `pinned`, it must be signed by that key.
pub fn verify_bundle(
    path: &Path,
    pinned: Option<&VerifyingKey>,
) -> Result<BundleCheck, LedgerError> {
    let (entries, entry_source) = sync_channel(WAITING);
    let (details, detail_source) = sync_channel(WAITING);
    let readers = [path.to_owned(), path.to_owned()];
    let [for_entries, for_details] = readers.map(open);
    let (for_entries, for_details) = (for_entries?, for_details?);
    let mut judge = Judge::default();
    let (head, ended) = thread::scope(|scope| {
        let head = scope.spawn(move || Entries { out: entries }.read(for_entries));
        let ended = scope.spawn(move || Details { out: details }.read(for_details));
        judge.run(&entry_source, &detail_source);
        drop((entry_source, detail_source));
        (head.join(), ended.join())
    });
    let stopped = || LedgerError::Stopped("a reader of the bundle panicked".to_owned());
    let head = head.map_err(|_| stopped())?;
    let ended = ended.map_err(|_| stopped())?;
    let head = match (head, ended) {
        (Ok(head), Ok(())) => head,
        (Err(problem), _) | (Ok(_), Err(problem)) => {
            judge.findings.insert(0, Located { seq: judge.broken_at(), problem });
            return Ok(judge.finish(Signer::Nobody));
        }
    };
    judge.head(&head);
    let signer = judge.signature(path, &head, pinned)?;
    Ok(judge.finish(signer))
}

fn open(path: PathBuf) -> Result<BufReader<File>, LedgerError> {
    let file = File::open(&path).map_err(LedgerError::file("read", path))?;
    Ok(BufReader::with_capacity(1 << 20, file))
}

/// A detail as it stands in a bundle: its hash, and its text unless withheld.
pub(crate) type BundleDetail = (String, Option<String>);

/// Reads entries and details in step.
#[derive(Default)]
struct Judge {
    size: u64,
    prev: Option<Digest>,
    edge: Frontier,
    findings: Vec<Located>,
    protocol: Checker,
    details: u64,
    scratch: Vec<u8>,
}

impl Judge {
    fn run(&mut self, entries: &Receiver<Map<String, Value>>, details: &Receiver<BundleDetail>) {
        while let Ok(entry) = entries.recv() {
            self.entry(&entry, details);
            self.size += 1;
            if self.findings.len() >= MAX_FINDINGS {
                return;
            }
        }
        if details.recv().is_ok() {
            let problem = Problem::Format("there are details that no entry names".to_owned());
            self.findings.push(Located::nowhere(problem));
        }
    }

    fn entry(&mut self, entry: &Map<String, Value>, details: &Receiver<BundleDetail>) {
        let prev = self.prev.unwrap_or(Digest::GENESIS);
        let stored = text(entry, "entry_hash").and_then(|text| text.parse::<Digest>().ok());
        if text(entry, "prev_hash") != Some(prev.to_string().as_str()) {
            self.find(Problem::PrevHash);
        }
        match (canonical(entry, &mut self.scratch), stored) {
            (Err(problem), _) => self.find(problem),
            (Ok(()), None) => self.find(Problem::Format("it has no entry_hash".to_owned())),
            (Ok(()), Some(stored)) => {
                let computed = Digest::of_parts(&[&prev.hex(), b":", &self.scratch]);
                if computed != stored {
                    self.find(Problem::EntryHash { stored, computed });
                }
            }
        }
        if entry.get("ledger_seq").is_some_and(|seq| seq.as_u64() != Some(self.size)) {
            self.find(Problem::Format("ledger_seq is not its place in the list".to_owned()));
        }
        if let Some(stored) = stored {
            self.edge.push(leaf_hash(&stored), &mut Vec::new());
            self.prev = Some(stored);
        }
        if let Some(evidence) = text(entry, "evidence_hash") {
            self.detail(entry, evidence, details);
        }
    }

    fn detail(
        &mut self,
        entry: &Map<String, Value>,
        evidence: &str,
        details: &Receiver<BundleDetail>,
    ) {
        // A bundle without any details is judged by its chain alone.
        let Ok((name, shown)) = details.recv() else {
            if self.details > 0 {
                self.find(Problem::Format("its detail is missing".to_owned()));
            }
            return;
        };
        self.details += 1;
        if name != evidence {
            self.find(Problem::Format("the detail at its place is of another entry".to_owned()));
            return;
        }
        if shown.as_ref().is_some_and(|shown| Digest::of(shown.as_bytes()).to_string() != evidence)
        {
            self.find(Problem::DetailHash);
        }
        match view(entry) {
            Some(view) => {
                self.protocol.entry(self.size, &view, shown.as_deref().map(str::as_bytes));
            }
            None => self.find(Problem::Format("a field is of the wrong type".to_owned())),
        }
    }

    /// What the bundle says of itself beside the lists.
    fn head(&mut self, head: &Head) {
        let last = self.prev.unwrap_or(Digest::GENESIS);
        if head.root_hash.as_deref() != Some(last.to_string().as_str()) {
            self.findings.push(Located::nowhere(Problem::RootHash));
        }
        if let Some(at) = head.lists_differ_at {
            let text = "`entries` and `ledger_entries` differ".to_owned();
            self.findings.push(Located::at(at, Problem::Format(text)));
        }
        let required = [("kernel_id", &head.kernel_id), ("variant", &head.variant)];
        for (name, value) in required {
            if value.is_none() {
                let text = format!("the bundle has no `{name}`");
                self.findings.push(Located::nowhere(Problem::Format(text)));
            }
        }
    }

    /// Checks seal, checkpoint and key. A bundle that has any part of a signature must have all.
    fn signature(
        &mut self,
        path: &Path,
        head: &Head,
        pinned: Option<&VerifyingKey>,
    ) -> Result<Signer, LedgerError> {
        let ours = head.version.is_some()
            || head.checkpoint.is_some()
            || head.public_key.is_some()
            || head.seal.is_some()
            || self.details > 0;
        if !ours && pinned.is_none() {
            return Ok(Signer::Nobody);
        }
        let wrong = |text: &str| Located::nowhere(Problem::Signature(text.to_owned()));
        if head.version != Some(crate::export::BUNDLE_VERSION) {
            self.findings.push(wrong("the bundle is not of version 1"));
        }
        let (Some(seal), Some(checkpoint), Some(key)) =
            (&head.seal, &head.checkpoint, &head.public_key)
        else {
            self.findings.push(wrong("the bundle has lost its signature"));
            return Ok(Signer::Nobody);
        };
        let Ok(key) = key.parse::<VerifyingKey>() else {
            self.findings.push(wrong("the bundle's public key is not a key"));
            return Ok(Signer::Nobody);
        };
        if pinned.is_some_and(|pinned| *pinned != key) {
            self.findings.push(wrong("the bundle is signed by another key than the wanted one"));
        }
        self.check_checkpoint(checkpoint, &key);
        self.check_seal(path, seal, &key)?;
        Ok(Signer::Key(key))
    }

    fn check_checkpoint(&mut self, note: &str, key: &VerifyingKey) {
        let problem = match SignedCheckpoint::parse(note).and_then(|note| note.verify(key)) {
            Err(error) => Problem::Signature(format!("the checkpoint does not hold: {error}")),
            Ok(checkpoint) if checkpoint.size != self.size => {
                Problem::Truncated { found: self.size, promised: checkpoint.size }
            }
            Ok(checkpoint) if checkpoint.root != self.edge.root() => {
                Problem::Rewritten { size: checkpoint.size }
            }
            Ok(_) => return,
        };
        let seq = matches!(problem, Problem::Truncated { .. }).then_some(self.size);
        self.findings.push(Located { seq, problem });
    }

    fn check_seal(
        &mut self,
        path: &Path,
        note: &str,
        key: &VerifyingKey,
    ) -> Result<(), LedgerError> {
        let problem = match (sealed_part(path)?, open_note(note, key)) {
            (None, _) => "the seal does not end the bundle".to_owned(),
            (_, Err(error)) => format!("the seal does not hold: {error}"),
            (Some(hash), Ok(body)) if body == format!("{SEAL_KIND}\n{hash}\n") => return Ok(()),
            (Some(_), Ok(_)) => "the bundle was changed after it was sealed".to_owned(),
        };
        self.findings.push(Located::nowhere(Problem::Signature(problem)));
        Ok(())
    }

    fn find(&mut self, problem: Problem) {
        self.findings.push(Located::at(self.size, problem));
    }

    /// Where reading stopped, if it stopped among the entries.
    fn broken_at(&self) -> Option<u64> {
        Some(self.size)
    }

    fn finish(mut self, signer: Signer) -> BundleCheck {
        let protocol = (self.details > 0).then(|| self.protocol.finish());
        if let Some(protocol) = &protocol {
            self.findings.extend(protocol.findings.iter().cloned());
        }
        self.findings.truncate(MAX_FINDINGS);
        let root_hash = self.prev.unwrap_or(Digest::GENESIS);
        BundleCheck { entries: self.size, root_hash, signer, protocol, findings: self.findings }
    }
}

/// The hash of everything before the seal; `None` where the file does not end with one.
fn sealed_part(path: &Path) -> Result<Option<Digest>, LedgerError> {
    let reading = || LedgerError::file("read", path);
    let mut file = File::open(path).map_err(reading())?;
    let length = file.metadata().map_err(reading())?.len();
    let start = length.saturating_sub(SEAL_LIMIT);
    file.seek(SeekFrom::Start(start)).map_err(reading())?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail).map_err(reading())?;
    let Some(at) = memchr::memmem::rfind(&tail, SEAL) else { return Ok(None) };
    // After the seal's own text there is only the end of the object.
    let ends =
        serde_json::Deserializer::from_slice(tail.get(at + SEAL.len()..).unwrap_or_default())
            .into_iter::<String>()
            .next()
            .is_some_and(|seal| {
                let mut written = Vec::new();
                string(&mut written, &seal.unwrap_or_default(), Form::Utf8);
                written.extend_from_slice(b"}\n");
                tail.get(at + SEAL.len()..) == Some(written.as_slice())
            });
    if !ends {
        return Ok(None);
    }
    file.rewind().map_err(reading())?;
    hash_first(&mut file, start + at as u64).map(Some).map_err(reading())
}

fn hash_first(file: &mut File, length: u64) -> std::io::Result<Digest> {
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; 256 << 10];
    let mut rest = file.take(length);
    loop {
        let read = rest.read(&mut buffer)?;
        match buffer.get(..read) {
            Some(bytes) if read > 0 => hasher.update(bytes),
            _ => return Ok(hasher.finish()),
        }
    }
}

fn text<'a>(entry: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    entry.get(key).and_then(Value::as_str)
}

/// The entry as the protocol check reads it; `None` where a field is of the wrong type.
fn view(entry: &Map<String, Value>) -> Option<EntryView<'_>> {
    let optional = |key: &str| match entry.get(key) {
        None | Some(Value::Null) => Some(None),
        Some(value) => value.as_str().map(Some),
    };
    let hash = |key: &str| match optional(key)? {
        None => Some(None),
        Some(text) => text.parse().ok().map(Some),
    };
    Some(EntryView {
        request_id: text(entry, "request_id")?,
        actor: text(entry, "actor")?,
        intent: text(entry, "intent")?,
        decision: text(entry, "decision")?,
        state_from: text(entry, "state_from")?,
        state_to: text(entry, "state_to")?,
        ts_ms: entry.get("ts_ms").and_then(Value::as_u64)?,
        tool_name: optional("tool_name")?,
        params_hash: hash("params_hash")?,
        evidence_hash: hash("evidence_hash")?,
        error: optional("error")?,
    })
}

/// Writes the canonical text of the hashed fields. A field outside the hash could be relabelled, so
/// there may be none but the three that are checked otherwise.
fn canonical(entry: &Map<String, Value>, out: &mut Vec<u8>) -> Result<(), Problem> {
    for key in entry.keys() {
        let known = HASHED.contains(&key.as_str())
            || ["ledger_seq", "prev_hash", "entry_hash"].contains(&key.as_str());
        if !known {
            let key = fluffy_base::Excerpt::new(key, 100);
            return Err(Problem::Format(format!("field `{key}` is under no hash")));
        }
    }
    out.clear();
    for (at, key) in HASHED.iter().enumerate() {
        out.push(if at == 0 { b'{' } else { b',' });
        string(out, key, Form::Ascii);
        out.push(b':');
        let value =
            entry.get(*key).ok_or_else(|| Problem::Format(format!("field `{key}` is missing")))?;
        general(out, value)?;
    }
    out.push(b'}');
    Ok(())
}

/// The formula's encoding of any value it can hold: sorted keys, ASCII, no white space.
fn general(out: &mut Vec<u8>, value: &Value) -> Result<(), Problem> {
    match value {
        Value::String(text) => string(out, text, Form::Ascii),
        Value::Number(number) if number.is_f64() => {
            return Err(Problem::Format("a hashed number is not an integer".to_owned()));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            out.extend_from_slice(value.to_string().as_bytes());
        }
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                general(out, item)?;
            }
            out.push(b']');
        }
        Value::Object(members) => {
            out.push(b'{');
            for (at, (key, item)) in members.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                string(out, key, Form::Ascii);
                out.push(b':');
                general(out, item)?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}
