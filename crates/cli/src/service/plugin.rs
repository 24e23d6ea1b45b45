//! What a person does about plugins, carried out in the kernel's process: each change and each call is a request to a kernel.

use std::sync::Arc;

use fluffy_base::{IdSource as _, Json, KernelRequest, ProjectPath, ReceiptStatus, SystemIds};
use fluffy_kernel::{
    Kernel, KernelError, Package, PluginChange, PluginError, PluginName, Unpacked,
};

use super::run::Run;
use super::skill::close;
use crate::drive::Scene;
use crate::explain::CliError;
use crate::settings::Settings;
use crate::wire::{PackedBytes, PluginAnswer, PluginWork};

/// Carries it out; what became of it.
pub(super) fn carry_out(
    work: PluginWork,
    scene: &Scene<'_>,
    run: &Run,
) -> Result<PluginAnswer, CliError> {
    let plugins = crate::plugins::open(scene)?;
    let settings = Settings::load(scene.place, scene.environment)?;
    let mut config = crate::commands::kernel(scene.place, &settings, None)?;
    config.reviewer = Some(Box::new(Arc::clone(&scene.reviewer)));
    for step in plugins.steps() {
        config.registry.register(Box::new(step))?;
    }
    if matches!(work, PluginWork::Call { .. }) {
        plugins.register(&mut config.registry)?;
    }
    let lab = plugins.lab();
    run.stop.calls(move |_| lab.close());
    let kernel = Arc::new(Kernel::boot(config)?);
    scene.place.witness().attend(&kernel);
    let halting = Arc::downgrade(&kernel);
    run.halted_by(Arc::new(move |reason: &str| match halting.upgrade() {
        Some(kernel) => kernel.halt(reason).map(|entry| entry.seq).map_err(|it| it.to_string()),
        None => Err("it has come to its end".to_owned()),
    }));
    let answer = match work {
        PluginWork::Call { tool, input } => {
            let is_there = plugins.has(&tool).map_err(CliError::from);
            // What cannot be recorded is told by the call, too.
            let _told = plugins.announce(&*kernel);
            is_there.and_then(|()| call(&kernel, tool, input))
        }
        change => wanted(change)
            .and_then(|change| Ok(PluginAnswer::Changed(plugins.change(&kernel, change)?))),
    };
    plugins.unload(&*kernel);
    close(kernel)?;
    answer
}

fn wanted(work: PluginWork) -> Result<PluginChange, CliError> {
    Ok(match work {
        PluginWork::Install { package } => PluginChange::Install(Box::new(unpacked(&package)?)),
        PluginWork::Remove { name } => PluginChange::Remove(named(&name)?),
        PluginWork::Enable { name } => PluginChange::Enable(named(&name)?),
        PluginWork::Disable { name, why } => PluginChange::Disable { name: named(&name)?, why },
        PluginWork::Call { .. } => return Err(PluginError::Another.into()),
    })
}

fn named(name: &str) -> Result<PluginName, CliError> {
    PluginName::parse(name).map_err(|why| CliError::Value {
        given: fluffy_base::Excerpt::new(name, 80).to_string(),
        wanted: format!("the name of a plugin: {why}"),
    })
}

/// The plugin that a client sent.
fn unpacked(text: &str) -> Result<Package, CliError> {
    let wrong = |problem: String| CliError::Settings { file: "the plugin".to_owned(), problem };
    let sent: Vec<PackedBytes> =
        serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let file = |file: PackedBytes| {
        let path = ProjectPath::parse(&file.path).map_err(|error| wrong(error.to_string()))?;
        Ok(Unpacked { path, bytes: file.content.0, executable: file.executable })
    };
    let files = sent.into_iter().map(file).collect::<Result<_, CliError>>()?;
    Ok(Package::new(files).map_err(PluginError::from)?)
}

fn call(kernel: &Kernel, tool: String, input: serde_json::Value) -> Result<PluginAnswer, CliError> {
    let bytes = SystemIds.fresh().ok_or(KernelError::NoRandomness)?;
    let id = format!("call-{:032x}", u128::from_be_bytes(bytes));
    let params = Json::new(input).map_err(CliError::Json)?;
    let intent = format!("call {}", fluffy_base::Excerpt::new(&tool, 80));
    let receipt = kernel.submit(KernelRequest::call(&id, "user", &intent, &tool, params));
    // What does not fit its schema was allowed, and did not run.
    if receipt.status == ReceiptStatus::Rejected {
        let reason = receipt.error.unwrap_or_default();
        return Err(PluginError::Denied { reason, rule: receipt.rule }.into());
    }
    let (error, entry) = (receipt.error, receipt.entry);
    let output = receipt.tool_result.filter(|_| error.is_none()).map(|it| it.value().clone());
    Ok(PluginAnswer::Called { tool, output, error, entry })
}
