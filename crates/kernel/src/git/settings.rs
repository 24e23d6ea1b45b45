//! What the repository and the user have configured, as far as it matters here.
//!
//! It is read where nothing but `git config` runs: that sandbox alone sees the user's own settings.

use std::path::{Path, PathBuf};

use fluffy_sandbox::End;

use super::run::{Call, Command};
use super::{Git, GitError};

/// The settings that are asked for; `git config` writes sections and names in lower case.
const WANTED: &str =
    r"^(user|author|committer)\.(name|email)$|^filter\.|^core\.(hookspath|logallrefupdates)$";

/// Settings, the last of one name last.
#[derive(Debug, Default, Clone)]
pub(super) struct Settings(Vec<(String, String)>);

impl Git {
    /// Reads the settings of the user and of the repository, which stands above.
    pub(super) fn settings(&self) -> Result<Settings, GitError> {
        let what = "read its configuration";
        let mut call = Call::new(what, Command::Config, &[]);
        call = call.args(["config", "-z", "--includes", "--get-regexp", WANTED]);
        let home = self.options.home.as_deref();
        let own = home.map(|home| home.join(".gitconfig"));
        let config_home = self.options.config_home.clone();
        let config = config_home.or_else(|| home.map(|home| home.join(".config")));
        let config = config.map(|config| config.join("git/config"));
        // Git reads these two one above the other; here they may be links, and their targets are shown.
        for (file, variable) in [(config, "GIT_CONFIG_SYSTEM"), (own, "GIT_CONFIG_GLOBAL")] {
            let Some(file) = file.as_deref().and_then(real_file) else { continue };
            call = call.env(variable, &file).env("GIT_CONFIG_NOSYSTEM", "0");
            call.shown.push(file);
        }
        let done = self.run(call)?;
        match &done.end {
            End::Exited(0) if !done.out.cut => Ok(Settings::parse(&done.out.bytes)),
            End::Exited(0) => Err(GitError::TooMany("settings")),
            // None of them is set.
            End::Exited(1) => Ok(Settings::default()),
            _failed => Err(self.failure(what, &done)),
        }
    }
}

impl Settings {
    fn parse(bytes: &[u8]) -> Self {
        let records = bytes.split(|byte| *byte == 0).filter(|record| !record.is_empty());
        let texts = records.map(String::from_utf8_lossy);
        let pairs = texts.map(|text| {
            let (name, value) = text.split_once('\n').unwrap_or((&text, ""));
            (name.to_owned(), value.to_owned())
        });
        Self(pairs.collect())
    }

    /// The value that counts.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The names of all filters.
    pub(super) fn filters(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .0
            .iter()
            .filter_map(|(name, _)| Some(name.strip_prefix("filter.")?.rsplit_once('.')?.0))
            .map(str::to_owned)
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// A file that can be shown, without links.
fn real_file(path: &Path) -> Option<PathBuf> {
    let real = std::fs::canonicalize(path).ok()?;
    (real.is_file() && fluffy_sandbox::Shown::new(&real).is_ok()).then_some(real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_setting_of_a_name_counts_and_filters_are_found() {
        let bytes = b"user.name\nA\0filter.lfs.clean\nx\0filter.a.b.process\ny\0user.name\nB\nC\0filter.lfs.required\0\0";
        let settings = Settings::parse(bytes);
        assert_eq!(settings.get("user.name"), Some("B\nC"));
        assert_eq!(settings.get("user.email"), None);
        assert_eq!(settings.filters(), ["a.b", "lfs"]);
    }
}
