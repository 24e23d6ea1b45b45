//! `fluffy skill history`: every step of a skill.

use fluffy_forge::{BuildEnd, SkillEntry};
use serde_json::json;

use super::known;
use crate::args::NamedArgs;
use crate::explain::{CliError, DONE};
use crate::forge::look;
use crate::inert::inert;
use crate::output::{Output, Tone};
use crate::place::Place;
use crate::time;

pub(super) fn run(place: &Place, args: &NamedArgs, output: &mut Output) -> Result<u8, CliError> {
    let name = known(&args.name)?;
    let shelf = look(place)?.ok_or_else(|| fluffy_forge::ShelfError::Unknown(name.clone()))?;
    for past in shelf.history(&name)? {
        if args.json {
            output.line(json!({ "seq": past.seq, "ts_ms": past.ts_ms, "counts": past.counts,
                "entry": past.entry }))?;
            continue;
        }
        let when = output.paint(Tone::Quiet, &time::show(past.ts_ms));
        let counts = if past.counts { "" } else { "  (does not count)" };
        let told = told(&past.entry);
        let told = inert(&told);
        output.line(format!(
            "{:>6}  {when}  {:<14}  {told}{counts}",
            past.seq,
            past.entry.kind()
        ))?;
    }
    Ok(DONE)
}

fn told(entry: &SkillEntry) -> String {
    match entry {
        SkillEntry::Proposed { spec, .. } => format!("{}: {}", spec.side_effect, spec.description),
        SkillEntry::BuildStarted { attempt, .. } => {
            format!("attempt {} by {}", attempt.number, attempt.builder)
        }
        SkillEntry::BuildEnded { end: BuildEnd::Built { files }, .. } => {
            format!("{} files", files.len())
        }
        SkillEntry::BuildEnded { end: BuildEnd::Failed { kind, why }, .. } => {
            format!("failed: {kind}: {why}")
        }
        SkillEntry::Verified { gates, .. } => {
            let failed = gates.iter().filter(|gate| !gate.passed).map(|gate| gate.gate.name());
            let failed: Vec<_> = failed.collect();
            match failed.is_empty() {
                true => "all five gates passed".to_owned(),
                false => format!("failed: {}", failed.join(", ")),
            }
        }
        SkillEntry::Researched { failure, triggers, .. } => match triggers.is_empty() {
            true => failure.clone(),
            false => format!("{failure}; a person is asked because of {}", triggers.join(", ")),
        },
        SkillEntry::RetryApproved { by, .. } | SkillEntry::Promoted { by, .. } => {
            format!("by {by}")
        }
        SkillEntry::Revoked { by, why, .. } => format!("by {by}: {why}"),
        SkillEntry::Ran { execution, .. } => execution.clone(),
    }
}
