//! The dialect of patterns, held to `docs/policy-globs.md` line by line.

use fluffy_base::ProjectPath;
use fluffy_policy::{Glob, GlobIndex};

const DOCUMENT: &str = include_str!("../../../../docs/policy-globs.md");

/// The rows of the table under a heading, each with its number of line and its cells.
fn table(heading: &str) -> Vec<(usize, Vec<&'static str>)> {
    let lines = DOCUMENT.lines().enumerate().map(|(at, line)| (at + 1, line));
    lines
        .skip_while(|(_, line)| *line != heading)
        .skip(1)
        .take_while(|(_, line)| !line.starts_with("## "))
        .filter(|(_, line)| line.starts_with('|'))
        .skip(2)
        .map(|(at, line)| (at, line.trim_matches('|').split('|').map(str::trim).collect()))
        .collect()
}

/// What a cell in backticks says, `\u{…}` turned into the character.
fn code(cell: &str) -> String {
    let mut rest = cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`')).unwrap();
    let mut text = String::new();
    while let Some((before, after)) = rest.split_once(r"\u{") {
        let (number, after) = after.split_once('}').unwrap();
        text.push_str(before);
        text.push(char::from_u32(u32::from_str_radix(number, 16).unwrap()).unwrap());
        rest = after;
    }
    text + rest
}

#[test]
fn every_line_of_the_documented_table_is_true() {
    let rows = table("## What matches");
    assert!(rows.len() >= 60, "only {} lines were found", rows.len());
    for (line, cells) in rows {
        let [pattern, path, matches, why] = cells.as_slice() else {
            panic!("line {line}: {cells:?}")
        };
        let glob =
            Glob::parse(&code(pattern)).unwrap_or_else(|error| panic!("line {line}: {error}"));
        let path = ProjectPath::parse(&code(path)).unwrap();
        let expected = match *matches {
            "yes" => true,
            "no" => false,
            other => panic!("line {line}: `{other}` is neither yes nor no"),
        };
        assert_eq!(glob.matches(&path), expected, "line {line}: {pattern} {path} {why}");
        let mut ids = Vec::new();
        GlobIndex::new([(7, glob)]).matching(&path, &mut ids);
        assert_eq!(ids == [7], expected, "line {line}, by the index: {pattern} {path} {why}");
    }
}

#[test]
fn every_error_is_as_documented_and_points_into_the_text() {
    let rows = table("## What is an error");
    assert!(rows.len() >= 40, "only {} lines were found", rows.len());
    for (line, cells) in rows {
        let [pattern, message, at] = cells.as_slice() else { panic!("line {line}: {cells:?}") };
        let text = code(pattern);
        let error = Glob::parse(&text).expect_err(pattern);
        assert_eq!(error.to_string(), *message, "line {line}: {pattern}");
        assert_eq!(error.at.to_string(), *at, "line {line}: {pattern}");
        assert!(text.is_char_boundary(error.at), "line {line}: {pattern}");
    }
}
