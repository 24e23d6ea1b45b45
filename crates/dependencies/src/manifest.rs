//! What managers may change in manifests, and what is changed for those that change nothing.

use serde_json::Value;

use crate::profile::Manager;
use crate::request::PackageSpec;

/// Sections of `package.json` that managers write.
const NODE_SECTIONS: [&str; 6] = [
    "dependencies",
    "devDependencies",
    "optionalDependencies",
    "peerDependencies",
    "packageManager",
    "pnpm",
];

/// Why a manifest is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// It is not of its form.
    #[error("`{file}` cannot be read: {why}")]
    Form {
        /// The file.
        file: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// More than dependencies was changed.
    #[error("{manager} changed `{part}` of `{file}`, and only dependencies may change")]
    Foreign {
        /// The manager.
        manager: Manager,
        /// The file.
        file: &'static str,
        /// The section.
        part: String,
    },
}

/// Refuses a change of a manifest that is about more than dependencies: a script of the project, say.
pub fn foreign_changes(manager: Manager, before: &str, after: &str) -> Result<(), ManifestError> {
    let file = manager.manifest();
    let form = |why: String| ManifestError::Form { file, why };
    let foreign = |part: &str| ManifestError::Foreign { manager, file, part: part.to_owned() };
    match manager.ecosystem() {
        "npm" => {
            let read = |text: &str| {
                serde_json::from_str::<Value>(text).map_err(|error| form(error.to_string()))
            };
            let (before, after) = (read(before)?, read(after)?);
            let part = differing_members(&before, &after, &NODE_SECTIONS);
            part.map_or(Ok(()), |part| Err(foreign(&part)))
        }
        "cargo" | "pypi" if manager != Manager::Pip => {
            let read = |text: &str| {
                text.parse::<toml::Table>().map_err(|error| form(error.message().to_owned()))
            };
            let (before, after) = (stripped(read(before)?), stripped(read(after)?));
            let keys = before.keys().chain(after.keys());
            let mut changed = keys.filter(|key| before.get(*key) != after.get(*key));
            changed.next().map_or(Ok(()), |part| Err(foreign(part)))
        }
        _edited_here_or_without_sections => Ok(()),
    }
}

/// The first member that differs and is none of these.
fn differing_members(before: &Value, after: &Value, sections: &[&str]) -> Option<String> {
    let (Value::Object(one), Value::Object(other)) = (before, after) else {
        return (before != after).then(|| "all".to_owned());
    };
    let keys = one.keys().chain(other.keys()).filter(|key| !sections.contains(&key.as_str()));
    keys.into_iter().find(|key| one.get(*key) != other.get(*key)).cloned()
}

/// A manifest without what says what it depends on.
fn stripped(mut table: toml::Table) -> toml::Table {
    let is_dependencies = |key: &str| {
        [
            "dependencies",
            "dev-dependencies",
            "build-dependencies",
            "dependency-groups",
            "optional-dependencies",
            "group",
        ]
        .contains(&key)
    };
    table.retain(|key, _| !is_dependencies(key));
    for name in ["project", "workspace", "target", "tool"] {
        let Some(inner) = table.get_mut(name).and_then(toml::Value::as_table_mut) else { continue };
        inner.retain(|key, _| !is_dependencies(key));
        for value in inner.iter_mut().filter_map(|(_, value)| value.as_table_mut()) {
            value.retain(|key, _| !is_dependencies(key));
        }
    }
    // A feature is written where an optional dependency is.
    table.remove("features");
    table
}

/// `requirements.txt` with these packages in it and those not. A package that is there already is said anew in its own line.
pub fn edit_requirements(text: &str, add: &[PackageSpec], remove: &[String]) -> String {
    let is_of =
        |line: &str, name: &str| requirement_name(line).is_some_and(|known| same(&known, name));
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.retain(|line| !remove.iter().any(|name| is_of(line, name)));
    for spec in add {
        let word = spec.word(Manager::Pip);
        match lines.iter_mut().find(|line| is_of(line, &spec.name)) {
            Some(line) => *line = word,
            None => lines.push(word),
        }
    }
    let mut text = lines.join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn same(one: &str, other: &str) -> bool {
    let plain = |name: &str| name.to_ascii_lowercase().replace(['_', '.'], "-");
    plain(one) == plain(other)
}

fn requirement_name(line: &str) -> Option<String> {
    let line = line.split('#').next()?.trim();
    let end = line
        .find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)))
        .unwrap_or(line.len());
    let name = line.get(..end)?;
    (!name.is_empty() && !name.starts_with('-')).then(|| name.to_owned())
}

/// The line that keeps what a manager installs, or builds of it, out of commits; `None` where nothing of it lies in the project.
pub fn ignore_line(manager: Manager) -> Option<&'static str> {
    match (manager, manager.folder()) {
        (_, "node_modules") => Some("node_modules/"),
        (_, ".venv") => Some(".venv/"),
        // What is built of them, as `cargo init` writes it.
        (Manager::Cargo, _) => Some("/target"),
        _elsewhere => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(word: &str) -> PackageSpec {
        PackageSpec::parse(Manager::Pip, word).unwrap()
    }

    #[test]
    fn requirements_keep_their_other_lines() {
        let text = "# web\nFlask==2.0  # old\nrequests\n-e .\n";
        let edited =
            edit_requirements(text, &[spec("flask@3.0.0"), spec("rich")], &["Requests".to_owned()]);
        assert_eq!(edited, "# web\nflask==3.0.0\n-e .\nrich\n");
        assert_eq!(edit_requirements("", &[], &[]), "");
    }

    #[test]
    fn only_dependencies_of_a_manifest_may_change() {
        let before = r#"{"name":"a","scripts":{"test":"node --test"}}"#;
        let fine = r#"{"name":"a","scripts":{"test":"node --test"},"dependencies":{"x":"1"}}"#;
        let bad = r#"{"name":"a","scripts":{"test":"exit 0"},"dependencies":{"x":"1"}}"#;
        assert_eq!(foreign_changes(Manager::Npm, before, fine), Ok(()));
        assert!(
            foreign_changes(Manager::Npm, before, bad)
                .unwrap_err()
                .to_string()
                .contains("`scripts`")
        );
        assert!(foreign_changes(Manager::Npm, before, "{").is_err());
        let before = "[package]\nname = \"a\"\n";
        let fine = "[package]\nname = \"a\"\n[dependencies]\nserde = \"1\"\n[workspace]\n";
        assert!(foreign_changes(Manager::Cargo, before, fine).is_err());
        let fine = "[package]\nname = \"a\"\n[dependencies]\nserde = \"1\"\n";
        assert_eq!(foreign_changes(Manager::Cargo, before, fine), Ok(()));
        let bad = "[package]\nname = \"a\"\nbuild = \"x.rs\"\n";
        assert!(foreign_changes(Manager::Cargo, before, bad).is_err());
        let before = "[project]\nname = \"a\"\n[tool.poetry]\nx = 1\n";
        let fine = "[project]\nname = \"a\"\ndependencies = [\"x\"]\n[tool.poetry]\nx = 1\n[tool.poetry.group.dev.dependencies]\ny = \"1\"\n";
        assert_eq!(foreign_changes(Manager::Poetry, before, fine), Ok(()));
    }
}
