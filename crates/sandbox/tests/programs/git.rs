//! Git, from the first commit to a merge.

use crate::scene::Scene;

#[test]
fn git_commits_branches_and_merges() {
    let scene = Scene::new(&[("file", "one\n"), ("other", "other\n")]);
    let done = scene.works(
        "git config --global user.name Somebody; git config --global user.email some@body
         git init -q -b main .; git add .; git commit -qm first
         git switch -qc side; echo side > side; git add side; git commit -qm side
         git switch -q main; echo two >> file; git commit -qam second
         git merge -q --no-edit side; git status --porcelain
         git log --format=%s --topo-order | sort; git gc -q; git fsck 2>&1",
    );
    assert_eq!(done.out, "Merge branch 'side'\nfirst\nsecond\nside\n");
    assert!(!scene.project().join(".git").exists());
}

#[test]
fn git_works_on_a_repository_that_was_there_before() {
    let scene = Scene::new(&[("file", "one\n")]);
    let identity = ["-c", "user.name=a", "-c", "user.email=b"];
    for args in [&["init", "-qb", "main", "."][..], &["add", "."], &["commit", "-qm", "first"]] {
        let git = std::process::Command::new("git")
            .current_dir(scene.project())
            .args(identity)
            .args(args)
            .status();
        assert!(git.unwrap().success(), "{args:?}");
    }
    let done = scene.works(
        "echo two >> file; git diff --stat; git -c user.name=a -c user.email=b commit -qam second
         git log --format=%s; git stash list; git branch -q other; git worktree list | wc -l",
    );
    assert!(done.out.contains("1 file changed, 1 insertion(+)"), "{}", done.out);
    assert!(done.out.ends_with("second\nfirst\n1\n"), "{}", done.out);
    assert_eq!(std::fs::read_to_string(scene.project().join("file")).unwrap(), "one\n");
}
