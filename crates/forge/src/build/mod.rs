//! Builds a skill: somebody else writes it in a throw-away copy of the project, and what they leave is judged.
//!
//! ```text
//! packet ── frozen, by hash ── BuildStarted ── copy ── builder in a sandbox ── compare ── allow ── kept by hash
//!                                                                                              └── BuildEnded
//! ```
//!
//! **Invariant.** Nothing that a builder writes reaches the project here. Files that pass are kept by hash; the gates look
//! at those, and only what they let through is brought back ([`copy_back`]).
//!
//! **Invariant.** What the builder reads is the packet that the ledger names, read back by its hash.
//!
//! **Invariant.** A build that was started has ended in the ledger, or was interrupted; either way the skill is not built
//! unless the entry says so.

mod allow;
mod builder;
mod compare;
mod copy;
mod copy_back;
mod log;
mod packet;
mod scratch;
mod shelving;
mod transcript;
mod unwanted;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fluffy_base::{Digest, IdSource, PathError, ProjectPath, Secret};
use fluffy_kernel::{Journal, Lab, Left, Tree};

pub use allow::{Allowed, Violation};
pub use builder::{Builder, BuilderError, Coder, CoderError, ProgramBuilder, TIME};
pub use compare::{Change, ChangeKind, Patch, Refused, compare};
pub use copy::{Copied, CopyError, CopyLimits, Source, Was, copy};
pub use copy_back::{CopyBack, CopyBackError, copy_back, settle};
pub use packet::{Findings, PacketError, packet};
pub use scratch::{Scratch, ScratchError};
pub use shelving::{BringError, Next, Shelved, Shelving, ShelvingError, bring};
pub use transcript::{Transcript, TranscriptCoder, TranscriptError};
pub use unwanted::Unwanted;

use self::builder::{Given, Worked};
use self::log::Log;
use crate::{ArtifactKind, Attempt, BuildEnd, Pinned, SkillEntry, SkillName};

/// The largest file of a skill.
const MAX_FILE: usize = 1 << 20;

/// What a build is made of.
pub struct BuildOrder<'a> {
    /// Which skill.
    pub name: &'a SkillName,
    /// Who builds.
    pub builder: &'a Builder<'a>,
    /// What the attempt before has taught.
    pub findings: Option<&'a Findings>,
    /// What the policy gate refuses, a line each.
    pub rules: &'a [String],
    /// The builder's keys, by the names of their variables.
    pub keys: &'a [(String, Secret)],
    /// Where programs are looked for.
    pub path: &'a [PathBuf],
    /// The project.
    pub tree: &'a Arc<Tree>,
    /// What the project's rules hide from models.
    pub hidden: &'a dyn Fn(&ProjectPath) -> bool,
    /// How much of the project is copied.
    pub limits: CopyLimits,
    /// The directory in which builds happen.
    pub scratch: &'a Path,
    /// Where the builder runs.
    pub lab: &'a Lab,
    /// What remembers the builder's sandbox.
    pub journal: &'a dyn Journal,
    /// Where ids come from.
    pub ids: &'a dyn IdSource,
}

/// What became of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The build's id.
    pub build: String,
    /// Which attempt it was.
    pub number: u32,
    /// How it ended.
    pub end: BuildEnd,
    /// Its `BUILD_LOG`.
    pub log: Digest,
}

/// Why there was no build, or why it is not known what became of it.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There is no place to build.
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    /// There is no packet.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// The skill's files have no paths.
    #[error(transparent)]
    Path(#[from] PathError),
    /// No randomness.
    #[error("the machine gives no randomness for an id")]
    NoRandomness,
    /// It may not be built now, or nothing can be kept or recorded.
    #[error(transparent)]
    Shelf(ShelvingError),
    /// The summary of changes cannot be written or read.
    #[error("the summary of changes cannot be written or read")]
    Patch(#[from] serde_json::Error),
    /// The log names no summary of changes.
    #[error("the build's log names no summary of changes: build again")]
    NoPatch,
}

/// Builds a skill once. A build that fails is an answer like any other; an error means that there was none, or that it
/// was interrupted.
pub fn build(order: &BuildOrder<'_>, shelf: &dyn Shelving) -> Result<Built, BuildError> {
    let scratch = Scratch::open(order.scratch)?;
    let name = order.name;
    let Next { proposal, number, parent } = shelf.next(name).map_err(BuildError::Shelf)?;
    let allowed = Allowed::of(name)?;
    let text = packet(&proposal, &allowed, number, order.findings, order.rules)?;
    let packet =
        shelf.keep(ArtifactKind::BuildPacket, text.as_bytes()).map_err(BuildError::Shelf)?;
    let build = fresh(order.ids)?;
    let builder = order.builder.name().to_owned();
    let mut log = Log::new(order.keys);
    log.line("build", &build);
    log.line("skill", name.as_str());
    log.line("attempt", &number.to_string());
    log.line("builder", &builder);
    log.line("packet", &packet.to_string());
    let attempt = Attempt { build: build.clone(), number, parent, packet, builder };
    let started = SkillEntry::BuildStarted { name: name.clone(), attempt };
    shelf.record(started).map_err(BuildError::Shelf)?;
    let work = Work { order, shelf, allowed: &allowed, packet };
    let end = work.attempt(&scratch, &mut log)?;
    if let BuildEnd::Failed { kind, why } = &end {
        log.line("failed", &format!("{kind}: {why}"));
    }
    let log = shelf.keep(ArtifactKind::BuildLog, &log.finish()).map_err(BuildError::Shelf)?;
    let (ended, of) = (end.clone(), build.clone());
    let ended = SkillEntry::BuildEnded { name: name.clone(), build: of, end: ended, log };
    shelf.record(ended).map_err(BuildError::Shelf)?;
    Ok(Built { build, number, end, log })
}

/// What the build changed whose log this is.
pub fn patch_of(shelf: &dyn Shelving, log: &Digest) -> Result<Patch, BuildError> {
    let log = shelf.artifact(log).map_err(BuildError::Shelf)?;
    let patch = log::patch_of(&log).ok_or(BuildError::NoPatch)?;
    let bytes = shelf.artifact(&patch).map_err(BuildError::Shelf)?;
    Ok(Patch::from_bytes(&bytes)?)
}

struct Work<'a> {
    order: &'a BuildOrder<'a>,
    shelf: &'a dyn Shelving,
    allowed: &'a Allowed,
    packet: Digest,
}

impl Work<'_> {
    /// From the copy to the files that are kept.
    fn attempt(&self, scratch: &Scratch, log: &mut Log<'_>) -> Result<BuildEnd, BuildError> {
        let order = self.order;
        let paths = self.allowed.all();
        let source = Source {
            tree: order.tree,
            hidden: order.hidden,
            allowed: &paths,
            limits: order.limits,
        };
        let copied = match copy(&source, scratch) {
            Ok(copied) => copied,
            Err(error) => return Ok(failed(log, "BUILD_ERROR", &fluffy_kernel::causes(&error))),
        };
        log.line("copied", &copied.baseline.len().to_string());
        log.line("unnamed", &copied.unnamed.to_string());
        let left_out = copied.left_out.iter().map(|(path, why)| format!("`{path}`: {why}"));
        log.section("Not copied", left_out);
        let packet = self.shelf.artifact(&self.packet).map_err(BuildError::Shelf)?;
        let packet = String::from_utf8_lossy(&packet);
        let given = Given {
            lab: order.lab,
            journal: order.journal,
            path: order.path,
            keys: order.keys,
            copy: &copied.dir,
            packet: &packet,
        };
        match order.builder.work(&given, log) {
            Ok(worked) => self.judge(&copied, worked, log),
            Err(why) => Ok(failed(log, "BUILD_ERROR", &why)),
        }
    }

    /// What the builder left, against what it may leave.
    fn judge(
        &self,
        copied: &Copied,
        worked: Worked,
        log: &mut Log<'_>,
    ) -> Result<BuildEnd, BuildError> {
        let patch = compare(&copied.baseline, &worked.left);
        // A skill that was revoked may be built as it was.
        let patch = patch.with_same(self.allowed.required(), &copied.baseline, &worked.left);
        let kept = self.shelf.keep(ArtifactKind::PatchSummary, &patch.to_bytes()?);
        log.patch(&kept.map_err(BuildError::Shelf)?);
        let changes = patch.changes.iter();
        log.section("Changed", changes.map(|it| format!("`{}`: {:?}", it.path, it.kind())));
        if let Some((kind, why)) = worked.failed {
            return Ok(failed(log, kind, &why));
        }
        let was_there = |path: &ProjectPath| copied.baseline.contains_key(path);
        let violations = self.allowed.violations(&patch, &was_there);
        if !violations.is_empty() {
            log.section("Violations", violations.iter().map(ToString::to_string));
            return Ok(failed(log, "GATE_VIOLATION", &allow::told(&violations)));
        }
        let files = match self.files(copied, &worked.left) {
            Ok(files) => files,
            Err(violation) => {
                return Ok(failed(log, "GATE_VIOLATION", &violation.to_string()));
            }
        };
        let mut pinned = Vec::new();
        for (path, bytes) in files {
            let kept = self.shelf.keep(ArtifactKind::Note, &bytes).map_err(BuildError::Shelf)?;
            pinned.push(Pinned { path, sha256: kept });
        }
        Ok(BuildEnd::Built { files: pinned })
    }

    /// The files of the skill as they are after the build, in the order of their paths: those that the builder wrote, and
    /// those that it left as they were.
    fn files(
        &self,
        copied: &Copied,
        left: &Left,
    ) -> Result<Vec<(ProjectPath, Vec<u8>)>, Violation> {
        let mut paths = self.allowed.all();
        paths.sort_unstable();
        let mut files = Vec::new();
        for path in paths {
            let written = left.files.iter().find(|file| file.path == path);
            let bytes = match (written, copied.baseline.get(&path)) {
                (Some(file), _) => file.bytes.clone(),
                (None, None) => continue,
                (None, Some(was)) => {
                    let bytes = std::fs::read(copied.dir.join(path.as_str())).ok();
                    let bytes = bytes.filter(|bytes| Digest::of(bytes) == was.sha256);
                    bytes.ok_or_else(|| Violation::Missing(path.clone()))?
                }
            };
            if bytes.len() > MAX_FILE {
                return Err(Violation::Large(path));
            }
            if log::holds_key(&bytes, self.order.keys) {
                return Err(Violation::Key(path));
            }
            files.push((path, bytes));
        }
        Ok(files)
    }
}

/// A failure in words that anybody may read.
fn failed(log: &Log<'_>, kind: &str, why: &str) -> BuildEnd {
    BuildEnd::Failed { kind: kind.to_owned(), why: log.excerpt(why) }
}

fn fresh(ids: &dyn IdSource) -> Result<String, BuildError> {
    let bytes = ids.fresh().ok_or(BuildError::NoRandomness)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
