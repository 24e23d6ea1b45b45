//! `fluffy session fork`: a session that goes on from somewhere in another one.

use fluffy_kernel::{ForkPoint, Forked, fork};

use super::list::meant;
use crate::commands;
use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::output::Output;
use crate::place::Place;
use crate::settings::Settings;

pub(super) fn run(
    place: &Place,
    environment: &Environment,
    id: Option<&str>,
    at: Option<&str>,
    output: &mut Output,
) -> Result<u8, CliError> {
    let at = at.map_or(Ok(ForkPoint::End), point)?;
    let from = meant(place, id)?;
    let kernel = commands::kernel(place, &Settings::load(place, environment)?, None)?;
    let Forked { id, from: fork, turns, steps } = fork(kernel, &place.sessions(), &from, at)?;
    let (old, entry) = (fork.session, fork.entry);
    output.line(format!(
        "session {id} goes on from {old} at entry {entry}: {turns} turns, {steps} staged steps"
    ))?;
    output.line(format!("go on with it: fluffy session resume {id}"))?;
    Ok(DONE)
}

/// `turn:3`, `step:2`, or the number of a step alone.
fn point(text: &str) -> Result<ForkPoint, CliError> {
    let wanted = || CliError::Value {
        given: fluffy_base::Excerpt::new(text, 60).to_string(),
        wanted: "`turn:N`, `step:N` or the number of a step".to_owned(),
    };
    let number = |text: &str| text.parse::<u64>().map_err(|_| wanted());
    match text.split_once(':') {
        None => number(text).map(ForkPoint::Step),
        Some(("step", step)) => number(step).map(ForkPoint::Step),
        Some(("turn", turn)) => number(turn).map(ForkPoint::Turn),
        Some(_) => Err(wanted()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_session_is_a_turn_or_a_step() {
        assert_eq!(point("turn:0").unwrap(), ForkPoint::Turn(0));
        assert_eq!(point("step:2").unwrap(), ForkPoint::Step(2));
        assert_eq!(point("7").unwrap(), ForkPoint::Step(7));
        for odd in ["", "turn", "turn:", "turn:-1", "entry:3", "3:turn", "18446744073709551616"] {
            assert!(point(odd).is_err(), "{odd}");
        }
    }
}
