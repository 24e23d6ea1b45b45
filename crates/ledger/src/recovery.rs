//! Opening a ledger: what was remembered against what is there, and what to do when they differ.
//!
//! A break never blocks the start. The damaged file is kept, what can be proved of it is salvaged
//! (from the file itself or from a snapshot, whichever goes further), and a new segment begins with
//! an `audit_chain_break` entry that says what happened and where everything is.
//!
//! Setting aside can be interrupted anywhere: what was found stands in the file `unfinished` until
//! the new segment has its first entry, and the next opening takes it up from there.
//!
//! **Invariant.** No file with entries is ever removed or overwritten here, only moved, and none is
//! written to before it was checked: a damaged file is kept as it was found.

use std::path::{Path, PathBuf};

use fluffy_base::{Digest, KernelId, KernelState};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use crate::checkpoint::{Checkpoint, SignedCheckpoint};
use crate::files::{self, Durability};
use crate::layout::SNAPSHOTS;
use crate::ledger::{beside, wal_of};
use crate::merkle::{self, Frontier};
use crate::tree::{self, TileError, Tree};
use crate::verify::{Extent, damage, strays, verify_range};
use crate::{
    Detail, DetailView, EventType, Layout, LedgerConfig, LedgerError, Located, Origin, Problem,
    Record, SigningKey, VerifyingKey, salvage, store, trim,
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
    /// Root of the tree over them: from now on they are sealed by the new segment's first entry.
    pub salvaged_root: Digest,
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
    if let Some(unfinished) = Unfinished::read(layout)? {
        let next = layout.segment(unfinished.next());
        if unfinished.is_of(active, &memory) && (!next.exists() || is_unwritten(&next)) {
            let found = unfinished.found();
            return set_aside(config, &memory, unfinished, found);
        }
        files::remove(&layout.unfinished())?;
    }
    let problem = match (active, &memory) {
        (None, Memory::None) => return begin(config, 1, config.origin.kernel_id.clone(), None),
        // Signed before the first entry: the start was interrupted, and nothing was promised.
        (None, Memory::Of { segment, checkpoint }) if checkpoint.size == 0 => {
            let kernel_id = kernel_of(checkpoint, config);
            return begin(config, *segment, kernel_id, None);
        }
        (Some(1), Memory::Of { segment: 1, checkpoint })
            if checkpoint.size == 0 && is_unwritten(&layout.segment(1)) =>
        {
            return begin(config, 1, kernel_of(checkpoint, config), None);
        }
        (None, _) => Located::nowhere(Problem::LedgerMissing),
        (Some(_), Memory::None) => Located::nowhere(Problem::CheckpointMissing),
        (Some(_), Memory::Forged(why)) => Located::nowhere(Problem::CheckpointForged(why.clone())),
        (Some(active), Memory::Of { segment, checkpoint }) if active == *segment => {
            match inspect(layout, active, checkpoint)? {
                Ok(opened) => return Ok(opened),
                Err(found) => found,
            }
        }
        (Some(active), Memory::Of { segment, .. }) => outdated(*segment, active),
    };
    let segment = active.max(memory.segment()).unwrap_or(1);
    set_aside(config, &memory, Unfinished::new(segment, &problem), problem)
}

/// The problem of a memory that is not of the newest segment. A segment is remembered before it is
/// begun, so neither can be newer than the other.
pub(crate) fn outdated(remembered: u32, newest: u32) -> Located {
    Located::nowhere(if remembered > newest {
        Problem::LedgerMissing
    } else {
        Problem::CheckpointForged(format!("it is of segment {remembered}, not of {newest}"))
    })
}

impl Memory {
    fn segment(&self) -> Option<u32> {
        match self {
            Self::Of { segment, .. } => Some(*segment),
            Self::None | Self::Forged(_) => None,
        }
    }
}

/// Damage that is being set aside: enough to go on after an interruption.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Unfinished {
    segment: u32,
    seq: Option<u64>,
    problem: String,
    /// What came of salvaging, once it is done.
    salvaged: Option<Salvaged>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Salvaged {
    size: u64,
    root: Digest,
    source: salvage::Source,
    kernel_id: String,
    /// Name of the damaged file.
    kept: Option<String>,
}

impl Unfinished {
    fn new(segment: u32, found: &Located) -> Self {
        Self { segment, seq: found.seq, problem: found.problem.to_string(), salvaged: None }
    }

    fn read(layout: &Layout) -> Result<Option<Self>, LedgerError> {
        let text = files::read_small(&layout.unfinished(), CHECKPOINT_LIMIT)?;
        // What nobody wrote names no segment, and is taken away.
        Ok(text.map(|text| {
            serde_json::from_str(&text).unwrap_or_else(|error| Self {
                segment: 0,
                seq: None,
                problem: error.to_string(),
                salvaged: None,
            })
        }))
    }

    fn write(&self, layout: &Layout) -> Result<(), LedgerError> {
        let text = serde_json::to_vec(self).map_err(|e| LedgerError::Damaged(e.to_string()))?;
        files::replace(&layout.unfinished(), &text, Durability::Synced)
    }

    /// The segment that is begun in place of the damaged one.
    fn next(&self) -> u32 {
        self.segment.saturating_add(1)
    }

    /// Whether this is about the newest segment there is or was.
    fn is_of(&self, active: Option<u32>, memory: &Memory) -> bool {
        let newest = active.max(memory.segment()).unwrap_or(1);
        self.segment > 0 && (self.segment == newest || self.next() == newest)
    }

    fn found(&self) -> Located {
        Located { seq: self.seq, problem: Problem::Format(self.problem.clone()) }
    }
}

/// Whether the making of a file was interrupted before its first entry.
fn is_unwritten(path: &Path) -> bool {
    let objects = |connection: &Connection| {
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))
    };
    let Ok(connection) = store::open_reader(path) else { return false };
    match objects(&connection) {
        Ok(0) => true,
        Ok(_) => {
            matches!(store::schema_problem(&connection), Ok(None))
                && matches!(store::size(&connection), Ok(0))
        }
        // What would take its making back is there: the file got its log later, and had no entry before.
        Err(_) => journal_of(path).exists(),
    }
}

/// Where SQLite keeps what it would take back, in a file that has no log yet.
fn journal_of(path: &Path) -> PathBuf {
    beside(path, "-journal")
}

/// Reads the remembered checkpoint.
pub(crate) fn recall(layout: &Layout, key: &VerifyingKey) -> Result<Memory, LedgerError> {
    let Some(text) = files::read_small(layout.remembered(), CHECKPOINT_LIMIT)? else {
        return Ok(Memory::None);
    };
    let genuine = SignedCheckpoint::parse(&text).and_then(|signed| signed.verify(key));
    Ok(match genuine {
        Err(error) => Memory::Forged(error.to_string()),
        Ok(checkpoint) => match origin_parts(&checkpoint.origin) {
            Some((_, segment)) => Memory::Of { segment, checkpoint },
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
    let bytes = std::fs::metadata(&from).map_err(LedgerError::file("look at", &from))?.len();
    let newest = layout.snapshots(segment)?.into_iter().next();
    let newest = newest.and_then(|path| Some(std::fs::metadata(path).ok()?.len()));
    if !is_worth_a_snapshot(bytes, newest) {
        return Ok(());
    }
    let mut unfinished = to.clone();
    unfinished.set_extension("new");
    let mut copy = files::private(&unfinished).map_err(LedgerError::file("write", &unfinished))?;
    std::fs::File::open(&from)
        .and_then(|mut file| std::io::copy(&mut file, &mut copy))
        .map_err(LedgerError::file("copy", &from))?;
    files::rename(&unfinished, &to)?;
    layout.prune_snapshots(SNAPSHOTS)
}

/// Whether a database of so many bytes is copied, the newest copy being so large. Small ones always
/// are; a large one once an eighth has been added, so that the end of a short session does not copy a
/// gigabyte. What damage takes from such a ledger is what has come since the last copy, and the
/// damaged file itself is salvaged up to its first fault in any case.
fn is_worth_a_snapshot(bytes: u64, newest: Option<u64>) -> bool {
    const SMALL: u64 = 64 << 20;
    bytes <= SMALL || newest.is_none_or(|newest| bytes < newest || bytes - newest >= newest / 8)
}

/// Opens an existing segment and checks it; `Err` inside is damage.
fn inspect(
    layout: &Layout,
    segment: u32,
    promised: &Checkpoint,
) -> Result<Result<Opened, Located>, LedgerError> {
    examine(layout, segment, promised).or_else(|error| Ok(Err(Located::nowhere(damage(error)?))))
}

/// Checks a segment by reading only, and opens it for writing once it is found intact.
fn examine(
    layout: &Layout,
    segment: u32,
    promised: &Checkpoint,
) -> Result<Result<Opened, Located>, LedgerError> {
    let path = layout.segment(segment);
    let connection = store::open_reader(&path)?;
    let reading = LedgerError::database;
    if let Some(problem) = store::schema_problem(&connection).map_err(reading("reading"))? {
        return Ok(Err(Located::nowhere(Problem::Database(problem))));
    }
    if let Some(problem) = store::settings_problem(&connection).map_err(reading("reading"))? {
        return Ok(Err(locate(&connection, Problem::Database(problem))?));
    }
    let size = store::size(&connection).map_err(reading("reading"))?;
    let mark = files::read_small(&layout.clean_mark(), CHECKPOINT_LIMIT)?;
    if mark != Some(clean_text(size)) {
        // The last writer did not end in order: the file itself is checked first.
        let verdict: String = connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(reading("checking the file"))?;
        if verdict != "ok" {
            return Ok(Err(locate(&connection, Problem::Database(verdict))?));
        }
    }
    let frontier = match tree::restore(&connection, size) {
        Ok(frontier) => frontier,
        Err(error) => return Ok(Err(locate(&connection, tile_problem(error)?)?)),
    };
    if let Some(problem) = hold_against(&Tree::open(&path)?, &frontier, promised)? {
        return Ok(Err(locate(&connection, problem)?));
    }
    if let Some(found) = unexplained_gap(&connection)? {
        return Ok(Err(found));
    }
    let first = if size <= SMALL { 0 } else { (size - TAIL) / 32 * 32 };
    if let Some(found) = verify_range(&connection, first..size)?.into_iter().next() {
        return Ok(Err(found));
    }
    if let Some(found) = strays(&connection, size)?.into_iter().next() {
        return Ok(Err(found));
    }
    let Some(kernel_id) = stored_kernel_id(&connection)? else {
        return Ok(Err(Located::nowhere(Problem::Protocol("it has no first entry".to_owned()))));
    };
    if checkpoint_origin(&kernel_id, segment) != promised.origin {
        return Ok(Err(Located::nowhere(Problem::Protocol("it is another ledger".to_owned()))));
    }
    let head = store::hash_before(&connection, size)?;
    drop(connection);
    let connection = store::open_writer(&path)?;
    if let Some(problem) = store::writing_problem(&connection, &path)? {
        return Ok(Err(Located::nowhere(Problem::Database(problem))));
    }
    Ok(Ok(Opened { segment, connection, frontier, head, kernel_id, broken: None }))
}

/// Entries that are not there although none says that they have left.
fn unexplained_gap(connection: &Connection) -> Result<Option<Located>, LedgerError> {
    let first = trim::first_row(connection).map_err(LedgerError::database("reading"))?;
    let Some(until) = first.filter(|first| *first > 1) else { return Ok(None) };
    let explained = trim::Trim::of(connection)?.is_some();
    Ok((!explained).then(|| Located::at(1, Problem::Missing { until })))
}

/// A broken promise names no entry; the first entry that fails its own check does, if there is one.
fn locate(connection: &Connection, problem: Problem) -> Result<Located, LedgerError> {
    let extent = Extent::of(connection)?;
    let first = verify_range(connection, 0..extent.judged)?.into_iter().next();
    Ok(match (first.or(extent.gap), &problem) {
        (Some(found), _) => found,
        (None, Problem::Truncated { found, .. }) => Located::at(*found, problem),
        (None, _) => Located::nowhere(problem),
    })
}

pub(crate) fn tile_problem(error: TileError) -> Result<Problem, LedgerError> {
    match error {
        TileError::Row(error) => damage(error.into()),
        TileError::Missing(_) | TileError::Damaged(_) => Ok(Problem::Database(error.to_string())),
    }
}

/// What the mark of an orderly end says. It names the size, so that one whose removal was lost is
/// not believed.
pub(crate) fn clean_text(size: u64) -> String {
    format!("{size}\n")
}

/// The kernel that wrote the first entry.
fn stored_kernel_id(connection: &Connection) -> Result<Option<KernelId>, LedgerError> {
    let detail: Vec<u8> =
        match connection.query_row("SELECT detail FROM entries WHERE seq = 0", [], |r| r.get(0)) {
            Ok(detail) => detail,
            Err(rusqlite::Error::QueryReturnedNoRows) => return Ok(None),
            Err(error) => return Err(LedgerError::database("reading")(error)),
        };
    Ok(DetailView::kernel_in(&detail))
}

/// Starts a segment. The checkpoint of size 0 is remembered first, so that an interrupted start is
/// told from a strange file, and the first entry at last: from then on, a missing ledger is noticed.
fn begin(
    config: &LedgerConfig,
    segment: u32,
    kernel_id: KernelId,
    broken: Option<Break>,
) -> Result<Opened, LedgerError> {
    let origin = checkpoint_origin(&kernel_id, segment);
    let empty = Checkpoint { origin: origin.clone(), size: 0, root: merkle::empty_root() };
    remember(config, &empty)?;
    let path = config.layout.segment(segment);
    files::remove(&journal_of(&path))?;
    drop(files::private(&path).map_err(LedgerError::file("make", &path))?);
    let connection = store::open_writer(&path)?;
    store::create_schema(&connection)?;
    let mut chain = crate::chain::Chain::new(Digest::GENESIS, Frontier::default());
    let writer = Origin { kernel_id: kernel_id.clone(), ..config.origin.clone() };
    chain.push(first_record(config, writer, segment, broken.as_ref()), None);
    store::insert(&connection, chain.take_pending(), Vec::new)
        .map_err(LedgerError::database("writing the first entry"))?;
    let wal = wal_of(&path);
    std::fs::File::open(&wal)
        .and_then(|wal| wal.sync_all())
        .map_err(LedgerError::file("sync", &wal))?;
    files::sync_parent(&path)?;
    let frontier = chain.frontier().clone();
    remember(config, &Checkpoint { origin, size: frontier.size(), root: frontier.root() })?;
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
    put("salvaged_root", broken.salvaged_root.to_string());
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
    memory: &Memory,
    mut unfinished: Unfinished,
    found: Located,
) -> Result<Opened, LedgerError> {
    let layout = &config.layout;
    let salvaged = match unfinished.salvaged.take() {
        Some(salvaged) => salvaged,
        None => {
            unfinished.write(layout)?;
            salvage_segment(config, memory, unfinished.segment)?
        }
    };
    unfinished.salvaged = Some(salvaged.clone());
    unfinished.write(layout)?;
    let broken = Break {
        segment: unfinished.segment,
        found,
        salvaged: salvaged.size,
        salvaged_root: salvaged.root,
        source: salvaged.source.name(),
        kept: salvaged.kept.map(|name| layout.dir().join("damaged").join(name)),
    };
    let named = KernelId::named(&salvaged.kernel_id);
    let kernel_id = named.unwrap_or_else(|| config.origin.kernel_id.clone());
    let opened = begin(config, unfinished.next(), kernel_id, Some(broken))?;
    files::remove(&layout.unfinished())?;
    Ok(opened)
}

/// Moves what is there of a segment out of the way, and puts what can be believed in its place.
fn salvage_segment(
    config: &LedgerConfig,
    memory: &Memory,
    segment: u32,
) -> Result<Salvaged, LedgerError> {
    let layout = &config.layout;
    let promised = match memory {
        Memory::Of { segment: of, checkpoint } if *of == segment => Some(checkpoint),
        Memory::Of { .. } | Memory::None | Memory::Forged(_) => None,
    };
    if layout.segment(segment).exists() {
        keep(layout, segment)?;
    }
    let best = salvage::best(layout, segment, promised)?;
    if let Some(best) = &best {
        salvage::write(best, &layout.segment(segment))?;
    }
    let promised_kernel = promised.map(|checkpoint| kernel_of(checkpoint, config));
    let found_kernel = best.as_ref().and_then(|best| best.kernel_id.clone());
    let kernel_id = promised_kernel.or(found_kernel);
    Ok(Salvaged {
        size: best.as_ref().map_or(0, |best| best.size),
        root: best.as_ref().map_or_else(merkle::empty_root, |best| best.root),
        source: best.as_ref().map_or(salvage::Source::Nowhere, |best| best.source),
        kernel_id: kernel_id.unwrap_or_else(|| config.origin.kernel_id.clone()).to_string(),
        kept: layout
            .damaged_of(segment)?
            .first()
            .and_then(|path| path.file_name()?.to_str().map(str::to_owned)),
    })
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
    files::remove(&beside(&from, "-shm"))?;
    files::sync_parent(&to)?;
    Ok(to)
}

/// Kernel and segment in a name that [`checkpoint_origin`] made.
pub(crate) fn origin_parts(origin: &str) -> Option<(&str, u32)> {
    let (kernel, segment) = origin.strip_prefix("fluffy/")?.rsplit_once('/')?;
    Some((kernel, segment.parse().ok()?))
}

/// The kernel that a checkpoint's origin names.
fn kernel_of(checkpoint: &Checkpoint, config: &LedgerConfig) -> KernelId {
    let named = origin_parts(&checkpoint.origin).and_then(|(name, _)| KernelId::named(name));
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

#[cfg(test)]
mod tests {
    use super::is_worth_a_snapshot;

    #[test]
    fn rec_2_a_large_ledger_is_copied_when_an_eighth_was_added_and_a_small_one_always() {
        const MIB: u64 = 1 << 20;
        assert!(is_worth_a_snapshot(MIB, Some(MIB)));
        assert!(is_worth_a_snapshot(800 * MIB, None));
        assert!(!is_worth_a_snapshot(800 * MIB, Some(800 * MIB)));
        assert!(!is_worth_a_snapshot(899 * MIB, Some(800 * MIB)));
        assert!(is_worth_a_snapshot(900 * MIB, Some(800 * MIB)));
        // One that was archived and made compact is another file.
        assert!(is_worth_a_snapshot(400 * MIB, Some(800 * MIB)));
    }
}
