//! The project's rule files: read here, run in the policy host.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fluffy_base::{Digest, ProjectPath};
use fluffy_kernel::schedule::Scheduler;
use fluffy_kernel::{Extensions, LoadedExtensions, PolicyHost, RuleFile, Witness};
use fluffy_policy::MAX_RULE_BYTES;
use fluffy_sandbox::RuntimeError;

use crate::driver::Driver;

/// The rule files of a project, run by this program as a policy host.
#[derive(Debug)]
pub(crate) struct RuleFiles {
    project: PathBuf,
    driver: Option<Driver>,
    scheduler: Arc<Scheduler>,
    witness: Arc<Witness>,
}

impl RuleFiles {
    /// The files of the project at `project`, run in sandboxes of this driver.
    pub(crate) fn new(
        project: &Path,
        driver: Option<Driver>,
        scheduler: Arc<Scheduler>,
        witness: Arc<Witness>,
    ) -> Self {
        Self { project: project.to_owned(), driver, scheduler, witness }
    }

    fn read(&self, path: &ProjectPath) -> Result<RuleFile, String> {
        let failed = |error: std::io::Error| format!("cannot read `{path}`: {error}");
        // A link could lead out of what is protected, so no part of the way may be one.
        let root = std::fs::File::open(&self.project).map_err(failed)?;
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
        let resolve = rustix::fs::ResolveFlags::BENEATH | rustix::fs::ResolveFlags::NO_SYMLINKS;
        let file =
            rustix::fs::openat2(&root, path.as_str(), flags, rustix::fs::Mode::empty(), resolve)
                .map_err(|error| failed(error.into()))?;
        let mut text = String::new();
        std::fs::File::from(file)
            .take(MAX_RULE_BYTES as u64 + 1)
            .read_to_string(&mut text)
            .map_err(failed)?;
        let name = path.file_name().trim_end_matches(".ts").to_owned();
        Ok(RuleFile { name, path: path.to_string(), text })
    }
}

impl Extensions for RuleFiles {
    fn load(&self, paths: &[ProjectPath]) -> Result<LoadedExtensions, String> {
        if paths.is_empty() {
            return Ok(LoadedExtensions::default());
        }
        let driver = self.driver.as_ref().ok_or("this program cannot find itself")?;
        let files = paths.iter().map(|path| self.read(path)).collect::<Result<Vec<_>, _>>()?;
        // A name and a text have a digest each, so that no text can pass for a name.
        let digests: Vec<_> = files
            .iter()
            .flat_map(|file| [&file.path, &file.text])
            .map(|text| Digest::of(text.as_bytes()))
            .collect();
        let parts: Vec<&[u8]> = digests.iter().map(|digest| &digest.as_bytes()[..]).collect();
        let digest = Some(Digest::of_parts(&parts));
        let runtime = driver.open().map_err(|error| with_causes(&error))?;
        let runtime = self.scheduler.over(runtime);
        let witness = Arc::clone(&self.witness);
        let host = PolicyHost::start(runtime, driver.program(), files, witness);
        let host = host.map_err(|error| with_causes(&error))?;
        Ok(LoadedExtensions { rules: host.rules(), digest })
    }
}

fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    match (error.source(), error.downcast_ref()) {
        (Some(cause), _) => format!("{error}: {}", with_causes(cause)),
        // The remedy for the machine, which the policy's own would hide.
        (None, Some(RuntimeError::Unavailable { fix, .. })) => format!("{error} ({fix})"),
        (None, _) => error.to_string(),
    }
}
