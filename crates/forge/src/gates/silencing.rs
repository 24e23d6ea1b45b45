//! Texts that would have a tool look away. Pure.
//!
//! **Invariant.** A line is compared without its white space and in lower case, whatever it is part of: a tool that
//! takes lines apart in another way than we do still finds nothing to obey.

use crate::{Finding, Forbidden, SourceFile};

/// What of a skill would silence a tool.
pub(super) fn silencing(files: &[SourceFile], forbidden: &[Forbidden]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        let text = String::from_utf8_lossy(&file.bytes);
        for (number, line) in lines(&text).enumerate() {
            let plain: String = line.chars().filter(|c| !c.is_whitespace()).collect();
            let plain = plain.to_lowercase();
            for forbidden in forbidden.iter().filter(|it| plain.contains(&it.text)) {
                findings.push(Finding {
                    file: file.path.clone(),
                    line: u32::try_from(number + 1).ok(),
                    rule: forbidden.rule.clone(),
                    message: forbidden.why.clone(),
                });
            }
        }
    }
    findings
}

/// Lines as Python counts them: `\n`, `\r\n` and `\r` end one.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;
    use fluffy_base::ProjectPath;

    #[track_caller]
    fn check(text: &str, expected: &[(u32, &str)]) {
        let profile = Profile::python().unwrap();
        let forbidden = [profile.lint.forbids, profile.types.forbids].concat();
        let path = ProjectPath::parse(".fluffy/skills/x.py").unwrap();
        let files = [SourceFile { path, bytes: text.as_bytes().to_vec() }];
        let found = silencing(&files, &forbidden);
        let found: Vec<_> = found.iter().map(|it| (it.line.unwrap(), it.rule.as_str())).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn what_would_silence_a_tool_is_found_however_it_is_spelt() {
        check("import os  # noqa\n", &[(1, "noqa")]);
        check("x = 1\nimport os  #NoQA:F401", &[(2, "noqa")]);
        check("# ruff: noqa\r\n\r\n# flake8 : noqa", &[(1, "noqa"), (3, "noqa")]);
        check("#\truff:disable[F401]", &[(1, "noqa")]);
        check("x = 1  # type: ignore[x]", &[(1, "type-comment")]);
        check("x = 1\r# why # type :\u{a0}ignore", &[(2, "type-comment")]);
        check("# mypy: ignore-errors", &[(1, "mypy-comment")]);
        check("from typing import no_type_check", &[(1, "no-type-check")]);
        check("s = '''\n# type: ignore\n'''", &[(2, "type-comment")]);
        check("# a noqa, a type: of note\nx: int = 1  # the mypy way", &[]);
    }
}
