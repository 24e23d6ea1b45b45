//! `fluffy plugin show`: one plugin, with all that it asks for.

use fluffy_kernel::{PluginError, PluginName, Surveyed};
use fluffy_policy::THIRD_PARTY;
use serde_json::{Value, json};

use super::list::tone;
use crate::args::PluginNamedArgs;
use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::inert::inert;
use crate::output::Output;
use crate::place::Place;

pub(super) fn run(
    place: &Place,
    environment: &Environment,
    args: &PluginNamedArgs,
    output: &mut Output,
) -> Result<u8, CliError> {
    let name = PluginName::parse(&args.name).map_err(|why| CliError::Value {
        given: fluffy_base::Excerpt::new(&args.name, 80).to_string(),
        wanted: format!("the name of a plugin: {why}"),
    })?;
    let mut found = crate::plugins::look(place, environment)?.into_iter();
    let found = found.find(|it| it.installed.name == name).ok_or(PluginError::Unknown(name))?;
    if args.json {
        output.line(document(&found))?;
        return Ok(DONE);
    }
    let stage = output.paint(tone(found.stage), found.stage.name());
    output.line(format!("{} {}  {stage}", found.installed.name, found.installed.version))?;
    for reason in &found.reasons {
        output.line(format!("  because {}", inert(reason)))?;
    }
    if let Some(manifest) = &found.manifest {
        let list = |items: Vec<String>| match items.len() {
            0 => "nothing".to_owned(),
            _ => items.join(", "),
        };
        let reads = manifest.reads.iter().map(ToString::to_string).collect();
        output.line(format!("  {}", manifest.description))?;
        output.line(format!("  author   {}", manifest.author.as_deref().unwrap_or("not said")))?;
        output.line(format!("  runs     {} with {}", manifest.entry, manifest.runtime.name()))?;
        output.line(format!("  reads    {}", list(reads)))?;
        output.line(format!("  reaches  {}", list(manifest.hosts.clone())))?;
        output.line(format!("  needs    {}", list(manifest.required_capabilities.clone())))?;
        for tool in &manifest.tools {
            output.line(format!("  tool     {}: {}", tool.name, tool.description))?;
        }
    }
    output.line(format!("  package  {}", found.installed.package))?;
    for file in &found.installed.files {
        output.line(format!("  file     {} {}", file.sha256, file.path))?;
    }
    Ok(DONE)
}

/// A plugin as one document, for programs.
pub(super) fn document(plugin: &Surveyed) -> Value {
    let Surveyed { installed, manifest, stage, reasons } = plugin;
    let mut told = json!({
        "name": installed.name, "version": installed.version, "stage": stage, "reasons": reasons,
        "built_in": false, "tags": [THIRD_PARTY], "package": installed.package,
        "files": installed.files, "installed_by": installed.by, "disabled": installed.disabled,
    });
    let Some(manifest) = manifest else { return told };
    let tool = |tool: &fluffy_kernel::ToolDefinition| {
        json!({
            "name": tool.name, "description": tool.description, "parameters": tool.parameters,
            "result": tool.result, "timeout_ms": tool.timeout_ms,
        })
    };
    let more = json!({
        "description": manifest.description, "author": manifest.author,
        "runtime": manifest.runtime, "entry": manifest.entry,
        "sandbox_template": manifest.template, "reads": manifest.reads, "hosts": manifest.hosts,
        "required_capabilities": manifest.required_capabilities, "labels": manifest.tags,
        "min_api_version": manifest.min_api_version,
        "tools": manifest.tools.iter().map(tool).collect::<Vec<_>>(),
    });
    if let (Value::Object(told), Value::Object(more)) = (&mut told, more) {
        told.extend(more);
    }
    told
}
