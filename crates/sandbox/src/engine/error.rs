//! What an engine could not do, why, and what helps.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::http::HttpError;
use super::kind::EngineKind;

/// What a gate answers where the engine cannot be reached, and where it takes too long.
pub(super) const UNREACHED: u16 = 502;
pub(super) const SLOW: u16 = 504;

/// Why a call of an engine's API came to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// There is no answer.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// It said no.
    #[error("it answered {status}: {message}")]
    Refused {
        /// The status.
        status: u16,
        /// Its words.
        message: String,
    },
    /// It answered something else than was asked.
    #[error("it answered something else than was asked")]
    Odd(#[source] serde_json::Error),
    /// A path that an engine cannot be told.
    #[error("`{}` cannot be told to an engine: {why}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The container ended before it said anything.
    #[error("the container ended before its first process answered (exit code {code}): {said}")]
    Ended {
        /// Its exit code.
        code: i64,
        /// The engine's words about it.
        said: String,
    },
}

impl ApiError {
    /// Whether what was named is not there.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }
}

/// Something that an engine was to do and did not.
#[derive(Debug)]
pub struct EngineError {
    pub(crate) engine: EngineKind,
    /// What it was to do, as in "Docker cannot …".
    pub(crate) doing: &'static str,
    pub(crate) source: Box<ApiError>,
}

impl EngineError {
    /// What helps.
    pub fn fix(&self) -> String {
        let engine = self.engine;
        let native = "use the native driver (`fluffy config set sandbox.runtime native`)";
        match &*self.source {
            ApiError::Http(HttpError::Connect { source, .. }) => {
                if source.kind() == io::ErrorKind::PermissionDenied {
                    format!("{}, or {native}", engine.permission())
                } else {
                    format!("{}, or {native}", engine.start())
                }
            }
            ApiError::Refused { status: UNREACHED, .. } => {
                format!("{}, or {native}", engine.start())
            }
            ApiError::Http(HttpError::Slow(_)) | ApiError::Refused { status: SLOW, .. } => {
                format!(
                    "see what holds it up (`{engine} info`, `{engine} ps`), restart it, or {native}"
                )
            }
            ApiError::Refused { message, .. }
                if message.contains("No such image") || message.contains("image not known") =>
            {
                format!(
                    "run `fluffy image build`, or have {engine} pull the image that `sandbox.image` names"
                )
            }
            ApiError::Path { .. } => format!("move the project to a plainer path, or {native}"),
            _ => format!("see the engine's log ({}), or {native}", engine.log()),
        }
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot {}", self.engine.title(), self.doing)
    }
}

impl std::error::Error for EngineError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.source)
    }
}
