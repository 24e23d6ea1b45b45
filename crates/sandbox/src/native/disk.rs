//! How much lies in a directory that a job writes to while it runs.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};

/// What lies in a directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

/// Weighs a directory. No link is followed, and a file with several names counts once. What vanishes
/// meanwhile counts as nothing; a directory that cannot be read counts as itself.
pub(super) fn weigh(top: BorrowedFd<'_>) -> io::Result<Weight> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut weight = Weight::default();
    let mut linked = HashSet::new();
    let mut pending: Vec<OwnedFd> = vec![openat(top, ".", flags, Mode::empty())?];
    while let Some(directory) = pending.pop() {
        let Ok(entries) = Dir::read_from(&directory) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let Ok(found) = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let is_dir = FileType::from_raw_mode(found.st_mode).is_dir();
            if found.st_nlink > 1 && !is_dir && !linked.insert(found.st_ino) {
                continue;
            }
            weight.files += 1;
            weight.bytes += u64::try_from(found.st_blocks).unwrap_or(0) * 512;
            if is_dir && let Ok(inner) = openat(directory.as_fd(), name, flags, Mode::empty()) {
                pending.push(inner);
            }
        }
    }
    Ok(weight)
}
