//! The shipped skills in the words of every day: notes and the one service.

use fluffy_forge::SkillName;
use serde_json::{Map, Value};

use super::refer::referent;
use super::words::{after, around, strip, strip_end, unquoted};
use crate::intent::{Given, Intent, Part, Reference, Wanted};
use crate::present::missing;
use crate::skill::Known;

pub(super) const SUMMARIZE_NOTE: &str = "summarize_note";
pub(super) const WRITE_NOTE: &str = "write_note";
const SEARCH_NOTES: &str = "search_notes";
const DAILY_NOTE: &str = "create_daily_note";
const BY_TAG: &str = "read_notes_by_tag";
const HTTP: &str = "http_get_json";

/// The longest title that is made of a text, in characters.
const LONGEST_TITLE: usize = 80;

/// What a skill is given.
type Input = Vec<(String, Given)>;

/// The intent, if the message is one of these.
pub(super) fn parse(text: &str, known: &[Known], days: &[String; 3]) -> Option<Intent> {
    let (name, input) = daily(text, days)
        .or_else(|| tagged(text))
        .or_else(|| written(text))
        .or_else(|| searched(text))
        .or_else(|| summarised(text))
        .or_else(|| fetched(text, known))?;
    if let Some(wanted) = wanted(name, input, known) {
        return Some(Intent::Skills(vec![wanted]));
    }
    Some(Intent::Clarify { question: missing(name) })
}

/// The skill of this name, if it is trusted.
pub(super) fn wanted(name: &str, input: Input, known: &[Known]) -> Option<Wanted> {
    let skill: &SkillName = known.iter().map(Known::name).find(|it| it.as_str() == name)?;
    Some(Wanted { skill: skill.clone(), input })
}

fn value(name: &str, value: impl Into<Value>) -> (String, Given) {
    (name.to_owned(), Given::Value(value.into()))
}

/// `save that as a note called tea`; what comes before it in the same message may stand for `that`.
pub(super) fn saved(text: &str, instead: Option<&Reference>) -> Option<Input> {
    let rest = after(text, &["save ", "keep ", "write ", "store ", "note "])?;
    let (what, title) = ["as a note", "in a note", "to a note", "into a note", "as note", "down"]
        .iter()
        .find_map(|seam| around(rest, seam))?;
    let found = referent(what)?;
    let of = match (instead, found) {
        (Some(instead), Reference::Last) => instead.clone(),
        (_, found) => found,
    };
    let title = after(title, &["called ", "titled ", "named ", "about "]).map(unquoted);
    let title = match title.filter(|title| !title.is_empty()) {
        Some(title) => Given::Value(headline(title).into()),
        None if of == Reference::Before => Given::Value("Result".into()),
        None => Given::Of(of.clone(), Part::Title),
    };
    Some(vec![("title".to_owned(), title), ("text".to_owned(), Given::Of(of, Part::Text))])
}

/// `write a note about tea: two litres #drinks`.
fn written(text: &str) -> Option<(&'static str, Input)> {
    if let Some(input) = saved(text, None) {
        return Some((WRITE_NOTE, input));
    }
    let verbs =
        ["write ", "make ", "create ", "take ", "add ", "save ", "jot down ", "leave ", "new "];
    let nouns = ["a new note", "a quick note", "a note", "me a note", "note"];
    let said = after(text, &verbs).and_then(|rest| {
        let rest = nouns.iter().find_map(|noun| strip(rest, noun))?;
        Some(rest).filter(|rest| rest.starts_with([' ', ':', ',']))
    });
    let said = said.or_else(|| after(text, &["note to self: ", "note to self ", "note: "]));
    let said = said.or_else(|| after(text, &["note that ", "remember that ", "remember: "]))?;
    let said = said.trim_start_matches([':', ',', ' ']);
    let links = ["about ", "on ", "that says ", "that ", "saying ", "called ", "titled ", "named "];
    let said = after(said, &links).unwrap_or(said);
    let (said, tags) = tags(said);
    if said.is_empty() {
        return None;
    }
    if let Some(of) = referent(&said) {
        let input = vec![
            ("title".to_owned(), Given::Of(of.clone(), Part::Title)),
            ("text".to_owned(), Given::Of(of, Part::Text)),
        ];
        return Some((WRITE_NOTE, input));
    }
    let (title, body) = match parted(&said) {
        Some((title, body)) => (headline(unquoted(title)), unquoted(body).to_owned()),
        None => (headline(unquoted(&said)), unquoted(&said).to_owned()),
    };
    let mut input = vec![value("title", title), value("text", body)];
    if !tags.is_empty() {
        input.push(value("tags", tags));
    }
    Some((WRITE_NOTE, input))
}

/// Title and text, where both are said.
fn parted(said: &str) -> Option<(&str, &str)> {
    let seams = [": ", " saying ", " that says ", " with the text ", " with text "];
    let found = seams.iter().find_map(|seam| around(said, seam));
    found.filter(|(title, body)| !title.is_empty() && !body.is_empty())
}

/// The first line of a text, not too long.
fn headline(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim();
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    match line.char_indices().nth(LONGEST_TITLE) {
        None => line,
        Some((end, _)) => {
            let cut = line.get(..end).unwrap_or_default();
            cut.rsplit_once(' ').map_or(cut, |(cut, _)| cut).to_owned()
        }
    }
}

/// A text without the tags at its end: `#tea`.
fn tags(said: &str) -> (String, Vec<String>) {
    let mut words: Vec<&str> = said.split(' ').collect();
    let mut tags = Vec::new();
    while let Some(tag) = words.last().and_then(|word| word.strip_prefix('#')) {
        let tag = tag.to_ascii_lowercase();
        if !is_tag(&tag) || tags.len() >= 20 {
            break;
        }
        if !tags.contains(&tag) {
            tags.insert(0, tag);
        }
        words.pop();
    }
    (words.join(" ").trim().to_owned(), tags)
}

fn is_tag(tag: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    tag.starts_with(|c: char| c.is_ascii_alphanumeric())
        && tag.len() <= 40
        && tag.chars().all(plain)
}

/// `search notes for tea`, `find my notes about tea`, `what do my notes say about tea`.
fn searched(text: &str) -> Option<(&'static str, Input)> {
    let lower = text.to_ascii_lowercase();
    // What is looked for in code is no business of notes.
    if ["code", "repo", "repository", "project", "src/"].iter().any(|word| lower.contains(word))
        && !lower.contains("notes")
    {
        return None;
    }
    let asked = [
        "what do my notes say about ",
        "what do the notes say about ",
        "do i have notes about ",
        "do i have any notes about ",
        "do i have notes on ",
        "what did i write about ",
        "what did i note about ",
    ];
    let whole = after(text.trim_end_matches('?'), &asked);
    let query = whole.or_else(|| {
        let rest =
            after(text, &["search ", "find ", "look for ", "look up ", "look in ", "show "])?;
        let rest = ["me ", "in ", "through ", "all ", "my ", "the "]
            .iter()
            .fold(rest, |rest, word| strip(rest, word).unwrap_or(rest));
        let links =
            ["for ", "about ", "on ", "that mention ", "mentioning ", "with ", "containing "];
        match strip(rest, "notes ").or_else(|| strip(rest, "note ")) {
            Some(rest) => after(rest.trim_start(), &links),
            None => {
                let inside = [" in my notes", " in the notes", " in notes"];
                let bare = inside.iter().find_map(|end| strip_end(rest, end));
                let by_verb =
                    strip(text, "search ").map(|_| after(rest, &["for "]).unwrap_or(rest));
                bare.or(by_verb)
            }
        }
    })?;
    let query = unquoted(query);
    // What is referred to is no question.
    if query.is_empty() || query.eq_ignore_ascii_case("notes") || referent(query).is_some() {
        return None;
    }
    Some((SEARCH_NOTES, vec![value("query", query)]))
}

/// `notes tagged tea`, `show my notes with the tag tea`.
fn tagged(text: &str) -> Option<(&'static str, Input)> {
    let rest = ["show ", "read ", "list ", "get ", "find ", "me ", "all ", "my ", "the "]
        .iter()
        .fold(text, |rest, word| strip(rest, word).unwrap_or(rest));
    let rest = strip(rest, "notes ")?.trim_start();
    let links = [
        "tagged with ",
        "tagged as ",
        "tagged ",
        "with the tag ",
        "with tag ",
        "by tag ",
        "for tag ",
        "under tag ",
    ];
    let tag = after(rest, &links).or_else(|| rest.starts_with('#').then_some(rest))?;
    let tag = unquoted(tag).trim_start_matches('#').to_ascii_lowercase();
    is_tag(&tag).then(|| (BY_TAG, vec![value("tag", tag)]))
}

/// `summarize the note tea.md`, `summarize tea.md`.
fn summarised(text: &str) -> Option<(&'static str, Input)> {
    let rest = after(text, &["summarize ", "summarise ", "sum up "])?;
    let named = ["the note ", "my note ", "note "].iter().find_map(|word| strip(rest, word));
    let name = unquoted(named.unwrap_or(rest));
    let name = name.strip_prefix("notes/").unwrap_or(name);
    let is_file = name.ends_with(".md") && !name.contains(['/', '\\', ' ']);
    if is_file && name.len() > 3 {
        return Some((SUMMARIZE_NOTE, vec![value("note", name)]));
    }
    // A note that is called something is named by its file.
    let slug: Vec<String> = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|part| !part.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    let slug = slug.join("-");
    (named.is_some() && !slug.is_empty())
        .then(|| (SUMMARIZE_NOTE, vec![value("note", format!("{slug}.md"))]))
}

/// `daily note`, `create the daily note for tomorrow`, `add tea to my daily note`.
fn daily(text: &str, days: &[String; 3]) -> Option<(&'static str, Input)> {
    let (mut before, after_it) = ["daily note", "today's note", "todays note", "note of the day"]
        .iter()
        .find_map(|name| around(text, name))?;
    let [yesterday, today, tomorrow] = days;
    let when = after_it.trim_start_matches([':', ',', ' ']);
    let when = after(when, &["for ", "of ", "on "]).unwrap_or(when);
    let is_day = |text: &str| {
        let digits = |part: Option<&str>, size| {
            part.is_some_and(|it| it.len() == size && it.bytes().all(|b| b.is_ascii_digit()))
        };
        let mut parts = text.split('-');
        digits(parts.next(), 4)
            && digits(parts.next(), 2)
            && digits(parts.next(), 2)
            && parts.next().is_none()
    };
    let (date, behind) = match when.to_ascii_lowercase().as_str() {
        "" | "today" => (today.as_str(), ""),
        "yesterday" => (yesterday.as_str(), ""),
        "tomorrow" => (tomorrow.as_str(), ""),
        _ if is_day(when) => (when, ""),
        _ => (today.as_str(), when),
    };
    for word in [" to my", " to the", " to", " in my", " in the", " in", " into my", " into the"] {
        before = strip_end(before, word).unwrap_or(before);
    }
    let verbs = ["add ", "log ", "write ", "put ", "note ", "append "];
    let line = after(before, &verbs).filter(|line| !matches!(*line, "my" | "the" | "a"));
    let bare = ["", "my", "the", "a", "open", "create", "make", "start", "begin", "write"];
    let opened =
        before.split_whitespace().all(|word| bare.contains(&word.to_ascii_lowercase().as_str()));
    let line = match (line, opened, behind) {
        (Some(line), false, "") => Some(line),
        (None, true, "") => None,
        (_, true, behind) => Some(behind),
        // A question about it, or something else altogether.
        _ => return None,
    };
    let mut input = vec![value("date", date)];
    if let Some(line) = line {
        input.push(value("line", unquoted(line)));
    }
    Some((DAILY_NOTE, input))
}

/// `get https://api.github.com/repos/a/b?per_page=1`, where the skill reaches that host.
fn fetched(text: &str, known: &[Known]) -> Option<(&'static str, Input)> {
    let url = unquoted(after(text, &["get ", "fetch ", "download "])?);
    let rest = strip(url, "https://")?;
    let (host, rest) = rest.split_at_checked(rest.find(['/', '?']).unwrap_or(rest.len()))?;
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let skill = known.iter().find(|it| it.name().as_str() == HTTP);
    let reaches = |listed: &String| listed.split(':').next() == Some(host);
    if skill.is_some_and(|skill| !skill.spec.hosts.iter().any(reaches)) || path.contains([' ', '#'])
    {
        return None;
    }
    let mut input = vec![value("resource", path)];
    let pairs: Map<String, Value> = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    if !pairs.is_empty() {
        input.push(value("query", pairs));
    }
    Some((HTTP, input))
}
