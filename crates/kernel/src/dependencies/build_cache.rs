//! Compiled dependencies of Cargo projects, kept between runs of tests.
//!
//! ```text
//! test.run ─► skeleton: manifests, lock file, settings, empty targets ─► key
//!                 │ not in the store
//!                 ▼
//!             cargo test --no-run in a sandbox without network that sees nothing else of the project
//!                 │ what was built of the project's own packages is removed
//!                 ▼
//!             Environment `target` in the store, read-only below every run of the same key
//! ```
//!
//! **Invariant.** What a run of tests or of a command writes is never read by another run. Only the build of a skeleton is
//! kept, and everything that it reads of the project is in its key.
//!
//! **Invariant.** No artefact of a package of the project is in a build cache: a stub never passes for the project's code.
//!
//! **Invariant.** Without a cache a run gives the same results, only later: whatever fails here is told and costs no test.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fluffy_base::{Digest, ProjectPath};
use fluffy_dependencies::{CargoSkeleton, Manager, Platform, ResolvedPackage, read_packages};
use fluffy_sandbox::Template;
use serde_json::json;

use super::Dependencies;
use super::install::take_folder;
use super::sandbox::{SandboxStep, TIME, below};
use crate::environments::{Environment, EnvironmentRecord};
use crate::files::{Found, View};
use crate::session::{Desk, failed};
use crate::workshop::{JOB_ENVIRONMENT, Layer};
use crate::{Journal, ToolError};

/// Where Cargo puts what it compiles.
const TARGET: &str = "target";

/// The largest manifest or lock file that is read.
const MAX_TEXT: u64 = 8 << 20;

/// Files that decide how Cargo builds, in the folder of a suite or above it.
const SETTINGS: [&str; 4] =
    [".cargo/config", ".cargo/config.toml", "rust-toolchain", "rust-toolchain.toml"];

/// How deep below `target` directories of fingerprints are looked for: `target/TRIPLE/PROFILE/.fingerprint`.
const FINGERPRINT_DEPTH: usize = 3;

/// The name of Cargo's directories of fingerprints.
const FINGERPRINTS: &str = ".fingerprint";

/// A suite of Cargo whose dependencies are to be compiled once.
pub(crate) struct BuildSubject<'a> {
    /// The project as the suite will see it.
    pub(crate) view: &'a View,
    /// Every file of that view that git does not ignore.
    pub(crate) files: &'a BTreeSet<ProjectPath>,
    /// What the suite must not see.
    pub(crate) hidden: &'a [ProjectPath],
    /// Where the suite is started; none is the project's root.
    pub(crate) root: Option<&'a ProjectPath>,
}

/// What a session knows of builds of dependencies.
#[derive(Debug, Default)]
pub(super) struct BuildCacheState {
    /// Held while one is made: the runs of a call must not make the same one twice.
    making: Mutex<()>,
    /// Versions of Cargo and its compiler, by the settings that choose them.
    versions: Mutex<BTreeMap<Digest, String>>,
    /// Keys whose build failed. They are not tried again in this session.
    failed: Mutex<BTreeSet<String>>,
}

/// Everything that decides what the dependencies are compiled to.
struct BuildInputs {
    skeleton: CargoSkeleton,
    packages: Vec<ResolvedPackage>,
    /// Where the packages of the session were unpacked.
    sources: Vec<Arc<Environment>>,
    cargo_home: Option<String>,
}

impl Dependencies {
    /// The compiled dependencies of a suite. None where there are none to compile, or where the person's own build serves;
    /// an error is a reason why the suite has to compile them itself, and is given once for each key.
    pub(crate) fn build_environment(
        &self,
        desk: &Desk,
        subject: &BuildSubject<'_>,
        journal: &dyn Journal,
    ) -> Result<Option<Arc<Environment>>, ToolError> {
        let Some(inputs) = self.build_inputs(desk, subject) else { return Ok(None) };
        let folder = below(subject.root, TARGET)?;
        let own_target = self.options.lab.project().join(folder.as_str());
        if has_own_tests(&own_target, inputs.skeleton.packages()) {
            return Ok(None);
        }
        let _alone = self.builds.making.lock().unwrap_or_else(PoisonError::into_inner);
        let layer = self.layer_of(desk, subject.root, inputs.skeleton.files())?;
        let tool = self.compiler_version(subject.root, &inputs, &layer, journal)?;
        let key = self.build_key(subject.root, &inputs, &tool);
        if let Some(found) = self.options.store.find(&key).map_err(|error| failed(&error))? {
            return Ok(Some(Arc::new(found)));
        }
        let known = || self.builds.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if known().contains(&key) {
            return Ok(None);
        }
        let made = self.make_build(subject.root, &inputs, (&key, &tool), &layer, journal);
        made.map(Some).inspect_err(|_| {
            known().insert(key);
        })
    }

    /// What decides the build; none where there is nothing to compile or the skeleton would not be the project's.
    fn build_inputs(&self, desk: &Desk, subject: &BuildSubject<'_>) -> Option<BuildInputs> {
        let folder = below(subject.root, TARGET).ok()?;
        let inside = format!("{folder}/");
        // A project that keeps files of its own there needs to see them.
        if subject.files.iter().any(|file| file.as_str().starts_with(&inside)) {
            return None;
        }
        let lock = below(subject.root, "Cargo.lock").ok()?;
        let mut texts = BTreeMap::new();
        texts.insert(lock.clone(), subject.text(&lock).ok()??);
        let packages = read_packages(Manager::Cargo, texts.get(&lock)?, "").ok()?;
        if packages.is_empty() {
            return None;
        }
        for manifest in subject.files.iter().filter(|file| file.file_name() == "Cargo.toml") {
            if let Some(text) = subject.text(manifest).ok()? {
                texts.insert(manifest.clone(), text);
            }
        }
        for path in subject.settings() {
            if let Some(text) = subject.text(&path).ok()? {
                texts.insert(path, text);
            }
        }
        let skeleton = CargoSkeleton::from_project(subject.files, &texts).ok()?;
        let mut sources = desk.workshop.environments().all();
        sources.retain(|source| source.record.manager == Manager::Cargo);
        let home = sources.last().map(|source| source.record.folder.clone());
        let home = home.map(|folder| desk.workshop.project().join(folder));
        let cargo_home = home
            .map(|home| home.to_str().map(str::to_owned))
            .map_or(Some(None), |home| home.map(Some))?;
        Some(BuildInputs { skeleton, packages, sources, cargo_home })
    }

    /// The versions of Cargo and of the compiler, found out once for the same settings.
    fn compiler_version(
        &self,
        root: Option<&ProjectPath>,
        inputs: &BuildInputs,
        layer: &Layer,
        journal: &dyn Journal,
    ) -> Result<String, ToolError> {
        let settings: BTreeMap<&str, String> = inputs
            .skeleton
            .files()
            .iter()
            .filter(|(path, _)| SETTINGS.iter().any(|name| path.as_str().ends_with(name)))
            .map(|(path, bytes)| (path.as_str(), Digest::of(bytes).to_string()))
            .collect();
        let known = Digest::of(json!(settings).to_string().as_bytes());
        let versions = || self.builds.versions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(version) = versions().get(&known) {
            return Ok(version.clone());
        }
        let step = SandboxStep {
            what: "finding out the version of Cargo",
            script: with_job_environment(CargoSkeleton::version_script(
                inputs.cargo_home.as_deref(),
            )),
            root,
            layers: inputs.layers(layer),
            hosts: Vec::new(),
            keeps: false,
            time: suite_time(),
        };
        let (errands, _nothing) = self.run_step(step, journal)?;
        let text = String::from_utf8_lossy(&errands.stdout.bytes);
        let version = text.split_whitespace().collect::<Vec<_>>().join(" ");
        versions().insert(known, version.clone());
        Ok(version)
    }

    /// The hash of everything that decides what is compiled.
    fn build_key(&self, root: Option<&ProjectPath>, inputs: &BuildInputs, tool: &str) -> String {
        let files = inputs.skeleton.files().iter();
        let files: BTreeMap<&str, String> =
            files.map(|(path, bytes)| (path.as_str(), Digest::of(bytes).to_string())).collect();
        let sources: Vec<&str> =
            inputs.sources.iter().map(|source| source.record.key.as_str()).collect();
        let decides = json!({
            "version": 1,
            "purpose": "build cache",
            "recipe": inputs.skeleton.build_script(inputs.cargo_home.as_deref()).text,
            "environment": JOB_ENVIRONMENT,
            "tool": tool,
            "platform": Platform::HERE,
            "project": self.options.lab.project().display().to_string(),
            "root": root.map(ProjectPath::as_str),
            "sources": sources,
            "files": files,
        });
        Digest::of(decides.to_string().as_bytes()).to_string()
    }

    /// Builds the skeleton and keeps what was compiled of the dependencies.
    fn make_build(
        &self,
        root: Option<&ProjectPath>,
        inputs: &BuildInputs,
        (key, tool): (&str, &str),
        layer: &Layer,
        journal: &dyn Journal,
    ) -> Result<Arc<Environment>, ToolError> {
        let step = SandboxStep {
            what: "compiling the dependencies",
            script: with_job_environment(
                inputs.skeleton.build_script(inputs.cargo_home.as_deref()),
            ),
            root,
            layers: inputs.layers(layer),
            hosts: Vec::new(),
            keeps: true,
            time: suite_time(),
        };
        let (_errands, volume) = self.run_step(step, journal)?;
        let folder = below(root, TARGET)?;
        let mut making = self.options.store.begin().map_err(|error| failed(&error))?;
        let top = making.layer().map_err(|error| failed(&error))?;
        take_folder(volume.as_ref(), &folder, &top)?;
        hand_over_parents(&folder, &top, self.options.lab.project())
            .map_err(|error| failed(&error))?;
        check_fingerprints(&top.join(folder.as_str()), &inputs.skeleton)?;
        let record = EnvironmentRecord {
            key: key.to_owned(),
            manager: Manager::Cargo,
            tool: tool.to_owned(),
            folder: folder.to_string(),
            packages: inputs.packages.clone(),
            created_ms: self.clock.now_ms(),
            files: 0,
            bytes: 0,
            contents: Vec::new(),
        };
        let made = making.finish(&self.options.store, record).map_err(|error| failed(&error))?;
        Ok(Arc::new(made))
    }
}

impl BuildSubject<'_> {
    /// The text of a file as the suite sees it: none where there is no such file, or it is hidden from the suite. A link or a
    /// file that is no text is an error, since a skeleton could not stand in for it.
    fn text(&self, path: &ProjectPath) -> Result<Option<String>, ToolError> {
        let mut above = std::iter::successors(Some(path.clone()), ProjectPath::parent);
        if above.any(|part| self.hidden.contains(&part)) {
            return Ok(None);
        }
        match self.view.look(path).map_err(|error| failed(&error))? {
            None => Ok(None),
            Some(Found::File { .. }) => {
                let bytes = self.view.read(path, MAX_TEXT).map_err(|error| failed(&error))?;
                String::from_utf8(bytes).map(Some).map_err(|error| failed(&error))
            }
            Some(_other) => Err(ToolError(format!("`{path}` is no regular file"))),
        }
    }

    /// Where Cargo and rustup look for settings: in the suite's folder and in every one above it.
    fn settings(&self) -> Vec<ProjectPath> {
        let folders = std::iter::successors(self.root.cloned(), ProjectPath::parent).map(Some);
        let folders = folders.chain([None]);
        let names = |folder: Option<ProjectPath>| {
            SETTINGS.iter().filter_map(move |name| below(folder.as_ref(), name).ok())
        };
        folders.flat_map(names).collect()
    }
}

impl BuildInputs {
    /// What the build sees: the packages of the session, and the skeleton.
    fn layers(&self, skeleton: &Layer) -> Vec<PathBuf> {
        let sources = self.sources.iter().flat_map(|source| source.layers());
        sources.chain([skeleton.dir().to_owned()]).collect()
    }
}

/// A script with the variables of every job: Cargo compiles again what was compiled with others.
fn with_job_environment(mut script: fluffy_dependencies::Script) -> fluffy_dependencies::Script {
    let fixed = JOB_ENVIRONMENT.iter();
    let fixed = fixed
        .map(|(name, value)| ((*name).to_owned(), fluffy_base::Secret::new((*value).to_owned())));
    script.env.splice(0..0, fixed);
    script
}

/// How long a suite may take, and so the build of its dependencies.
fn suite_time() -> fluffy_base::Span {
    Template::CodeExecutor.limits().duration.unwrap_or(TIME)
}

/// Whether the person has built the tests by hand: what they compiled is reused then, with the project's own packages.
fn has_own_tests(target: &Path, packages: &BTreeSet<String>) -> bool {
    let names = |directory: &Path| -> Vec<(String, PathBuf)> {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| Some((entry.file_name().to_str()?.to_owned(), entry.path())))
            .collect()
    };
    names(&target.join("debug").join(FINGERPRINTS)).iter().any(|(name, directory)| {
        let is_own =
            name.rsplit_once('-').is_some_and(|(package, _hash)| packages.contains(package));
        is_own && names(directory).iter().any(|(file, _)| file.starts_with("test-"))
    })
}

/// Gives the directories above the folder of an environment to the project's owner, as they are in the project: a layer shows
/// its own in their place.
fn hand_over_parents(folder: &ProjectPath, top: &Path, project: &Path) -> std::io::Result<()> {
    for above in std::iter::successors(folder.parent(), ProjectPath::parent) {
        let at = top.join(above.as_str());
        let found = std::fs::metadata(project.join(above.as_str()))
            .or_else(|_| std::fs::metadata(project))?;
        std::fs::set_permissions(&at, std::fs::Permissions::from_mode(found.mode() & 0o777))?;
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::lchown(&at, Some(found.uid()), Some(found.gid()))?;
        }
    }
    Ok(())
}

/// Refuses a build that holds anything of the project's own packages, or that is laid out in a way that is not known.
fn check_fingerprints(target: &Path, skeleton: &CargoSkeleton) -> Result<(), ToolError> {
    let mut found = 0_usize;
    let mut pending = vec![(target.to_owned(), 0)];
    while let Some((directory, depth)) = pending.pop() {
        for entry in std::fs::read_dir(&directory).map_err(|error| failed(&error))? {
            let entry = entry.map_err(|error| failed(&error))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if directory.ends_with(FINGERPRINTS) {
                found += 1;
                if skeleton.is_own_fingerprint(&name) {
                    return Err(ToolError(format!(
                        "the build of the dependencies left `{name}`, which belongs to the project itself"
                    )));
                }
                continue;
            }
            let kind = entry.file_type().map_err(|error| failed(&error))?;
            if kind.is_dir() && depth < FINGERPRINT_DEPTH {
                pending.push((entry.path(), depth + 1));
            }
        }
    }
    if found == 0 {
        return Err(ToolError("Cargo left no fingerprints of the dependencies".to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skeleton() -> CargoSkeleton {
        let manifest = ProjectPath::parse("Cargo.toml").unwrap();
        let texts = BTreeMap::from([(manifest, "[package]\nname = \"mine\"\n".to_owned())]);
        CargoSkeleton::from_project(&BTreeSet::new(), &texts).unwrap()
    }

    fn make(target: &Path, path: &str) {
        std::fs::create_dir_all(target.join(path)).unwrap();
    }

    #[test]
    fn build_with_an_artefact_of_the_project_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let check = || check_fingerprints(dir.path(), &skeleton());
        make(dir.path(), "debug/deps");
        assert!(check().unwrap_err().0.contains("no fingerprints"));
        make(dir.path(), "debug/.fingerprint/itoa-0123456789abcdef");
        check().unwrap();
        for place in ["debug", "x86_64-unknown-linux-gnu/debug"] {
            let own = format!("{place}/.fingerprint/mine-0123456789abcdef");
            make(dir.path(), &own);
            assert!(check().unwrap_err().0.contains("mine-0123456789abcdef"));
            std::fs::remove_dir(dir.path().join(own)).unwrap();
        }
        check().unwrap();
    }

    #[test]
    fn only_tests_of_the_project_are_a_build_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let has = || has_own_tests(dir.path(), skeleton().packages());
        let prints = "debug/.fingerprint";
        make(dir.path(), &format!("{prints}/itoa-0123456789abcdef/test-lib-itoa"));
        make(dir.path(), &format!("{prints}/mine-0123456789abcdef/lib-mine"));
        assert!(!has());
        make(dir.path(), &format!("{prints}/mine-fedcba9876543210/test-lib-mine"));
        assert!(has());
    }
}
