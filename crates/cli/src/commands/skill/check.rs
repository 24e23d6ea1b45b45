//! `fluffy skill check-invariants`: whether the files of a skill are what was proposed.

use fluffy_base::ProjectPath;

use super::{known, render};
use crate::args::NamedArgs;
use crate::explain::{CliError, DONE, FAILED};
use crate::forge::{look_at, sources};
use crate::output::Output;
use crate::place::Place;

pub(super) fn run(place: &Place, args: &NamedArgs, output: &mut Output) -> Result<u8, CliError> {
    let (shelf, skill) = look_at(place, &known(&args.name)?)?;
    let files = sources(&shelf, &skill)?;
    let changed: Vec<ProjectPath> = files.iter().map(|file| file.path.clone()).collect();
    let result = fluffy_forge::check(&files, &skill.proposal.spec, &changed);
    match args.json {
        true => output.line(serde_json::to_string(&result).map_err(std::io::Error::from)?)?,
        false => render::gate(&result, output)?,
    }
    Ok(if result.passed { DONE } else { FAILED })
}
