//! An explanation of a decision, in words and as JSON.

use fluffy_base::Excerpt;
use fluffy_policy::{
    Explanation, Facts, Found, Layer, Look, Opinion, Place, Reason, Strength, Verdict,
};
use serde_json::{Value, json};

use crate::explain::CliError;
use crate::output::{Output, Tone};

/// What is told of a decision.
pub(crate) struct Told<'a> {
    pub(crate) policy: &'a str,
    pub(crate) facts: &'a Facts<'a>,
    pub(crate) explanation: &'a Explanation,
    pub(crate) notes: Vec<String>,
}

/// Shows it to a person.
pub(crate) fn show(told: &Told<'_>, output: &mut Output) -> Result<(), CliError> {
    let decided = &told.explanation.decided;
    let word = output.paint(tone(decided.verdict.strength()), decided.verdict.strength().name());
    output.line(format!("{word}  {}", asked(told.facts)))?;
    match decided.verdict.source() {
        Some(source) => output.line(format!("  decided by {source} ({})", source.layer()))?,
        None => output.line("  decided by nobody")?,
    }
    for reason in decided.verdict.reasons().into_iter().flat_map(|reasons| reasons.iter()) {
        output.line(format!("  because {}", reason.text()))?;
    }
    if let Some(instead) = &decided.instead {
        output.line(format!("  allowed instead: {instead}"))?;
    }
    for note in &told.notes {
        output.line(format!("  note: {note}"))?;
    }
    output.line("")?;
    output
        .line(output.paint(Tone::Strong, &format!("Every rule that looked ({})", told.policy)))?;
    for opinion in opinions(told.explanation) {
        let said = said(&opinion.verdict);
        output.line(format!("  {:<12}  {:<24}  {said}", opinion.layer.name(), opinion.rule))?;
    }
    for look in &told.explanation.looks {
        let line = look.source.place().map_or(0, |place| place.line);
        let target = look.target.as_ref().map(|target| format!("{}: ", Excerpt::new(target, 60)));
        output.line(format!(
            "  {:<12}  {:<24}  {}{} (line {line})",
            look.source.layer().name(),
            look.source.rule(),
            target.unwrap_or_default(),
            found(&look.found),
        ))?;
    }
    if told.explanation.opinions.is_empty() {
        output.line("  none: the call is refused before any rule is asked")?;
    }
    Ok(())
}

/// The same for a program.
pub(crate) fn as_json(told: &Told<'_>) -> Value {
    let decided = &told.explanation.decided;
    let source = decided.verdict.source();
    let paths: Vec<_> = told.facts.subject.paths.iter().map(ToString::to_string).collect();
    json!({
        "policy": told.policy,
        "request": {
            "actor": told.facts.actor(),
            "syscall": told.facts.tool(),
            "paths": paths,
            "root": told.facts.subject.root,
            "command": told.facts.subject.command,
        },
        "decision": decided.verdict.strength().name(),
        "rule": source.map(|source| source.rule()),
        "layer": source.map(|source| source.layer().name()),
        "place": source.and_then(|source| source.place()).map(place_json),
        "reasons": reasons_json(&decided.verdict),
        "instead": decided.instead.as_deref(),
        "opinions": opinions(told.explanation).map(opinion_json).collect::<Vec<_>>(),
        "looks": told.explanation.looks.iter().map(look_json).collect::<Vec<_>>(),
        "notes": told.notes,
    })
}

/// What was said, without the rules of the file as one: they are told one by one.
fn opinions(explanation: &Explanation) -> impl Iterator<Item = &Opinion> {
    let apart = |opinion: &&Opinion| opinion.layer != Layer::Yaml;
    explanation.opinions.iter().filter(apart)
}

fn opinion_json(opinion: &Opinion) -> Value {
    json!({
        "layer": opinion.layer.name(),
        "rule": opinion.rule,
        "verdict": opinion.verdict.strength().name(),
        "reasons": reasons_json(&opinion.verdict),
    })
}

fn look_json(look: &Look) -> Value {
    let (found, verdict, key) = match &look.found {
        Found::Applies(verdict) => ("applies", Some(verdict), None),
        Found::Differs(key) => ("differs", None, Some(key)),
        Found::Excepted => ("excepted", None, None),
    };
    json!({
        "rule": look.source.rule(),
        "place": look.source.place().map(place_json),
        "target": look.target,
        "found": found,
        "verdict": verdict.map(|verdict| verdict.strength().name()),
        "key": key,
    })
}

fn reasons_json(verdict: &Verdict) -> Vec<Value> {
    let reason = |reason: &Reason| {
        json!({
            "rule": reason.rule(),
            "layer": reason.layer().name(),
            "text": reason.text(),
            "hint": reason.hint(),
            "place": reason.source().place().map(place_json),
        })
    };
    verdict.reasons().into_iter().flat_map(|reasons| reasons.iter()).map(reason).collect()
}

fn place_json(place: &Place) -> Value {
    json!({ "file": &*place.file, "line": place.line })
}

fn tone(strength: Strength) -> Tone {
    match strength {
        Strength::Allow => Tone::Good,
        Strength::Review => Tone::Strong,
        Strength::Pass | Strength::Deny => Tone::Bad,
    }
}

/// `fs.write on src/a.rs, by model`.
fn asked(facts: &Facts<'_>) -> String {
    let tool = facts.tool().map_or_else(
        || "a request without a tool".to_owned(),
        |tool| Excerpt::new(tool, 100).to_string(),
    );
    let root = facts.subject.root.then(|| ".".to_owned());
    let paths = facts.subject.paths.iter().map(|path| Excerpt::new(path.as_str(), 100).to_string());
    let paths: Vec<_> = paths.chain(root).collect();
    let on = if paths.is_empty() { String::new() } else { format!(" on {}", paths.join(", ")) };
    format!("{tool}{on}, by {}", Excerpt::new(facts.actor(), 100))
}

fn said(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Pass => "says nothing".to_owned(),
        Verdict::Allow(_) => "allows".to_owned(),
        Verdict::Review(reasons) => format!("wants a review: {reasons}"),
        Verdict::Deny(reasons) => format!("denies: {reasons}"),
    }
}

fn found(found: &Found) -> String {
    match found {
        Found::Applies(Verdict::Pass) => "applies and says nothing".to_owned(),
        Found::Applies(Verdict::Allow(_)) => "applies and allows".to_owned(),
        Found::Applies(Verdict::Review(_)) => "applies and wants a review".to_owned(),
        Found::Applies(Verdict::Deny(_)) => "applies and denies".to_owned(),
        Found::Differs(key) => format!("does not apply: `{key}` differs"),
        Found::Excepted => "does not apply: it is excepted".to_owned(),
    }
}
