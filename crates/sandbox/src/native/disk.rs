//! How much lies in a directory that a job writes to while it runs.

use std::collections::HashSet;
use std::ffi::CStr;
use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::fs::{AtFlags, FileType, statat};
use rustix::io::Errno;

use crate::tree::{DEPTH, Entered, TO_LOOK};

/// What lies in a directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

/// Whether no more lies in a directory than may. No link is followed, and a file with several names counts once. What
/// vanishes meanwhile counts as nothing; what a job keeps from being weighed is too much.
pub(super) fn fits(top: BorrowedFd<'_>, most: Weight) -> bool {
    let mut scales = Scales { most, weight: Weight::default(), linked: HashSet::new() };
    let weighed = Entered::of(top, TO_LOOK).and_then(|top| scales.weigh(&top, 1));
    match weighed {
        Ok(fits) => fits,
        // It is not the job that we lack something: it is weighed the next time.
        Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => true,
        Err(_) => false,
    }
}

struct Scales {
    most: Weight,
    weight: Weight,
    /// Files that were seen and have more than one name.
    linked: HashSet<u64>,
}

impl Scales {
    /// Whether it still fits with what is in this directory.
    fn weigh(&mut self, directory: &Entered, depth: usize) -> rustix::io::Result<bool> {
        for (name, _) in directory.entries()? {
            let found = match statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => continue,
                other => other?,
            };
            let is_dir = FileType::from_raw_mode(found.st_mode).is_dir();
            if found.st_nlink > 1 && !is_dir && !self.linked.insert(found.st_ino) {
                continue;
            }
            self.weight.files += 1;
            self.weight.bytes += u64::try_from(found.st_blocks).unwrap_or(0) * 512;
            if self.weight.files > self.most.files || self.weight.bytes > self.most.bytes {
                return Ok(false);
            }
            if is_dir && !self.weigh_inner(directory, &name, depth)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn weigh_inner(
        &mut self,
        directory: &Entered,
        name: &CStr,
        depth: usize,
    ) -> rustix::io::Result<bool> {
        match Entered::at(directory.as_fd(), name, TO_LOOK) {
            Ok(_) if depth == DEPTH => Ok(false),
            Ok(inner) => self.weigh(&inner, depth + 1),
            // It is gone, or something else is in its place.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(true),
            Err(errno) => Err(errno),
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make trees up")]
mod tests {
    use super::*;
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    const ROOM: u64 = 1 << 20;

    fn has_room(top: &Path, bytes: u64, files: u64) -> bool {
        fits(File::open(top).unwrap().as_fd(), Weight { bytes, files })
    }

    #[test]
    fn bytes_and_files_are_counted_once_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (inner, file) = (dir.path().join("inner"), dir.path().join("inner/file"));
        fs::create_dir(&inner).unwrap();
        fs::write(&file, vec![1; 64 << 10]).unwrap();
        fs::hard_link(&file, dir.path().join("again")).unwrap();
        std::os::unix::fs::symlink("/usr", dir.path().join("link")).unwrap();
        assert!(has_room(dir.path(), ROOM, 3));
        assert!(!has_room(dir.path(), ROOM, 2));
        assert!(!has_room(dir.path(), 63 << 10, 3));
    }

    #[test]
    fn what_lies_in_closed_directories_is_weighed() {
        let dir = tempfile::tempdir().unwrap();
        let closed = dir.path().join("closed");
        fs::create_dir_all(closed.join("inner")).unwrap();
        fs::write(closed.join("inner/file"), vec![1; 64 << 10]).unwrap();
        // Root enters whatever it likes, so this is for others.
        for path in [&closed.join("inner"), &closed, dir.path()] {
            fs::set_permissions(path, Permissions::from_mode(0o000)).unwrap();
        }
        fs::set_permissions(dir.path(), Permissions::from_mode(0o500)).unwrap();
        assert!(has_room(dir.path(), ROOM, 3));
        assert!(!has_room(dir.path(), 63 << 10, 3));
        fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
        assert_eq!(fs::metadata(&closed).unwrap().permissions().mode() & 0o777, 0);
        fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(closed.join("inner"), Permissions::from_mode(0o700)).unwrap();
    }

    #[test]
    fn what_is_too_deep_to_be_weighed_is_too_much() {
        let dir = tempfile::tempdir().unwrap();
        let deep = |levels: usize| dir.path().join(vec!["d"; levels].join("/"));
        fs::create_dir_all(deep(DEPTH - 1)).unwrap();
        assert!(has_room(dir.path(), ROOM, 1_000));
        fs::create_dir_all(deep(DEPTH)).unwrap();
        assert!(!has_room(dir.path(), ROOM, 1_000));
    }

    #[test]
    fn many_directories_beside_each_other_take_no_descriptors() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..3_000 {
            fs::create_dir(dir.path().join(number.to_string())).unwrap();
        }
        fs::write(dir.path().join("2999/file"), vec![1; 64 << 10]).unwrap();
        fs::write(dir.path().join("0/file"), vec![1; 64 << 10]).unwrap();
        let directories = 3_000 * 4096;
        assert!(has_room(dir.path(), directories + (128 << 10), 4_000));
        assert!(!has_room(dir.path(), directories + (128 << 10), 3_001));
    }
}
