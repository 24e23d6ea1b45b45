//! Commands that a model asked for.

use fluffy_kernel::{CommandError, CommandRun, Produced, WorkshopError};
use fluffy_sandbox::{End, Limit, RuntimeError, Template};

use crate::scene::{Scene, also_as_an_ordinary_user, line, path};

/// A script of the project: what it does is in a file, as it would be for a person.
fn scene(script: &str) -> Scene {
    Scene::new(&[("run", &format!("#!/bin/sh\n{script}\n")), ("a/b.txt", "b"), ("a/c.txt", "c")])
}

/// What a command left, as signs and names.
#[track_caller]
fn left(run: &CommandRun) -> Vec<String> {
    let taken = run.left.as_ref().unwrap();
    let sign = |produced: &Produced| match produced {
        Produced::File(at, _) => format!("+{at}"),
        Produced::Nothing(at) => format!("-{at}"),
    };
    taken.produced.iter().map(sign).collect()
}

#[test]
fn a_command_gets_its_words_as_they_are_and_its_end_is_told() {
    let scene = scene("printf '%s|' \"$@\"; echo err >&2; exit 7");
    let run = scene.run(&["./run", "a b", "$HOME; `id`", "*", ""]).unwrap();
    assert_eq!(run.stdout.text, "a b|$HOME; `id`|*||");
    assert_eq!((run.stderr.text.as_str(), &run.end), ("err\n", &End::Exited(7)));
    let listed = scene.command(&line(&["ls"], Some("a"), None), &[]).unwrap();
    assert_eq!(listed.stdout.text, "b.txt\nc.txt\n");
    let wrong = scene.command(&line(&["ls"], Some("no/such"), None), &[]);
    assert!(matches!(wrong, Err(CommandError::Directory(at)) if at == path("no/such")));
    let missing = scene.run(&["no-such-program"]).unwrap_err();
    let is_missing = |error: &CommandError| {
        matches!(
            error,
            CommandError::Workshop(WorkshopError::Runtime(RuntimeError::Program { .. }))
        )
    };
    assert!(is_missing(&missing), "{missing}");
}

#[test]
fn a_command_sees_the_processors_that_its_share_is_worth() {
    let run = scene("").run(&["nproc"]).unwrap();
    let seen: usize = run.stdout.text.trim().parse().unwrap();
    let share = usize::try_from(Template::CodeExecutor.limits().cpu.div_ceil(1_000)).unwrap();
    let all = std::thread::available_parallelism().unwrap().get();
    assert_eq!(seen, all.min(share + 1));
}

#[test]
fn what_a_command_leaves_is_produced_refused_or_skipped_by_name() {
    let scene = scene(
        "echo new > new.txt; rm -r a; mkdir a; echo x > a/x.txt; ln -s / way-out; mkfifo pipe
        mkdir -p deep/target deep/node_modules .git ignored __pycache__ src
        for d in deep/target deep/node_modules .git ignored __pycache__ src; do echo x > $d/file; done
        printf 'caf\\351' > src/latin; chmod u+s new.txt; rm gone-link; chmod +x src/latin",
    );
    std::os::unix::fs::symlink("a", scene.project().join("gone-link")).unwrap();
    let before = scene.snapshot();
    let run = scene.run(&["./run"]).unwrap();
    assert_eq!(run.end, End::Exited(0), "{}", run.stderr.text);
    assert_eq!(left(&run), ["-a/b.txt", "-a/c.txt", "+a/x.txt", "+src/file", "+src/latin"]);
    let taken = run.left.unwrap();
    let mut refused: Vec<_> = taken.refused.iter().map(|it| it.name.as_str()).collect();
    refused.sort_unstable();
    assert_eq!(refused, ["gone-link", "new.txt", "pipe", "way-out"]);
    let skipped: Vec<_> = taken.skipped.iter().map(ToString::to_string).collect();
    let expected = [".git", "__pycache__", "deep/node_modules", "deep/target", "ignored"];
    assert_eq!(skipped, expected);
    let latin = taken.produced.last().unwrap();
    assert_eq!(scene.content(latin), b"caf\xe9");
    assert!(matches!(latin, Produced::File(_, stored) if stored.executable));
    assert_eq!(scene.snapshot(), before);
}

#[test]
fn a_directory_that_was_moved_or_became_a_file_is_told_file_by_file() {
    let scene = scene("mv a moved");
    assert_eq!(
        left(&scene.run(&["./run"]).unwrap()),
        ["-a/b.txt", "-a/c.txt", "+moved/b.txt", "+moved/c.txt"]
    );
    let scene = self::scene("rm -r a; echo file > a");
    assert_eq!(left(&scene.run(&["./run"]).unwrap()), ["+a", "-a/b.txt", "-a/c.txt"]);
}

#[test]
fn limits_end_a_command_and_say_which() {
    let scene = scene("echo begun; sleep 100");
    let run = scene.command(&line(&["./run"], None, Some(300)), &[]).unwrap();
    assert_eq!((run.end, run.stdout.text.as_str()), (End::Limit(Limit::Duration), "begun\n"));
    let run = scene.run(&["yes"]).unwrap();
    assert_eq!(run.end, End::Limit(Limit::Captured));
    assert!(run.stdout.cut && run.stdout.text.len() < 20_000);
    assert!(run.stdout.text.contains("and more that was not kept"));
}

#[test]
fn lesson_l16_a_file_that_must_not_be_read_is_not_there() {
    let scene = Scene::new(&[(".env", "KEY=secret"), ("keys/a.pem", "secret"), ("ok.txt", "fine")]);
    scene.stage("keys/b.pem", "secret");
    let hidden = [".env", "keys/a.pem", "keys/b.pem"];
    let find = line(&["grep", "-rs", "", ".", ".env", "keys/b.pem"], None, None);
    let run = scene.command(&find, &hidden).unwrap();
    assert_eq!(run.stdout.text, "./ok.txt:fine\n");
    assert!(left(&run).is_empty());
    assert!(scene.command(&find, &[]).unwrap().stdout.text.contains("KEY=secret"));
    let cat = scene.command(&line(&["cat", ".env"], None, None), &hidden).unwrap();
    assert!(cat.stderr.text.contains("No such file or directory"), "{}", cat.stderr.text);
    // Its directory is as it was: new files can be made in it, and the hidden one can be written anew.
    let touch = line(&["touch", "keys/new", ".env"], None, None);
    let run = scene.command(&touch, &hidden).unwrap();
    assert_eq!(left(&run), ["+.env", "+keys/new"], "{}", run.stderr.text);
    let all = scene.command(&line(&["ls", "-A", "keys"], None, None), &["keys"]).unwrap();
    assert!(all.stderr.text.contains("No such file or directory"), "{}", all.stderr.text);
    also_as_an_ordinary_user("commands::lesson_l16_a_file_that_must_not_be_read_is_not_there");
}

#[test]
fn roots_kernel_lets_the_projects_owner_write_beside_hidden_files() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let scene = Scene::new(&[("keys/a.pem", "secret")]);
    for name in ["", "keys", "keys/a.pem"] {
        std::os::unix::fs::chown(scene.project().join(name), Some(12_345), Some(12_345)).unwrap();
    }
    let touch = line(&["touch", "keys/new"], None, None);
    let run = scene.command(&touch, &["keys/a.pem"]).unwrap();
    assert_eq!(left(&run), ["+keys/new"], "{}", run.stderr.text);
}

#[test]
fn nothing_of_the_host_is_seen_beside_the_project() {
    let scene =
        scene("ls ..; cat ../layer/x ../blobs/* 2>/dev/null; curl -s http://1.1.1.1; echo end");
    let run = scene.run(&["./run"]).unwrap();
    assert_eq!(run.stdout.text, "project\nend\n");
}
