//! The forge's memory: what became of every skill, and which of them is trusted.
//!
//! ```text
//! ledger ── entries, proved ──► fold ──► tables.db (lists, history, log)
//!    ▲                            │  └──► registry.yaml in the project
//!    └── record: legal, then noted┘       artifacts/ by hash
//! ```
//!
//! **Invariant.** The entry is the commit point: tables and registry follow from it, at once or at the next opening.
//!
//! **Invariant.** Whether a skill is trusted, and whether an entry may follow, is answered from entries that were read in
//! the ledger and proved there. The tables say where to look, and are caught if they leave something out.

mod artifacts;
mod copies;
mod files;
mod fold;
mod promote;
mod propose;
mod reading;
mod registry;
mod schema;
mod tables;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fluffy_base::Digest;
use fluffy_kernel::{
    Appended, EventType, Journal, Layout, LedgerError, Note, NotesError, ToolError, VerifyingKey,
};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use serde_json::{Value, json};

use crate::{Proposal, Sealed, SideEffect, SkillEntry, SkillName, Standing};

pub use artifacts::{ArtifactError, ArtifactKind, Artifacts};
pub use fold::{
    Build, BuildEnded, Illegal, Promotion, Proposed, Research, Revocation, Skill, Verification,
    apply,
};
pub use promote::{SealError, read_sealed};
pub use propose::ProposalError;
pub use registry::RegistryError;

/// The version of what is written into the ledger.
const VERSION: u64 = 1;
/// The largest entry.
const MAX_ENTRY: usize = 8 << 20;

/// Where an entry says what it is.
const KIND: &str = "skill_entry";
/// Where it names the digest of those before it.
const CHAIN: &str = "skill_chain";

/// What a shelf is made of.
#[derive(Debug, Clone)]
pub struct ShelfOptions {
    /// The project's ledger.
    pub layout: Layout,
    /// The key that signs it.
    pub key: VerifyingKey,
    /// The forge's directory in the project's state.
    pub dir: PathBuf,
    /// The project's root.
    pub project: PathBuf,
    /// Hash of the base class and the runner that this program ships.
    pub base: Digest,
}

/// The forge's memory of one project.
#[derive(Debug)]
pub struct Shelf {
    options: ShelfOptions,
    artifacts: Artifacts,
    /// Held while something is recorded: one writer in this process, and the tables' own lock among processes.
    tables: Mutex<Connection>,
}

/// A skill in a list, as the tables have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// What it is called.
    pub name: SkillName,
    /// How far it is.
    pub standing: Standing,
    /// What it does.
    pub description: String,
    /// What running it can do to the world.
    pub side_effect: SideEffect,
    /// How often it was built.
    pub attempts: u32,
    /// Who promoted it, of a trusted one.
    pub approved_by: Option<String>,
    /// Number of the entry that changed it last.
    pub changed_seq: u64,
    /// When, in milliseconds since the epoch.
    pub changed_ms: u64,
}

/// Something that happened to a skill, as the tables have it.
#[derive(Debug, Clone, PartialEq)]
pub struct Past {
    /// Number of the entry.
    pub seq: u64,
    /// When, in milliseconds since the epoch.
    pub ts_ms: u64,
    /// Whether it was legal, and counts.
    pub counts: bool,
    /// What.
    pub entry: SkillEntry,
}

/// A run of a skill.
#[derive(Debug, Clone, PartialEq)]
pub struct Execution {
    /// Its id.
    pub id: String,
    /// Number of the entry.
    pub seq: u64,
    /// When, in milliseconds since the epoch.
    pub ts_ms: u64,
    /// Which skill.
    pub name: SkillName,
    /// The run that it follows.
    pub parent: Option<String>,
    /// What became of it, as the runner tells it.
    pub record: Value,
}

/// A skill that may run, with all that decides how: read from the ledger and proved.
#[derive(Debug, Clone, PartialEq)]
pub struct Trusted {
    /// What was proposed.
    pub spec: Proposal,
    /// What was verified and promoted.
    pub sealed: Sealed,
    /// The verification.
    pub verification: String,
    /// Who promoted it.
    pub by: String,
    /// The entry of the promotion.
    pub entry: Appended,
}

/// Why the forge's memory cannot answer, or does not take an entry.
#[derive(Debug, thiserror::Error)]
pub enum ShelfError {
    /// A file of the forge cannot be used.
    #[error("the forge's {what} cannot be used")]
    File {
        /// Which.
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The tables cannot be asked.
    #[error(
        "the forge's tables cannot be used: remove `tables.db` of the forge, it is made again from the ledger"
    )]
    Tables(#[from] rusqlite::Error),
    /// Rows that nobody wrote.
    #[error(
        "the forge's tables are damaged ({0}): remove `tables.db` of the forge, it is made again from the ledger"
    )]
    Damaged(String),
    /// A newer program made the tables.
    #[error(
        "the forge's tables are of version {found}, and this program knows {known}: update it, or remove `tables.db`"
    )]
    Newer {
        /// What is there.
        found: usize,
        /// What is known.
        known: usize,
    },
    /// The ledger does not hold.
    #[error(transparent)]
    Notes(#[from] NotesError),
    /// The ledger cannot be looked at.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// An entry that this program cannot read.
    #[error(
        "entry {seq} of the ledger cannot be read as a skill's: a newer version may have written it"
    )]
    Entry {
        /// Its number.
        seq: u64,
        /// Why not.
        source: serde_json::Error,
    },
    /// An entry that nobody wrote through the forge, or tables that leave something out.
    #[error(
        "what the forge's tables say about entry {0} is not what the ledger has: remove `tables.db` of the forge, it is made again"
    )]
    Strange(u64),
    /// The entry is not held any more.
    #[error(
        "entry {seq}, on which skill `{name}` stands, was deleted by the ledger's retention: revoke the skill and build it again"
    )]
    Gone {
        /// The skill.
        name: SkillName,
        /// The entry.
        seq: u64,
    },
    /// The entry may not follow.
    #[error(transparent)]
    Illegal(#[from] Illegal),
    /// What is proposed is no skill.
    #[error(transparent)]
    Proposal(#[from] ProposalError),
    /// There is no such skill.
    #[error("there is no skill `{0}`: `fluffy skill list` names them all")]
    Unknown(SkillName),
    /// It is not trusted.
    #[error("skill `{name}` is {}: only a TRUSTED skill runs, see `fluffy skill show {name}`", .standing.name())]
    Untrusted {
        /// The skill.
        name: SkillName,
        /// Where it stands.
        standing: Standing,
    },
    /// It was verified with another base.
    #[error(
        "skill `{0}` was verified on another version of the skills' base: revoke it, then build, verify and promote it again"
    )]
    OtherBase(SkillName),
    /// The project's files are not what was verified.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The registry is not what the ledger says.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// There is no such run.
    #[error("there is no run `{0}` in the ledger")]
    NoExecution(String),
    /// An id that is taken.
    #[error("run `{0}` is recorded already")]
    ExecutionTaken(String),
    /// It is too large.
    #[error("an entry of {0} bytes is not recorded: the most is {max} MiB", max = MAX_ENTRY >> 20)]
    Large(usize),
    /// It cannot be written.
    #[error("it cannot be written")]
    Written(#[source] serde_json::Error),
    /// The kernel does not record it.
    #[error(transparent)]
    Journal(#[from] ToolError),
    /// An artifact cannot be kept.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// It is recorded, and what follows from it is not done yet.
    #[error("entry {} is recorded; what follows from it will be done at the next opening", .appended.seq)]
    Recorded {
        /// Where.
        appended: Appended,
        /// What failed.
        source: Box<ShelfError>,
    },
}

impl Shelf {
    /// Opens the forge's memory of a project and catches up with the ledger.
    pub fn open(options: ShelfOptions) -> Result<Self, ShelfError> {
        let file = |what| move |source| ShelfError::File { what, source };
        files::private_dir(&options.dir).map_err(file("directory"))?;
        files::private_dir(&options.dir.join("entries")).map_err(file("directory"))?;
        let artifacts = Artifacts::open(&options.dir.join("artifacts"))?;
        let tables = Mutex::new(tables::open(&options.dir.join("tables.db"))?);
        let shelf = Self { options, artifacts, tables };
        shelf.refresh()?;
        Ok(shelf)
    }

    /// The same for whoever only looks: the project's registry is left as it is.
    pub fn look(options: ShelfOptions) -> Result<Self, ShelfError> {
        let artifacts = Artifacts::open(&options.dir.join("artifacts"))?;
        let tables = Mutex::new(tables::open(&options.dir.join("tables.db"))?);
        let shelf = Self { options, artifacts, tables };
        let mut tables = shelf.tables();
        let transaction = begin(&mut tables)?;
        shelf.catch_up(&transaction)?;
        transaction.commit()?;
        drop(tables);
        Ok(shelf)
    }

    /// What is kept by hash.
    pub fn artifacts(&self) -> &Artifacts {
        &self.artifacts
    }

    /// A directory of the forge's own for what exists as long as one run.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.options.dir.join("sight")
    }

    /// The project's root.
    pub fn project(&self) -> &Path {
        &self.options.project
    }

    /// Hash of the base class and the runner that this program ships.
    pub fn base(&self) -> Digest {
        self.options.base
    }

    /// Catches up with the ledger, and with the registry where a process died before it was written.
    pub fn refresh(&self) -> Result<(), ShelfError> {
        let mut tables = self.tables();
        let transaction = begin(&mut tables)?;
        self.catch_up(&transaction)?;
        transaction.commit()?;
        self.settle_registry(&mut tables)
    }

    /// Makes the tables again from nothing but the ledger.
    pub fn rebuild_tables(&self) -> Result<(), ShelfError> {
        let mut tables = self.tables();
        let transaction = begin(&mut tables)?;
        tables::clear(&transaction)?;
        self.catch_up(&transaction)?;
        transaction.commit()?;
        self.settle_registry(&mut tables)
    }

    /// Records what happens to a skill, if it is legal where the skill stands. When this returns, it has happened.
    pub fn record(
        &self,
        journal: &dyn Journal,
        entry: &SkillEntry,
    ) -> Result<Appended, ShelfError> {
        let mut tables = self.tables();
        let transaction = begin(&mut tables)?;
        self.catch_up(&transaction)?;
        let chain = self.vouch(&transaction)?;
        let mut skill = self.proved(&transaction, entry.name())?.map(|(skill, _)| skill);
        apply(&mut skill, u64::MAX, entry)?;
        self.check_run(&transaction, entry)?;
        let note = note(entry, &chain)?;
        step()?;
        let appended = journal.record(note)?;
        let follow = |transaction: Transaction<'_>| -> Result<(), ShelfError> {
            step()?;
            self.catch_up(&transaction)?;
            transaction.commit()?;
            step()
        };
        follow(transaction)
            .and_then(|()| self.settle_registry(&mut tables))
            .map_err(|error| ShelfError::Recorded { appended, source: Box::new(error) })?;
        Ok(appended)
    }

    /// All skills, by name.
    pub fn skills(&self) -> Result<Vec<Listed>, ShelfError> {
        tables::listed(&self.tables())
    }

    /// A skill with all its builds, verifications and promotions, proved.
    pub fn skill(&self, name: &SkillName) -> Result<Skill, ShelfError> {
        let mut tables = self.tables();
        let transaction = begin(&mut tables)?;
        self.catch_up(&transaction)?;
        self.vouch(&transaction)?;
        let skill = self.proved(&transaction, name)?;
        transaction.commit()?;
        skill.map(|(skill, _)| skill).ok_or_else(|| ShelfError::Unknown(name.clone()))
    }

    /// Whether a skill may run, and as what: from the ledger's own entries. A registry that says something else refuses it.
    pub fn trusted(&self, name: &SkillName) -> Result<Trusted, ShelfError> {
        let mut tables = self.tables();
        let transaction = begin(&mut tables)?;
        self.catch_up(&transaction)?;
        self.vouch(&transaction)?;
        let proved = self.proved(&transaction, name)?;
        transaction.commit()?;
        self.settle_registry(&mut tables)?;
        let (skill, hash) = proved.ok_or_else(|| ShelfError::Unknown(name.clone()))?;
        let Some(promotion) = skill.promotion() else {
            return Err(ShelfError::Untrusted { name: name.clone(), standing: skill.standing });
        };
        let entry = Appended { seq: promotion.seq, entry_hash: hash };
        registry::agrees_on(&self.options.project, &skill, &entry)?;
        if promotion.sealed.base != self.options.base {
            return Err(ShelfError::OtherBase(name.clone()));
        }
        Ok(Trusted {
            spec: skill.proposal.spec.clone(),
            sealed: promotion.sealed.clone(),
            verification: promotion.verification.clone(),
            by: promotion.by.clone(),
            entry,
        })
    }

    /// What happened to a skill, the first first, without its runs.
    pub fn history(&self, name: &SkillName) -> Result<Vec<Past>, ShelfError> {
        let past = tables::history(&self.tables(), name)?;
        if past.is_empty() { Err(ShelfError::Unknown(name.clone())) } else { Ok(past) }
    }

    /// The newest runs of one skill or of all, the newest first.
    pub fn log(&self, name: Option<&SkillName>, limit: u64) -> Result<Vec<Execution>, ShelfError> {
        tables::executions(&self.tables(), name, limit)
    }

    /// One run, read from the ledger and proved: what may be replayed.
    pub fn execution(&self, id: &str) -> Result<Execution, ShelfError> {
        let mut tables = self.tables();
        let transaction = begin(&mut tables)?;
        self.catch_up(&transaction)?;
        let found = self.proved_run(&transaction, id)?;
        transaction.commit()?;
        found.ok_or_else(|| ShelfError::NoExecution(shown(id)))
    }

    /// A run and those that it follows, itself first, all proved. Each is older than the one before it, so that this ends.
    pub fn lineage(&self, id: &str) -> Result<Vec<Execution>, ShelfError> {
        let mut lineage = vec![self.execution(id)?];
        while let Some(parent) = lineage.last().and_then(|last| last.parent.clone()) {
            let before = lineage.last().map_or(0, |last| last.seq);
            match self.execution(&parent) {
                Ok(parent) if parent.seq < before => lineage.push(parent),
                Ok(parent) => return Err(ShelfError::Strange(parent.seq)),
                // Retention deletes the oldest first.
                Err(ShelfError::NoExecution(_)) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(lineage)
    }

    /// A run is recorded once, and follows one that was.
    fn check_run(&self, tables: &Connection, entry: &SkillEntry) -> Result<(), ShelfError> {
        let SkillEntry::Ran { execution, parent, .. } = entry else { return Ok(()) };
        if tables::execution_seq(tables, execution)?.is_some() {
            return Err(ShelfError::ExecutionTaken(execution.clone()));
        }
        let Some(parent) = parent else { return Ok(()) };
        let found = self.proved_run(tables, parent)?;
        found.map(drop).ok_or_else(|| ShelfError::NoExecution(parent.clone()))
    }

    /// An id that nobody has: of what it names, and of all that happened before it.
    fn id(&self, what: &str, artifact: &Digest) -> Result<String, ShelfError> {
        let folded = tables::folded(&self.tables())?;
        let before = folded.map_or(Digest::GENESIS, |folded| folded.entry_hash);
        let parts: [&[u8]; 3] = [what.as_bytes(), before.as_bytes(), artifact.as_bytes()];
        let digest = Digest::of_parts(&parts).to_string();
        Ok(format!("{what}-{}", digest.get(..16).unwrap_or_default()))
    }

    fn tables(&self) -> MutexGuard<'_, Connection> {
        // What a panicking thread left undone, its transaction took back.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn begin(tables: &mut Connection) -> Result<Transaction<'_>, ShelfError> {
    Ok(tables.transaction_with_behavior(TransactionBehavior::Immediate)?)
}

/// The note for the ledger.
fn note(entry: &SkillEntry, chain: &Digest) -> Result<Note, ShelfError> {
    let written = serde_json::to_value(entry).map_err(ShelfError::Written)?;
    let content = json!({ "v": VERSION, "entry": written });
    let bytes = content.to_string().len();
    if bytes > MAX_ENTRY {
        return Err(ShelfError::Large(bytes));
    }
    let (kind, name) = (entry.kind().to_owned(), entry.name().to_string());
    let metadata = vec![(KIND, kind), ("skill", name), (CHAIN, chain.to_string())];
    Ok(Note {
        event: EventType::Skill,
        intent: format!("skill {}: {}", entry.name(), entry.kind()),
        request_id: None,
        workflow_state: None,
        metadata,
        content: Some(content),
    })
}

fn step() -> Result<(), ShelfError> {
    files::step().map_err(|source| ShelfError::File { what: "process", source })
}

/// As much of what somebody named as is told back.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(64).collect()
}
