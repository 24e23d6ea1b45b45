//! What reaches the project, and what does not.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use fluffy_kernel::{Left, LeftFile};
use tempfile::TempDir;

use super::super::compare::compare;
use super::*;

const SKILL: &str = ".fluffy/skills/write_note.py";
const TEST: &str = ".fluffy/skills/tests/test_write_note.py";
const SUPPORT: &str = ".fluffy/skills/support/settings.py";

fn path(text: &str) -> ProjectPath {
    ProjectPath::parse(text).unwrap()
}

/// A project with a support module, and a build that wrote skill and test.
struct Scene {
    dir: TempDir,
    files: Vec<Pinned>,
    patch: Patch,
    kept: BTreeMap<Digest, Vec<u8>>,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("project/.fluffy/skills/support");
        fs::create_dir_all(&project).unwrap();
        fs::write(project.join("settings.py"), "old").unwrap();
        let was = Was { sha256: Digest::of(b"old"), executable: false };
        let baseline = BTreeMap::from([(path(SUPPORT), was)]);
        let file = |name: &str| LeftFile {
            path: path(name),
            bytes: name.as_bytes().to_vec(),
            executable: false,
        };
        let left = Left { files: [SKILL, TEST].map(file).to_vec(), ..Left::default() };
        let patch = compare(&baseline, &left);
        let mut kept = BTreeMap::new();
        let mut pin = |name: &str, bytes: &[u8]| {
            let sha256 = Digest::of(bytes);
            kept.insert(sha256, bytes.to_vec());
            Pinned { path: path(name), sha256 }
        };
        let files =
            vec![pin(SUPPORT, b"old"), pin(TEST, TEST.as_bytes()), pin(SKILL, SKILL.as_bytes())];
        Self { dir, files, patch, kept }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join("project").join(name)
    }

    fn copy_back(&self) -> Result<Vec<String>, CopyBackError> {
        let tree = Arc::new(Tree::open(&self.dir.path().join("project")).unwrap());
        let bytes = |digest: &Digest| self.kept.get(digest).cloned().ok_or("gone".to_owned());
        let order = CopyBack {
            tree: &tree,
            dir: &self.dir.path().join("copy-back"),
            files: &self.files,
            patch: &self.patch,
            bytes: &bytes,
        };
        copy_back(&order).map(|paths| paths.iter().map(ToString::to_string).collect())
    }

    fn is_untouched(&self) -> bool {
        !self.at(SKILL).exists() && !self.at(TEST).exists()
    }
}

#[test]
fn verified_files_reach_the_project_once_and_nothing_stays_behind() {
    let scene = Scene::new();
    assert_eq!(scene.copy_back().unwrap(), [TEST, SKILL]);
    for name in [SKILL, TEST] {
        assert_eq!(fs::read_to_string(scene.at(name)).unwrap(), name);
        let mode = fs::metadata(scene.at(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0);
    }
    assert_eq!(fs::read_to_string(scene.at(SUPPORT)).unwrap(), "old");
    assert!(scene.copy_back().unwrap().is_empty());
    let left: Vec<_> = fs::read_dir(scene.dir.path().join("copy-back")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn one_that_was_interrupted_half_way_is_finished_by_calling_it_again() {
    let scene = Scene::new();
    fs::create_dir_all(scene.at(".fluffy/skills/tests")).unwrap();
    fs::write(scene.at(TEST), TEST).unwrap();
    assert_eq!(scene.copy_back().unwrap(), [SKILL]);
}

#[test]
fn what_a_person_changed_after_the_build_stays() {
    for name in [SKILL, TEST, SUPPORT] {
        let scene = Scene::new();
        let at = scene.at(name);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(&at, "mine").unwrap();
        let error = scene.copy_back().unwrap_err();
        assert!(matches!(&error, CopyBackError::Changed(path) if path.as_str() == name), "{error}");
        assert_eq!(fs::read_to_string(&at).unwrap(), "mine");
        assert_eq!(
            [SKILL, TEST].iter().filter(|it| **it != name && scene.at(it).exists()).count(),
            0
        );
    }
}

#[test]
fn lesson_l31_nothing_is_written_through_a_link() {
    for name in [SKILL, ".fluffy/skills/tests"] {
        let scene = Scene::new();
        let outside = scene.dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        let target = if name == SKILL { outside.join("file") } else { outside.clone() };
        symlink(target, scene.at(name)).unwrap();
        scene.copy_back().unwrap_err();
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{name}");
    }
    let scene = Scene::new();
    fs::rename(scene.at(".fluffy"), scene.dir.path().join("moved")).unwrap();
    symlink(scene.dir.path().join("moved"), scene.at(".fluffy")).unwrap();
    scene.copy_back().unwrap_err();
    assert!(!scene.dir.path().join("moved/skills/write_note.py").exists());
}

#[test]
fn bytes_that_are_lost_or_others_are_not_brought() {
    let mut scene = Scene::new();
    let skill = scene.files[2].sha256;
    scene.kept.insert(skill, b"other".to_vec());
    assert!(matches!(scene.copy_back(), Err(CopyBackError::Forged(_))));
    scene.kept.remove(&skill);
    assert!(matches!(scene.copy_back(), Err(CopyBackError::Lost { .. })));
    assert!(scene.is_untouched());
}
