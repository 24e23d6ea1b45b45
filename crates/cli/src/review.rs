//! The person behind a task, who is asked where a rule wants one: at the terminal, or by what was said
//! with the command.
//!
//! A question is made in the kernel's process ([`Asked`]), shown and answered where the person is ([`TaskReviewer`]), and the
//! answer is judged in the kernel's process again ([`judged`]).
//!
//! **Invariant.** What was said with the command answers for what the project's own rules ask. What the
//! system itself asks a person, and a phrase, are answered by a person at a terminal or refused. The kernel's process sees
//! to that, whatever a client says.
//!
//! **Invariant.** Whatever is unclear is a refusal, and everything is shown before it is asked.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use fluffy_base::{Event, Excerpt, KernelRequest, sanitised};
use fluffy_kernel::{Question, Review, Scope, is_personal};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::output::Tone;
use crate::render::{DiffView, Look};
use crate::terminal::{agreed, answer, is_yes, nobody, refused_by};

/// How many lines of a change are shown before the rest is asked for.
const DIFF_SHOWN: usize = 80;
/// How much of a reason or a note is shown, in characters.
const TEXT_SHOWN: usize = 2000;
/// The longest change that is handed to watchers, in bytes.
const MAX_DIFF: usize = 256 << 10;
/// The longest change that a person is shown, in bytes.
const MAX_ASKED: usize = 4 << 20;

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

/// Brings a person's answers to questions.
pub(crate) trait Answers {
    /// Shows a question and brings the answer.
    fn answer(&self, asked: &Asked) -> Reply;
}

/// Whoever sits at the terminal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AtTerminal;

/// Shows questions about a task and brings the answers.
pub(crate) struct TaskReviewer {
    said: Said,
    person: Box<dyn Person>,
    look: Look,
}

/// A question as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asked {
    pub(crate) action: String,
    pub(crate) reasons: Vec<String>,
    pub(crate) notes: Vec<String>,
    /// What the call is given, line by line, but for what the change shows.
    pub(crate) given: String,
    pub(crate) diff: Option<String>,
    /// Whether it may be answered by what was said with the command.
    pub(crate) beforehand: bool,
    /// What must be typed to agree, where a simple yes is too little.
    pub(crate) phrase: Option<String>,
    /// How far a yes may reach; what is not among it is refused.
    pub(crate) scopes: Vec<Scope>,
    /// What a yes as a rule would change in the policy's file. It is asked about once more before it is written.
    pub(crate) exception: Option<String>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Reply {
    /// Nobody was there.
    Nobody,
    /// It was said with the command.
    Beforehand {
        /// What.
        yes: bool,
    },
    /// It was typed at a terminal.
    Typed {
        /// Whether they agreed.
        yes: bool,
        /// What was typed where a phrase was asked for.
        phrase: Option<String>,
        /// How far a yes reaches; a no reaches nowhere.
        #[serde(default)]
        scope: Scope,
        /// What the model is told with a no.
        #[serde(default)]
        words: Option<String>,
    },
    /// It could not be shown or read.
    Lost {
        /// Why.
        why: String,
    },
}

/// What a reply means, given whether the one who brought it has a terminal.
pub(crate) fn judged(asked: &Asked, reply: Reply, at_terminal: bool) -> Review {
    match reply {
        Reply::Beforehand { yes: false } => refused_by("the user, with --no,"),
        Reply::Beforehand { yes: true } if asked.beforehand => agreed("the user, with --yes", None),
        Reply::Typed { yes: false, words, .. } => {
            Review::Refused { by: "the user".to_owned(), words }
        }
        Reply::Typed { yes: true, scope, .. } if !asked.scopes.contains(&scope) => {
            refused_by("the program, as a yes that reaches so far was not offered,")
        }
        Reply::Typed { yes: true, phrase, scope, .. } if at_terminal => {
            Review::Approved { by: "the user, at the terminal".to_owned(), phrase, scope }
        }
        Reply::Nobody | Reply::Beforehand { .. } | Reply::Typed { .. } => nobody(),
        Reply::Lost { why } => {
            refused_by(&format!("the terminal ({})", Excerpt::new(&why, TEXT_SHOWN)))
        }
    }
}

impl Person for AtTerminal {
    fn show(&self, text: &str) -> io::Result<()> {
        io::stderr().write_all(text.as_bytes())
    }

    fn answer(&self, prompt: &str) -> io::Result<Option<String>> {
        answer(prompt)
    }
}

impl Answers for TaskReviewer {
    fn answer(&self, asked: &Asked) -> Reply {
        // What cannot be shown or read was not agreed to.
        self.decide(asked).unwrap_or_else(|error| Reply::Lost { why: error.to_string() })
    }
}

impl TaskReviewer {
    /// A reviewer of one task.
    pub(crate) fn new(said: Said, person: Box<dyn Person>, look: Look) -> Self {
        Self { said, person, look }
    }

    fn decide(&self, asked: &Asked) -> io::Result<Reply> {
        self.person.show(&asked.text(&self.look, DIFF_SHOWN))?;
        match self.said {
            Said::No => return Ok(Reply::Beforehand { yes: false }),
            Said::Yes if asked.beforehand => return Ok(Reply::Beforehand { yes: true }),
            Said::Yes | Said::Nothing => {}
        }
        let reply = match &asked.phrase {
            Some(phrase) => self.ask_for(phrase)?,
            None => self.ask(asked)?,
        };
        if let Some(reply) = reply {
            return Ok(reply);
        }
        self.person.show(if asked.beforehand {
            "  Nobody can be asked: run it at a terminal, or agree with --yes\n"
        } else {
            "  Nobody can be asked: run it at a terminal; --yes does not answer this\n"
        })?;
        Ok(Reply::Nobody)
    }

    /// Asks for a yes; nothing where nobody is there.
    fn ask(&self, asked: &Asked) -> io::Result<Option<Reply>> {
        let is_cut = asked.body(&self.look, DIFF_SHOWN).left_out > 0;
        let offers = |scope| asked.scopes.contains(&scope);
        let keys = [
            (offers(Scope::Session), "s: for this session"),
            (offers(Scope::Rule), "r: as a rule"),
            (true, "m: no, and say why"),
            (is_cut, "d: all of it"),
        ];
        let keys = keys.iter().filter(|(there, _)| *there).map(|(_, key)| format!(", {key}"));
        let prompt = format!("  Agree? [y/N{}] ", keys.collect::<String>());
        loop {
            let Some(text) = self.person.answer(&prompt)? else { return Ok(None) };
            return Ok(Some(match text.as_str() {
                "d" | "D" if is_cut => {
                    self.person.show(&asked.text(&self.look, usize::MAX))?;
                    continue;
                }
                "s" | "S" if offers(Scope::Session) => Reply::yes(Scope::Session),
                "r" | "R" if offers(Scope::Rule) => Reply::yes(Scope::Rule),
                "m" | "M" => Reply::no(self.person.answer("  What should the model know? ")?),
                text if is_yes(text) => Reply::yes(Scope::Once),
                _no => Reply::no(None),
            }));
        }
    }

    fn ask_for(&self, phrase: &str) -> io::Result<Option<Reply>> {
        let typed = self.person.answer(&format!("  To agree, type `{phrase}`: "))?;
        Ok(typed.map(|text| Reply::Typed {
            yes: !text.is_empty(),
            phrase: Some(text).filter(|text| !text.is_empty()),
            scope: Scope::Once,
            words: None,
        }))
    }
}

impl Reply {
    /// A yes at a terminal that reaches so far.
    pub(crate) fn yes(scope: Scope) -> Self {
        Self::Typed { yes: true, phrase: None, scope, words: None }
    }

    /// A no at a terminal, with what the model is told.
    pub(crate) fn no(words: Option<String>) -> Self {
        let words = words.filter(|words| !words.is_empty());
        Self::Typed { yes: false, phrase: None, scope: Scope::Once, words }
    }
}

impl Asked {
    /// What is asked of a person.
    pub(crate) fn of(question: &Question<'_>) -> Self {
        let reasons = question.reasons.iter();
        let reasons = reasons.map(|reason| format!("{} (rule `{}`)", reason.text(), reason.rule()));
        let (diffs, notes): (Vec<_>, Vec<_>) =
            question.notes.iter().cloned().partition(|note| is_diff(note));
        let (diff, in_change): (_, &[&str]) = match diffs.is_empty() {
            // The change of a policy says all that is new in its text.
            false => (Some(diffs.join("\n")), &["content"]),
            true => Proposed::of(question.request)
                .map_or((None, &[]), |proposed| (Some(proposed.diff), proposed.params)),
        };
        let given = bounded(&given(question.request, in_change), MAX_ASKED);
        let diff = diff.map(|diff| bounded(&diff, MAX_ASKED));
        let (action, reasons) = (action(question.request), reasons.collect());
        let phrase = question.phrase.map(str::to_owned);
        let beforehand = phrase.is_none() && !question.reasons.iter().any(is_personal);
        let scopes = question.scopes.to_vec();
        let exception = question.exception.map(|diff| bounded(diff, MAX_ASKED));
        Self { action, reasons, notes, given, diff, beforehand, phrase, scopes, exception }
    }

    /// What whoever watches is told of the question.
    pub(crate) fn event(&self, id: &str) -> Event {
        Event::ReviewRequested {
            id: id.to_owned(),
            action: self.action.clone(),
            reasons: self.reasons.iter().chain(&self.notes).cloned().collect(),
            diff: self.diff.as_deref().map(|diff| bounded(diff, MAX_DIFF)),
        }
    }

    /// What must be typed to agree, where a simple yes is too little.
    pub(crate) fn phrase(&self) -> Option<&str> {
        self.phrase.as_deref()
    }

    /// The question in rows, with the beginning of a long change, and how many rows of it are left out.
    pub(crate) fn rows(&self, look: &Look, most: usize) -> (Vec<String>, usize) {
        let text = self.text(look, most);
        let rows = text.lines().filter(|row| !row.trim().is_empty()).map(str::to_owned).collect();
        (rows, self.body(look, most).left_out)
    }

    /// All that the call is given and what it would change.
    pub(crate) fn whole(&self) -> String {
        let mut text = [self.given.as_str(), self.diff.as_deref().unwrap_or_default()].concat();
        if let Some(exception) = &self.exception {
            text.push_str(
                "\nA yes as a rule would change the policy, and is asked about once more. What was agreed to for this session \
                 ends with it:\n",
            );
            text.push_str(exception);
        }
        text
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
fn bounded(diff: &str, most: usize) -> String {
    if diff.len() <= most {
        return diff.to_owned();
    }
    let end = diff.floor_char_boundary(most);
    let kept = diff.get(..end).unwrap_or_default();
    format!("{kept}\n… {} more bytes are not shown", diff.len() - end)
}

#[cfg(test)]
mod tests;
