//! How many lines tests reach: four formats, one normal form.
//!
//! **Invariant.** Integers only: a share is in basis points, rounded down, so that the same report gives
//! the same number everywhere. No report claims more lines covered than there are.

pub(crate) mod budget;
mod cobertura;
mod istanbul;
mod lcov;
mod llvm;

use std::collections::BTreeMap;

use fluffy_base::{Excerpt, ProjectPath};
use serde::{Deserialize, Serialize};

/// The largest report that is read.
pub const MAX_COVERAGE_BYTES: usize = 64 << 20;

const SHOWN_CHARS: usize = 300;

/// The formats of coverage reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoverageFormat {
    /// `lcov.info` of many tools.
    Lcov,
    /// `coverage-final.json` of istanbul, jest and vitest.
    Istanbul,
    /// `coverage-summary.json` of the same.
    IstanbulSummary,
    /// XML of many tools.
    Cobertura,
    /// `llvm-cov export` and `cargo llvm-cov --json`.
    LlvmCov,
}

impl CoverageFormat {
    /// The format of a report by its name, as tools have the custom.
    pub fn of_file(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("xml") => Self::Cobertura,
            Some("json") if name.ends_with("final.json") => Self::Istanbul,
            Some("json") if name.ends_with("summary.json") => Self::IstanbulSummary,
            Some("json") => Self::LlvmCov,
            Some(_) | None => Self::Lcov,
        }
    }
}

/// Lines of one file, or of several together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lines {
    /// Reached by a test.
    pub covered: u64,
    /// All that could be.
    pub total: u64,
}

/// Lines of the project's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    files: BTreeMap<ProjectPath, Lines>,
}

/// Why a report tells no coverage.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum CoverageError {
    /// Over [`MAX_COVERAGE_BYTES`].
    #[error("the coverage report has more than {MAX_COVERAGE_BYTES} bytes")]
    TooLarge,
    /// Not of its form.
    #[error("the coverage report cannot be read: {0}")]
    Malformed(String),
    /// Two of its numbers cannot both be true.
    #[error("the coverage report contradicts itself about `{0}`")]
    Contradiction(String),
    /// Says nothing about the project's files.
    #[error("the coverage report names no line of the project")]
    Empty,
}

impl CoverageError {
    fn malformed(why: impl std::fmt::Display) -> Self {
        Self::Malformed(Excerpt::new(&why.to_string(), SHOWN_CHARS).to_string())
    }

    fn contradiction(file: &str) -> Self {
        Self::Contradiction(Excerpt::new(file, SHOWN_CHARS).to_string())
    }
}

impl Coverage {
    /// Reads a report. `root` is the project's root as the tool saw it, absolute; files outside it, such
    /// as dependencies, do not count. Relative names are from `base`, the directory where the tool ran.
    pub fn parse(
        format: CoverageFormat,
        bytes: &[u8],
        root: &str,
        base: Option<&ProjectPath>,
    ) -> Result<Self, CoverageError> {
        if bytes.len() > MAX_COVERAGE_BYTES {
            return Err(CoverageError::TooLarge);
        }
        let text =
            std::str::from_utf8(bytes).map_err(|_| CoverageError::malformed("it is not UTF-8"))?;
        let found = match format {
            CoverageFormat::Lcov => lcov::read(text)?,
            CoverageFormat::Istanbul => istanbul::read_final(text)?,
            CoverageFormat::IstanbulSummary => istanbul::read_summary(text)?,
            CoverageFormat::Cobertura => cobertura::read(text)?,
            CoverageFormat::LlvmCov => llvm::read(text)?,
        };
        let mut files = BTreeMap::new();
        for (name, lines) in found {
            if lines.covered > lines.total {
                return Err(CoverageError::contradiction(&name));
            }
            let Some(path) = locate(&name, root, base) else { continue };
            if files.insert(path, lines).is_some() {
                return Err(CoverageError::contradiction(&name));
            }
        }
        let coverage = Self { files };
        if coverage.total()?.total == 0 { Err(CoverageError::Empty) } else { Ok(coverage) }
    }

    /// Only the files that `keep` wants: tests themselves are always covered and tell nothing.
    pub fn filtered(mut self, keep: impl Fn(&ProjectPath) -> bool) -> Result<Self, CoverageError> {
        self.files.retain(|path, _| keep(path));
        if self.total()?.total == 0 { Err(CoverageError::Empty) } else { Ok(self) }
    }

    /// Every file with its lines.
    pub fn files(&self) -> &BTreeMap<ProjectPath, Lines> {
        &self.files
    }

    /// The sums over all files.
    pub fn total(&self) -> Result<Lines, CoverageError> {
        let mut sum = Lines::default();
        for (path, lines) in &self.files {
            let too_many = || CoverageError::contradiction(path.as_str());
            sum.covered = sum.covered.checked_add(lines.covered).ok_or_else(too_many)?;
            sum.total = sum.total.checked_add(lines.total).ok_or_else(too_many)?;
        }
        Ok(sum)
    }

    /// The covered share of all lines in basis points: 10,000 is everything.
    pub fn basis_points(&self) -> Result<u32, CoverageError> {
        self.total()?.basis_points().ok_or(CoverageError::Empty)
    }
}

impl Lines {
    /// The covered share in basis points, rounded down; none of no lines.
    pub fn basis_points(&self) -> Option<u32> {
        let share = (u128::from(self.covered) * 10_000).checked_div(u128::from(self.total))?;
        u32::try_from(share).ok()
    }
}

/// Hits by line, for formats that list lines; of two records of a line the higher counts.
#[derive(Default)]
struct Hits(BTreeMap<u64, bool>);

impl Hits {
    fn add(&mut self, line: u64, hit: bool) {
        *self.0.entry(line).or_insert(false) |= hit;
    }

    fn lines(&self) -> Lines {
        let count = |hits: usize| u64::try_from(hits).unwrap_or(u64::MAX);
        let covered = self.0.values().filter(|hit| **hit).count();
        Lines { covered: count(covered), total: count(self.0.len()) }
    }
}

type Found = BTreeMap<String, Lines>;

fn summed(files: BTreeMap<String, Hits>) -> Found {
    files.into_iter().map(|(name, hits)| (name, hits.lines())).collect()
}

fn locate(name: &str, root: &str, base: Option<&ProjectPath>) -> Option<ProjectPath> {
    if name.starts_with('/') {
        let inside = name.strip_prefix(root.trim_end_matches('/'))?;
        return ProjectPath::parse(inside.strip_prefix('/')?).ok();
    }
    match base {
        Some(base) => base.join(name).ok(),
        None => ProjectPath::parse(name).ok(),
    }
}
