//! Directories that a job wrote: as deep as it liked, and some that nobody may enter.
//!
//! Whoever goes through them has a descriptor for each directory on the way and no more than [`DEPTH`] of them: nothing
//! that a job leaves takes the kernel's descriptors or its stack.

use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawDir, SeekFrom, chmod, fchmod, fstat, openat, renameat,
    seek, unlinkat,
};
use rustix::io::Errno;

/// How deep one goes, and how deep lies what is harvested unless less is wanted.
pub(crate) const DEPTH: usize = 128;

/// Dozens of entries at a time, and always room for one.
const LISTING: usize = 32 << 10;

/// The rights to see what is in a directory and what it is like.
pub(crate) const TO_LOOK: Mode = Mode::RUSR.union(Mode::XUSR);

const LISTED: OFlags = OFlags::RDONLY.union(PLACE);
const PLACE: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A directory that can be listed, and gone through until it is dropped.
pub(crate) struct Entered {
    directory: OwnedFd,
    /// The mode that it is given back, where nobody was to enter it.
    closed: Option<Mode>,
}

impl Entered {
    /// Enters a directory by its name. No link is followed.
    pub(crate) fn at(
        parent: BorrowedFd<'_>,
        name: &CStr,
        rights: Mode,
    ) -> rustix::io::Result<Self> {
        Self::of(openat(parent, name, PLACE | OFlags::PATH, Mode::empty())?.as_fd(), rights)
    }

    /// Enters a directory that is open somehow, with rights that one needs in it.
    pub(crate) fn of(place: BorrowedFd<'_>, rights: Mode) -> rustix::io::Result<Self> {
        // The way over this name leads to the directory itself, whatever becomes of its path.
        let path = format!("/proc/self/fd/{}", place.as_raw_fd());
        let mode = Mode::from_raw_mode(fstat(place)?.st_mode);
        let closed = (!mode.contains(rights)).then_some(mode);
        if closed.is_some() {
            chmod(&path, mode | rights)?;
        }
        let opened = openat(CWD, &path, LISTED.difference(OFlags::NOFOLLOW), Mode::empty());
        if let (Err(_), Some(mode)) = (&opened, closed) {
            let _kept = chmod(&path, mode);
        }
        Ok(Self { directory: opened?, closed })
    }

    /// What is in it: names, and whether it is a directory as far as the listing tells.
    pub(crate) fn entries(&self) -> rustix::io::Result<Vec<(CString, bool)>> {
        // From the beginning, however often it is asked.
        seek(&self.directory, SeekFrom::Start(0))?;
        let mut entries = Vec::new();
        let Ok(()) = list(&self.directory, |name, kind| {
            entries.push((name.to_owned(), kind == FileType::Directory));
            Ok::<_, Infallible>(())
        })?;
        Ok(entries)
    }
}

/// Tells the names in a directory, but its own and that of the one above, and what they are as far as the listing knows;
/// until whoever is told has a reason against it.
pub(crate) fn list<E>(
    directory: &OwnedFd,
    mut told: impl FnMut(&CStr, FileType) -> Result<(), E>,
) -> rustix::io::Result<Result<(), E>> {
    let mut buffer = Vec::with_capacity(LISTING);
    let mut listing = RawDir::new(directory, buffer.spare_capacity_mut());
    while let Some(entry) = listing.next() {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        if let Err(why) = told(name, entry.file_type()) {
            return Ok(Err(why));
        }
    }
    Ok(Ok(()))
}

impl AsFd for Entered {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(mode) = self.closed {
            // It may be gone, or a job has changed it again.
            let _kept = fchmod(&self.directory, mode);
        }
    }
}

/// Removes a directory that a job wrote to. Nobody writes to it any more.
pub fn remove_tree(top: &Path) -> io::Result<()> {
    let place = match openat(CWD, top, PLACE | OFlags::PATH, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        other => other?,
    };
    let entered = Entered::of(place.as_fd(), Mode::RWXU)?;
    let mut removal = Removal { top: &entered, moved: 0 };
    while removal.is_left()? {}
    match rustix::fs::rmdir(top) {
        Err(Errno::NOENT) => Ok(()),
        other => Ok(other?),
    }
}

struct Removal<'a> {
    top: &'a Entered,
    /// How many directories have been brought up to the top.
    moved: u64,
}

impl Removal<'_> {
    /// Empties the top; whether something was brought there meanwhile.
    fn is_left(&mut self) -> rustix::io::Result<bool> {
        let (top, before) = (self.top, self.moved);
        self.empty(top, 1)?;
        Ok(self.moved > before)
    }

    fn empty(&mut self, directory: &Entered, depth: usize) -> rustix::io::Result<()> {
        for (name, is_dir) in directory.entries()? {
            match self.remove(directory.as_fd(), &name, is_dir, depth) {
                // Somebody else removes it, too.
                Err(Errno::NOENT) => {}
                other => other?,
            }
        }
        Ok(())
    }

    fn remove(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &CStr,
        is_dir: bool,
        depth: usize,
    ) -> rustix::io::Result<()> {
        if !is_dir {
            match unlinkat(parent, name, AtFlags::empty()) {
                // Not every file system tells of directories when they are listed.
                Err(Errno::ISDIR | Errno::PERM) => {}
                other => return other,
            }
        }
        match Entered::at(parent, name, Mode::RWXU) {
            // Open, as a directory is changed itself when it gets another above it.
            Ok(_inner) if depth == DEPTH => return self.bring_up(parent, name),
            Ok(inner) => self.empty(&inner, depth + 1)?,
            // Somebody else's, such as what an overlay that an engine mounted works in: empty, it can go.
            Err(Errno::PERM | Errno::ACCESS) => {}
            Err(errno) => return Err(errno),
        }
        unlinkat(parent, name, AtFlags::REMOVEDIR)
    }

    /// Brings a directory up to the top, where it is removed later.
    fn bring_up(&mut self, parent: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<()> {
        loop {
            self.moved += 1;
            match renameat(parent, name, self.top, format!("moved-{}", self.moved)) {
                // What has this name is no empty directory.
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
                other => return other,
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make trees up")]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use rustix::fs::mkdirat;

    fn open(path: &Path) -> OwnedFd {
        openat(CWD, path, LISTED, Mode::empty()).unwrap()
    }

    #[test]
    fn a_tree_deeper_than_any_stack_and_any_number_of_descriptors_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let volume = dir.path().join("volume");
        // Names that what is brought up would like to have.
        fs::create_dir_all(volume.join("moved-1/inner")).unwrap();
        fs::create_dir(volume.join("moved-2")).unwrap();
        fs::write(volume.join("moved-3"), "a file").unwrap();
        let mut deepest = open(&volume);
        for number in 0..12_000 {
            mkdirat(&deepest, "d", Mode::RWXU).unwrap();
            let inner = openat(&deepest, "d", LISTED, Mode::empty()).unwrap();
            if number % 1_000 == 0 {
                fchmod(&deepest, Mode::empty()).unwrap();
            }
            deepest = inner;
        }
        drop(deepest);
        // What a job leaves is removed by threads, whose stacks are small.
        let small = std::thread::Builder::new().stack_size(256 << 10);
        small.spawn(move || remove_tree(&volume)).unwrap().join().unwrap().unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_closed_directory_is_closed_again_and_a_link_in_its_place_is_not_entered() {
        let dir = tempfile::tempdir().unwrap();
        let (closed, file) = (dir.path().join("closed"), dir.path().join("closed/file"));
        fs::create_dir(&closed).unwrap();
        fs::write(file, "seen").unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
        std::os::unix::fs::symlink(&closed, dir.path().join("link")).unwrap();
        let top = open(dir.path());
        let entered = Entered::at(top.as_fd(), c"closed", TO_LOOK).unwrap();
        assert_eq!(entered.entries().unwrap(), [(c"file".to_owned(), false)]);
        drop(entered);
        assert_eq!(fs::metadata(&closed).unwrap().permissions().mode() & 0o7777, 0);
        assert!(Entered::at(top.as_fd(), c"link", TO_LOOK).is_err());
        fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
    }
}
