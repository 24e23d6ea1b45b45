//! `fluffy config get`: what a setting is, and who says so.

use serde_json::{Value, json};

use crate::args::GetArgs;
use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::output::Output;
use crate::place::Place;
use crate::render::escaped;
use crate::settings::{Found, Origin, SETTINGS, Setting, SettingError, Settings};

pub(crate) fn run(
    place: &Place,
    environment: &Environment,
    args: &GetArgs,
    output: &mut Output,
) -> Result<u8, CliError> {
    known(&args.key)?;
    let settings = Settings::load(place, environment)?;
    let Some(found) = settings.effective(&args.key) else {
        return Err(SettingError::NotSaid(args.key.clone()).into());
    };
    if args.json {
        output.line(escaped(&described(&settings, &args.key).to_string()))?;
    } else if args.origin {
        output.line(format!("{}\t{}", plain(found), origin(&settings, &args.key)))?;
    } else {
        output.line(plain(found))?;
    }
    Ok(DONE)
}

/// The setting of this name, or which was meant.
pub(crate) fn known(name: &str) -> Result<(&'static Setting, Vec<String>), SettingError> {
    Setting::named(name).ok_or_else(|| {
        let names: Vec<&'static str> = SETTINGS.iter().map(|setting| setting.name).collect();
        let near = fluffy_policy::yaml::nearest(name, &names);
        SettingError::Unknown { name: fluffy_base::Excerpt::new(name, 80).to_string(), near }
    })
}

/// A value for people: no secret, and nothing that a terminal would act on.
pub(crate) fn plain(found: &Found) -> String {
    crate::inert::inert(&found.value.to_string()).to_string()
}

/// Who says what holds, and whom it overrules.
pub(crate) fn origin(settings: &Settings, name: &str) -> String {
    let told = |found: &Found| crate::inert::inert(&found.origin.to_string()).to_string();
    let held = settings.effective(name).map(told).unwrap_or_default();
    match settings.overruled(name) {
        Some(found) => format!("{held}, overruling {}: {}", told(found), plain(found)),
        None => held,
    }
}

/// A setting as JSON: what it is, who says so, and whom it overrules.
pub(crate) fn described(settings: &Settings, name: &str) -> Value {
    let found = settings.effective(name);
    let mut line = json!({
        "key": name,
        "value": found.map(|found| found.value.json()),
        "origin": found.map(|found| place(&found.origin)),
    });
    if let (Some(found), Value::Object(members)) = (settings.overruled(name), &mut line) {
        let overruled = json!({ "value": found.value.json(), "origin": place(&found.origin) });
        members.insert("overrules".to_owned(), overruled);
    }
    line
}

fn place(origin: &Origin) -> Value {
    let layer = origin.layer().name();
    match origin {
        Origin::Default => json!({ "layer": layer }),
        Origin::Machine(variable) => json!({ "layer": layer, "variable": variable }),
        Origin::File { file, line, .. } => json!({ "layer": layer, "file": file, "line": line }),
        Origin::Variable(variable) => json!({ "layer": layer, "variable": variable }),
        Origin::Argument(argument) => json!({ "layer": layer, "argument": argument }),
    }
}
