//! Which command could run a project's tests where no runner is known: a proposal for the setting `test.command`.
//!
//! **Invariant.** A proposal is words for a person or a model, and is never run by itself.

use fluffy_base::ProjectPath;

use super::customs::make_target;
use super::detect::Project;

/// A file at the root, by its name or by `*` and its ending, and the command that its tool has for tests.
const TOOLS: &[(&str, &[&str])] = &[
    ("bin/rails", &["bin/rails", "test"]),
    ("justfile", &["just", "test"]),
    ("Taskfile.yml", &["task", "test"]),
    ("tox.ini", &["tox"]),
    ("noxfile.py", &["nox"]),
    ("deno.json", &["deno", "test"]),
    ("deno.jsonc", &["deno", "test"]),
    ("bun.lock", &["bun", "test"]),
    ("bun.lockb", &["bun", "test"]),
    ("meson.build", &["meson", "test", "-C", "build"]),
    ("mix.exs", &["mix", "test"]),
    ("Package.swift", &["swift", "test"]),
    ("pubspec.yaml", &["dart", "test"]),
    ("build.sbt", &["sbt", "test"]),
    ("build.xml", &["ant", "test"]),
    ("build.zig", &["zig", "build", "test"]),
    ("dune-project", &["dune", "test"]),
    ("rebar.config", &["rebar3", "eunit"]),
    ("stack.yaml", &["stack", "test"]),
    ("*.cabal", &["cabal", "test"]),
    ("*.csproj", &["dotnet", "test"]),
    ("*.fsproj", &["dotnet", "test"]),
    ("Makefile.PL", &["prove", "-l"]),
    ("cpanfile", &["prove", "-l"]),
    ("WORKSPACE", &["bazel", "test", "//..."]),
    ("MODULE.bazel", &["bazel", "test", "//..."]),
    ("CMakeLists.txt", &["ctest", "--test-dir", "build"]),
    ("Rakefile", &["rake", "test"]),
    ("package.json", &["npm", "test"]),
    ("composer.json", &["composer", "test"]),
    ("pyproject.toml", &["python3", "-m", "pytest"]),
    ("setup.py", &["python3", "-m", "unittest"]),
    ("Cargo.toml", &["cargo", "test"]),
];

/// The command that a project's files suggest, or none if they suggest nothing.
pub fn propose_command(project: &Project<'_>) -> Option<Vec<String>> {
    let text = |name: &str| {
        let path = ProjectPath::parse(name).ok()?;
        project.texts.get(&path).map(String::as_str)
    };
    if let Some((target, _)) = make_target(text) {
        return Some(vec!["make".to_owned(), target.to_owned()]);
    }
    if let Some(script) = text("package.json").and_then(test_script) {
        return Some(["npm", "run", &script].map(str::to_owned).to_vec());
    }
    let has = |pattern: &str| match pattern.strip_prefix('*') {
        Some(ending) => project.files.iter().any(|file| file.as_str().ends_with(ending)),
        None => project.files.iter().any(|file| file.as_str() == pattern),
    };
    let (_, words) = TOOLS.iter().find(|(pattern, _)| has(pattern))?;
    Some(words.iter().map(|word| (*word).to_owned()).collect())
}

/// A script whose name says that it runs tests, other than `test` itself. A name that would not be one plain word is
/// left out.
fn test_script(text: &str) -> Option<String> {
    let package: serde_json::Value = serde_json::from_str(text).ok()?;
    let scripts = package.get("scripts")?.as_object()?;
    let is_word = |name: &&String| {
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":-_.".contains(&byte))
    };
    let mut names = scripts.keys().filter(is_word);
    names.find(|name| name.starts_with("test:") || name.starts_with("test-")).cloned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn check(files: &[(&str, &str)], expected: Option<&str>) {
        let path = |name: &str| ProjectPath::parse(name).unwrap();
        let names: Vec<_> = files.iter().map(|(name, _)| path(name)).collect();
        let texts: BTreeMap<_, _> =
            files.iter().map(|(name, text)| (path(name), (*text).to_owned())).collect();
        let found = propose_command(&Project { files: &names, texts: &texts });
        assert_eq!(found.map(|words| words.join(" ")).as_deref(), expected, "{files:?}");
    }

    #[test]
    fn command_is_proposed_from_what_is_in_the_project() {
        check(&[("Makefile", "all:\ntest: all\n\t./run\n")], Some("make test"));
        check(&[("Makefile", "test := 1\n"), ("tox.ini", "")], Some("tox"));
        check(&[("package.json", r#"{"scripts":{"test:unit":"x"}}"#)], Some("npm run test:unit"));
        check(&[("package.json", r#"{"scripts":{"test:$(rm)":"x"}}"#)], Some("npm test"));
        check(&[("src/App/App.csproj", "")], Some("dotnet test"));
        check(&[("Rakefile", "")], Some("rake test"));
        check(&[("mix.exs", "")], Some("mix test"));
    }

    #[test]
    fn nothing_is_proposed_where_nothing_is_known() {
        check(&[], None);
        check(&[("readme.md", ""), ("sub/tox.ini", "")], None);
    }
}
