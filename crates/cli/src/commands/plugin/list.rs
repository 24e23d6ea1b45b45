//! `fluffy plugin list`: the plugins that come with the program, and those of the project.

use std::collections::BTreeMap;

use fluffy_base::Excerpt;
use fluffy_kernel::{EventType, Stage, Surveyed};
use fluffy_ledger::{DetailView, Page, Query};
use fluffy_policy::{CORE_PLUGINS, THIRD_PARTY, core_tags, known_calls};
use serde_json::json;

use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::inert::inert;
use crate::output::{Output, Tone};
use crate::place::Place;

/// How much of a reason or a description a line shows.
const SHOWN: usize = 100;
/// How many of the last stages of plugins are looked at for those that were never installed.
const LAST: u64 = 200;

pub(super) fn run(
    place: &Place,
    environment: &Environment,
    (rejected, json): (bool, bool),
    output: &mut Output,
) -> Result<u8, CliError> {
    let found = crate::plugins::look(place, environment)?;
    if !rejected {
        built_in(json, output)?;
    }
    let wanted = |it: &&Surveyed| !rejected || it.stage == Stage::Rejected;
    for plugin in found.iter().filter(wanted) {
        installed(plugin, json, output)?;
    }
    if rejected {
        let missing = |name: &str| !found.iter().any(|it| it.installed.name.as_str() == name);
        for (name, why) in turned_away(place)?.into_iter().filter(|(name, _)| missing(name)) {
            if json {
                let stage = Stage::Rejected;
                output.line(json!({ "name": name, "stage": stage, "reasons": [why] }))?;
            } else {
                let word = output.paint(Tone::Bad, "REJECTED  ");
                output.line(format!("{name:<24}  {word}  {}", inert(&why)))?;
            }
        }
    }
    Ok(DONE)
}

/// The installed plugins, a line each, for the conversation.
pub(crate) fn listed(place: &Place, environment: &Environment) -> Result<Vec<String>, CliError> {
    let line =
        |it: &Surveyed| format!("{:<24}  {:<10}  {}", it.installed.name, it.stage, about(it));
    Ok(crate::plugins::look(place, environment)?.iter().map(line).collect())
}

fn built_in(json: bool, output: &mut Output) -> Result<(), CliError> {
    for name in CORE_PLUGINS {
        let own = |call: &&str| call.split_once('.').is_some_and(|(group, _)| group == name);
        let tools: Vec<_> = known_calls().filter(own).collect();
        let mut tags: Vec<_> = tools.iter().flat_map(|tool| core_tags(tool)).collect();
        tags.sort_unstable();
        tags.dedup();
        if json {
            let version = env!("CARGO_PKG_VERSION");
            output.line(json!({
                "name": name, "version": version, "stage": Stage::Active, "built_in": true,
                "tags": tags, "tools": tools, "reasons": [],
            }))?;
            continue;
        }
        let word = output.paint(Tone::Good, "ACTIVE    ");
        output.line(format!("{name:<24}  {word}  built in: {}", tools.join(", ")))?;
    }
    Ok(())
}

fn installed(plugin: &Surveyed, json: bool, output: &mut Output) -> Result<(), CliError> {
    if json {
        return output.line(super::show::document(plugin));
    }
    let tone = tone(plugin.stage);
    let word = output.paint(tone, &format!("{:<10}", plugin.stage.name()));
    output.line(format!("{:<24}  {word}  {}", plugin.installed.name, about(plugin)))
}

/// Why it does not run, or what it is for.
fn about(plugin: &Surveyed) -> String {
    let text = match (plugin.reasons.is_empty(), &plugin.manifest) {
        (true, Some(manifest)) => format!("{THIRD_PARTY}: {}", manifest.description),
        _ => plugin.reasons.join("; "),
    };
    Excerpt::new(&text, SHOWN).to_string()
}

pub(super) const fn tone(stage: Stage) -> Tone {
    match stage {
        Stage::Registered | Stage::Loaded | Stage::Active => Tone::Good,
        Stage::Rejected | Stage::Disabled => Tone::Bad,
        Stage::Discovered | Stage::Unloaded => Tone::Quiet,
    }
}

/// The plugins that were rejected last, with the reason that the ledger has.
fn turned_away(place: &Place) -> Result<BTreeMap<String, String>, CliError> {
    let layout = place.layout();
    let Some(active) = layout.active()? else { return Ok(BTreeMap::new()) };
    let mut found = BTreeMap::new();
    let query = Query { event: Some(EventType::PluginLifecycle), ..Query::default() };
    let page = Page { limit: LAST, offset: 0, newest_first: true };
    query.run(&layout.segment(active), page, |record| {
        if let Ok(detail) = DetailView::parse(&record.detail) {
            let told = |name: &str| detail.metadata.get(name).map(ToString::to_string);
            if told("stage").as_deref() == Some(Stage::Rejected.name()) {
                let (name, why) = (told("plugin"), told("why"));
                found.entry(name.unwrap_or_default()).or_insert_with(|| why.unwrap_or_default());
            }
        }
        true
    })?;
    Ok(found)
}
