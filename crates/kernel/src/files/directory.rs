//! One directory of a view: the project's names and the session's, merged.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};

use fluffy_base::ProjectPath;
use rustix::fs::{AtFlags, FileType, RawDir};
use rustix::io::Errno;

use super::tree::found_by;
use super::view::{Over, found};
use super::walk::MAX_FILES;
use super::{Found, Staged, Stored, TreeError, View};

/// How much of a directory one system call tells.
const BUFFER: usize = 32 * 1024;

/// What a directory holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// By name.
    pub entries: Vec<Entry>,
    /// How many names cannot be written as a path of the project and are therefore left out.
    pub unnamed: usize,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path from the project's root.
    pub path: ProjectPath,
    /// What it is.
    pub found: Found,
}

/// A directory, and which layers show in it.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) path: Option<ProjectPath>,
    /// Whether the project's files show.
    pub(super) project: bool,
    /// Whether the session changed anything beneath.
    pub(super) staged: bool,
}

/// One name in a directory, before anybody asked for more than its kind.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) path: ProjectPath,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file: the session's, or else the project's.
    File(Option<Stored>),
    /// A directory, and which layers show in it.
    Directory {
        project: bool,
        staged: bool,
    },
    Link,
    Special,
}

/// The names in a directory, in no order.
#[derive(Debug, Default)]
pub(super) struct Children {
    pub(super) list: Vec<Child>,
    pub(super) unnamed: usize,
    /// The project's directory, where it shows.
    handle: Option<OwnedFd>,
}

impl View {
    /// What a directory holds, by name; none is the root.
    pub fn list(&self, directory: Option<&ProjectPath>) -> Result<Listing, TreeError> {
        let children = self.children(&self.place(directory)?).map_err(TreeError::after_a_look)?;
        let mut entries = Vec::with_capacity(children.list.len());
        for child in children.list {
            let seen = match (child.kind, &children.handle) {
                (Kind::File(Some(stored)), _) => Some(found(&stored)),
                (Kind::File(None), Some(handle)) => stat(handle, &child.path)?,
                (Kind::File(None), None) => None,
                (Kind::Directory { .. }, _) => Some(Found::Directory),
                (Kind::Link, _) => Some(Found::Link),
                (Kind::Special, _) => Some(Found::Special),
            };
            entries.extend(seen.map(|found| Entry { path: child.path, found }));
        }
        entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(Listing { entries, unnamed: children.unnamed })
    }

    /// A directory of the view.
    pub(super) fn place(&self, path: Option<&ProjectPath>) -> Result<Place, TreeError> {
        let Some(path) = path else {
            return Ok(Place { path: None, project: true, staged: !self.staged.is_empty() });
        };
        let place = |project, staged| Place { path: Some(path.clone()), project, staged };
        match self.over(path) {
            Over::File(_) => Err(TreeError::NotADirectory(path.clone())),
            Over::Nothing => Err(TreeError::Missing(path.clone())),
            Over::Directory => {
                let project =
                    !self.is_deleted(path) && self.look_below(path)? == Some(Found::Directory);
                Ok(place(project, true))
            }
            Over::Project => match self.look_below(path)? {
                Some(Found::Directory) => {
                    Ok(place(true, self.changes_beneath(Some(path)).next().is_some()))
                }
                // Opening a link fails with a word about where it leads.
                Some(Found::Link) => self.tree.directory(Some(path)).map(|_| place(true, false)),
                Some(Found::File { .. } | Found::Special) => {
                    Err(TreeError::NotADirectory(path.clone()))
                }
                None => Err(TreeError::Missing(path.clone())),
            },
        }
    }

    /// The names in a directory.
    pub(super) fn children(&self, place: &Place) -> Result<Children, TreeError> {
        let mut changes = if place.staged { self.changes_in(place) } else { BTreeMap::new() };
        let mut children = Children::default();
        if place.project {
            let handle = self.tree.directory(place.path.as_ref())?;
            children.read(&handle, place, &mut changes)?;
            children.handle = Some(handle);
        }
        for (name, change) in changes {
            let Some(kind) = change.kind(None) else { continue };
            children.add(place, name, kind);
        }
        Ok(children)
    }

    fn changes_in<'a>(&'a self, place: &'a Place) -> BTreeMap<&'a str, Change> {
        let mut changes: BTreeMap<&str, Change> = BTreeMap::new();
        for (path, staged) in self.changes_beneath(place.path.as_ref()) {
            let (name, beneath) =
                path.split_once('/').map_or((path, false), |(name, _)| (name, true));
            let change = changes.entry(name).or_default();
            match (beneath, staged) {
                (false, Staged::File(stored)) => change.file = Some(stored),
                (false, Staged::Deleted) => change.deleted = true,
                (true, Staged::File(_)) => change.file_beneath = true,
                (true, Staged::Deleted) => {}
            }
        }
        changes
    }
}

/// What the session did to one name of a directory.
#[derive(Debug, Clone, Copy, Default)]
struct Change {
    file: Option<Stored>,
    deleted: bool,
    file_beneath: bool,
}

impl Change {
    /// What is seen of a name that the project has, or has not.
    fn kind(&self, project: Option<FileType>) -> Option<Kind> {
        if self.file.is_some() {
            return Some(Kind::File(self.file));
        }
        if self.file_beneath {
            let project = !self.deleted && project == Some(FileType::Directory);
            return Some(Kind::Directory { project, staged: true });
        }
        project.filter(|_| !self.deleted).map(|kind| kind_of(kind, true))
    }
}

impl Children {
    fn read(
        &mut self,
        handle: &OwnedFd,
        place: &Place,
        changes: &mut BTreeMap<&str, Change>,
    ) -> Result<(), TreeError> {
        let failed = |errno: Errno| TreeError::Io {
            path: place.path.as_ref().map_or_else(|| ".".to_owned(), ToString::to_string),
            source: errno.into(),
        };
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut names = RawDir::new(handle.as_fd(), &mut buffer);
        while let Some(entry) = names.next() {
            let entry = match entry {
                Ok(entry) => entry,
                // The directory was removed meanwhile.
                Err(Errno::NOENT) => break,
                Err(errno) => return Err(failed(errno)),
            };
            if self.list.len() > MAX_FILES {
                return Err(TreeError::TooMany(MAX_FILES));
            }
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => unknown(handle, name),
                known => Some(known),
            };
            let Some(kind) = kind else { continue };
            match name.to_str() {
                Ok(name) => self.take(place, name, kind, changes),
                Err(_) => self.unnamed += 1,
            }
        }
        Ok(())
    }

    /// A name of the project's.
    fn take(
        &mut self,
        place: &Place,
        name: &str,
        kind: FileType,
        changes: &mut BTreeMap<&str, Change>,
    ) {
        match changes.remove(name) {
            None => self.add(place, name, kind_of(kind, false)),
            Some(change) => {
                if let Some(kind) = change.kind(Some(kind)) {
                    self.add(place, name, kind);
                }
            }
        }
    }

    fn add(&mut self, place: &Place, name: &str, kind: Kind) {
        match named(place.path.as_ref(), name) {
            Some(path) => self.list.push(Child { path, kind }),
            None => self.unnamed += 1,
        }
    }
}

/// The path of a name on the disk, if there is one that leads to exactly this name.
fn named(directory: Option<&ProjectPath>, name: &str) -> Option<ProjectPath> {
    let path = match directory {
        None => ProjectPath::parse(name),
        Some(directory) => directory.join(name),
    };
    let length = directory.map_or(0, |path| path.as_str().len() + 1) + name.len();
    path.ok().filter(|path| path.as_str().len() == length && path.as_str().ends_with(name))
}

fn kind_of(kind: FileType, staged: bool) -> Kind {
    match kind {
        FileType::RegularFile => Kind::File(None),
        FileType::Directory => Kind::Directory { project: true, staged },
        FileType::Symlink => Kind::Link,
        _special => Kind::Special,
    }
}

/// What a name is whose kind the directory does not tell; nothing if it is gone.
fn unknown(handle: &OwnedFd, name: &CStr) -> Option<FileType> {
    let stat = rustix::fs::statat(handle, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

/// What a name of the project's is now; nothing if it is gone.
fn stat(handle: &OwnedFd, path: &ProjectPath) -> Result<Option<Found>, TreeError> {
    match found_by(handle, path.file_name()) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(TreeError::Io { path: path.to_string(), source: errno.into() }),
    }
}
