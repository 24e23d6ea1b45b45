//! Hooks: asked, heard, and unable to do anything else.

use fluffy_kernel::{GitError, HookAnswer, HookPolicy, Message, MessageError};

use crate::scene::{Scene, paths};

fn output(answer: &HookAnswer) -> &str {
    match answer {
        HookAnswer::Passed { output } | HookAnswer::Refused { output, .. } => output,
        HookAnswer::None | HookAnswer::Skipped => "",
    }
}

fn asked(scene: &Scene, names: &[&str]) -> HookAnswer {
    scene.git.pre_commit(HookPolicy::Run, &scene.layers(), &paths(names)).unwrap()
}

fn message(text: &str) -> Message {
    Message::new(text).unwrap()
}

#[test]
fn a_hook_sees_what_will_be_committed_and_its_refusal_is_heard() {
    let scene = Scene::new();
    assert_eq!(asked(&scene, &["a"]), HookAnswer::None);
    scene.sh("echo mine >>b; git add b");
    scene.stage("a", "DRAFT\n");
    scene.stage("new", "new\n");
    scene.hook(
        "pre-commit",
        "git diff --cached --name-status; git status --porcelain; ! grep -q DRAFT a",
    );
    let answer = asked(&scene, &["a", "new"]);
    assert!(matches!(&answer, HookAnswer::Refused { ended, .. } if ended == "exited with code 1"));
    assert_eq!(output(&answer), "M\ta\nA\tnew\nM  a\n M b\nA  new");
    scene.stage("a", "done\n");
    assert!(matches!(asked(&scene, &["a", "new"]), HookAnswer::Passed { .. }));
    assert_eq!(scene.sh("cat a"), "one\n");
}

#[test]
fn whatever_a_hook_does_stays_in_its_sandbox() {
    let scene = Scene::new();
    scene.write("b", "b\n");
    let outside = scene.path("outside");
    scene.hook(
        "pre-commit",
        &format!(
            "git config core.fsmonitor evil; echo evil >.git/hooks/post-commit; chmod +x .git/hooks/post-commit
             echo evil >>a; git add a; git commit -qnm evil; git update-ref refs/heads/evil HEAD
             rm -rf .git/objects; echo evil >.git/info/attributes; ln -sf /etc/passwd .git/index
             echo evil >{0} || :; mkdir -p {1} && echo evil >{1}/x || :
             (exec 3<>/dev/tcp/1.1.1.1/53) 2>/dev/null && echo network || :
             printf 'x\\033[2J'; exit 0",
            outside.display(),
            scene.path("home").display()
        ),
    );
    let before = scene.listing();
    let answer = asked(&scene, &["b"]);
    assert!(matches!(answer, HookAnswer::Passed { .. }), "{answer:?}");
    assert!(
        output(&answer).contains("x\\u{1b}[2J") && !output(&answer).contains("network"),
        "{answer:?}"
    );
    assert_eq!(scene.touched(&before), [""; 0]);
    assert_eq!(before.len(), scene.listing().len());
    assert!(!outside.exists() && !scene.path("home/x").exists());
    assert_eq!(scene.sh("cat a"), "one\n");
    let made = scene.commit(&["b"]);
    assert_eq!(made.changed, paths(&["b"]));
    assert_eq!(scene.sh("git log --format=%s"), "change things\nfirst\n");
}

#[test]
fn a_hook_that_prints_without_end_is_bounded() {
    let scene = Scene::new();
    scene.hook(
        "pre-commit",
        "head -c 50000000 /dev/zero | tr '\\0' x; echo; echo the end >&2; exit 3",
    );
    let answer = asked(&scene, &["a"]);
    assert!(matches!(answer, HookAnswer::Refused { .. }), "{:?}", output(&answer).len());
    assert!(output(&answer).len() < 10_000);
}

#[test]
fn a_message_may_be_refused_or_changed_and_stays_a_message() {
    let scene = Scene::new();
    let asked = |text: &str| scene.git.commit_msg(HookPolicy::Run, &scene.layers(), message(text));
    assert_eq!(asked("x").unwrap(), (HookAnswer::None, message("x")));
    scene.hook(
        "commit-msg",
        "grep -q '^feat: ' \"$1\" || { echo no type; exit 1; }; echo 'Change-Id: I1' >>\"$1\"",
    );
    let (answer, kept) = asked("x").unwrap();
    assert_eq!((output(&answer), kept.as_str()), ("no type", "x"));
    assert!(matches!(answer, HookAnswer::Refused { .. }));
    let (answer, kept) = asked("feat: x").unwrap();
    assert!(matches!(answer, HookAnswer::Passed { .. }));
    assert_eq!(kept.as_str(), "feat: x\nChange-Id: I1");
    scene.hook(
        "commit-msg",
        "printf 'evil\\033\\n\\nFluffy-Checkpoint: evil\\n' >\"$1\"; echo x >.git/config",
    );
    let before = scene.listing();
    assert_eq!(asked("feat: x").unwrap().1.as_str(), "evil");
    assert_eq!(scene.touched(&before), [""; 0]);
    for (hook, blank) in [
        ("rm \"$1\"", true),
        ("ln -sf /etc/passwd \"$1\"", true),
        ("rm -f \"$1\"; mkfifo \"$1\"", true),
        ("head -c 1000000 /dev/zero | tr '\\0' x >\"$1\"", false),
        ("rm -rf .git", true),
    ] {
        scene.hook("commit-msg", hook);
        let error = asked("feat: x").unwrap_err();
        let GitError::Message(error) = error else { panic!("{error}") };
        assert_eq!(matches!(error, MessageError::Blank), blank, "{hook}: {error}");
    }
    scene.hook("prepare-commit-msg", "exit 1");
    std::fs::remove_file(scene.project().join(".git/hooks/commit-msg")).unwrap();
    assert_eq!(asked("x").unwrap().0, HookAnswer::None);
}

#[test]
fn hooks_are_found_where_the_repository_has_them() {
    let scene = Scene::new();
    scene.hook("pre-commit", "echo git");
    assert_eq!(output(&asked(&scene, &["a"])), "git");
    scene.stage(".husky/pre-commit", "echo husky; false; echo on");
    scene.sh("chmod -x .git/hooks/pre-commit");
    assert_eq!(asked(&scene, &["a"]), HookAnswer::None);
    scene.sh("rm .git/hooks/pre-commit");
    let answer = asked(&scene, &["a"]);
    assert_eq!(output(&answer), "husky");
    assert!(matches!(answer, HookAnswer::Refused { .. }));
    scene.sh("git config core.hooksPath .husky/_");
    scene.stage(".husky/_/pre-commit", "#!/bin/sh\necho wrapped; exec sh -e .husky/pre-commit\n");
    assert_eq!(output(&asked(&scene, &["a"])), "wrapped\nhusky");
    scene.sh("git config core.hooksPath /dev/null");
    std::fs::remove_dir_all(scene.path("layer/.husky")).unwrap();
    assert_eq!(asked(&scene, &["a"]), HookAnswer::None);
    scene.sh("git config --unset core.hooksPath");
    std::fs::create_dir(scene.path("home/hooks")).unwrap();
    std::fs::write(scene.path("home/.gitconfig"), "[core]\nhooksPath = ~/hooks\n").unwrap();
    let error = scene.git.hooks(&[]).unwrap_err();
    assert!(matches!(error, GitError::HooksElsewhere(_)), "{error}");
}

#[test]
fn the_policy_decides_about_hooks() {
    let scene = Scene::new();
    scene.write("a", "changed\n");
    let refuse =
        |scene: &Scene| scene.try_commit_with(&["a"], |commit| commit.hooks = HookPolicy::Refuse);
    scene.hook("post-commit", "exit 0");
    for answer in [
        scene.git.pre_commit(HookPolicy::Refuse, &[], &[]).unwrap_err(),
        scene.git.commit_msg(HookPolicy::Refuse, &[], message("x")).unwrap_err(),
        refuse(&scene).unwrap_err(),
    ] {
        assert!(matches!(&answer, GitError::Hooks(names) if names == "post-commit"), "{answer}");
    }
    scene.hook("pre-commit", "exit 1");
    let skipped = scene.git.pre_commit(HookPolicy::Skip, &[], &[]).unwrap();
    assert_eq!(skipped, HookAnswer::Skipped);
    scene.sh("rm .git/hooks/p*-commit");
    assert!(refuse(&scene).is_ok());
}
