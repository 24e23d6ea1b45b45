//! Kinds of repositories.

use fluffy_kernel::GitError;

use crate::scene::{Scene, nothing_hidden, paths};

#[test]
fn the_first_commit_of_a_repository_is_made() {
    let scene = Scene::empty();
    scene.write("a", "x\n");
    scene.sh("echo y >b; git add b");
    let made = scene.commit(&["a"]);
    assert_eq!(made.changed, paths(&["a"]));
    assert_eq!(scene.sh("git status --porcelain; git log --format=%s"), "A  b\nchange things\n");
    assert!(scene.sh("git reflog").contains("commit (initial): change things"));
    assert_eq!(scene.sh("git rev-list --count HEAD"), "1\n");
    scene.write("a", "y\n");
    scene.commit(&["a"]);
    assert_eq!(scene.sh("git rev-list --count HEAD"), "2\n");
}

#[test]
fn a_repository_that_nobody_added_to_has_no_index_yet() {
    let scene = Scene::empty();
    scene.write("a", "x\n");
    assert!(!scene.project().join(".git/index").exists());
    scene.commit(&["a"]);
    assert_eq!(scene.sh("git status --porcelain"), "");
}

#[test]
fn branches_with_slashes_packed_refs_and_no_branch_at_all_are_committed_to() {
    let scene = Scene::new();
    for prepare in [
        "git switch -qc feature/deep/one",
        "git switch -qc packed/two; git pack-refs --all; mkdir -p .git/refs/heads/packed/two",
        "git gc -q --prune=now",
        "git checkout -q --detach",
        "git switch -q main; git config core.logAllRefUpdates false; rm -r .git/logs",
        "git update-index --split-index",
        "git update-index --index-version 4",
        "git sparse-checkout set --cone nothing; git sparse-checkout disable",
    ] {
        scene.sh(prepare);
        let branch = scene.sh("git branch --show-current").trim().to_owned();
        let parent = scene.sh("git rev-parse HEAD");
        scene.sh("date +%N >a");
        let made = scene.commit(&["a"]);
        assert_eq!(made.branch.unwrap_or_default(), branch, "{prepare}");
        assert_eq!(scene.sh("git rev-parse HEAD^"), parent, "{prepare}");
        assert_eq!(scene.sh("git status --porcelain"), "", "{prepare}");
        assert_eq!(
            scene.project().join(".git/logs").exists(),
            scene.sh("git config core.logAllRefUpdates || :").trim() != "false"
        );
    }
}

#[test]
fn a_repository_of_long_names_is_committed_to() {
    let scene = Scene::bare();
    scene.sh("git init -q --object-format=sha256 -b main; echo x >a; git add .; git -c user.name=x -c user.email=y commit -qm first");
    scene.write("a", "y\n");
    scene.write("b/c", "z\n");
    assert_eq!(scene.commit(&["a", "b/c"]).id.as_str().len(), 64);
    assert_eq!(scene.git.log(None).unwrap().commits.len(), 2);
    assert_eq!(scene.sh("git status --porcelain"), "");
}

#[test]
fn objects_that_lie_in_another_repository_are_found() {
    let scene = Scene::new();
    scene.sh("git clone -q --shared . ../clone; cd ..; mv project base; mv clone project; sed -i s,/project/,/base/, project/.git/objects/info/alternates");
    scene.write("a", "changed\n");
    assert_eq!(scene.git.status(&[], &nothing_hidden).unwrap().changed.len(), 1);
    assert_eq!(scene.git.log(None).unwrap().commits.len(), 1);
    let made = scene.commit(&["a"]);
    assert!(made.identity_invented);
}

#[test]
fn repositories_that_cannot_be_written_safely_are_refused() {
    let scene = Scene::bare();
    scene.sh("git init -q --ref-format=reftable; echo x >a");
    let error = scene.try_commit(&["a"]).unwrap_err();
    assert!(matches!(error, GitError::Unsupported(_)), "{error}");
    assert!(error.fix().is_some());
    assert_eq!(scene.git.status(&[], &nothing_hidden).unwrap().changed.len(), 1);
    let scene = Scene::new();
    scene.sh("git worktree add -q ../linked; cd ..; mv project main; mv linked project; echo x >project/a");
    assert!(matches!(scene.try_commit(&["a"]), Err(GitError::Elsewhere)));
    let scene = Scene::new();
    scene.sh("git worktree add -q ../linked; echo x >a");
    scene.commit(&["a"]);
    for head in
        ["ref: refs/heads/../../x", "ref: refs/tags/x", "ref: refs/heads/.invalid", "nonsense"]
    {
        scene.write(".git/HEAD", head);
        assert!(matches!(scene.try_commit(&["a"]), Err(GitError::Unsupported(_))), "{head}");
    }
}

#[test]
fn line_ends_are_committed_as_the_repository_says() {
    let scene = Scene::new();
    scene.write(".gitattributes", "*.txt text eol=crlf\n");
    scene.write("x.txt", "one\r\ntwo\r\n");
    scene.commit(&[".gitattributes", "x.txt"]);
    assert_eq!(scene.sh("git cat-file -p HEAD:x.txt | od -c | grep -c 'r' || :"), "0\n");
    assert_eq!(scene.sh("git status --porcelain"), "");
}
