//! What makes the sandboxes, as it was chosen: the native driver, or an engine.

use std::path::PathBuf;
use std::sync::Arc;

use fluffy_sandbox::{
    Engine, EngineKind, EngineOptions, Fetch, ImageChoice, ImageName, Native, NativeOptions,
    Runtime, RuntimeError,
};

use crate::environment::Environment;
use crate::explain::{CliError, NO_SANDBOX, USAGE};
use crate::settings::{Layer, Settings};

/// What works without an engine.
const NATIVE: &str = "have the native driver make them: FLUFFY_SANDBOX_RUNTIME=native, or fluffy config set sandbox.runtime native";

/// A driver with everything that it is told when it is opened.
#[derive(Debug, Clone)]
pub(crate) enum Driver {
    /// Namespaces.
    Native(NativeOptions),
    /// Containers.
    Engine(EngineOptions),
}

/// The engine that was chosen, and where it may listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) engine: EngineKind,
    pub(crate) sockets: Vec<PathBuf>,
}

/// Why a driver is not the one for what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DriverError {
    #[error("no engine was named")]
    NoEngine,
    #[error("a task that root begins cannot run in sandboxes of {0}")]
    Root(EngineKind),
    #[error("the kernel would see the engine's socket `{}`", .0.display())]
    Seen(PathBuf),
    #[error("the gate to {0} does not stand")]
    Gate(EngineKind),
    #[error("the kernel cannot be in a container")]
    NoContainer,
}

impl DriverError {
    pub(crate) fn why(&self) -> &'static str {
        match self {
            Self::NoEngine => "images belong to Docker or Podman, and the native driver needs none",
            Self::Root(_) => {
                "root's kernel becomes a user that owns nothing, whom files are shown to as its own, and an engine cannot show them so"
            }
            Self::Seen(_) => {
                "whoever may use it is root on this machine, and it lies where the kernel works"
            }
            Self::Gate(_) => "its process ended without a word",
            Self::NoContainer => {
                "`kernel.confinement` asks for one, and `sandbox.runtime` names no engine to make it"
            }
        }
    }

    pub(crate) fn remedy(&self) -> (String, u8) {
        match self {
            Self::NoEngine => ("name one: fluffy image build --engine docker".to_owned(), USAGE),
            Self::Root(_) => (
                format!(
                    "run fluffy as the user who works on the project and may use the engine, or {NATIVE}"
                ),
                NO_SANDBOX,
            ),
            Self::Seen(_) => (
                format!("have the engine listen elsewhere, such as below /run, or {NATIVE}"),
                NO_SANDBOX,
            ),
            Self::NoContainer => ("name one: fluffy config set sandbox.runtime podman; or: fluffy config set kernel.confinement native".to_owned(), USAGE),
            Self::Gate(_) => (
                format!("try again, see what this machine offers: fluffy doctor, or {NATIVE}"),
                NO_SANDBOX,
            ),
        }
    }
}

impl Driver {
    /// The native driver, or containers of an image where an engine was chosen.
    pub(crate) fn new(native: NativeOptions, chosen: Option<Chosen>, image: ImageChoice) -> Self {
        let NativeOptions { program, state, path, env } = native;
        match chosen {
            None => Self::Native(NativeOptions { program, state, path, env }),
            Some(Chosen { engine, sockets }) => {
                let state = state.join(engine.name());
                Self::Engine(EngineOptions { engine, sockets, image, program, state, path, env })
            }
        }
    }

    /// Opens it.
    pub(crate) fn open(&self) -> Result<Arc<dyn Runtime>, RuntimeError> {
        Ok(match self {
            Self::Native(options) => Arc::new(Native::open(options.clone())?),
            Self::Engine(options) => Arc::new(Engine::open(options.clone())?),
        })
    }

    /// The program that becomes the first process of a sandbox.
    pub(crate) fn program(&self) -> &std::path::Path {
        match self {
            Self::Native(options) => &options.program,
            Self::Engine(options) => &options.program,
        }
    }
}

/// Whether the user wants the kernel in a container.
pub(crate) fn wants_container(environment: &Environment) -> Result<bool, CliError> {
    let settings = Settings::of_person(environment)?;
    Ok(settings.text("kernel.confinement") == Some("container"))
}

/// The engine that the user chose, if it is one.
pub(crate) fn chosen(settings: &Settings, environment: &Environment) -> Option<Chosen> {
    let engine: EngineKind = settings.text("sandbox.runtime")?.parse().ok()?;
    Some(listening(engine, environment))
}

/// Where an engine may listen.
pub(crate) fn listening(engine: EngineKind, environment: &Environment) -> Chosen {
    let said = match engine {
        EngineKind::Docker => environment.docker_host.as_deref(),
        EngineKind::Podman => environment.container_host.as_deref(),
    };
    Chosen { engine, sockets: engine.sockets(said, environment.runtime_dir.as_deref()) }
}

/// The image that jobs run in. One that a project names has to be there already: whom the machine asks for programs is
/// not for a project to say.
pub(crate) fn image(settings: &Settings) -> Result<ImageChoice, CliError> {
    let Some(found) = settings.effective("sandbox.image") else { return Ok(ImageChoice::Base) };
    let Some(text) = settings.text("sandbox.image") else { return Ok(ImageChoice::Base) };
    let fetch = if found.origin.layer() == Layer::Project { Fetch::Never } else { Fetch::Allowed };
    let name: ImageName = text.parse().map_err(|error: fluffy_sandbox::BadImageName| {
        CliError::Value { given: text.to_owned(), wanted: error.to_string() }
    })?;
    Ok(ImageChoice::Named(name, fetch))
}
