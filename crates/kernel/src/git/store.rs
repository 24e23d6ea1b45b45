//! Writes a finished commit into the project's `.git`: the one place that does.
//!
//! Objects come first, which nobody notices; then, with every lock of git's taken and everything compared with what
//! the commit was made from, the branch moves, and then the index. Whoever stops in between leaves a valid
//! repository: objects that nobody needs, or a commit whose index is a step behind.
//!
//! **Invariant.** What changed since the commit was made is never overwritten: branch, `HEAD` and index are compared
//! under their locks, and no lock of somebody else's is broken.
//!
//! **Invariant.** Nothing is written but objects, one branch or `HEAD`, the index and lines of the reflog, each by a
//! handle beneath `.git`.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;

use fluffy_base::Digest;
use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, Uid, fchown, fstat, fsync, mkdirat, openat2, renameat, unlinkat,
};
use rustix::io::Errno;

use super::object::Objects;
use super::repository::{CONFINED, Head, Repository};
use super::{GitError, ObjectId};

/// Everything that one commit changes, and what it was made from.
#[derive(Debug)]
pub(super) struct Publication<'a> {
    /// The new objects, checked.
    pub(super) objects: &'a Objects,
    /// The commit.
    pub(super) commit: &'a ObjectId,
    /// What `HEAD` said.
    pub(super) head: &'a Head,
    /// The commit that was on top.
    pub(super) parent: Option<&'a ObjectId>,
    /// The hash of the index that was there.
    pub(super) index_before: Option<Digest>,
    /// The index that is to be there.
    pub(super) index: &'a [u8],
    /// What the reflog says, from the name of the committer on; no line ends in it.
    pub(super) entry: &'a str,
    /// Whether a reflog is begun where there is none.
    pub(super) begins_logs: bool,
}

/// Whether the last step was done as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Published {
    /// Everything is in place.
    Whole,
    /// The commit is made, and the index could not be put in place.
    WithoutIndex,
}

/// Writes into one repository.
pub(super) struct Store<'a> {
    repository: &'a Repository,
    /// Asked before every change; tests let it fail.
    gate: &'a dyn Fn(&'static str) -> io::Result<()>,
}

/// A lock as git takes them: whoever makes `name.lock` may replace `name`. Given back when dropped.
struct Lock<'a> {
    store: &'a Store<'a>,
    directory: OwnedFd,
    name: String,
    held: Option<File>,
}

impl<'a> Store<'a> {
    pub(super) fn new(
        repository: &'a Repository,
        gate: &'a dyn Fn(&'static str) -> io::Result<()>,
    ) -> Self {
        Self { repository, gate }
    }

    /// Puts a commit in place, or changes nothing that counts.
    pub(super) fn publish(&self, wanted: &Publication<'_>) -> Result<Published, GitError> {
        for (id, packed) in wanted.objects {
            self.object(id, packed)?;
        }
        let mut index = self.lock("index")?;
        let mut head = self.lock("HEAD")?;
        let mut branch = match wanted.head {
            Head::Branch(branch) => Some(self.lock(branch.as_str())?),
            Head::Detached(_) => None,
        };
        self.compare(wanted)?;
        index.fill(wanted.index)?;
        let moved = branch.as_mut().unwrap_or(&mut head);
        moved.fill(format!("{}\n", wanted.commit).as_bytes())?;
        self.log(wanted)?;
        moved.put()?;
        // From here on the commit is made.
        let indexed = index.put();
        Ok(if indexed.is_ok() { Published::Whole } else { Published::WithoutIndex })
    }

    /// Whether everything is still what the commit was made from.
    fn compare(&self, wanted: &Publication<'_>) -> Result<(), GitError> {
        self.repository.check_idle()?;
        let head = self.repository.head()?;
        if head != *wanted.head || self.repository.tip(&head)?.as_ref() != wanted.parent {
            return Err(GitError::Moved("the branch"));
        }
        if self.repository.index()? != wanted.index_before {
            return Err(GitError::Moved("the index"));
        }
        Ok(())
    }

    /// Writes an object that is not there yet: beside, then renamed, so that none is ever there in part.
    fn object(&self, id: &ObjectId, packed: &[u8]) -> Result<(), GitError> {
        let (folder, name) = id.place();
        let directory = self.directory(&format!("objects/{folder}"))?;
        let failed = |errno: Errno| GitError::io(id.as_str(), errno);
        let there = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if openat2(&directory, name, there, Mode::empty(), CONFINED).is_ok() {
            return Ok(());
        }
        // The name that git gives to its own, and clears away if they are left.
        let beside = format!("tmp_obj_{}_{name}", std::process::id());
        self.ask("objects")?;
        match unlinkat(&directory, beside.as_str(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed(errno)),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o444);
        let file = openat2(&directory, beside.as_str(), flags, mode, CONFINED).map_err(failed)?;
        self.hand_over(&file).map_err(failed)?;
        let mut file = File::from(file);
        let written = self.ask("objects").and_then(|()| {
            file.write_all(packed)
                .and_then(|()| file.sync_all())
                .map_err(|source| GitError::Io { what: id.to_string(), source })
        });
        let named = written
            .and_then(|()| self.ask("objects"))
            .and_then(|()| renameat(&directory, beside.as_str(), &directory, name).map_err(failed));
        if named.is_err() && (self.gate)("objects").is_ok() {
            // What cannot be removed, git clears away.
            let _left = unlinkat(&directory, beside.as_str(), AtFlags::empty());
        }
        named?;
        fsync(&directory).map_err(failed)
    }

    fn lock(&'a self, path: &str) -> Result<Lock<'a>, GitError> {
        let (directory, name) = self.parent(path)?;
        self.ask("locks")?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        let lock = format!("{name}.lock");
        match openat2(&directory, lock.as_str(), flags, mode, CONFINED) {
            Ok(file) => {
                let given = self.hand_over(&file);
                let held = Some(File::from(file));
                let lock = Lock { store: self, directory, name: name.to_owned(), held };
                given.map(|()| lock).map_err(|errno| GitError::io(path, errno))
            }
            Err(Errno::EXIST) => Err(GitError::Locked(format!(".git/{path}.lock"))),
            Err(errno) => Err(GitError::io(path, errno)),
        }
    }

    /// Adds the commit to the reflogs of `HEAD` and of the branch.
    fn log(&self, wanted: &Publication<'_>) -> Result<(), GitError> {
        let before = wanted.parent.cloned().unwrap_or_else(|| wanted.commit.nothing());
        let line = format!("{before} {} {}\n", wanted.commit, wanted.entry);
        let branch = match wanted.head {
            Head::Branch(branch) => Some(format!("logs/{}", branch.as_str())),
            Head::Detached(_) => None,
        };
        for path in branch.into_iter().chain(["logs/HEAD".to_owned()]) {
            if !wanted.begins_logs && !self.repository.exists(&path)? {
                continue;
            }
            let (directory, name) = self.parent(&path)?;
            self.ask("reflog")?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
            let mode = Mode::from_raw_mode(0o666);
            let file = match openat2(&directory, name, flags, mode, CONFINED) {
                Ok(file) => {
                    self.hand_over(&file).map_err(|errno| GitError::io(&path, errno))?;
                    File::from(file)
                }
                // Left by a branch of longer name; a log is not worth more than the commit.
                Err(Errno::ISDIR) => continue,
                Err(errno) => return Err(GitError::io(&path, errno)),
            };
            let written = { file }.write_all(line.as_bytes());
            written.map_err(|source| GitError::Io { what: path, source })?;
        }
        Ok(())
    }

    /// The directory that a file of `.git` lies in, made if need be, and the file's name.
    fn parent<'p>(&self, path: &'p str) -> Result<(OwnedFd, &'p str), GitError> {
        match path.rsplit_once('/') {
            Some((parent, name)) => Ok((self.directory(parent)?, name)),
            None => Ok((self.open(".")?, path)),
        }
    }

    /// A directory of `.git`, made if need be.
    fn directory(&self, path: &str) -> Result<OwnedFd, GitError> {
        let mut at = self.open(".")?;
        for name in path.split('/') {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let opened = match openat2(&at, name, flags, Mode::empty(), CONFINED) {
                Err(Errno::NOENT) => {
                    self.ask("directories")?;
                    match mkdirat(&at, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(errno) => return Err(GitError::io(path, errno)),
                    }
                    let made = openat2(&at, name, flags, Mode::empty(), CONFINED);
                    made.and_then(|made| self.hand_over(&made).map(|()| made))
                }
                opened => opened,
            };
            at = opened.map_err(|errno| GitError::io(path, errno))?;
        }
        Ok(at)
    }

    fn open(&self, path: &str) -> Result<OwnedFd, GitError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat2(self.repository.handle(), path, flags, Mode::empty(), CONFINED)
            .map_err(|errno| GitError::io(path, errno))
    }

    /// Gives what root writes to whom the repository belongs to, who could not go on with it otherwise.
    fn hand_over(&self, file: &OwnedFd) -> Result<(), Errno> {
        let owner = fstat(self.repository.handle())?;
        if !rustix::process::geteuid().is_root() || fstat(file)?.st_uid == owner.st_uid {
            return Ok(());
        }
        fchown(file, Some(Uid::from_raw(owner.st_uid)), Some(Gid::from_raw(owner.st_gid)))
    }

    fn ask(&self, what: &'static str) -> Result<(), GitError> {
        (self.gate)(what).map_err(|source| GitError::Io { what: what.to_owned(), source })
    }
}

impl Lock<'_> {
    /// Writes what is to take the file's place.
    fn fill(&mut self, bytes: &[u8]) -> Result<(), GitError> {
        self.store.ask("contents")?;
        let Some(file) = &mut self.held else { return Ok(()) };
        file.write_all(bytes)
            .and_then(|()| file.sync_all())
            .map_err(|source| GitError::Io { what: self.name.clone(), source })
    }

    /// Puts it in the file's place, which ends the lock.
    fn put(&mut self) -> Result<(), GitError> {
        self.store.ask("names")?;
        let lock = format!("{}.lock", self.name);
        let name = self.name.as_str();
        let mut renamed = renameat(&self.directory, lock.as_str(), &self.directory, name);
        if renamed == Err(Errno::ISDIR) {
            // An empty directory that a branch of longer name left, which git also takes away.
            renamed = unlinkat(&self.directory, name, AtFlags::REMOVEDIR)
                .and_then(|()| renameat(&self.directory, lock.as_str(), &self.directory, name));
        }
        renamed.map_err(|errno| GitError::io(name, errno))?;
        self.held = None;
        // The file is in its place whether or not the directory could be synced.
        let _synced = fsync(&self.directory);
        Ok(())
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        if self.held.take().is_some() && (self.store.gate)("locks").is_ok() {
            // A lock that stays is reported by whoever comes next, with what to do about it.
            let lock = format!("{}.lock", self.name);
            let _left = unlinkat(&self.directory, lock.as_str(), AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests;
