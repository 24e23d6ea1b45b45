//! Finds the test that a reference names.
//!
//! A reference is what `cargo nextest list` prints, blanks made `::`:
//!
//! | test | reference |
//! |---|---|
//! | of a library | `fluffy-base::hash::tests::name` |
//! | of an integration binary | `fluffy-ledger::it::verify::name` |
//! | of a program | `fluffy-cli::bin/fluffy::tests::name` |
//! | in Python | `python:tests/independent/verify.py::test_name` |

use crate::outline::{Outline, Run};
use crate::repo::Repo;

/// Where tests in Python lie.
const PYTHON: &str = "tests/independent/";

/// Ok when the test is there and runs; otherwise what is wrong with the reference.
pub(crate) fn find(repo: &Repo, reference: &str) -> Result<(), String> {
    if let Some(reference) = reference.strip_prefix("python:") {
        return find_python(repo, reference);
    }
    let mut parts = reference.split("::");
    let package = parts.next().unwrap_or_default();
    let folder = match package.strip_prefix("fluffy-") {
        Some(name) if !name.contains('/') => Some(format!("crates/{name}")),
        Some(_) => None,
        None => Some(package.to_owned()).filter(|package| package == "xtask"),
    };
    let folder = folder
        .filter(|folder| repo.has(&format!("{folder}/Cargo.toml")))
        .ok_or_else(|| format!("there is no package `{package}`"))?;
    let mut path: Vec<&str> = parts.collect();
    let root = root_file(repo, &folder, &mut path)?;
    let test = path.pop().ok_or("no test is named")?;
    find_rust(repo, &root, &path, test)
}

/// The root file of the binary that a path begins with, whose name is taken off the path.
fn root_file(repo: &Repo, folder: &str, path: &mut Vec<&str>) -> Result<String, String> {
    let first = path.first().copied().unwrap_or_default();
    let integration =
        [format!("{folder}/tests/{first}/main.rs"), format!("{folder}/tests/{first}.rs")];
    let candidates = match first.strip_prefix("bin/") {
        Some(name) => vec![
            format!("{folder}/src/bin/{name}.rs"),
            format!("{folder}/src/bin/{name}/main.rs"),
            format!("{folder}/src/main.rs"),
        ],
        None => integration.to_vec(),
    };
    if let Some(file) = candidates.iter().find(|file| repo.text(file).is_some()) {
        path.remove(0);
        return Ok(file.clone());
    }
    let library = format!("{folder}/src/lib.rs");
    if repo.text(&library).is_some() {
        return Ok(library);
    }
    let lacking = format!("`{folder}` has no library and no test binary `{first}`");
    Err(format!("{lacking}; a test of a program is named `…::bin/PROGRAM::…`"))
}

/// Follows the modules from the root file, as the compiler does, and looks for the test in the last.
fn find_rust(repo: &Repo, root: &str, modules: &[&str], test: &str) -> Result<(), String> {
    let mut file = root.to_owned();
    let mut folder = root.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
    let mut outline = Outline::of(repo.text(root).unwrap_or_default());
    for module in modules {
        folder = format!("{folder}/{module}");
        if let Some(inner) = outline.inline.remove(*module) {
            outline = inner;
        } else if outline.files.contains(*module) {
            let places = [format!("{folder}.rs"), format!("{folder}/mod.rs")];
            let found = places.into_iter().find_map(|place| Some((repo.text(&place)?, place)));
            let (text, place) = found.ok_or_else(|| format!("there is no {folder}.rs"))?;
            outline = Outline::of(text);
            file = place;
        } else {
            return Err(format!("{file} has no module `{module}`"));
        }
    }
    match outline.tests.get(test) {
        Some(Run::Always) => Ok(()),
        Some(Run::OnlyWhenAsked) => Err(format!("test `{test}` in {file} is marked `#[ignore]`")),
        None => Err(format!("{file} has no test `{test}` in that module")),
    }
}

fn find_python(repo: &Repo, reference: &str) -> Result<(), String> {
    let (file, test) = reference.split_once("::").ok_or("no test is named")?;
    if !file.starts_with(PYTHON) {
        return Err(format!("tests in Python lie in {PYTHON}"));
    }
    let text = repo.text(file).ok_or_else(|| format!("there is no {file}"))?;
    let defined = |line: &str| {
        let name = line.trim_start().strip_prefix("def ").and_then(|rest| rest.split_once('('));
        name.is_some_and(|(name, _)| name == test)
    };
    if test.starts_with("test_") && text.lines().any(defined) {
        return Ok(());
    }
    Err(format!("{file} has no test `{test}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repo() -> Repo {
        Repo::of(&[
            ("crates/base/Cargo.toml", ""),
            ("crates/base/src/lib.rs", "mod hash; mod paths; mod lost;"),
            ("crates/base/src/hash.rs", "mod tests { #[test] fn inline() {} fn helps() {} }"),
            ("crates/base/src/paths.rs", "#[cfg(test)] mod tests;"),
            (
                "crates/base/src/paths/tests.rs",
                "#[test] fn beside() {} #[test] #[ignore] fn off() {}",
            ),
            ("crates/base/tests/it/main.rs", "mod verify; #[test] fn at_the_root() {}"),
            ("crates/base/tests/it/verify.rs", "proptest! { #[test] fn property(x in 0..1) {} }"),
            ("crates/base/tests/it/stray.rs", "#[test] fn never_built() {}"),
            ("crates/cli/Cargo.toml", ""),
            ("crates/cli/src/main.rs", "mod args; mod tests { #[test] fn of_main() {} }"),
            ("crates/cli/src/args/mod.rs", "#[test] fn parsed() {}"),
            ("crates/cli/tests/e2e/main.rs", "mod audit;"),
            ("crates/cli/tests/e2e/audit.rs", "#[test] fn shows() {}"),
            ("xtask/Cargo.toml", ""),
            ("xtask/src/lib.rs", "#[test] fn own() {}"),
            ("tests/independent/verify.py", "def test_a():\n    pass\ndef aid():\n    pass\n"),
        ])
    }

    #[test]
    fn a_test_is_found_under_the_name_that_nextest_prints() {
        for reference in [
            "fluffy-base::hash::tests::inline",
            "fluffy-base::paths::tests::beside",
            "fluffy-base::it::at_the_root",
            "fluffy-base::it::verify::property",
            "fluffy-cli::bin/fluffy::tests::of_main",
            "fluffy-cli::bin/fluffy::args::parsed",
            "fluffy-cli::e2e::audit::shows",
            "xtask::own",
            "python:tests/independent/verify.py::test_a",
        ] {
            assert_eq!(find(&repo(), reference), Ok(()), "{reference}");
        }
    }

    #[test]
    fn a_test_that_is_not_there_or_does_not_run_is_refused() {
        for (reference, reason) in [
            (
                "fluffy-base::hash::tests::helps",
                "crates/base/src/hash.rs has no test `helps` in that module",
            ),
            (
                "fluffy-base::hash::inline",
                "crates/base/src/hash.rs has no test `inline` in that module",
            ),
            (
                "fluffy-base::paths::tests::off",
                "test `off` in crates/base/src/paths/tests.rs is marked `#[ignore]`",
            ),
            ("fluffy-base::lost::tests::x", "there is no crates/base/src/lost.rs"),
            (
                "fluffy-base::it::stray::never_built",
                "crates/base/tests/it/main.rs has no module `stray`",
            ),
            ("fluffy-ledger::hash::x", "there is no package `fluffy-ledger`"),
            ("fluffy-base", "no test is named"),
            ("crates/base::hash::tests::inline", "there is no package `crates/base`"),
            (
                "fluffy-cli::args::parsed",
                "`crates/cli` has no library and no test binary `args`; a test of a program is named `…::bin/PROGRAM::…`",
            ),
            (
                "python:tests/independent/verify.py::aid",
                "tests/independent/verify.py has no test `aid`",
            ),
            ("python:verify.py::test_a", "tests in Python lie in tests/independent/"),
        ] {
            assert_eq!(find(&repo(), reference), Err(reason.to_owned()), "{reference}");
        }
    }
}
