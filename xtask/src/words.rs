//! Words that do not belong into the repository: signs of unfinished work, paths of one particular
//! machine, and names that say nothing.

use crate::outline::Outline;
use crate::repo::{Finding, Repo};

/// Signs of unfinished work that count as whole words, in exactly this case.
const UNFINISHED_WORDS: &[&str] = &["TODO", "FIXME", "XXX"];

/// Signs of unfinished work that count anywhere, in lower case.
const UNFINISHED_PHRASES: &[&str] =
    &["todo!(", "unimplemented!(", "in a real system", "placeholder"];

/// Where one particular machine keeps its things. Put together so that this file stays clean itself.
const MACHINE_PATHS: &[&str] =
    &[concat!("/", "work/"), concat!("/", "farm/"), concat!("/", "root/")];

/// Names that say nothing about what a file or module holds, alone or as the last part of a name.
const EMPTY_NAMES: &[&str] =
    &["core", "common", "util", "utils", "helper", "helpers", "manager", "v2"];

/// What is recorded or generated keeps the names it came with.
const RECORDED: &[&str] = &["fixtures", "corpus"];

/// Looks at every line, every file name and every module name.
pub(crate) fn check(repo: &Repo) -> Vec<Finding> {
    let names = repo.names().filter_map(check_name);
    let lines = repo.texts().flat_map(|(file, text)| check_lines(file, text));
    let sources = repo.texts().filter(|(file, _)| file.ends_with(".rs"));
    let modules = sources.flat_map(|(file, text)| check_modules(file, text));
    names.chain(lines).chain(modules).collect()
}

/// Signs of unfinished work in sources other than this crate's, paths of one machine in any text.
fn check_lines(file: &str, text: &str) -> Vec<Finding> {
    let judged = file.ends_with(".rs") && !file.starts_with("xtask/");
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(sign) = unfinished(line).filter(|_| judged) {
            let text = format!("`{sign}` is a sign of unfinished work");
            findings.push(Finding::line(file, number, text));
        }
        if let Some(path) = MACHINE_PATHS.iter().find(|path| contains_path(line, path)) {
            let text = format!("`{path}…` is a path of one machine");
            findings.push(Finding::line(file, number, text));
        }
    }
    findings
}

fn check_modules(file: &str, text: &str) -> Vec<Finding> {
    let outline = Outline::of(text);
    let empty = outline.modules().into_iter().filter_map(empty_name);
    let text = |name| format!("a module called `{name}` does not say what it holds");
    empty.map(|name| Finding::file(file, text(name))).collect()
}

fn check_name(file: &str) -> Option<Finding> {
    let parts: Vec<&str> = file.split('/').collect();
    if parts.iter().any(|part| RECORDED.contains(part)) {
        return None;
    }
    let stems = parts.iter().map(|part| part.split_once('.').map_or(*part, |(stem, _)| stem));
    let name = stems.filter_map(empty_name).next()?;
    Some(Finding::file(file, format!("the name `{name}` does not say what it holds")))
}

/// The name itself when it is, or ends with, one that says nothing.
fn empty_name(name: &str) -> Option<&str> {
    let last = name.rsplit(['_', '-']).next()?;
    EMPTY_NAMES.contains(&last.to_lowercase().as_str()).then_some(name)
}

fn unfinished(line: &str) -> Option<&'static str> {
    let lower = line.to_lowercase();
    let whole =
        |word: &str| line.split(|c: char| c != '_' && !c.is_alphanumeric()).any(|w| w == word);
    let words = UNFINISHED_WORDS.iter().copied().filter(|word| whole(word));
    words.chain(UNFINISHED_PHRASES.iter().copied().filter(|p| lower.contains(p))).next()
}

/// Whether the line has an absolute path that begins so; a name before it makes it another path.
fn contains_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        !before
            .is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '}' | '*' | '~'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::lines;

    fn check_file(name: &str, text: &str) -> Vec<String> {
        lines(&check(&Repo::of(&[(name, text)])))
    }

    #[test]
    fn unfinished_work_is_found() {
        for line in
            ["// TODO: later", "todo!()", "// A Placeholder.", "// In a real system this", "// XXX"]
        {
            assert_eq!(check_file("crates/a/src/lib.rs", line).len(), 1, "{line}");
        }
    }

    #[test]
    fn words_that_only_look_unfinished_are_left_alone() {
        for line in ["// \\uXXXX in lower case", "let todo_list = 1;", "const TODOS: u8 = 1;"] {
            assert_eq!(check_file("crates/a/src/lib.rs", line), Vec::<String>::new(), "{line}");
        }
        assert_eq!(check_file("README.md", "TODO"), Vec::<String>::new());
    }

    #[test]
    fn paths_of_one_machine_are_found_in_any_text() {
        for path in MACHINE_PATHS {
            assert_eq!(check_file("README.md", &format!("see {path}x")).len(), 1);
            assert_eq!(check_file("a.json", &format!("\"{path}x\"")).len(), 1);
            assert_eq!(check_file("README.md", &format!("see docs{path}x")), Vec::<String>::new());
        }
    }

    #[test]
    fn names_that_say_nothing_are_found() {
        for file in
            ["crates/core/src/lib.rs", "crates/a/src/utils.rs", "a/cli_util.rs", "a/API-v2.md"]
        {
            assert_eq!(check_file(file, "").len(), 1, "{file}");
        }
        for file in ["crates/a/src/core_plugin.rs", "tests/fixtures/utils.py", "a/scored.rs"] {
            assert_eq!(check_file(file, ""), Vec::<String>::new(), "{file}");
        }
        let module = "crates/a/src/lib.rs: a module called `helpers` does not say what it holds";
        assert_eq!(check_file("crates/a/src/lib.rs", "mod x { mod helpers {} }"), [module]);
    }
}
