//! A view against a real directory in which its changes were made.

#![expect(clippy::disallowed_methods, reason = "tests make the files they read")]

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;

use fluffy_base::ProjectPath;
use proptest::prelude::*;

use super::scene::{Scene, path, write};
use super::*;

fn names(walked: &Walked) -> Vec<&str> {
    walked.files.iter().map(ProjectPath::as_str).collect()
}

#[test]
fn a_staged_file_or_deletion_wins() {
    let scene = Scene::new().has("a", "old").has("b", "old").has("d/x", "1").has("d/y", "2");
    let view = scene.view(&[("a", Some("newer")), ("b", None), ("new/deep/c", Some(""))]);
    assert_eq!(view.read(&path("a"), 10).unwrap(), b"newer");
    assert!(matches!(view.look(&path("a")).unwrap(), Some(Found::File { bytes: 5, .. })));
    assert_eq!(view.look(&path("b")).unwrap(), None);
    assert!(matches!(view.open(&path("b")), Err(TreeError::Missing(_))));
    assert_eq!(view.look(&path("new/deep")).unwrap(), Some(Found::Directory));
    assert_eq!(view.look(&path("new/deep/c/x")).unwrap(), None);
    assert!(matches!(view.open(&path("new")), Err(TreeError::NotAFile(_))));
    assert!(matches!(view.list(Some(&path("a"))), Err(TreeError::NotADirectory(_))));
    assert!(matches!(view.list(Some(&path("b"))), Err(TreeError::Missing(_))));
    assert_eq!(names(&view.walk(None).unwrap()), ["a", "d/x", "d/y", "new/deep/c"]);
}

#[test]
fn a_directory_whose_files_are_all_deleted_is_a_directory() {
    let scene = Scene::new().has("d/x", "1").has("d/y", "2");
    let view = scene.view(&[("d/x", None), ("d/y", None)]);
    assert_eq!(view.look(&path("d")).unwrap(), Some(Found::Directory));
    assert_eq!(view.list(Some(&path("d"))).unwrap(), Listing::default());
    assert!(view.walk(None).unwrap().files.is_empty());
}

#[test]
fn a_file_larger_than_is_wanted_is_refused_and_not_cut() {
    let scene = Scene::new().has("a", "12345");
    let view = scene.view(&[("b", Some("12345"))]);
    for name in ["a", "b"] {
        assert_eq!(view.read(&path(name), 5).unwrap(), b"12345");
        assert!(matches!(view.read(&path(name), 4), Err(TreeError::Large { max: 4, .. })));
    }
}

#[test]
fn a_content_that_was_changed_on_disk_is_not_shown() {
    let scene = Scene::new();
    let view = scene.view(&[("a", Some("text"))]);
    let Some(Staged::File(stored)) = view.staged.get(&path("a")) else { panic!() };
    std::fs::write(scene.blobs.path(&stored.digest), "tExt").unwrap();
    assert!(matches!(view.open(&path("a")), Err(TreeError::Io { .. })));
}

#[test]
fn links_are_told_and_never_followed() {
    let scene = Scene::new().has("real/a", "x");
    symlink("real", scene.project().join("folder")).unwrap();
    symlink("/etc", scene.project().join("outside")).unwrap();
    symlink("real/a", scene.project().join("file")).unwrap();
    symlink(".", scene.project().join("real/loop")).unwrap();
    let view = scene.view(&[]);
    assert_eq!(names(&view.walk(None).unwrap()), ["real/a"]);
    assert_eq!(names(&view.all_files().unwrap()), ["real/a"]);
    let listing = view.list(None).unwrap();
    let kinds: Vec<_> = listing.entries.iter().map(|e| (e.path.as_str(), e.found)).collect();
    let expected = [
        ("file", Found::Link),
        ("folder", Found::Link),
        ("outside", Found::Link),
        ("real", Found::Directory),
    ];
    assert_eq!(kinds, expected);
    for name in ["folder", "outside", "outside/ssh", "real/loop"] {
        let error = view.walk(Some(&path(name))).unwrap_err();
        assert!(matches!(&error, TreeError::Link { target, .. } if !target.is_empty()), "{error}");
        assert!(matches!(view.list(Some(&path(name))), Err(TreeError::Link { .. })), "{name}");
    }
}

#[test]
fn a_directory_of_the_session_hides_a_link_of_the_project() {
    let scene = Scene::new().has("real/secret", "x");
    symlink("real", scene.project().join("d")).unwrap();
    let view = scene.view(&[("d/new", Some("1"))]);
    assert_eq!(view.look(&path("d")).unwrap(), Some(Found::Directory));
    assert_eq!(view.look(&path("d/secret")).unwrap(), None);
    assert!(matches!(view.open(&path("d/secret")), Err(TreeError::Missing(_))));
    assert_eq!(names(&view.walk(Some(&path("d"))).unwrap()), ["d/new"]);
}

#[test]
fn names_that_are_no_path_of_the_project_are_counted_and_left_out() {
    let scene = Scene::new().has("plain", "");
    let odd: [&[u8]; 6] =
        [b"not\xffutf8", "e\u{301}".as_bytes(), "a\u{200b}".as_bytes(), b"a\\b", b"~x", b"a\nb"];
    for name in odd {
        std::fs::write(scene.project().join(std::ffi::OsStr::from_bytes(name)), "x").unwrap();
    }
    let view = scene.view(&[]);
    assert_eq!(view.list(None).unwrap().unnamed, odd.len());
    let walked = view.all_files().unwrap();
    assert_eq!((names(&walked), walked.unnamed), (vec!["plain"], odd.len()));
}

#[test]
fn nothing_of_git_is_told_at_any_depth() {
    let scene = Scene::new().has(".git/config", "").has("sub/.git", "gitdir: x").has("sub/a", "");
    let view = scene.view(&[(".git/hooks/post-merge", Some("x"))]);
    for walked in [view.walk(None).unwrap(), view.all_files().unwrap()] {
        assert_eq!(names(&walked), ["sub/a"]);
    }
    assert_eq!(view.walk(Some(&path(".git"))).unwrap(), Walked::default());
    assert_eq!(view.walk(Some(&path(".git/hooks"))).unwrap(), Walked::default());
}

#[test]
fn ignore_files_count_as_the_view_shows_them() {
    let scene = Scene::new()
        .has(".gitignore", "*.log\n/target/\n")
        .has(".git/info/exclude", "mine\n")
        .has("a.log", "")
        .has("mine", "")
        .has("target/x", "")
        .has("src/target/y", "")
        .has(".hidden", "")
        .has("nested/.git/HEAD", "")
        .has("nested/b.log", "");
    let shown = [".gitignore", ".hidden", "nested/b.log", "src/target/y"];
    assert_eq!(names(&scene.view(&[]).walk(None).unwrap()), shown);
    let view = scene.view(&[(".gitignore", Some("src\n!a.log\n")), ("target/new", Some(""))]);
    let shown = [".gitignore", ".hidden", "a.log", "nested/b.log", "target/new", "target/x"];
    assert_eq!(names(&view.walk(None).unwrap()), shown);
    let view = scene.view(&[("target/new", Some(""))]);
    assert_eq!(names(&view.walk(Some(&path("target"))).unwrap()), ["target/new", "target/x"]);
    assert_eq!(view.all_files().unwrap().files.len(), 8);
}

#[test]
fn an_ignore_file_does_not_decide_how_long_a_walk_takes() {
    let costly: String = (0..2000).map(|n| format!("*{n}*x*\n")).collect();
    let rules = format!("first?\n{costly}last?\nname\n*.log\n");
    let scene = Scene::new().has(".gitignore", &rules).has("first1", "").has("last1", "");
    let scene = scene.has("name", "").has("a.log", "").has("d/.gitignore", "z?\n").has("d/z1", "");
    // Names and endings count all the same.
    let shown = [".gitignore", "d/.gitignore", "d/z1", "last1"];
    assert_eq!(names(&scene.view(&[]).walk(None).unwrap()), shown);
    let scene = scene.has(".gitignore", &"name\n".repeat(20_000));
    assert!(names(&scene.view(&[]).walk(None).unwrap()).contains(&"name"));
}

#[test]
fn a_directory_that_may_not_be_read_is_counted() {
    if rustix::process::geteuid().is_root() {
        // Root reads everything; the tests are also run as an ordinary user.
        return;
    }
    let scene = Scene::new().has("shut/a", "").has("b", "");
    let shut = scene.project().join("shut");
    std::fs::set_permissions(&shut, std::fs::Permissions::from_mode(0o000)).unwrap();
    let walked = scene.view(&[]).all_files().unwrap();
    let asked = scene.view(&[]).walk(Some(&path("shut")));
    std::fs::set_permissions(&shut, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!((names(&walked), walked.unreadable), (vec!["b"], 1));
    assert!(matches!(asked, Err(TreeError::Io { .. })));
}

#[test]
fn the_tests_of_a_project_are_found_in_its_view() {
    let scene = Scene::new()
        .has("Cargo.toml", "[workspace]\n")
        .has("crates/a/Cargo.toml", "[package]\nname = \"a\"\n")
        .has("web/package.json", "{}")
        .has("big/package.json", &" ".repeat(1024 * 1024 + 1));
    let test = r#"{"scripts": {"test": "jest"}}"#;
    let view = scene.view(&[("web/package.json", Some(test)), ("crates/a/Cargo.toml", None)]);
    let (files, texts) = view.manifests().unwrap();
    let names: Vec<_> = texts.keys().map(ProjectPath::as_str).collect();
    assert_eq!(names, ["Cargo.toml", "web/package.json"]);
    let project = fluffy_workflow::Project { files: &files, texts: &texts };
    let suites = fluffy_workflow::detect(&project);
    assert_eq!(suites.len(), 2, "{suites:?}");
}

#[test]
fn a_walk_while_files_come_and_go_does_not_fail() {
    let scene = Scene::new().has("stays/a", "");
    let view = scene.view(&[]);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                write(&scene.project(), "comes/and/goes", b"x");
                std::fs::remove_dir_all(scene.project().join("comes")).unwrap();
            }
        });
        for _ in 0..200 {
            let walked = view.walk(None);
            let listed = view.list(None);
            if walked.is_err() || listed.is_err() {
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            assert!(walked.unwrap().files.contains(&path("stays/a")));
            listed.unwrap();
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

/// What a random project holds at one path.
#[derive(Debug, Clone)]
enum Thing {
    File(String),
    Folder,
    Link(String),
}

fn place() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        4 => "[abc]",
        1 => Just("a.x".to_owned()),
        1 => Just("a-".to_owned()),
        1 => Just("ä".to_owned()),
        2 => Just(".gitignore".to_owned()),
        1 => Just(".git".to_owned()),
    ];
    prop::collection::vec(name, 1..4).prop_map(|parts| parts.join("/"))
}

fn text() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "a", "/b", "c/", "!a", "*.x", "a/**", "!c/", "b/c", "# a", "", "**/a", "ä", "\\!a", "[a-",
    ]);
    prop::collection::vec(line, 0..4).prop_map(|lines| lines.join("\n"))
}

fn thing() -> impl Strategy<Value = Thing> {
    prop_oneof![
        6 => text().prop_map(Thing::File),
        1 => Just(Thing::Folder),
        1 => prop::sample::select(vec!["a", "b/c", "../a", "/etc", "gone"])
            .prop_map(|target| Thing::Link(target.to_owned())),
    ]
}

/// Puts things where nothing is in their way.
fn build(root: &Path, things: &[(String, Thing)]) {
    for (name, thing) in things {
        let at = root.join(name);
        let blocked = std::iter::successors(Path::new(name).parent(), |above| above.parent())
            .any(|above| root.join(above).symlink_metadata().is_ok_and(|seen| !seen.is_dir()));
        if blocked || at.symlink_metadata().is_ok() {
            continue;
        }
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        match thing {
            Thing::File(text) => std::fs::write(at, text).unwrap(),
            Thing::Folder => std::fs::create_dir(at).unwrap(),
            // Git does not follow a link to an ignore file, and neither do we; the other walker does.
            Thing::Link(_) if name.ends_with(".gitignore") || name.ends_with(".git") => {}
            Thing::Link(target) => symlink(target, at).unwrap(),
        }
    }
}

fn clear(at: &Path) {
    if let Ok(seen) = at.symlink_metadata() {
        if seen.is_dir() {
            std::fs::remove_dir_all(at).unwrap();
        } else {
            std::fs::remove_file(at).unwrap();
        }
    }
}

fn leads_through_a_link(root: &Path, name: &str) -> bool {
    let mut above = Path::new(name).ancestors().skip(1).filter(|above| *above != Path::new(""));
    above.any(|above| root.join(above).is_symlink())
}

/// Makes the changes in a real directory: deletions first, then files.
fn apply(root: &Path, changes: &BTreeMap<String, Option<String>>) {
    for (name, _) in changes.iter().filter(|(_, text)| text.is_none()) {
        clear(&root.join(name));
    }
    let files: Vec<_> =
        changes.iter().filter_map(|(name, text)| text.as_ref().map(|text| (name, text))).collect();
    for (name, text) in &files {
        let beneath_a_file =
            files.iter().any(|(other, _)| Path::new(name).starts_with(other) && other != name);
        if beneath_a_file {
            continue;
        }
        for above in Path::new(name).ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
            let at = root.join(above);
            if at.symlink_metadata().is_ok_and(|seen| !seen.is_dir()) {
                clear(&at);
            }
        }
        clear(&root.join(name));
        write(root, name, text.as_bytes());
    }
}

/// What ripgrep's own walker finds in a real directory.
fn walked_by_others(root: &Path, obey: bool) -> Vec<String> {
    let mut builder = ignore::WalkBuilder::new(root);
    builder.standard_filters(false).git_ignore(obey).git_exclude(obey);
    builder.filter_entry(|entry| entry.file_name() != ".git");
    let files = builder.build().map(Result::unwrap);
    let files = files.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let name = |entry: ignore::DirEntry| {
        entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned()
    };
    let mut names: Vec<_> = files.map(name).collect();
    names.sort();
    names
}

fn compare(view: &View, truth: &Tree, name: &str) {
    let path = path(name);
    let seen = view.look(&path);
    let real = truth.look(&path);
    match (&seen, &real) {
        (Ok(seen), Ok(real)) => assert_eq!(seen, real, "look {name}"),
        (Err(TreeError::Link { .. }), Err(TreeError::Link { .. })) => {}
        _ => panic!("look {name}: {seen:?} {real:?}"),
    }
    let contents = |view: &View| view.read(&path, 1 << 20).map_err(|error| error.to_string());
    let plain = View::new(
        Arc::new(Tree::open(truth.path()).unwrap()),
        Arc::clone(&view.blobs),
        StagedFiles::default(),
    );
    assert_eq!(contents(view), contents(&plain), "read {name}");
    let list = |view: &View| view.list(Some(&path)).map_err(|error| error.to_string());
    assert_eq!(list(view), list(&plain), "list {name}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_view_is_the_project_with_the_changes_made_in_it(
        things in prop::collection::vec((place(), thing()), 0..14),
        changes in prop::collection::btree_map(place(), prop::option::weighted(0.7, text()), 0..8),
        asked in prop::collection::vec(place(), 8),
    ) {
        let scene = Scene::new();
        let copy = scene.dir.path().join("copy");
        std::fs::create_dir(&copy).unwrap();
        // The project is a repository, or else the other walker obeys nothing.
        std::fs::create_dir(copy.join(".git")).unwrap();
        std::fs::create_dir(scene.project().join(".git")).unwrap();
        build(&scene.project(), &things);
        build(&copy, &things);
        // No job can delete what lies behind a link: it deletes the file itself.
        let mut changes = changes;
        changes.retain(|name, _| !name.starts_with(".git/") && name != ".git");
        changes.retain(|name, text| text.is_some() || !leads_through_a_link(&copy, name));
        apply(&copy, &changes);
        let given: Vec<_> = changes.iter().map(|(name, text)| (name.as_str(), text.as_deref())).collect();
        let view = scene.view(&given);
        let truth = Tree::open(&copy).unwrap();
        let named = things.iter().map(|(name, _)| name).chain(changes.keys()).chain(&asked);
        for name in named {
            for above in Path::new(name).ancestors().filter(|above| !above.as_os_str().is_empty()) {
                compare(&view, &truth, above.to_str().unwrap());
            }
        }
        let plain = View::new(Arc::new(Tree::open(&copy).unwrap()), Arc::clone(&view.blobs), StagedFiles::default());
        assert_eq!(view.list(None).unwrap(), plain.list(None).unwrap());
        assert_eq!(names(&view.all_files().unwrap()), walked_by_others(&copy, false));
        assert_eq!(names(&view.walk(None).unwrap()), walked_by_others(&copy, true));
    }
}

#[test]
fn what_vanished_between_two_looks_has_changed_and_may_be_back() {
    let gone = || TreeError::Missing(path("d"));
    assert!(!gone().may_pass());
    assert!(gone().after_a_look().may_pass());
    assert!(TreeError::NotADirectory(path("d")).after_a_look().may_pass());
    assert!(!TreeError::TooMany(1).after_a_look().may_pass());
    let of = |errno: rustix::io::Errno| TreeError::Io { path: "a".into(), source: errno.into() };
    use rustix::io::Errno;
    for errno in [Errno::INTR, Errno::AGAIN, Errno::BUSY, Errno::STALE, Errno::MFILE] {
        assert!(of(errno).may_pass(), "{errno}");
    }
    for errno in [Errno::ACCESS, Errno::PERM, Errno::NAMETOOLONG, Errno::ISDIR] {
        assert!(!of(errno).may_pass(), "{errno}");
    }
}
