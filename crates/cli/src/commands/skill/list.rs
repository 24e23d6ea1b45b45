//! `fluffy skill list`: the skills of a project.

use fluffy_base::Excerpt;
use serde_json::json;

use super::render::standing_tone;
use crate::explain::{CliError, DONE};
use crate::forge::look;
use crate::output::Output;
use crate::place::Place;

/// How much of a description a list shows.
const SHOWN: usize = 60;

pub(super) fn run(place: &Place, json: bool, output: &mut Output) -> Result<u8, CliError> {
    let Some(shelf) = look(place)? else { return Ok(DONE) };
    for listed in shelf.skills()? {
        if json {
            output.line(json!({
                "name": listed.name, "standing": listed.standing,
                "description": listed.description, "side_effect": listed.side_effect,
                "attempts": listed.attempts, "approved_by": listed.approved_by,
                "changed_seq": listed.changed_seq, "changed_ms": listed.changed_ms,
            }))?;
            continue;
        }
        let standing = format!("{:<8}", listed.standing.name());
        let standing = output.paint(standing_tone(listed.standing), &standing);
        let (name, class) = (listed.name.as_str(), listed.side_effect.name());
        let what = Excerpt::new(&listed.description, SHOWN);
        output.line(format!("{name:<24}  {standing}  {class:<11}  {what}"))?;
    }
    Ok(DONE)
}
