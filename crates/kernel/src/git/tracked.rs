//! Whether the repository keeps files that must not be read.

use std::path::PathBuf;

use fluffy_base::ProjectPath;

use super::run::{Call, Command};
use super::{Git, GitError, GitPath};

impl Git {
    /// Whether git keeps the contents of a file that `denied` says yes to, or of one that cannot be asked about.
    /// What was taken out of the last commit, and is only in the history, is not looked for.
    pub(crate) fn keeps(&self, denied: &dyn Fn(&ProjectPath) -> bool) -> Result<bool, GitError> {
        let none: [PathBuf; 0] = [];
        let mut call = Call::new("list its files", Command::Git, &none).args(["ls-files", "-z"]);
        call.shown = self.shared()?;
        let out = self.must(call)?.out;
        let names = out.bytes.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let kept = names.map(GitPath::of).any(|name| name.known().is_none_or(denied));
        Ok(out.cut || kept)
    }
}
