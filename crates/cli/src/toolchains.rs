//! Which parts of a home directory hold toolchains, and nothing that is private.

use std::path::{Path, PathBuf};

use fluffy_sandbox::Shown;

use crate::environment::Environment;

/// Below the home directory. Whole directories where no tool keeps a password beside its programs; for Cargo, Maven,
/// Gradle, NuGet and RubyGems only the parts beside their files of credentials.
const PARTS: [&str; 20] = [
    ".bun/bin",
    ".cargo/bin",
    ".cargo/git",
    ".cargo/registry",
    ".config/composer/vendor",
    ".deno/bin",
    ".gem/ruby",
    ".gradle/caches/modules-2",
    ".local/share/gem",
    ".local/share/mise/installs",
    ".local/share/pnpm",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".m2/repository",
    ".nuget/packages",
    ".nvm",
    ".pyenv",
    ".rustup",
    ".volta",
    "go/pkg/mod",
];

/// Every toolchain that the user has: those in the home directory, and those that the search path leads to.
pub(crate) fn of(environment: &Environment) -> Vec<PathBuf> {
    let home = environment.home.as_deref();
    let mut found: Vec<_> = home.map(in_home).unwrap_or_default();
    let path = environment.path.as_ref();
    for entry in path.into_iter().flat_map(std::env::split_paths).filter(|it| it.is_absolute()) {
        let Some(root) = root_of(&entry, home) else { continue };
        for root in std::iter::once(root).chain(node_modules_of(&entry)) {
            let known = found.iter().any(|known| root.starts_with(known));
            if !known && is_directory(&root) && Shown::new(&root).is_ok() {
                found.push(root);
            }
        }
    }
    found
}

/// Those that are there. A link counts for nothing: it could lead anywhere.
fn in_home(home: &Path) -> Vec<PathBuf> {
    let paths = PARTS.iter().map(|part| home.join(part));
    paths.filter(|path| is_directory(path)).collect()
}

fn is_directory(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// What has to be seen for the programs in a directory to run; nothing where that is no toolchain. A directory
/// that holds the whole home is none, whatever the search path says.
fn root_of(entry: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let above = entry.parent()?;
    // A virtual environment of Python, wherever it lies.
    if is_file(&above.join("pyvenv.cfg")) {
        return Some(above.to_owned());
    }
    let mut parts = entry.components();
    let in_opt = parts.by_ref().nth(1).is_some_and(|part| part.as_os_str() == "opt");
    if let (true, Some(name)) = (in_opt, parts.next()) {
        return Some(Path::new("/opt").join(name));
    }
    let holds_home = home.is_some_and(|home| home.starts_with(entry));
    let is_programs = entry.file_name().is_some_and(|name| name == "bin" || name == "shims");
    (is_programs && !holds_home).then(|| entry.to_owned())
}

/// Where the programs of npm's global packages lie: those in `bin` beside it are links to them. Those of the system are seen
/// anyway, and a way that leads over a link is none.
fn node_modules_of(entry: &Path) -> Option<PathBuf> {
    let modules = entry.parent()?.join("lib/node_modules");
    let plain = std::fs::canonicalize(&modules).is_ok_and(|real| real == modules);
    let of_system = modules.starts_with("/usr") || modules.starts_with("/lib");
    (entry.file_name()? == "bin" && plain && !of_system && is_directory(&modules))
        .then_some(modules)
}

fn is_file(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_private_and_no_link_is_shown() {
        let home = tempfile::tempdir().unwrap();
        for dir in [".cargo/bin", ".ssh", ".rustup"] {
            std::fs::create_dir_all(home.path().join(dir)).unwrap();
        }
        std::os::unix::fs::symlink(home.path().join(".ssh"), home.path().join(".pyenv")).unwrap();
        let found = in_home(home.path());
        assert_eq!(found, [".cargo/bin", ".rustup"].map(|part| home.path().join(part)));
    }

    #[test]
    fn global_packages_of_npm_are_seen_beside_their_programs() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("npm/bin")).unwrap();
        std::fs::create_dir_all(top.join("npm/lib/node_modules")).unwrap();
        std::os::unix::fs::symlink(top.join("npm"), top.join("link")).unwrap();
        let modules = top.join("npm/lib/node_modules");
        assert_eq!(node_modules_of(&top.join("npm/bin")), Some(modules));
        assert_eq!(node_modules_of(&top.join("link/bin")), None);
        assert_eq!(node_modules_of(Path::new("/usr/bin")), None);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test makes a virtual environment")]
    fn the_search_path_leads_to_virtual_environments_and_not_to_the_home() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        for name in ["home/.ssh", "home/bin", "venv/bin", "data"] {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        std::fs::write(dir.path().join("venv/pyvenv.cfg"), "").unwrap();
        let entries = ["home", "home/bin", "venv/bin", "data", "gone/bin"];
        let path = std::env::join_paths(entries.map(|entry| dir.path().join(entry))).unwrap();
        let environment =
            Environment { home: Some(home.clone()), path: Some(path), ..Environment::default() };
        assert_eq!(of(&environment), [home.join("bin"), dir.path().join("venv")]);
    }
}
