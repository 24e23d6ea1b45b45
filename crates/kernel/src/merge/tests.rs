//! Merging on real directories.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::staging::tests::{Scene, path, snapshot, stage};
use crate::staging::{Base, Staging};

use super::*;

mod faults;

fn merge(scene: &Scene, staging: &Staging) -> Result<Merged, MergeError> {
    let plan = Plan::of(staging)?;
    carry_out(&plan, staging.tree(), &scene.session())
}

/// The files of a project with `x:` where they can be executed, and its empty directories.
fn listing(scene: &Scene) -> Vec<String> {
    let top = scene.project();
    let all = snapshot(&top);
    let mut lines = Vec::new();
    for (at, (mode, _, _, text)) in &all {
        let name = at.strip_prefix(&top).unwrap().display();
        if mode & 0o170_000 == 0o100_000 {
            lines.push(format!("{name}={}", String::from_utf8_lossy(text)));
            assert_eq!(mode & 0o100 != 0, text.starts_with(b"x:"), "{name}");
        } else if !all.keys().any(|other| other != at && other.starts_with(at)) {
            lines.push(format!("{name}/"));
        }
    }
    lines
}

#[test]
fn what_is_staged_comes_into_the_project() {
    let scene = Scene::new(&[
        ("same", "s"),
        ("edit", "old"),
        ("gone", "g"),
        ("d/e/last", "l"),
        ("d/keep", "k"),
        ("run", "x:"),
        ("swap", "file"),
        ("dir/a", "a"),
        ("dir/b/c", "c"),
    ]);
    fs::create_dir(scene.project().join("empty")).unwrap();
    let same = fs::metadata(scene.project().join("same")).unwrap().modified().unwrap();
    let mut staging = scene.staging();
    stage(&mut staging, &["+edit=new", "-gone", "-d/e/last", "+n/e/w=w", "+run=no longer"]);
    stage(&mut staging, &["+swap/inside/now=n", "+dir=a file", "+tool=x:tool"]);
    let merged = merge(&scene, &staging).unwrap();
    let expected = [
        "d/keep=k",
        "dir=a file",
        "edit=new",
        "empty/",
        "n/e/w=w",
        "run=no longer",
        "same=s",
        "swap/inside/now=n",
        "tool=x:tool",
    ];
    assert_eq!(listing(&scene), expected);
    assert!(merged.files.iter().all(|file| file.outcome == Outcome::Done));
    let kinds: Vec<_> =
        merged.files.iter().map(|file| format!("{:?} {}", file.kind, file.path)).collect();
    assert!(kinds.contains(&"Modified edit".to_owned()) && kinds.contains(&"Added dir".to_owned()));
    assert_eq!(fs::metadata(scene.project().join("same")).unwrap().modified().unwrap(), same);
    assert_eq!(recover(staging.tree(), &scene.session()).unwrap(), Recovered::Nothing);
    assert!(Plan::of(&staging).unwrap().operations().is_empty(), "everything is settled");
    staging.clear().unwrap();
    assert!(!stage(&mut staging, &["+edit=new"]));
}

#[test]
fn a_file_keeps_its_mode_but_for_the_right_to_execute() {
    let scene = Scene::new(&[("private", "p"), ("shared", "s"), ("run", "x:")]);
    let set = |name: &str, mode| {
        fs::set_permissions(scene.project().join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    set("private", 0o600);
    set("shared", 0o4664);
    set("run", 0o750);
    let mut staging = scene.staging();
    stage(&mut staging, &["+private=x:now", "+shared=text", "+run=text"]);
    merge(&scene, &staging).unwrap();
    let mode = |name: &str| {
        fs::metadata(scene.project().join(name)).unwrap().permissions().mode() & 0o7777
    };
    assert_eq!((mode("private"), mode("shared"), mode("run")), (0o700, 0o664, 0o640));
}

#[test]
fn changes_of_both_sides_are_joined_where_they_do_not_touch() {
    let scene = Scene::new(&[("a", "1\n2\n3\n4\n5\n"), ("b", "same\n"), ("run", "x:\n")]);
    let mut staging = scene.staging();
    stage(&mut staging, &["+a=1\n2\n3\n4\nours\n", "+b=agreed\n", "+run=x:\nmore\n"]);
    let before = Plan::of(&staging).unwrap();
    scene.user_writes("a", "theirs\n2\n3\n4\n5\n");
    scene.user_writes("b", "agreed\n");
    let run = scene.project().join("run");
    fs::set_permissions(run, fs::Permissions::from_mode(0o644)).unwrap();
    let plan = Plan::of(&staging).unwrap();
    assert_ne!(plan.digest(), before.digest(), "what was agreed to was something else");
    assert_eq!(plan.rebased(), [path("a"), path("run")]);
    assert_eq!(plan.settled(), [path("b")]);
    let shown = plan.diff(staging.blobs()).unwrap();
    assert!(shown.text().contains(" 4\n-5\n+ours\n") && !shown.text().contains("+theirs"));
    assert!(matches!(
        carry_out(&before, staging.tree(), &scene.session()),
        Err(MergeError::Changed(_))
    ));
    carry_out(&plan, staging.tree(), &scene.session()).unwrap();
    let text = |name: &str| fs::read_to_string(scene.project().join(name)).unwrap();
    assert_eq!(text("a"), "theirs\n2\n3\n4\nours\n");
    assert_eq!(text("run"), "x:\nmore\n");
    let mode = fs::metadata(scene.project().join("run")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644, "the user's change of the mode stays");
}

#[test]
fn a_conflict_keeps_both_versions_and_touches_nothing() {
    let scene =
        Scene::new(&[("a", "1\n"), ("b", "1\n"), ("c", "1\n"), ("bin", "\0"), ("ok", "1\n")]);
    let mut staging = scene.staging();
    stage(&mut staging, &["+a=ours\n", "-b", "+c=ours\n", "+bin=\0ours", "+ok=2\n", "+new=ours\n"]);
    scene.user_writes("a", "theirs\n");
    scene.user_writes("b", "theirs\n");
    fs::remove_file(scene.project().join("c")).unwrap();
    scene.user_writes("bin", "\0theirs");
    scene.user_writes("new", "theirs\n");
    let before = snapshot(&scene.project());
    let plan = Plan::of(&staging).unwrap();
    let names: Vec<_> = plan.conflicts().iter().map(|conflict| conflict.path.as_str()).collect();
    assert_eq!(names, ["a", "b", "bin", "c", "new"]);
    let shown = String::from_utf8(plan.conflicts()[0].shown.clone().unwrap()).unwrap();
    let expected =
        "<<<<<<< the project\ntheirs\n||||||| before\n1\n=======\nours\n>>>>>>> the session\n";
    assert_eq!(shown, expected);
    for conflict in plan.conflicts() {
        for side in [conflict.project, conflict.session, conflict.base] {
            if let Base::File(file) = side {
                staging.blobs().get(&file).unwrap();
            }
        }
    }
    let refused = carry_out(&plan, staging.tree(), &scene.session());
    assert!(matches!(refused, Err(MergeError::Conflicts(5))));
    assert_eq!(snapshot(&scene.project()), before, "not one byte and not one time");
    assert!(!scene.session().join("merge.log").exists());
}

#[test]
fn nothing_is_written_through_links_or_over_directories() {
    let scene = Scene::new(&[("d/x", "1"), ("f", "1"), ("e/y", "1")]);
    let outside = scene.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("x"), "1").unwrap();
    fs::write(outside.join("f"), "1").unwrap();
    let mut staging = scene.staging();
    stage(&mut staging, &["+d/x=2", "+f=2", "+new/file=n", "+e=a file"]);
    let refused = |change: &dyn Fn(), undo: &dyn Fn()| {
        let stale = Plan::of(&staging).unwrap();
        change();
        let before = snapshot(scene.dir.path());
        let error = Plan::of(&staging).unwrap_err().to_string();
        assert!(error.starts_with("nothing was merged because of"), "{error}");
        let late = carry_out(&stale, staging.tree(), &scene.session()).unwrap_err();
        assert!(matches!(late, MergeError::Changed(_)), "{late}");
        assert_eq!(snapshot(scene.dir.path()), before);
        undo();
    };
    let at = |name: &str| scene.project().join(name);
    let swap = |name: &str, to: &std::path::Path| {
        fs::rename(at(name), scene.dir.path().join("kept")).unwrap();
        symlink(to, at(name)).unwrap();
    };
    let back = |name: &str| {
        fs::remove_file(at(name)).unwrap();
        fs::rename(scene.dir.path().join("kept"), at(name)).unwrap();
    };
    refused(&|| swap("d", &outside), &|| back("d"));
    refused(&|| swap("f", &outside.join("f")), &|| back("f"));
    refused(&|| symlink(&outside, at("new")).unwrap(), &|| fs::remove_file(at("new")).unwrap());
    refused(&|| scene.user_writes("new", "a file"), &|| fs::remove_file(at("new")).unwrap());
    refused(&|| scene.user_writes("e/z", "mine"), &|| fs::remove_file(at("e/z")).unwrap());
    fs::remove_file(at("f")).unwrap();
    fs::create_dir(at("f")).unwrap();
    scene.user_writes("f/inside", "mine");
    let error = Plan::of(&staging).unwrap_err().to_string();
    assert!(error.contains("`f/inside`"), "{error}");
}

#[test]
fn a_digest_names_everything_that_would_be_done() {
    let scene = Scene::new(&[("a", "1"), ("b", "1")]);
    let digest = |words: &[&str]| {
        let mut staging = scene.staging();
        stage(&mut staging, words);
        Plan::of(&staging).unwrap().digest()
    };
    let digests = [
        digest(&["+a=2"]),
        digest(&["+b=2"]),
        digest(&["+a=3"]),
        digest(&["-a"]),
        digest(&["+a=x:"]),
        digest(&["+a=2", "+c=2"]),
        digest(&["+c=2"]),
    ];
    let different: std::collections::BTreeSet<_> =
        digests.iter().map(ToString::to_string).collect();
    assert_eq!(different.len(), digests.len());
    assert_eq!(digest(&["+a=2"]), digests[0]);
}

#[test]
fn a_log_that_somebody_else_wrote_is_not_followed() {
    let scene = Scene::new(&[("a", "1")]);
    let mut staging = scene.staging();
    stage(&mut staging, &["+a=2"]);
    let log = scene.session().join("merge.log");
    for text in ["{}\n", "{\"version\":1}\ndecided\n", "null\nundone\n", "[]\nnonsense"] {
        fs::write(&log, text).unwrap();
        let found = recover(staging.tree(), &scene.session());
        assert!(matches!(found, Err(MergeError::Damaged)), "{text}: {found:?}");
        assert!(merge(&scene, &staging).is_err());
    }
    for text in ["", "{\"version\":1,\"plan"] {
        fs::write(&log, text).unwrap();
        assert_eq!(recover(staging.tree(), &scene.session()).unwrap(), Recovered::Nothing);
    }
    merge(&scene, &staging).unwrap();
    assert_eq!(listing(&scene), ["a=2"]);
}
