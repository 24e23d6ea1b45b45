//! Opening a ledger: what was remembered against what is there, and what to do when they differ.
//!
//! A break never blocks the start. The damaged file is kept, what can be proved of it is salvaged
//! (from the file itself or from a snapshot, whichever goes further), and a new segment begins with
//! an `audit_chain_break` entry that says what happened and where everything is.
//!
//! **Invariant.** No file with entries is ever removed or overwritten here, only moved.

use std::path::{Path, PathBuf};

use fluffy_base::{Digest, KernelId, KernelState};
use rusqlite::Connection;

use crate::checkpoint::{Checkpoint, SignedCheckpoint};
use crate::files::{self, Durability};
use crate::ledger::wal_of;
use crate::merkle::{self, Frontier};
use crate::tree::{self, TileError, Tree};
use crate::verify::{damage, verify_range};
use crate::{
    Detail, DetailView, EventType, Layout, LedgerConfig, LedgerError, Located, Origin, Problem,
    Record, SigningKey, VerifyingKey, salvage, store,
};

/// Ledgers up to this size are verified whole at every start.
const SMALL: u64 = 4096;
/// Of larger ones, this many of the last entries.
const TAIL: u64 = 1024;
/// A remembered checkpoint is a few hundred bytes.
const CHECKPOINT_LIMIT: u64 = 64 << 10;

/// Damage that opening found, recorded and set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Break {
    /// The segment that was damaged.
    pub segment: u32,
    /// What is wrong and where.
    pub found: Located,
    /// How many entries could be proved and stay readable.
    pub salvaged: u64,
    /// Where they came from: the file itself, a snapshot, or nowhere.
    pub source: &'static str,
    /// Where the damaged file is kept; `None` where there was none to keep.
    pub kept: Option<PathBuf>,
}

/// A ledger ready for appending.
pub(crate) struct Opened {
    pub(crate) segment: u32,
    pub(crate) connection: Connection,
    pub(crate) frontier: Frontier,
    pub(crate) head: Digest,
    pub(crate) kernel_id: KernelId,
    pub(crate) broken: Option<Break>,
}

/// What was remembered about the ledger outside it.
#[derive(Debug)]
pub(crate) enum Memory {
    /// Nothing: no ledger was ever signed here.
    None,
    /// A genuine checkpoint of a segment.
    Of { segment: u32, checkpoint: Checkpoint },
    /// Something that this key did not sign.
    Forged(String),
}

/// Opens the ledger or, if it is broken, a new segment.
pub(crate) fn open(config: &LedgerConfig) -> Result<Opened, LedgerError> {
    let layout = &config.layout;
    let memory = recall(layout, config.key.verifying_key())?;
    let active = layout.active()?;
    let problem = match (active, &memory) {
        (None, Memory::None) => return begin(config, 1, config.origin.kernel_id.clone(), None),
        // Signed before the first entry: the start was interrupted, and nothing was promised.
        (None, Memory::Of { segment, checkpoint }) if checkpoint.size == 0 => {
            let kernel_id = kernel_of(checkpoint, config);
            return begin(config, *segment, kernel_id, None);
        }
        (None, _) => Located::nowhere(Problem::LedgerMissing),
        (Some(_), Memory::None) => Located::nowhere(Problem::CheckpointMissing),
        (Some(_), Memory::Forged(why)) => Located::nowhere(Problem::CheckpointForged(why.clone())),
        (Some(active), Memory::Of { segment, checkpoint }) if active >= *segment => {
            let promised = (active == *segment).then_some(checkpoint);
            match inspect(layout, active, promised)? {
                Ok(opened) => return Ok(opened),
                Err(found) => found,
            }
        }
        (Some(_), Memory::Of { .. }) => Located::nowhere(Problem::LedgerMissing),
    };
    set_aside(config, active, &memory, problem)
}

/// Reads the remembered checkpoint.
pub(crate) fn recall(layout: &Layout, key: &VerifyingKey) -> Result<Memory, LedgerError> {
    let Some(text) = files::read_small(layout.remembered(), CHECKPOINT_LIMIT)? else {
        return Ok(Memory::None);
    };
    let genuine = SignedCheckpoint::parse(&text).and_then(|signed| signed.verify(key));
    Ok(match genuine {
        Err(error) => Memory::Forged(error.to_string()),
        Ok(checkpoint) => match segment_of(&checkpoint.origin) {
            Some(segment) => Memory::Of { segment, checkpoint },
            None => Memory::Forged("it is of another log".to_owned()),
        },
    })
}

/// The name under which a segment's checkpoints are signed.
pub(crate) fn checkpoint_origin(kernel_id: &KernelId, segment: u32) -> String {
    format!("fluffy/{kernel_id}/{segment}")
}

/// Compares a checkpoint with what a ledger says of itself, by a consistency proof.
pub(crate) fn hold_against(
    tree: &Tree,
    edge: &Frontier,
    promised: &Checkpoint,
) -> Result<Option<Problem>, LedgerError> {
    let (found, size) = (edge.size(), promised.size);
    if found < size {
        return Ok(Some(Problem::Truncated { found, promised: size }));
    }
    let rewritten = Some(Problem::Rewritten { size });
    let proof = match tree.consistency(edge, size) {
        Ok(proof) => proof,
        Err(merkle::TreeError::Store(TileError::Row(error))) => {
            return damage(error.into()).map(Some);
        }
        Err(_) => return Ok(rewritten),
    };
    let holds =
        merkle::verify_consistency(size, &promised.root, found, &edge.root(), &proof).is_ok();
    Ok(if holds { None } else { rewritten })
}

/// Copies the closed database, so that a later break has something to fall back on.
pub(crate) fn snapshot(layout: &Layout, segment: u32, size: u64) -> Result<(), LedgerError> {
    let to = layout.snapshot(segment, size);
    if size == 0 || to.exists() {
        return Ok(());
    }
    let from = layout.segment(segment);
    let mut unfinished = to.clone();
    unfinished.set_extension("new");
    let mut copy = files::private(&unfinished).map_err(LedgerError::file("write", &unfinished))?;
    std::fs::File::open(&from)
        .and_then(|mut file| std::io::copy(&mut file, &mut copy))
        .map_err(LedgerError::file("copy", &from))?;
    files::rename(&unfinished, &to)?;
    layout.prune_snapshots()
}

/// Opens an existing segment and checks it; `Err` inside is damage.
fn inspect(
    layout: &Layout,
    segment: u32,
    promised: Option<&Checkpoint>,
) -> Result<Result<Opened, Located>, LedgerError> {
    match examine(layout, segment, promised) {
        Ok(Ok(opened)) => Ok(Ok(opened)),
        Ok(Err(found)) => Ok(Err(found)),
        Err(error) => Ok(Err(Located::nowhere(damage(error)?))),
    }
}

fn examine(
    layout: &Layout,
    segment: u32,
    promised: Option<&Checkpoint>,
) -> Result<Result<Opened, Located>, LedgerError> {
    let path = layout.segment(segment);
    let connection = store::open_writer(&path)?;
    let reading = LedgerError::database;
    if let Some(problem) = store::schema_problem(&connection).map_err(reading("reading"))? {
        return Ok(Err(Located::nowhere(Problem::Database(problem))));
    }
    if !layout.clean_mark().exists() {
        // The last writer did not end in order: the file itself is checked first.
        let verdict: String = connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(reading("checking the file"))?;
        if verdict != "ok" {
            return Ok(Err(Located::nowhere(Problem::Database(verdict))));
        }
    }
    let size = store::size(&connection).map_err(reading("reading"))?;
    let frontier = match tree::restore(&connection, size) {
        Ok(frontier) => frontier,
        Err(TileError::Row(error)) => return Err(error.into()),
        Err(error) => return Ok(Err(Located::nowhere(Problem::Database(error.to_string())))),
    };
    if let Some(promised) = promised
        && let Some(problem) = hold_against(&Tree::open(&path)?, &frontier, promised)?
    {
        return Ok(Err(locate(&connection, size, problem)?));
    }
    let first = if size <= SMALL { 0 } else { (size - TAIL) / 32 * 32 };
    if let Some(found) = verify_range(&connection, first..size)?.into_iter().next() {
        return Ok(Err(found));
    }
    let Some(kernel_id) = stored_kernel_id(&connection)? else {
        return Ok(Err(Located::nowhere(Problem::Protocol("it has no first entry".to_owned()))));
    };
    let head = match size.checked_sub(1) {
        Some(last) => store::entry_hash(&connection, last)?,
        None => Digest::GENESIS,
    };
    Ok(Ok(Opened { segment, connection, frontier, head, kernel_id, broken: None }))
}

/// A broken promise names no entry; the first entry that fails its own check does, if there is one.
fn locate(connection: &Connection, size: u64, problem: Problem) -> Result<Located, LedgerError> {
    match &problem {
        Problem::Truncated { found, .. } => Ok(Located::at(*found, problem)),
        _ => {
            let first = verify_range(connection, 0..size)?.into_iter().next();
            Ok(first.unwrap_or_else(|| Located::nowhere(problem)))
        }
    }
}

/// The kernel that wrote the first entry.
fn stored_kernel_id(connection: &Connection) -> Result<Option<KernelId>, LedgerError> {
    let detail: Vec<u8> =
        match connection.query_row("SELECT detail FROM entries WHERE seq = 0", [], |r| r.get(0)) {
            Ok(detail) => detail,
            Err(rusqlite::Error::QueryReturnedNoRows) => return Ok(None),
            Err(error) => return Err(LedgerError::database("reading")(error)),
        };
    Ok(DetailView::parse(&detail).ok().and_then(|detail| KernelId::named(&detail.kernel_id)))
}

/// Starts a segment. The checkpoint of size 0 is remembered first: from then on, a missing ledger is
/// noticed.
fn begin(
    config: &LedgerConfig,
    segment: u32,
    kernel_id: KernelId,
    broken: Option<Break>,
) -> Result<Opened, LedgerError> {
    let origin = checkpoint_origin(&kernel_id, segment);
    let empty = Checkpoint { origin, size: 0, root: merkle::empty_root() };
    remember(config, &empty)?;
    let path = config.layout.segment(segment);
    drop(files::private(&path).map_err(LedgerError::file("make", &path))?);
    let mut connection = store::open_writer(&path)?;
    store::create_schema(&connection)?;
    let mut chain = crate::chain::Chain::new(Digest::GENESIS, Frontier::default());
    let origin = Origin { kernel_id: kernel_id.clone(), ..config.origin.clone() };
    chain.push(first_record(config, origin, segment, broken.as_ref()));
    store::insert(&mut connection, &chain.take_pending())
        .map_err(LedgerError::database("writing the first entry"))?;
    let wal = wal_of(&path);
    std::fs::File::open(&wal)
        .and_then(|wal| wal.sync_all())
        .map_err(LedgerError::file("sync", &wal))?;
    files::sync_parent(&path)?;
    let frontier = chain.frontier().clone();
    Ok(Opened { segment, connection, frontier, head: chain.head(), kernel_id, broken })
}

/// The entry that opens a segment: what was broken, or that the ledger begins.
fn first_record(
    config: &LedgerConfig,
    origin: Origin,
    segment: u32,
    broken: Option<&Break>,
) -> Record {
    let ts_ms = config.clock.now_ms();
    let states = (KernelState::Booting, KernelState::Booting);
    let event =
        if broken.is_some() { EventType::AuditChainBreak } else { EventType::StateTransition };
    let mut detail = Detail::new(origin, event);
    detail.metadata.insert("segment", segment.to_string());
    detail.metadata.insert("public_key", config.key.verifying_key().to_string());
    let Some(broken) = broken else {
        return Record::event(ts_ms, "the ledger begins", states, detail);
    };
    let mut put = |key, value: String| detail.metadata.insert(key, value);
    put("broken_segment", broken.segment.to_string());
    put("problem", broken.found.to_string());
    put("position", broken.found.seq.map_or_else(|| "unknown".to_owned(), |s| s.to_string()));
    put("salvaged", broken.salvaged.to_string());
    put("source", broken.source.to_owned());
    if let Some(name) = broken.kept.as_deref().and_then(Path::file_name) {
        put("kept", name.to_string_lossy().into_owned());
    }
    let mut record = Record::event(ts_ms, "the ledger was found damaged", states, detail);
    record.error = Some(broken.found.to_string());
    record
}

fn remember(config: &LedgerConfig, checkpoint: &Checkpoint) -> Result<(), LedgerError> {
    let note = checkpoint.sign(&config.key)?;
    files::replace(config.layout.remembered(), note.as_bytes(), Durability::Synced)
}

/// Keeps the damaged segment, salvages what can be proved of it, and opens the next one.
fn set_aside(
    config: &LedgerConfig,
    active: Option<u32>,
    memory: &Memory,
    found: Located,
) -> Result<Opened, LedgerError> {
    let layout = &config.layout;
    let (promised, remembered) = match memory {
        Memory::Of { segment, checkpoint } => (Some(checkpoint), *segment),
        Memory::None | Memory::Forged(_) => (None, 0),
    };
    let segment = active.unwrap_or(0).max(remembered).max(1);
    let mut broken = Break { segment, found, salvaged: 0, source: "nowhere", kept: None };
    let mut kernel_id = promised.map(|checkpoint| kernel_of(checkpoint, config));
    if let Some(active) = active.filter(|active| *active == segment) {
        let kept = keep(layout, active)?;
        let promised = promised.filter(|_| remembered == active);
        let best = salvage::best(layout, active, &kept, promised)?;
        if let Some(best) = best {
            salvage::write(&best, &layout.segment(active))?;
            kernel_id = kernel_id.or(best.kernel_id);
            (broken.salvaged, broken.source) = (best.size, best.source);
        }
        broken.kept = Some(kept);
    }
    let kernel_id = kernel_id.unwrap_or_else(|| config.origin.kernel_id.clone());
    begin(config, segment + 1, kernel_id, Some(broken))
}

/// Moves the damaged database and its log out of the way.
fn keep(layout: &Layout, segment: u32) -> Result<PathBuf, LedgerError> {
    let from = layout.segment(segment);
    let to = layout.damaged(segment)?;
    let wal = wal_of(&from);
    if wal.exists() {
        files::rename(&wal, &wal_of(&to))?;
    }
    files::rename(&from, &to)?;
    // The index of the log belongs to running connections and is made anew from the log.
    let mut index = from.into_os_string();
    index.push("-shm");
    files::remove(Path::new(&index))?;
    files::sync_parent(&to)?;
    Ok(to)
}

fn segment_of(origin: &str) -> Option<u32> {
    let (_, segment) = origin.strip_prefix("fluffy/")?.rsplit_once('/')?;
    segment.parse().ok()
}

fn kernel_of(checkpoint: &Checkpoint, config: &LedgerConfig) -> KernelId {
    let middle = checkpoint.origin.strip_prefix("fluffy/").and_then(|rest| rest.rsplit_once('/'));
    let named = middle.and_then(|(name, _)| KernelId::named(name));
    named.unwrap_or_else(|| config.origin.kernel_id.clone())
}

/// Loads the user's key, or makes one. A key that is gone while a ledger is there makes a new one
/// too: the old checkpoint then no longer verifies, which opening records as a break.
pub fn load_or_create_key(path: &Path, seed: [u8; 32]) -> Result<SigningKey, LedgerError> {
    if let Some(parent) = path.parent() {
        files::make_dir(parent)?;
    }
    match SigningKey::load(path)? {
        Some(key) => Ok(key),
        None => Ok(SigningKey::create(path, seed)?),
    }
}
