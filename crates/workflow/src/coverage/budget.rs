//! The budget of untested code: coverage may fall a little while exploring, and must come back.
//!
//! The baseline is the best coverage that a commit in strict mode has reached; it lies in the project
//! (`.fluffy/coverage-baseline.json`) and is a person's to lower. A drop of more than two points warns; one
//! of more than five locks explore mode until strict mode has brought the coverage back to the baseline.
//!
//! **Invariant.** The baseline never falls by itself: neither many small drops nor a lock can be walked
//! around by committing in strict mode. Coverage that is not known pays for nothing.

use serde::{Deserialize, Serialize};

use super::{CoverageError, Lines};

const VERSION: u32 = 1;
const MAX_BASELINE_BYTES: usize = 4096;

/// What coverage is compared with, as it stands in the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    version: u32,
    covered: u64,
    total: u64,
}

/// Why a baseline file tells nothing.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// Larger than such a file can be.
    #[error("the coverage baseline has more than {MAX_BASELINE_BYTES} bytes")]
    TooLarge,
    /// Not of its form; unknown keys are errors.
    #[error("the coverage baseline cannot be read")]
    Malformed(#[from] serde_json::Error),
    /// From another version of the program.
    #[error("the coverage baseline has version {0}, not {VERSION}")]
    Version(u32),
    /// More lines covered than there are, or none at all.
    #[error("the coverage baseline says {covered} of {total} lines")]
    Impossible {
        /// Lines covered.
        covered: u64,
        /// Lines in all.
        total: u64,
    },
}

impl Baseline {
    /// The baseline that this coverage makes.
    pub fn of(Lines { covered, total }: Lines) -> Result<Self, CoverageError> {
        if total == 0 || covered > total {
            return Err(CoverageError::Empty);
        }
        Ok(Self { version: VERSION, covered, total })
    }

    /// Reads the file.
    pub fn parse(bytes: &[u8]) -> Result<Self, BaselineError> {
        if bytes.len() > MAX_BASELINE_BYTES {
            return Err(BaselineError::TooLarge);
        }
        let read: Self = serde_json::from_slice(bytes)?;
        let Self { version, covered, total } = read;
        if version != VERSION {
            return Err(BaselineError::Version(version));
        }
        if total == 0 || covered > total {
            return Err(BaselineError::Impossible { covered, total });
        }
        Ok(read)
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let Self { version, covered, total } = self;
        format!(
            "{{\n  \"version\": {version},\n  \"covered\": {covered},\n  \"total\": {total}\n}}\n"
        )
    }

    /// The covered share in basis points.
    pub fn basis_points(&self) -> u32 {
        Lines { covered: self.covered, total: self.total }.basis_points().unwrap_or(0)
    }
}

/// How far coverage may fall, in basis points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// A drop of more than this is warned of.
    pub warn: u32,
    /// A drop of more than this locks explore mode.
    pub lock: u32,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { warn: 200, lock: 500 }
    }
}

/// How coverage stands against the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortfall {
    /// It has not fallen.
    None,
    /// It has fallen within the thresholds, by so many basis points.
    Small(u32),
    /// It has fallen by more than the first threshold.
    Warned(u32),
    /// It has fallen by more than the second.
    Locking(u32),
}

/// The mode in which a commit was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// Tests first.
    Strict,
    /// Code first, or any other mode that pays from the budget.
    Explore,
}

/// Whether explore mode may be entered, and with what baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    baseline: Option<Baseline>,
    locked: bool,
}

impl Budget {
    /// The budget as it was kept: the baseline file, if there is one, and the lock.
    pub fn new(baseline: Option<Baseline>, locked: bool) -> Self {
        Self { baseline, locked }
    }

    /// The baseline.
    pub fn baseline(&self) -> Option<&Baseline> {
        self.baseline.as_ref()
    }

    /// Whether explore mode is locked.
    pub fn is_locked(&self) -> bool {
        self.locked
    }

    /// How `coverage` stands against the baseline; without one there is no shortfall.
    pub fn shortfall(
        &self,
        coverage: Lines,
        limits: Thresholds,
    ) -> Result<Shortfall, CoverageError> {
        let now = coverage.basis_points().ok_or(CoverageError::Empty)?;
        let Some(baseline) = &self.baseline else { return Ok(Shortfall::None) };
        let drop = baseline.basis_points().saturating_sub(now);
        Ok(match drop {
            0 => Shortfall::None,
            drop if drop > limits.lock => Shortfall::Locking(drop),
            drop if drop > limits.warn => Shortfall::Warned(drop),
            drop => Shortfall::Small(drop),
        })
    }

    /// The budget after a commit, with what the commit did to it.
    ///
    /// A commit in strict mode that keeps or raises coverage moves the baseline and opens the lock; any
    /// commit that falls too far closes it.
    pub fn after(
        self,
        commit: Commit,
        coverage: Lines,
        limits: Thresholds,
    ) -> Result<(Self, Shortfall), CoverageError> {
        let shortfall = self.shortfall(coverage, limits)?;
        let next = match (commit, shortfall) {
            (_, Shortfall::Locking(_)) => Self { locked: true, ..self },
            (Commit::Strict, Shortfall::None) => {
                Self { baseline: Some(Baseline::of(coverage)?), locked: false }
            }
            (Commit::Strict, Shortfall::Small(_) | Shortfall::Warned(_))
            | (Commit::Explore, Shortfall::None | Shortfall::Small(_) | Shortfall::Warned(_)) => {
                self
            }
        };
        Ok((next, shortfall))
    }
}
