//! Holds `docs/conformance.md` to its form: one row per requirement and lesson, and every test it names
//! exists.
//!
//! A row is `| number | statement | status | tests |`. What is `done` or `part` names its tests, what is
//! `open` names none. A test for a lesson carries the lesson's number (`lesson_l07_null_frame`).

use std::collections::BTreeMap;

use crate::markdown;
use crate::references;
use crate::repo::{Finding, Repo};

const FILE: &str = "docs/conformance.md";

/// The groups of the requirements, and how many each has: `KER-1` to `KER-12` and so on.
const GROUPS: &[(&str, usize)] = &[
    ("KER", 12),
    ("AUD", 8),
    ("POL", 13),
    ("SBX", 11),
    ("IPC", 3),
    ("BOO", 1),
    ("FLO", 7),
    ("SCH", 5),
    ("TOO", 7),
    ("AI", 6),
    ("PLG", 4),
    ("CLI", 5),
    ("REC", 3),
    ("FOR", 14),
    ("CHA", 6),
];

/// How many lessons there are: `L01` and so on.
const LESSONS: usize = 35;

/// Requirements and lessons that were added later, one by one: their groups are not complete yet.
const ADDED: &[&str] = &["DEP-7", "DEP-8", "FLO-12", "L51"];

/// Looks at the repository's document and at the tests it names.
pub(crate) fn check(repo: &Repo) -> Vec<Finding> {
    match repo.text(FILE) {
        Some(text) => check_text(text, &|reference| references::find(repo, reference)),
        None => vec![Finding::file(FILE, "is missing")],
    }
}

/// Tells what is wrong with the test that a reference names.
type Find<'a> = &'a dyn Fn(&str) -> Result<(), String>;

fn check_text(text: &str, find: Find<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let numbers = numbers();
    for (line, cells) in markdown::rows(text) {
        if is_heading(&cells) {
            continue;
        }
        let mut report = |text: String| findings.push(Finding::line(FILE, line, text));
        match Row::parse(&cells) {
            Ok(row) => {
                if !numbers.iter().any(|number| number == row.number) {
                    report(format!("`{}` is no requirement and no lesson", row.number));
                }
                if let Some(first) = seen.insert(row.number, line) {
                    report(format!("`{}` already has a row, in line {first}", row.number));
                }
                row.problems(find).into_iter().for_each(report);
            }
            Err(problem) => report(problem),
        }
    }
    let missing = numbers.iter().filter(|number| !seen.contains_key(number.as_str()));
    findings
        .extend(missing.map(|number| Finding::file(FILE, format!("has no row for `{number}`"))));
    findings
}

/// Every number that must have a row.
fn numbers() -> Vec<String> {
    let group = |(name, count): &(&str, usize)| {
        let name = (*name).to_owned();
        (1..=*count).map(move |number| format!("{name}-{number}"))
    };
    let lessons = (1..=LESSONS).map(|number| format!("L{number:02}"));
    let added = ADDED.iter().map(|number| (*number).to_owned());
    GROUPS.iter().flat_map(group).chain(lessons).chain(added).collect()
}

/// The two lines above the rows of a table.
fn is_heading(cells: &[&str]) -> bool {
    cells.first() == Some(&"number")
        || cells.iter().all(|cell| !cell.is_empty() && cell.chars().all(|c| matches!(c, '-' | ':')))
}

/// One row of the document.
struct Row<'a> {
    number: &'a str,
    status: Status,
    tests: Vec<&'a str>,
}

/// How far a requirement is met.
#[derive(Debug, PartialEq, Eq)]
enum Status {
    Done,
    Part,
    Open,
}

impl<'a> Row<'a> {
    fn parse(cells: &[&'a str]) -> Result<Self, String> {
        let [number, statement, status, tests] = cells else {
            return Err(format!("a row has 4 cells, this one {}", cells.len()));
        };
        if statement.is_empty() {
            return Err(format!("`{number}` has no statement"));
        }
        let status = match *status {
            "done" => Status::Done,
            "part" => Status::Part,
            "open" => Status::Open,
            other => {
                return Err(format!("status `{other}` is none of `done`, `part`, `open`"));
            }
        };
        Ok(Self { number, status, tests: parse_tests(tests)? })
    }

    fn problems(&self, find: Find<'_>) -> Vec<String> {
        let mut problems = Vec::new();
        match self.status {
            Status::Done | Status::Part if self.tests.is_empty() => {
                problems.push(format!("`{}` names no test that shows it", self.number));
            }
            Status::Open if !self.tests.is_empty() => {
                problems.push(format!("`{}` is open and yet names tests", self.number));
            }
            Status::Done | Status::Part | Status::Open => {}
        }
        if !self.tests.is_empty() && !self.carries_its_number() {
            let name = format!("lesson_{}_…", self.number.to_lowercase());
            problems.push(format!("none of the tests of `{}` is called `{name}`", self.number));
        }
        for test in &self.tests {
            if let Err(problem) = find(test) {
                problems.push(format!("`{test}`: {problem}"));
            }
        }
        problems
    }

    /// Whether a test is named after the lesson; requirements do not ask for that.
    fn carries_its_number(&self) -> bool {
        let name = format!("lesson_{}_", self.number.to_lowercase());
        let named =
            |test: &&str| test.rsplit("::").next().is_some_and(|own| own.starts_with(&name));
        !self.number.starts_with('L') || self.tests.iter().any(named)
    }
}

/// The references in a cell: in backticks, separated by commas.
fn parse_tests(cell: &str) -> Result<Vec<&str>, String> {
    if cell.is_empty() {
        return Ok(Vec::new());
    }
    let bare = |test: &str| format!("test `{test}` does not stand in backticks");
    cell.split(',')
        .map(str::trim)
        .map(|test| {
            let inner = test.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
            inner
                .filter(|inner| !inner.is_empty() && !inner.contains('`'))
                .ok_or_else(|| bare(test))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::lines;

    /// A complete document in which the rows of the given numbers are replaced.
    fn document(replaced: &[(&str, &str)]) -> String {
        let mut text = String::from(
            "# Conformance\n\n| number | statement | status | tests |\n|---|---|---|---|\n",
        );
        for number in numbers() {
            let row = replaced.iter().find(|(replaced, _)| *replaced == number);
            let open = format!("| {number} | holds | open | |\n");
            text.push_str(row.map_or(&open, |(_, row)| row));
        }
        text
    }

    /// Only tests called `known` or after a lesson exist.
    fn check(replaced: &[(&str, &str)]) -> Vec<String> {
        let find = |reference: &str| match reference.rsplit("::").next() {
            Some(name) if name == "known" || name.starts_with("lesson_") => Ok(()),
            _ => Err("is not there".to_owned()),
        };
        let findings = lines(&check_text(&document(replaced), &find));
        findings.iter().map(|line| line.trim_start_matches(FILE).to_owned()).collect()
    }

    #[test]
    fn a_complete_document_passes() {
        assert_eq!(numbers().len(), 105 + LESSONS + ADDED.len());
        let done = ("KER-1", "| KER-1 | holds | done | `a::known`, `a::it::b::known` |\n");
        let part = ("L07", "| L07 | holds | part | `a::known`, `b::lesson_l07_null_frame` |\n");
        assert_eq!(check(&[done, part]), Vec::<String>::new());
    }

    #[test]
    fn a_test_that_does_not_exist_is_refused() {
        let found = check(&[("KER-2", "| KER-2 | holds | done | `a::known`, `a::gone` |\n")]);
        assert_eq!(found, [":6: `a::gone`: is not there"]);
    }

    #[test]
    fn a_duplicated_row_is_refused() {
        let twice = "| KER-1 | holds | open | |\n| KER-1 | holds | open | |\n";
        assert_eq!(check(&[("KER-1", twice)]), [":6: `KER-1` already has a row, in line 5"]);
    }

    #[test]
    fn a_missing_row_is_refused() {
        assert_eq!(
            check(&[("SCH-5", ""), ("L35", "")]),
            [": has no row for `SCH-5`", ": has no row for `L35`"]
        );
    }

    #[test]
    fn an_unknown_number_is_refused() {
        let row = "| KER-1 | holds | open | |\n| KER-13 | holds | open | |\n";
        assert_eq!(check(&[("KER-1", row)]), [":6: `KER-13` is no requirement and no lesson"]);
    }

    #[test]
    fn done_and_part_need_tests_and_open_has_none() {
        let lacking = ":5: `KER-1` names no test that shows it";
        assert_eq!(check(&[("KER-1", "| KER-1 | holds | done | |\n")]), [lacking]);
        assert_eq!(check(&[("KER-1", "| KER-1 | holds | part | |\n")]), [lacking]);
        let open = ("KER-1", "| KER-1 | holds | open | `a::known` |\n");
        assert_eq!(check(&[open]), [":5: `KER-1` is open and yet names tests"]);
    }

    #[test]
    fn a_row_of_another_form_is_refused() {
        let missing = ": has no row for `KER-1`";
        for (row, problem) in [
            ("| KER-1 | holds | open |\n", ":5: a row has 4 cells, this one 3"),
            ("| KER-1 | | open | |\n", ":5: `KER-1` has no statement"),
            ("| KER-1 | a | Done | |\n", ":5: status `Done` is none of `done`, `part`, `open`"),
            (
                "| KER-1 | a | done | a::known |\n",
                ":5: test `a::known` does not stand in backticks",
            ),
        ] {
            assert_eq!(check(&[("KER-1", row)]), [problem, missing]);
        }
    }

    #[test]
    fn a_lesson_is_shown_by_a_test_that_carries_its_number() {
        let found = check(&[("L01", "| L01 | holds | done | `a::known`, `a::lesson_l02_x` |\n")]);
        assert_eq!(found.len(), 1);
        assert!(found[0].ends_with("none of the tests of `L01` is called `lesson_l01_…`"));
    }
}
