//! The person behind a task, who is asked where a rule wants one: at the terminal, or by what was said
//! with the command.
//!
//! **Invariant.** What was said with the command answers for what the project's own rules ask. What the
//! system itself asks a person, and a phrase, are answered by a person at a terminal or refused.
//!
//! **Invariant.** Whatever is unclear is a refusal, and everything is shown before it is asked.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fluffy_base::{Event, Excerpt, KernelRequest, Observer, sanitised};
use fluffy_kernel::{Question, Review, Reviewer};
use fluffy_policy::{Layer, Reason};
use serde_json::Value;

use crate::output::Tone;
use crate::render::{DiffView, Look};
use crate::terminal::{agreed, answer, is_yes, nobody, refused};

/// How many lines of a change are shown before the rest is asked for.
const DIFF_SHOWN: usize = 80;
/// How much of a reason or a note is shown, in characters.
const TEXT_SHOWN: usize = 2000;
/// The longest change that is handed to watchers, in bytes.
const MAX_DIFF: usize = 256 << 10;
/// Rules of the workflow that loosen it: a person's alone.
const LOOSENING: [&str; 2] = ["workflow.mode", "workflow.container"];

/// What was said with the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// Nothing: the person is asked.
    Nothing,
    /// Yes to what may be answered beforehand.
    Yes,
    /// No to everything.
    No,
}

/// Somebody who can be shown something and asked.
pub(crate) trait Person: Send + Sync {
    /// Shows a text.
    fn show(&self, text: &str) -> io::Result<()>;
    /// What is typed in answer; nothing where nobody is there.
    fn answer(&self, prompt: &str) -> io::Result<Option<String>>;
}

/// Whoever sits at the terminal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AtTerminal;

/// Asks about a task, one question at a time, and tells whoever watches.
pub(crate) struct TaskReviewer {
    said: Said,
    observer: Arc<dyn Observer>,
    person: Box<dyn Person>,
    look: Look,
    asked: AtomicU64,
    asking: Mutex<()>,
}

/// A question as it is shown.
struct Shown {
    action: String,
    reasons: Vec<String>,
    notes: Vec<String>,
    /// What the call is given, line by line, but for what the change shows.
    given: String,
    diff: Option<String>,
}

impl Person for AtTerminal {
    fn show(&self, text: &str) -> io::Result<()> {
        io::stderr().write_all(text.as_bytes())
    }

    fn answer(&self, prompt: &str) -> io::Result<Option<String>> {
        answer(prompt)
    }
}

impl TaskReviewer {
    /// A reviewer of one task.
    pub(crate) fn new(
        said: Said,
        observer: Arc<dyn Observer>,
        person: Box<dyn Person>,
        look: Look,
    ) -> Self {
        let (asked, asking) = (AtomicU64::new(0), Mutex::new(()));
        Self { said, observer, person, look, asked, asking }
    }

    fn decide(&self, question: &Question<'_>, shown: &Shown) -> io::Result<Review> {
        self.person.show(&shown.text(&self.look, DIFF_SHOWN))?;
        let beforehand = question.phrase.is_none() && !question.reasons.iter().any(is_personal);
        match self.said {
            Said::No => {
                return Ok(Review::Refused { by: "the user, with --no,".to_owned() });
            }
            Said::Yes if beforehand => return Ok(agreed("the user, with --yes", None)),
            Said::Yes | Said::Nothing => {}
        }
        let review = match question.phrase {
            Some(phrase) => self.ask_for(phrase)?,
            None => self.ask(shown)?,
        };
        if let Some(review) = review {
            return Ok(review);
        }
        self.person.show(if beforehand {
            "  Nobody can be asked: run it at a terminal, or agree with --yes\n"
        } else {
            "  Nobody can be asked: run it at a terminal; --yes does not answer this\n"
        })?;
        Ok(nobody())
    }

    /// Asks for a yes; nothing where nobody is there.
    fn ask(&self, shown: &Shown) -> io::Result<Option<Review>> {
        let is_cut = shown.body(&self.look, DIFF_SHOWN).left_out > 0;
        let prompt = if is_cut { "  Agree? [y/N, d: all of it] " } else { "  Agree? [y/N] " };
        loop {
            let Some(text) = self.person.answer(prompt)? else { return Ok(None) };
            match text.as_str() {
                "d" | "D" if is_cut => self.person.show(&shown.text(&self.look, usize::MAX))?,
                text if is_yes(text) => return Ok(Some(agreed("the user, at the terminal", None))),
                _ => return Ok(Some(refused())),
            }
        }
    }

    fn ask_for(&self, phrase: &str) -> io::Result<Option<Review>> {
        let typed = self.person.answer(&format!("  To agree, type `{phrase}`: "))?;
        Ok(typed.map(|text| match text.as_str() {
            "" => refused(),
            _ => agreed("the user, at the terminal", Some(text)),
        }))
    }
}

impl Reviewer for TaskReviewer {
    fn review(&self, question: &Question<'_>) -> Review {
        let _one_at_a_time = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("review-{number}");
        let shown = Shown::of(question);
        self.observer.notice(Event::ReviewRequested {
            id: id.clone(),
            action: shown.action.clone(),
            reasons: shown.reasons.iter().chain(&shown.notes).cloned().collect(),
            diff: shown.diff.as_deref().map(bounded),
        });
        // What cannot be shown or read was not agreed to.
        let review = self
            .decide(question, &shown)
            .unwrap_or_else(|error| Review::Refused { by: format!("the terminal ({error})") });
        let (approved, by) = match &review {
            Review::Approved { by, .. } => (true, by.clone()),
            Review::Refused { by } => (false, by.clone()),
        };
        self.observer.notice(Event::ReviewAnswered { id, approved, by });
        review
    }
}

/// Whether only a person may answer for a reason.
fn is_personal(reason: &Reason) -> bool {
    match reason.layer() {
        Layer::Yaml | Layer::Extension => false,
        Layer::Workflow => LOOSENING.contains(&reason.rule()),
        // The system's own rules, and those that are not known to ask anybody.
        Layer::BuiltIn
        | Layer::Validation
        | Layer::Ambiguity
        | Layer::Jurisdiction
        | Layer::Variant
        | Layer::Token
        | Layer::Silence => true,
    }
}

impl Shown {
    fn of(question: &Question<'_>) -> Self {
        let reasons = question.reasons.iter();
        let reasons = reasons.map(|reason| format!("{} (rule `{}`)", reason.text(), reason.rule()));
        let (diffs, notes): (Vec<_>, Vec<_>) =
            question.notes.iter().cloned().partition(|note| is_diff(note));
        let (diff, in_change): (_, &[&str]) = match diffs.is_empty() {
            false => (Some(diffs.join("\n")), &[]),
            true => Proposed::of(question.request)
                .map_or((None, &[]), |proposed| (Some(proposed.diff), proposed.params)),
        };
        let given = given(question.request, in_change);
        let (action, reasons) = (action(question.request), reasons.collect());
        Self { action, reasons, notes, given, diff }
    }

    /// The question for people, with so many lines of the change.
    fn text(&self, look: &Look, most: usize) -> String {
        let head = look.paint(Tone::Caution, "review");
        let mut text = format!("\n  {head}  {}\n", Excerpt::new(&self.action, TEXT_SHOWN));
        for line in self.reasons.iter().chain(&self.notes) {
            push(&mut text, &format!("    {}", Excerpt::new(line, TEXT_SHOWN)));
        }
        let body = self.body(look, most);
        body.rows.iter().for_each(|row| push(&mut text, row));
        if body.left_out > 0 {
            let more = format!("    and {} more lines", body.left_out);
            push(&mut text, &look.paint(Tone::Quiet, &more));
        }
        text
    }

    /// What the call is given and what it would change, in so many rows.
    fn body(&self, look: &Look, most: usize) -> DiffView {
        let mut view = DiffView::of(&self.given, most, look);
        let rest = most.saturating_sub(view.rows.len());
        let change = DiffView::of(self.diff.as_deref().unwrap_or_default(), rest, look);
        view.rows.extend(change.rows);
        DiffView { left_out: view.left_out + change.left_out, ..view }
    }
}

fn push(text: &mut String, line: &str) {
    // Writing to a string does not fail.
    let _ok = writeln!(text, "{line}");
}

/// Whether a note is a change in the form of `git diff`.
fn is_diff(note: &str) -> bool {
    note.contains('\n') && (note.starts_with("--- ") || note.starts_with("diff --git "))
}

/// What is to be done, on one line.
fn action(request: &KernelRequest) -> String {
    let Some(call) = &request.tool_call else {
        return format!("{}: {}", request.actor, request.intent);
    };
    let path = call.params.value().get("path").and_then(Value::as_str).unwrap_or_default();
    let gap = if path.is_empty() { "" } else { " " };
    format!("{}{gap}{path}: {}", call.name, request.intent)
}

/// The parameters of a call, but for those that its change shows.
fn given(request: &KernelRequest, in_change: &[&str]) -> String {
    let mut text = String::new();
    let params = request.tool_call.as_ref().map(|call| call.params.value());
    for (name, value) in params.and_then(Value::as_object).into_iter().flatten() {
        if in_change.contains(&name.as_str()) {
            continue;
        }
        // As JSON, so that no value can look like the next parameter.
        push(&mut text, &format!("{name} {value}"));
    }
    text
}

/// A change that a call says itself, with the parameters that it shows.
struct Proposed {
    diff: String,
    params: &'static [&'static str],
}

impl Proposed {
    fn of(request: &KernelRequest) -> Option<Self> {
        let call = request.tool_call.as_ref()?;
        let text = |name: &str| call.params.value().get(name).and_then(Value::as_str);
        let path = text("path").map(sanitised)?;
        let (old, new, params): (_, _, &[_]) = match call.name.as_str() {
            "fs.write" => ("", text("content")?, &["path", "content"]),
            "fs.edit" => (text("old")?, text("new")?, &["path", "old", "new"]),
            _ => return None,
        };
        let mut diff = format!("--- {path}\n+++ {path}\n");
        for (sign, lines) in [('-', old), ('+', new)] {
            lines.lines().for_each(|line| push(&mut diff, &format!("{sign}{line}")));
        }
        Some(Self { diff, params })
    }
}

/// The beginning of a long change, saying so.
fn bounded(diff: &str) -> String {
    if diff.len() <= MAX_DIFF {
        return diff.to_owned();
    }
    let end = diff.floor_char_boundary(MAX_DIFF);
    let kept = diff.get(..end).unwrap_or_default();
    format!("{kept}\n… {} more bytes are not shown", diff.len() - end)
}

#[cfg(test)]
mod tests;
