//! Staging on real directories.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};

use proptest::prelude::*;
use tempfile::TempDir;

use crate::files::Stored;

use super::*;

/// A project and a session's directory.
pub(crate) struct Scene {
    pub(crate) dir: TempDir,
}

impl Scene {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let scene = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(scene.project()).unwrap();
        fs::create_dir(scene.session()).unwrap();
        for (path, text) in files {
            scene.user_writes(path, text);
        }
        scene
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub(crate) fn session(&self) -> PathBuf {
        self.dir.path().join("session")
    }

    /// `x:` in front of a text makes it executable.
    pub(crate) fn user_writes(&self, path: &str, text: &str) {
        let at = self.project().join(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(&at, text).unwrap();
        let mode = if text.starts_with("x:") { 0o755 } else { 0o644 };
        fs::set_permissions(&at, fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn tree(&self) -> Arc<Tree> {
        Arc::new(Tree::open(&self.project()).unwrap())
    }

    pub(crate) fn staging(&self) -> Staging {
        Staging::open(&self.session(), self.tree()).unwrap()
    }
}

pub(crate) fn path(text: &str) -> ProjectPath {
    ProjectPath::parse(text).unwrap()
}

/// `+path=text` is a file, executable where the text starts with `x:`; `-path` is none.
pub(crate) fn produced(staging: &Staging, words: &[&str]) -> Vec<Produced> {
    let one = |word: &&str| match word.strip_prefix('-') {
        Some(gone) => Produced::Nothing(path(gone)),
        None => {
            let (name, text) = word.strip_prefix('+').unwrap().split_once('=').unwrap();
            let stored = staging.blobs().put(text.as_bytes(), text.starts_with("x:")).unwrap();
            Produced::File(path(name), stored)
        }
    };
    words.iter().map(one).collect()
}

/// Stages what is produced; says whether there was anything to stage.
pub(crate) fn stage(staging: &mut Staging, words: &[&str]) -> bool {
    let produced = produced(staging, words);
    match staging.prepare("request", &produced).unwrap() {
        None => false,
        Some(step) => {
            let kept = serde_json::to_string(&step).unwrap();
            staging.promote(serde_json::from_str(&kept).unwrap()).unwrap();
            true
        }
    }
}

fn refusal(staging: &Staging, words: &[&str]) -> String {
    staging.prepare("request", &produced(staging, words)).unwrap_err().to_string()
}

/// Everything staged, in the words of [`produced`].
fn staged(staging: &Staging) -> Vec<String> {
    let word = |(path, staged): (&ProjectPath, Staged)| match staged {
        Staged::Deleted => format!("-{path}"),
        Staged::File(stored) => format!("+{path}={}", text(staging, &stored)),
    };
    staging.files().iter().map(word).collect()
}

fn text(staging: &Staging, stored: &Stored) -> String {
    String::from_utf8(staging.blobs().get(stored).unwrap()).unwrap()
}

#[test]
fn what_the_session_sees_already_is_no_step() {
    let scene = Scene::new(&[("a", "old"), ("run", "x:")]);
    let mut staging = scene.staging();
    assert!(!stage(&mut staging, &["+a=old", "-gone", "+run=x:"]));
    assert!(stage(&mut staging, &["+a=new"]));
    assert!(!stage(&mut staging, &["+a=new"]));
    assert!(stage(&mut staging, &["-a"]));
    assert_eq!(staged(&staging), ["-a"]);
    assert!(stage(&mut staging, &["+a=old"]), "the session saw nothing there");
    assert!(staging.files().is_empty(), "and the project has it");
    assert_eq!(staging.steps().iter().map(|step| step.number).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn a_base_is_what_the_project_had_when_the_path_came_to_be_staged() {
    let scene = Scene::new(&[("a", "one")]);
    let mut staging = scene.staging();
    stage(&mut staging, &["+a=mine"]);
    let base = staging.base(&path("a")).unwrap();
    assert_eq!(text(&staging, &base.file().unwrap()), "one");
    scene.user_writes("a", "two");
    stage(&mut staging, &["+a=more"]);
    assert_eq!(staging.base(&path("a")), Some(base), "later steps keep it");
    stage(&mut staging, &["+a=one"]);
    assert_eq!(staging.base(&path("a")), None);
    stage(&mut staging, &["+a=again"]);
    let base = staging.base(&path("a")).unwrap();
    assert_eq!(text(&staging, &base.file().unwrap()), "two", "the session saw the user's text");
}

#[test]
fn a_file_takes_the_place_of_a_directory_and_a_directory_that_of_a_file() {
    let scene = Scene::new(&[("d/x", "1"), ("d/e/y", "2"), ("f", "3")]);
    let mut staging = scene.staging();
    stage(&mut staging, &["+d/new=n"]);
    stage(&mut staging, &["+d=file"]);
    assert_eq!(staged(&staging), ["+d=file", "-d/e/y", "-d/x"]);
    stage(&mut staging, &["+f/deep/g=g"]);
    assert_eq!(staged(&staging), ["+d=file", "-d/e/y", "-d/x", "-f", "+f/deep/g=g"]);
    stage(&mut staging, &["+d/x=1", "+f=3"]);
    assert_eq!(staged(&staging), ["-d/e/y"]);
    let text = refusal(&staging, &["+d=file", "+d/x=1"]);
    assert_eq!(text, "`d` cannot be a file while `d/x` is one");
}

#[test]
fn links_specials_and_the_version_control_are_left_alone() {
    let scene = Scene::new(&[("real/a", "a"), ("with/a", "a"), ("empty/a", "a")]);
    symlink("real", scene.project().join("link")).unwrap();
    symlink("/etc", scene.project().join("with/link")).unwrap();
    fs::create_dir(scene.project().join("empty/nothing")).unwrap();
    let staging = scene.staging();
    for words in [["+link=x"], ["-link"]] {
        let text = refusal(&staging, &words);
        assert!(text.starts_with("`link` is not a regular file in the project"), "{text}");
    }
    for words in [["+link/a=x"], ["-link/a"], ["+with/link/passwd=x"]] {
        let text = refusal(&staging, &words);
        assert!(text.contains("symbolic link") || text.contains("not a regular file"), "{text}");
    }
    for words in [["+with=x"], ["+empty=x"]] {
        let text = refusal(&staging, &words);
        assert!(text.ends_with("cannot give way to a file"), "{text}");
    }
    for words in [["+.git/hooks/pre-commit=x:"], ["+sub/.GIT/config=x"], ["-git~1/HEAD"]] {
        let text = refusal(&staging, &words);
        assert!(text.ends_with("belongs to the version control system"), "{text}");
    }
    assert!(!stage(&mut scene.staging(), &["-real"]), "a directory is no file to delete");
}

#[test]
fn a_step_that_was_made_of_another_state_is_refused() {
    let scene = Scene::new(&[("a", "0")]);
    let mut staging = scene.staging();
    let one = produced(&staging, &["+a=1"]);
    let one = staging.prepare("r1", &one).unwrap().unwrap();
    let two = produced(&staging, &["+a=2"]);
    let mut two = staging.prepare("r2", &two).unwrap().unwrap();
    staging.promote(one).unwrap();
    assert!(matches!(staging.promote(two.clone()), Err(StagingError::Stale(1))));
    two.number = 2;
    assert!(matches!(staging.promote(two), Err(StagingError::Stale(2))));
    assert_eq!(staged(&staging), ["+a=1"]);
}

#[test]
fn a_step_whose_contents_are_not_kept_is_refused() {
    let scene = Scene::new(&[]);
    let staging = scene.staging();
    let mut files = produced(&staging, &["+a=text"]);
    let [Produced::File(_, stored)] = files.as_mut_slice() else { panic!() };
    stored.bytes = 3;
    assert!(staging.prepare("r", &files).is_err());
    let digest = fluffy_base::Digest::of(b"never kept");
    let unknown = Stored { digest, bytes: 10, executable: false };
    let files = [Produced::File(path("a"), unknown)];
    assert!(matches!(staging.prepare("r", &files), Err(StagingError::Blob(_))));
}

#[test]
fn numbers_go_on_after_a_merge_and_after_going_back() {
    let scene = Scene::new(&[]);
    let mut staging = scene.staging();
    for text in ["+a=1", "+a=2", "+a=3"] {
        stage(&mut staging, &[text]);
    }
    staging.rewind_to(1).unwrap();
    assert_eq!(staged(&staging), ["+a=1"]);
    assert!(matches!(staging.rewind_to(2), Err(StagingError::Unknown(2))));
    stage(&mut staging, &["+a=4"]);
    assert_eq!(staging.steps().iter().map(|step| step.number).collect::<Vec<_>>(), [1, 4]);
    staging.clear().unwrap();
    assert!(staging.files().is_empty() && staging.steps().is_empty());
    stage(&mut staging, &["+a=5"]);
    assert_eq!(staging.steps()[0].number, 5);
    staging.rewind_to(4).unwrap();
    assert!(staging.files().is_empty());
    let mut again = scene.staging();
    again.continue_after(5);
    stage(&mut again, &["+a=6"]);
    assert_eq!(again.steps()[0].number, 6);
}

#[test]
fn a_layer_stands_as_long_as_somebody_holds_it() {
    let scene = Scene::new(&[("gone", "x")]);
    let mut staging = scene.staging();
    stage(&mut staging, &["+a=one", "+d/run=x:", "-gone"]);
    let layer = staging.layer();
    stage(&mut staging, &["+a=two"]);
    assert_eq!(fs::read(layer.path().join("a")).unwrap(), b"one");
    assert_eq!(fs::read(staging.layer().path().join("a")).unwrap(), b"two");
    let whiteout = fs::symlink_metadata(staging.layer().path().join("gone")).unwrap();
    assert!(whiteout.file_type().is_char_device());
    let mode = |name: &str| {
        let found = fs::metadata(staging.layer().path().join(name)).unwrap();
        found.permissions().mode() & 0o777
    };
    assert_eq!((mode("a"), mode("d"), mode("d/run")), (0o644, 0o755, 0o755));
    let at = layer.path().to_owned();
    drop(layer);
    assert!(!at.exists());
    let steps = staging.steps().to_vec();
    let restored = Staging::restore(&scene.session(), scene.tree(), steps).unwrap();
    drop(staging);
    assert_eq!(fs::read(restored.layer().path().join("a")).unwrap(), b"two");
    assert_eq!(fs::read_dir(scene.session().join("layer")).unwrap().count(), 1);
}

#[test]
fn a_layer_that_nobody_holds_takes_one_file_and_anything_else_is_a_new_one() {
    let scene = Scene::new(&[("gone", "x"), ("dir/one", "1")]);
    let mut staging = scene.staging();
    stage(&mut staging, &["+a=one", "+d/b=two"]);
    let same = |staging: &mut Staging, words: &[&str]| {
        let before = staging.layer().path().to_owned();
        assert!(stage(staging, words), "{words:?}");
        let fresh = fresh_layer(staging);
        assert_eq!(laid_out(staging.layer().path()), laid_out(fresh.path()), "{words:?}");
        before == staging.layer().path()
    };
    assert!(same(&mut staging, &["+a=other"]));
    assert!(same(&mut staging, &["+a=x:run"]));
    assert!(same(&mut staging, &["+d/c=beside"]));
    assert!(same(&mut staging, &["+new=on top"]));
    for words in [
        &["+e/f=in a new directory"][..],
        &["-gone"],
        &["+gone=there again"],
        &["-d/c"],
        &["+dir=a file"],
        &["+a=two", "+new=files"],
    ] {
        assert!(!same(&mut staging, words), "{words:?}");
    }
    let held = staging.layer();
    assert!(!same(&mut staging, &["+a=while it is held"]));
    assert_eq!(fs::read(held.path().join("a")).unwrap(), b"two");
    drop(held);
    assert_eq!(fs::read_dir(scene.session().join("layer")).unwrap().count(), 1);
}

#[test]
fn a_layer_that_cannot_take_a_file_stays_as_it_is() {
    let scene = Scene::new(&[]);
    let mut staging = scene.staging();
    stage(&mut staging, &["+a=one"]);
    let before = laid_out(staging.layer().path());
    let produced = produced(&staging, &["+a=two"]);
    let step = staging.prepare("request", &produced).unwrap().unwrap();
    let Produced::File(_, stored) = &produced[0] else { unreachable!() };
    fs::write(staging.blobs().path(&stored.digest), "three").unwrap();
    assert!(staging.promote(step).is_err());
    assert_eq!(laid_out(staging.layer().path()), before);
    assert_eq!(fs::read_dir(scene.session().join("layer")).unwrap().count(), 1);
}

/// The same files in a layer that was made at once.
fn fresh_layer(staging: &Staging) -> Layer {
    let top = staging.dir().join("layer");
    Layer::make(&top, staging.files(), None, staging.tree(), staging.blobs()).unwrap()
}

/// What a layer holds: kinds, modes and bytes.
fn laid_out(top: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let found = snapshot(top).into_iter();
    let inside = |at: PathBuf| at.strip_prefix(top).unwrap().to_owned();
    found.map(|(at, (mode, _, _, content))| (inside(at), (mode, content))).collect()
}

#[test]
fn nothing_that_staging_does_touches_the_project() {
    let scene = Scene::new(&[("a", "1"), ("d/b", "2"), ("d/c", "3")]);
    let before = snapshot(&scene.project());
    let mut staging = scene.staging();
    stage(&mut staging, &["+a=new", "-d/b", "+e/f/g=h"]);
    stage(&mut staging, &["+d=file"]);
    staging.diff().unwrap();
    staging.rewind_to(1).unwrap();
    staging.clear().unwrap();
    assert_eq!(snapshot(&scene.project()), before);
}

/// Every path with its mode, its time of change to the nanosecond, and its contents.
pub(crate) fn snapshot(top: &Path) -> BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)> {
    use std::os::unix::fs::MetadataExt as _;
    let mut found = BTreeMap::new();
    let mut pending = vec![top.to_owned()];
    while let Some(at) = pending.pop() {
        let stat = fs::symlink_metadata(&at).unwrap();
        let content = if stat.is_dir() {
            pending.extend(fs::read_dir(&at).unwrap().map(|entry| entry.unwrap().path()));
            Vec::new()
        } else if stat.is_file() {
            fs::read(&at).unwrap()
        } else {
            Vec::new()
        };
        found.insert(at, (stat.mode(), stat.mtime(), stat.mtime_nsec(), content));
    }
    found
}

const NAMES: [&str; 7] = ["a", "b", "d", "d/x", "d/e/y", "d/e", "b/z"];

fn any_step() -> impl Strategy<Value = Vec<(usize, Option<u8>)>> {
    proptest::collection::vec((0..NAMES.len(), proptest::option::of(0..4_u8)), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn going_back_to_any_step_gives_the_bytes_of_that_moment(
        steps in proptest::collection::vec(any_step(), 1..8),
        tree in proptest::collection::vec(0..NAMES.len(), 0..4),
    ) {
        let scene = Scene::new(&[]);
        for name in tree {
            let at = scene.project().join(NAMES[name]);
            if !at.exists() && at.parent().unwrap().is_dir() {
                fs::write(at, "base").unwrap();
            }
        }
        let mut staging = scene.staging();
        let mut moments = vec![(0, staged(&staging))];
        for words in &steps {
            let words: Vec<String> = words.iter().map(|(name, text)| match text {
                Some(text) => format!("+{}={text}", NAMES[*name]),
                None => format!("-{}", NAMES[*name]),
            }).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let files = produced(&staging, &words);
            // A file and something below it in one step is refused; everything else is fine.
            let Ok(step) = staging.prepare("r", &files) else { continue };
            if let Some(step) = step {
                staging.promote(step).unwrap();
                let number = staging.steps().last().unwrap().number;
                moments.push((number, staged(&staging)));
                let fresh = fresh_layer(&staging);
                prop_assert_eq!(laid_out(staging.layer().path()), laid_out(fresh.path()));
            }
        }
        let all = staging.steps().to_vec();
        for (number, expected) in moments.iter().rev() {
            staging.rewind_to(*number).unwrap();
            prop_assert_eq!(&staged(&staging), expected);
            let kept = all.iter().filter(|step| step.number <= *number).cloned();
            let again = Staging::restore(&scene.dir.path().join("session"), scene.tree(), kept).unwrap();
            prop_assert_eq!(&staged(&again), expected);
            prop_assert_eq!(again.diff().unwrap(), staging.diff().unwrap());
        }
    }
}

mod patches;
