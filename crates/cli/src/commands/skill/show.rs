//! `fluffy skill show`: where a skill stands, what it may do, and what became of its attempts.

use fluffy_forge::{BuildEnd, Skill, Standing};

use super::{known, render};
use crate::args::NamedArgs;
use crate::explain::{CliError, DONE};
use crate::forge::look_at;
use crate::inert::inert;
use crate::output::{Output, Tone};
use crate::place::Place;

pub(super) fn run(place: &Place, args: &NamedArgs, output: &mut Output) -> Result<u8, CliError> {
    let (_, skill) = look_at(place, &known(&args.name)?)?;
    if args.json {
        output.line(serde_json::to_string(&skill).map_err(std::io::Error::from)?)?;
        return Ok(DONE);
    }
    for (name, text) in lines(&skill) {
        let name = output.paint(Tone::Strong, &format!("{name:<11}"));
        output.line(format!("{name} {}", inert(&text)))?;
    }
    if let Some(last) = skill.verifications.last() {
        for gate in &last.gates {
            render::gate(gate, output)?;
        }
    }
    let next = output.paint(Tone::Quiet, next(&skill));
    output.line(format!("{next} {}", skill.name))?;
    Ok(DONE)
}

fn lines(skill: &Skill) -> Vec<(&'static str, String)> {
    let spec = &skill.proposal.spec;
    let mut lines = vec![
        ("Skill", skill.name.to_string()),
        ("Stands", skill.standing.name().to_owned()),
        ("Does", spec.description.clone()),
        ("Class", spec.side_effect.to_string()),
    ];
    let mut list = |name, items: Vec<String>| {
        if !items.is_empty() {
            lines.push((name, items.join(", ")));
        }
    };
    list("Reads", spec.reads.iter().map(ToString::to_string).collect());
    list("Writes", spec.writes.iter().map(ToString::to_string).collect());
    list("Hosts", spec.hosts.clone());
    list("Secrets", spec.secrets.clone());
    if spec.model {
        lines.push(("Model", "asks the local model".to_owned()));
    }
    lines.push(("Takes", spec.input.to_string()));
    lines.push(("Gives", spec.output.to_string()));
    for build in &skill.builds {
        let became = match build.ended.as_ref().map(|ended| &ended.end) {
            None => "was interrupted, or runs".to_owned(),
            Some(BuildEnd::Built { files }) => format!("left {} files", files.len()),
            Some(BuildEnd::Failed { kind, why }) => format!("failed: {kind}: {why}"),
        };
        let attempt = &build.attempt;
        lines.push(("Build", format!("{} by {} {became}", attempt.number, attempt.builder)));
    }
    if let Some(promotion) = skill.promotion() {
        lines.push(("Trusted", format!("by {} (entry {})", promotion.by, promotion.seq)));
    }
    if let (Standing::Revoked, Some(last)) = (skill.standing, skill.revocations.last()) {
        lines.push(("Revoked", format!("by {} (entry {}): {}", last.by, last.seq, last.why)));
    }
    let awaits: Vec<_> = skill.awaits().collect();
    if !awaits.is_empty() {
        lines.push(("Awaits", format!("a person, because of {}", awaits.join(", "))));
    }
    lines
}

/// What comes next.
fn next(skill: &Skill) -> &'static str {
    match skill.standing {
        Standing::Proposed | Standing::Revoked => "next: fluffy skill build",
        Standing::Built => "next: fluffy skill verify",
        Standing::Verified => "next: fluffy skill promote",
        Standing::Trusted => "next: fluffy skill run",
    }
}
