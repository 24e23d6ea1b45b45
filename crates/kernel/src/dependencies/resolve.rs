//! Finds out what a request means: which packages, from where, and what changes in the project's files.

use std::collections::BTreeMap;

use fluffy_base::{Digest, Json, ProjectPath};
use fluffy_dependencies::{
    InstallRequest, Judgement, Manager, Platform, REPORT, ResolvedPackage, WORK, edit_requirements,
    foreign_changes, ignore_line, judge, locked_requirements, named_modules, read_facts,
    read_packages, resolve_script, unknown_modules, unpack_script,
};
use fluffy_sandbox::Volume;
use serde_json::{Value, json};

use super::sandbox::{SandboxStep, TIME, add_files, below, read_left};
use super::{Dependencies, Resolution, Resolved, Source};
use crate::environments::Making;
use crate::files::{Found, View};
use crate::session::{Desk, failed};
use crate::tools::Views as _;
use crate::workshop::Layer;
use crate::{Clerk, LeftFile, ToolError};

/// The largest manifest or lock file.
const MAX_FILE: u64 = 32 << 20;

/// The most files that managers are shown.
const MAX_FILES: usize = 20_000;

/// The folder of a project's own repository.
const IGNORE_FILE: &str = ".gitignore";

/// The files that managers look at, by path.
type Files = BTreeMap<ProjectPath, Vec<u8>>;

/// What a manager left when it resolved.
struct Fetched {
    /// The files beside its archives.
    left: Vec<LeftFile>,
    /// What pip tells of its choice.
    report: Option<String>,
    /// What registries tell of packages.
    facts: Vec<u8>,
}

impl Dependencies {
    /// Remembers why the arguments of a call were not resolved.
    pub(crate) fn refuse(&self, params: &Json, why: &str) {
        let arguments = Digest::of(params.canonical().as_bytes());
        *self.resolution() = Some(Resolution { arguments, outcome: Err(why.to_owned()) });
    }

    /// Resolves the arguments of a call, and remembers what came of it for the call itself.
    pub(crate) fn resolve(
        &self,
        desk: &Desk,
        params: &Json,
        clerk: &dyn Clerk,
    ) -> Result<Value, ToolError> {
        let arguments = Digest::of(params.canonical().as_bytes());
        // What was resolved before is dropped, with its archives.
        *self.resolution() = None;
        let outcome = self.resolved(desk, params, clerk);
        let told = match &outcome {
            Ok(resolved) => Ok(told(resolved)),
            Err(error) => Err(ToolError(error.0.clone())),
        };
        let outcome = outcome.map_err(|error| error.0);
        *self.resolution() = Some(Resolution { arguments, outcome });
        told
    }

    fn resolved(
        &self,
        desk: &Desk,
        params: &Json,
        clerk: &dyn Clerk,
    ) -> Result<Resolved, ToolError> {
        let view = desk.view();
        let root = root_of(params)?;
        let request = request(params, &view, root.as_ref())?;
        let manager = request.manager;
        let known = self.inputs(desk, &view, root.as_ref(), manager)?;
        let before = match manager.lock() {
            Some(_) => packages_of(manager, root.as_ref(), &known, None).unwrap_or_default(),
            None => installed_before(desk, manager, root.as_ref()),
        };
        let empty = Layer::new(&desk.scratch(), self.options.lab.project())
            .map_err(|error| failed(&error))?;
        let tool = self.version(manager, &empty, clerk)?;
        let resolved = Resolved {
            request,
            root,
            before,
            packages: Vec::new(),
            changed: Vec::new(),
            key: String::new(),
            files: known,
            tool,
            judgement: Judgement::default(),
            source: Source::Nothing,
        };
        let key = self.key(manager, &resolved.tool, resolved.root.as_ref(), &resolved.files);
        let resolved = Resolved { key, ..resolved };
        let is_known = resolved.request.is_plain()
            && is_locked(manager, resolved.root.as_ref(), &resolved.files);
        let stored = is_known.then(|| self.stored(&resolved.key)).flatten();
        let resolved = match stored {
            Some(environment) => Resolved {
                packages: environment.record.packages.clone(),
                source: Source::Stored(environment),
                ..resolved
            },
            None => self.resolved_anew(desk, &view, resolved, clerk)?,
        };
        let judgement = self.judged(desk, manager, &resolved.before, &resolved.packages);
        Ok(Resolved { judgement, ..resolved })
    }

    /// Resolves by the manager itself, with the network.
    fn resolved_anew(
        &self,
        desk: &Desk,
        view: &View,
        resolved: Resolved,
        clerk: &dyn Clerk,
    ) -> Result<Resolved, ToolError> {
        let (request, root) = (&resolved.request, resolved.root.as_ref());
        let (manager, known) = (request.manager, resolved.files.clone());
        let mut files = known.clone();
        let wanted = edited(request, root, &mut files)?;
        self.check_hosts(request, root, &files)?;
        let making = self.options.store.begin().map_err(|error| failed(&error))?;
        let fetched = self.fetch(desk, request, root, &files, &making, clerk)?;
        take_changes(manager, root, &known, fetched.left, &mut files)?;
        let mut packages = packages_of(manager, root, &files, fetched.report.as_deref())?;
        read_facts(&mut packages, &fetched.facts);
        pin(request, wanted, &packages, &known, &mut files)?;
        keep_out_of_commits(view, manager, root, &mut files)?;
        let changed = files.iter().filter(|(path, bytes)| known.get(*path) != Some(*bytes));
        let changed = changed.map(|(path, _)| path.clone()).collect();
        let key = self.key(manager, &resolved.tool, root, &files);
        let source = match self.stored(&key) {
            Some(environment) => Source::Stored(environment),
            None if packages.is_empty() && manager.ecosystem() != "pypi" => Source::Nothing,
            None => Source::Fetched(making),
        };
        Ok(Resolved { packages, files, changed, key, source, ..resolved })
    }

    /// Refuses to look up Go modules of hosts that are not known: the lookup itself would tell them something.
    fn check_hosts(
        &self,
        request: &InstallRequest,
        root: Option<&ProjectPath>,
        files: &Files,
    ) -> Result<(), ToolError> {
        // Who has a mirror of their own decides there what it asks.
        let usual = self.options.registries.hosts(Manager::Go);
        let public =
            Manager::Go.default_registries().iter().all(|host| usual.iter().any(|it| it == host));
        if request.manager != Manager::Go || !public {
            return Ok(());
        }
        let manifest = below(root, Manager::Go.manifest())?;
        let manifest = files.get(&manifest).map(Vec::as_slice).unwrap_or_default();
        let mut names = named_modules(&String::from_utf8_lossy(manifest));
        names.extend(request.add.iter().map(|spec| spec.name.clone()));
        let unknown = unknown_modules(&names, &self.rules);
        let Some(first) = unknown.first() else { return Ok(()) };
        let first = fluffy_base::Excerpt::new(first, 100);
        Err(ToolError(format!(
            "`{first}` lies on a host that is not known, and is not looked up: the host would be asked for it by name; \
             the user can allow it in `dependencies.allow` of the policy, as `go:{first}`"
        )))
    }

    fn judged(
        &self,
        desk: &Desk,
        manager: Manager,
        before: &[ResolvedPackage],
        packages: &[ResolvedPackage],
    ) -> Judgement {
        let installed = desk.look().progress.installed.clone();
        let agreed = |package: &ResolvedPackage| {
            let id = package.id();
            let same = installed.iter().filter(|it| it.manager.ecosystem() == manager.ecosystem());
            same.flat_map(|it| &it.packages).any(|known| *known == id)
        };
        let hosts = self.options.registries.hosts(manager);
        judge(manager, before, packages, &self.rules, &hosts, &agreed, self.clock.now_ms())
    }

    /// The manifests, lock files and settings of a package and, for workspaces, of those below it.
    fn inputs(
        &self,
        desk: &Desk,
        view: &View,
        root: Option<&ProjectPath>,
        manager: Manager,
    ) -> Result<Files, ToolError> {
        let mut files = Files::new();
        let walked = match view.walk(root) {
            Ok(walked) => walked.files,
            Err(error) => return Err(failed(&error)),
        };
        for path in walked {
            // Cargo demands that the files of its targets are there; what is in them does not matter.
            let is_target = manager == Manager::Cargo && path.as_str().ends_with(".rs");
            if !(manager.reads(&path) || is_target) || !desk.may_read(&path) {
                continue;
            }
            if files.len() >= MAX_FILES {
                return Err(ToolError(format!(
                    "the project has more than {MAX_FILES} files that {manager} looks at"
                )));
            }
            let bytes = if is_target {
                Vec::new()
            } else {
                view.read(&path, MAX_FILE).map_err(|error| failed(&error))?
            };
            files.insert(path, bytes);
        }
        // A lock file counts although the project keeps it out of commits.
        for name in manager.lock().into_iter().chain([manager.manifest()]) {
            let path = below(root, name)?;
            if !files.contains_key(&path) && is_file(view, &path) && desk.may_read(&path) {
                files.insert(
                    path.clone(),
                    view.read(&path, MAX_FILE).map_err(|error| failed(&error))?,
                );
            }
        }
        Ok(files)
    }

    /// Lets the manager resolve and fetch: what it left, pip's report, and what registries tell.
    fn fetch(
        &self,
        desk: &Desk,
        request: &InstallRequest,
        root: Option<&ProjectPath>,
        files: &Files,
        making: &Making,
        clerk: &dyn Clerk,
    ) -> Result<Fetched, ToolError> {
        let manager = request.manager;
        let layer = self.layer_of(desk, root, files)?;
        let registries = &self.options.registries;
        let settings = below(root, &format!("{WORK}/settings"))?;
        let at = self.options.lab.project().join(settings.as_str());
        let at =
            at.to_str().ok_or_else(|| ToolError("the project's path is not UTF-8".to_owned()))?;
        let script = resolve_script(request, registries, at, self.rules.min_age.is_some());
        add_files(&layer, root, &script.files)?;
        let own: Vec<(String, String)> = registries
            .files_for_sandbox()
            .into_iter()
            .map(|(name, text)| (format!("settings/{name}"), text))
            .collect();
        let own: Vec<(&str, String)> =
            own.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
        add_files(&layer, root, &own)?;
        let step = SandboxStep {
            what: "resolving the packages",
            script,
            root,
            layers: vec![layer.dir().to_owned()],
            hosts: registries.hosts(manager),
            keeps: true,
            time: TIME,
        };
        let (mut errands, volume) = self.run_step(step, clerk)?;
        let volume =
            volume.ok_or_else(|| ToolError("the package manager left nothing".to_owned()))?;
        let fetched = take_work(&volume, root, making)?;
        let read = |name: &str| read_left(&fetched.join(name), MAX_FILE).ok();
        let report = read(REPORT).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let facts = read("facts.json").unwrap_or_default();
        let left = errands.left.take().unwrap_or_default();
        Ok(Fetched { left: left.files, report, facts })
    }

    /// A layer with these files, in a project that has nothing else.
    pub(super) fn layer_of(
        &self,
        desk: &Desk,
        root: Option<&ProjectPath>,
        files: &Files,
    ) -> Result<Layer, ToolError> {
        let layer = Layer::new(&desk.scratch(), self.options.lab.project())
            .map_err(|error| failed(&error))?;
        if let Some(root) = root {
            layer.directory(root, &[]).map_err(|error| failed(&error))?;
        }
        for (path, bytes) in files {
            if let Some(above) = path.parent() {
                layer.directory(&above, &[]).map_err(|error| failed(&error))?;
            }
            let text = String::from_utf8_lossy(bytes);
            layer.file(path, &text).map_err(|error| failed(&error))?;
        }
        Ok(layer)
    }

    /// The hash of everything that decides what is installed.
    fn key(
        &self,
        manager: Manager,
        tool: &str,
        root: Option<&ProjectPath>,
        files: &Files,
    ) -> String {
        let texts: BTreeMap<&str, String> = files
            .iter()
            .filter(|(path, _)| manager.reads(path))
            .map(|(path, bytes)| (path.as_str(), Digest::of(bytes).to_string()))
            .collect();
        // The programs of a virtual environment name the place where they lie.
        let place = (manager.ecosystem() == "pypi")
            .then(|| self.options.lab.project().display().to_string());
        let scripts: Vec<&str> = self.rules.scripts.iter().map(|pattern| pattern.text()).collect();
        let decides = json!({
            "version": 1,
            "recipe": unpack_script(manager, &self.options.registries).text,
            "manager": manager,
            "tool": tool,
            "platform": Platform::HERE,
            "root": root.map(ProjectPath::as_str),
            "place": place,
            "scripts": scripts,
            "files": texts,
        });
        Digest::of(decides.to_string().as_bytes()).to_string()
    }
}

/// Where the package of a call lies.
fn root_of(params: &Json) -> Result<Option<ProjectPath>, ToolError> {
    crate::tools::directory_named(params, "cwd")
}

/// The request of a call, with the manager that it names or that the project's files tell.
fn request(
    params: &Json,
    view: &View,
    root: Option<&ProjectPath>,
) -> Result<InstallRequest, ToolError> {
    let list = |name: &str| -> Vec<String> {
        let items = params.value().get(name).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let named = params.value().get("manager").and_then(Value::as_str);
    let manager = match named {
        Some(name) => name.parse::<Manager>().map_err(|error| failed(&error))?,
        None => {
            let has = |name: &str| below(root, name).is_ok_and(|path| is_file(view, &path));
            Manager::detect(&has).ok_or_else(|| {
                ToolError(
                    "no manifest tells which package manager the project uses; name it: `manager` is one of \
                     npm, pnpm, yarn, pip, uv, poetry, cargo, go"
                        .to_owned(),
                )
            })?
        }
    };
    let dev = params.value().get("dev").and_then(Value::as_bool).unwrap_or_default();
    InstallRequest::new(manager, &list("add"), &list("remove"), dev).map_err(|error| failed(&error))
}

fn is_file(view: &View, path: &ProjectPath) -> bool {
    matches!(view.look(path), Ok(Some(Found::File { .. })))
}

/// Whether the files say exactly what is installed.
fn is_locked(manager: Manager, root: Option<&ProjectPath>, files: &Files) -> bool {
    let name = manager.lock().unwrap_or(manager.manifest());
    below(root, name).is_ok_and(|path| files.contains_key(&path))
}

/// The packages that the files lock.
fn packages_of(
    manager: Manager,
    root: Option<&ProjectPath>,
    files: &Files,
    report: Option<&str>,
) -> Result<Vec<ResolvedPackage>, ToolError> {
    let text = |name: &str| {
        let bytes = below(root, name).ok().and_then(|path| files.get(&path).cloned());
        bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let lock = match manager.lock() {
        Some(name) => text(name),
        None => report.map(str::to_owned),
    };
    // A manager writes no lock file where there is nothing to lock.
    let Some(lock) = lock else { return Ok(Vec::new()) };
    let manifest = text(manager.manifest()).unwrap_or_default();
    read_packages(manager, &lock, &manifest).map_err(|error| failed(&error))
}

/// pip changes no file: the requirements are edited here, in the file that is told.
fn edited(
    request: &InstallRequest,
    root: Option<&ProjectPath>,
    files: &mut Files,
) -> Result<Option<ProjectPath>, ToolError> {
    if request.manager != Manager::Pip || request.is_plain() {
        return Ok(None);
    }
    let name = if request.dev { "requirements-dev.txt" } else { "requirements.txt" };
    let path = below(root, name)?;
    let text = String::from_utf8_lossy(files.get(&path).map(Vec::as_slice).unwrap_or_default())
        .into_owned();
    files
        .insert(path.clone(), edit_requirements(&text, &request.add, &request.remove).into_bytes());
    Ok(Some(path))
}

/// The packages that a manager without a lock file installed in this session.
fn installed_before(
    desk: &Desk,
    manager: Manager,
    root: Option<&ProjectPath>,
) -> Vec<ResolvedPackage> {
    let folder = below(root, manager.folder());
    let shown = desk.workshop.environments().all().into_iter();
    let mut shown =
        shown.filter(|it| folder.as_ref().is_ok_and(|folder| folder.as_str() == it.record.folder));
    shown.next().map(|it| it.record.packages.clone()).unwrap_or_default()
}

/// What was asked for without a version is written down with the one that it resolved to.
fn pin(
    request: &InstallRequest,
    wanted: Option<ProjectPath>,
    packages: &[ResolvedPackage],
    known: &Files,
    files: &mut Files,
) -> Result<(), ToolError> {
    let (Some(path), Manager::Pip) = (wanted, request.manager) else { return Ok(()) };
    let plain = |name: &str| name.to_ascii_lowercase().replace(['_', '.'], "-");
    let mut add = request.add.clone();
    for spec in add.iter_mut().filter(|spec| spec.version.is_none()) {
        let found = packages.iter().find(|package| plain(&package.name) == plain(&spec.name));
        spec.version = found.map(|package| package.version.clone());
    }
    let before = known.get(&path).map(Vec::as_slice).unwrap_or_default();
    let text = edit_requirements(&String::from_utf8_lossy(before), &add, &request.remove);
    files.insert(path, text.into_bytes());
    if locked_requirements(packages).is_none() {
        return Err(ToolError(
            "the registry gave no hash for a package, so that it cannot be checked".to_owned(),
        ));
    }
    Ok(())
}

/// Takes what a manager wrote: its own files, and of manifests dependencies alone.
fn take_changes(
    manager: Manager,
    root: Option<&ProjectPath>,
    known: &Files,
    left: Vec<LeftFile>,
    files: &mut Files,
) -> Result<(), ToolError> {
    for file in left {
        let name = file.path.file_name();
        let in_root = file.path.parent().as_ref() == root;
        let is_member = known.contains_key(&file.path);
        let is_own = manager.writes().any(|own| own == name) && (in_root || is_member);
        if !is_own || manager == Manager::Pip {
            continue;
        }
        if let (true, Some(before)) = (name == manager.manifest(), known.get(&file.path)) {
            let (before, after) =
                (String::from_utf8_lossy(before), String::from_utf8_lossy(&file.bytes));
            foreign_changes(manager, &before, &after).map_err(|error| failed(&error))?;
        }
        files.insert(file.path, file.bytes);
    }
    Ok(())
}

/// Keeps the folder of what is installed out of commits, where the project does not yet.
fn keep_out_of_commits(
    view: &View,
    manager: Manager,
    root: Option<&ProjectPath>,
    files: &mut Files,
) -> Result<(), ToolError> {
    let Some(line) = ignore_line(manager) else { return Ok(()) };
    let folder = below(root, line.trim_matches('/'))?;
    if view.ignoring()(&folder) {
        return Ok(());
    }
    let path = below(root, IGNORE_FILE)?;
    let before = match view.look(&path) {
        Ok(Some(Found::File { .. })) => {
            view.read(&path, MAX_FILE).map_err(|error| failed(&error))?
        }
        _none => Vec::new(),
    };
    let mut text = String::from_utf8_lossy(&before).into_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    files.insert(path, format!("{text}{line}\n").into_bytes());
    Ok(())
}

/// Moves the archives out of the volume, to where the sandbox that unpacks will find them.
fn take_work(
    volume: &Volume,
    root: Option<&ProjectPath>,
    making: &Making,
) -> Result<std::path::PathBuf, ToolError> {
    let work = below(root, WORK)?;
    let to = making.work("fetched").join(work.as_str());
    let above = to.parent().unwrap_or(&to);
    std::fs::create_dir_all(above).map_err(|error| failed(&error))?;
    volume
        .take_directory(std::path::Path::new(work.as_str()), &to)
        .map_err(|error| ToolError(format!("what was fetched cannot be taken: {error}")))?;
    Ok(to)
}

/// What is told of a resolution.
fn told(resolved: &Resolved) -> Value {
    let direct = resolved.packages.iter().filter(|package| package.direct).map(ResolvedPackage::id);
    json!({
        "manager": resolved.request.manager,
        "packages": resolved.packages.len(),
        "direct": direct.collect::<Vec<_>>(),
        "files": resolved.changed,
    })
}
