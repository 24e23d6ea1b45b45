//! A commit that real git made in one copy of a repository is published into another, with a fault at every change.
#![expect(clippy::disallowed_methods, reason = "tests run git and change repositories")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::*;

/// A repository before a commit, and everything that the commit changes.
struct Scene {
    dir: TempDir,
    objects: Objects,
    commit: ObjectId,
    index: Vec<u8>,
}

/// How a change fails.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Once.
    Error,
    /// And everything after it, as if the kernel were gone.
    Crash,
}

fn git(dir: &Path, args: &[&str]) -> String {
    let out = Command::new("git")
        .current_dir(dir)
        .args(["-c", "user.name=a", "-c", "user.email=b@c"])
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .output()
        .unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

/// Every file below `.git` with its contents.
fn listing(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![dir.join(".git")];
    while let Some(at) = pending.pop() {
        for entry in std::fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().to_owned();
                found.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

impl Scene {
    fn new(prepare: &[&[&str]]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        std::fs::create_dir(&old).unwrap();
        git(&old, &["init", "-qb", "main"]);
        std::fs::write(old.join("a"), "one\n").unwrap();
        git(&old, &["add", "."]);
        git(&old, &["commit", "-qm", "first"]);
        for args in prepare {
            git(&old, args);
        }
        std::fs::write(old.join("a"), "staged by the user\n").unwrap();
        git(&old, &["add", "a"]);
        std::fs::create_dir(old.join("b")).unwrap();
        std::fs::write(old.join("b/c"), "ours\n").unwrap();
        copy(&old, &new);
        git(&new, &["add", "b/c"]);
        git(&new, &["commit", "-qm", "second", "--", "b/c"]);
        let commit = ObjectId::parse(git(&new, &["rev-parse", "HEAD"]).trim()).unwrap();
        let before = listing(&old);
        let mut objects = Objects::new();
        for (path, bytes) in listing(&new) {
            let Ok(place) = path.strip_prefix(".git/objects") else { continue };
            if !before.contains_key(&path) {
                let name = place.to_str().unwrap().replace('/', "");
                objects.insert(ObjectId::parse(&name).unwrap(), bytes);
            }
        }
        let index = std::fs::read(new.join(".git/index")).unwrap();
        Self { dir, objects, commit, index }
    }

    fn fresh(&self, name: &str) -> PathBuf {
        let to = self.dir.path().join(name);
        copy(&self.dir.path().join("old"), &to);
        to
    }

    fn publish(
        &self,
        project: &Path,
        gate: &dyn Fn(&'static str) -> io::Result<()>,
        meanwhile: &dyn Fn(),
    ) -> Result<Published, GitError> {
        let repository = Repository::open(project).unwrap();
        let head = repository.head().unwrap();
        let parent = repository.tip(&head).unwrap();
        let index_before = repository.index().unwrap();
        meanwhile();
        Store::new(&repository, gate).publish(&Publication {
            objects: &self.objects,
            commit: &self.commit,
            head: &head,
            parent: parent.as_ref(),
            index_before,
            index: &self.index,
            entry: "a <b@c> 5 +0000\tcommit: second",
            begins_logs: true,
        })
    }
}

fn check_valid(project: &Path, name: &str) {
    let strange = git(project, &["fsck", "--strict", "--no-dangling"]);
    assert_eq!(strange, "", "{name}");
    let status = git(project, &["status", "--porcelain"]);
    assert!(status.contains("M  a"), "{name}: {status}");
}

#[test]
fn a_commit_is_published_whole() {
    for prepare in ["status", "switch -qc feature/x", "checkout -q --detach"] {
        let args: Vec<&str> = prepare.split(' ').collect();
        let scene = Scene::new(&[&args]);
        let project = scene.fresh("whole");
        let before = listing(&project);
        let published = scene.publish(&project, &|_| Ok(()), &|| ()).unwrap();
        assert_eq!(published, Published::Whole);
        check_valid(&project, "whole");
        assert_eq!(git(&project, &["rev-parse", "HEAD"]).trim(), scene.commit.as_str());
        assert_eq!(git(&project, &["status", "--porcelain"]), "M  a\n");
        assert!(git(&project, &["reflog", "-1"]).contains("HEAD@{0}: commit: second"));
        let after = listing(&project);
        let touched: Vec<_> = after
            .iter()
            .filter(|(path, bytes)| before.get(*path) != Some(bytes))
            .map(|(path, _)| path.to_str().unwrap())
            .filter(|path| !path.starts_with(".git/objects/"))
            .collect();
        let expected = match prepare {
            "switch -qc feature/x" => {
                vec![
                    ".git/index",
                    ".git/logs/HEAD",
                    ".git/logs/refs/heads/feature/x",
                    ".git/refs/heads/feature/x",
                ]
            }
            "checkout -q --detach" => vec![".git/HEAD", ".git/index", ".git/logs/HEAD"],
            _main => {
                vec![
                    ".git/index",
                    ".git/logs/HEAD",
                    ".git/logs/refs/heads/main",
                    ".git/refs/heads/main",
                ]
            }
        };
        assert_eq!(touched, expected);
        assert!(before.keys().all(|path| after.contains_key(path)));
    }
}

#[test]
fn a_fault_at_any_change_leaves_a_valid_repository() {
    let scene = Scene::new(&[]);
    for fault in [Fault::Error, Fault::Crash] {
        for at in 0.. {
            let name = format!("{fault:?}-{at}");
            let project = scene.fresh(&name);
            let before = listing(&project);
            let count = Cell::new(0);
            let gate = |_: &'static str| {
                let now = count.replace(count.get() + 1);
                let fails = match fault {
                    Fault::Error => now == at,
                    Fault::Crash => now >= at,
                };
                if fails { Err(io::Error::other("injected")) } else { Ok(()) }
            };
            let result = scene.publish(&project, &gate, &|| ());
            check_valid(&project, &name);
            let moved = git(&project, &["rev-parse", "HEAD"]).trim() == scene.commit.as_str();
            assert_eq!(moved, result.is_ok(), "{name}");
            let after = listing(&project);
            let index = Path::new(".git/index");
            if !moved {
                assert_eq!(before[index], after[index], "{name}");
            }
            let locks = after.keys().filter(|path| path.extension().is_some_and(|x| x == "lock"));
            if matches!(fault, Fault::Error) && count.get() > at {
                // The one change that failed may have been the giving back of a lock.
                assert!(locks.count() <= usize::from(moved), "{name}");
            }
            std::fs::remove_dir_all(&project).unwrap();
            if count.get() <= at {
                assert!(at > 12, "{at} changes");
                assert!(matches!(result, Ok(Published::Whole)));
                break;
            }
        }
    }
}

#[test]
fn somebody_elses_lock_is_never_broken() {
    let scene = Scene::new(&[]);
    for lock in ["index.lock", "HEAD.lock", "refs/heads/main.lock"] {
        let project = scene.fresh(&lock.replace('/', "-"));
        std::fs::write(project.join(".git").join(lock), "mine").unwrap();
        let before = listing(&project);
        let error = scene.publish(&project, &|_| Ok(()), &|| ()).unwrap_err();
        assert_eq!(error.to_string(), format!("the lock `.git/{lock}` is there"));
        let mut after = listing(&project);
        after.retain(|path, _| before.contains_key(path) || !path.starts_with(".git/objects"));
        assert_eq!(before, after, "{lock}");
    }
}

#[test]
fn what_changed_meanwhile_is_not_overwritten() {
    let scene = Scene::new(&[]);
    for (name, args) in [
        ("branch", &["commit", "-qm", "mine", "--allow-empty"][..]),
        ("head", &["switch", "-qc", "third"]),
        ("index", &["rm", "-q", "--cached", "a"]),
        ("merge", &["update-ref", "refs/x", "HEAD"]),
    ] {
        let project = scene.fresh(name);
        let meanwhile = || {
            git(&project, args);
            if name == "merge" {
                std::fs::write(
                    project.join(".git/MERGE_HEAD"),
                    git(&project, &["rev-parse", "HEAD"]),
                )
                .unwrap();
            }
        };
        let error = scene.publish(&project, &|_| Ok(()), &meanwhile).unwrap_err();
        assert!(matches!(error, GitError::Moved(_) | GitError::UnderWay("a merge")), "{error}");
        assert_ne!(git(&project, &["rev-parse", "HEAD"]).trim(), scene.commit.as_str());
        assert!(
            !listing(&project).keys().any(|path| path.extension().is_some_and(|x| x == "lock"))
        );
    }
}

#[test]
fn a_link_in_the_way_is_not_followed() {
    let scene = Scene::new(&[]);
    for part in ["objects", "refs", "logs"] {
        let project = scene.fresh(&format!("link-{part}"));
        let elsewhere = project.with_extension("elsewhere");
        std::fs::rename(project.join(".git").join(part), &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, project.join(".git").join(part)).unwrap();
        let count = || Command::new("find").arg(&elsewhere).output().unwrap().stdout;
        let before = count();
        let repository = Repository::open(&project);
        if let Ok(repository) = repository {
            let head = repository.head().unwrap();
            if repository.tip(&head).is_ok() {
                assert!(scene.publish(&project, &|_| Ok(()), &|| ()).is_err(), "{part}");
            }
        }
        assert_eq!(before, count(), "{part}");
    }
}

#[test]
fn what_root_writes_belongs_to_whom_the_repository_belongs_to() {
    use std::os::unix::fs::MetadataExt as _;
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let scene = Scene::new(&[&["switch", "-qc", "feature/x"], &["pack-refs", "--all"]]);
    let project = scene.fresh("handed");
    std::fs::remove_dir_all(project.join(".git/logs")).unwrap();
    let given = Command::new("chown").args(["-R", "65534:65534"]).arg(&project).status().unwrap();
    assert!(given.success());
    assert_eq!(scene.publish(&project, &|_| Ok(()), &|| ()).unwrap(), Published::Whole);
    for path in listing(&project).keys() {
        for part in path.ancestors().filter(|part| part.starts_with(".git")) {
            let stat = std::fs::metadata(project.join(part)).unwrap();
            assert_eq!((stat.uid(), stat.gid()), (65534, 65534), "{}", part.display());
        }
    }
}
