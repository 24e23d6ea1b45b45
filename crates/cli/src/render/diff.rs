//! Text that a person is to judge, such as a unified diff: in colour, within a bound, and never cut inside a
//! line, where the part that matters could be pushed out of sight.

use fluffy_base::sanitised;
use unicode_width::UnicodeWidthChar as _;

use crate::output::Tone;
use crate::render::Look;

/// What indents it.
const INDENT: &str = "    ";
/// What indents the rest of a line that is wider than the screen.
const FURTHER: &str = "      ";
/// How wide a line is where there is no screen.
const PAPER: usize = 200;

/// A text as it is shown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DiffView {
    /// The rows, safe to show.
    pub(crate) rows: Vec<String>,
    /// How many are left out.
    pub(crate) left_out: usize,
}

impl DiffView {
    /// At most so many rows of a diff.
    pub(crate) fn of(diff: &str, most: usize, look: &Look) -> Self {
        let mut view = Self { rows: Vec::new(), left_out: 0 };
        for line in diff.lines() {
            let tone = tone(line);
            for (indent, part) in folded(line, look) {
                if view.rows.len() >= most {
                    view.left_out += 1;
                    continue;
                }
                let part = tone.map_or_else(|| part.clone(), |tone| look.paint(tone, &part));
                view.rows.push(format!("{indent}{part}"));
            }
        }
        view
    }
}

/// What a line of a diff means.
pub(crate) fn tone(line: &str) -> Option<Tone> {
    match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] | [b'd', b'i', b'f', b'f', b' ', ..] => {
            Some(Tone::Strong)
        }
        [b'+', ..] => Some(Tone::Good),
        [b'-', ..] => Some(Tone::Bad),
        [b'@', ..] => Some(Tone::Quiet),
        _ => None,
    }
}

/// A line in rows that fit the screen, each with what indents it.
fn folded(line: &str, look: &Look) -> Vec<(&'static str, String)> {
    // A tab is as wide as it likes to be; written out it cannot push text beyond the edge.
    let line = line.replace('\t', "    ");
    let columns = look.width().unwrap_or(PAPER).saturating_sub(FURTHER.len() + 1).max(1);
    let mut rows = Vec::new();
    let (mut row, mut used) = (String::new(), 0);
    for c in sanitised(&line).chars() {
        let width = c.width().unwrap_or_default();
        if used + width > columns {
            rows.push(std::mem::take(&mut row));
            used = 0;
        }
        row.push(c);
        used += width;
    }
    rows.push(row);
    let indents = std::iter::once(INDENT).chain(std::iter::repeat(FURTHER));
    indents.zip(rows).collect()
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr as _;

    use super::*;
    use crate::render::Screen;

    const DIFF: &str = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-\told\n+new\u{1b}[2J \u{202e}\n";

    #[test]
    fn a_diff_is_shown_in_its_colours_and_obeys_nothing() {
        let look = Look { colour: true, screen: Some(Screen::Columns(40)) };
        let view = DiffView::of(DIFF, 100, &look);
        insta::assert_snapshot!(view.rows.join("\n").replace('\u{1b}', "ESC"), @r"
        ESC[1m--- a/xESC[0m
        ESC[1m+++ b/xESC[0m
        ESC[2m@@ -1,2 +1,2 @@ESC[0m
         same
        ESC[31m-    oldESC[0m
        ESC[32m+new\u{1b}[2J \u{202e}ESC[0m
        ");
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let look = Look { colour: false, screen: None };
        let view = DiffView::of(DIFF, 2, &look);
        assert_eq!((view.rows.len(), view.left_out), (2, 4));
        assert_eq!(DiffView::of("", 2, &look).rows.len(), 0);
    }

    #[test]
    fn the_end_of_a_long_line_is_not_pushed_out_of_sight() {
        let line = format!("+harmless(){}evil()", " ".repeat(5000));
        for screen in [None, Some(Screen::Columns(40))] {
            let view = DiffView::of(&line, usize::MAX, &Look { colour: false, screen });
            let read: String = view.rows.iter().map(|row| row.trim()).collect();
            assert_eq!(read, "+harmless()evil()");
            assert!(view.rows.iter().all(|row| row.width() < 200));
        }
        let view =
            DiffView::of(&line, 10, &Look { colour: false, screen: Some(Screen::Columns(40)) });
        assert!(view.left_out > 100, "or it is said that there is more");
    }
}
