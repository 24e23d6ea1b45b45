//! `fluffy config list`: what all settings are, and who says so.

use crate::args::ListArgs;
use crate::commands::config_get::{described, origin, plain};
use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::output::{Output, Tone};
use crate::place::Place;
use crate::render::escaped;
use crate::settings::{SETTINGS, Settings};

pub(crate) fn run(
    place: &Place,
    environment: &Environment,
    args: &ListArgs,
    output: &mut Output,
) -> Result<u8, CliError> {
    let settings = Settings::load(place, environment)?;
    for name in settings.names() {
        let Some(found) = settings.effective(name) else { continue };
        if args.json {
            output.line(escaped(&described(&settings, name).to_string()))?;
            continue;
        }
        let line = format!("{} = {}", crate::inert::inert(name), plain(found));
        if args.origin {
            let origin = origin(&settings, name);
            output.line(format!("{line:<40}  {}", output.paint(Tone::Quiet, &origin)))?;
        } else {
            output.line(line)?;
        }
    }
    if args.all {
        let silent = SETTINGS.iter().filter(|it| settings.effective(it.name).is_none());
        for setting in silent {
            if args.json {
                output.line(described(&settings, setting.name))?;
            } else {
                output.line(output.paint(Tone::Quiet, &format!("{} is not said", setting.name)))?;
            }
        }
    }
    Ok(DONE)
}
