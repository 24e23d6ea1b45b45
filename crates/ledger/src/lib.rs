//! Remember: an append-only, hash-chained ledger that an outsider can verify.
//!
//! [`Ledger`] appends; [`verify_bytes`], [`verify_protocol`] and [`verify_bundle`] check; [`Query`]
//! reads; [`export`] hands evidence to others. The chain's formula is the one of `DESIGN`, field for
//! field, so that a verifier that shares no code with this one comes to the same hashes.
//!
//! **Invariant.** There is no way to change an entry: no function here updates a row. Rows leave the
//! database only once they are in an archive that an entry records, and an archive is deleted only by
//! [`RetentionOptions`] and after an entry says so.

mod archive;
mod archive_check;
mod batch;
mod bundle;
mod bundle_reader;
mod chain;
mod checkpoint;
mod codes;
mod detail;
mod encode;
mod entry;
mod error;
mod event;
mod evidence;
mod export;
mod files;
mod finding;
mod group;
mod held;
mod history;
mod housekeeper;
mod key;
mod layout;
mod ledger;
mod merkle;
mod proof;
mod protocol;
mod query;
mod record;
mod recovery;
mod retention;
mod rotation;
mod salvage;
mod segment;
mod storage;
mod store;
mod tree;
mod trim;
mod verify;

pub use archive::ArchiveName;
pub use archive_check::{ArchiveCheck, Pruned};
pub use bundle::{BundleCheck, Signer, verify_bundle};
pub use checkpoint::{Checkpoint, CheckpointError, NoteError, SignedCheckpoint};
pub use detail::{DETAIL_VERSION, Detail, DetailView, Origin, PolicyDecision};
pub use entry::{AuditEntry, EntryView};
pub use error::LedgerError;
pub use event::{Category, EventType};
pub use evidence::EvidenceBundle;
pub use export::{ExportOptions, Exported, export};
pub use finding::{Located, Problem};
pub use history::{Glimpse, Proved, ReadEntry, look_back, prove, prove_copy, prove_one};
pub use key::{
    KeyError, KeyName, KeyTextError, RotationError, SigningKey, VerifyingKey, read_private,
    remove_private, rotate, verify_rotation, write_private,
};
pub use layout::Layout;
pub use ledger::{Entered, Ledger, LedgerConfig, OpenReport};
pub use merkle::{
    ConsistencyError, InclusionError, leaf_hash, verify_consistency, verify_inclusion,
};
pub use proof::{ConsistencyProof, InclusionProof, ProofError};
pub use protocol::{ProtocolCheck, verify_protocol};
pub use query::{Page, Query, StoredRecord, find_entry, input_of};
pub use record::{Appended, Record};
pub use recovery::{Break, load_or_create_key};
pub use retention::{Archived, Deleted, Retained, RetentionOptions};
pub use segment::{Segment, SegmentCheck, verify_segments};
pub use storage::{Storage, StorageLevel};
pub use store::Blob;
pub use verify::{ByteCheck, verify_bytes, verify_structure};
