//! What is told of the work, as rows; and what the line below the input says.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use fluffy_base::{Clock, Event, Excerpt, Observer as _};
use fluffy_workflow::Mode;

use super::{App, look};
use crate::commands::run::Outcome;
use crate::explain::CliError;
use crate::inert::inert;
use crate::output::Tone;
use crate::render::{Look, Parts, People, Used, duration, frame, tone};
use crate::shell::surface::{Style, bare, columns, cut, painted};
use crate::wire::{Act, Bytes, ChatReply, End, ReplyKind};

/// How much is shown of what something acts on, in characters.
const SHOWN: usize = 200;
/// What a provider is called that plays a recorded model.
const RECORDED: &str = "replay";

/// Turns events into rows.
pub(super) struct Teller {
    people: People,
    rows: Kept,
    look: Look,
    clock: Arc<dyn Clock>,
}

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Teller {
    pub(super) fn new(look: Look, clock: Arc<dyn Clock>) -> Self {
        let rows = Kept::default();
        let people = People::new(Parts {
            progress: Box::new(rows.clone()),
            // What a model answers is shown as what it says.
            answer: Box::new(io::sink()),
            look,
            clock: Arc::clone(&clock),
        });
        Self { people, rows, look, clock }
    }

    /// For another piece of work.
    fn renew(&mut self) {
        *self = Self::new(self.look, Arc::clone(&self.clock));
    }

    pub(super) fn fit(&mut self, look: Look) {
        self.look = look;
        self.people.fit(look);
    }

    fn tell(&self, event: Event) -> Vec<String> {
        self.people.notice(event);
        let bytes =
            std::mem::take(&mut *self.rows.0.lock().unwrap_or_else(PoisonError::into_inner));
        let text = String::from_utf8_lossy(&bytes);
        text.lines().filter(|row| !row.trim().is_empty()).map(str::to_owned).collect()
    }
}

/// Something under way.
pub(super) struct Under {
    since_ms: u64,
    /// What it is, before it tells more.
    what: String,
    act: Option<Act>,
    /// Calls that have not ended: which, what, since when.
    calls: Vec<(String, String, u64)>,
    is_speaking: bool,
    pub(super) is_cancelled: bool,
}

/// What the line below the input says.
pub(super) struct Status {
    mode: String,
    state: String,
    /// Of the session, and of all since the program began.
    used: Used,
    all: Used,
    budget: String,
    is_recorded: bool,
}

impl Status {
    pub(super) fn new(mode: Mode) -> Self {
        Self {
            mode: mode.name().to_owned(),
            state: "idle".to_owned(),
            used: Used::default(),
            all: Used::default(),
            budget: String::new(),
            is_recorded: false,
        }
    }

    pub(super) fn set_mode(&mut self, mode: Mode) {
        mode.name().clone_into(&mut self.mode);
    }

    /// What was used, in words.
    pub(super) fn costs(&self) -> [String; 2] {
        [&self.used, &self.all].map(|used| used.told(self.is_recorded).join(", "))
    }

    pub(super) fn forget(&mut self) {
        self.used = Used::default();
        "idle".clone_into(&mut self.state);
        self.budget.clear();
    }
}

/// How a line of a diff looks.
pub(super) fn diff_style(line: &str) -> Style {
    match tone(line) {
        Some(Tone::Good) => Style::GOOD,
        Some(Tone::Bad) => Style::BAD,
        Some(Tone::Quiet) => Style::QUIET,
        Some(Tone::Strong) => Style::STRONG,
        Some(Tone::Caution) => Style::CAUTION,
        None => Style::PLAIN,
    }
}

impl App {
    /// Something begins.
    pub(super) fn begins(&mut self, what: &str, act: Option<Act>) {
        let (since_ms, what) = (self.now(), what.to_owned());
        let calls = Vec::new();
        self.under =
            Some(Under { since_ms, what, act, calls, is_speaking: false, is_cancelled: false });
        self.teller.fit(look(&self.stage));
        self.teller.renew();
    }

    pub(super) fn told(&mut self, event: Event) {
        let now = self.now();
        let is_speech = matches!(event, Event::TextDelta { .. });
        if let Some(under) = &mut self.under {
            under.is_speaking = is_speech;
            match &event {
                Event::ToolStarted { call_id, tool, summary } => {
                    let text = format!("{tool} {}", Excerpt::new(summary, SHOWN));
                    under.calls.push((call_id.clone(), text, now));
                }
                Event::ToolFinished { call_id, .. } => under.calls.retain(|(id, ..)| id != call_id),
                _ => {}
            }
        }
        match event {
            Event::TextDelta { text } => self.stage.say(&text),
            Event::SessionStarted { ref session_id, ref mode, ref provider, .. } => {
                self.session = Some(session_id.clone());
                self.status.mode.clone_from(mode);
                self.status.is_recorded = provider == RECORDED;
                self.status.used = Used::default();
                self.tell(event);
            }
            Event::StateChanged { ref to, .. } => {
                self.status.state.clone_from(to);
                self.tell(event);
            }
            Event::Usage { input_tokens, output_tokens, cached_tokens, cost_usd } => {
                let cached = cached_tokens.unwrap_or_default();
                let turn = Used::of_turn(input_tokens, output_tokens, cached, cost_usd);
                self.status.used.add(&turn);
                self.status.all.add(&turn);
                if self.verbose {
                    self.tell(event);
                }
            }
            Event::CoverageMeasured { ref text, .. } => {
                self.status.budget = Excerpt::new(text, SHOWN).to_string();
                self.tell(event);
            }
            Event::ToolFinished { ref entry, .. } => {
                let entry = entry.clone().filter(|_| self.verbose);
                self.tell(event);
                if let Some(entry) = entry {
                    let row = format!("    entry {}", Excerpt::new(&entry, SHOWN));
                    self.stage.tell(&painted(Style::QUIET, &row, self.stage.colour()));
                }
            }
            event => self.tell(event),
        }
    }

    /// The work came to its end.
    pub(super) fn ended(&mut self, end: Result<Box<End>, CliError>) {
        let under = self.under.take();
        self.open = None;
        match end.map(|end| *end) {
            Ok(End::Task(outcome)) => self.task_ended(&outcome),
            Ok(End::Done(Bytes(shown))) => {
                self.acted(under.and_then(|under| under.act).as_ref(), &shown);
            }
            Ok(End::Chat(reply)) => self.replied(*reply),
            Ok(End::Skill(_) | End::Plugin(_)) => {
                self.explain(&crate::explain::Explained::confused());
            }
            Ok(End::Error(explained)) => self.explain(&explained),
            Err(error) => self.fail(&error),
        }
        self.stage.settle();
        "idle".clone_into(&mut self.status.state);
        // What was sent before a question came was not said to it.
        if self.open.is_none()
            && let Some(text) = self.waiting.pop_front()
        {
            self.send(text);
        }
    }

    fn task_ended(&mut self, outcome: &Outcome) {
        let mut event = outcome.event();
        if let Event::TaskCompleted { summary, ledger_root, .. } = &mut event {
            self.stage.settle();
            self.stage.say(&std::mem::take(summary));
            self.stage.settle();
            if !self.verbose {
                ledger_root.clear();
            }
        }
        self.tell(event);
    }

    /// What became of a turn of the conversation.
    fn replied(&mut self, reply: ChatReply) {
        if let Some(session) = &reply.session {
            self.session = Some(session.clone());
        }
        if reply.verbose {
            let trace = crate::commands::chat::shown(&reply);
            trace.lines().for_each(|line| self.stage.tell_text(line));
        }
        if let Some(task) = &reply.task {
            return self.task_ended(task);
        }
        if let (ReplyKind::Failed, Some(failure)) = (reply.kind, &reply.failure) {
            return self.explain(failure);
        }
        if !reply.streamed {
            self.stage.settle();
            // Words of ours, with a stranger's words in them: shown as a stranger's.
            self.stage.say(&reply.text);
        }
        self.stage.settle();
        if let Some(pending) = reply.pending {
            self.asked_before(pending.id);
        }
    }

    pub(super) fn acted(&mut self, act: Option<&Act>, shown: &[u8]) {
        let text = String::from_utf8_lossy(shown);
        if let Some(Act::Mode(mode)) = act {
            self.mode_is(*mode);
        }
        match act {
            Some(Act::Diff) if text.trim().is_empty() => self.stage.tell("nothing would change"),
            Some(Act::Diff) if text.lines().count() > self.stage.size().1 / 2 => {
                self.page("diff", text.into_owned())
            }
            Some(Act::Diff) => {
                let (rows, look) = (usize::MAX, look(&self.stage));
                let view = crate::render::DiffView::of(&text, rows, &look);
                view.rows.iter().for_each(|row| self.stage.tell(row));
            }
            _ => text.lines().for_each(|line| self.stage.tell_text(line)),
        }
    }

    pub(super) fn found(&mut self, found: Result<Vec<String>, CliError>) {
        match found {
            Ok(lines) => lines.iter().for_each(|line| self.stage.tell_text(&inert(line))),
            Err(error) => self.fail(&error),
        }
    }

    fn tell(&mut self, event: Event) {
        // What the model has begun to say stands before what came of it.
        self.stage.settle();
        for row in self.teller.tell(event) {
            let plain = bare(&row);
            match columns(&plain) < self.stage.told_width() {
                true => self.stage.tell(&row),
                // What is told whole, however narrow the screen is.
                false => self.stage.tell_text(&plain),
            }
        }
    }

    /// What is under way, and for how long.
    pub(super) fn activity(&self, now: u64) -> String {
        let Some(under) = &self.under else { return String::new() };
        let (what, since) = match under.calls.split_first() {
            _ if under.is_cancelled => ("ending it".to_owned(), under.since_ms),
            _ if self.open.is_some() => ("waits for your answer".to_owned(), under.since_ms),
            Some(((_, what, since), [])) => (what.clone(), *since),
            Some(((_, what, since), more)) => (format!("{what} and {} more", more.len()), *since),
            None if under.is_speaking => ("writing".to_owned(), under.since_ms),
            None => (under.what.clone(), under.since_ms),
        };
        let time = match now.saturating_sub(since) / 1000 {
            0 => String::new(),
            seconds @ 1..60 => format!("  {seconds} s"),
            seconds => format!("  {}", duration(seconds * 1000)),
        };
        let hint = if under.is_cancelled { "" } else { "  Ctrl-C ends it" };
        let colour = self.stage.colour();
        let (width, _) = self.stage.size();
        let room = width.saturating_sub(3 + time.len());
        let what = cut(&what, room);
        let left = room.saturating_sub(columns(&what));
        let hint = if left > hint.len() { hint } else { "" };
        let quiet = painted(Style::QUIET, &format!("{time}{hint}"), colour);
        format!("{} {what}{quiet}", painted(Style::CODE, frame(now), colour))
    }

    pub(super) fn status_line(&self) -> String {
        let Status { mode, state, used, budget, is_recorded, .. } = &self.status;
        let mut parts = vec![format!("{mode} mode"), state.replace('_', " ")];
        if used.tokens() > 0 {
            parts.push(used.brief(*is_recorded));
        }
        if !budget.is_empty() {
            parts.push(budget.clone());
        }
        if !self.pins.is_empty() {
            parts.push(format!("{} pinned", self.pins.len()));
        }
        if self.verbose {
            parts.push("verbose".to_owned());
        }
        parts.join(" · ")
    }
}
