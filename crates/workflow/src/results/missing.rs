//! Recognises in a runner's words that a tool or a package is not installed.
//!
//! A test file that imports code which is still to be written cannot be loaded, and that is red. A package that is
//! not installed looks nearly the same and says nothing about the task. So the file with the failing import is held
//! responsible, and nobody where the import names a package of somebody else's.
//!
//! **Invariant.** What is recognised here only takes evidence away: a hostile test that prints such words makes its
//! own run worth less.

use std::sync::LazyLock;

use fluffy_base::{Excerpt, ProjectPath};
use regex::Regex;

use super::Places;
use crate::paths::{Conventions, PathKind};

/// How much of a name or a line is repeated.
const SHOWN: usize = 120;

/// Exit codes of shells and of `env`: found and not executable, not found.
const SHELL_CODES: [i32; 2] = [126, 127];

/// What printed lines look like where a program was not there to be started.
const TOOL_LINES: &[&str] = &[
    r"^(?:\S*sh|env|\S+\.sh): .*(?:not found|No such file or directory|Permission denied)$",
    r"^.*: command not found$",
    r"^make(?:\[\d+\])?: \*\*\* .*Error 12[67]\b.*$",
    r"^make(?:\[\d+\])?: [^*].*: (?:No such file or directory|Permission denied)$",
    r"^make(?:\[\d+\])?: \*\*\* No rule to make target .*$",
    r"^\S*python[\d.]*: No module named .*$",
    r"^npm (?:error|ERR!) (?:code ENOENT|Missing script|could not determine executable|canceled).*$",
    r"^error: rustup could not choose a version of cargo.*$",
    r"^.*Could not find (?:a package configuration file|CMAKE_[A-Z_]+ using).*$",
    r"^.*(?:Could not find .* in (?:any of the sources|locally installed gems)|Bundler::GemNotFound).*$",
    r"^bundler: (?:command not found|failed to load command): .*$",
    r"^.*The CMAKE_\w+_COMPILER.*$",
    r"^.*(?:Could not resolve dependencies|in offline mode|for offline mode|project\.assets\.json' not found).*$",
];

static TOOL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!("(?m){}", TOOL_LINES.join("|"))).ok());

/// Libraries of tests for the Java platform: a project that has none of them does not write them itself.
static TEST_LIBRARIES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let names = "org\\.junit|org\\.testng|org\\.mockito|org\\.assertj|org\\.hamcrest|spock\\.lang|io\\.mockk";
    Regex::new(&format!(r"package (?<name>(?:{names})[\w.]*) does not exist")).ok()
});

/// The import that failed: what it names, and the file that it stands in where the runner says so.
static IMPORTS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let patterns = [
        // Node with `require`, and jest.
        r#"Cannot find module '(?<name>[^'\n]+)'(?: from '(?<from>[^'\n]+)')?(?:\s+Require stack:\s+-? ?(?<by>[^\n]+))?"#,
        // Node with `import`, and vitest.
        r#"Cannot find (?:package|module) '(?<name>[^'\n]+)' imported from '?(?<from>[^'\n]+)"#,
        r#"Failed to resolve import "(?<name>[^"\n]+)" from "(?<from>[^"\n]+)""#,
        r"Failed to load url (?<name>\S+) \(resolved id: [^)\n]*\)(?: in (?<from>[^\n]+?))?\. Does the file exist",
        r"ModuleNotFoundError: No module named '(?<name>[^'\n]+)'",
    ];
    // The more exact form comes first where both match.
    [1, 0, 2, 3, 4].iter().filter_map(|at| Regex::new(patterns.get(*at)?).ok()).collect()
});

/// A frame of Python at the level of a module, as pytest and Python itself write it.
static FRAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?m)^(?:(?P<short>[^\s:]+\.py):\d+: in <module>|\s*File "(?P<long>[^"\n]+)", line \d+, in <module>)"#).ok()
});

/// Whether a command that failed did so because a program was missing; then the line that says so.
pub(super) fn missing_tool(exit: i32, output: &str) -> Option<String> {
    let line = TOOL.as_ref().and_then(|lines| lines.find(output));
    let line = line.map(|found| Excerpt::new(found.as_str().trim(), SHOWN).to_string());
    line.or_else(|| SHELL_CODES.contains(&exit).then(|| format!("it ended with code {exit}")))
}

/// The package of somebody else's that a failing import names.
pub fn missing_package(text: &str) -> Option<String> {
    if let Some(found) = TEST_LIBRARIES.as_ref().and_then(|library| library.captures(text)) {
        return found.name("name").map(|name| Excerpt::new(name.as_str(), SHOWN).to_string());
    }
    let found = IMPORTS.iter().find_map(|form| form.captures(text))?;
    let name = found.name("name")?.as_str();
    let is_python = found.get(0).is_some_and(|all| all.as_str().starts_with("ModuleNotFound"));
    let is_package = if is_python { !name.is_empty() } else { is_npm_package(name) };
    is_package.then(|| Excerpt::new(name, SHOWN).to_string())
}

/// The file that is the cause of a failed import, if it is one of the project's. `loaded` is the file that the runner
/// could not load.
pub(super) fn cause_of_import(
    message: &str,
    loaded: Option<ProjectPath>,
    places: &Places<'_>,
) -> Option<ProjectPath> {
    if TEST_LIBRARIES.as_ref().is_some_and(|library| library.is_match(message)) {
        return None;
    }
    let Some(found) = IMPORTS.iter().find_map(|form| form.captures(message)) else {
        return loaded;
    };
    let name = found.name("name").map_or("", |name| name.as_str());
    let is_python = found.get(0).is_some_and(|all| all.as_str().starts_with("ModuleNotFound"));
    if !is_python && is_npm_package(name) {
        return None;
    }
    let importer = if is_python {
        last_module_frame(message)
    } else {
        ["from", "by"].iter().find_map(|group| found.name(group)).map(|it| it.as_str().trim())
    };
    let Some(importer) = importer else { return loaded };
    let importer = places.file(importer)?;
    // What tests share is a part of them.
    match Conventions::default().kind(&importer) {
        PathKind::Test => loaded,
        PathKind::Installed => None,
        PathKind::Source | PathKind::Other | PathKind::Lookalike => Some(importer),
    }
}

/// Whether a linker or a compiler for C is what is missing, or a library of the system.
pub(super) fn is_missing_linker(message: &str) -> bool {
    let lacks = |text: &str| message.contains(text);
    message.starts_with("linker `") && lacks("not found")
        || message.starts_with("linking with") && lacks("cannot find -l")
        || message.starts_with("error: linker `") && lacks("not found")
}

/// `lodash`, `@scope/name`, and not `./slug`, `src/slug`, `@/slug` or `node:test`.
fn is_npm_package(name: &str) -> bool {
    let plain = |part: &str| {
        let mut chars = part.chars();
        chars.next().is_some_and(|first| first.is_ascii_alphanumeric())
            && chars.all(|char| char.is_ascii_alphanumeric() || "-_.".contains(char))
    };
    match name.strip_prefix('@').and_then(|rest| rest.split_once('/')) {
        Some((scope, name)) => plain(scope) && plain(name),
        None => plain(name),
    }
}

fn last_module_frame(text: &str) -> Option<&str> {
    let frames = FRAME.as_ref()?.captures_iter(text);
    let found = frames.last()?;
    found.name("short").or_else(|| found.name("long")).map(|file| file.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(message: &str, expected: Option<&str>) {
        let places = Places { root: "/tmp/project", suite: None };
        let path = |text: &str| ProjectPath::parse(text).unwrap();
        let cause = cause_of_import(message, Some(path("tests/test_new.py")), &places);
        assert_eq!(cause, expected.map(path), "{message}");
    }

    #[test]
    fn own_module_of_the_test_is_the_tests_fault() {
        check("assertion failed", Some("tests/test_new.py"));
        check(
            "tests/test_new.py:1: in <module>\n    import slug\nE   ModuleNotFoundError: No module named 'slug'",
            Some("tests/test_new.py"),
        );
        check(
            "Error: Cannot find module './slug'\nRequire stack:\n- /tmp/project/slug.test.js",
            Some("tests/test_new.py"),
        );
        check("Cannot find module './slug' from 'slug.test.js'", Some("tests/test_new.py"));
        check(
            "Cannot find module '/tmp/project/slug.js' imported from /tmp/project/a.test.js",
            Some("tests/test_new.py"),
        );
        check(
            "Failed to resolve import \"./slug\" from \"slug.test.js\". Does the file exist?",
            Some("tests/test_new.py"),
        );
        check("Cannot find module '@/slug' from 'slug.test.js'", Some("tests/test_new.py"));
        check("Cannot find module 'src/slug' from 'slug.test.js'", Some("tests/test_new.py"));
    }

    #[test]
    fn import_of_code_that_was_there_is_the_codes_fault() {
        check(
            "tests/test_new.py:1: in <module>\n    import app\napp.py:3: in <module>\n    import flask\nE   ModuleNotFoundError: No module named 'flask'",
            Some("app.py"),
        );
        check(
            "/usr/lib/python3/dist-packages/x.py:3: in <module>\n    import y\nE   ModuleNotFoundError: No module named 'y'",
            None,
        );
        check(
            "Error: Cannot find module '../gone'\nRequire stack:\n- /tmp/project/app.js\n- /tmp/project/a.test.js",
            Some("app.js"),
        );
    }

    #[test]
    fn package_that_is_not_installed_is_nobodys_fault() {
        for text in [
            "Error: Cannot find module 'express'\nRequire stack:\n- /tmp/project/a.test.js",
            "Cannot find package 'express' imported from /tmp/project/a.test.js",
            "Cannot find module 'express' from 'a.test.js'",
            "Failed to resolve import \"express\" from \"a.test.js\". Does the file exist?",
        ] {
            check(text, None);
            assert_eq!(missing_package(text).as_deref(), Some("express"), "{text}");
        }
        assert_eq!(missing_package("Cannot find module './slug' from 'a.test.js'"), None);
    }

    #[test]
    fn missing_program_is_recognised_by_code_or_words() {
        for (exit, text) in [
            (127, ""),
            (126, "x"),
            (2, "sh: 1: jest: not found\nmake: *** [Makefile:2: test] Error 127"),
            (2, "make: pytest: No such file or directory"),
            (2, "make: *** No rule to make target 'test'.  Stop."),
            (1, "/usr/bin/python3: No module named pytest"),
            (1, "bash: line 1: tox: command not found"),
            (1, "npm error Missing script: \"test\""),
        ] {
            assert!(missing_tool(exit, text).is_some(), "{text}");
        }
        for text in ["assert 1 == 2", "user not found", "make: *** [Makefile:2: test] Error 1"] {
            assert_eq!(missing_tool(1, text), None, "{text}");
        }
    }
}
