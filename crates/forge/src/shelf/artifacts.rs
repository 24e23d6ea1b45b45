//! What the forge keeps for good: files named by the hash of their bytes.
//!
//! **Invariant.** A name is the SHA-256 of what lies under it: written beside, synced and linked to its name, never
//! overwritten, and hashed again whenever it is read.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use fluffy_base::Digest;

use super::files;

/// The largest artifact.
const MAX_BYTES: u64 = 64 << 20;

/// What an artifact is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArtifactKind {
    /// A proposal as it was made.
    SkillSpec,
    /// All that a builder is given.
    BuildPacket,
    /// What a builder said.
    BuildLog,
    /// What the gates said, with all they printed.
    VerificationReport,
    /// What was found out about a failure.
    ResearchNote,
    /// What a build changed.
    PatchSummary,
    /// Anything else, such as a file that a build left.
    Note,
}

/// A directory of artifacts.
#[derive(Debug)]
pub struct Artifacts {
    dir: PathBuf,
    /// So that two threads never write beside under one name.
    written: AtomicU64,
}

/// Why an artifact could not be kept or given back.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// The directory cannot be used.
    #[error("the directory of artifacts cannot be used")]
    Directory(#[source] io::Error),
    /// It cannot be written.
    #[error("artifact `{digest}` cannot be kept")]
    Write {
        /// Which.
        digest: Digest,
        /// Why not.
        source: io::Error,
    },
    /// It cannot be read.
    #[error("artifact `{digest}` cannot be read")]
    Read {
        /// Which.
        digest: Digest,
        /// Why not.
        source: io::Error,
    },
    /// It is not there.
    #[error("artifact `{0}` is missing: put its file back, or do the step again that made it")]
    Missing(Digest),
    /// What lies there is something else.
    #[error(
        "artifact `{0}` was changed on disk: remove the file and do the step again that made it"
    )]
    Changed(Digest),
    /// It is too large.
    #[error("an artifact of {0} bytes is not kept: the most is {max} MiB", max = MAX_BYTES >> 20)]
    Large(u64),
}

impl ArtifactKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::SkillSpec,
        Self::BuildPacket,
        Self::BuildLog,
        Self::VerificationReport,
        Self::ResearchNote,
        Self::PatchSummary,
        Self::Note,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SkillSpec => "SKILL_SPEC",
            Self::BuildPacket => "BUILD_PACKET",
            Self::BuildLog => "BUILD_LOG",
            Self::VerificationReport => "VERIFICATION_REPORT",
            Self::ResearchNote => "RESEARCH_NOTE",
            Self::PatchSummary => "PATCH_SUMMARY",
            Self::Note => "NOTE",
        }
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl Artifacts {
    /// The artifacts in this directory, which is made if need be, private to the user.
    pub fn open(dir: &Path) -> Result<Self, ArtifactError> {
        files::private_dir(dir).map_err(ArtifactError::Directory)?;
        Ok(Self { dir: dir.to_owned(), written: AtomicU64::new(0) })
    }

    /// Keeps bytes for good; the same bytes are kept once. What it is, the entry says that names it.
    pub fn put(&self, _kind: ArtifactKind, bytes: &[u8]) -> Result<Digest, ArtifactError> {
        let length = bytes.len() as u64;
        if length > MAX_BYTES {
            return Err(ArtifactError::Large(length));
        }
        let digest = Digest::of(bytes);
        match self.get(&digest) {
            Ok(_kept) => return Ok(digest),
            Err(ArtifactError::Missing(_)) => {}
            Err(error) => return Err(error),
        }
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let beside = format!(".{}-{number}.new", std::process::id());
        let dir = files::open_dir(&self.dir).map_err(ArtifactError::Directory)?;
        files::put_new(&dir, &beside, &digest.to_string(), bytes)
            .map_err(|source| ArtifactError::Write { digest, source })?;
        // Whoever was quicker may have left something else under the name.
        self.get(&digest).map(|_kept| digest)
    }

    /// The bytes under a hash, which they have.
    pub fn get(&self, digest: &Digest) -> Result<Vec<u8>, ArtifactError> {
        let digest = *digest;
        let found = files::read(&self.dir.join(digest.to_string()), MAX_BYTES);
        match found.map_err(|source| ArtifactError::Read { digest, source })? {
            None => Err(ArtifactError::Missing(digest)),
            Some(bytes) if Digest::of(&bytes) == digest => Ok(bytes),
            Some(_) => Err(ArtifactError::Changed(digest)),
        }
    }
}
