//! Writes progress: text as it streams, lines of ours, and a status line that goes away again.
//!
//! **Invariant.** While a person is being asked nothing is written: it waits, within a bound.

use std::io::Write;

use crate::inert::inert;
use crate::render::wrap::Wrap;
use crate::render::{Look, cut};

/// How much waits for a person's answer before it is written regardless.
const MAX_HELD: usize = 1 << 20;

/// What was written last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Text,
    Line,
}

/// Where progress goes.
pub(crate) struct Pen {
    out: Box<dyn Write + Send>,
    look: Look,
    wrap: Wrap,
    last: Last,
    /// Whether a status line is on the screen.
    drawn: bool,
    /// What waits, while a person is asked.
    held: Option<String>,
}

impl Pen {
    /// A pen that writes there.
    pub(crate) fn new(out: Box<dyn Write + Send>, look: Look) -> Self {
        let wrap = Wrap::default();
        Self { out, look, wrap, last: Last::Nothing, drawn: false, held: None }
    }

    /// What can be shown.
    pub(crate) fn look(&self) -> Look {
        self.look
    }

    /// Something else can be shown from now on.
    pub(crate) fn fit(&mut self, look: Look) {
        self.look = look;
    }

    /// A stranger's text, as it comes.
    pub(crate) fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.erase();
        let mut out = String::new();
        if self.last == Last::Line {
            out.push('\n');
        }
        self.last = Last::Text;
        let width = self.look.width().map(|width| width - 1);
        self.wrap.push(&inert(text), width, &mut out);
        self.write(&out);
    }

    /// A line of ours, made safe and cut to the screen by whoever made it.
    pub(crate) fn line(&mut self, line: &str) {
        self.settle();
        self.last = Last::Line;
        self.write(&format!("{line}\n"));
    }

    /// Ends a line that text stands on.
    pub(crate) fn settle(&mut self) {
        self.erase();
        let mut out = String::new();
        self.wrap.flush(self.look.width().map(|width| width - 1), &mut out);
        if self.wrap.column() > 0 {
            out.push('\n');
        }
        self.wrap.reset();
        self.write(&out);
    }

    /// Shows a status, in place of the one that is there; only on a screen, and not while somebody is asked.
    pub(crate) fn status(&mut self, status: &str) {
        let Some(width) = self.look.width() else { return };
        if self.held.is_some() {
            return;
        }
        let status = cut(status, width - 1);
        if !self.drawn {
            let mut word = String::new();
            self.wrap.flush(Some(width - 1), &mut word);
            self.put(&word);
        }
        let begin = if self.drawn { "\r" } else { self.below() };
        let text = format!("{begin}\x1b[K{status}");
        self.drawn = true;
        self.put(&text);
    }

    /// Takes the status away.
    pub(crate) fn erase(&mut self) {
        if !self.drawn {
            return;
        }
        self.drawn = false;
        let back = match self.wrap.column() {
            0 => "\r\x1b[K".to_owned(),
            column => format!("\r\x1b[K\x1b[A\x1b[{}G", column + 1),
        };
        self.put(&back);
    }

    /// Writes nothing until [`Pen::release`].
    pub(crate) fn hold(&mut self) {
        self.settle();
        self.held.get_or_insert_default();
    }

    /// Writes what waited.
    pub(crate) fn release(&mut self) {
        if let Some(held) = self.held.take() {
            self.write(&held);
        }
    }

    /// To the line below one that text stands on.
    fn below(&self) -> &'static str {
        if self.wrap.column() > 0 { "\n" } else { "\r" }
    }

    fn write(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if let Some(held) = &mut self.held {
            held.push_str(text);
            if held.len() <= MAX_HELD {
                return;
            }
            let text = std::mem::take(held);
            return self.put(&text);
        }
        self.put(text);
    }

    /// Progress is not worth failing for if nobody can see it.
    fn put(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let _gone = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }
}
