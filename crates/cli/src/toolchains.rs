//! Which parts of a home directory hold toolchains, and nothing that is private.

use std::path::{Path, PathBuf};

/// Below the home directory. Whole directories where no tool keeps a password beside its programs; for Cargo
/// only the parts that are not `credentials.toml` and `config.toml`.
const PARTS: [&str; 14] = [
    ".bun/bin",
    ".cargo/bin",
    ".cargo/git",
    ".cargo/registry",
    ".deno/bin",
    ".local/share/mise/installs",
    ".local/share/pnpm",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".nvm",
    ".pyenv",
    ".rustup",
    ".volta",
    "go/pkg/mod",
];

/// Those that are there. A link counts for nothing: it could lead anywhere.
pub(crate) fn of(home: &Path) -> Vec<PathBuf> {
    let paths = PARTS.iter().map(|part| home.join(part));
    paths.filter(|path| std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())).collect()
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
        let found = of(home.path());
        assert_eq!(found, [".cargo/bin", ".rustup"].map(|part| home.path().join(part)));
    }
}
