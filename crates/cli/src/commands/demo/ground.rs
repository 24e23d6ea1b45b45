//! Where the demo happens: a fresh directory with a project in it, committed if there is git.

use std::io;
use std::path::{Path, PathBuf};

use fluffy_base::{IdSource as _, SystemIds};
use fluffy_ledger::LedgerError;
use fluffy_sandbox::harvest::{Change, HarvestLimits, Kind, harvest};
use fluffy_sandbox::{Job, Store, Workspace};

use super::language::{Language, config};
use crate::commands::{create, write};
use crate::environment::Environment;
use crate::explain::CliError;
use crate::place::Place;

/// Makes the first commit. Nobody's settings are read, and no hooks are there to run.
const FIRST_COMMIT: &str = "git init --quiet --template= --initial-branch=main && git add --all && \
                            git commit --quiet --message 'The project as it was'";

/// A directory of the demo's own, and what will lie in it.
#[derive(Debug)]
pub(crate) struct Ground {
    /// The project.
    pub(crate) project: PathBuf,
    /// What the recorded model says.
    pub(crate) transcript: PathBuf,
    /// The exported evidence.
    pub(crate) evidence: PathBuf,
}

impl Ground {
    /// A directory that nobody has seen before, for the user alone.
    pub(crate) fn fresh(environment: &Environment) -> Result<Self, CliError> {
        use std::os::unix::fs::DirBuilderExt as _;
        let fresh = SystemIds.fresh().ok_or(CliError::Ledger(LedgerError::NoRandomness))?;
        let mark: String = fresh.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
        let temp = environment.temp.as_deref().unwrap_or_else(|| Path::new("/tmp"));
        let dir = temp.join(format!("fluffy-demo-{mark}"));
        let project = dir.join("project");
        for path in [&dir, &project] {
            let made = std::fs::DirBuilder::new().mode(0o700).create(path);
            made.map_err(|source| failed("make", path, source))?;
        }
        let (transcript, evidence) = (dir.join("transcript.jsonl"), dir.join("evidence.json"));
        Ok(Self { project, transcript, evidence })
    }

    /// Writes the project and the transcript.
    pub(crate) fn lay(&self, language: Language) -> Result<(), CliError> {
        for (name, text) in language.files() {
            self.put(name, text.as_bytes())?;
        }
        write(&self.transcript, language.transcript().as_bytes())
    }

    /// Commits the project; whether there is a git that could. Git runs in a sandbox like everything
    /// else, and only what it left in `.git` is taken.
    pub(crate) fn commit(
        &self,
        place: &Place,
        environment: &Environment,
    ) -> Result<bool, CliError> {
        let native = place.sandboxes(environment)?;
        let volume = native.volume(Store::Disk)?;
        let overlay = Workspace::overlay(&self.project, volume.clone());
        let config = config(environment)?.with_workspace(overlay)?;
        let names = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|name| (name, "fluffy demo"));
        let mails =
            ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|name| (name, "demo@localhost"));
        let files = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"].map(|name| (name, "/dev/null"));
        let job = Job::new("sh").args(["-c", FIRST_COMMIT]);
        let given = names.into_iter().chain(mails).chain(files);
        let job = given.fold(job, |job, (name, value)| job.env(name, value));
        let sandbox = native.create(config, job)?;
        let outcome = sandbox.start(std::sync::Arc::new(())).and_then(|()| sandbox.wait());
        sandbox.remove();
        match outcome {
            Ok(outcome) if outcome.is_success() => {}
            // Without git the demo is the same but for the commit.
            Ok(_) | Err(_) => return Ok(false),
        }
        let Some(content) = volume.content() else { return Ok(false) };
        let found = harvest(content, Kind::Overlay, &HarvestLimits::default(), &|_| false)?;
        for change in found.changes() {
            let Change::Write(written) = change else { continue };
            if written.path().components().next() == Some(".git") {
                let path = self.make_way(written.path().as_str())?;
                found.copy(written, &mut create(&path)?)?;
            }
        }
        Ok(true)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), CliError> {
        write(&self.make_way(name)?, bytes)
    }

    /// Where a file of the project lies, in a directory that is there.
    fn make_way(&self, name: &str) -> Result<PathBuf, CliError> {
        let path = self.project.join(name);
        if let Some(folder) = path.parent() {
            let made = std::fs::create_dir_all(folder);
            made.map_err(|source| failed("make", folder, source))?;
        }
        Ok(path)
    }
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> CliError {
    CliError::File { action, path: path.to_owned(), source }
}
