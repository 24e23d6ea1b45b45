//! `fluffy skill list`: the skills of a project, and those that come with the program.

use fluffy_base::Excerpt;
use fluffy_forge::Standing;
use fluffy_forge::steps::StepError;
use serde_json::json;

use super::render::standing_tone;
use crate::explain::{CliError, DONE};
use crate::forge::look;
use crate::output::{Output, Tone};
use crate::place::Place;

/// How much of a description a list shows.
const SHOWN: usize = 60;

pub(super) fn run(place: &Place, json: bool, output: &mut Output) -> Result<u8, CliError> {
    let skills = look(place)?.map(|shelf| shelf.skills()).transpose()?.unwrap_or_default();
    if skills.is_empty() && !json {
        let next = "no skills yet; next: fluffy skill list --shipped, or fluffy skill propose";
        output.notice(output.paint(Tone::Quiet, next));
    }
    for listed in skills {
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

/// The skills that come with the program, and where they stand in this project.
pub(super) fn shipped(place: &Place, json: bool, output: &mut Output) -> Result<u8, CliError> {
    let known = look(place)?.map(|shelf| shelf.skills()).transpose()?.unwrap_or_default();
    for skill in fluffy_forge::shipped() {
        let spec = skill.proposal().map_err(StepError::from)?;
        let here = known.iter().find(|listed| listed.name == spec.name);
        let standing = here.map(|listed| listed.standing);
        if json {
            output.line(json!({
                "name": spec.name, "standing": standing, "description": spec.description,
                "side_effect": spec.side_effect, "reads": spec.reads, "writes": spec.writes,
                "hosts": spec.hosts, "secrets": spec.secrets, "model": spec.model,
            }))?;
            continue;
        }
        let word = format!("{:<8}", standing.map_or("-", Standing::name));
        let word = output.paint(standing.map_or(Tone::Quiet, standing_tone), &word);
        let (name, class) = (spec.name.as_str(), spec.side_effect.name());
        let what = Excerpt::new(&spec.description, SHOWN);
        output.line(format!("{name:<24}  {word}  {class:<11}  {what}"))?;
    }
    if !json {
        let next = "next: fluffy skill install NAME, or --all";
        output.notice(output.paint(Tone::Quiet, next));
    }
    Ok(DONE)
}
