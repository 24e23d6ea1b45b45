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
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread;

use fluffy_base::Digest;
use serde_json::Value;

use crate::bundle_reader::{BundleDetail, Head, List, Stop, read_details, read_entries};
use crate::checkpoint::open_note;
use crate::encode::{Form, string};
use crate::export::{BUNDLE_VERSION, SEAL_KIND};
use crate::merkle::{Frontier, leaf_hash};
use crate::protocol::Checker;
use crate::verify::MAX_FINDINGS;
use crate::{
    EntryView, LedgerError, Located, Problem, ProtocolCheck, SignedCheckpoint, VerifyingKey,
};

/// How many batches of entries may wait between a reader and the judge.
const WAITING: usize = 2;

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

/// The fields that are checked by what they say.
const UNHASHED: [&str; 3] = ["entry_hash", "ledger_seq", "prev_hash"];

/// Who vouches for a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signer {
    /// The key in the bundle signed every byte of it.
    Key(Box<VerifyingKey>),
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
    let (for_entries, for_details) = (open(path)?, open(path)?);
    let (entry_sink, entries) = sync_channel(WAITING);
    let (detail_sink, details) = sync_channel(WAITING);
    let mut judge = Judge::default();
    let (head, rest) = thread::scope(|scope| {
        let head = scope.spawn(move || read_entries(for_entries, entry_sink));
        let rest = scope.spawn(move || read_details(for_details, detail_sink));
        // Both receivers end with the judge's work, so no reader waits for one that is done.
        judge.run(entries.into_iter().flatten(), details.into_iter().flatten());
        (head.join(), rest.join())
    });
    let stopped = |_| LedgerError::Stopped("a reader of the bundle panicked".to_owned());
    let signer = match (head.map_err(stopped)?, rest.map_err(stopped)?) {
        (Err(Stop::Failed(error)), _) | (_, Err(Stop::Failed(error))) => {
            return Err(LedgerError::file("read", path)(error));
        }
        (Err(Stop::Unreadable(found)), _) | (_, Err(Stop::Unreadable(found))) => {
            judge.findings.push(found);
            Signer::Nobody
        }
        // The judge has found enough to stop listening before the end.
        (Err(Stop::Unwanted), Ok(()) | Err(Stop::Unwanted)) => Signer::Nobody,
        (Ok(head), Ok(()) | Err(Stop::Unwanted)) => {
            judge.head(&head);
            judge.signature(&head, pinned)
        }
    };
    Ok(judge.finish(signer))
}

/// Opens a regular file: what is read twice must be there twice.
fn open(path: &Path) -> Result<File, LedgerError> {
    // Without NONBLOCK, opening a pipe would wait for its other end.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path);
    let regular = file.and_then(|file| match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    });
    regular.map_err(LedgerError::file("read", path))
}

/// Reads entries and details in step.
#[derive(Default)]
struct Judge {
    chained: Links,
    repeated: Links,
    edge: Frontier,
    findings: Vec<Located>,
    protocol: Checker,
    /// Details that were read, beside the entries they belong to.
    details: u64,
    /// The first entry whose detail did not come.
    first_without: Option<u64>,
    /// More details came than entries.
    surplus: bool,
}

/// How far one of the lists of entries has been followed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Links {
    size: u64,
    last: Option<Digest>,
}

impl Links {
    /// Hash of the last entry.
    fn head(&self) -> Digest {
        self.last.unwrap_or(Digest::GENESIS)
    }
}

impl Judge {
    fn run(
        &mut self,
        entries: impl Iterator<Item = (List, Value)>,
        mut details: impl Iterator<Item = BundleDetail>,
    ) {
        let mut scratch = Vec::new();
        for (list, entry) in entries {
            match list {
                List::Chained => self.entry(&entry, &mut details, &mut scratch),
                List::Repeated => {
                    let at = self.repeated.size;
                    for problem in self.repeated.follow(&entry, &mut scratch) {
                        let problem = Problem::Format(format!("in `entries`: {problem}"));
                        self.findings.push(Located::at(at, problem));
                    }
                }
            }
            if self.findings.len() >= MAX_FINDINGS {
                return;
            }
        }
        self.surplus = details.next().is_some();
    }

    fn entry(
        &mut self,
        entry: &Value,
        details: &mut impl Iterator<Item = BundleDetail>,
        scratch: &mut Vec<u8>,
    ) {
        let seq = self.chained.size;
        let problems = self.chained.follow(entry, scratch);
        self.findings.extend(problems.into_iter().map(|problem| Located::at(seq, problem)));
        self.edge.push(leaf_hash(&self.chained.head()), &mut Vec::new());
        let problem = match text(entry, "evidence_hash") {
            Some(evidence) => self.detail(seq, entry, evidence, details),
            None => self.without_detail(seq),
        };
        self.findings.extend(problem.map(|problem| Located::at(seq, problem)));
    }

    /// Compares the next detail with the hash that its entry carries.
    fn detail(
        &mut self,
        seq: u64,
        entry: &Value,
        evidence: &str,
        details: &mut impl Iterator<Item = BundleDetail>,
    ) -> Option<Problem> {
        let Some((name, shown)) = details.next() else { return self.without_detail(seq) };
        self.details += 1;
        if name != evidence {
            return Some(format("the detail at its place is of another entry"));
        }
        let Some(view) = view(entry) else { return Some(format("a field is of the wrong type")) };
        let shown = shown.as_deref().map(str::as_bytes);
        self.protocol.entry(seq, &view, shown);
        let changed = shown.is_some_and(|shown| Some(Digest::of(shown)) != view.evidence_hash);
        changed.then_some(Problem::DetailHash)
    }

    /// No problem where no entry has a detail: such a bundle is judged by its chain alone.
    fn without_detail(&mut self, seq: u64) -> Option<Problem> {
        self.first_without.get_or_insert(seq);
        None
    }

    /// What the bundle says of itself beside the lists, and how the lists fit together.
    fn head(&mut self, head: &Head) {
        let fields = [
            ("root_hash", head.root_hash.is_some()),
            ("exported_at_ms", head.exported_at_ms.is_some()),
            ("kernel_id", head.kernel_id.is_some()),
            ("variant", head.variant.is_some()),
        ];
        for (name, _) in fields.into_iter().filter(|(_, there)| !there) {
            self.find(format(&format!("the bundle has no `{name}`")));
        }
        if head.root_hash.as_ref().is_some_and(|root| *root != self.chained.head().to_string()) {
            self.find(Problem::RootHash);
        }
        if head.has_entries && self.chained != self.repeated {
            self.find(format("`entries` and `ledger_entries` differ"));
        }
        if self.surplus {
            self.find(format("there are details that no entry names"));
        }
        if head.has_details && self.first_without.is_some() {
            let problem = format("its detail is missing");
            self.findings.push(Located { seq: self.first_without, problem });
        }
    }

    /// Checks seal, checkpoint and key. A bundle that has any part of a signature must have all.
    fn signature(&mut self, head: &Head, pinned: Option<&VerifyingKey>) -> Signer {
        let ours = head.version.is_some()
            || head.checkpoint.is_some()
            || head.public_key.is_some()
            || head.seal.is_some()
            || head.has_details;
        if !ours && pinned.is_none() {
            return Signer::Nobody;
        }
        let before = self.findings.len();
        if head.version != Some(BUNDLE_VERSION) {
            self.find(unsigned(&format!("the bundle is not of version {BUNDLE_VERSION}")));
        }
        if !head.has_details {
            self.find(unsigned("the bundle has lost its details"));
        }
        let (Some(seal), Some(checkpoint), Some(key)) =
            (&head.seal, &head.checkpoint, &head.public_key)
        else {
            self.find(unsigned("the bundle is not signed, or has lost its signature"));
            return Signer::Nobody;
        };
        let key = match key.parse::<VerifyingKey>() {
            Ok(key) => key,
            Err(error) => {
                self.find(unsigned(&format!("the bundle's public key is not a key: {error}")));
                return Signer::Nobody;
            }
        };
        self.findings.extend(self.check_checkpoint(checkpoint, &key));
        self.findings.extend(check_seal(seal, head.sealed, &key).map(Located::nowhere));
        let holds = self.findings.len() == before;
        if let Some(pinned) = pinned.filter(|pinned| **pinned != key) {
            self.find(unsigned(&format!("the bundle is signed by `{key}`, not by `{pinned}`")));
        }
        if holds { Signer::Key(Box::new(key)) } else { Signer::Nobody }
    }

    fn check_checkpoint(&self, note: &str, key: &VerifyingKey) -> Option<Located> {
        let (size, root) = (self.chained.size, self.edge.root());
        match SignedCheckpoint::parse(note).and_then(|note| note.verify(key)) {
            Err(error) => {
                Some(Located::nowhere(unsigned(&format!("the checkpoint does not hold: {error}"))))
            }
            Ok(checkpoint) if checkpoint.size != size => {
                let (found, promised) = (size, checkpoint.size);
                Some(Located::at(size.min(promised), Problem::Truncated { found, promised }))
            }
            Ok(checkpoint) if checkpoint.root != root => {
                Some(Located::nowhere(Problem::Rewritten { size }))
            }
            Ok(_) => None,
        }
    }

    fn find(&mut self, problem: Problem) {
        self.findings.push(Located::nowhere(problem));
    }

    fn finish(mut self, signer: Signer) -> BundleCheck {
        let protocol = (self.details > 0).then(|| self.protocol.finish());
        if let Some(protocol) = &protocol {
            self.findings.extend(protocol.findings.iter().cloned());
        }
        self.findings.truncate(MAX_FINDINGS);
        let (entries, root_hash) = (self.chained.size, self.chained.head());
        BundleCheck { entries, root_hash, signer, protocol, findings: self.findings }
    }
}

/// Checks the seal against the hash of everything before it.
fn check_seal(note: &str, sealed: Option<Digest>, key: &VerifyingKey) -> Option<Problem> {
    let Some(sealed) = sealed else { return Some(unsigned("the seal does not end the bundle")) };
    match open_note(note, key) {
        Err(error) => Some(unsigned(&format!("the seal does not hold: {error}"))),
        Ok(body) if body != format!("{SEAL_KIND}\n{sealed}\n") => {
            Some(unsigned("the bundle was changed after it was sealed"))
        }
        // Two lines of text, an empty one, a signature: no seal is over what stands in the seal.
        Ok(_) if note.lines().count() != 4 => {
            Some(unsigned("the seal has more than one signature"))
        }
        Ok(_) => None,
    }
}

fn format(text: &str) -> Problem {
    Problem::Format(text.to_owned())
}

fn unsigned(text: &str) -> Problem {
    Problem::Signature(text.to_owned())
}

impl Links {
    /// Goes on to the next entry of the list; gives what is wrong with it.
    ///
    /// It is held against the stated hash of the one before, so that one change is one finding.
    fn follow(&mut self, entry: &Value, scratch: &mut Vec<u8>) -> Vec<Problem> {
        let mut problems = Vec::new();
        let (seq, prev) = (self.size, self.head());
        self.size += 1;
        let digest = |key: &str| text(entry, key).and_then(|text| text.parse::<Digest>().ok());
        if digest("prev_hash") != Some(prev) {
            problems.push(Problem::PrevHash);
        }
        if entry.get("ledger_seq").and_then(Value::as_u64) != Some(seq) {
            problems.push(format("`ledger_seq` is not its place in the list"));
        }
        let stated = digest("entry_hash");
        match (canonical(entry, scratch), stated) {
            (Err(problem), _) => problems.push(problem),
            (Ok(()), None) => problems.push(format("`entry_hash` is not a digest")),
            (Ok(()), Some(stored)) => {
                let computed = Digest::of_parts(&[&prev.hex(), b":", scratch]);
                if computed != stored {
                    problems.push(Problem::EntryHash { stored, computed });
                }
            }
        }
        self.last = stated.or(self.last);
        problems
    }
}

fn text<'a>(entry: &'a Value, key: &str) -> Option<&'a str> {
    entry.get(key).and_then(Value::as_str)
}

/// The entry as the protocol check reads it; `None` where a field is of the wrong type.
fn view(entry: &Value) -> Option<EntryView<'_>> {
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
fn canonical(entry: &Value, out: &mut Vec<u8>) -> Result<(), Problem> {
    let entry = entry.as_object().ok_or_else(|| format("it is not an object"))?;
    out.clear();
    for (at, key) in HASHED.iter().enumerate() {
        out.push(if at == 0 { b'{' } else { b',' });
        string(out, key, Form::Ascii);
        out.push(b':');
        let value = entry.get(*key).ok_or_else(|| format(&format!("field `{key}` is missing")))?;
        general(out, value)?;
    }
    out.push(b'}');
    if entry.len() == HASHED.len() + UNHASHED.len() {
        // The hashed ones are all there; the others are asked for where they are checked.
        return Ok(());
    }
    let known = |key: &str| HASHED.contains(&key) || UNHASHED.contains(&key);
    let Some(stray) = entry.keys().find(|key| !known(key)) else { return Ok(()) };
    let stray = fluffy_base::Excerpt::new(stray, 100);
    Err(format(&format!("field `{stray}` is under no hash")))
}

/// The formula's encoding of any value it can hold: sorted keys, ASCII, no white space.
fn general(out: &mut Vec<u8>, value: &Value) -> Result<(), Problem> {
    match value {
        Value::String(text) => string(out, text, Form::Ascii),
        Value::Number(number) if number.is_f64() => {
            return Err(format("a hashed number is not an integer, or too large"));
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
