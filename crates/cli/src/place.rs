//! Where a project and the state about it lie.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use fluffy_base::{Digest, IdSource as _, ProjectPath, SystemIds};
use fluffy_kernel::Witness;
use fluffy_kernel::schedule::{Limits, MachineMemory, Scheduler, Share};
use fluffy_ledger::{Layout, LedgerError, SigningKey, load_or_create_key};
use fluffy_policy::Part;
use fluffy_sandbox::l1::{self, L1Options};
use fluffy_sandbox::{ContainOptions, Fetch, GateOptions, ImageChoice, NativeOptions, Runtime};

use crate::args::ServeArgs;
use crate::builders;
use crate::driver::{self, Chosen, Driver, DriverError};
use crate::environment::Environment;
use crate::explain::CliError;
use crate::extensions::RuleFiles;
use crate::settings::Settings;
use crate::toolchains;

/// The project's own policy, as people call it.
pub(crate) const OWN_POLICY: &str = ".fluffy/policy.yaml";
/// The cases beside it.
pub(crate) const OWN_CASES: &str = ".fluffy/policy-tests.yaml";

/// A project, and where the user's state about it lies.
#[derive(Debug)]
pub(crate) struct Place {
    project: PathBuf,
    state: PathBuf,
    name: String,
    /// The user's own settings, which say who gets their keys.
    settings: Option<PathBuf>,
    /// The file of the program that becomes the kernel.
    executable: Option<PathBuf>,
    /// The user's cache of this program, without links.
    cache: Option<PathBuf>,
    /// The engine that makes sandboxes, if one was chosen.
    engine: Option<Chosen>,
    /// How many sandboxes work at a time.
    limits: Limits,
    /// Decides which of them do, for everything that this process runs.
    scheduler: OnceLock<Arc<Scheduler>>,
    /// Sees what becomes of the guests that this process has.
    witness: Arc<Witness>,
}

impl Place {
    /// The project in `dir`, or in the current directory.
    pub(crate) fn of(dir: Option<&Path>, environment: &Environment) -> Result<Self, CliError> {
        let dir = match dir {
            Some(dir) => dir.to_owned(),
            None => environment.current_dir.clone().ok_or(CliError::NoCurrentDir)?,
        };
        let project = std::fs::canonicalize(&dir)
            .map_err(|source| CliError::Project { dir: dir.clone(), source })?;
        if !project.is_dir() {
            return Err(CliError::NotADirectory(dir));
        }
        let (executable, settings) = (environment.executable.clone(), environment.config_dir());
        let cache = environment.cache_dir().map(|dir| resolved(&dir));
        // What is wrong with the user's settings is said where they are needed.
        let of_person = Settings::of_person(environment).ok();
        let limits = of_person.as_ref().map(limits).unwrap_or_default();
        let engine = of_person.and_then(|settings| driver::chosen(&settings, environment));
        Ok(Self {
            executable,
            settings,
            cache,
            engine,
            limits,
            ..Self::at(project, state_dir(environment)?)
        })
    }

    /// A project at a known place.
    pub(crate) fn at(project: PathBuf, state: PathBuf) -> Self {
        let digest = Digest::of(project.as_os_str().as_encoded_bytes()).to_string();
        let name = digest.chars().take(16).collect();
        Self {
            project,
            state,
            name,
            settings: None,
            executable: None,
            cache: None,
            engine: None,
            limits: Limits::default(),
            scheduler: OnceLock::new(),
            witness: Arc::default(),
        }
    }

    /// The project's root.
    pub(crate) fn project(&self) -> &Path {
        &self.project
    }

    /// The project's own policy.
    pub(crate) fn policy_file(&self) -> PathBuf {
        self.project.join(OWN_POLICY)
    }

    /// The cases beside the project's own policy.
    pub(crate) fn cases_file(&self) -> PathBuf {
        self.project.join(OWN_CASES)
    }

    /// Parts of the system that lie inside the project, which no request may touch. A project inside
    /// of the state is refused: everything in it would be one.
    pub(crate) fn kept(&self) -> Result<Vec<(ProjectPath, Part)>, CliError> {
        let project = resolved(&self.project);
        if project.starts_with(resolved(&self.state)) {
            return Err(CliError::ProjectInState(self.project.clone()));
        }
        let ledger = self.layout().dir().to_owned();
        let parts = [(Some(&self.state), Part::State), (Some(&ledger), Part::Ledger)];
        // The file itself may be a link that leads elsewhere than its directory.
        let settings = self.settings.as_ref().map(|dir| dir.join("config.yaml"));
        let parts = parts.into_iter().chain([
            (self.settings.as_ref(), Part::State),
            (settings.as_ref(), Part::State),
            (self.executable.as_ref(), Part::Kernel),
        ]);
        let inside = parts.filter_map(|(path, part)| {
            let path = resolved(path?);
            let text = path.strip_prefix(&project).ok()?.to_str()?;
            // What is no path of the project cannot be named by a request either.
            Some((ProjectPath::parse(text).ok()?, part))
        });
        Ok(inside.collect())
    }

    /// The project's rule files, run by this very program.
    pub(crate) fn rule_files(&self) -> RuleFiles {
        let options = self.sandbox_options(None).ok();
        let driver = options.map(|it| Driver::new(it, self.engine.clone(), ImageChoice::Base));
        RuleFiles::new(
            &self.project,
            driver,
            Arc::clone(self.scheduler()),
            Arc::clone(&self.witness),
        )
    }

    /// Sees what becomes of the guests that this process has.
    pub(crate) fn witness(&self) -> &Arc<Witness> {
        &self.witness
    }

    /// Decides which sandboxes work when.
    pub(crate) fn scheduler(&self) -> &Arc<Scheduler> {
        let make = || Scheduler::new(self.limits, Box::new(MachineMemory::open()));
        self.scheduler.get_or_init(make)
    }

    /// The driver of sandboxes, for the commands of whoever has this environment.
    pub(crate) fn sandboxes(
        &self,
        environment: &Environment,
    ) -> Result<Arc<dyn Runtime>, CliError> {
        let image = self.image(environment)?;
        let runtime = self.driver(environment, self.engine.clone(), image)?.open()?;
        Ok(self.scheduler().over(runtime))
    }

    /// The image that containers are made of, for whoever has this environment.
    pub(crate) fn image(&self, environment: &Environment) -> Result<ImageChoice, CliError> {
        driver::image(&Settings::load(self, environment)?)
    }

    /// A driver of sandboxes: containers of this image where an engine is named, else the native one.
    pub(crate) fn driver(
        &self,
        environment: &Environment,
        engine: Option<Chosen>,
        image: ImageChoice,
    ) -> Result<Driver, CliError> {
        Ok(Driver::new(self.sandbox_options(Some(environment))?, engine, image))
    }

    /// The engine that makes sandboxes, if one was chosen.
    pub(crate) fn engine(&self) -> Option<&Chosen> {
        self.engine.as_ref()
    }

    /// The same project, with sandboxes made by the engine behind this door.
    pub(crate) fn through(self, door: PathBuf) -> Self {
        let engine = self.engine.map(|chosen| Chosen { sockets: vec![door], ..chosen });
        Self { engine, ..self }
    }

    /// What a gate to the chosen engine lets through for the kernel that listens at this socket: what that kernel
    /// sees of this machine and works with, and nothing that is hidden from it.
    pub(crate) fn gate(
        &self,
        environment: &Environment,
        chosen: &Chosen,
        socket: &Path,
    ) -> Result<GateOptions, CliError> {
        let confinement = self.confinement(environment, socket)?;
        let mut shown = l1::shown(&confinement)?;
        shown.extend([confinement.project, confinement.program]);
        shown.extend([self.sessions(), self.forge(), self.plugins(), self.environments()]);
        let cache = self.cache()?;
        shown.push(cache.join("tools"));
        let fetched = match self.image(environment)? {
            ImageChoice::Named(name, Fetch::Allowed) => Some(name),
            ImageChoice::Named(_, Fetch::Never) | ImageChoice::Base => None,
        };
        Ok(GateOptions {
            engine: chosen.engine,
            sockets: chosen.sockets.clone(),
            fetched,
            shown,
            state: self.state.join("sandboxes").join(chosen.engine.name()),
            profiles: cache.join("gate"),
        })
    }

    /// What the container of the kernel that listens at this socket is made of; its maker listens at `line`.
    pub(crate) fn container(
        &self,
        environment: &Environment,
        args: &ServeArgs,
        line: PathBuf,
    ) -> Result<ContainOptions, CliError> {
        let chosen = self.engine().ok_or(DriverError::NoContainer)?;
        let mut arguments: Vec<OsString> = vec!["-C".into(), self.project.clone().into()];
        let idle = args.idle.to_string();
        arguments.extend(["kernel", "serve", "--idle", &idle, "--socket"].map(OsString::from));
        arguments.extend([args.socket.clone().into(), "--inside".into(), line.clone().into()]);
        let env = environment.for_kernel().map(|(name, value)| (name.into(), value));
        Ok(ContainOptions {
            engine: chosen.engine,
            sockets: chosen.sockets.clone(),
            confinement: self.confinement(environment, &args.socket)?,
            arguments,
            env: env.collect(),
            socket: line,
            profiles: self.cache()?.join("gate"),
        })
    }

    /// How sandboxes are made: by this program, with their leavings beside the ledgers. Guests of the kernel
    /// need nobody's environment.
    fn sandbox_options(
        &self,
        environment: Option<&Environment>,
    ) -> Result<NativeOptions, CliError> {
        let toolchains = [
            ("CARGO_HOME", ".cargo"),
            ("RUSTUP_HOME", ".rustup"),
            ("PYENV_ROOT", ".pyenv"),
            ("NVM_DIR", ".nvm"),
        ];
        let path = environment.and_then(|environment| environment.path.as_ref());
        let path = path.into_iter().flat_map(std::env::split_paths);
        let home = environment.and_then(|environment| environment.home.as_ref());
        let env = home.into_iter().flat_map(|home| {
            toolchains.map(|(name, part)| (name.into(), home.join(part).into_os_string()))
        });
        Ok(NativeOptions {
            program: self.executable.clone().ok_or(CliError::NoProgram)?,
            state: self.state.join("sandboxes"),
            path: path.filter(|path| path.is_absolute()).collect(),
            env: env.collect(),
        })
    }

    /// The ledger, and beside all ledgers the memory of them.
    pub(crate) fn layout(&self) -> Layout {
        let remembered = self.state.join("checkpoints").join(format!("{}.note", self.name));
        Layout::new(self.state.join("projects").join(&self.name), remembered)
    }

    /// Where the project's sessions keep their files.
    pub(crate) fn sessions(&self) -> PathBuf {
        self.layout().dir().join("sessions")
    }

    /// Where environments are kept that package managers installed: for all projects, and on the file system of volumes.
    pub(crate) fn environments(&self) -> PathBuf {
        self.state.join("sandboxes").join("environments")
    }

    /// Where the forge keeps what it remembers of the project's skills.
    pub(crate) fn forge(&self) -> PathBuf {
        self.layout().dir().join("forge")
    }

    /// Where installed plugins lie.
    pub(crate) fn plugins(&self) -> PathBuf {
        self.layout().dir().join("plugins")
    }

    /// The user's cache of this program.
    pub(crate) fn cache(&self) -> Result<PathBuf, CliError> {
        self.cache.clone().ok_or(CliError::NoHome)
    }

    /// What of the machine the tools that check skills are made of; nothing where they are not installed.
    pub(crate) fn skill_tools(&self) -> Vec<PathBuf> {
        let tools = self.cache.as_deref().and_then(|cache| fluffy_forge::locate(cache).ok());
        tools.map(|tools| tools.shown).unwrap_or_default()
    }

    /// This program's file.
    pub(crate) fn executable(&self) -> Result<PathBuf, CliError> {
        self.executable.clone().ok_or(CliError::NoProgram)
    }

    /// Where the project's kernel listens: where the user's sockets are, or beside the state. Who keeps another state has
    /// another kernel.
    pub(crate) fn kernel_socket(&self, environment: &Environment) -> PathBuf {
        use std::os::unix::ffi::OsStrExt;
        let whose = [self.project.as_os_str(), self.state.as_os_str()].map(OsStrExt::as_bytes);
        let name: String = Digest::of(&whose.join(&0)).to_string().chars().take(16).collect();
        let dir = match &environment.runtime_dir {
            Some(dir) => dir.join("fluffy"),
            None => self.state.join("run"),
        };
        dir.join(name + ".sock")
    }

    /// What the project's kernel may see and write of this machine.
    pub(crate) fn confinement(
        &self,
        environment: &Environment,
        socket: &Path,
    ) -> Result<L1Options, CliError> {
        let run = socket.parent().unwrap_or(Path::new("/")).to_owned();
        let volumes = self.state.join("sandboxes");
        for dir in [&self.state, &volumes, &run] {
            private_directory(dir)?;
        }
        let mut shown = toolchains::of(environment);
        shown.extend(environment.personal_files());
        shown.extend(builders::shown(environment));
        let mut writable = vec![self.state.clone(), run];
        if let Some(cache) = &self.cache {
            // Made now, so that what is installed later is seen by a kernel that runs; and the kernel's own, so that what
            // mypy knows can be laid under its work, whoever the kernel is.
            let tools = cache.join("tools");
            public_directory(&tools)?;
            writable.push(tools);
            shown.extend(self.skill_tools());
        }
        Ok(L1Options {
            project: self.project.clone(),
            writable,
            volumes: vec![volumes],
            home: environment.home.clone(),
            shown,
            program: self.executable()?,
            keep: Vec::new(),
        })
    }

    /// What the project's kernel prints.
    pub(crate) fn kernel_log(&self) -> PathBuf {
        self.state.join("run").join(format!("{}.log", self.name))
    }

    /// Where a kernel without clients listens for a halt.
    pub(crate) fn control_socket(&self) -> PathBuf {
        self.layout().dir().join("control.sock")
    }

    /// The user's signing key for this project: one each, so that a rotation concerns one ledger.
    pub(crate) fn key_file(&self) -> PathBuf {
        self.state.join("keys").join(format!("{}.key", self.name))
    }

    /// The key, made on first use.
    pub(crate) fn key(&self) -> Result<SigningKey, CliError> {
        Ok(load_or_create_key(&self.key_file(), fresh_seed()?)?)
    }

    /// The key, if there is one.
    pub(crate) fn existing_key(&self) -> Result<Option<SigningKey>, CliError> {
        Ok(SigningKey::load(&self.key_file()).map_err(LedgerError::from)?)
    }
}

/// Makes a directory, and those on the way, for the user alone.
pub(crate) fn private_directory(dir: &Path) -> Result<(), CliError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|source| CliError::File { action: "make", path: dir.to_owned(), source })
}

/// The same for what anybody may read, as a kernel that root starts does: it is somebody else.
/// How many sandboxes work at a time, as the user's own settings say.
fn limits(settings: &Settings) -> Limits {
    let usual = Limits::default();
    let count = |name: &str, usual: usize| {
        let said = settings.number(name).and_then(|said| usize::try_from(said).ok());
        said.unwrap_or(usual)
    };
    let share = |name: &str, usual: Share| {
        let said = settings.number(name).and_then(|said| u8::try_from(said).ok());
        said.map_or(usual, Share)
    };
    let age = settings.number("scheduler.age_seconds");
    Limits {
        global: count("scheduler.global_max", usual.global),
        ai_provider: count("scheduler.per_template.ai_provider", usual.ai_provider),
        code_executor: count("scheduler.per_template.code_executor", usual.code_executor),
        policy_sandbox: count("scheduler.per_template.policy_sandbox", usual.policy_sandbox),
        integration_test: count("scheduler.per_template.integration_test", usual.integration_test),
        age_ms: age.map_or(usual.age_ms, |seconds| seconds.saturating_mul(1_000)),
        memory_held: share("scheduler.memory_held", usual.memory_held),
        memory_spent: share("scheduler.memory_spent", usual.memory_spent),
        patience_ms: usual.patience_ms,
    }
}

fn public_directory(dir: &Path) -> Result<(), CliError> {
    let made = std::fs::create_dir_all(dir);
    made.map_err(|source| CliError::File { action: "make", path: dir.to_owned(), source })
}

/// Where all of the user's state lies.
pub(crate) fn state_dir(environment: &Environment) -> Result<PathBuf, CliError> {
    let base = match (&environment.state_home, &environment.home) {
        (Some(state), _) => state.clone(),
        (None, Some(home)) => home.join(".local").join("state"),
        (None, None) => return Err(CliError::NoHome),
    };
    Ok(base.join("fluffy"))
}

/// A path without links, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let known = path.ancestors().find_map(|known| {
        let real = std::fs::canonicalize(known).ok()?;
        let rest = path.strip_prefix(known).ok()?;
        Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
    });
    known.unwrap_or_else(|| path.to_owned())
}

/// The seed of a new key.
pub(crate) fn fresh_seed() -> Result<[u8; 32], CliError> {
    let fresh = || SystemIds.fresh().ok_or(CliError::Ledger(LedgerError::NoRandomness));
    let (a, b) = (fresh()?, fresh()?);
    let mut seed = [0; 32];
    for (slot, byte) in seed.iter_mut().zip(a.into_iter().chain(b)) {
        *slot = byte;
    }
    Ok(seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sch_3_the_users_own_settings_change_the_limits_and_a_projects_do_not() {
        let of = |said: &[(&str, &str)]| {
            let settings = said.iter().map(|(name, said)| ((*name).to_owned(), said.into()));
            let environment =
                Environment { settings: settings.collect(), ..Environment::default() };
            limits(&Settings::of_person(&environment).unwrap())
        };
        assert_eq!(of(&[]), Limits::default());
        let said = [
            ("FLUFFY_SCHEDULER_GLOBAL_MAX", "7"),
            ("FLUFFY_SCHEDULER_PER_TEMPLATE_AI_PROVIDER", "3"),
            ("FLUFFY_SCHEDULER_PER_TEMPLATE_CODE_EXECUTOR", "6"),
            ("FLUFFY_SCHEDULER_PER_TEMPLATE_POLICY_SANDBOX", "2"),
            ("FLUFFY_SCHEDULER_PER_TEMPLATE_INTEGRATION_TEST", "1"),
            ("FLUFFY_SCHEDULER_AGE_SECONDS", "5"),
            ("FLUFFY_SCHEDULER_MEMORY_HELD", "70"),
            ("FLUFFY_SCHEDULER_MEMORY_SPENT", "95"),
        ];
        let expected = Limits {
            global: 7,
            ai_provider: 3,
            code_executor: 6,
            policy_sandbox: 2,
            integration_test: 1,
            age_ms: 5_000,
            memory_held: Share(70),
            memory_spent: Share(95),
            ..Limits::default()
        };
        assert_eq!(of(&said), expected);
        let dir = tempfile::tempdir().unwrap();
        let place = Place::at(dir.path().join("project"), dir.path().join("state"));
        std::fs::create_dir_all(place.project().join(".fluffy")).unwrap();
        #[expect(clippy::disallowed_methods, reason = "the settings of this test's project")]
        std::fs::write(
            place.project().join(".fluffy/config.yaml"),
            "scheduler: {global_max: 100}\n",
        )
        .unwrap();
        assert!(Settings::load(&place, &Environment::default()).is_err());
    }
}
