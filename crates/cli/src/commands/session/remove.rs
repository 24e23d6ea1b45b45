//! `fluffy session rm`: gives a session up and removes its files.

use fluffy_kernel::SessionError;

use super::acted;
use super::list::meant;
use crate::drive::stored;
use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::interrupt::Stop;
use crate::output::Output;
use crate::place::Place;
use crate::wire::Act;

#[expect(clippy::disallowed_methods, reason = "the one place that removes a session's files")]
pub(super) fn run(
    place: &Place,
    environment: &Environment,
    id: &str,
    output: &mut Output,
) -> Result<u8, CliError> {
    let id = meant(place, Some(id))?;
    if stored(place, id.as_str())?.done().is_none() {
        acted(place, environment, &id, Act::GiveUp, &Stop::listen()?)?;
    }
    let dir = place.sessions().join(id.as_str());
    match std::fs::remove_dir_all(&dir) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            return Err(CliError::File { action: "remove", path: dir, source });
        }
        Ok(()) | Err(_) => {}
    }
    fluffy_kernel::remove_archive(&place.sessions(), &id).map_err(SessionError::from)?;
    output.line(format!("session {id} is given up; the ledger keeps what happened"))?;
    Ok(DONE)
}
