//! The environments of a session: what its sandboxes see of what package managers installed.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use fluffy_base::ProjectPath;
use fluffy_dependencies::Manager;
use fluffy_sandbox::Job;

use crate::environments::Environment;

/// The environments of a session, one for each manager and folder of the project.
#[derive(Debug, Default)]
pub(crate) struct Environments(RwLock<Vec<Shown>>);

/// An environment, and where its package lies.
#[derive(Debug, Clone)]
struct Shown {
    environment: Arc<Environment>,
    root: Option<ProjectPath>,
}

impl Environments {
    /// Shows an environment from now on, in place of the one that the same manager had there.
    pub(crate) fn show(&self, environment: Arc<Environment>, root: Option<ProjectPath>) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|shown| shown.environment.record.folder != environment.record.folder);
        all.push(Shown { environment, root });
    }

    /// Shows no environment of this folder any more.
    pub(crate) fn hide(&self, folder: &str) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|shown| shown.environment.record.folder != folder);
    }

    /// Those that are shown.
    pub(crate) fn all(&self) -> Vec<Arc<Environment>> {
        self.shown().into_iter().map(|shown| shown.environment).collect()
    }

    fn shown(&self) -> Vec<Shown> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The directories to be laid over the project, the lowest first.
    pub(super) fn layers(&self) -> Vec<PathBuf> {
        self.shown().iter().flat_map(|shown| shown.environment.layers()).collect()
    }

    /// The interpreter of a virtual environment that is shown for a package, as a path from the project's root.
    pub(super) fn python(&self, root: Option<&ProjectPath>) -> Option<PathBuf> {
        let shown = self.shown();
        let at = |wanted: Option<&ProjectPath>| {
            let mut found =
                shown.iter().filter(|shown| shown.environment.record.manager.ecosystem() == "pypi");
            found.find(|shown| shown.root.as_ref() == wanted)
        };
        let found = at(root).or_else(|| at(None))?;
        Some(Path::new(&found.environment.record.folder).join("bin/python3"))
    }

    /// A job with the variables and search path by which programs find what is installed. What is installed takes no
    /// program's place: a package may bring a `node` of its own. Python alone is the environment's.
    pub(super) fn activated(&self, mut job: Job, project: &Path) -> Job {
        for Shown { environment, .. } in self.shown() {
            let folder = project.join(&environment.record.folder);
            let mut set = |name: &str, value: PathBuf| {
                job.env.retain(|(known, _)| known != name);
                job.env.push((name.into(), value.into_os_string()));
            };
            match environment.record.manager {
                Manager::Npm | Manager::Pnpm | Manager::Yarn => {
                    job.path_last.push(folder.join(".bin"))
                }
                Manager::Pip | Manager::Uv | Manager::Poetry => {
                    if job.program == "python3" || job.program == "python" {
                        job.program = folder.join("bin/python3").into_os_string();
                    }
                    job.path_last.push(folder.join("bin"));
                    set("VIRTUAL_ENV", folder);
                }
                Manager::Cargo => set("CARGO_HOME", folder),
                Manager::Go => set("GOMODCACHE", folder),
            }
        }
        job
    }
}
