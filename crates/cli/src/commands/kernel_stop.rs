//! `fluffy kernel stop`: ends the process that works for a project, if nothing is under way.

use crate::client::Link;
use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::output::Output;
use crate::place::Place;

pub(crate) fn run(
    place: &Place,
    environment: &Environment,
    output: &mut Output,
) -> Result<u8, CliError> {
    let was_there = Link::new(place, environment).stop()?;
    output.line(if was_there {
        "The kernel ends."
    } else {
        "No kernel works for this project."
    })?;
    Ok(DONE)
}
