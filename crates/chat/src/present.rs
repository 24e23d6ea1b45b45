//! What people read: templates for every kind of reply. No model words what is routine.
//!
//! **Invariant.** What a person is asked to agree to is told whole: every step, every value that it is given, and what it may
//! touch. A value is written as JSON, so that none can look like a line of ours.

use std::fmt::Write as _;

use fluffy_base::Excerpt;
use fluffy_forge::{Finished, SideEffect};
use serde_json::Value;

use crate::anchors::Anchors;
use crate::confirm::ConfirmError;
use crate::history::{History, Voice};
use crate::intent::{Change, Command};
use crate::plan::{Origin, Plan, PlanError, Slot, Step};
use crate::resolve::Unresolved;
use crate::skill::Known;

/// How much of a result's text is shown, in characters.
const LONGEST: usize = 20_000;
/// How much of an excerpt.
const EXCERPT: usize = 160;

/// How a coding task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coded {
    /// Its session, if it got that far.
    pub session: Option<String>,
    /// How it ended, in words.
    pub summary: String,
    /// Whether it is done.
    pub done: bool,
}

pub(crate) const HELP: &str = "\
Say what you want, in your own words:
- a coding task: `fix the parser in src/config.rs`: tests first, every step judged and recorded
- a skill: `write a note about tea`, `search notes for tea`, or exactly: `write_note {\"title\": \"tea\", \"text\": \"…\"}`
- something about what came before: `summarize that`, `do it again but shorter`, `last_search`, `exec:ab12`
- anything else is conversation
What changes something is asked first. `/skills`, `/anchors`, `/history`, `/verbose`, `/forget`.";

/// What is said in answer to a few words that need no model.
pub(crate) fn small_talk(text: &str) -> Option<&'static str> {
    let text = text.trim().trim_end_matches(['.', '!', '?', ' ']).to_ascii_lowercase();
    match text.as_str() {
        "hi" | "hello" | "hey" | "good morning" | "good evening" | "hi there" => {
            Some("Hello! Tell me what you want done, or ask: `/help` shows what I understand.")
        }
        "thanks" | "thank you" | "thx" | "cheers" => Some("You are welcome."),
        "bye" | "goodbye" | "see you" => Some("Goodbye."),
        "yes" | "y" | "ok" | "okay" | "sure" => {
            Some("There is nothing that waits for a yes. Tell me what you want done.")
        }
        "no" | "n" | "nope" => Some("All right. There is nothing that waits for an answer."),
        _ => None,
    }
}

/// What is said where there would be talk, and there is no model.
pub(crate) fn speechless(why: Option<&str>) -> String {
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    format!(
        "I cannot make conversation without a model{why}. I can run skills, and refer to what they gave: `/help` shows how. \
         Name a model with `--provider`, in your settings (`provider`), or a local one (`forge.gateway.url`)."
    )
}

/// What is said where a text would be changed, and there is no model.
pub(crate) fn unchanged(label: &str, change: &Change, why: Option<&str>) -> String {
    let what = match change {
        Change::Again => "say that again",
        Change::Summarise => "summarise that",
        Change::Shorter => "make that shorter",
        Change::Longer => "make that longer",
        Change::Other(_) => "change that",
    };
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    format!(
        "I cannot {what} without a model{why}; it is still there: {}.",
        Excerpt::new(label, EXCERPT)
    )
}

/// What a person is asked.
pub(crate) fn question(plan: &Plan, beforehand: bool) -> String {
    let mut text = match plan.origin {
        Origin::Words => "I would do this:\n".to_owned(),
        Origin::Model => "If I understood you, this is to be done:\n".to_owned(),
    };
    for (number, step) in plan.steps.iter().enumerate() {
        let number = match plan.steps.len() {
            1 => String::new(),
            _several => format!("{}. ", number + 1),
        };
        push(&mut text, &format!("  {number}{} ({})", step.skill, effect(step)));
        for (name, slot) in &step.input {
            push(&mut text, &format!("      {name}: {}", shown(slot)));
        }
    }
    text.push_str("Okay?");
    if beforehand {
        text.push_str(
            " (A model found this in your words; `--confirmed` answers for what they say themselves.)",
        );
    }
    text
}

fn shown(slot: &Slot) -> String {
    match slot {
        Slot::Value(value) => value.to_string(),
        Slot::Before(way) => format!("what the step before gives as `{way}`"),
    }
}

/// What a step does to the world, in words.
fn effect(step: &Step) -> String {
    let class = match step.effect {
        SideEffect::ReadOnly => "only reads",
        SideEffect::FileWrite => "writes files",
        SideEffect::Network => "uses the network",
        SideEffect::SecretRead => "uses a secret",
        SideEffect::Money => "moves money",
        SideEffect::Messaging => "sends messages",
    };
    let touches = step.touches.iter().map(|it| format!("; {it}")).collect::<String>();
    format!("{class}{touches}")
}

/// Why something is asked back: what is referred to is not clear.
pub(crate) fn unresolved(why: &Unresolved) -> String {
    match why {
        Unresolved::Nothing { reference } => format!(
            "I have nothing that `{reference}` could be: nothing of that kind was done in this conversation. `/anchors` lists what \
             there is."
        ),
        Unresolved::Ambiguous { reference, candidates } => {
            let mut text = format!("`{reference}` could be any of these:\n");
            for (execution, label) in candidates {
                let label = Excerpt::new(label, EXCERPT);
                push(&mut text, &format!("  exec:{} {label}", short(execution)));
            }
            text.push_str("Say which, such as `exec:…`.");
            text
        }
        Unresolved::Without { label, part } => format!(
            "There is no {part} in {}. Say which one you mean.",
            Excerpt::new(label, EXCERPT)
        ),
        Unresolved::NotAgain { label } => format!(
            "{} cannot be done again as it was. Say it once more in full.",
            Excerpt::new(label, EXCERPT)
        ),
    }
}

/// Why something is asked back: it cannot be planned.
pub(crate) fn unplanned(why: &PlanError) -> String {
    match why {
        PlanError::NotTrusted(skill) => missing(skill.as_str()),
        PlanError::Input { skill, why } => {
            let why = Excerpt::new(why, 400);
            format!(
                "`{skill}` does not take that: {why}. `fluffy skill show {skill}` tells what it takes."
            )
        }
        PlanError::Steps(count) => format!("That would be {count} steps at once. Ask for less."),
    }
}

/// There is no such skill here.
pub(crate) fn missing(skill: &str) -> String {
    let skill = Excerpt::new(skill, 80);
    format!(
        "There is no trusted skill `{skill}` here. `fluffy skill show {skill}` tells where it stands, `/skills` which there are."
    )
}

/// Why a yes does not count.
pub(crate) fn refused(why: ConfirmError) -> &'static str {
    match why {
        ConfirmError::NotAsked => {
            "Nothing of that kind is asked here, and nothing was done. Say again what you want."
        }
        ConfirmError::Expired => {
            "That was asked more than five minutes ago, and nothing was done. Say again what you want."
        }
        ConfirmError::Changed => {
            "A skill has changed since I asked, and nothing was done. Say again what you want."
        }
        ConfirmError::NoPerson => {
            "A yes counts from a person at a terminal, and nothing was done. Beforehand it is said with `--confirmed`."
        }
    }
}

pub(crate) const DECLINED: &str = "All right, nothing was done.";

/// Why something is not done at all.
pub(crate) fn unsupported(why: &str) -> String {
    format!("I will not do that: {}", Excerpt::new(why, 500))
}

/// What a run gave.
pub(crate) fn ran(finished: &[Finished]) -> String {
    let Some(Finished { record, output: Some(output) }) = finished.last() else {
        return "It gave nothing.".to_owned();
    };
    let output = output.value();
    let folder = |note: &str| {
        let path = record.files.first().map(|file| file.path.to_string());
        path.unwrap_or_else(|| note.to_owned())
    };
    let text = |name: &str| output.get(name).and_then(Value::as_str);
    let flag = |name: &str| output.get(name).and_then(Value::as_bool);
    let told = match record.skill.as_str() {
        "write_note" => text("note").map(|note| match flag("replaced") {
            Some(true) => format!("Written anew: `{}`.", folder(note)),
            _ => format!("Noted: `{}`.", folder(note)),
        }),
        "create_daily_note" => text("note").map(|note| match (flag("created"), flag("added")) {
            (Some(true), _) => format!("Made the note of the day: `{}`.", folder(note)),
            (_, Some(true)) => format!("Added to the note of the day: `{}`.", folder(note)),
            _ => format!("The note of the day has that already: `{note}`."),
        }),
        "search_notes" => output.get("results").and_then(Value::as_array).map(|it| notes(it, None)),
        "read_notes_by_tag" => {
            let found = output.get("found").and_then(Value::as_u64);
            output.get("notes").and_then(Value::as_array).map(|list| notes(list, found))
        }
        "summarize_note" => text("summary").map(|summary| {
            let title = text("title").or(text("note")).unwrap_or_default();
            format!("**{title}**: {summary}")
        }),
        _other => None,
    };
    let plain = || {
        let text = serde_json::to_string_pretty(output).unwrap_or_else(|_| output.to_string());
        format!("```json\n{text}\n```")
    };
    bounded(&told.unwrap_or_else(plain))
}

/// Notes as a list.
fn notes(list: &[Value], found: Option<u64>) -> String {
    if list.is_empty() {
        return "There is no such note.".to_owned();
    }
    let count = found.unwrap_or(u64::try_from(list.len()).unwrap_or(u64::MAX));
    let mut out = match count {
        1 => "One note:\n".to_owned(),
        count => format!("{count} notes, the best first:\n"),
    };
    for item in list {
        let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
        let said = if text("excerpt").is_empty() { text("text") } else { text("excerpt") };
        let said: String = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = Excerpt::new(&said, EXCERPT);
        push(&mut out, &format!("- **{}** (`{}`): {said}", text("title"), text("note")));
    }
    out.trim_end().to_owned()
}

/// A run that did not get to its end.
pub(crate) fn failed(finished: &[Finished], why: &str) -> String {
    let done: Vec<String> = finished
        .iter()
        .filter(|it| it.record.success)
        .map(|it| format!("`{}` was done ({}). ", it.record.skill, it.record.execution))
        .collect();
    format!("{}That did not work: {}", done.concat(), Excerpt::new(why, 2_000))
}

/// An answer to a command about the conversation.
pub(crate) fn meta(
    command: &Command,
    known: &[Known],
    anchors: &Anchors,
    history: &History,
    verbose: bool,
) -> String {
    match command {
        Command::Help => HELP.to_owned(),
        Command::Skills => skills(known),
        Command::Verbose(_) if verbose => "From now on I show everything.".to_owned(),
        Command::Verbose(_) => "From now on I show the answer alone.".to_owned(),
        Command::Anchors => {
            let lines = anchors.newest().map(|it| {
                let label = Excerpt::new(&it.label, EXCERPT).to_string();
                format!("exec:{} {} {label}\n", short(&it.execution), it.kind.name())
            });
            let lines: String = lines.collect();
            match lines.is_empty() {
                true => "There is nothing to refer to yet.".to_owned(),
                false => format!("You can refer to these, the newest first:\n{}", lines.trim_end()),
            }
        }
        Command::History => {
            let lines = history.messages().map(|(voice, text)| {
                let who = if voice == Voice::Person { "you" } else { "me" };
                format!("{who}: {}\n", Excerpt::new(text, EXCERPT))
            });
            lines.collect::<String>().trim_end().to_owned()
        }
        Command::Forget => "Forgotten: there is nothing to refer to any more.".to_owned(),
        Command::Other(name) => {
            format!(
                "There is no command `/{}`. `/help` shows what there is.",
                Excerpt::new(name, 80)
            )
        }
    }
}

fn skills(known: &[Known]) -> String {
    if known.is_empty() {
        return "No skill is trusted here yet. `fluffy skill propose` begins one.".to_owned();
    }
    let mut text = String::new();
    for skill in known {
        let about = Excerpt::new(&skill.spec.description, EXCERPT);
        push(&mut text, &format!("- `{}` ({}): {about}", skill.name(), skill.effect()));
    }
    text.trim_end().to_owned()
}

/// An id as people type it: without what all ids begin with, and as much as is hardly ever shared.
fn short(execution: &str) -> &str {
    let bare = execution.split_once('-').map_or(execution, |(_, bare)| bare);
    bare.get(..8).unwrap_or(bare)
}

fn bounded(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}\n… and more", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn push(text: &mut String, line: &str) {
    // Writing to a string does not fail.
    let _ok = writeln!(text, "{line}");
}
