//! What a commit holds, and what it leaves alone.

use fluffy_base::ProjectPath;
use fluffy_kernel::{GitError, IdentityOverrides, Message, Recorded};

use crate::scene::{Scene, committed, identity, paths};

#[test]
fn a_commit_holds_the_given_files_and_leaves_the_users_own_changes() {
    let scene = Scene::new();
    scene.sh("echo c >c; echo d >d; git add .; git commit -qm second
         echo staged >>a; git add a; echo unstaged >>a; echo unstaged >>b
         git rm -q --cached c; echo new >added; git add added; echo free >untracked");
    let (staged, unstaged) = (scene.sh("git diff --cached"), scene.sh("git diff"));
    scene.write("d", "ours\n");
    scene.write("src/new file", "ours\n");
    let before = scene.listing();
    let made = scene.commit(&["d", "src/new file"]);
    assert_eq!(made.changed, paths(&["d", "src/new file"]));
    assert_eq!((made.branch.as_deref(), made.identity_invented), (Some("main"), false));
    assert_eq!(scene.sh("git diff --cached"), staged);
    assert_eq!(scene.sh("git diff"), unstaged);
    assert_eq!(scene.sh("git show --format= --name-status HEAD"), "M\td\nA\tsrc/new file\n");
    let expected = ["index", "logs/HEAD", "logs/refs/heads/main", "refs/heads/main"];
    assert_eq!(scene.touched(&before), expected);
    for (name, (_, mode)) in scene.listing() {
        if name.starts_with("objects/") && !before.contains_key(&name) {
            assert_eq!(mode & 0o777, 0o444, "{name}");
        }
    }
    let log = scene.sh("git reflog -1; git log -1 --format='%an %ae %cn %at %cd %s'");
    assert!(log.contains("HEAD@{0}: commit: change things"), "{log}");
    assert!(
        log.ends_with(
            "Ann ann@example.org Ann 1700000000 Tue Nov 14 22:13:20 2023 +0000 change things\n"
        ),
        "{log}"
    );
}

#[test]
fn a_file_that_the_user_staged_otherwise_is_committed_as_it_is() {
    let scene = Scene::new();
    scene.sh("echo staged >>a; git add a; echo ours >a; echo keep >>b; git add b");
    scene.commit(&["a"]);
    assert_eq!(scene.sh("git show HEAD:a"), "ours\n");
    assert_eq!(scene.sh("git status --porcelain"), "M  b\n");
}

#[test]
fn deletions_modes_and_swapped_kinds_are_committed() {
    let scene = Scene::new();
    scene.sh("mkdir dir; echo x >dir/x; echo y >dir/y; git add .; git commit -qm second");
    scene.sh("rm a; mkdir a; echo new >a/inner; rm -r dir; echo file >dir; chmod +x b");
    scene.commit(&["a", "a/inner", "dir", "dir/x", "dir/y", "b"]);
    assert_eq!(scene.sh("git status --porcelain"), "");
    assert_eq!(
        scene.sh("git ls-tree -r HEAD | cut -d' ' -f1,3 | cut -f2; git ls-tree HEAD b | cut -c1-6"),
        "a/inner\nb\ndir\n100755\n"
    );
}

#[test]
fn names_are_names_whatever_they_look_like() {
    let scene = Scene::new();
    let names = [":(top)x", "-o", "--all", "*", "a b", "é/ü", "\"q\"", "$(id)", "#c", ":!b", "[x]"];
    for name in names {
        scene.write(name, "text\n");
    }
    scene.write("untouched", "text\n");
    let made = scene.commit(&names);
    assert_eq!(made.changed.len(), names.len());
    assert_eq!(scene.sh("git status --porcelain"), "?? untouched\n");
    assert_eq!(scene.sh("git ls-tree -rz HEAD | tr '\\0' '\\n' | wc -l"), "13\n");
}

#[test]
fn ignored_files_are_left_out_and_named() {
    let scene = Scene::new();
    scene.write(".gitignore", "*.log\nbuild/\n");
    scene.write("x.log", "x");
    scene.write("build/out", "x");
    scene.sh("echo x >known.log; git add -f known.log; git commit -qm known; echo y >known.log");
    let made = scene.commit(&["known.log", "x.log", ".gitignore", "build/out"]);
    assert_eq!(made.ignored, paths(&["x.log", "build/out"]));
    assert_eq!(made.changed, paths(&[".gitignore", "known.log"]));
    let nothing = Recorded::Nothing { ignored: paths(&["x.log"]) };
    let before = scene.listing();
    assert_eq!(scene.try_commit(&["x.log", "a"]).unwrap(), nothing);
    assert_eq!(scene.try_commit(&[]).unwrap(), Recorded::Nothing { ignored: Vec::new() });
    assert_eq!(scene.try_commit(&["gone"]).unwrap(), Recorded::Nothing { ignored: Vec::new() });
    assert_eq!(scene.touched(&before), [""; 0]);
    assert_eq!(before.len(), scene.listing().len());
}

#[test]
fn the_kernels_trailer_is_the_only_one() {
    let scene = Scene::new();
    for (number, text) in [
        "title\n\nfluffy-checkpoint : evil 1 x",
        "title\n\nbody\n\nSigned-off-by: A <a@b>\nFluffy-Checkpoint: evil\n  1 x",
        "title\n\nbody\n# ------------------------ >8 ------------------------\nmore",
        "title\n\nbody\n---\ndiff --git a/x b/x\n\nFluffy-\u{7}Checkpoint: evil",
        "title\n\nConflicts:\n\ta\n",
        "title: only\nFluffy-Checkpoint= evil",
    ]
    .into_iter()
    .enumerate()
    {
        scene.write("a", &number.to_string());
        let message = Message::new(text).unwrap();
        let made = committed(scene.try_commit_with(&["a"], |commit| {
            // The message lives as long as the test.
            commit.message = Box::leak(Box::new(message));
        }));
        scene.check(&made);
        let parsed = scene.sh("git log -1 --format=%B | git interpret-trailers --parse");
        assert_eq!(parsed.matches("Fluffy").count(), 1, "{parsed}");
        assert!(!scene.sh("git log -1 --format=%B").contains("evil"));
    }
}

#[test]
fn a_message_gets_its_trailer_where_git_would_put_it() {
    let scene = Scene::new();
    for text in [
        "t",
        "t: x",
        "t\n\nbody",
        "t\n\nbody\n\nChange-Id: x\nCc: y",
        "t\n\nx\nSigned-off-by: a",
        "t\n\nx\nCc: a",
    ] {
        scene.sh("date +%N >a");
        let message = Message::new(text).unwrap();
        scene.write("message", &format!("{message}\n"));
        let expected = scene.sh(&format!(
            "git interpret-trailers --no-divider --trailer '{}' message",
            crate::scene::TRAILER
        ));
        committed(
            scene.try_commit_with(&["a"], |commit| commit.message = Box::leak(Box::new(message))),
        );
        assert_eq!(scene.sh("git cat-file commit HEAD | sed '1,/^$/d'"), expected, "{text}");
    }
}

#[test]
fn a_commit_is_by_whom_is_configured() {
    let scene = Scene::new();
    let by = |change: &dyn Fn(&mut IdentityOverrides), author: Option<(&str, &str)>| {
        scene.sh("date +%N >a");
        let mut overrides = IdentityOverrides::default();
        change(&mut overrides);
        let author = author.map(|(name, email)| identity(name, email));
        let made = committed(scene.try_commit_with(&["a"], |commit| {
            commit.overrides = Box::leak(Box::new(overrides));
            commit.author = author.map(|author| &*Box::leak(Box::new(author)));
        }));
        let line = scene.sh("git log -1 --format='%an <%ae> %cn <%ce>'");
        (line.trim().to_owned(), made.identity_invented)
    };
    let known = |text: &str| (text.to_owned(), false);
    assert_eq!(by(&|_| (), None), known("Ann <ann@example.org> Ann <ann@example.org>"));
    let author = Some(("Bob\n<x>", "bob@b"));
    assert_eq!(by(&|_| (), author), known("Bobx <bob@b> Ann <ann@example.org>"));
    scene.sh("git config --unset user.name; git config author.email author@a");
    std::fs::write(scene.path("home/.gitconfig"), "[user]\nname = Global\nemail = g@g\n").unwrap();
    assert_eq!(by(&|_| (), None), known("Global <author@a> Global <ann@example.org>"));
    std::fs::create_dir_all(scene.path("home/.config/git")).unwrap();
    std::fs::rename(scene.path("home/.gitconfig"), scene.path("home/dotfile")).unwrap();
    std::os::unix::fs::symlink(scene.path("home/dotfile"), scene.path("home/.config/git/config"))
        .unwrap();
    assert_eq!(by(&|_| (), None), known("Global <author@a> Global <ann@example.org>"));
    let change = |overrides: &mut IdentityOverrides| {
        overrides.author_name = Some("Env".to_owned());
        overrides.committer_email = Some("env@e".to_owned());
    };
    assert_eq!(by(&change, None), known("Env <author@a> Global <env@e>"));
    scene.sh("git config --remove-section user; git config --remove-section author");
    std::fs::remove_file(scene.path("home/dotfile")).unwrap();
    let invented = "fluffy <fluffy@localhost> fluffy <fluffy@localhost>".to_owned();
    assert_eq!(by(&|_| (), None), (invented, true));
}

#[test]
fn locks_and_unfinished_merges_keep_the_repository_as_it_is() {
    let scene = Scene::new();
    scene.write("a", "changed\n");
    for lock in ["index.lock", "HEAD.lock", "refs/heads/main.lock"] {
        scene.write(&format!(".git/{lock}"), "");
        let before = scene.listing();
        let error = scene.try_commit(&["a"]).unwrap_err();
        assert!(matches!(&error, GitError::Locked(name) if name.ends_with(lock)), "{error}");
        assert!(error.fix().unwrap().contains("remove the lock"));
        assert_eq!(scene.touched(&before), [""; 0]);
        scene.sh(&format!("rm .git/{lock}; git fsck --strict --no-dangling; git status"));
    }
    for (name, words) in [("MERGE_HEAD", "a merge"), ("rebase-merge/x", "a rebase")] {
        scene.write(&format!(".git/{name}"), "x");
        let error = scene.try_commit(&["a"]).unwrap_err();
        assert!(matches!(error, GitError::UnderWay(what) if what == words), "{error}");
        scene.sh("rm -rf .git/MERGE_HEAD .git/rebase-merge");
    }
    scene.commit(&["a"]);
}

#[test]
fn a_hundred_files_are_one_commit() {
    let scene = Scene::new();
    let names: Vec<String> =
        (0..100).map(|number| format!("dir{}/file{number}", number % 7)).collect();
    for name in &names {
        scene.write(name, name);
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(scene.commit(&names).changed.len(), 100);
    assert_eq!(scene.sh("git status --porcelain"), "");
    let many: Vec<ProjectPath> =
        (0..10_001).map(|number| ProjectPath::parse(&format!("f{number}")).unwrap()).collect();
    let error = scene.try_commit_with(&[], |commit| commit.paths = Box::leak(many.into()));
    assert!(matches!(error, Err(GitError::TooMany(_))), "{error:?}");
}
