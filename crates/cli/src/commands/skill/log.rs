//! `fluffy skill log`: runs of skills.

use fluffy_base::Excerpt;
use fluffy_forge::ExecutionRecord;
use serde_json::json;

use super::known;
use crate::explain::{CliError, DONE};
use crate::forge::look;
use crate::output::{Output, Tone};
use crate::place::Place;
use crate::time;

pub(super) fn run(
    place: &Place,
    skill: Option<&str>,
    limit: u64,
    json: bool,
    output: &mut Output,
) -> Result<u8, CliError> {
    let name = skill.map(known).transpose()?;
    let Some(shelf) = look(place)? else { return Ok(DONE) };
    if let Some(name) = &name {
        // Whose entries retention deleted is known all the same.
        shelf.skill(name)?;
    }
    let mut runs = shelf.log(name.as_ref(), limit)?;
    runs.reverse();
    for run in runs {
        if json {
            output.line(json!({ "execution": run.id, "seq": run.seq, "ts_ms": run.ts_ms,
                "skill": run.name, "parent": run.parent, "record": run.record }))?;
            continue;
        }
        let when = output.paint(Tone::Quiet, &time::show(run.ts_ms));
        let record: Option<ExecutionRecord> = serde_json::from_value(run.record).ok();
        let (tone, became) = match &record {
            None => (Tone::Caution, "cannot be read".to_owned()),
            Some(ExecutionRecord { error: Some(error), .. }) => (Tone::Bad, error.to_string()),
            Some(record) => (Tone::Good, format!("done in {} ms", record.duration_ms)),
        };
        let became = output.paint(tone, &Excerpt::new(&became, 80).to_string());
        output.line(format!("{}  {when}  {:<24}  {became}", run.id, run.name.as_str()))?;
    }
    Ok(DONE)
}
