//! What the kernel's process answers about skills, and what it means to whoever asked.

use fluffy_forge::steps::Done;
use fluffy_forge::{ChainRun, Comparison, ExecutionRecord, Finished, SkillName, Standing};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::of_chain;
use crate::explain::{DONE, Explained, FAILED};

/// What became of what was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Answer {
    /// A step was taken.
    Step(Done),
    /// A shipped skill was taken to trust, or as far as it got.
    Installed(Installed),
    /// A skill was run.
    Ran(Ran),
    /// Several were run.
    Chained(Chained),
    /// A run was run again.
    Replayed(Box<Replayed>),
    /// Tables and registry were made again.
    Rebuilt(Rebuilt),
}

/// A shipped skill on its way to trust.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Installed {
    /// Which.
    pub(crate) name: SkillName,
    /// Where it stands now; nowhere, if it was not even proposed.
    pub(crate) standing: Option<Standing>,
    /// The steps that were taken.
    pub(crate) steps: Vec<Done>,
    /// Why no more were.
    pub(crate) stopped: Option<Explained>,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ran {
    /// The run's id.
    pub(crate) execution: String,
    /// Which skill.
    pub(crate) skill: SkillName,
    /// Whether it did what it should.
    pub(crate) success: bool,
    /// What it gave.
    pub(crate) output: Option<Value>,
    /// Why it gave nothing.
    pub(crate) error: Option<String>,
    /// What the ledger has of it.
    pub(crate) record: ExecutionRecord,
}

/// Skills that ran in a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Chained {
    /// Each, the first first.
    pub(crate) steps: Vec<Ran>,
    /// What the last gave.
    pub(crate) output: Option<Value>,
    /// Why the rest did not run.
    pub(crate) stopped: Option<Explained>,
}

/// A run that was run again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Replayed {
    /// Whether both gave the same.
    pub(crate) same: bool,
    /// The run before.
    pub(crate) before: ExecutionRecord,
    /// The run now.
    pub(crate) now: Ran,
}

/// What was made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rebuilt {
    /// How many skills there are.
    pub(crate) skills: usize,
}

impl Ran {
    pub(crate) fn of(finished: Finished) -> Self {
        let Finished { record, output } = finished;
        Self {
            execution: record.execution.clone(),
            skill: record.skill.clone(),
            success: record.success,
            output: output.map(|output| output.value().clone()),
            error: record.error.as_ref().map(ToString::to_string),
            record,
        }
    }
}

impl Chained {
    pub(crate) fn of(run: ChainRun) -> Self {
        let steps: Vec<_> = run.finished.into_iter().map(Ran::of).collect();
        let stopped = run.stopped.as_ref().map(of_chain);
        let output = steps.last().filter(|_| stopped.is_none()).and_then(|it| it.output.clone());
        Self { steps, output, stopped }
    }
}

impl Replayed {
    pub(crate) fn of(replayed: fluffy_forge::Replayed) -> Self {
        let fluffy_forge::Replayed { before, now, comparison } = replayed;
        Self { same: comparison == Comparison::Same, before, now: Ran::of(now) }
    }
}

impl Answer {
    /// The exit code for it.
    pub(crate) fn code(&self) -> u8 {
        let well = match self {
            Self::Step(done) => done.succeeded(),
            Self::Installed(Installed { stopped: Some(stopped), .. }) => return stopped.code,
            Self::Installed(installed) => installed.standing == Some(Standing::Trusted),
            Self::Ran(ran) => ran.success,
            Self::Chained(chained) => match &chained.stopped {
                Some(stopped) => return stopped.code,
                None => true,
            },
            Self::Replayed(replayed) => replayed.same,
            Self::Rebuilt(_) => true,
        };
        if well { DONE } else { FAILED }
    }

    /// The same as one document, for programs.
    pub(crate) fn document(&self) -> Result<String, serde_json::Error> {
        match self {
            Self::Step(done) => serde_json::to_string(done),
            Self::Installed(installed) => serde_json::to_string(installed),
            Self::Ran(ran) => serde_json::to_string(ran),
            Self::Chained(chained) => serde_json::to_string(chained),
            Self::Replayed(replayed) => serde_json::to_string(replayed),
            Self::Rebuilt(rebuilt) => serde_json::to_string(rebuilt),
        }
    }
}
