//! Random volumes: the harvest never panics, is the same every time, and accounts for every entry.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use fluffy_sandbox::harvest::{Change, Kind};
use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode};

use crate::harvest::{gather, lines, volume};

#[derive(Debug, Clone)]
enum Thing {
    File(Vec<u8>, u32),
    Directory,
    Symlink(OsString),
    Fifo,
    Deletion,
    HardLink(usize),
}

fn name() -> impl Strategy<Value = OsString> {
    let short = prop::sample::select(vec!["a", "A", "b", "c", "a.", ".git", "\u{fb01}", "fi"]);
    prop_oneof![
        6 => short.prop_map(OsString::from),
        1 => prop::collection::vec(any::<u8>(), 1..12).prop_map(OsString::from_vec),
        1 => "\\PC{1,8}".prop_map(OsString::from),
    ]
    .prop_filter("a name", |name| {
        let bytes = name.as_bytes();
        !bytes.contains(&0) && !bytes.contains(&b'/') && bytes != b"." && bytes != b".."
    })
}

fn thing() -> impl Strategy<Value = Thing> {
    let content = prop::collection::vec(any::<u8>(), 0..40);
    let mode = prop::sample::select(vec![0o644, 0o755, 0o600, 0o4755, 0o2644, 0o1777]);
    let target = prop::sample::select(vec!["/", ".", "..", "a", "/etc/passwd", "../../.."]);
    prop_oneof![
        6 => (content, mode).prop_map(|(content, mode)| Thing::File(content, mode)),
        4 => Just(Thing::Directory),
        1 => target.prop_map(|target| Thing::Symlink(target.into())),
        1 => Just(Thing::Fifo),
        1 => Just(Thing::Deletion),
        1 => any::<usize>().prop_map(Thing::HardLink),
    ]
}

/// Puts everything somewhere; what does not fit where it should go is left out.
fn plant(root: &Path, things: &[(usize, OsString, Thing)]) -> BTreeMap<PathBuf, Thing> {
    let mut directories = vec![PathBuf::new()];
    let mut planted = BTreeMap::new();
    for (place, name, thing) in things {
        let path = directories[place % directories.len()].join(OsStr::from_bytes(name.as_bytes()));
        let at = root.join(&path);
        if planted.contains_key(&path) {
            continue;
        }
        let node = |kind| rustix::fs::mknodat(CWD, &at, kind, Mode::RUSR, 0).is_ok();
        let done = match thing {
            Thing::File(content, mode) => {
                fs::write(&at, content).is_ok()
                    && fs::set_permissions(&at, fs::Permissions::from_mode(*mode)).is_ok()
            }
            Thing::Directory => fs::create_dir(&at).is_ok(),
            Thing::Symlink(target) => symlink(target, &at).is_ok(),
            Thing::Fifo => node(FileType::Fifo),
            Thing::Deletion => node(FileType::CharacterDevice),
            Thing::HardLink(which) => {
                let all: Vec<&PathBuf> = planted.keys().collect();
                !all.is_empty() && fs::hard_link(root.join(all[which % all.len()]), &at).is_ok()
            }
        };
        if done {
            if matches!(thing, Thing::Directory) {
                directories.push(path.clone());
            }
            planted.insert(path, thing.clone());
        }
    }
    planted
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_random_volume_is_harvested_safely(
        things in prop::collection::vec((any::<usize>(), name(), thing()), 0..25),
        kind in prop::sample::select(vec![Kind::Overlay, Kind::Output]),
    ) {
        let volume = volume();
        let planted = plant(volume.path(), &things);
        let harvest = gather(volume.path(), kind).unwrap();
        prop_assert_eq!(lines(&harvest), lines(&gather(volume.path(), kind).unwrap()));
        for change in harvest.changes() {
            let path = Path::new(change.path().as_str());
            match (change, &planted[path]) {
                (Change::Write(file), Thing::File(content, mode)) => {
                    prop_assert_eq!(&harvest.read(file).unwrap(), content);
                    prop_assert_eq!(mode & 0o7000, 0);
                    prop_assert_eq!(file.executable(), mode & 0o100 != 0);
                }
                (Change::Delete(_), Thing::Deletion) => prop_assert_eq!(kind, Kind::Overlay),
                // A second name of a deletion is one too, as overlayfs itself makes them.
                (Change::Delete(_), Thing::HardLink(_)) => prop_assert_eq!(kind, Kind::Overlay),
                (change, thing) => prop_assert!(false, "{:?} from {:?}", change, thing),
            }
        }
        // Everything is there once: taken, refused, a directory, or beneath a refused directory.
        let directories = planted.values().filter(|thing| matches!(thing, Thing::Directory)).count();
        let told = harvest.changes().len() + harvest.refused().len();
        prop_assert!(told <= planted.len());
        if harvest.refused().is_empty() {
            prop_assert_eq!(told + directories, planted.len());
        }
    }
}
