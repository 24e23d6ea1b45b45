//! Begins the repository of a new project.
//!
//! **Invariant.** It is made beside its place and renamed: there is a whole repository or none. A `.git` that is there, of
//! whatever kind, stays as it is.

use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// Where it is made.
const MAKING: &str = ".fluffy-git-init";

/// What a repository of git's has from its beginning.
const FILES: [(&str, &str); 2] = [
    ("HEAD", "ref: refs/heads/main\n"),
    (
        "config",
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n",
    ),
];
const DIRECTORIES: [&str; 6] =
    ["", "objects/info", "objects/pack", "refs/heads", "refs/tags", "info"];

/// Makes an empty repository with the branch `main`, as `git init` does.
pub(crate) fn init_repository(project: &Path) -> io::Result<()> {
    let making = project.join(MAKING);
    let _left = fluffy_sandbox::remove_tree(&making);
    let made = fill(&making).and_then(|()| {
        let renamed =
            renameat_with(CWD, &making, CWD, project.join(".git"), RenameFlags::NOREPLACE);
        renamed.map_err(io::Error::from)
    });
    if made.is_err() {
        let _left = fluffy_sandbox::remove_tree(&making);
    }
    made
}

fn fill(top: &Path) -> io::Result<()> {
    for directory in DIRECTORIES {
        DirBuilder::new().recursive(true).mode(0o755).create(top.join(directory))?;
    }
    for (name, text) in FILES {
        let mut options = File::options();
        let mut file = options.write(true).create_new(true).mode(0o644).open(top.join(name))?;
        file.write_all(text.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_is_whole_and_none_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        init_repository(dir.path()).unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join(".git/HEAD")).unwrap(), FILES[0].1);
        assert!(dir.path().join(".git/objects/pack").is_dir());
        assert!(init_repository(dir.path()).is_err());
        assert!(!dir.path().join(MAKING).exists());
    }
}
