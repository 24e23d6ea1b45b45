//! One file written, edited or deleted.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use fluffy_kernel::{Edit, Produced};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::scene::{Scene, Tools, also_as_an_ordinary_user, path};

fn write(at: &str, content: &str) -> Edit {
    Edit::Write { path: path(at), content: content.to_owned() }
}

fn replace(at: &str, old: &str, new: &str) -> Edit {
    Edit::Replace { path: path(at), old: old.to_owned(), new: new.to_owned(), all: false }
}

fn delete(at: &str) -> Edit {
    Edit::Delete { path: path(at) }
}

/// The edit gives this content at its path, and the project stays as it is.
#[track_caller]
fn gives(scene: &Scene, edit: &Edit, content: &[u8]) -> Produced {
    let before = scene.snapshot();
    let produced = scene.edit(edit).unwrap();
    assert_eq!(scene.content(&produced), content);
    assert!(matches!(&produced, Produced::File(at, _) if at == edit.path()));
    assert_eq!(scene.snapshot(), before);
    produced
}

#[track_caller]
fn refused(scene: &Scene, edit: &Edit, words: &str) {
    let before = scene.snapshot();
    let error = scene.edit(edit).unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
    assert_eq!(scene.snapshot(), before);
}

#[test]
fn a_file_is_written_edited_and_deleted_in_a_sandbox_and_the_project_stays() {
    let scene = Scene::new(&[("a.txt", "one two\n"), ("deep/b.txt", "b")]);
    gives(&scene, &write("a.txt", "new"), b"new");
    gives(&scene, &write("not/there/yet.txt", ""), b"");
    gives(&scene, &replace("a.txt", "two", "three"), b"one three\n");
    for file in ["a.txt", "deep/b.txt"] {
        assert_eq!(scene.edit(&delete(file)).unwrap(), Produced::Nothing(path(file)));
    }
    also_as_an_ordinary_user(
        "edits::a_file_is_written_edited_and_deleted_in_a_sandbox_and_the_project_stays",
    );
}

#[test]
fn the_sessions_layer_is_what_is_edited() {
    let scene = Scene::new(&[("a.txt", "old"), ("gone/x.txt", "x")]);
    scene.stage("a.txt", "staged");
    scene.stage("b.txt", "only staged");
    // The directory was deleted by the session.
    mknodat(CWD, scene.layer().join("gone"), FileType::CharacterDevice, Mode::empty(), 0).unwrap();
    gives(&scene, &replace("a.txt", "staged", "again"), b"again");
    assert_eq!(scene.edit(&delete("b.txt")).unwrap(), Produced::Nothing(path("b.txt")));
    refused(&scene, &delete("gone/x.txt"), "`gone/x.txt` cannot be deleted: it does not exist");
    gives(&scene, &write("gone/y.txt", "y"), b"y");
    assert_eq!(fs::read(scene.layer().join("a.txt")).unwrap(), b"staged");
}

#[test]
fn contents_are_kept_byte_for_byte() {
    let scene = Scene::new(&[("run", "#!/bin/sh\n")]);
    let large = "0123456789abcde\n".repeat(65_536);
    gives(&scene, &write("large", &large), large.as_bytes());
    let strange = "\0\u{1}\u{7f}\u{feff}\r\n\r\u{10ffff}";
    gives(&scene, &write("strange", strange), strange.as_bytes());
    gives(&scene, &write("grüße/日本語 €.txt", "ü"), "ü".as_bytes());
    let Produced::File(_, stored) = gives(&scene, &write("run", "#!/bin/bash\n"), b"#!/bin/bash\n")
    else {
        panic!("it is a file")
    };
    assert!(stored.executable, "a file that could be executed stays so");
    refused(&scene, &write("huge", &"x".repeat(9 << 20)), "it has more than 8388608 bytes");
}

#[test]
fn an_edit_that_does_not_fit_says_why() {
    let scene = Scene::new(&[("a.rs", "fn a() {\n\tb();\n\tb();\n}\n"), ("dos.txt", "a\r\nb\r\n")]);
    scene.write("latin.txt", b"caf\xe9");
    refused(&scene, &replace("a.rs", "b();", "c();"), "occurs 2 times");
    refused(&scene, &replace("a.rs", "c();", "d();"), "does not occur in it");
    let spaces = replace("a.rs", "fn a() {\n    b();", "fn a() {");
    refused(&scene, &spaces, "with other white space it would");
    refused(&scene, &replace("latin.txt", "caf", "tea"), "it is not UTF-8");
    gives(&scene, &write("latin.txt", "café"), "café".as_bytes());
    refused(&scene, &replace("no.txt", "a", "b"), "`no.txt` cannot be edited: it does not exist");
    refused(&scene, &delete("no/such.txt"), "it does not exist");
    gives(&scene, &replace("dos.txt", "a\nb", "x\ny"), b"x\r\ny\r\n");
    let all = Edit::Replace { path: path("a.rs"), old: "b".into(), new: "c".into(), all: true };
    gives(&scene, &all, b"fn a() {\n\tc();\n\tc();\n}\n");
}

#[test]
fn no_link_is_written_edited_deleted_or_passed_through() {
    let scene = Scene::new(&[("real/a.txt", "a"), ("b.txt", "b")]);
    for (top, suffix) in [(scene.project(), ""), (scene.layer(), "-staged")] {
        symlink("b.txt", top.join(format!("inside{suffix}"))).unwrap();
        symlink("/etc/passwd", top.join(format!("outside{suffix}"))).unwrap();
        symlink("../layer/planted", top.join(format!("dangling{suffix}"))).unwrap();
        symlink("real", top.join(format!("folder{suffix}"))).unwrap();
        symlink("/tmp", top.join(format!("tmp{suffix}"))).unwrap();
        symlink("/proc/self/cwd", top.join(format!("magic{suffix}"))).unwrap();
        for name in ["inside", "outside", "dangling", "folder/a.txt", "tmp/x", "magic/b.txt"] {
            let name = match name.split_once('/') {
                Some((head, tail)) => format!("{head}{suffix}/{tail}"),
                None => format!("{name}{suffix}"),
            };
            for edit in [write(&name, "evil"), replace(&name, "a", "evil"), delete(&name)] {
                refused(&scene, &edit, "links are not followed");
            }
        }
    }
    // The session replaced a directory of the project by a link.
    symlink("/tmp", scene.layer().join("real")).unwrap();
    refused(&scene, &write("real/a.txt", "evil"), "links are not followed");
}

#[test]
fn only_files_are_changed() {
    let scene = Scene::new(&[("dir/a.txt", "a"), ("file", "x")]);
    mknodat(CWD, scene.project().join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o644), 0)
        .unwrap();
    for edit in [write("dir", "x"), replace("dir", "a", "b"), delete("dir")] {
        refused(&scene, &edit, "it is a directory");
    }
    for edit in [write("pipe", "x"), replace("pipe", "a", "b"), delete("pipe")] {
        refused(&scene, &edit, "neither a file nor a directory");
    }
    refused(&scene, &write("file/below", "x"), "`file` is not a directory");
    let deep = ["d"; 70].join("/");
    refused(&scene, &write(&deep, "x"), "more than 64 directories deep");
}

#[test]
fn a_file_that_its_owner_may_not_write_is_not_written() {
    let scene = Scene::new(&[("locked", "x")]);
    let locked = scene.project().join("locked");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o444)).unwrap();
    refused(&scene, &write("locked", "y"), "`locked` cannot be written: Permission denied");
    assert_eq!(scene.edit(&delete("locked")).unwrap(), Produced::Nothing(path("locked")));
}

#[test]
fn a_workshop_that_was_closed_changes_nothing() {
    let scene = Scene::new(&[]);
    scene.workshop.close();
    refused(&scene, &write("a", "b"), "the task was cancelled");
}

#[test]
fn the_program_may_lie_in_the_project_that_it_changes() {
    let tools = Tools { at_home: true, ..Tools::default() };
    let scene = Scene::with(&[("a.txt", "a")], tools);
    let produced = scene.edit(&write("b/c.txt", "c")).unwrap();
    assert_eq!(scene.content(&produced), b"c");
    let produced = scene.edit(&replace("a.txt", "a", "b")).unwrap();
    assert_eq!(scene.content(&produced), b"b");
}
