//! The plugins of a project, put together: for whoever looks, and in the kernel's process.

use std::path::Path;
use std::sync::Arc;

use fluffy_base::SystemIds;
use fluffy_kernel::{Interpreters, PluginError, PluginOptions, Plugins, Roll, Surveyed};

use crate::drive::Scene;
use crate::environment::Environment;
use crate::explain::{CliError, DAMAGED, DENIED, Explained, FAILED, USAGE};
use crate::forge::{lab, program, python};
use crate::place::Place;
use crate::policy_source::PolicySource;
use crate::toolchains;
use crate::wire::Handed;

/// The plugins of a scene's project.
pub(crate) fn open(scene: &Scene<'_>) -> Result<Arc<Plugins>, CliError> {
    let (place, environment) = (scene.place, scene.environment);
    let confused = || CliError::Told(Explained::confused());
    Ok(Plugins::new(PluginOptions {
        layout: place.layout(),
        key: place.key()?.verifying_key().clone(),
        dir: place.plugins(),
        lab: Arc::new(lab(scene, &Handed::default())?),
        interpreters: interpreters(place, environment),
        policy: PolicySource::find(place, None)?.policy,
        kept: place.kept()?,
        // Whoever serves has found it out before the walls closed.
        person: environment.user.clone().ok_or_else(confused)?,
        ids: Arc::new(SystemIds),
    }))
}

/// The installed plugins for whoever only looks.
pub(crate) fn look(place: &Place, environment: &Environment) -> Result<Vec<Surveyed>, CliError> {
    let Some(key) = place.existing_key()? else { return Ok(Vec::new()) };
    let dir = place.plugins();
    let roll = Roll::read(&place.layout(), key.verifying_key(), &dir)?;
    let policy = PolicySource::find(place, None)?.policy;
    let interpreters = interpreters(place, environment);
    Ok(Surveyed::all(&roll, &dir, (&policy, &place.kept()?), &interpreters))
}

/// What runs plugins here: what sandboxes see, that is.
fn interpreters(place: &Place, environment: &Environment) -> Interpreters {
    let toolchains = toolchains::of(environment);
    let is_shown = |path: &Path| {
        path.starts_with("/usr") || toolchains.iter().any(|shown| path.starts_with(shown))
    };
    let seen = |name| {
        program(name, environment)
            .filter(|path| path.canonicalize().is_ok_and(|real| is_shown(&real)))
    };
    Interpreters {
        python: Some(python(place)).filter(|path| path.is_file()),
        node: seen("node"),
        deno: seen("deno"),
    }
}

impl From<PluginError> for CliError {
    fn from(error: PluginError) -> Self {
        let (why, code) = match &error {
            PluginError::Unknown(_) => ("no plugin of this project has that name", USAGE),
            PluginError::Hindered { .. } => ("only what is registered is called", DENIED),
            PluginError::NoTool { .. } => ("`plugin call` calls the tools of plugins alone", USAGE),
            PluginError::Package(_) => {
                ("a plugin is a directory with a manifest and its files", USAGE)
            }
            PluginError::Rejected { .. } => {
                ("what a plugin asks for is held against the policy and our own names", DENIED)
            }
            PluginError::Changed { .. } | PluginError::Unreadable { .. } | PluginError::List(_) => {
                ("only what a person agreed to runs", DAMAGED)
            }
            PluginError::Notes(_) | PluginError::Unreadably(_) => {
                ("which plugins are installed, the ledger says; and it does not hold", DAMAGED)
            }
            PluginError::Denied { .. } => ("a plugin runs after a person agreed to it", DENIED),
            PluginError::Io { .. } => ("plugins are kept there", FAILED),
            PluginError::Unrecorded(_)
            | PluginError::NotDone(_)
            | PluginError::Another
            | PluginError::NoRandomness => ("what cannot be recorded is not done", FAILED),
            PluginError::Registry(_) | PluginError::Json(_) => {
                ("its tools stand beside our own, under the same rules", USAGE)
            }
            PluginError::Already(..) => ("there is nothing to change", FAILED),
        };
        let why = match &error {
            PluginError::Rejected { reasons, .. } => reasons.join("; "),
            _other => why.to_owned(),
        };
        let what = match &error {
            PluginError::Rejected { name, .. } => format!("plugin `{name}` is rejected"),
            other => fluffy_kernel::causes(other),
        };
        Self::Told(Explained { what, why, fix: error.fix(), code })
    }
}
