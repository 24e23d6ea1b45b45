//! `fluffy config path`: where the files of settings are.

use serde_json::json;

use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::output::{Output, Tone};
use crate::place::Place;
use crate::settings::file::OWN_CONFIG;
use crate::settings::user_file;

pub(crate) fn run(
    place: &Place,
    environment: &Environment,
    as_json: bool,
    output: &mut Output,
) -> Result<u8, CliError> {
    let files =
        [("project", Some(place.project().join(OWN_CONFIG))), ("user", user_file(environment))];
    if as_json {
        let [(_, project), (_, user)] = files;
        output.line(json!({ "project": project, "user": user }))?;
        return Ok(DONE);
    }
    for (whose, path) in files {
        let Some(path) = path else { continue };
        let missing = if path.exists() { "" } else { "  (not there)" };
        let missing = output.paint(Tone::Quiet, missing);
        let path = path.display().to_string();
        output.line(format!("{whose:<8} {}{missing}", crate::inert::inert(&path)))?;
    }
    Ok(DONE)
}
