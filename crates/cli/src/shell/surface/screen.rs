//! Draws: finished rows scroll up as ordinary lines, the live region below them is drawn again where it changed.
//!
//! **Invariant.** Between two drawings the terminal's cursor stands in the live region, in the row that is remembered.
//!
//! **Invariant.** No row reaches the last column, and while rows are drawn the terminal does not wrap: a character that is
//! wider than it should be pushes nothing out of its row.

use std::fmt::Write as _;

use super::style::columns;
use super::table::bare;

const BEGIN: &str = "\x1b[?2026h\x1b[?25l\x1b[?7l";
const END: &str = "\x1b[?7h\x1b[?2026l";
const SHOW_CURSOR: &str = "\x1b[?25h";
const ERASE_LINE: &str = "\x1b[K";
const ERASE_BELOW: &str = "\x1b[J";

/// The live region as it is meant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct View {
    pub(crate) rows: Vec<String>,
    /// The cursor's row.
    pub(crate) row: usize,
    /// What stands before the cursor there, painted: written again to get to its column, so that terminal and program
    /// cannot disagree about widths.
    pub(crate) before: String,
    /// Whether the cursor is to be seen.
    pub(crate) cursor: bool,
}

/// The live region as it is on the screen.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    drawn: View,
    /// Whether it is not known what the rows hold.
    unknown: bool,
}

impl Screen {
    /// What is to be written so that finished rows scroll up and the live region is as it is meant.
    pub(crate) fn draw(&mut self, finished: &[String], view: View) -> String {
        if finished.is_empty() && view == self.drawn && !self.unknown {
            return String::new();
        }
        let mut out = String::with_capacity(256);
        out.push_str(BEGIN);
        self.to_top(&mut out);
        for row in finished {
            out.push_str(row);
            out.push_str(ERASE_LINE);
            out.push_str("\r\n");
        }
        let anew = !finished.is_empty() || self.unknown;
        let erases = anew || self.drawn.rows.len() > view.rows.len();
        for (number, row) in view.rows.iter().enumerate() {
            if number > 0 {
                out.push_str("\r\n");
            }
            let is_last = number + 1 == view.rows.len();
            let stands = !anew && self.drawn.rows.get(number) == Some(row);
            // What is below is erased from the end of the last row.
            if !stands || (is_last && erases) {
                out.push_str(row);
                out.push_str(ERASE_LINE);
            }
        }
        if erases {
            out.push_str(ERASE_BELOW);
        }
        up(view.rows.len().saturating_sub(view.row + 1), &mut out);
        out.push('\r');
        out.push_str(&view.before);
        if view.cursor {
            out.push_str(SHOW_CURSOR);
        }
        out.push_str(END);
        self.drawn = view;
        self.unknown = false;
        out
    }

    /// What is to be written so that the live region is gone, and whatever is written next stands in its place.
    pub(crate) fn leave(&mut self) -> String {
        let mut out = String::new();
        self.to_top(&mut out);
        out.push_str(ERASE_BELOW);
        out.push_str(SHOW_CURSOR);
        self.drawn = View::default();
        out
    }

    /// The terminal has another width: it has broken the rows that do not fit, and the cursor is further down.
    pub(crate) fn resized(&mut self, width: usize) {
        let width = width.max(1);
        let height = |text: &str| columns(&bare(text)).div_ceil(width).max(1);
        let above: usize = self.drawn.rows.iter().take(self.drawn.row).map(|row| height(row)).sum();
        let row = above + columns(&bare(&self.drawn.before)) / width;
        self.drawn = View { row, ..View::default() };
        self.unknown = true;
    }

    /// Nothing is known of the screen any more, but that the cursor stands at the beginning of a line.
    pub(crate) fn forget(&mut self) {
        self.drawn = View::default();
        self.unknown = true;
    }

    fn to_top(&self, out: &mut String) {
        out.push('\r');
        up(self.drawn.row, out);
    }
}

fn up(rows: usize, out: &mut String) {
    if rows > 0 {
        // Writing to a string does not fail.
        let _ok = write!(out, "\x1b[{rows}A");
    }
}
