//! What is copied of a project, and what never is.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

struct Scene {
    dir: TempDir,
}

impl Scene {
    /// A project of these files, beside a home with a key in it.
    fn new(files: &[&str]) -> Self {
        let scene = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir_all(scene.project()).unwrap();
        fs::write(scene.dir.path().join("key"), "PRIVATE").unwrap();
        for name in files {
            let at = scene.project().join(name);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(&at, name).unwrap();
        }
        scene
    }

    fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    /// Copies, and shows what came of it to `look`.
    fn copy<T>(&self, limits: CopyLimits, look: impl FnOnce(&Copied) -> T) -> Result<T, CopyError> {
        let tree = Arc::new(Tree::open(&self.project()).unwrap());
        let allowed = [".fluffy/skills/secrets.py"].map(|it| ProjectPath::parse(it).unwrap());
        let source = Source {
            tree: &tree,
            hidden: &|path| path.as_str().starts_with("hidden"),
            allowed: &allowed,
            limits,
        };
        let scratch = Scratch::open(&self.dir.path().join("builds")).unwrap();
        copy(&source, &scratch).map(|copied| look(&copied))
    }

    fn names(&self) -> (Vec<String>, Vec<(String, Unwanted)>) {
        self.copy(CopyLimits::default(), |copied| {
            for (path, was) in &copied.baseline {
                let at = copied.dir.join(path.as_str());
                let found = fs::symlink_metadata(&at).unwrap();
                assert!(found.is_file() && found.nlink() == 1, "{path}");
                assert_eq!(Digest::of(&fs::read(&at).unwrap()), was.sha256);
                let mode = if was.executable { 0o755 } else { 0o644 };
                assert_eq!(found.permissions().mode() & 0o7777, mode, "{path}");
            }
            let left_out = copied.left_out.iter().map(|(path, why)| (path.to_string(), *why));
            (copied.baseline.keys().map(ToString::to_string).collect(), left_out.collect())
        })
        .unwrap()
    }
}

#[test]
fn lesson_l29_neither_links_nor_secrets_are_copied() {
    let scene = Scene::new(&[
        "a.py",
        "d/b.py",
        ".ENV",
        ".npmrc",
        "d/secrets.yaml",
        "d/server.key",
        ".git/config",
        "node_modules/x/index.js",
        "mine/pyvenv.cfg",
        "mine/lib/x.py",
        "data.db",
        "hidden/x",
        ".docker/config.json",
        ".ssh/config",
    ]);
    let (project, key) = (scene.project(), scene.dir.path().join("key"));
    symlink(&key, project.join("link")).unwrap();
    symlink("a.py", project.join("inside")).unwrap();
    symlink(scene.dir.path(), project.join("d/out")).unwrap();
    fs::hard_link(&key, project.join("d/hard.txt")).unwrap();
    rustix_fifo(&project.join("pipe"));
    fs::set_permissions(project.join("a.py"), fs::Permissions::from_mode(0o6777)).unwrap();
    let (copied, left_out) = scene.names();
    assert_eq!(copied, ["a.py", "d/b.py"]);
    let expected = [
        (".ENV", Unwanted::Secret),
        (".docker", Unwanted::Secret),
        (".git", Unwanted::VersionControl),
        (".npmrc", Unwanted::Secret),
        (".ssh", Unwanted::Secret),
        ("d/hard.txt", Unwanted::HardLink),
        ("d/out", Unwanted::Link),
        ("d/secrets.yaml", Unwanted::Secret),
        ("d/server.key", Unwanted::Secret),
        ("data.db", Unwanted::Database),
        ("hidden", Unwanted::Hidden),
        ("inside", Unwanted::Link),
        ("link", Unwanted::Link),
        ("mine", Unwanted::Made),
        ("node_modules", Unwanted::Made),
        ("pipe", Unwanted::Special),
    ];
    assert_eq!(left_out, expected.map(|(path, why)| (path.to_owned(), why)));
}

/// A named pipe, as any program may leave one.
fn rustix_fifo(at: &Path) {
    let made = std::process::Command::new("mkfifo").arg(at).status().unwrap();
    assert!(made.success());
}

#[test]
fn what_the_builder_is_to_write_is_copied_whatever_it_is_called() {
    let scene = Scene::new(&[".fluffy/skills/secrets.py", ".fluffy/skills/secrets.yaml"]);
    assert_eq!(scene.names().0, [".fluffy/skills/secrets.py"]);
}

#[test]
fn lesson_l31_a_link_where_the_skill_belongs_stops_the_build_before_it_begins() {
    for at in [".fluffy", ".fluffy/skills", ".fluffy/skills/secrets.py"] {
        let scene = Scene::new(&["a"]);
        let at = scene.project().join(at);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(scene.dir.path(), &at).unwrap();
        let error = scene.copy(CopyLimits::default(), |_| ()).unwrap_err();
        assert!(matches!(error, CopyError::InTheWay { why: Unwanted::Link, .. }), "{error}");
    }
}

#[test]
fn the_repository_is_fresh_and_has_neither_hooks_nor_remotes() {
    let scene = Scene::new(&["a", ".git/hooks/pre-commit", ".git/config"]);
    scene
        .copy(CopyLimits::default(), |copied| {
            let config = fs::read_to_string(copied.dir.join(".git/config")).unwrap();
            assert!(config.starts_with("[core]") && !config.contains("remote"), "{config}");
            assert!(!copied.dir.join(".git/hooks").exists());
            assert!(copied.baseline.keys().all(|path| !path.as_str().starts_with(".git")));
        })
        .unwrap();
}

#[test]
fn a_project_that_is_too_large_is_refused_in_words_and_leaves_no_copy() {
    let scene = Scene::new(&["a", "b", "c"]);
    let two = CopyLimits { files: 2, ..CopyLimits::default() };
    let error = scene.copy(two, |_| ()).unwrap_err();
    assert!(error.to_string().contains("more than 2 files"), "{error}");
    let little = CopyLimits { total: ByteSize::from_bytes(2), ..CopyLimits::default() };
    assert!(matches!(scene.copy(little, |_| ()), Err(CopyError::TooMuch(_))));
    let small = CopyLimits { file: ByteSize::from_bytes(0), ..CopyLimits::default() };
    let left_out = scene.copy(small, |copied| copied.left_out.clone()).unwrap();
    assert!(left_out.len() == 3 && left_out.iter().all(|(_, why)| *why == Unwanted::Large));
    assert_eq!(fs::read_dir(scene.dir.path().join("builds")).unwrap().count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn hostile_names_neither_break_a_copy_nor_come_along(
        names in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 1..12)
    ) {
        let scene = Scene::new(&["a"]);
        for name in &names {
            // What no disk takes is not there.
            let _made = fs::write(scene.project().join(OsStr::from_bytes(name)), "x");
        }
        let (copied, _) = scene.names();
        prop_assert!(copied.contains(&"a".to_owned()));
        for name in copied {
            let path = ProjectPath::parse(&name).unwrap();
            prop_assert_eq!(path.as_str(), name);
        }
    }
}
