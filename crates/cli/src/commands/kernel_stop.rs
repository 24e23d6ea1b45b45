//! `fluffy kernel stop`: ends the process that works for a project, if nothing is under way.

use serde_json::{Value, json};

use crate::client::{Link, told};
use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::output::Output;
use crate::place::Place;
use crate::wire;

pub(crate) fn run(
    place: &Place,
    environment: &Environment,
    output: &mut Output,
) -> Result<u8, CliError> {
    let was_there = stop_kernel(place, environment)?;
    output.line(if was_there {
        "The kernel ends."
    } else {
        "No kernel works for this project."
    })?;
    Ok(DONE)
}

/// Ends it; whether it was there.
pub(crate) fn stop_kernel(place: &Place, environment: &Environment) -> Result<bool, CliError> {
    let Some(line) = Link::new(place, environment).existing()? else { return Ok(false) };
    let _stopped: Value = line.call(wire::STOP, &json!({})).map_err(told)?;
    Ok(true)
}
