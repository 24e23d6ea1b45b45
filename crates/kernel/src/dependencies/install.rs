//! Unpacks what was resolved and judged, and shows it to the session's sandboxes.

use std::path::Path;
use std::sync::Arc;

use fluffy_base::{Digest, Event as Told, Json, ProjectPath};
use fluffy_dependencies::{
    LOCKED, MAX_LOCK_BYTES, Manager, PackageChange, ResolvedPackage, WORK, package_changes,
    rebuild_script, unpack_script,
};
use fluffy_ledger::EventType;
use serde_json::{Value, json};

use super::sandbox::{SandboxStep, TIME, add_files, below, read_left};
use super::{Dependencies, InstalledEnvironment, Resolved, Source};
use crate::environments::{Environment, EnvironmentRecord, Making};
use crate::session::{Desk, Entry, failed};
use crate::workshop::Produced;
use crate::{Clerk, Note, ToolError};

/// The largest archive of a crate: the registry takes none that is larger.
const MAX_CRATE: u64 = 512 << 20;

/// How many packages an answer names.
const NAMED: usize = 40;

impl Dependencies {
    /// Installs what the arguments of a call resolved to.
    pub(crate) fn install(
        &self,
        desk: &Desk,
        params: &Json,
        clerk: &dyn Clerk,
    ) -> Result<Value, ToolError> {
        let arguments = Digest::of(params.canonical().as_bytes());
        let resolution = self.resolution().take().filter(|it| it.arguments == arguments);
        let resolved = match resolution.map(|it| it.outcome) {
            Some(Ok(resolved)) => resolved,
            Some(Err(why)) => return Err(ToolError(why)),
            None => return Err(ToolError("the packages were not resolved".to_owned())),
        };
        let environment = match &resolved.source {
            Source::Stored(environment) => Some(Arc::clone(environment)),
            Source::Nothing => None,
            Source::Fetched(_) => None,
        };
        let (resolved, environment) = match environment {
            Some(environment) => (resolved, Some(environment)),
            None => self.make(desk, resolved, clerk)?,
        };
        clerk.record(note(clerk, &resolved, environment.as_deref()))?;
        let step = self.stage(desk, &resolved, clerk)?;
        let installed = InstalledEnvironment {
            key: environment.as_ref().map(|it| it.record.key.clone()),
            manager: resolved.request.manager,
            root: resolved.root.clone(),
            packages: resolved.packages.iter().map(ResolvedPackage::id).collect(),
            files: resolved
                .changed
                .iter()
                .filter_map(|path| Some((path.clone(), Digest::of(resolved.files.get(path)?))))
                .collect(),
        };
        clerk.record(Entry::Installed(installed.clone()).note()?)?;
        desk.change().set(|inside| inside.progress.install(installed));
        let shown = desk.workshop.environments();
        match &environment {
            Some(environment) => shown.show(Arc::clone(environment), resolved.root.clone()),
            None => shown
                .hide(below(resolved.root.as_ref(), resolved.request.manager.folder())?.as_str()),
        }
        desk.observer.notice(Told::DependencyInstalled {
            manager: resolved.request.manager.name().to_owned(),
            packages: resolved.packages.iter().map(ResolvedPackage::id).collect(),
            environment: environment.map(|it| it.record.key.clone()),
        });
        Ok(self.answer(&resolved, step))
    }

    /// Unpacks the archives of a resolution into an environment.
    fn make(
        &self,
        desk: &Desk,
        resolved: Resolved,
        clerk: &dyn Clerk,
    ) -> Result<(Resolved, Option<Arc<Environment>>), ToolError> {
        let Resolved { source, .. } = resolved;
        let Source::Fetched(mut making) = source else {
            return Ok((Resolved { source: Source::Nothing, ..resolved }, None));
        };
        let resolved = Resolved { source: Source::Nothing, ..resolved };
        let manager = resolved.request.manager;
        let root = resolved.root.as_ref();
        check_archives(&resolved, &making)?;
        let layer = self.layer_of(desk, root, &resolved.files)?;
        let script = unpack_script(manager, &self.options.registries);
        add_files(&layer, root, &script.files)?;
        let fetched = making.work("fetched");
        let step = SandboxStep {
            what: "unpacking the packages",
            script,
            root,
            layers: vec![layer.dir().to_owned(), fetched],
            hosts: Vec::new(),
            keeps: true,
            time: TIME,
        };
        let (_errands, volume) = self.run_step(step, clerk)?;
        let folder = below(root, manager.folder())?;
        let top = making.layer().map_err(|error| failed(&error))?;
        take_folder(volume.as_ref(), &folder, &top)?;
        let wanted: Vec<&ResolvedPackage> =
            resolved.packages.iter().filter(|package| self.may_build(manager, package)).collect();
        if let Some(script) = rebuild_script(manager, &wanted) {
            let step = SandboxStep {
                what: "running the install scripts",
                script,
                root,
                layers: vec![layer.dir().to_owned(), top.clone()],
                hosts: Vec::new(),
                keeps: true,
                time: TIME,
            };
            let (_errands, volume) = self.run_step(step, clerk)?;
            let above = making.layer().map_err(|error| failed(&error))?;
            // Scripts that changed nothing leave nothing.
            let _changes = take_folder(volume.as_ref(), &folder, &above);
        }
        let record = EnvironmentRecord {
            key: resolved.key.clone(),
            manager,
            tool: resolved.tool.clone(),
            folder: folder.to_string(),
            packages: resolved.packages.clone(),
            created_ms: self.clock.now_ms(),
            files: 0,
            bytes: 0,
            contents: Vec::new(),
        };
        let environment =
            making.finish(&self.options.store, record).map_err(|error| failed(&error))?;
        Ok((resolved, Some(Arc::new(environment))))
    }

    /// Whether the install scripts of a package run.
    fn may_build(&self, manager: Manager, package: &ResolvedPackage) -> bool {
        let named = self
            .rules
            .scripts
            .iter()
            .any(|pattern| pattern.matches(manager.ecosystem(), &package.name));
        package.scripts && named
    }

    /// Stages the manifests and lock files that changed.
    fn stage(
        &self,
        desk: &Desk,
        resolved: &Resolved,
        clerk: &dyn Clerk,
    ) -> Result<Option<u64>, ToolError> {
        let mut produced = Vec::new();
        for path in &resolved.changed {
            let Some(bytes) = resolved.files.get(path) else { continue };
            let stored =
                desk.look().staging.blobs().put(bytes, false).map_err(|error| failed(&error))?;
            produced.push(Produced::File(path.clone(), stored));
        }
        desk.take_dependencies(clerk, &produced)
    }

    fn answer(&self, resolved: &Resolved, step: Option<u64>) -> Value {
        let manager = resolved.request.manager;
        let changes = package_changes(&resolved.before, &resolved.packages);
        let line = |change: &PackageChange| match change {
            PackageChange::Added(package) => format!("+{}", package.id()),
            PackageChange::Changed { to, .. } => format!("~{}", to.id()),
            PackageChange::Removed(package) => format!("-{}", package.id()),
        };
        let direct =
            resolved.packages.iter().filter(|package| package.direct).map(ResolvedPackage::id);
        let mut told = json!({
            "manager": manager,
            "packages": resolved.packages.len(),
            "direct": direct.take(NAMED).collect::<Vec<_>>(),
            "changes": changes.iter().take(NAMED).map(line).collect::<Vec<_>>(),
            "files": resolved.changed,
        });
        let idle = resolved
            .packages
            .iter()
            .filter(|package| package.scripts && !self.may_build(manager, package));
        let idle: Vec<String> = idle.map(|package| package.name.clone()).take(NAMED).collect();
        if let Value::Object(members) = &mut told {
            if let Some(step) = step {
                members.insert("step".to_owned(), step.into());
            }
            if !idle.is_empty() && manager.ecosystem() == "npm" {
                let text = "their install scripts did not run; the user can name them in `dependencies.scripts` of the policy";
                members.insert(
                    "scripts_not_run".to_owned(),
                    json!({ "packages": idle, "note": text }),
                );
            }
        }
        told
    }
}

/// Moves the folder that a manager filled out of its volume.
pub(super) fn take_folder(
    volume: Option<&fluffy_sandbox::Volume>,
    folder: &ProjectPath,
    top: &Path,
) -> Result<(), ToolError> {
    let volume = volume.ok_or_else(|| ToolError("the package manager left nothing".to_owned()))?;
    let to = top.join(folder.as_str());
    let above = to.parent().unwrap_or(&to);
    std::fs::create_dir_all(above).map_err(|error| failed(&error))?;
    let taken = volume.take_directory(Path::new(folder.as_str()), &to);
    taken.map_err(|error| {
        ToolError(format!("the package manager left no `{folder}` that could be taken: {error}"))
    })
}

/// Holds archives against the hashes of the lock file, where the manager itself trusts what lies in its cache; and has pip
/// install what was judged, by hash.
fn check_archives(resolved: &Resolved, making: &Making) -> Result<(), ToolError> {
    let work = below(resolved.root.as_ref(), WORK)?;
    let work = making.work("fetched").join(work.as_str());
    match resolved.request.manager {
        Manager::Cargo => check_crates(&work, &resolved.packages),
        Manager::Pip => {
            let expected = fluffy_dependencies::locked_requirements(&resolved.packages);
            let expected = expected.ok_or_else(|| ToolError("a package has no hash".to_owned()))?;
            let locked = locked_lines(&work)?;
            let mut found: Vec<&str> = locked.lines().collect();
            let mut expected: Vec<&str> = expected.lines().collect();
            found.sort_unstable();
            expected.sort_unstable();
            if found == expected { Ok(()) } else { Err(other_than_resolved()) }
        }
        Manager::Poetry => {
            let lock = below(resolved.root.as_ref(), "poetry.lock")?;
            let lock = resolved.files.get(&lock).map(Vec::as_slice).unwrap_or_default();
            let lock = String::from_utf8_lossy(lock);
            let locked = locked_lines(&work)?;
            let mut hashes =
                locked.split_whitespace().filter_map(|word| word.strip_prefix("--hash="));
            if hashes.all(|hash| lock.contains(hash)) { Ok(()) } else { Err(other_than_resolved()) }
        }
        _held_against_by_the_manager => Ok(()),
    }
}

/// The requirements that pip would install.
fn locked_lines(work: &Path) -> Result<String, ToolError> {
    let bytes =
        read_left(&work.join(LOCKED), MAX_LOCK_BYTES as u64).map_err(|error| failed(&error))?;
    String::from_utf8(bytes).map_err(|error| failed(&error))
}

fn other_than_resolved() -> ToolError {
    ToolError("what would be unpacked is not what was resolved".to_owned())
}

/// Cargo unpacks what lies in its cache without another look at the hash.
fn check_crates(work: &Path, packages: &[ResolvedPackage]) -> Result<(), ToolError> {
    let cache = work.join("home/registry/cache");
    let mut registries = Vec::new();
    if let Ok(entries) = std::fs::read_dir(&cache) {
        registries.extend(entries.flatten().map(|entry| entry.path()));
    }
    for package in packages {
        let id = package.id();
        let expected = package.integrity.as_deref().and_then(|text| text.strip_prefix("sha256:"));
        let expected =
            expected.ok_or_else(|| ToolError(format!("`{id}` has no hash in the lock file")))?;
        let name = format!("{}-{}.crate", package.name, package.version);
        for archive in
            registries.iter().map(|registry| registry.join(&name)).filter(|path| path.exists())
        {
            let bytes = read_left(&archive, MAX_CRATE).unwrap_or_default();
            if Digest::of(&bytes).to_string() != expected {
                return Err(ToolError(format!(
                    "the archive of `{id}` is not the one that the lock file names: its hash is another"
                )));
            }
        }
    }
    Ok(())
}

/// What the ledger remembers of an installation: every package, with what asked for it.
fn note(clerk: &dyn Clerk, resolved: &Resolved, environment: Option<&Environment>) -> Note {
    let manager = resolved.request.manager;
    let count = resolved.packages.len();
    let asked: Vec<&str> = resolved.request.add.iter().map(|spec| spec.name.as_str()).collect();
    let mut metadata = vec![
        ("manager", manager.name().to_owned()),
        ("packages", count.to_string()),
        ("asked_for", asked.join(", ")),
        ("tool", resolved.tool.clone()),
    ];
    metadata.extend(environment.map(|it| ("environment", it.record.key.clone())));
    let content = json!({
        "manager": manager,
        "root": resolved.root,
        "asked_by": clerk.request_id(),
        "packages": resolved.packages,
    });
    Note {
        event: EventType::DependencyInstalled,
        intent: match count {
            1 => format!("1 package is installed with {manager}"),
            count => format!("{count} packages are installed with {manager}"),
        },
        request_id: None,
        workflow_state: None,
        metadata,
        content: Some(content),
    }
}
