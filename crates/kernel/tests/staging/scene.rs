//! A project, a session's directory and words for changes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fluffy_base::ProjectPath;
use fluffy_kernel::{Produced, Staging, Tree};

/// A directory with a project and a session's directory in it.
pub(crate) struct Scene {
    pub(crate) top: PathBuf,
}

impl Scene {
    pub(crate) fn new(top: &Path, files: &[&str]) -> Self {
        let scene = Self { top: top.to_owned() };
        for dir in [scene.project(), scene.session()] {
            fs::create_dir_all(dir).unwrap();
        }
        for word in files {
            let (name, text) = word.split_once('=').unwrap();
            let at = scene.project().join(name);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(&at, text).unwrap();
            let mode = if text.starts_with("x:") { 0o755 } else { 0o644 };
            fs::set_permissions(&at, fs::Permissions::from_mode(mode)).unwrap();
        }
        scene
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.top.join("project")
    }

    pub(crate) fn session(&self) -> PathBuf {
        self.top.join("session")
    }

    pub(crate) fn staging(&self) -> Staging {
        let tree = Arc::new(Tree::open(&self.project()).unwrap());
        Staging::open(&self.session(), tree).unwrap()
    }

    /// Every regular file with its contents, and whether it can be executed.
    pub(crate) fn files(&self) -> BTreeMap<String, (bool, Vec<u8>)> {
        let mut found = BTreeMap::new();
        let mut pending = vec![self.project()];
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let at = entry.unwrap().path();
                let stat = fs::symlink_metadata(&at).unwrap();
                if stat.is_dir() {
                    pending.push(at);
                } else if stat.is_file() {
                    let name = at.strip_prefix(self.project()).unwrap().display().to_string();
                    let executable = stat.permissions().mode() & 0o100 != 0;
                    found.insert(name, (executable, fs::read(&at).unwrap()));
                }
            }
        }
        found
    }
}

/// Stages `+path=text` and `-path`; a text that starts with `x:` is a program.
pub(crate) fn stage(staging: &mut Staging, words: &[&str]) {
    let mut produced = Vec::new();
    for word in words {
        produced.push(match word.strip_prefix('-') {
            Some(gone) => Produced::Nothing(ProjectPath::parse(gone).unwrap()),
            None => {
                let (name, text) = word.strip_prefix('+').unwrap().split_once('=').unwrap();
                let kept = staging.blobs().put(text.as_bytes(), text.starts_with("x:")).unwrap();
                Produced::File(ProjectPath::parse(name).unwrap(), kept)
            }
        });
    }
    let step = staging.prepare("request", &produced).unwrap().unwrap();
    staging.promote(step).unwrap();
}
