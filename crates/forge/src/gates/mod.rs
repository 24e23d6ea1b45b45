//! Asks the five gates about a skill: what it says, what its tools say of it, and what its tests do.
//!
//! ```text
//! files ── policy, invariants ── lint ─┐
//!            read, never run     types ├── results, seal, report
//!                                tests ┘   a sandbox each, no network, read-only sources
//! ```
//!
//! **Invariant.** Nothing of a skill is run before its text has passed the policy gate (a sandbox then confines it).
//!
//! **Invariant.** Gates look at the bytes that they are given, laid out in a directory of ours with the base that this
//! program ships; nothing of the project is read, so nothing in it can configure, replace or silence a tool.

mod bench;
mod reading;
mod results;
mod silencing;
mod tool;

use std::path::Path;

use fluffy_base::{Digest, IdSource, ProjectPath, Span};
use fluffy_kernel::{Journal, Lab, LabError};
use serde::Serialize;

use self::bench::Bench;
pub use self::bench::BenchError;
use self::tool::{Looked, Outlook};
use crate::{
    Gate, GateResult, NameError, Pinned, Profile, ProfileError, Proposal, SKILLS, Sealed,
    SourceFile, Tools, base,
};

/// The largest file that is looked at.
const MAX_FILE: usize = 1 << 20;

/// A skill that the gates are asked about, and what they are asked with.
pub struct Inspected<'a> {
    /// What was proposed.
    pub proposal: &'a Proposal,
    /// The skill, its tests and the support modules.
    pub files: &'a [SourceFile],
    /// What reads its text for what is forbidden.
    pub policy: &'a (dyn Fn(&[SourceFile]) -> GateResult + Sync),
    /// What reads its text for what was proposed.
    pub invariants: &'a (dyn Fn(&[SourceFile]) -> GateResult + Sync),
    /// Where programs run.
    pub lab: &'a Lab,
    /// The programs.
    pub tools: &'a Tools,
    /// A directory of ours, in which files are laid out.
    pub scratch: &'a Path,
    /// Where keys come from that tests cannot guess.
    pub ids: &'a dyn IdSource,
    /// What remembers the sandboxes.
    pub journal: &'a (dyn Journal + Sync),
    /// No program runs longer than this, whatever its profile gives it.
    pub most: Option<Span>,
}

/// What the gates said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// One result of each gate, in their order.
    pub gates: Vec<GateResult>,
    /// What they looked at.
    pub sealed: Sealed,
    /// The `VERIFICATION_REPORT`, as JSON.
    pub report: Vec<u8>,
}

/// Why the gates could not be asked. A skill is never let through by an error.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// A file of the skill does not belong to it.
    #[error("`{0}` is no file that a skill consists of")]
    Foreign(ProjectPath),
    /// Two files have one name.
    #[error("`{0}` is there twice")]
    Twice(ProjectPath),
    /// A file that has to be there is not.
    #[error("`{0}` is missing")]
    Missing(String),
    /// A file is too large.
    #[error("`{path}` has {size} bytes, and {MAX_FILE} are allowed")]
    Large {
        /// Which.
        path: ProjectPath,
        /// Its size.
        size: usize,
    },
    /// The proposal's name gives no path.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The language's profile cannot be used.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The files could not be laid out.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// A tool could not be run.
    #[error("the {gate} gate could not be asked")]
    Lab {
        /// Which.
        gate: Gate,
        /// Why not.
        source: LabError,
    },
    /// The machine gives no randomness.
    #[error("the machine gives no randomness for the tests' key")]
    NoRandomness,
    /// The report cannot be written down.
    #[error("the report cannot be written down")]
    Report(#[from] serde_json::Error),
}

impl Judgement {
    /// Whether every gate lets the skill through.
    pub fn passed(&self) -> bool {
        let all = Gate::ALL.iter().all(|gate| self.gates.iter().any(|it| it.gate == *gate));
        all && self.gates.iter().all(|result| result.passed)
    }
}

/// Asks all five gates.
pub fn inspect(subject: &Inspected<'_>) -> Result<Judgement, VerifyError> {
    let files = in_order(subject)?;
    let policy = settled((subject.policy)(&files), Gate::Policy);
    let invariants = settled((subject.invariants)(&files), Gate::Invariants);
    let profile = Profile::python()?;
    let bench = Bench::new(subject.scratch, subject.ids, &files)?;
    let outlook = Outlook { subject, profile: &profile, bench: &bench, files: &files };
    let [lint, types, tests] = outlook.all(policy.passed)?;
    let sealed = seal(&files);
    let report = report(subject, &sealed, [&lint, &types, &tests], [&policy, &invariants])?;
    let gates = vec![lint.result, types.result, tests.result, policy, invariants];
    Ok(Judgement { gates, sealed, report })
}

/// The files in the order of their paths, if they are a skill's.
fn in_order(subject: &Inspected<'_>) -> Result<Vec<SourceFile>, VerifyError> {
    let name = &subject.proposal.name;
    let own = [format!("{SKILLS}/{name}.py"), format!("{SKILLS}/tests/test_{name}.py")];
    let mut files = subject.files.to_vec();
    files.sort_by(|one, two| one.path.cmp(&two.path));
    for (file, next) in files.iter().zip(files.iter().skip(1)) {
        if file.path == next.path {
            return Err(VerifyError::Twice(file.path.clone()));
        }
    }
    for file in &files {
        let path = file.path.as_str();
        if !own.iter().any(|own| own == path) && !crate::SUPPORT.contains(&path) {
            return Err(VerifyError::Foreign(file.path.clone()));
        }
        if file.bytes.len() > MAX_FILE {
            return Err(VerifyError::Large { path: file.path.clone(), size: file.bytes.len() });
        }
    }
    for own in own {
        if !files.iter().any(|file| file.path.as_str() == own) {
            return Err(VerifyError::Missing(own));
        }
    }
    Ok(files)
}

/// A result as this gate's: whoever read the text cannot pass with findings, or for another gate.
fn settled(mut result: GateResult, gate: Gate) -> GateResult {
    result.passed &= result.findings.is_empty() && result.gate == gate;
    result.gate = gate;
    result
}

fn seal(files: &[SourceFile]) -> Sealed {
    let pin =
        |file: &SourceFile| Pinned { path: file.path.clone(), sha256: Digest::of(&file.bytes) };
    Sealed { files: files.iter().map(pin).collect(), base: base().digest() }
}

/// What is kept of a verification.
#[derive(Serialize)]
struct Kept<'a> {
    v: u32,
    skill: &'a str,
    sealed: &'a Sealed,
    tools: Digest,
    gates: Vec<&'a GateResult>,
    runs: Vec<Run<'a>>,
}

#[derive(Serialize)]
struct Run<'a> {
    gate: Gate,
    sandbox: &'a str,
    ended: &'a str,
    ms: u64,
    printed: &'a str,
}

fn report(
    subject: &Inspected<'_>,
    sealed: &Sealed,
    looked: [&Looked; 3],
    read: [&GateResult; 2],
) -> Result<Vec<u8>, serde_json::Error> {
    let gates = looked.iter().map(|looked| &looked.result).chain(read).collect();
    let runs = looked.iter().filter_map(|looked| {
        let run = looked.run.as_ref()?;
        let (gate, ms) = (looked.result.gate, run.ms);
        Some(Run { gate, sandbox: &run.sandbox, ended: &run.ended, ms, printed: &run.printed })
    });
    let (skill, tools) = (subject.proposal.name.as_str(), subject.tools.pinned);
    serde_json::to_vec_pretty(&Kept { v: 1, skill, sealed, tools, gates, runs: runs.collect() })
}
