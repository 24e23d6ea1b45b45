//! The project's own settings: `.fluffy/config.yaml`, which is meant to be committed.
//!
//! What may happen is the policy's business; here stands how the work is done.

use fluffy_base::ProjectPath;
use fluffy_kernel::{HookPolicy, Identity};
use fluffy_policy::Glob;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_saphyr::options::DuplicateKeyPolicy;

use crate::commands::read_bounded;
use crate::explain::CliError;
use crate::place::Place;
use crate::policy_source::exists;

/// The file, as people call it.
pub(crate) const OWN_CONFIG: &str = ".fluffy/config.yaml";
/// A larger file is no settings.
const MAX_BYTES: u64 = 64 << 10;
/// What only the user's own settings say.
const USERS_OWN: [&str; 5] = ["provider", "model", "proxy", "no_proxy", "providers"];

/// The project's own settings. A key that is misspelt is an error.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ProjectConfig {
    test: Tests,
    commit: Commits,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Tests {
    /// The command that runs them, where the project's files do not tell; its exit code counts.
    command: Option<Vec<String>>,
    /// Where that command leaves its coverage, from the project's root.
    coverage: Option<String>,
    /// Files that are tests beside what languages have as their custom, as globs.
    files: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Commits {
    hooks: Hooks,
    /// Whom commits are by: `Name <address>`.
    author: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Hooks {
    #[default]
    Run,
    Skip,
    Refuse,
}

impl ProjectConfig {
    /// The settings of a project; without a file, those of everybody.
    pub(crate) fn find(place: &Place) -> Result<Self, CliError> {
        let path = place.project().join(OWN_CONFIG);
        if !exists(&path)? {
            return Ok(Self::default());
        }
        let bytes = read_bounded(&path, MAX_BYTES + 1)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(wrong(format!("it has more than {MAX_BYTES} bytes")));
        }
        let text = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".to_owned()))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self, CliError> {
        let config: Self = parsed(OWN_CONFIG, text).map_err(|error| elsewhere(error, text))?;
        if config.test.command.as_ref().is_some_and(|words| words.iter().all(String::is_empty)) {
            return Err(wrong("`test.command` names no program".to_owned()));
        }
        config.author()?;
        config.test_files()?;
        config.test_coverage()?;
        Ok(config)
    }

    /// The command that runs the tests, if one is named.
    pub(crate) fn test_command(&self) -> Option<Vec<String>> {
        self.test.command.clone()
    }

    /// Where that command leaves its coverage, if it does.
    pub(crate) fn test_coverage(&self) -> Result<Option<ProjectPath>, CliError> {
        let Some(text) = &self.test.coverage else { return Ok(None) };
        if self.test.command.is_none() {
            let problem = "`test.coverage` is what `test.command` leaves, and there is no command";
            return Err(wrong(problem.to_owned()));
        }
        let path = ProjectPath::parse(text);
        path.map(Some).map_err(|error| wrong(format!("`test.coverage`: {error}")))
    }

    /// Files that are tests beside the usual ones.
    pub(crate) fn test_files(&self) -> Result<Vec<Glob>, CliError> {
        let read = |text: &String| {
            Glob::parse(text).map_err(|error| wrong(format!("`test.files`: {error}")))
        };
        self.test.files.iter().map(read).collect()
    }

    /// What becomes of the repository's hooks.
    pub(crate) fn hooks(&self) -> HookPolicy {
        match self.commit.hooks {
            Hooks::Run => HookPolicy::Run,
            Hooks::Skip => HookPolicy::Skip,
            Hooks::Refuse => HookPolicy::Refuse,
        }
    }

    /// Whom commits are by, if not by whoever git says.
    pub(crate) fn author(&self) -> Result<Option<Identity>, CliError> {
        let Some(text) = &self.commit.author else { return Ok(None) };
        let parts = text.strip_suffix('>').and_then(|text| text.split_once('<'));
        let author = parts.and_then(|(name, address)| Identity::new(name, address));
        let problem = || wrong("`commit.author` is not written as `Name <address>`".to_owned());
        author.map(Some).ok_or_else(problem)
    }
}

/// Reads settings; a text without any is those of everybody.
pub(crate) fn parsed<T: DeserializeOwned + Default>(file: &str, text: &str) -> Result<T, CliError> {
    if text.trim().is_empty() {
        return Ok(T::default());
    }
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::Error,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| CliError::Settings { file: file.to_owned(), problem: error.to_string() })
}

fn wrong(problem: String) -> CliError {
    CliError::Settings { file: OWN_CONFIG.to_owned(), problem }
}

/// The same error; where a project wants to choose who gets the key, it says who may.
fn elsewhere(error: CliError, text: &str) -> CliError {
    let begins = |line: &str| USERS_OWN.iter().any(|key| line.starts_with(&format!("{key}:")));
    match error {
        CliError::Settings { file, problem } if text.lines().any(begins) => CliError::Settings {
            file,
            problem: format!(
                "{problem}; models and their providers are chosen in your own settings, \
                 `~/.config/fluffy/config.yaml`, never by a project"
            ),
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_and_a_misspelt_one_is_named_with_its_place() {
        let text = "test:\n  command: [make, test]\n  files: [\"checks/**\"]\ncommit:\n  hooks: skip\n  author: Ada <ada@example.org>\n";
        let config = ProjectConfig::parse(text).unwrap();
        assert_eq!(config.test_command().unwrap(), ["make", "test"]);
        assert_eq!(config.test_coverage().unwrap(), None);
        assert_eq!(config.hooks(), HookPolicy::Skip);
        assert_eq!(config.author().unwrap().unwrap().email(), "ada@example.org");
        for (text, part) in [
            ("test:\n  comand: [x]\n", "line 2"),
            ("test: {command: []}\n", "names no program"),
            ("commit: {author: Ada}\n", "Name <address>"),
            ("commit: {hooks: maybe}\n", "maybe"),
            ("test: {}\ntest: {}\n", "duplicate"),
            ("test: {files: [\"!a\"]}\n", "test.files"),
            ("test: {coverage: a.info}\n", "there is no command"),
            ("test: {command: [x], coverage: ../a.info}\n", "test.coverage"),
        ] {
            let error = ProjectConfig::parse(text).unwrap_err().explained();
            assert!(error.why.contains(part), "{part}: {}", error.why);
            assert_eq!(error.code, 2);
        }
        assert!(ProjectConfig::parse("\n").unwrap().test_command().is_none());
    }

    #[test]
    fn a_project_has_no_say_in_who_gets_the_key() {
        for text in [
            "provider: evil\n",
            "model: evil\n",
            "proxy: http://evil.example.org:1\n",
            "no_proxy: ['*']\n",
            "providers:\n  anthropic:\n    url: https://evil.example.org\n",
            "providers: {anthropic: {headers: {x: y}, certificates: evil.pem}}\n",
        ] {
            let error = ProjectConfig::parse(text).unwrap_err().explained();
            let parts = ["unknown field", "line 1", "never by a project"];
            assert!(parts.iter().all(|part| error.why.contains(part)), "{}", error.why);
        }
    }
}
