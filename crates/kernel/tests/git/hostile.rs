//! What a repository, or a model that writes its files, could try while a commit is made.

use fluffy_kernel::{GitError, HookAnswer, HookPolicy};

use crate::scene::{Scene, committed, paths};

/// Every way of having git start a program that lies in the project; whatever runs kills git.
fn arm(scene: &Scene) {
    scene.write("evil", "#!/bin/sh\nkill -9 $PPID\n");
    scene.sh(
        "e=$PWD/evil
         for key in core.fsmonitor core.pager core.editor core.sshCommand core.gitProxy diff.external \
            filter.evil.clean filter.evil.process gpg.program gpg.ssh.program credential.helper \
            core.askPass alias.update-index alias.commit-tree sequence.editor; do git config $key \"$e\"; done
         git config commit.gpgSign true; git config filter.evil.required true
         git config core.bigFileThreshold 1; git config core.fsyncMethod batch; git config core.fsync all
         git config i18n.commitEncoding latin1; git config index.skipHash true",
    );
}

#[test]
fn nothing_that_the_repository_names_runs_where_a_commit_is_made() {
    let scene = Scene::new();
    arm(&scene);
    for hook in [
        "pre-commit",
        "prepare-commit-msg",
        "commit-msg",
        "post-commit",
        "post-index-change",
        "reference-transaction",
        "pre-auto-gc",
        "post-rewrite",
        "fsmonitor-watchman",
    ] {
        scene.hook(hook, "kill -9 $PPID");
    }
    scene.write("a", "changed é\n");
    let before = scene.listing();
    let made = committed(scene.try_commit(&["a"]));
    assert_eq!(made.changed, paths(&["a"]));
    let expected = ["index", "logs/HEAD", "logs/refs/heads/main", "refs/heads/main"];
    assert_eq!(scene.touched(&before), expected);
    assert_eq!(scene.sh("git config --unset core.fsmonitor; git fsck --strict --no-dangling"), "");
}

#[test]
fn the_traps_of_these_tests_are_real() {
    let scene = Scene::new();
    arm(&scene);
    scene.hook("pre-commit", "git status");
    let answer = scene.git.pre_commit(HookPolicy::Run, &[], &paths(&["b"])).unwrap();
    assert!(matches!(answer, HookAnswer::Refused { .. }), "{answer:?}");
}

#[test]
fn files_that_are_kept_through_a_filter_are_not_committed() {
    let scene = Scene::new();
    arm(&scene);
    scene.write(".gitattributes", "*.bin filter=evil\nother filter=lfs\nplain -filter\n");
    for name in ["x.bin", "other", "plain"] {
        scene.write(name, "x\n");
    }
    let before = scene.listing();
    for (name, filter) in [("x.bin", "evil"), ("other", "lfs")] {
        let error = scene.try_commit(&["a", name]).unwrap_err();
        assert!(matches!(&error, GitError::Filtered { driver, .. } if driver == filter), "{error}");
        assert_eq!(error.fix(), Some("commit these files yourself"));
    }
    assert_eq!(scene.touched(&before), [""; 0]);
    assert!(committed(scene.try_commit(&["plain", ".gitattributes"])).index_updated);
}

#[test]
fn programs_of_the_project_do_not_stand_in_for_git() {
    let scene = Scene::new();
    for name in ["git", "sh", "cat", "bin/git"] {
        scene.write(name, "#!/bin/sh\nkill -9 $PPID\n");
    }
    scene.write("a", "changed\n");
    scene.commit(&["a"]);
    scene.commit(&["git", "sh", "cat", "bin/git"]);
}

#[test]
fn a_link_in_the_project_is_committed_as_a_link_and_leads_nowhere() {
    let scene = Scene::new();
    scene.sh("mkdir real; echo x >real/x; git add .; git commit -qm real; ln -s /etc folder; rm a; ln -s /etc/passwd a");
    let error = scene.try_commit(&["folder/passwd"]).unwrap_err();
    assert!(matches!(error, GitError::Failed { .. }), "{error}");
    scene.commit(&["a"]);
    assert_eq!(scene.sh("git cat-file -p HEAD:a"), "/etc/passwd");
}

#[test]
fn the_repositorys_own_files_cannot_be_committed() {
    let scene = Scene::new();
    for name in [".git/config", ".git/hooks/x", "sub/.git/config", ".GIT/config"] {
        if !name.starts_with(".git/c") {
            scene.write(name, "x");
        }
        let before = scene.sh("git rev-parse HEAD");
        assert!(scene.try_commit(&[name]).is_err(), "{name}");
        assert_eq!(scene.sh("git rev-parse HEAD"), before, "{name}");
    }
}

#[test]
fn a_submodule_is_left_alone() {
    let scene = Scene::new();
    scene.sh("git init -q sub; cd sub; echo x >x; git add .; git -c user.name=a -c user.email=b commit -qm sub; cd ..; git add sub 2>/dev/null; git commit -qm sub; echo y >sub/x");
    assert!(scene.try_commit(&["sub/x"]).is_err());
    scene.write("a", "changed\n");
    scene.commit(&["a"]);
}
