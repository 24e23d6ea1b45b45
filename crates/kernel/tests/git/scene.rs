//! A project with a repository, and git in sandboxes beside it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use fluffy_base::{Digest, ProjectPath};
use fluffy_kernel::{
    Commit, Committed, Git, GitError, GitOptions, HookPolicy, Identity, IdentityOverrides, Message,
    Recorded, Trailer, Workshop, WorkshopOptions,
};
use fluffy_sandbox::{Native, NativeOptions};
use tempfile::TempDir;

pub(crate) const TRAILER: &str = "Fluffy-Checkpoint: example.org/ledger 12 q83vEjRWeJA=";

/// A project, a home and the driver of sandboxes, in a directory of their own.
pub(crate) struct Scene {
    dir: TempDir,
    pub(crate) git: Git,
}

impl Scene {
    /// A project without a repository.
    pub(crate) fn bare() -> Self {
        let dir = tempfile::Builder::new().prefix("fluffy-git-").tempdir_in("/var/tmp").unwrap();
        for name in ["project", "home", "layer"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let native = Native::open(NativeOptions {
            program: env!("CARGO_BIN_EXE_kernel-tester").into(),
            state: dir.path().join("state"),
            path: Vec::new(),
            env: Vec::new(),
        });
        let home = dir.path().join("home");
        let workshop = Workshop::new(WorkshopOptions {
            runtime: Arc::new(native.unwrap()),
            project: dir.path().join("project"),
            home: Some(home.clone()),
            shown: Vec::new(),
            program: env!("CARGO_BIN_EXE_kernel-tester").into(),
        });
        let options = GitOptions { home: Some(home), ..GitOptions::default() };
        Self { git: Git::new(Arc::new(workshop), options), dir }
    }

    /// A repository without a commit.
    pub(crate) fn empty() -> Self {
        let scene = Self::bare();
        scene.sh("git init -qb main");
        scene.sh("git config user.name Ann; git config user.email ann@example.org");
        scene
    }

    /// A repository with a commit of two files.
    pub(crate) fn new() -> Self {
        let scene = Self::empty();
        scene.sh("echo one >a; echo two >b; git add .; git commit -qm first");
        scene
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.path("project")
    }

    pub(crate) fn layers(&self) -> Vec<PathBuf> {
        vec![self.path("layer")]
    }

    /// Runs a script in the project, on this machine, as the user's own git would; hooks are not run.
    #[track_caller]
    pub(crate) fn sh(&self, script: &str) -> String {
        let out = Command::new("bash")
            .args(["-euc", script])
            .current_dir(self.project())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("nobody"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "core.hooksPath")
            .env("GIT_CONFIG_VALUE_0", "/dev/null")
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(out.status.success(), "{script}\n{}{}", text(&out.stdout), text(&out.stderr));
        text(&out.stdout)
    }

    /// Writes a file of the project.
    pub(crate) fn write(&self, name: &str, text: &str) {
        write(&self.project().join(name), text);
    }

    /// Writes a file of the session's layer.
    pub(crate) fn stage(&self, name: &str, text: &str) {
        write(&self.path("layer").join(name), text);
    }

    /// Writes a hook.
    pub(crate) fn hook(&self, name: &str, script: &str) {
        self.write(&format!(".git/hooks/{name}"), &format!("#!/bin/sh\n{script}\n"));
    }

    pub(crate) fn try_commit_with(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut Commit<'_>),
    ) -> Result<Recorded, GitError> {
        let (paths, message) = (paths(names), Message::new("change things").unwrap());
        let (trailer, overrides) = (Trailer::new(TRAILER).unwrap(), IdentityOverrides::default());
        let mut commit = Commit {
            paths: &paths,
            message: &message,
            trailer: &trailer,
            author: None,
            overrides: &overrides,
            at_ms: 1_700_000_000_123,
            hooks: HookPolicy::Skip,
        };
        change(&mut commit);
        self.git.commit(&commit)
    }

    pub(crate) fn try_commit(&self, names: &[&str]) -> Result<Recorded, GitError> {
        self.try_commit_with(names, |_| ())
    }

    /// Commits files, and checks what always holds afterwards.
    #[track_caller]
    pub(crate) fn commit(&self, names: &[&str]) -> Committed {
        let made = committed(self.try_commit(names));
        self.check(&made);
        made
    }

    #[track_caller]
    pub(crate) fn check(&self, made: &Committed) {
        assert!(made.index_updated);
        assert_eq!(self.sh("git rev-parse HEAD").trim(), made.id.as_str());
        assert_eq!(self.sh("git fsck --strict --no-dangling"), "");
        let trailers = self.sh("git log -1 --format='%(trailers:key=Fluffy-Checkpoint)'");
        assert_eq!(trailers.trim(), TRAILER);
        assert!(!self.listing().keys().any(|name| name.ends_with(".lock")));
    }

    /// Every file of `.git` with the hash of its contents and its mode.
    pub(crate) fn listing(&self) -> BTreeMap<String, (Digest, u32)> {
        let root = self.project().join(".git");
        let mut found = BTreeMap::new();
        let mut pending = vec![root.clone()];
        while let Some(at) = pending.pop() {
            for entry in fs::read_dir(&at).unwrap() {
                let path = entry.unwrap().path();
                let stat = fs::symlink_metadata(&path).unwrap();
                if stat.is_dir() {
                    pending.push(path);
                } else {
                    let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                    let mode = stat.permissions().mode();
                    found.insert(name, (Digest::of(&fs::read(&path).unwrap_or_default()), mode));
                }
            }
        }
        found
    }

    /// What of `.git` is not as it was, new objects aside.
    pub(crate) fn touched(&self, before: &BTreeMap<String, (Digest, u32)>) -> Vec<String> {
        let after = self.listing();
        assert!(before.keys().all(|name| after.contains_key(name)), "something is gone");
        let changed = after.into_iter().filter(|(name, seen)| before.get(name) != Some(seen));
        changed.map(|(name, _)| name).filter(|name| !name.starts_with("objects/")).collect()
    }
}

#[track_caller]
pub(crate) fn committed(recorded: Result<Recorded, GitError>) -> Committed {
    match recorded {
        Ok(Recorded::Commit(made)) => made,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn paths(names: &[&str]) -> Vec<ProjectPath> {
    names.iter().map(|name| ProjectPath::parse(name).unwrap()).collect()
}

pub(crate) fn identity(name: &str, email: &str) -> Identity {
    Identity::new(name, email).unwrap()
}

pub(crate) fn nothing_hidden(_: &ProjectPath) -> bool {
    false
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
