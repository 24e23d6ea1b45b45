//! How a task looks while it runs: to people at a terminal, in a log, and to programs.
//!
//! **Invariant.** Nothing that a model, a project or a tool wrote reaches a terminal before `inert` or
//! `sanitised` has looked at it.
//!
//! **Invariant.** While a task runs, no line is wider than the screen, so that a status line can be taken
//! away again and nothing scrolls by itself. How it ended is told whole.

mod diff;
mod json;
mod pen;
mod people;
mod progress;
mod used;
mod wrap;

use std::borrow::Cow;
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd;

use fluffy_base::{Excerpt, sanitised};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

pub(crate) use self::diff::{DiffView, tone};
pub(crate) use self::json::{JsonLines, escaped};
pub(crate) use self::pen::Pen;
pub(crate) use self::people::{Parts, People};
pub(crate) use self::progress::{Progress, Status, frame, waited};
pub(crate) use self::used::Used;

use crate::environment::Environment;
use crate::output::{Tone, paint};

/// The narrowest screen that is respected: below it nothing is readable anyway.
const NARROWEST: usize = 20;
/// The screen that is assumed where the terminal does not say.
const USUAL: usize = 80;
/// The longest line in a log, in characters.
const LOG_LINE: usize = 400;

/// What can be shown where the progress of a task goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// Whether colours are wanted.
    pub(crate) colour: bool,
    /// Which screen it is, if there is one.
    pub(crate) screen: Option<Screen>,
}

/// A screen, by what tells its width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Screen {
    /// The terminal behind the standard error.
    Stderr,
    /// The terminal behind the standard output.
    Stdout,
    /// So many columns of one.
    Columns(usize),
}

impl Look {
    /// What the standard error shows.
    pub(crate) fn of_stderr(environment: &Environment) -> Self {
        Self::of(io::stderr().is_terminal(), Screen::Stderr, environment)
    }

    /// What the standard output shows.
    pub(crate) fn of_stdout(environment: &Environment) -> Self {
        Self::of(io::stdout().is_terminal(), Screen::Stdout, environment)
    }

    fn of(is_terminal: bool, screen: Screen, environment: &Environment) -> Self {
        let is_screen = is_terminal && !environment.dumb_terminal;
        let screen = is_screen.then_some(screen);
        Self { colour: is_screen && !environment.no_color, screen }
    }

    /// The screen's width, if there is one.
    pub(crate) fn width(&self) -> Option<usize> {
        self.screen.map(|screen| screen.width().max(NARROWEST))
    }

    /// A text in its tone.
    pub(crate) fn paint(&self, tone: Tone, text: &str) -> String {
        paint(self.colour, tone, text)
    }

    /// A stranger's text on one line that leaves `taken` columns of the screen free.
    pub(crate) fn fitted(&self, text: &str, taken: usize) -> String {
        match self.width() {
            // The last column stays empty: some terminals go on to the next line when it is filled.
            Some(width) => {
                let room = width.saturating_sub(taken + 1);
                cut(&sanitised(head(text, room)), room).into_owned()
            }
            None => Excerpt::new(text, LOG_LINE).to_string(),
        }
    }
}

impl Screen {
    fn width(self) -> usize {
        match self {
            Self::Stderr => width_of(&io::stderr()),
            Self::Stdout => width_of(&io::stdout()),
            Self::Columns(columns) => columns,
        }
    }
}

fn width_of(terminal: &impl AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(terminal).ok();
    size.map(|size| usize::from(size.ws_col)).filter(|width| *width > 0).unwrap_or(USUAL)
}

/// Enough of a text to fill so many columns, and to see that there is more: the rest of a huge one is not
/// looked at. Secrets are found some way beyond the cut.
fn head(text: &str, columns: usize) -> &str {
    let window = columns.saturating_mul(4).saturating_add(256);
    let end = text.char_indices().nth(window).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or(text)
}

/// At most so many columns of a text.
pub(crate) fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if text.width() <= columns {
        return Cow::Borrowed(text);
    }
    let mut room = columns.saturating_sub(1);
    let mut kept = String::new();
    for c in text.chars() {
        let width = c.width().unwrap_or_default();
        if width > room {
            break;
        }
        room -= width;
        kept.push(c);
    }
    kept.push('…');
    Cow::Owned(kept)
}

/// A number of things.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// How long something took, in few words.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..10_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        10_000..60_000 => format!("{} s", ms / 1000),
        _ => format!("{} min {:02} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_fits_whatever_its_characters_are_wide() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
        for columns in 1..20 {
            assert!(cut("日本語 text 🦀🦀🦀 e\u{301}", columns).width() <= columns);
        }
    }

    #[test]
    fn durations_are_told_in_the_unit_that_people_think_in() {
        let told = [0, 999, 1000, 9999, 10_000, 59_999, 60_000, 3_605_000].map(duration);
        let expected =
            ["0 ms", "999 ms", "1.0 s", "9.9 s", "10 s", "59 s", "1 min 00 s", "60 min 05 s"];
        assert_eq!(told, expected);
    }
}
