//! Status, diff and log.

use fluffy_kernel::{GitError, GitPath, GitStatus};

use crate::scene::{Scene, nothing_hidden, paths};

fn lines(status: &GitStatus) -> Vec<String> {
    let changed = status.changed.iter();
    let line =
        changed.map(|one| format!("{}{} {}", one.staged.letter(), one.unstaged.letter(), one.path));
    line.collect()
}

#[test]
fn a_project_without_a_repository_says_so() {
    let scene = Scene::bare();
    assert!(matches!(scene.git.status(&[], &nothing_hidden), Err(GitError::NotARepository)));
    assert!(matches!(scene.git.diff(&[], None, &nothing_hidden), Err(GitError::NotARepository)));
    assert!(matches!(scene.git.log(None), Err(GitError::NotARepository)));
    assert!(matches!(scene.git.hooks(&[]), Err(GitError::NotARepository)));
    assert!(matches!(scene.try_commit(&["a"]), Err(GitError::NotARepository)));
}

#[test]
fn the_sessions_changes_are_seen_over_the_project() {
    let scene = Scene::new();
    scene.sh("echo mine >>b; git add b");
    scene.stage("a", "staged by the session\n");
    scene.stage("new/é", "new\n");
    scene.stage(".env", "KEY=1\n");
    let before = scene.listing();
    let hidden = |path: &fluffy_base::ProjectPath| path.as_str() == ".env";
    let status = scene.git.status(&scene.layers(), &hidden).unwrap();
    assert_eq!(lines(&status), [".M a", "M. b", ".? new/é"]);
    assert_eq!((status.branch.as_deref(), status.hidden, status.cut), (Some("main"), 1, false));
    let diff = scene.git.diff(&scene.layers(), None, &hidden).unwrap();
    assert!(diff.text.contains("-one\n+staged by the session\n"), "{}", diff.text);
    assert_eq!(diff.files, paths(&["a", "b"]));
    let diff = scene.git.diff(&scene.layers(), Some(&paths(&["b"])[0]), &hidden).unwrap();
    assert_eq!(diff.files, paths(&["b"]));
    assert_eq!(lines(&scene.git.status(&[], &hidden).unwrap()), ["M. b"]);
    assert_eq!(scene.touched(&before), [""; 0]);
}

#[test]
fn a_file_that_may_not_be_read_is_not_in_the_diff() {
    let scene = Scene::empty();
    scene.sh("echo SECRET=old >.env; echo x >a; git add .; git commit -qm first");
    scene.sh("echo SECRET=new >.env; echo y >a");
    let hidden = |path: &fluffy_base::ProjectPath| path.as_str() == ".env";
    for path in [None, Some(&paths(&[".env"])[0])] {
        let diff = scene.git.diff(&[], path, &hidden).unwrap();
        assert!(!diff.text.contains("SECRET"), "{}", diff.text);
        assert_eq!(diff.hidden, 1);
    }
    scene.sh("rm .env");
    assert!(!scene.git.diff(&[], None, &hidden).unwrap().text.contains("SECRET"));
}

#[test]
fn a_repository_without_a_commit_has_a_status_and_no_history() {
    let scene = Scene::empty();
    scene.write("a", "x");
    scene.sh("git add a");
    let status = scene.git.status(&[], &nothing_hidden).unwrap();
    assert!(status.is_unborn);
    assert_eq!(lines(&status), ["A. a"]);
    assert!(scene.git.diff(&[], None, &nothing_hidden).unwrap().text.contains("+x"));
    assert!(scene.git.log(None).unwrap().commits.is_empty());
}

#[test]
fn the_history_is_given_newest_first() {
    let scene = Scene::new();
    scene.sh("for i in 1 2 3; do git commit -qm \"commit $i\" --allow-empty; done");
    let log = scene.git.log(Some(2)).unwrap();
    let subjects: Vec<_> = log.commits.iter().map(|commit| commit.subject.as_str()).collect();
    assert_eq!(subjects, ["commit 3", "commit 2"]);
    assert_eq!(
        (log.commits[0].author.as_str(), log.commits[0].email.as_str()),
        ("Ann", "ann@example.org")
    );
    assert_eq!(scene.git.log(None).unwrap().commits.len(), 4);
}

#[test]
fn names_that_no_request_can_spell_are_escaped() {
    let scene = Scene::new();
    scene.sh("echo x >$'line\\nend'; echo x >$'\\xff'; echo x >'back\\slash'; git add -A; echo y >>$'line\\nend'");
    let status = scene.git.status(&[], &nothing_hidden).unwrap();
    assert_eq!(lines(&status), ["A. back\\slash", "AM line\\nend", "A. \\xff"]);
    assert!(status.changed.iter().all(|one| matches!(one.path, GitPath::Odd(_))));
    let diff = scene.git.diff(&[], None, &nothing_hidden).unwrap();
    assert_eq!((diff.text.as_str(), diff.odd.len()), ("", 3));
}

#[test]
fn a_long_diff_is_cut() {
    let scene = Scene::new();
    scene.write("a", &"a long line of text\n".repeat(10_000));
    let diff = scene.git.diff(&[], None, &nothing_hidden).unwrap();
    assert!(diff.cut && diff.text.len() <= 50 << 10, "{}", diff.text.len());
}

#[test]
fn nothing_that_the_repository_names_runs_when_it_is_read() {
    let scene = Scene::new();
    // Whatever runs kills git.
    scene.write("evil", "#!/bin/sh\nkill -9 $PPID\n");
    scene.write(".gitattributes", "* filter=evil diff=evil\n");
    scene.sh(
        "e=$PWD/evil
         for key in core.fsmonitor core.pager core.editor core.sshCommand diff.external diff.evil.textconv \
            diff.evil.command filter.evil.clean filter.evil.smudge filter.evil.process gpg.program \
            credential.helper alias.status alias.diff alias.log pager.status pager.diff core.askPass; do
            git config $key \"$e\"; done
         git config filter.evil.required true; git config log.showSignature true; git config color.ui always
         git config diff.noprefix true; git config core.hooksPath \"$PWD\"
         cp evil post-index-change",
    );
    scene.write("a", "changed\n");
    scene.write("b", "TWO\n");
    let status = scene.git.status(&[], &nothing_hidden).unwrap();
    assert!(lines(&status).contains(&".M a".to_owned()), "{status:?}");
    let diff = scene.git.diff(&[], None, &nothing_hidden).unwrap();
    assert!(diff.text.contains("+++ b/a\n@@ -1 +1 @@\n-one\n+changed\n"), "{}", diff.text);
    assert_eq!(scene.git.log(None).unwrap().commits.len(), 1);
}

#[test]
fn a_repository_that_lies_elsewhere_is_not_reached() {
    let scene = Scene::new();
    scene.sh("mv .git ../elsewhere; echo 'gitdir: ../elsewhere' >.git; git status >/dev/null");
    let error = scene.git.status(&[], &nothing_hidden).unwrap_err();
    assert!(matches!(error, GitError::Elsewhere), "{error}");
    assert!(error.fix().unwrap().contains("worktree"));
    assert!(matches!(scene.try_commit(&["a"]), Err(GitError::Elsewhere)));
    scene.sh("mv ../elsewhere .inside; echo 'gitdir: .inside' >.git; echo x >a; echo .inside >.gitignore");
    let status = scene.git.status(&[], &nothing_hidden).unwrap();
    assert_eq!(lines(&status), [".M a", ".? .gitignore"]);
    assert!(matches!(scene.try_commit(&["a"]), Err(GitError::Elsewhere)));
    scene.sh("rm .git; ln -s .inside .git");
    assert!(matches!(scene.try_commit(&["a"]), Err(GitError::Elsewhere)));
}
