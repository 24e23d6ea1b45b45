//! What is asked for: names and versions that mean packages of a registry and nothing else.

use serde::{Deserialize, Serialize};

use crate::profile::Manager;

/// The most packages that one request names.
const MAX_PACKAGES: usize = 100;

/// The longest name or version.
const MAX_WORD: usize = 200;

/// What is to be installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallRequest {
    /// The manager that does it.
    pub manager: Manager,
    /// Packages that the project needs from now on.
    pub add: Vec<PackageSpec>,
    /// Packages that it does not need any more, by name.
    pub remove: Vec<String>,
    /// Whether they are for development alone.
    pub dev: bool,
}

/// A package that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageSpec {
    /// The name in the registry.
    pub name: String,
    /// Extras of a Python package, features of a crate.
    pub extras: Vec<String>,
    /// Which versions will do; the newest where nothing is said.
    pub version: Option<String>,
}

/// Why a request cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// It names no package of a registry.
    #[error(
        "`{word}` is not a package of the {ecosystem} registry; write `name` or `name@version`: \
         addresses, paths and options are not taken"
    )]
    Name {
        /// The word.
        word: String,
        /// Whose names are accepted.
        ecosystem: &'static str,
    },
    /// Too many at once.
    #[error("a request names at most {MAX_PACKAGES} packages")]
    Many,
    /// A manager that has no packages for development.
    #[error("{0} has no packages for development alone; leave `dev` out")]
    NoDev(Manager),
}

impl InstallRequest {
    /// Checks the words of a request.
    pub fn new(
        manager: Manager,
        add: &[String],
        remove: &[String],
        dev: bool,
    ) -> Result<Self, RequestError> {
        if add.len() + remove.len() > MAX_PACKAGES {
            return Err(RequestError::Many);
        }
        if dev && manager == Manager::Go {
            return Err(RequestError::NoDev(manager));
        }
        let add = add.iter().map(|word| PackageSpec::parse(manager, word));
        let remove = remove.iter().map(|word| {
            let spec = PackageSpec::parse(manager, word)?;
            let bare = spec.version.is_none() && spec.extras.is_empty();
            if bare { Ok(spec.name) } else { Err(refused(manager, word)) }
        });
        Ok(Self {
            manager,
            add: add.collect::<Result<_, _>>()?,
            remove: remove.collect::<Result<_, _>>()?,
            dev,
        })
    }

    /// Whether it asks for nothing but what manifest and lock file say.
    pub fn is_plain(&self) -> bool {
        self.add.is_empty() && self.remove.is_empty()
    }
}

impl PackageSpec {
    /// Reads `name`, `name@version` or `name[extra]@version`; for Python also `name==version` and its like.
    pub fn parse(manager: Manager, word: &str) -> Result<Self, RequestError> {
        let refuse = || refused(manager, word);
        if word.len() > MAX_WORD || word.is_empty() {
            return Err(refuse());
        }
        let (head, version) = split_version(manager, word);
        let (name, extras) = match head.split_once('[') {
            None => (head, Vec::new()),
            Some((name, rest)) => {
                let list = rest.strip_suffix(']').ok_or_else(refuse)?;
                (name, list.split(',').map(|extra| extra.trim().to_owned()).collect())
            }
        };
        let takes_extras = matches!(manager.ecosystem(), "pypi" | "cargo");
        let fits = is_name(manager, name)
            && (extras.is_empty() || takes_extras)
            && extras.iter().all(|extra| is_word(extra, "-_./+"))
            && version.is_none_or(is_version);
        if !fits {
            return Err(refuse());
        }
        let version = version.map(str::trim).filter(|version| !version.is_empty());
        Ok(Self { name: name.to_owned(), extras, version: version.map(str::to_owned) })
    }

    /// As a request names it.
    pub fn text(&self) -> String {
        let Self { name, extras, version } = self;
        let extras =
            if extras.is_empty() { String::new() } else { format!("[{}]", extras.join(",")) };
        let version = version.as_ref().map(|version| format!("@{version}")).unwrap_or_default();
        format!("{name}{extras}{version}")
    }

    /// As the manager's own command line takes it.
    pub fn word(&self, manager: Manager) -> String {
        let Self { name, extras, version } = self;
        let extras =
            if extras.is_empty() { String::new() } else { format!("[{}]", extras.join(",")) };
        match (manager.ecosystem(), version) {
            ("pypi", None) => format!("{name}{extras}"),
            ("pypi", Some(version)) if version == "latest" => format!("{name}{extras}"),
            ("pypi", Some(version)) if version.starts_with(|c: char| c.is_ascii_alphanumeric()) => {
                format!("{name}{extras}=={version}")
            }
            ("pypi", Some(version)) => format!("{name}{extras}{version}"),
            // Features are an option of Cargo's.
            (_, Some(version)) => format!("{name}@{version}"),
            (_, None) => name.clone(),
        }
    }
}

fn refused(manager: Manager, word: &str) -> RequestError {
    let word = fluffy_base::Excerpt::new(word, 80).to_string();
    RequestError::Name { word, ecosystem: manager.ecosystem() }
}

/// Name and version of a word.
fn split_version(manager: Manager, word: &str) -> (&str, Option<&str>) {
    // A scope begins with the sign that stands before a version.
    let from = usize::from(word.starts_with('@'));
    let at = word.get(from..).and_then(|rest| rest.find('@')).map(|at| at + from);
    if let Some(at) = at {
        return (word.get(..at).unwrap_or_default(), word.get(at + 1..));
    }
    if manager.ecosystem() == "pypi"
        && let Some(at) = word.find(['=', '<', '>', '~', '!'])
    {
        return (word.get(..at).unwrap_or_default().trim_end(), word.get(at..));
    }
    (word, None)
}

fn is_word(text: &str, signs: &str) -> bool {
    let first = text.chars().next().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    first && text.chars().all(|c| c.is_ascii_alphanumeric() || signs.contains(c))
}

fn is_name(manager: Manager, name: &str) -> bool {
    match manager.ecosystem() {
        "npm" => match name.strip_prefix('@') {
            Some(scoped) => scoped
                .split_once('/')
                .is_some_and(|(scope, name)| is_word(scope, "-_.~") && is_word(name, "-_.~")),
            None => is_word(name, "-_.~"),
        },
        "go" => {
            // The first part of a module's path is a host.
            let mut parts = name.split('/');
            let host = parts.next().is_some_and(|host| host.contains('.') && is_word(host, ".-"));
            host && parts.all(|part| is_word(part, "-_.~") && !part.starts_with('.'))
        }
        _names => is_word(name, "-_."),
    }
}

/// Whether this is a version, a range of them or a tag; no address and no path.
fn is_version(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-+_^~*<>=!|, ".contains(c);
    !text.starts_with('-') && text.len() <= MAX_WORD && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(manager: Manager, text: &str) -> Result<String, RequestError> {
        PackageSpec::parse(manager, text).map(|spec| spec.word(manager))
    }

    #[test]
    fn names_and_versions_become_the_managers_words() {
        for (manager, text, expected) in [
            (Manager::Npm, "express", "express"),
            (Manager::Npm, "@types/node@^20", "@types/node@^20"),
            (Manager::Pip, "Flask", "Flask"),
            (Manager::Pip, "Flask@3.0.0", "Flask==3.0.0"),
            (Manager::Pip, "uvicorn[standard]>=0.30", "uvicorn[standard]>=0.30"),
            (Manager::Pip, "flask@latest", "flask"),
            (Manager::Cargo, "serde@1", "serde@1"),
            (Manager::Cargo, "tokio[full]@1", "tokio@1"),
            (Manager::Go, "github.com/gorilla/mux@v1.8.1", "github.com/gorilla/mux@v1.8.1"),
        ] {
            assert_eq!(word(manager, text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_specification_is_read_back_from_its_text() {
        for (manager, text) in [
            (Manager::Npm, "@types/node@^20"),
            (Manager::Pip, "uvicorn[standard]@>=0.30"),
            (Manager::Cargo, "tokio[full,macros]@1"),
            (Manager::Go, "github.com/gorilla/mux@v1.8.1"),
        ] {
            let spec = PackageSpec::parse(manager, text).unwrap();
            assert_eq!(spec.text(), text);
        }
    }

    #[test]
    fn options_addresses_and_paths_are_no_packages() {
        let words = [
            "",
            "-g",
            "--registry=x",
            "../x",
            "./x",
            "file:x",
            "git+https://a/b",
            "https://a/b.tgz",
            "user/repo",
            "a b",
            "x@git+ssh://h/r",
            "x@file:../y",
            "x@npm:other",
            "x;rm",
            "$(x)",
            "x@-g",
            "x\n",
            "ä",
            "@scope",
            "@a/b/c",
            "x@http://h/x.tgz",
        ];
        for text in words {
            for manager in [Manager::Npm, Manager::Pip, Manager::Cargo] {
                assert!(word(manager, text).is_err(), "{manager}: {text:?}");
            }
        }
        assert!(word(Manager::Go, "mux").is_err());
        assert!(word(Manager::Npm, "x[y]").is_err());
        let remove = ["x@1".to_owned()];
        assert!(InstallRequest::new(Manager::Npm, &[], &remove, false).is_err());
        assert!(InstallRequest::new(Manager::Go, &[], &[], true).is_err());
        let many = vec!["x".to_owned(); 101];
        assert_eq!(InstallRequest::new(Manager::Npm, &many, &[], false), Err(RequestError::Many));
    }
}
