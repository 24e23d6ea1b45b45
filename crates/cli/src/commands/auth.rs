//! `fluffy auth`: keys of providers. No key is an argument, and none is shown.

use serde_json::json;

use crate::args::AuthCommand;
use crate::commands::models::asked;
use crate::commands::skill::stored_as;
use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::keys::{Keys, Origin, read_key, shown};
use crate::output::{Output, Tone};
use crate::place::Place;
use crate::providers::{Catalogue, Provider, SetupError};

/// How a secret of skills is named among providers.
const SECRET: &str = "secret:";

pub(crate) fn run(
    place: &dyn Fn() -> Result<Place, CliError>,
    environment: &Environment,
    command: &AuthCommand,
    output: &mut Output,
) -> Result<u8, CliError> {
    let (catalogue, keys) = (Catalogue::of(environment)?, Keys::of(environment)?);
    if let AuthCommand::Set { provider } | AuthCommand::Rm { provider } = command
        && let Some(name) = provider.strip_prefix(SECRET)
    {
        let keeps = matches!(command, AuthCommand::Set { .. });
        return secret(name, keeps, &keys, output);
    }
    match command {
        AuthCommand::Set { provider } => set(&catalogue.find(provider)?, &keys, output),
        AuthCommand::List { json } => list(&catalogue, &keys, *json, output),
        AuthCommand::Rm { provider } => forget(&catalogue.find(provider)?, &keys, output),
        AuthCommand::Test { provider } => {
            let models = asked(&catalogue, provider, &place()?, environment)?;
            let count = models.len();
            output.line(format!("{provider} answers and takes the key; models: {count}"))?;
            Ok(DONE)
        }
    }
}

/// Keeps or forgets a secret that skills may be given.
fn secret(name: &str, keeps: bool, keys: &Keys<'_>, output: &mut Output) -> Result<u8, CliError> {
    let plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let fits = name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.len() <= 64
        && name.bytes().all(plain);
    if !fits {
        let given = fluffy_base::Excerpt::new(name, 80).to_string();
        let wanted = "the name of a secret, in upper-case letters, digits and `_`".to_owned();
        return Err(CliError::Value { given, wanted });
    }
    let stored = stored_as(name);
    if keeps {
        let key = read_key(&format!("Secret {name} (it is not shown): "));
        let kept = keys.keep(&stored, &key.map_err(SetupError::from)?).map_err(SetupError::from)?;
        output.line(format!("The secret {name} is kept in {}.", kept.origin))?;
        return Ok(DONE);
    }
    let from = keys.forget(&stored).map_err(SetupError::from)?;
    for origin in &from {
        output.line(format!("The secret {name} is removed from {origin}."))?;
    }
    if from.is_empty() {
        output.line(format!("No secret {name} was kept."))?;
    }
    Ok(DONE)
}

fn set(provider: &Provider<'_>, keys: &Keys<'_>, output: &mut Output) -> Result<u8, CliError> {
    let name = &provider.name;
    if !provider.sources.stored {
        return Err(SetupError::NotStored(name.clone()).into());
    }
    let prompt = format!("Key for {} (it is not shown): ", provider.title());
    let key = read_key(&prompt).map_err(SetupError::from)?;
    let kept = keys.keep(name, &key).map_err(SetupError::from)?;
    if let Some(why) = kept.instead {
        output.notice(format!("{why}, so the key is kept in a file"));
    }
    output.line(format!("The key for {name} is kept in {}.", kept.origin))?;
    let found = keys.find(name, &provider.sources).map_err(SetupError::from)?;
    if let Some((_, Origin::Variable(variable))) = found {
        output.notice(format!("The variable `{variable}` is set, too, and goes before it."));
    }
    Ok(DONE)
}

fn list(
    catalogue: &Catalogue,
    keys: &Keys<'_>,
    as_json: bool,
    output: &mut Output,
) -> Result<u8, CliError> {
    for name in catalogue.names() {
        let provider = catalogue.find(name)?;
        let (state, told) = match keys.find(name, &provider.sources) {
            _ if !provider.wants_key() => ("not needed", "needs no key".to_owned()),
            Ok(Some((key, origin))) => ("set", format!("{} from {origin}", shown(&key))),
            Ok(None) => ("absent", "none".to_owned()),
            Err(error) => {
                let error = CliError::from(SetupError::from(error)).explained();
                ("unusable", format!("{}: {}", error.what, error.why))
            }
        };
        if as_json {
            output.line(json!({ "provider": name, "key": state, "text": told,
                "url": provider.address.url().to_string() }))?;
            continue;
        }
        let tone = match state {
            "set" => Tone::Good,
            "unusable" => Tone::Bad,
            _ => Tone::Quiet,
        };
        let told = output.paint(tone, &told);
        output.line(format!("{name:<12}  {:<46}  {told}", provider.address.url().to_string()))?;
    }
    Ok(DONE)
}

fn forget(provider: &Provider<'_>, keys: &Keys<'_>, output: &mut Output) -> Result<u8, CliError> {
    let name = &provider.name;
    let from = keys.forget(name).map_err(SetupError::from)?;
    if from.is_empty() {
        output.line(format!("No key for {name} was kept."))?;
    }
    for origin in from {
        output.line(format!("The key for {name} is removed from {origin}."))?;
    }
    let variables = &provider.sources.variables;
    for name in variables.iter().filter(|name| crate::environment::variable(name).is_some()) {
        output.notice(format!("The variable `{name}` is still set, and would be used."));
    }
    Ok(DONE)
}
