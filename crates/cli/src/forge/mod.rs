//! The forge of a project, put together in the kernel's process: memory, sandboxes, steps and runs of its skills.
//!
//! **Invariant.** Secrets, the local model and the proxy are what the client handed over for this piece of work; they are
//! gone with it.

mod answer;
mod explained;
mod person;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fluffy_base::{ProjectPath, Secret, SystemClock, SystemIds};
use fluffy_forge::steps::{StepOptions, Steps};
use fluffy_forge::{
    Gateway, PatternRule, RulesError, RunOptions, Runs, ScanRules, Secrets, Shelf, ShelfOptions,
    Skill, SkillName, base, locate,
};
use fluffy_kernel::{Lab, Tree, WorkshopOptions};

pub(crate) use self::answer::{Answer, Chained, Installed, Ran, Rebuilt, Replayed};
pub(crate) use self::explained::of_chain;
pub(crate) use self::person::person;

use crate::drive::Scene;
use crate::environment::Environment;
use crate::explain::{CliError, Explained};
use crate::place::{OWN_POLICY, Place};
use crate::policy_source::PolicySource;
use crate::toolchains;
use crate::wire::Handed;

/// What runs skills where the tools that check them are not installed.
const SYSTEM_PYTHON: &str = "/usr/bin/python3";

/// The forge of a project.
pub(crate) struct Forge {
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) lab: Arc<Lab>,
    pub(crate) runs: Arc<Runs>,
    pub(crate) steps: Arc<Steps>,
}

/// Secrets that a client handed over.
struct HandedSecrets(Vec<(String, Secret)>);

impl Secrets for HandedSecrets {
    fn secret(&self, name: &str) -> Option<Secret> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, secret)| Secret::new(secret.expose().to_owned()))
    }
}

impl Forge {
    /// Opens the forge of a scene's project.
    pub(crate) fn open(scene: &Scene<'_>, handed: Handed) -> Result<Self, CliError> {
        let (place, environment) = (scene.place, scene.environment);
        let shelf = Arc::new(Shelf::open(shelf_options(place, true)?)?);
        let lab = Arc::new(lab(scene, &handed)?);
        let gateway: Arc<dyn Gateway> = match handed.gateway {
            Some(setup) => Arc::new(setup.open(place, &scene.runtime)?),
            None => Arc::new(()),
        };
        let runs = Runs::new(RunOptions {
            shelf: Arc::clone(&shelf),
            lab: Arc::clone(&lab),
            gateway: Arc::clone(&gateway),
            secrets: Arc::new(HandedSecrets(handed.secrets)),
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
            python: python(place),
        });
        let path = environment.path.iter().flat_map(std::env::split_paths);
        let steps = Steps::new(StepOptions {
            shelf: Arc::clone(&shelf),
            lab: Arc::clone(&lab),
            gateway,
            rules: rules(place)?,
            cache: place.cache()?,
            dir: place.forge(),
            path: path.filter(|path| path.is_absolute()).collect(),
            // Whoever serves has found it out before the walls closed.
            person: environment
                .user
                .clone()
                .ok_or_else(|| CliError::Told(Explained::confused()))?,
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
        });
        Ok(Self { shelf, lab, runs, steps })
    }
}

/// The forge's memory for whoever only looks; nothing where no skill was ever proposed.
pub(crate) fn look(place: &Place) -> Result<Option<Shelf>, CliError> {
    if !place.forge().is_dir() || place.existing_key()?.is_none() {
        return Ok(None);
    }
    Ok(Some(Shelf::look(shelf_options(place, false)?)?))
}

/// One skill, for whoever only looks.
pub(crate) fn look_at(place: &Place, name: &SkillName) -> Result<(Shelf, Skill), CliError> {
    let unknown = || fluffy_forge::ShelfError::Unknown(name.clone());
    let shelf = look(place)?.ok_or_else(unknown)?;
    let skill = shelf.skill(name)?;
    Ok((shelf, skill))
}

fn shelf_options(place: &Place, make_key: bool) -> Result<ShelfOptions, CliError> {
    let key = match place.existing_key()? {
        Some(key) => key,
        None if make_key => place.key()?,
        None => return Err(CliError::NoLedger),
    };
    Ok(ShelfOptions {
        layout: place.layout(),
        key: key.verifying_key().clone(),
        dir: place.forge(),
        project: place.project().to_owned(),
        base: base().digest(),
    })
}

/// Where a scene's errands, skills and plugins run.
pub(crate) fn lab(scene: &Scene<'_>, handed: &Handed) -> Result<Lab, CliError> {
    let place = scene.place;
    let mut shown = toolchains::of(scene.environment);
    let seen = |path: &PathBuf| path.exists();
    for path in place.skill_tools().into_iter().filter(seen) {
        if !shown.iter().any(|known| path.starts_with(known)) {
            shown.push(path);
        }
    }
    let upstream = handed.proxy.as_ref().map(crate::providers::upstream).transpose()?;
    let options = WorkshopOptions {
        runtime: Arc::clone(&scene.runtime),
        project: place.project().to_owned(),
        home: scene.environment.home.clone(),
        shown,
        program: place.executable()?,
    };
    let lab = Lab::new(options).through(upstream.map(Arc::new));
    Ok(lab.seen_by(Arc::clone(place.witness())))
}

/// The interpreter that runs skills: the one that they were checked with.
pub(crate) fn python(place: &Place) -> PathBuf {
    let tools = place.cache().ok().and_then(|cache| locate(&cache).ok());
    let real = tools.and_then(|tools| std::fs::canonicalize(tools.python).ok());
    real.unwrap_or_else(|| PathBuf::from(SYSTEM_PYTHON))
}

/// What the project's policy forbids its skills.
fn rules(place: &Place) -> Result<ScanRules, CliError> {
    let written = PolicySource::find(place, None)?.policy;
    let written = written.skills();
    let mut rules = ScanRules::default();
    rules.forbidden_imports.clone_from(&written.forbidden_imports);
    rules.forbidden_calls.clone_from(&written.forbidden_calls);
    for pattern in &written.patterns {
        let (name, why) = (pattern.name.clone(), pattern.why.clone());
        let rule = PatternRule::new(name, &pattern.pattern, why);
        let wrong = |error: RulesError| CliError::Settings {
            file: OWN_POLICY.to_owned(),
            problem: error.to_string(),
        };
        rules.patterns.push(rule.map_err(wrong)?);
    }
    Ok(rules)
}

/// The files of a skill as they lie in the project, or those that its last build left.
pub(crate) fn sources(
    shelf: &Shelf,
    skill: &Skill,
) -> Result<Vec<fluffy_forge::SourceFile>, CliError> {
    use fluffy_forge::{BuildEnd, SUPPORT, SourceFile, Standing};
    let built = skill.last_build().and_then(|build| build.ended.as_ref());
    if let (Standing::Built, Some(BuildEnd::Built { files })) =
        (skill.standing, built.map(|ended| &ended.end))
    {
        let source = |pinned: &fluffy_forge::Pinned| {
            let bytes = shelf.artifacts().get(&pinned.sha256);
            let bytes = bytes.map_err(fluffy_forge::ShelfError::from)?;
            Ok::<_, CliError>(SourceFile { path: pinned.path.clone(), bytes })
        };
        return files.iter().map(source).collect();
    }
    let root = shelf.project();
    let opened = |source| CliError::Project { dir: root.to_owned(), source };
    let tree = Tree::open(root).map_err(opened)?;
    let support = SUPPORT.iter().filter_map(|path| ProjectPath::parse(path).ok());
    let own = [skill.name.skill_path(), skill.name.test_path()].into_iter().flatten();
    let paths = own.chain(support);
    paths.filter_map(|path| source_at(&tree, path).transpose()).collect()
}

fn source_at(tree: &Tree, path: ProjectPath) -> Result<Option<fluffy_forge::SourceFile>, CliError> {
    use std::io::Read as _;
    let Ok(file) = tree.file(&path) else { return Ok(None) };
    let mut bytes = Vec::new();
    let read = file.take(4 << 20).read_to_end(&mut bytes);
    let failed = |source| CliError::File { action: "read", path: path.as_str().into(), source };
    read.map_err(failed)?;
    Ok(Some(fluffy_forge::SourceFile { path, bytes }))
}

/// The first program of this name on a search path.
pub(crate) fn program(name: &str, environment: &Environment) -> Option<PathBuf> {
    let path = environment.path.iter().flat_map(std::env::split_paths);
    let is_program = |path: &PathBuf| path.is_absolute() && path.is_file();
    path.map(|directory: PathBuf| Path::join(&directory, name)).find(is_program)
}
