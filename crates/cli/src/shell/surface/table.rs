//! Tables of Markdown, made to fit: columns shrink, and where nothing fits beside each other, every row is a list.

use super::inline::inline;
use super::style::{Break, Frame, Span, Style, columns, wrapped};

/// The narrowest column that can be read.
const NARROWEST: usize = 6;
/// What stands between columns.
const GAP: usize = 2;
/// More columns than this are not shown beside each other.
const MOST: usize = 64;

/// The rows of a table, if the lines are one.
pub(crate) fn table(
    lines: &[String],
    indent: &str,
    room: usize,
    colour: bool,
) -> Option<Vec<String>> {
    let (head, rest) = lines.split_first()?;
    let (rule, body) = rest.split_first()?;
    let is_rule = |cell: &String| {
        let dashes = cell.trim_matches(':');
        !dashes.is_empty() && dashes.bytes().all(|byte| byte == b'-')
    };
    if !cells(rule).iter().all(is_rule) {
        return None;
    }
    let head = cells(head);
    let body: Vec<Vec<String>> = body.iter().map(|line| cells(line)).collect();
    let shape = Shape { indent, room, colour };
    match shape.widths(&head, &body) {
        Some(widths) => Some(shape.beside(&head, &body, &widths)),
        None => Some(shape.below(&head, &body)),
    }
}

/// Whether a line may belong to a table.
pub(crate) fn is_row(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with('|') && line.trim_end().len() > 1
}

fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let line = line.strip_suffix('|').filter(|it| !it.ends_with('\\')).unwrap_or(line);
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for c in line.chars() {
        match c {
            '|' if !escaped => cells.push(String::new()),
            _ => {
                if escaped && c != '|' {
                    cells.iter_mut().last().into_iter().for_each(|cell| cell.push('\\'));
                }
                if c != '\\' {
                    cells.iter_mut().last().into_iter().for_each(|cell| cell.push(c));
                }
            }
        }
        escaped = c == '\\' && !escaped;
    }
    cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

struct Shape<'a> {
    indent: &'a str,
    room: usize,
    colour: bool,
}

impl Shape<'_> {
    /// How wide each column is; nothing where they do not fit beside each other.
    fn widths(&self, head: &[String], body: &[Vec<String>]) -> Option<Vec<usize>> {
        if head.len() > MOST {
            return None;
        }
        let mut widths: Vec<usize> = head.iter().map(|cell| width(cell).max(1)).collect();
        for row in body {
            for (wide, cell) in widths.iter_mut().zip(row) {
                *wide = (*wide).max(width(cell));
            }
        }
        let gaps = GAP * widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > self.room {
            let widest = widths.iter_mut().max()?;
            if *widest <= NARROWEST {
                return None;
            }
            *widest -= 1;
        }
        Some(widths)
    }

    fn beside(&self, head: &[String], body: &[Vec<String>], widths: &[usize]) -> Vec<String> {
        let mut rows = self.row(head, widths, Style::STRONG);
        let rule: Vec<String> = widths.iter().map(|wide| "─".repeat(*wide)).collect();
        let mut line = self.indent.to_owned();
        Style::QUIET.write(&rule.join("  "), self.colour, &mut line);
        rows.push(line);
        for cells in body {
            rows.extend(self.row(cells, widths, Style::PLAIN));
        }
        rows
    }

    /// One row of the table in as many rows of the screen as its longest cell needs.
    fn row(&self, cells: &[String], widths: &[usize], style: Style) -> Vec<String> {
        let none = String::new();
        let columns_of: Vec<Vec<String>> = widths
            .iter()
            .enumerate()
            .map(|(at, wide)| self.cell(cells.get(at).unwrap_or(&none), *wide, style))
            .collect();
        let height = columns_of.iter().map(Vec::len).max().unwrap_or(1);
        let mut rows = Vec::with_capacity(height);
        for line in 0..height {
            let mut text = self.indent.to_owned();
            let mut gap = 0;
            for (column, wide) in columns_of.iter().zip(widths) {
                let part = column.get(line).map_or("", String::as_str);
                if !part.is_empty() {
                    text.extend(std::iter::repeat_n(' ', gap));
                    gap = 0;
                }
                text.push_str(part);
                gap += wide.saturating_sub(columns(&bare(part))) + GAP;
            }
            rows.push(text);
        }
        rows
    }

    fn cell(&self, text: &str, room: usize, style: Style) -> Vec<String> {
        let spans = inline(text, style).spans;
        let frame = Frame { first: "", others: "", room, colour: self.colour, at: Break::Words };
        wrapped(&spans, frame).into_iter().map(|row| row.text).collect()
    }

    /// Every row as a list of its cells.
    fn below(&self, head: &[String], body: &[Vec<String>]) -> Vec<String> {
        let mut rows = Vec::new();
        for (number, cells) in body.iter().enumerate() {
            if number > 0 {
                rows.push(String::new());
            }
            for (name, cell) in head.iter().zip(cells) {
                let mut spans = inline(&format!("{name}: "), Style::STRONG).spans;
                spans.extend(inline(cell, Style::PLAIN).spans);
                let others = format!("{}  ", self.indent);
                let frame = Frame {
                    first: self.indent,
                    others: &others,
                    room: self.room.saturating_sub(2).max(1),
                    colour: self.colour,
                    at: Break::Words,
                };
                rows.extend(wrapped(&spans, frame).into_iter().map(|row| row.text));
            }
        }
        rows
    }
}

/// How wide a cell is once its marks are gone.
fn width(cell: &str) -> usize {
    inline(cell, Style::PLAIN).spans.iter().map(|Span { text, .. }| columns(text)).sum()
}

/// A painted text without its colours.
pub(crate) fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\x1b') {
        out.push_str(before);
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, room: usize) -> String {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        table(&lines, "", room, false).map_or_else(|| "no table".to_owned(), |it| it.join("\n"))
    }

    const TABLE: &str = "| name | what it does | n |\n|---|:--|--:|\n| `a` | the first **thing** | 1 |\n| 日本 | a \\| b | 22 |";

    #[test]
    fn columns_stand_below_each_other() {
        insta::assert_snapshot!(shown(TABLE, 60), @"
        name  what it does     n
        ────  ───────────────  ──
        a     the first thing  1
        日本  a | b            22
        ");
    }

    #[test]
    fn a_table_that_is_too_wide_breaks_its_cells() {
        insta::assert_snapshot!(shown(TABLE, 20), @"
        name  what it     n
              does
        ────  ──────────  ──
        a     the first   1
              thing
        日本  a | b       22
        ");
    }

    #[test]
    fn where_nothing_fits_every_row_is_a_list() {
        insta::assert_snapshot!(shown(TABLE, 10), @"
        name: a
        what it
          does:
          the
          first
          thing
        n: 1

        name:
          日本
        what it
          does: a
          | b
        n: 22
        ");
    }

    #[test]
    fn what_is_no_table_is_said_to_be_none() {
        assert_eq!(shown("| grep x\n| sort", 40), "no table");
        assert_eq!(shown("| a |", 40), "no table");
    }
}
