//! A task for people: what the model says, what it does and what became of it, line by line.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use fluffy_base::{Clock, Event, Excerpt, MergedFile, Observer};
use unicode_width::UnicodeWidthStr as _;

use crate::inert::inert;
use crate::output::Tone;
use crate::pending::waiting;
use crate::render::pen::Pen;
use crate::render::progress::{Status, waited};
use crate::render::used::Used;
use crate::render::wrap::Wrap;
use crate::render::{Look, counted, cut, duration};

/// How many failed tests are named.
const FAILED_SHOWN: usize = 10;
/// How many changed files are named.
const FILES_SHOWN: usize = 20;
/// How much of a tool's name is shown, in columns.
const TOOL_SHOWN: usize = 28;
/// How much of a reason is shown, in characters.
const NOTE_SHOWN: usize = 1000;
/// How much of the ledger's root is shown: all of it.
const ROOT_SHOWN: usize = 100;
/// Screens below this width get less beside each other.
const NARROW: usize = 48;
/// How many calls that have not ended are remembered: more are never started at once.
const MAX_OPEN: usize = 1024;
/// What a provider is called that plays a recorded model.
const RECORDED: &str = "replay";
/// What stands between a denial and what would be allowed, in the words of the kernel.
const INSTEAD: &str = ". Allowed instead: ";

/// What the rendering is made of.
pub(crate) struct Parts {
    /// Where progress goes.
    pub(crate) progress: Box<dyn Write + Send>,
    /// Where the answer goes.
    pub(crate) answer: Box<dyn Write + Send>,
    /// What can be shown where progress goes.
    pub(crate) look: Look,
    /// What time it is.
    pub(crate) clock: Arc<dyn Clock>,
}

/// Shows a task to people.
pub(crate) struct People {
    clock: Arc<dyn Clock>,
    scene: Mutex<Scene>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Good,
    Failed,
    Denied,
}

/// A call that has not ended.
struct Open {
    call_id: String,
    tool: String,
    summary: String,
    since_ms: u64,
}

/// A call that has.
struct Ended {
    tool: String,
    mark: Mark,
    rule: Option<String>,
    reason: Option<String>,
    error: Option<String>,
    summary: String,
    duration_ms: u64,
}

/// What is on the screen, and what is known of the task.
struct Scene {
    pen: Pen,
    answer: Box<dyn Write + Send>,
    failed: Option<io::Error>,
    open: Vec<Open>,
    /// Results of tests whose call has not ended.
    results: Vec<Event>,
    began_ms: Option<u64>,
    last_ms: u64,
    used: Used,
    is_over: bool,
    /// Whether the model is a recorded one, which costs nothing.
    is_recorded: bool,
}

impl People {
    /// Shows a task there.
    pub(crate) fn new(parts: Parts) -> Self {
        let scene = Scene {
            pen: Pen::new(parts.progress, parts.look),
            answer: parts.answer,
            failed: None,
            open: Vec::new(),
            results: Vec::new(),
            began_ms: None,
            last_ms: 0,
            used: Used::default(),
            is_over: false,
            is_recorded: false,
        };
        Self { clock: parts.clock, scene: Mutex::new(scene) }
    }

    /// Something else can be shown from now on.
    pub(crate) fn fit(&self, look: Look) {
        self.scene().pen.fit(look);
    }

    /// Why the answer was lost, if it was.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        self.scene().failed.take()
    }

    fn scene(&self) -> std::sync::MutexGuard<'_, Scene> {
        self.scene.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows what is waited for, if it is waited for long enough.
impl Status for People {
    fn tick(&self) {
        let now = self.clock.now_ms();
        self.scene().tick(now);
    }
}

impl Observer for People {
    fn notice(&self, event: Event) {
        let now = self.clock.now_ms();
        let mut scene = self.scene();
        scene.began_ms.get_or_insert(now);
        scene.last_ms = now;
        scene.show(event, now);
    }
}

impl Scene {
    fn show(&mut self, event: Event, now: u64) {
        match event {
            Event::SessionStarted { session_id, mode, provider, model, notes, .. } => {
                self.is_recorded = provider == RECORDED;
                self.started(&session_id, &mode, &provider, &model);
                self.notes(&notes);
            }
            Event::StateChanged { to, .. } => self.stands(&to),
            Event::TextDelta { text } => self.pen.text(&text),
            Event::ToolStarted { call_id, tool, summary } => {
                // The line that the model has begun is shown before it waits.
                self.pen.settle();
                if self.open.len() < MAX_OPEN {
                    self.open.push(Open { call_id, tool, summary, since_ms: now });
                }
            }
            Event::ToolFinished {
                call_id,
                tool,
                decision,
                rule,
                reason,
                success,
                duration_ms,
                summary,
                error,
                ..
            } => {
                let mark = match (decision.as_str(), success) {
                    ("allowed", true) => Mark::Good,
                    ("allowed", false) => Mark::Failed,
                    _ => Mark::Denied,
                };
                let ended = Ended { tool, mark, rule, reason, error, summary, duration_ms };
                self.ended(&call_id, ended);
            }
            Event::TestsFinished { .. } if self.tests_run() => self.results.push(event),
            Event::TestsFinished { passed, failed, skipped, ids_failed, not_run } => {
                self.tested([passed, failed, skipped], &ids_failed, &not_run);
            }
            Event::CoverageMeasured { level, text, .. } => self.covered(&level, &text),
            Event::ReviewRequested { .. } => self.pen.hold(),
            Event::DependencyInstalled { .. } => {}
            Event::ReviewAnswered { approved, by, .. } => self.answered(approved, &by),
            Event::MergeCompleted { files, commit } => self.merged(&files, commit.as_deref()),
            Event::Usage { input_tokens, output_tokens, cached_tokens, cost_usd } => {
                let cached = cached_tokens.unwrap_or_default();
                self.turn_used(&Used::of_turn(input_tokens, output_tokens, cached, cost_usd));
            }
            Event::ProviderRetry { what, wait_ms, attempt, discarded } => {
                self.retried(&what, wait_ms, attempt, discarded)
            }
            Event::SandboxPending { what, progress } => self.prepares(&what, progress),
            Event::KernelRestarted { attempt } => self.restarted(attempt),
            Event::TaskCompleted { summary, files_changed, turns, ledger_root } => {
                let counts = [counted(files_changed.len() as u64, "file"), counted(turns, "turn")];
                self.completed(&summary, now);
                self.closing(Mark::Good, "done", &counts, now);
                self.rooted(&ledger_root);
            }
            Event::TaskFailed { what, why, fix } => self.gave_up(&what, &why, &fix, now),
        }
    }

    /// The ledger's root; whole, be the screen as narrow as it likes: it is there to be copied.
    fn rooted(&mut self, root: &str) {
        if root.is_empty() {
            return;
        }
        let root = format!("ledger root {}", Excerpt::new(root, ROOT_SHOWN));
        let root = self.pen.look().paint(Tone::Quiet, &root);
        self.pen.line(&format!("  {root}"));
    }

    /// What a turn used, in one quiet line; a recorded model uses nothing.
    fn turn_used(&mut self, turn: &Used) {
        self.used.add(turn);
        if !self.is_recorded {
            self.quiet(&turn.told(false).join(" · "));
        }
    }

    /// The provider is busy: whoever looks on is told why nothing happens.
    fn retried(&mut self, what: &str, wait_ms: u64, attempt: u32, discarded: bool) {
        self.pen.settle();
        let wait = format!("{}.{} s", wait_ms / 1_000, wait_ms % 1_000 / 100);
        let broken = if discarded { "the answer broke off and does not count; " } else { "" };
        self.quiet(&format!("{broken}asked again in {wait} (attempt {attempt}): {what}"));
    }

    /// Nothing can run yet, and whoever looks on is told how far it is.
    fn prepares(&mut self, what: &str, progress: Option<u8>) {
        self.pen.settle();
        self.quiet(&waiting(what, progress));
    }

    fn restarted(&mut self, attempt: u32) {
        self.pen.settle();
        // What it was doing is done again.
        self.open.clear();
        self.results.clear();
        self.quiet(&format!(
            "the kernel ended and was started again ({attempt}); the session goes on"
        ));
    }

    fn started(&mut self, session: &str, mode: &str, provider: &str, model: &str) {
        let model = if model.is_empty() { String::new() } else { format!(" {model}") };
        let own = session.split_once('-').map_or(session, |(_, own)| own);
        let session: String = own.chars().take(8).collect();
        let text = format!("{mode} mode, {provider}{model}, session {session}");
        let name = self.pen.look().paint(Tone::Strong, "fluffy");
        let text = self.pen.look().fitted(&text, 8);
        let text = self.pen.look().paint(Tone::Quiet, &text);
        self.pen.line(&format!("{name}  {text}"));
    }

    /// Which of the project's notes the model is shown: they are nobody's orders.
    fn notes(&mut self, notes: &[String]) {
        for note in notes {
            let text = self.pen.look().fitted(&format!("the model is shown {note}"), 2);
            let text = self.pen.look().paint(Tone::Quiet, &text);
            self.pen.line(&format!("  {text}"));
        }
    }

    fn stands(&mut self, state: &str) {
        let told = match state {
            "idle" => "at rest",
            "planning" => "planning: nothing is written yet",
            "test_writing" => "writing tests: code comes after a failing test",
            "code_writing" => "writing code: the tests are frozen",
            "validating" => "validating: all tests run, everything is frozen",
            "reviewing" => "reviewing the changes",
            "committing" => "committing",
            "exploring" => "exploring: code without tests first",
            "retroactive_testing" => "adding tests to code that is written",
            other => other,
        };
        let arrow = if self.pen.look().screen.is_some() { "→" } else { "->" };
        let text = format!("{arrow} {}", self.pen.look().fitted(told, 4));
        let text = self.pen.look().paint(Tone::Quiet, &text);
        self.pen.line(&format!("  {text}"));
    }

    fn ended(&mut self, call_id: &str, ended: Ended) {
        let at = self.open.iter().position(|open| open.call_id == call_id);
        let begun = at.map(|at| self.open.remove(at));
        let acted_on = begun.map_or_else(String::new, |open| open.summary);
        self.tool_line(&acted_on, &ended);
        match ended.mark {
            Mark::Good => {}
            Mark::Failed => {
                let error = ended.error.as_deref().filter(|error| !error.is_empty());
                if let Some(error) = error {
                    self.note("error", error);
                }
            }
            Mark::Denied => self.denied(&ended),
        }
        if ended.tool == "test.run" && !self.tests_run() {
            for event in std::mem::take(&mut self.results) {
                self.show(event, self.last_ms);
            }
        }
    }

    fn tool_line(&mut self, acted_on: &str, ended: &Ended) {
        let look = self.pen.look();
        let text = match (acted_on, ended.summary.as_str()) {
            (text, "") | ("", text) => text.to_owned(),
            (on, came) if on == came || ended.mark == Mark::Denied => on.to_owned(),
            (on, came) => format!("{on} · {came}"),
        };
        let mark = look.mark(ended.mark);
        let mut tool = look.fitted(&ended.tool, look.mark_width() + 3);
        let mut time = match ended.mark {
            Mark::Denied if look.screen.is_none() => String::new(),
            Mark::Denied => "  denied".to_owned(),
            Mark::Good | Mark::Failed => format!("  {}", duration(ended.duration_ms)),
        };
        if look.is_narrow() {
            time.clear();
        } else {
            tool = format!("{:<9} ", cut(&tool, TOOL_SHOWN));
        }
        let taken = look.mark_width() + tool.width() + time.width() + 4;
        let text = look.fitted(&text, taken);
        let time = look.paint(Tone::Quiet, &time);
        self.pen.line(format!("  {mark} {tool} {text}{time}").trim_end());
    }

    /// Which rule, why, and what to do.
    fn denied(&mut self, ended: &Ended) {
        let reason = ended.reason.as_deref().or(ended.error.as_deref()).unwrap_or_default();
        let (why, instead) = match reason.split_once(INSTEAD) {
            Some((why, instead)) => (why, Some(instead)),
            None => (reason, None),
        };
        if !why.is_empty() {
            self.note("why", why);
        }
        if let Some(instead) = instead {
            self.note("instead", instead);
        }
        if let Some(rule) = &ended.rule {
            self.note("rule", rule);
        }
    }

    /// What there is to say below a call. It matters, so it is not cut to the screen: it goes on below.
    fn note(&mut self, name: &str, text: &str) {
        let look = self.pen.look();
        let text = Excerpt::new(text, NOTE_SHOWN).to_string();
        let name = look.paint(Tone::Quiet, &format!("{name:<7}"));
        let Some(width) = look.width() else {
            return self.pen.line(&format!("      {name} {text}"));
        };
        let indent = if look.is_narrow() { 6 } else { 14 };
        let mut lines = folded(&text, width - indent - 1).into_iter();
        let first = if look.is_narrow() { None } else { lines.next() };
        self.pen.line(format!("      {name} {}", first.unwrap_or_default()).trim_end());
        lines.for_each(|line| self.pen.line(&format!("{:indent$}{line}", "")));
    }

    /// How coverage stands; whether it has fallen too far must not be missed.
    fn covered(&mut self, level: &str, text: &str) {
        let look = self.pen.look();
        let (name, tone) = match level {
            "warned" | "locked" => ("warning  ", Tone::Caution),
            _ => ("", Tone::Quiet),
        };
        let text = format!("{name}{}", Excerpt::new(text, NOTE_SHOWN));
        let lines = match look.width() {
            Some(width) => folded(&text, width.saturating_sub(3)),
            None => vec![text],
        };
        let lines: Vec<String> = lines.iter().map(|line| look.paint(tone, line)).collect();
        lines.iter().for_each(|line| self.pen.line(&format!("  {line}")));
    }

    fn tested(&mut self, counts: [usize; 3], failed: &[String], not_run: &[String]) {
        let look = self.pen.look();
        let words = ["passed", "failed", "skipped"];
        let mut told: Vec<String> = counts
            .iter()
            .zip(words)
            .filter(|(count, _)| **count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        if told.is_empty() {
            told.push("no tests ran".to_owned());
        }
        let [_, failures, _] = counts;
        let is_bad = failures > 0 || !not_run.is_empty();
        let mark = if is_bad { Mark::Failed } else { Mark::Good };
        let told = look.fitted(&told.join(", "), look.mark_width() + 5);
        self.pen.line(&format!("    {} {told}", look.mark(mark)));
        for id in failed.iter().take(FAILED_SHOWN) {
            let id = look.paint(Tone::Bad, &look.fitted(id, 8));
            self.pen.line(&format!("        {id}"));
        }
        self.more(failed.len(), FAILED_SHOWN);
        for reason in not_run.iter().take(FAILED_SHOWN) {
            let text = look.fitted(&format!("no result: {reason}"), 8);
            self.pen.line(&format!("        {}", look.paint(Tone::Caution, &text)));
        }
        self.more(not_run.len(), FAILED_SHOWN);
    }

    fn answered(&mut self, approved: bool, by: &str) {
        self.pen.release();
        let look = self.pen.look();
        let (mark, word) =
            if approved { (Mark::Good, "agreed") } else { (Mark::Denied, "refused") };
        // In a log the word says it all.
        let sign = look.screen.map_or_else(String::new, |_| format!("{} ", look.mark(mark)));
        let text = look.fitted(&format!("{word}: {}", by.trim_end_matches(',')), 5);
        self.pen.line(&format!("  {sign}{text}"));
    }

    fn merged(&mut self, files: &[MergedFile], commit: Option<&str>) {
        let look = self.pen.look();
        let count = counted(files.len() as u64, "file");
        let text = look.fitted(&format!("merged {count} into the project"), look.mark_width() + 3);
        self.pen.line(&format!("  {} {text}", look.mark(Mark::Good)));
        for file in files.iter().take(FILES_SHOWN) {
            let (sign, tone) = match file.change.as_str() {
                "added" => ("+", Tone::Good),
                "deleted" => ("-", Tone::Bad),
                _ => ("~", Tone::Caution),
            };
            let path = look.fitted(&file.path, 8);
            self.pen.line(&format!("      {} {path}", look.paint(tone, sign)));
        }
        self.more(files.len(), FILES_SHOWN);
        if let Some(commit) = commit {
            let commit = look.fitted(commit, look.mark_width() + 10);
            self.pen.line(&format!("  {} commit {commit}", look.mark(Mark::Good)));
        }
    }

    /// How much of a list is left out.
    fn more(&mut self, length: usize, shown: usize) {
        if length > shown {
            let text = format!("and {} more", length - shown);
            self.quiet(&format!("    {text}"));
        }
    }

    fn quiet(&mut self, text: &str) {
        let look = self.pen.look();
        let text = look.fitted(text, 4);
        self.pen.line(&format!("    {}", look.paint(Tone::Quiet, &text)));
    }

    fn completed(&mut self, summary: &str, now: u64) {
        self.over(now);
        self.pen.settle();
        let text = format!("{}\n", inert(summary.trim_end()));
        let text = if self.pen.look().screen.is_some() { format!("\n{text}\n") } else { text };
        let written = self.answer.write_all(text.as_bytes()).and_then(|()| self.answer.flush());
        self.failed = written.err();
    }

    fn gave_up(&mut self, what: &str, why: &str, fix: &str, now: u64) {
        self.over(now);
        let look = self.pen.look();
        self.pen.line("");
        for (tone, name, text) in
            [(Tone::Bad, "ERROR", what), (Tone::Strong, "Reason", why), (Tone::Strong, "Fix", fix)]
        {
            // Not cut to the screen: this is what the person needs.
            let text = Excerpt::new(text, 2000).to_string();
            self.pen.line(&format!("{}: {text}", look.paint(tone, name)));
        }
        self.closing(Mark::Failed, "not done", &[], now);
    }

    /// What was held for something that never came.
    fn over(&mut self, now: u64) {
        self.pen.release();
        self.open.clear();
        for event in std::mem::take(&mut self.results) {
            self.show(event, now);
        }
        self.is_over = true;
    }

    fn closing(&mut self, mark: Mark, word: &str, parts: &[String], now: u64) {
        let look = self.pen.look();
        let mut parts = parts.to_vec();
        if self.used.tokens() > 0 {
            parts.extend(self.used.told(self.is_recorded));
        }
        let began = self.began_ms.unwrap_or(now);
        parts.push(duration(now.saturating_sub(began)));
        let parts = look.paint(
            Tone::Quiet,
            &look.fitted(&parts.join(" · "), look.mark_width() + word.len() + 3),
        );
        self.pen.line(&format!("{} {word}  {parts}", look.mark(mark)));
    }

    /// Whether a run of tests has not ended.
    fn tests_run(&self) -> bool {
        self.open.iter().any(|open| open.tool == "test.run")
    }

    fn tick(&mut self, now: u64) {
        if self.is_over || self.began_ms.is_none() {
            return;
        }
        let (since, text) = match self.open.split_first() {
            Some((first, rest)) => {
                let more = match rest.len() {
                    0 => String::new(),
                    n => format!(" and {n} more"),
                };
                (first.since_ms, format!("{} {}{more}", first.tool, first.summary))
            }
            None => (self.last_ms, "waiting for the model".to_owned()),
        };
        if let Some(status) = waited(&self.pen.look(), &text, (since, now)) {
            self.pen.status(&status);
        }
    }
}

impl Look {
    /// How a call ended: a sign on a screen, a word in a log.
    fn mark(&self, mark: Mark) -> String {
        let (sign, word, tone) = match mark {
            Mark::Good => ("✓", "ok    ", Tone::Good),
            Mark::Failed => ("✗", "failed", Tone::Bad),
            Mark::Denied => ("⊘", "denied", Tone::Caution),
        };
        if self.screen.is_some() { self.paint(tone, sign) } else { word.to_owned() }
    }

    fn is_narrow(&self) -> bool {
        self.width().is_some_and(|width| width < NARROW)
    }

    fn mark_width(&self) -> usize {
        if self.screen.is_some() { 1 } else { 6 }
    }
}

/// A text in lines of at most so many columns, broken between words.
fn folded(text: &str, width: usize) -> Vec<String> {
    let mut wrap = Wrap::default();
    let mut out = String::new();
    wrap.push(text, Some(width), &mut out);
    wrap.flush(Some(width), &mut out);
    out.lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
