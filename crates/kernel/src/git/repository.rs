//! The project's `.git`, by handle.
//!
//! **Invariant.** Everything is opened beneath `.git`'s own handle and no link is followed.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use fluffy_base::Digest;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

use super::{GitError, ObjectId};

pub(super) const CONFINED: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

const SMALL: u64 = 64 << 10;
const MAX_PACKED_REFS: u64 = 64 << 20;
/// The most that an index may have.
pub(super) const MAX_INDEX: u64 = 256 << 20;
/// The most object directories that are looked for elsewhere.
const MAX_ALTERNATES: usize = 8;

/// What is under way while one of these lies in `.git`.
const UNDER_WAY: [(&str, &str); 6] = [
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("sequencer", "a cherry-pick or revert of several commits"),
];

/// The project's repository.
#[derive(Debug)]
pub(super) struct Repository {
    git: OwnedFd,
    path: PathBuf,
}

/// What `HEAD` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Head {
    /// The name of a branch.
    Branch(BranchName),
    /// A commit.
    Detached(ObjectId),
}

/// A branch's full name, `refs/heads/…`: components that are safe to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BranchName(String);

/// How `.git` stands in a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A directory.
    Directory,
    /// A file or a link that leads to where the repository is.
    Pointer,
    /// Nothing.
    None,
}

impl Form {
    /// How `.git` stands in this project.
    pub(super) fn of(project: &Path) -> Result<Self, GitError> {
        match std::fs::symlink_metadata(project.join(".git")) {
            Ok(found) if found.is_dir() => Ok(Self::Directory),
            Ok(_) => Ok(Self::Pointer),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::None),
            Err(source) => Err(GitError::Io { what: ".git".to_owned(), source }),
        }
    }
}

impl Repository {
    /// The repository of a project, if it lies there as a directory.
    pub(super) fn open(project: &Path) -> Result<Self, GitError> {
        match Form::of(project)? {
            Form::Directory => {}
            Form::Pointer => return Err(GitError::Elsewhere),
            Form::None => return Err(GitError::NotARepository),
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, project, flags, Mode::empty());
        let git = root.and_then(|root| openat2(root, ".git", flags, Mode::empty(), CONFINED));
        let git = git.map_err(|errno| GitError::io(".git", errno))?;
        Ok(Self { git, path: project.join(".git") })
    }

    /// Whether it is of a kind that may be written to.
    pub(super) fn check_kind(&self) -> Result<(), GitError> {
        if self.exists("commondir")? {
            return Err(GitError::Elsewhere);
        }
        if self.exists("reftable")? {
            return Err(GitError::Unsupported("its branches are kept in a reftable"));
        }
        if !self.exists("objects")? || !self.exists("HEAD")? {
            return Err(GitError::NotARepository);
        }
        Ok(())
    }

    /// Its handle.
    pub(super) fn handle(&self) -> &OwnedFd {
        &self.git
    }

    /// What git is in the middle of, if anything.
    pub(super) fn check_idle(&self) -> Result<(), GitError> {
        for (name, what) in UNDER_WAY {
            if self.exists(name)? {
                return Err(GitError::UnderWay(what));
            }
        }
        Ok(())
    }

    /// What `HEAD` says.
    pub(super) fn head(&self) -> Result<Head, GitError> {
        let text = self.small("HEAD")?.ok_or(GitError::NotARepository)?;
        match text.strip_prefix("ref:") {
            Some(name) => BranchName::parse(name.trim())
                .map(Head::Branch)
                .ok_or(GitError::Unsupported("`HEAD` names no branch")),
            None => ObjectId::parse(text.trim())
                .map(Head::Detached)
                .ok_or(GitError::Unsupported("`HEAD` cannot be understood")),
        }
    }

    /// The commit that is on top; nothing where a branch has none yet.
    pub(super) fn tip(&self, head: &Head) -> Result<Option<ObjectId>, GitError> {
        let branch = match head {
            Head::Detached(id) => return Ok(Some(id.clone())),
            Head::Branch(branch) => branch,
        };
        if let Some(text) = self.small(branch.as_str())? {
            let id = ObjectId::parse(text.trim());
            return id.map(Some).ok_or(GitError::Unsupported("its branch names no commit"));
        }
        let Some(bytes) = self.read("packed-refs", MAX_PACKED_REFS)? else { return Ok(None) };
        let lines = bytes.split(|byte| *byte == b'\n');
        let found = lines.filter_map(|line| str::from_utf8(line).ok()?.split_once(' '));
        let mut found = found.filter(|(_, name)| name.trim_end() == branch.as_str());
        match found.next() {
            None => Ok(None),
            Some((id, _)) => {
                let id = ObjectId::parse(id);
                id.map(Some).ok_or(GitError::Unsupported("`packed-refs` cannot be understood"))
            }
        }
    }

    /// The hash of the index; nothing if there is none.
    pub(super) fn index(&self) -> Result<Option<Digest>, GitError> {
        Ok(self.read("index", MAX_INDEX)?.map(|bytes| Digest::of(&bytes)))
    }

    /// Directories with more objects, as the repository names them, that are on this machine and are such.
    pub(super) fn alternates(&self) -> Result<Vec<PathBuf>, GitError> {
        let Some(text) = self.small("objects/info/alternates")? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        let objects = self.path.join("objects");
        let mut pending: Vec<PathBuf> = named(&objects, &text);
        while let Some(path) = pending.pop() {
            let Ok(path) = std::fs::canonicalize(path) else { continue };
            let holds_objects = path.join("pack").is_dir() && path.join("info").is_dir();
            if !holds_objects || found.contains(&path) || found.len() == MAX_ALTERNATES {
                continue;
            }
            let mut more = String::new();
            if let Ok(file) = File::open(path.join("info/alternates"))
                && file.take(SMALL).read_to_string(&mut more).is_ok()
            {
                pending.extend(named(&path, &more));
            }
            found.push(path);
        }
        Ok(found)
    }

    /// Whether something is there.
    pub(super) fn exists(&self, path: &str) -> Result<bool, GitError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat2(&self.git, path, flags, Mode::empty(), CONFINED) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(errno) => Err(GitError::io(path, errno)),
        }
    }

    fn small(&self, path: &str) -> Result<Option<String>, GitError> {
        let Some(bytes) = self.read(path, SMALL)? else { return Ok(None) };
        let text = String::from_utf8(bytes);
        text.map(Some).map_err(|_| GitError::Unsupported("a name in it is not UTF-8"))
    }

    /// The contents of a file; nothing where no file is.
    pub(super) fn read(&self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, GitError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat2(&self.git, path, flags, Mode::empty(), CONFINED) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(errno) => return Err(GitError::io(path, errno)),
        };
        let stat = fstat(&file).map_err(|errno| GitError::io(path, errno))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            // Where a branch `a/b` was, an empty directory `a` may be left.
            FileType::Directory => return Ok(None),
            _special => return Err(GitError::Unsupported("a part of it is no file")),
        }
        let mut bytes = Vec::new();
        let read = File::from(file).take(limit.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|source| GitError::Io { what: path.to_owned(), source })?;
        if bytes.len() as u64 > limit {
            return Err(GitError::Unsupported("a part of it is too large"));
        }
        Ok(Some(bytes))
    }
}

impl BranchName {
    /// The branch that a text names, by git's own rules for names, which leave nothing that could lead out.
    fn parse(name: &str) -> Option<Self> {
        let short = name.strip_prefix("refs/heads/")?;
        let forbidden =
            |c: char| c.is_control() || matches!(c, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\');
        let fits =
            |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
        let good = short.len() <= 1024
            && short.split('/').all(fits)
            && !short.contains("..")
            && !short.contains("@{")
            && !short.ends_with('.')
            && !short.contains(forbidden);
        good.then(|| Self(name.to_owned()))
    }

    /// The whole name.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// What people call it.
    pub(super) fn short(&self) -> &str {
        self.0.strip_prefix("refs/heads/").unwrap_or(&self.0)
    }
}

/// The directories that a file of alternates names, beside the objects that it belongs to.
fn named(objects: &Path, text: &str) -> Vec<PathBuf> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', '"']));
    lines.take(MAX_ALTERNATES).map(|line| objects.join(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_has_a_name_that_leads_nowhere_else() {
        for good in ["refs/heads/main", "refs/heads/feature/a-b", "refs/heads/é"] {
            assert!(BranchName::parse(good).is_some(), "{good}");
        }
        for bad in [
            "main",
            "refs/tags/v1",
            "refs/heads/",
            "refs/heads/../../config",
            "refs/heads/a/../../../config",
            "refs/heads//a",
            "refs/heads/.invalid",
            "refs/heads/a.lock",
            "refs/heads/a.lock/b",
            "refs/heads/a b",
            "refs/heads/a\nb",
            "refs/heads/a\0",
        ] {
            assert!(BranchName::parse(bad).is_none(), "{bad}");
        }
    }
}
