//! A skill by its name: `write_note {"title": "tea", "text": "…"}`, `run write_note with title=tea text="…"`.

use fluffy_base::{Excerpt, Json};
use fluffy_forge::SkillName;
use serde_json::Value;

use super::words::{after, strip, unquoted};
use crate::intent::{Given, Intent, Reference, Wanted};
use crate::model::part;
use crate::present::missing;
use crate::skill::Known;

/// The intent, if the message names a skill.
pub(super) fn parse(text: &str, known: &[Known]) -> Option<Intent> {
    let (ordered, text) = match after(text, &["run ", "use ", "call ", "execute "]) {
        Some(rest) => (true, strip(rest, "the skill ").or(strip(rest, "skill ")).unwrap_or(rest)),
        None => (false, text),
    };
    let end = text.find(|c: char| c.is_whitespace() || c == '{' || c == ':').unwrap_or(text.len());
    let (word, rest) = text.split_at_checked(end)?;
    let word = word.strip_prefix("skill.").unwrap_or(word);
    let name = SkillName::parse(word).ok()?;
    let rest = rest.trim_start_matches(':').trim();
    let rest = after(rest, &["with "]).unwrap_or(rest);
    let found = known.iter().find(|known| *known.name() == name);
    let Some(found) = found else {
        // A name of no skill is one only where nothing else can be meant.
        let is_meant = rest.starts_with('{') || ordered && rest.is_empty();
        let unknown = || Intent::Clarify { question: missing(word) };
        return (is_meant && word.contains('_')).then(unknown);
    };
    let wanted = |input| Intent::Skills(vec![Wanted { skill: name.clone(), input }]);
    if rest.is_empty() {
        return Some(wanted(Vec::new()));
    }
    if rest.starts_with('{') {
        return Some(match object(rest) {
            Ok(input) => wanted(input),
            Err(why) => {
                let why = Excerpt::new(&why, 200).to_string();
                let question =
                    format!("What follows `{name}` is no JSON object: {why}. Write it anew.");
                Intent::Clarify { question }
            }
        });
    }
    pairs(rest, found).map(wanted)
}

/// The members of a JSON object.
fn object(text: &str) -> Result<Vec<(String, Given)>, String> {
    let json = Json::parse(text.as_bytes()).map_err(|error| error.to_string())?;
    let members = json.as_object().ok_or("it is something else")?;
    Ok(members.iter().map(|(name, value)| (name.clone(), given(name, value.clone()))).collect())
}

/// A value, or what a text refers to.
fn given(name: &str, value: Value) -> Given {
    let reference = value.as_str().filter(|text| text.starts_with("ref:"));
    match reference.and_then(Reference::parse) {
        Some(reference) => Given::Of(reference, part(name)),
        None => Given::Value(value),
    }
}

/// Values by their names: `title=tea text="two words"`. A value goes on until the next name.
fn pairs(text: &str, known: &Known) -> Option<Vec<(String, Given)>> {
    let mut found: Vec<(&str, usize, usize)> = Vec::new();
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '=') => {
                let before = text.get(..at)?;
                let start = before.rfind(|c: char| !is_name(c)).map_or(0, |it| it + 1);
                let name = text.get(start..at)?;
                if known.takes(name) {
                    found.push((name, start, at + 1));
                }
            }
            (None, _) => {}
        }
    }
    if found.first().is_none_or(|(_, start, _)| *start != 0) {
        return None;
    }
    let ends = found.iter().skip(1).map(|(_, start, _)| *start).chain([text.len()]);
    let pairs = found.iter().zip(ends).map(|((name, _, from), to)| {
        let raw = text.get(*from..to)?.trim().trim_end_matches(',');
        Some(((*name).to_owned(), typed(name, raw, known)))
    });
    pairs.collect()
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// A value as its schema wants it.
fn typed(name: &str, raw: &str, known: &Known) -> Given {
    if let Some(reference) = Reference::parse(raw) {
        return Given::Of(reference, part(name));
    }
    let text = unquoted(raw);
    let kind = known.input(name).and_then(|schema| schema.get("type")).and_then(Value::as_str);
    let value = match kind {
        Some("integer") => text.parse::<i64>().ok().map(Value::from),
        Some("boolean") => text.parse::<bool>().ok().map(Value::from),
        Some("array") => {
            Some(text.split(',').map(str::trim).filter(|it| !it.is_empty()).collect::<Value>())
        }
        _text => None,
    };
    // What does not fit is told by the planner, in the schema's words.
    Given::Value(value.unwrap_or_else(|| text.into()))
}
