//! Goes through a volume, directory by directory.
//!
//! Directories wait in a list and are opened from the top each time: the walk holds two descriptors,
//! however deep the volume, and needs no stack. Everything that the list and the results keep is
//! charged to the limits before it is kept.

use std::collections::HashMap;
use std::ffi::CString;
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};
use std::os::fd::OwnedFd;

use fluffy_base::{Excerpt, PathError, ProjectPath, sanitised};
use rustix::fs::{FileType, Statx};
use rustix::io::Errno;

use super::entry::{self, Device, Directory, Inspector};
use super::{Change, Found, HarvestError, HarvestLimits, Kind, Refusal, Why, Written};
use crate::tree;

/// The system's longest path, its end mark included: what is longer cannot be opened again from the top.
const OPENABLE: usize = 4096;
/// What a [`Why`] may keep of a name beside the name itself.
const REASON: usize = 128;

pub(super) struct Walk<'a> {
    root: &'a OwnedFd,
    kind: Kind,
    limits: &'a HarvestLimits,
    skip: &'a dyn Fn(&ProjectPath) -> bool,
    inspector: Inspector,
    budget: Budget,
    pending: Vec<ProjectPath>,
    found: Found,
}

/// What may still be looked at and kept.
struct Budget {
    limits: HarvestLimits,
    entries: u64,
    names: u64,
    total: u64,
}

/// A name in the directory that is being looked at.
struct Name {
    raw: CString,
    /// Whether the listing says that it is a character device, which a deletion is.
    device: bool,
    twin: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        root: &'a OwnedFd,
        device: Device,
        kind: Kind,
        limits: &'a HarvestLimits,
        skip: &'a dyn Fn(&ProjectPath) -> bool,
    ) -> Self {
        Self {
            root,
            kind,
            limits,
            skip,
            inspector: Inspector::new(device, kind),
            budget: Budget::new(*limits),
            pending: Vec::new(),
            found: Found::default(),
        }
    }

    pub(super) fn run(mut self) -> Result<Found, HarvestError> {
        self.top()?;
        while let Some(path) = self.pending.pop() {
            self.directory(path)?;
        }
        self.found.changes.sort_unstable_by(|a, b| a.path().cmp(b.path()));
        // Two names can look the same once they are escaped: these keep the order of the walk.
        self.found.refused.sort_by(|a, b| a.name.cmp(&b.name));
        self.found.skipped.sort_unstable();
        Ok(self.found)
    }

    fn top(&mut self) -> Result<(), HarvestError> {
        let failed = |errno: Errno| HarvestError::volume(errno.into());
        let stat = entry::look(self.root).map_err(failed)?;
        match self.inspector.directory(self.root, &stat).map_err(failed)? {
            Ok(Directory::Merged) => {}
            // Nothing that a job does can hide the whole project.
            Ok(Directory::Opaque) => return Err(HarvestError::Volume(Why::Mark)),
            Err(why) => return Err(HarvestError::Volume(why)),
        }
        let names = self.names(self.root, 0)?.map_err(failed)?;
        self.entries(self.root, None, names)
    }

    fn directory(&mut self, path: ProjectPath) -> Result<(), HarvestError> {
        let opened = entry::open_directory(self.root, path.as_str())
            .and_then(|directory| entry::look(&directory).map(|stat| (directory, stat)))
            .and_then(|(directory, stat)| {
                let verdict = self.inspector.directory(&directory, &stat)?;
                Ok((directory, verdict))
            });
        let (directory, verdict) = match opened {
            Ok(opened) => opened,
            Err(errno) => return self.failed(path.as_str().as_bytes(), errno),
        };
        let meaning = match verdict {
            Ok(meaning) => meaning,
            Err(why) => return self.refuse(path.as_str().as_bytes(), why),
        };
        let names = match self.names(&directory, path.as_str().len() + 1)? {
            Ok(names) => names,
            Err(errno) => return self.failed(path.as_str().as_bytes(), errno),
        };
        // Not before it could be listed: what replaces and then shows nothing would be a deletion.
        match meaning {
            Directory::Merged => {}
            Directory::Opaque => self.found.changes.push(Change::Replace(path.clone())),
        }
        self.entries(&directory, Some(&path), names)
    }

    /// The names in a directory whose own path has `above` bytes, in order.
    fn names(
        &mut self,
        directory: &OwnedFd,
        above: usize,
    ) -> Result<Result<Vec<Name>, Errno>, HarvestError> {
        let mut names = match list(directory, |name| self.budget.entry(above + name)) {
            Ok(names) => names?,
            Err(errno) => return Ok(Err(errno)),
        };
        names.sort_unstable_by(|a, b| a.raw.cmp(&b.raw));
        let deletes = self.kind == Kind::Overlay;
        mark_twins(&mut names, |name| !(deletes && name.device));
        Ok(Ok(names))
    }

    fn entries(
        &mut self,
        directory: &OwnedFd,
        path: Option<&ProjectPath>,
        names: Vec<Name>,
    ) -> Result<(), HarvestError> {
        for name in names {
            self.entry(directory, path, &name)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        directory: &OwnedFd,
        parent: Option<&ProjectPath>,
        name: &Name,
    ) -> Result<(), HarvestError> {
        let full = match parent {
            Some(parent) => [parent.as_str().as_bytes(), name.raw.to_bytes()].join(&b'/'),
            None => name.raw.to_bytes().to_vec(),
        };
        let path = match path_of(&full) {
            Ok(path) => path,
            Err(why) => return self.refuse(&full, why),
        };
        if name.twin {
            return self.refuse(&full, Why::Twin);
        }
        if (self.skip)(&path) {
            self.found.skipped.push(path);
            return Ok(());
        }
        let limit = self.limits.depth;
        if path.components().count() > limit {
            return Err(HarvestError::Depth { path: shown(&full), limit });
        }
        match entry::look_at(directory, name.raw.as_c_str()) {
            Ok(stat) => self.judge(directory, path, name, &stat),
            Err(errno) => self.failed(&full, errno),
        }
    }

    fn judge(
        &mut self,
        directory: &OwnedFd,
        path: ProjectPath,
        name: &Name,
        stat: &Statx,
    ) -> Result<(), HarvestError> {
        let why = match entry::kind_of(stat) {
            FileType::Directory => {
                self.pending.push(path);
                return Ok(());
            }
            FileType::RegularFile => return self.file(directory, path, name, stat),
            FileType::CharacterDevice if self.kind == Kind::Overlay && entry::is_whiteout(stat) => {
                self.found.changes.push(Change::Delete(path));
                return Ok(());
            }
            FileType::CharacterDevice | FileType::BlockDevice => Why::Device,
            FileType::Symlink => Why::Symlink,
            FileType::Fifo => Why::Fifo,
            FileType::Socket => Why::Socket,
            _ => Why::Unknown,
        };
        self.refuse(path.as_str().as_bytes(), why)
    }

    fn file(
        &mut self,
        directory: &OwnedFd,
        path: ProjectPath,
        name: &Name,
        stat: &Statx,
    ) -> Result<(), HarvestError> {
        let refused = path.as_str().as_bytes();
        if let Some(why) = entry::too_large(stat, self.limits.file) {
            return self.refuse(refused, why);
        }
        let judged = entry::open_file(directory, name.raw.as_c_str())
            .and_then(|file| entry::look(&file).map(|stat| (file, stat)))
            .and_then(|(file, stat)| Ok((self.inspector.file(&file, &stat)?, stat)));
        let identity = match judged {
            Ok((Ok(identity), stat)) => match entry::too_large(&stat, self.limits.file) {
                None => identity,
                Some(why) => return self.refuse(refused, why),
            },
            Ok((Err(why), _)) => return self.refuse(refused, why),
            Err(errno) => return self.failed(refused, errno),
        };
        self.budget.take(identity.size)?;
        self.found.changes.push(Change::Write(Written { path, identity }));
        Ok(())
    }

    /// Refuses one entry if the error is about it; anything else ends the harvest.
    fn failed(&mut self, path: &[u8], errno: Errno) -> Result<(), HarvestError> {
        match entry::why(errno) {
            Some(why) => self.refuse(path, why),
            None => Err(HarvestError::Io { path: shown(path), source: errno.into() }),
        }
    }

    fn refuse(&mut self, path: &[u8], why: Why) -> Result<(), HarvestError> {
        let name = shown(path);
        self.budget.name(name.len() + REASON)?;
        self.found.refused.push(Refusal { name, why });
        Ok(())
    }
}

impl Budget {
    fn new(limits: HarvestLimits) -> Self {
        let (entries, names, total) = (limits.entries, limits.names.bytes(), limits.total.bytes());
        Self { limits, entries, names, total }
    }

    /// One more entry, whose path has so many bytes.
    fn entry(&mut self, path: usize) -> Result<(), HarvestError> {
        let left = self.entries.checked_sub(1);
        self.entries = left.ok_or(HarvestError::Entries(self.limits.entries))?;
        self.name(path)
    }

    fn name(&mut self, bytes: usize) -> Result<(), HarvestError> {
        let left = self.names.checked_sub(bytes as u64);
        self.names = left.ok_or(HarvestError::Names(self.limits.names))?;
        Ok(())
    }

    fn take(&mut self, bytes: u64) -> Result<(), HarvestError> {
        let left = self.total.checked_sub(bytes);
        self.total = left.ok_or(HarvestError::Total(self.limits.total))?;
        Ok(())
    }
}

/// The names in a directory, each charged with its length before it is kept.
fn list(
    directory: &OwnedFd,
    mut charge: impl FnMut(usize) -> Result<(), HarvestError>,
) -> Result<Result<Vec<Name>, HarvestError>, Errno> {
    let mut names = Vec::new();
    let listed = tree::list(directory, |raw, kind| {
        charge(raw.count_bytes())?;
        let device = kind == FileType::CharacterDevice;
        names.push(Name { raw: raw.to_owned(), device, twin: false });
        Ok(())
    })?;
    Ok(listed.map(|()| names))
}

/// Marks all names that are the same as another to a disk that ignores case. Names of deletions are not
/// `present`: `Makefile` deleted and `makefile` written is a renaming.
///
/// Foldings can be many times as long as names, so only their hashes are kept, and the foldings of
/// those few are compared whose hashes are equal. The hash is keyed: nobody makes it collide on purpose.
fn mark_twins(names: &mut [Name], present: impl Fn(&Name) -> bool) {
    let state = RandomState::new();
    let mut hashes: Vec<(u64, usize)> = names
        .iter()
        .enumerate()
        .filter(|(_, name)| present(name))
        .filter_map(|(at, name)| Some((state.hash_one(folded(name)?), at)))
        .collect();
    hashes.sort_unstable();
    for group in hashes.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1) {
        let mut count: HashMap<String, Vec<usize>> = HashMap::new();
        for (_, at) in group {
            if let Some(folded) = names.get(*at).and_then(folded) {
                count.entry(folded).or_default().push(*at);
            }
        }
        for at in count.into_values().filter(|twins| twins.len() > 1).flatten() {
            if let Some(name) = names.get_mut(at) {
                name.twin = true;
            }
        }
    }
}

/// The folding of a name; nothing if it is refused for its name anyway.
fn folded(name: &Name) -> Option<String> {
    path_of(name.raw.to_bytes()).ok().map(|path| path.folded().into_owned())
}

/// The path that these bytes are, letter by letter.
fn path_of(bytes: &[u8]) -> Result<ProjectPath, Why> {
    let text = str::from_utf8(bytes).map_err(|_| Why::NotText)?;
    let path = ProjectPath::parse(text)?;
    if path.as_str() != text {
        return Err(Why::NotComposed);
    }
    if path.as_str().len() >= OPENABLE {
        return Err(PathError::Long(Excerpt::new(text, REASON).to_string()).into());
    }
    Ok(path)
}

/// A path on one line that no terminal obeys.
fn shown(path: &[u8]) -> String {
    let mut shown = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        shown.push_str(&sanitised(chunk.valid()));
        for byte in chunk.invalid() {
            // Writing to a text does not fail.
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}
