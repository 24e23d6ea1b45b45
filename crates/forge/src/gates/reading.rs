//! Reads what ruff and mypy print. Pure.

use fluffy_base::{Excerpt, ProjectPath};
use serde::Deserialize;

use super::bench::AT;
use crate::{Finding, SourceFile};

/// The most findings that are kept of one gate.
pub(super) const MAX_FINDINGS: usize = 100;

/// The longest message and the longest rule that are kept.
const MAX_MESSAGE: usize = 500;
const MAX_RULE: usize = 60;

/// What a tool printed that is no report.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoReport;

#[derive(Deserialize)]
struct Ruff {
    filename: String,
    code: Option<String>,
    location: Option<Location>,
    message: String,
}

#[derive(Deserialize)]
struct Location {
    row: u32,
}

#[derive(Deserialize)]
struct Mypy {
    file: String,
    line: i64,
    message: String,
    code: Option<String>,
    severity: String,
}

/// Findings of `ruff check --output-format=json`.
pub(super) fn ruff(printed: &[u8], files: &[SourceFile]) -> Result<Vec<Finding>, NoReport> {
    let found: Vec<Ruff> = serde_json::from_slice(printed).map_err(|_| NoReport)?;
    let finding = |it: Ruff| {
        let rule = it.code.as_deref().unwrap_or("syntax");
        finding(files, &it.filename, it.location.map(|at| at.row), rule, &it.message)
    };
    Ok(found.into_iter().filter_map(finding).collect())
}

/// Findings of `mypy --output=json`: an object a line. Its notes belong to the error before them.
pub(super) fn mypy(printed: &[u8], files: &[SourceFile]) -> Result<Vec<Finding>, NoReport> {
    let mut findings = Vec::new();
    let lines = printed.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    for line in lines {
        let it: Mypy = serde_json::from_slice(line).map_err(|_| NoReport)?;
        if it.severity == "error" {
            let (line, rule) = (u32::try_from(it.line).ok(), it.code.as_deref());
            let rule = rule.unwrap_or("error");
            findings.extend(finding(files, &it.file, line, rule, &it.message));
        }
    }
    Ok(findings)
}

/// A finding about one of the files; about another file it is told of the first, so that it is not lost.
pub(super) fn finding(
    files: &[SourceFile],
    name: &str,
    line: Option<u32>,
    rule: &str,
    message: &str,
) -> Option<Finding> {
    let rule = Excerpt::new(rule, MAX_RULE).to_string();
    let inside = name.strip_prefix(AT).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name);
    if let Some(file) = files.iter().find(|file| file.path.as_str() == inside) {
        let message = Excerpt::new(message, MAX_MESSAGE).to_string();
        let line = line.filter(|line| *line > 0);
        return Some(Finding { file: file.path.clone(), line, rule, message });
    }
    let message = Excerpt::new(&format!("in `{name}`: {message}"), MAX_MESSAGE).to_string();
    files.first().map(|file| Finding { file: file.path.clone(), line: None, rule, message })
}

/// A finding about a whole file.
pub(super) fn about(file: &ProjectPath, rule: &str, message: &str) -> Finding {
    let message = Excerpt::new(message, MAX_MESSAGE).to_string();
    Finding { file: file.clone(), line: None, rule: rule.to_owned(), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> [SourceFile; 1] {
        let path = ProjectPath::parse(".fluffy/skills/x.py").unwrap();
        [SourceFile { path, bytes: Vec::new() }]
    }

    #[test]
    fn findings_have_file_line_and_rule() {
        let printed = br#"[{"filename":"/fluffy-gate/.fluffy/skills/x.py","code":"F401","location":{"row":3,"column":1},"message":"`os` imported but unused","fix":null}]"#;
        let found = ruff(printed, &files()).unwrap();
        assert_eq!((found[0].line, found[0].rule.as_str()), (Some(3), "F401"));
        let printed = br#"{"file":".fluffy/skills/x.py","line":-1,"column":0,"message":"m","hint":null,"code":"name-defined","severity":"error"}
{"file":".fluffy/skills/x.py","line":2,"column":0,"message":"n","hint":null,"code":null,"severity":"note"}
"#;
        let found = mypy(printed, &files()).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].line, found[0].rule.as_str()), (None, "name-defined"));
        assert_eq!(ruff(b"[]", &files()), Ok(vec![]));
        assert_eq!(mypy(b"", &files()), Ok(vec![]));
    }

    #[test]
    fn what_is_no_report_is_an_error_and_other_files_are_not_lost() {
        assert_eq!(ruff(b"", &files()), Err(NoReport));
        assert_eq!(ruff(b"All checks passed!", &files()), Err(NoReport));
        assert_eq!(mypy(b"Success: no issues found", &files()), Err(NoReport));
        let other =
            finding(&files(), "/fluffy-gate/base/fluffy_skill.py", Some(1), "x", "m").unwrap();
        assert_eq!(other.message, "in `/fluffy-gate/base/fluffy_skill.py`: m");
    }
}
