//! `fluffy models`: what a provider offers, asked through its sandbox.

use std::ops::ControlFlow;

use fluffy_base::{Excerpt, Usd};
use fluffy_provider::{Model, ModelInfo, Prices};
use serde_json::json;

use crate::args::ModelsArgs;
use crate::environment::Environment;
use crate::explain::{CliError, DONE, PROVIDER_FAILED};
use crate::keys::Keys;
use crate::output::{Output, Tone};
use crate::place::Place;
use crate::providers::{Catalogue, connect, listening, offer};
use crate::render::escaped;

/// How much of a name is shown.
const SHOWN: usize = 100;

pub(crate) fn run(
    place: &Place,
    environment: &Environment,
    args: &ModelsArgs,
    output: &mut Output,
) -> Result<u8, CliError> {
    let catalogue = Catalogue::of(environment)?;
    if args.local {
        return local(&catalogue, place, environment, args.json, output);
    }
    let usual = || catalogue.usual().map(|usual| usual.to_string());
    let name = args.provider.clone().or_else(usual).ok_or(CliError::NoProvider)?;
    let models = asked(&catalogue, &name, place, environment)?;
    show(&catalogue, &name, &models, args.json, output)?;
    Ok(DONE)
}

/// The models that a provider lists.
pub(crate) fn asked(
    catalogue: &Catalogue,
    name: &str,
    place: &Place,
    environment: &Environment,
) -> Result<Vec<ModelInfo>, CliError> {
    let provider = catalogue.find(name)?;
    let setup = catalogue.setup(&provider, &Keys::of(environment)?)?;
    let runtime = place.sandboxes(environment)?;
    let remote = connect(setup, Model::default(), place, &runtime)?;
    Ok(remote.models(&mut || ControlFlow::Continue(()))?)
}

fn local(
    catalogue: &Catalogue,
    place: &Place,
    environment: &Environment,
    as_json: bool,
    output: &mut Output,
) -> Result<u8, CliError> {
    let found = listening();
    if found.is_empty() {
        output.notice(
            "No server of models was found on this machine. Start one, or name its address in \
             ~/.config/fluffy/config.yaml.",
        );
        return Ok(PROVIDER_FAILED);
    }
    for built_in in found {
        if !as_json {
            output.line(offer(built_in))?;
        }
        match asked(catalogue, built_in.name, place, environment) {
            Ok(models) => show(catalogue, built_in.name, &models, as_json, output)?,
            Err(error) => output.notice(format!("{}: {}", built_in.name, error.explained().what)),
        }
    }
    Ok(DONE)
}

fn show(
    catalogue: &Catalogue,
    name: &str,
    models: &[ModelInfo],
    as_json: bool,
    output: &mut Output,
) -> Result<(), CliError> {
    let provider = catalogue.find(name)?;
    for info in models {
        let known = catalogue.model(&provider, Some(&info.id)).ok();
        let prices = known.as_ref().and_then(|model| model.prices);
        if as_json {
            let line = json!({
                "provider": name, "id": info.id, "title": info.title,
                "context_window": info.context_window, "max_output_tokens": info.max_output_tokens,
                "usd_per_million": prices.map(|prices| json!({
                    "input": Usd::from_micros(prices.input), "output": Usd::from_micros(prices.output),
                    "cached": Usd::from_micros(prices.cached),
                    "cache_written": Usd::from_micros(prices.cache_written),
                })),
            });
            output.line(escaped(&line.to_string()))?;
            continue;
        }
        let window = info.context_window.map(|tokens| format!("{tokens} tokens"));
        let told: Vec<String> = window.into_iter().chain([priced(prices)]).collect();
        let told = output.paint(Tone::Quiet, &told.join(", "));
        output.line(format!("{:<40}  {told}", Excerpt::new(&info.id, SHOWN).to_string()))?;
    }
    if models.is_empty() {
        output.notice(format!("{name} lists no models."));
    }
    Ok(())
}

fn priced(prices: Option<Prices>) -> String {
    match prices {
        None => "price unknown".to_owned(),
        Some(Prices::FREE) => "free".to_owned(),
        Some(Prices { input, output, .. }) => {
            let (input, output) = (Usd::from_micros(input), Usd::from_micros(output));
            format!("${input} in, ${output} out for a million tokens")
        }
    }
}
