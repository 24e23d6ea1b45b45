//! `fluffy audit rotate`: completed days into archives, and what is past its retention out of them.

use fluffy_ledger::Retained;

use crate::environment::Environment;
use crate::explain::{CliError, DONE, FAILED};
use crate::output::Output;
use crate::place::Place;
use crate::settings::Settings;

/// Opening the ledger does it; this tells what was done.
pub(crate) fn run(
    place: &Place,
    environment: &Environment,
    output: &mut Output,
) -> Result<u8, CliError> {
    place.layout().active()?.ok_or(CliError::NoLedger)?;
    let kernel =
        super::boot(super::kernel(place, &Settings::load(place, environment)?, None)?, output)?;
    let retained = kernel.ledger_report().retained.clone();
    kernel.close()?;
    tell(place, &retained, output)?;
    Ok(if retained.problem.is_none() { DONE } else { FAILED })
}

fn tell(place: &Place, retained: &Retained, output: &mut Output) -> Result<(), CliError> {
    let dir = place.layout().archive();
    for archived in &retained.archived {
        let name = archived.name;
        output.line(format!(
            "Archived entries {} to {} in {} (entry {})",
            name.first,
            name.last,
            dir.join(name.to_string()).display(),
            archived.entry,
        ))?;
    }
    if retained.trimmed > 0 {
        output.line(format!("{} archived entries left the database", retained.trimmed))?;
    }
    for deleted in &retained.deleted {
        let (name, reason) = (deleted.name, deleted.reason);
        output.line(format!(
            "Deleted the archive of entries {} to {} ({reason})",
            name.first, name.last
        ))?;
    }
    if retained.archived.is_empty() && retained.trimmed == 0 && retained.deleted.is_empty() {
        output.line("Nothing to do: all completed days are archived")?;
    }
    output.line(format!("Storage: {}", super::storage_text(&retained.storage)))
}
