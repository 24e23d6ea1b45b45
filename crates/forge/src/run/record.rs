//! What is kept of a run.

use fluffy_base::{Digest, Json, ProjectPath};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::frame::Raised;
use super::veil::Veil;
use crate::{ArtifactError, ArtifactKind, Artifacts, Sealed, SideEffect, SkillName};

/// What is longer is kept as an artifact.
const INLINE: usize = 16 << 10;

/// One run of a skill, as the ledger has it. Secrets are masked in all of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutionRecord {
    /// Its id.
    pub execution: String,
    /// Which skill.
    pub skill: SkillName,
    /// The run that it follows, in a chain or as a replay.
    pub parent: Option<String>,
    /// The request that asked for it.
    pub request: String,
    /// What running it can do to the world.
    pub side_effect: SideEffect,
    /// Hash of what was promoted: its files and its base.
    pub sealed: Digest,
    /// What it was given.
    pub input: Kept,
    /// What it gave.
    pub output: Option<Kept>,
    /// The files that it changed, by path.
    pub files: Vec<ChangedFile>,
    /// Whether it did what it should.
    pub success: bool,
    /// Why not.
    pub error: Option<RunFailure>,
    /// The end of what it printed.
    pub printed: String,
    /// Its sandbox's name in records.
    pub sandbox: String,
    /// When it began, in milliseconds since the epoch.
    pub started_ms: u64,
    /// When it ended.
    pub ended_ms: u64,
    /// How long it took.
    pub duration_ms: u64,
}

/// A value that is kept, here or as an artifact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// Hash of its canonical text.
    pub sha256: Digest,
    /// Whether something of it was masked.
    pub masked: bool,
    /// The value, if it is short; else it is the `NOTE` of this hash.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub value: Option<Value>,
}

/// A file that a run changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangedFile {
    /// Where.
    pub path: ProjectPath,
    /// Hash of its bytes now; none, and it is gone.
    pub sha256: Option<Digest>,
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum RunFailure {
    /// The skill raised an exception.
    #[error("{}: {}{}", .raised.kind, .raised.message, at(.raised))]
    Raised {
        /// It.
        raised: Raised,
    },
    /// It ended and gave nothing.
    #[error("it ended without a result: {end}")]
    NoResult {
        /// How it ended.
        end: String,
    },
    /// It took too long.
    #[error("it gave no result within its time")]
    Late,
    /// It ran into a limit of its sandbox.
    #[error("{limit}")]
    Limit {
        /// Which, in words.
        limit: String,
    },
    /// What it sent is not what a runner sends.
    #[error("what it gave cannot be taken: {why}")]
    Garbled {
        /// Why not.
        why: String,
    },
    /// Its output is not what was proposed.
    #[error("its output is not of the proposed form: {why}")]
    Output {
        /// Why not.
        why: String,
    },
    /// What it wrote cannot be taken, and nothing was.
    #[error("what it wrote is not taken: {why}")]
    Files {
        /// Why not.
        why: String,
    },
    /// Writing broke off; the files of the record were changed, the others not.
    #[error("only part of what it wrote could be put into place: {why}")]
    Partly {
        /// Why.
        why: String,
    },
}

impl RunFailure {
    /// The same without secrets.
    pub(super) fn veiled(self, veil: &Veil) -> Self {
        let hide = |text: String| veil.text(&text);
        match self {
            Self::Raised { raised } => {
                let Raised { kind, message, line, module } = raised;
                let (kind, message, module) = (hide(kind), hide(message), module.map(hide));
                Self::Raised { raised: Raised { kind, message, line, module } }
            }
            Self::NoResult { end } => Self::NoResult { end: hide(end) },
            Self::Late => Self::Late,
            Self::Limit { limit } => Self::Limit { limit: hide(limit) },
            Self::Garbled { why } => Self::Garbled { why: hide(why) },
            Self::Output { why } => Self::Output { why: hide(why) },
            Self::Files { why } => Self::Files { why: hide(why) },
            Self::Partly { why } => Self::Partly { why: hide(why) },
        }
    }
}

fn at(raised: &Raised) -> String {
    match (&raised.module, raised.line) {
        (Some(module), Some(line)) => format!(" ({module}, line {line})"),
        (None, Some(line)) => format!(" (line {line})"),
        (_, None) => String::new(),
    }
}

/// A member that is there is a value, be it null.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Kept {
    /// Keeps a value without its secrets.
    pub(super) fn new(
        value: &Value,
        veil: &Veil,
        artifacts: &Artifacts,
    ) -> Result<(Self, Json), KeepError> {
        let (value, masked) = veil.value(value);
        let json = Json::new(value)?;
        let text = json.canonical();
        let sha256 = Digest::of(text.as_bytes());
        let value = if text.len() <= INLINE {
            Some(json.value().clone())
        } else {
            artifacts.put(ArtifactKind::Note, text.as_bytes())?;
            None
        };
        Ok((Self { sha256, masked, value }, json))
    }

    /// The value, proved by its hash.
    pub fn load(&self, artifacts: &Artifacts) -> Result<Json, KeepError> {
        let json = match &self.value {
            Some(value) => Json::new(value.clone())?,
            None => Json::parse(&artifacts.get(&self.sha256)?)?,
        };
        if Digest::of(json.canonical().as_bytes()) == self.sha256 {
            Ok(json)
        } else {
            Err(KeepError::Changed(self.sha256))
        }
    }
}

/// Why a value cannot be kept or given back.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// It is no JSON that can be kept.
    #[error(transparent)]
    Json(#[from] fluffy_base::JsonError),
    /// It is too large, or its artifact is lost.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// It is not the value of its hash.
    #[error("the value of hash {0} was changed")]
    Changed(Digest),
}

/// One hash for all that was promoted.
pub(super) fn sealed_digest(sealed: &Sealed) -> Digest {
    let base = sealed.base.to_string();
    let lines = sealed.files.iter().map(|file| format!("{} {}\n", file.sha256, file.path));
    let text = lines.chain([format!("{base} base\n")]).collect::<String>();
    Digest::of(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_kept_here_or_as_an_artifact_and_comes_back_by_its_hash() {
        let dir = tempfile::tempdir().unwrap();
        let artifacts = Artifacts::open(dir.path()).unwrap();
        let veil = Veil::new([]);
        for value in [json!(null), json!({"a": "\u{0}\u{1b}[31m"}), json!("x".repeat(INLINE))] {
            let (kept, json) = Kept::new(&value, &veil, &artifacts).unwrap();
            let kept: Kept = serde_json::from_str(&serde_json::to_string(&kept).unwrap()).unwrap();
            assert_eq!(kept.load(&artifacts).unwrap(), json);
            assert_eq!(*json.value(), value);
        }
        let (mut kept, _) = Kept::new(&json!(1), &veil, &artifacts).unwrap();
        kept.value = Some(json!(2));
        assert!(matches!(kept.load(&artifacts), Err(KeepError::Changed(_))));
    }
}
