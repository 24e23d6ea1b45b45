//! The parts of Markdown that the checks look at: rows of tables, links and headings.
//!
//! What stands in a fenced block is an example and never counts.

use std::collections::BTreeMap;

/// The rows of all tables: line number and cells, headings included.
pub(crate) fn rows(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    prose(text).filter_map(|(number, line)| {
        let inner = line.trim().strip_prefix('|')?;
        let inner = inner.strip_suffix('|').unwrap_or(inner);
        Some((number, cells(inner)))
    })
}

/// The targets of all links, `[text](target)` and `[name]: target`, with their lines.
pub(crate) fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let line = without_code(line);
        let definition = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        let inline = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let targets = definition.map(|(_, target)| target).into_iter().chain(inline);
        let targets = targets.filter_map(|target| target.split_whitespace().next());
        found.extend(targets.map(|target| (number, target.trim_matches(['<', '>']).to_owned())));
    }
    found
}

/// The names by which a link can point at the headings of a text.
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).filter(|(_, line)| line.starts_with('#'));
    headings
        .map(|(_, line)| {
            let anchor = anchor(line.trim_start_matches('#').trim());
            let earlier = times.entry(anchor.clone()).or_default();
            *earlier += 1;
            if *earlier == 1 { anchor } else { format!("{anchor}-{}", *earlier - 1) }
        })
        .collect()
}

/// Lower case, blanks become hyphens, marks are dropped.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The lines outside fenced blocks, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// Cuts at every `|` that is not escaped.
fn cells(row: &str) -> Vec<&str> {
    let mut cells = Vec::new();
    let mut start = 0;
    let ends = row.match_indices('|').map(|(at, _)| at).chain([row.len()]);
    for end in ends {
        let escaped = row.get(..end).is_some_and(|before| before.ends_with('\\'));
        if end == row.len() || !escaped {
            cells.push(row.get(start..end).unwrap_or_default().trim());
            start = end + 1;
        }
    }
    cells
}

/// A line without what stands in backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_at_bars_that_are_not_escaped() {
        let text = "| a | b |\n```\n| no | row |\n```\n| `x\\|y` | |\n";
        let rows: Vec<_> = rows(text).collect();
        assert_eq!(rows, [(1, vec!["a", "b"]), (5, vec!["`x\\|y`", ""])]);
    }

    #[test]
    fn links_are_found_but_not_in_code() {
        let text = "See [`a`](a.md) and [b](<b.md>), not `[c](c.md)`.\n```\n[d](d.md)\n```\n\
                    [e]: docs/e.md \"title\"\n![f](f.png)\n";
        let found = links(text);
        let found: Vec<_> = found.iter().map(|(line, target)| (*line, target.as_str())).collect();
        assert_eq!(found, [(1, "a.md"), (1, "b.md"), (5, "docs/e.md"), (6, "f.png")]);
    }

    #[test]
    fn anchors_are_those_that_people_link_to() {
        let text = "# The way of a task\n## `base`: words, 1st\n## Twice\n## Twice\n";
        let expected = ["the-way-of-a-task", "base-words-1st", "twice", "twice-1"];
        assert_eq!(anchors(text), expected);
    }
}
