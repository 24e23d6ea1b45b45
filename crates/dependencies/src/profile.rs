//! The package managers, as data: their files, their registries, and where they install.

use std::fmt;
use std::str::FromStr;

use fluffy_base::ProjectPath;
use serde::{Deserialize, Serialize};

/// A package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Manager {
    /// npm, with `package-lock.json`.
    Npm,
    /// pnpm.
    Pnpm,
    /// Yarn 1.
    Yarn,
    /// pip with a virtual environment.
    Pip,
    /// uv.
    Uv,
    /// Poetry.
    Poetry,
    /// Cargo.
    Cargo,
    /// Go modules.
    Go,
}

/// Machine and system that packages are installed for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Platform {
    /// The processor, as Rust calls it.
    pub arch: &'static str,
    /// The operating system.
    pub os: &'static str,
}

impl Platform {
    /// The one that this program runs on.
    pub const HERE: Self = Self { arch: std::env::consts::ARCH, os: std::env::consts::OS };
}

/// A text that names no manager.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not one of {names}", names = names())]
pub struct UnknownManager(String);

fn names() -> String {
    Manager::ALL.map(Manager::name).join(", ")
}

/// What is known of a manager.
struct Profile {
    name: &'static str,
    ecosystem: &'static str,
    manifest: &'static str,
    lock: Option<&'static str>,
    /// What it reads beside these.
    others: &'static [&'static str],
    folder: &'static str,
    registries: &'static [&'static str],
}

const NPM: Profile = Profile {
    name: "npm",
    ecosystem: "npm",
    manifest: "package.json",
    lock: Some("package-lock.json"),
    others: &[],
    folder: "node_modules",
    registries: &["registry.npmjs.org"],
};

const PNPM: Profile =
    Profile { name: "pnpm", lock: Some("pnpm-lock.yaml"), others: &["pnpm-workspace.yaml"], ..NPM };

const YARN: Profile = Profile {
    name: "yarn",
    lock: Some("yarn.lock"),
    registries: &["registry.yarnpkg.com", "registry.npmjs.org"],
    ..NPM
};

const PIP: Profile = Profile {
    name: "pip",
    ecosystem: "pypi",
    manifest: "requirements.txt",
    lock: None,
    others: &["requirements-dev.txt", "pyproject.toml"],
    folder: ".venv",
    registries: &["pypi.org", "files.pythonhosted.org"],
};

const UV: Profile = Profile {
    name: "uv",
    manifest: "pyproject.toml",
    lock: Some("uv.lock"),
    others: &[".python-version"],
    ..PIP
};

const POETRY: Profile = Profile {
    name: "poetry",
    manifest: "pyproject.toml",
    lock: Some("poetry.lock"),
    others: &[],
    ..PIP
};

const CARGO: Profile = Profile {
    name: "cargo",
    ecosystem: "cargo",
    manifest: "Cargo.toml",
    lock: Some("Cargo.lock"),
    others: &["rust-toolchain", "rust-toolchain.toml"],
    folder: ".fluffy-env/cargo",
    registries: &["index.crates.io", "static.crates.io"],
};

const GO: Profile = Profile {
    name: "go",
    ecosystem: "go",
    manifest: "go.mod",
    lock: Some("go.sum"),
    others: &["go.work", "go.work.sum"],
    folder: ".fluffy-env/go",
    registries: &["proxy.golang.org", "sum.golang.org"],
};

impl Manager {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Npm,
        Self::Pnpm,
        Self::Yarn,
        Self::Pip,
        Self::Uv,
        Self::Poetry,
        Self::Cargo,
        Self::Go,
    ];

    const fn profile(self) -> &'static Profile {
        match self {
            Self::Npm => &NPM,
            Self::Pnpm => &PNPM,
            Self::Yarn => &YARN,
            Self::Pip => &PIP,
            Self::Uv => &UV,
            Self::Poetry => &POETRY,
            Self::Cargo => &CARGO,
            Self::Go => &GO,
        }
    }

    /// The name, which is also the program's.
    pub const fn name(self) -> &'static str {
        self.profile().name
    }

    /// What policies call its registry's packages.
    pub const fn ecosystem(self) -> &'static str {
        self.profile().ecosystem
    }

    /// The file in which people say what they need.
    pub const fn manifest(self) -> &'static str {
        self.profile().manifest
    }

    /// The file in which it says what that resolved to.
    pub const fn lock(self) -> Option<&'static str> {
        self.profile().lock
    }

    /// Where it installs, from the package's root.
    pub const fn folder(self) -> &'static str {
        self.profile().folder
    }

    /// The hosts that it reaches if the user's settings name no others.
    pub const fn default_registries(self) -> &'static [&'static str] {
        self.profile().registries
    }

    /// Whether what it installs lies in the project on the user's own machine, too. What Cargo and Go install lies in
    /// the user's home, which their own commands fill.
    pub const fn installs_into_project(self) -> bool {
        !matches!(self, Self::Cargo | Self::Go)
    }

    /// The files that it may write, by name: a change of any other is not taken from it.
    pub fn writes(self) -> impl Iterator<Item = &'static str> {
        let Profile { manifest, lock, .. } = *self.profile();
        let requirements = (self == Self::Pip).then_some("requirements-dev.txt");
        let workspace = (self == Self::Pnpm).then_some("pnpm-workspace.yaml");
        std::iter::once(manifest).chain(lock).chain(requirements).chain(workspace)
    }

    /// Whether a file matters to it: its manifest, lock file or settings, in the package's folder or, for workspaces, below.
    pub fn reads(self, path: &ProjectPath) -> bool {
        let Profile { manifest, lock, others, .. } = *self.profile();
        let name = path.file_name();
        let python = self.ecosystem() == "pypi"
            && name.starts_with("requirements")
            && name.ends_with(".txt");
        name == manifest || lock == Some(name) || others.contains(&name) || python
    }

    /// Whether its packages say in a file which manager is meant.
    fn is_named_by(self, files: &dyn Fn(&str) -> bool) -> bool {
        self.lock().is_some_and(files)
    }

    /// The manager of a package whose folder has these files; `None` where nothing tells.
    pub fn detect(files: &dyn Fn(&str) -> bool) -> Option<Self> {
        let by_lock = Self::ALL.into_iter().find(|manager| manager.is_named_by(files));
        let by_manifest = || {
            [Self::Npm, Self::Cargo, Self::Go].into_iter().find(|manager| files(manager.manifest()))
        };
        let python = || {
            let marks = [
                "requirements.txt",
                "requirements-dev.txt",
                "pyproject.toml",
                "setup.py",
                "setup.cfg",
            ];
            marks.iter().any(|mark| files(mark)).then_some(Self::Pip)
        };
        by_lock.or_else(by_manifest).or_else(python)
    }
}

impl fmt::Display for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Manager {
    type Err = UnknownManager;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|manager| manager.name() == text);
        known.ok_or_else(|| UnknownManager(fluffy_base::Excerpt::new(text, 40).to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(files: &[&str]) -> Option<Manager> {
        Manager::detect(&|name| files.contains(&name))
    }

    #[test]
    fn lock_file_decides_before_manifest() {
        assert_eq!(detect(&["package.json", "pnpm-lock.yaml"]), Some(Manager::Pnpm));
        assert_eq!(detect(&["package.json"]), Some(Manager::Npm));
        assert_eq!(detect(&["pyproject.toml", "uv.lock"]), Some(Manager::Uv));
        assert_eq!(detect(&["pyproject.toml"]), Some(Manager::Pip));
        assert_eq!(detect(&["Cargo.toml"]), Some(Manager::Cargo));
        assert_eq!(detect(&["go.mod"]), Some(Manager::Go));
        assert_eq!(detect(&["README.md"]), None);
    }

    #[test]
    fn names_are_read_back() {
        for manager in Manager::ALL {
            assert_eq!(manager.name().parse(), Ok(manager));
        }
        assert!("bun".parse::<Manager>().unwrap_err().to_string().contains("npm, pnpm"));
    }
}
