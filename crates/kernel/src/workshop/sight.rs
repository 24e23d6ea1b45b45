//! What commands and tests see of the project.

use std::io;
use std::path::{Path, PathBuf};

use fluffy_base::ProjectPath;

use super::Workshop;
use super::layer::Layer;

/// Variables of every command and test: nobody answers questions, nothing is fetched, nothing is coloured, and
/// what can be the same in every run is the same.
pub(crate) const ENVIRONMENT: [(&str, &str); 15] = [
    ("CARGO_NET_OFFLINE", "true"),
    ("CARGO_TERM_COLOR", "never"),
    ("CI", "1"),
    ("GOFLAGS", "-buildvcs=false"),
    ("GOPROXY", "off"),
    ("GOTOOLCHAIN", "local"),
    ("NO_COLOR", "1"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("PIP_NO_INDEX", "1"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
    ("PYTHONHASHSEED", "0"),
    ("TZ", "UTC0"),
    ("npm_config_audit", "false"),
    ("npm_config_offline", "true"),
    ("npm_config_update_notifier", "false"),
];

/// What a job sees of the project, and what not.
#[derive(Debug, Clone, Copy)]
pub struct Sight<'a> {
    /// Directories laid over the project, the lowest first.
    pub layers: &'a [PathBuf],
    /// Files and directories that the job must not see, whatever the layers hold.
    pub hidden: &'a [ProjectPath],
    /// A directory of the session's own, in which layers for one job are made.
    pub scratch: &'a Path,
}

/// Why what a job sees could not be prepared.
#[derive(Debug, thiserror::Error)]
#[error("what the sandbox may see cannot be prepared")]
pub struct SightError(#[from] io::Error);

impl Workshop {
    /// What a job sees over the project, the lowest first; and the layer among it that hides what must not be seen,
    /// which stays as long as it is held.
    pub(super) fn seen(
        &self,
        sight: &Sight<'_>,
    ) -> Result<(Option<Layer>, Vec<PathBuf>), SightError> {
        let hidden = self.hidden(sight)?;
        let mut layers = sight.layers.to_vec();
        layers.extend(hidden.iter().map(|layer| layer.dir().to_owned()));
        Ok((hidden, layers))
    }

    /// A layer that hides what must not be seen; none where nothing is hidden.
    pub(crate) fn hidden(&self, sight: &Sight<'_>) -> Result<Option<Layer>, SightError> {
        if sight.hidden.is_empty() {
            return Ok(None);
        }
        self.layer(sight).map(Some)
    }

    /// A layer for one job, over all others, in which what must not be seen is hidden.
    pub(super) fn layer(&self, sight: &Sight<'_>) -> Result<Layer, SightError> {
        let layer = Layer::new(sight.scratch, self.project())?;
        layer.hide(sight.hidden, &self.below(sight))?;
        Ok(layer)
    }

    /// The directories that such a layer is laid over, the lowest first.
    pub(crate) fn below<'a>(&'a self, sight: &Sight<'a>) -> Vec<&'a Path> {
        std::iter::once(self.project()).chain(sight.layers.iter().map(PathBuf::as_path)).collect()
    }
}
