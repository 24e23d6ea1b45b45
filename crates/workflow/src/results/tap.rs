//! Results on standard output: TAP, and the lines of automake's `make check`.
//!
//! TAP is believed if there is exactly one plan and it agrees with the lines; automake's lines are if its own sum does.
//! Both stand where the code under test prints, so a lucky print is a contradiction and not a pass.

use super::{ResultsError, TestResult, failed};

/// One test with its name.
type Line = (String, TestResult);

/// The tests that the output tells of, or none if it is of neither form.
pub(super) fn read(stdout: &[u8]) -> Result<Option<Vec<Line>>, ResultsError> {
    let text = String::from_utf8_lossy(stdout);
    match automake(&text)? {
        Some(lines) => Ok(Some(lines)),
        None => tap(&text),
    }
}

fn tap(text: &str) -> Result<Option<Vec<Line>>, ResultsError> {
    let plans: Vec<usize> = text.lines().filter_map(plan).collect();
    let [plan] = plans.as_slice() else {
        // Several programs that each speak TAP give no whole.
        return Ok(None);
    };
    let mut found: Vec<Line> = Vec::new();
    for line in text.lines() {
        if let Some(why) = line.strip_prefix("Bail out!") {
            return Err(ResultsError::malformed(format!("the tests bailed out:{why}")));
        }
        let Some((number, name, outcome)) = test(line) else { continue };
        let expected = found.len() + 1;
        if number.is_some_and(|number| number != expected) {
            return Err(ResultsError::contradiction("tests of TAP are not numbered in order"));
        }
        let name = if name.is_empty() { format!("#{expected}") } else { name };
        let again = found.iter().filter(|(known, _)| is_numbered(known, &name)).count();
        let name = if again == 0 { name } else { format!("{name} #{}", again + 1) };
        found.push((name, outcome));
    }
    if found.len() != *plan {
        let why = format!("TAP planned {plan} tests and told of {}", found.len());
        return Err(ResultsError::contradiction(why));
    }
    Ok((*plan > 0).then_some(found))
}

/// Whether a name is this one, or this one with a number.
fn is_numbered(known: &str, name: &str) -> bool {
    known.strip_prefix(name).is_some_and(|rest| {
        let number = rest.strip_prefix(" #");
        rest.is_empty() || number.is_some_and(|it| it.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// `1..3`, perhaps with a comment.
fn plan(line: &str) -> Option<usize> {
    let rest = line.strip_prefix("1..")?;
    rest.split_whitespace().next()?.parse().ok()
}

/// `ok 1 - name # SKIP why`. Tests inside others are indented and count with them.
fn test(line: &str) -> Option<(Option<usize>, String, TestResult)> {
    let (is_ok, rest) = match line.strip_prefix("not ok") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("ok")?),
    };
    if !rest.is_empty() && !rest.starts_with(' ') {
        return None;
    }
    let rest = rest.trim();
    let first = rest.split_whitespace().next().unwrap_or_default();
    let number = first.parse().ok();
    let rest = if number.is_some() { rest.get(first.len()..).unwrap_or_default() } else { rest };
    let (name, directive) = rest.split_once(" # ").unwrap_or((rest, ""));
    let name = name.trim().trim_start_matches("- ").trim().to_owned();
    let directive = directive.trim().to_ascii_lowercase();
    let outcome = match (is_ok, directive.starts_with("skip"), directive.starts_with("todo")) {
        (_, true, _) | (_, _, true) => TestResult::Skipped,
        (true, false, false) => TestResult::Passed,
        (false, false, false) => failed("not ok"),
    };
    Some((number, name, outcome))
}

/// `PASS: name` for each test, and `# TOTAL: 3` after them.
fn automake(text: &str) -> Result<Option<Vec<Line>>, ResultsError> {
    let sum = |line: &str| line.strip_prefix("# TOTAL:")?.trim().parse::<usize>().ok();
    let total: usize = text.lines().filter_map(sum).sum();
    if total == 0 {
        return Ok(None);
    }
    let line = |line: &str| {
        let (word, name) = line.split_once(": ")?;
        let outcome = match word {
            "PASS" | "XFAIL" => TestResult::Passed,
            "SKIP" => TestResult::Skipped,
            "FAIL" | "XPASS" | "ERROR" => failed(word),
            _ => return None,
        };
        Some((name.trim().to_owned(), outcome))
    };
    let found: Vec<Line> = text.lines().filter_map(line).collect();
    if found.len() != total {
        let why = format!("automake counted {total} tests and told of {}", found.len());
        return Err(ResultsError::contradiction(why));
    }
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(text: &str) -> String {
        match read(text.as_bytes()) {
            Ok(None) => "-".to_owned(),
            Ok(Some(lines)) => {
                let mark = |outcome: &TestResult| match outcome {
                    TestResult::Passed => '+',
                    TestResult::Skipped => 'o',
                    TestResult::Failed { .. } => '-',
                };
                let lines = lines.iter().map(|(name, it)| format!("{} {name}", mark(it)));
                lines.collect::<Vec<_>>().join(", ")
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn tap_is_read_line_by_line() {
        let text = "TAP version 13\n1..5\nok 1 - adds\n# note\nnot ok 2 - throws\n  ---\n  message: no\n  ...\nok 3 # SKIP later\n    ok 1 - inner\nnot ok 4 - soon # todo\nok 5 - adds\n";
        assert_eq!(outline(text), "+ adds, - throws, o #3, o soon, + adds #2");
        assert_eq!(outline("ok\nok\n1..2\n"), "+ #1, + #2");
    }

    #[test]
    fn tap_that_contradicts_itself_is_refused() {
        assert!(outline("1..2\nok 1\n").contains("planned 2 tests"));
        assert!(outline("1..1\nok 1\nok 2\n").contains("planned 1 tests"));
        assert!(outline("1..2\nok 1\nok 1\n").contains("not numbered in order"));
        assert!(outline("1..2\nok 1\nBail out! no disk\n").contains("no disk"));
    }

    #[test]
    fn other_output_is_no_tap() {
        for text in ["", "ok 1\n", "1..2..3\n", "1..1\nok 1\n1..1\nok 1\n", "1..0\n", "okay\n"] {
            assert_eq!(outline(text), "-", "{text}");
        }
    }

    #[test]
    fn automake_is_read_where_its_sum_agrees() {
        let text = "PASS: a\nFAIL: b.sh\nSKIP: c\n====\n# TOTAL: 3\n# PASS:  1\n";
        assert_eq!(outline(text), "+ a, - b.sh, o c");
        assert!(outline("PASS: a\n# TOTAL: 2\n").contains("counted 2 tests"));
    }
}
