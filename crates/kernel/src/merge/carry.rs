//! Carries out a plan, and finishes or takes back one that was interrupted.
//!
//! **Invariant.** Finishing is idempotent: every task looks at its target first and is done, done before, or
//! left to whoever changed it. So it may be interrupted anywhere and started again.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use fluffy_base::{Digest, ProjectPath};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::files::{BlobError, Blobs, Stored, Tree};
use crate::staging::{Base, FileKind, files_below};

use super::disk::{Disk, Seen};
use super::log::{Intent, Log, Progress, Task, Waiting, progress};
use super::plan::{Operation, Plan};
use super::{MergeError, Merged, MergedFile, Outcome, Recovered};

/// Names that are tried for what waits, before it is given up.
const TRIES: usize = 100;

pub(super) fn carry_out(
    disk: &dyn Disk,
    plan: &Plan,
    tree: &Tree,
    dir: &Path,
) -> Result<Merged, MergeError> {
    if !plan.conflicts().is_empty() {
        return Err(MergeError::Conflicts(plan.conflicts().len()));
    }
    if plan.operations().is_empty() {
        return Ok(Merged::default());
    }
    let merge = Merge::open(disk, tree, dir)?;
    if progress(disk, merge.session.as_fd())? != Progress::Over {
        return Err(MergeError::Interrupted);
    }
    merge.check(plan.operations())?;
    let intent = merge.intent(plan).map_err(Failed::not_begun)?;
    let log = Log::begin(disk, merge.session.as_fd(), &intent)
        .map_err(|source| Failed::whole("writing the log", source).not_begun())?;
    let prepared = merge.prepare(&intent).map_err(Failed::not_begun);
    if let Err(error) = prepared.and_then(|()| merge.check(plan.operations())) {
        merge.withdraw(&intent, &log)?;
        return Err(error);
    }
    if let Err(source) = log.decide() {
        // It may have reached the disk all the same: then it is decided, unless it can be taken back.
        let failed = Failed::whole("writing the decision", source);
        return match log.reopen() {
            Ok(()) => merge.withdraw(&intent, &log).and(Err(failed.not_begun())),
            Err(_) => Err(failed.unfinished()),
        };
    }
    merge.finish(&intent, &log)
}

pub(super) fn recover(disk: &dyn Disk, tree: &Tree, dir: &Path) -> Result<Recovered, MergeError> {
    let merge = Merge::open(disk, tree, dir)?;
    let session = merge.session.as_fd();
    let opened = |source| Failed::whole("opening the log", source).unfinished();
    match progress(disk, session)? {
        Progress::Over => Ok(Recovered::Nothing),
        Progress::Undecided(intent) => {
            let log = Log::resume(disk, session, &intent).map_err(opened)?;
            merge.withdraw(&intent, &log)?;
            let paths = intent.tasks.into_iter().map(|task| task.operation.path).collect();
            Ok(Recovered::Undone(paths))
        }
        Progress::Decided(intent) => {
            let log = Log::resume(disk, session, &intent).map_err(opened)?;
            merge.finish(&intent, &log).map(Recovered::Finished)
        }
    }
}

struct Merge<'a> {
    disk: &'a dyn Disk,
    tree: &'a Tree,
    session: OwnedFd,
    blobs: Blobs,
}

/// What stands where a file is to be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// What the plan expects.
    Expected,
    /// What the plan makes of it.
    New,
    /// A directory.
    Directory,
    /// Something else.
    Other,
}

/// A call that failed.
struct Failed {
    what: &'static str,
    path: Option<ProjectPath>,
    source: io::Error,
}

impl Failed {
    fn whole(what: &'static str, source: io::Error) -> Self {
        Self { what, path: None, source }
    }

    fn on(what: &'static str, path: &ProjectPath) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { what, path: Some(path.clone()), source }
    }

    fn not_begun(self) -> MergeError {
        MergeError::NotBegun { what: self.what, path: self.path, source: self.source }
    }

    fn unfinished(self) -> MergeError {
        MergeError::Unfinished { what: self.what, path: self.path, source: self.source }
    }
}

impl<'a> Merge<'a> {
    fn open(disk: &'a dyn Disk, tree: &'a Tree, dir: &Path) -> Result<Self, MergeError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let session = rustix::fs::openat(CWD, dir, flags, Mode::empty())
            .map_err(|errno| MergeError::Log(errno.into()))?;
        let blobs = Blobs::open(&dir.join("blobs")).map_err(MergeError::Blob)?;
        Ok(Self { disk, tree, session, blobs })
    }

    /// Every target is what the plan expects.
    fn check(&self, operations: &[Operation]) -> Result<(), MergeError> {
        let gone: BTreeSet<&ProjectPath> = operations
            .iter()
            .filter(|operation| operation.new == Base::Absent)
            .map(|operation| &operation.path)
            .collect();
        for operation in operations {
            let path = &operation.path;
            let standing = self.standing(operation);
            let standing =
                standing.map_err(|source| Failed::on("looking", path)(source).not_begun());
            let fine = match standing? {
                Standing::Expected => self.has_room(operation, &gone),
                Standing::Directory => {
                    operation.expected == Base::Absent
                        && files_below(self.tree, path)
                            .is_ok_and(|files| files.iter().all(|file| gone.contains(file)))
                }
                Standing::New | Standing::Other => false,
            };
            if !fine {
                return Err(MergeError::Changed(path.clone()));
            }
        }
        Ok(())
    }

    /// No file stands where a directory must be, unless it is deleted first.
    fn has_room(&self, operation: &Operation, gone: &BTreeSet<&ProjectPath>) -> bool {
        let above = std::iter::successors(operation.path.parent(), ProjectPath::parent);
        let mut above = above.filter(|directory| !gone.contains(directory));
        operation.new == Base::Absent
            || above.all(|directory| {
                let seen = self.seen(&directory).map(|seen| seen.map(|seen| seen.kind));
                matches!(seen, Ok(None | Some(FileType::Directory)))
            })
    }

    /// What will be done, and where everything will wait.
    fn intent(&self, plan: &Plan) -> Result<Intent, Failed> {
        let digest = plan.digest();
        let mut directories = BTreeSet::new();
        let mut tasks = Vec::new();
        for (number, operation) in plan.operations().iter().enumerate() {
            let waits = match operation.new {
                Base::Absent => None,
                Base::File(_) => {
                    let place = self.place(&operation.path, &mut directories);
                    let place = place.map_err(Failed::on("looking", &operation.path))?;
                    let name = self.free_name(place.as_ref(), &digest, number, &directories);
                    let name =
                        name.map_err(Failed::on("finding a name beside", &operation.path))?;
                    Some(Waiting { directory: place, name })
                }
            };
            tasks.push(Task { operation: operation.clone(), waits });
        }
        // A path sorts behind the directory that holds it.
        Ok(Intent::new(digest, tasks, directories.into_iter().collect()))
    }

    /// The directory in which a new content waits: its own, which is made if need be; where a file has to go
    /// before that can be made, the deepest that there is.
    fn place(
        &self,
        path: &ProjectPath,
        directories: &mut BTreeSet<ProjectPath>,
    ) -> io::Result<Option<ProjectPath>> {
        let mut above: Vec<_> = std::iter::successors(path.parent(), ProjectPath::parent).collect();
        above.reverse();
        let mut last = None;
        let mut missing = Vec::new();
        for directory in above {
            if missing.is_empty() {
                match self.seen(&directory)?.map(|seen| seen.kind) {
                    Some(FileType::Directory) => last = Some(directory),
                    Some(_) => return Ok(last),
                    None => missing.push(directory),
                }
            } else {
                missing.push(directory);
            }
        }
        let place = missing.last().cloned().or(last);
        directories.extend(missing);
        Ok(place)
    }

    /// A name in a directory that nothing has.
    fn free_name(
        &self,
        directory: Option<&ProjectPath>,
        plan: &Digest,
        number: usize,
        made: &BTreeSet<ProjectPath>,
    ) -> io::Result<String> {
        let short: String = plan.to_string().chars().take(16).collect();
        let new = directory.is_some_and(|directory| made.contains(directory));
        for attempt in 0..TRIES {
            let name = format!(".fluffy-{short}-{number}-{attempt}.tmp");
            if new || self.disk.look(self.directory(directory)?.as_fd(), &name)?.is_none() {
                return Ok(name);
            }
        }
        Err(Errno::EXIST.into())
    }

    /// Puts every new content beside its target, on disk. Nothing that was in the project is changed.
    fn prepare(&self, intent: &Intent) -> Result<(), Failed> {
        for directory in &intent.directories {
            self.make(directory).map_err(Failed::on("making a directory", directory))?;
        }
        let mut touched = BTreeSet::new();
        for task in &intent.tasks {
            let path = &task.operation.path;
            match (&task.waits, task.operation.new) {
                (Some(waits), Base::File(stored)) => {
                    self.write(&task.operation, waits, &stored)
                        .map_err(Failed::on("writing the new content", path))?;
                    touched.insert(waits.directory.clone());
                }
                _ => {
                    // Better now than half way.
                    self.directory(path.parent().as_ref())
                        .and_then(|directory| self.disk.may_change(directory.as_fd()))
                        .map_err(Failed::on("preparing to delete", path))?;
                }
            }
        }
        touched.extend(intent.directories.iter().map(ProjectPath::parent));
        self.sync(&touched)
    }

    /// Removes everything that waits, and says so in the log.
    fn withdraw(&self, intent: &Intent, log: &Log<'_>) -> Result<(), MergeError> {
        for task in &intent.tasks {
            if let Some(waits) = &task.waits {
                let failed = Failed::on("removing what waited", &task.operation.path);
                self.drop_waiting(waits).map_err(|source| failed(source).unfinished())?;
            }
        }
        for directory in intent.directories.iter().rev() {
            let failed = Failed::on("removing a directory", directory);
            self.remove_empty(directory).map_err(|source| failed(source).unfinished())?;
        }
        log.undone().map_err(|source| Failed::whole("writing the log", source).unfinished())
    }

    fn finish(&self, intent: &Intent, log: &Log<'_>) -> Result<Merged, MergeError> {
        let files = self.do_all(intent).map_err(Failed::unfinished)?;
        log.done().map_err(|source| Failed::whole("writing the log", source).unfinished())?;
        Ok(Merged { files })
    }

    fn do_all(&self, intent: &Intent) -> Result<Vec<MergedFile>, Failed> {
        let (writes, deletions): (Vec<&Task>, Vec<&Task>) =
            intent.tasks.iter().partition(|task| task.waits.is_some());
        let mut files = Vec::new();
        let mut touched: BTreeSet<_> = intent.directories.iter().map(ProjectPath::parent).collect();
        for task in &deletions {
            let outcome = self.delete(&task.operation);
            let path = &task.operation.path;
            let outcome = outcome.map_err(Failed::on("deleting", path))?;
            touched.insert(path.parent());
            files.push(merged(&task.operation, outcome));
        }
        for task in &deletions {
            let path = &task.operation.path;
            let emptied = self.remove_emptied(path, &mut touched);
            emptied.map_err(Failed::on("removing the directory", path))?;
        }
        for task in &writes {
            let path = &task.operation.path;
            let outcome = self.put(task, &mut touched).map_err(Failed::on("replacing", path))?;
            touched.insert(path.parent());
            files.push(merged(&task.operation, outcome));
        }
        self.sync(&touched)?;
        Ok(files)
    }

    fn delete(&self, operation: &Operation) -> io::Result<Outcome> {
        match self.standing(operation)? {
            // Where a directory is, the file is not: another task may have made it.
            Standing::New | Standing::Directory => Ok(Outcome::DoneBefore),
            Standing::Other => Ok(Outcome::Left),
            Standing::Expected => {
                let directory = self.directory(operation.path.parent().as_ref())?;
                self.disk.remove(directory.as_fd(), operation.path.file_name())?;
                Ok(Outcome::Done)
            }
        }
    }

    /// Removes the directories above a deleted file as far as they are empty.
    fn remove_emptied(
        &self,
        path: &ProjectPath,
        touched: &mut BTreeSet<Option<ProjectPath>>,
    ) -> io::Result<()> {
        for directory in std::iter::successors(path.parent(), ProjectPath::parent) {
            if !self.remove_empty(&directory)? {
                break;
            }
            touched.insert(directory.parent());
        }
        Ok(())
    }

    fn put(&self, task: &Task, touched: &mut BTreeSet<Option<ProjectPath>>) -> io::Result<Outcome> {
        let Task { operation, waits: Some(waits) } = task else { return Ok(Outcome::Left) };
        let path = &operation.path;
        let standing = self.standing(operation)?;
        if standing != Standing::Expected {
            self.drop_waiting(waits)?;
            let done = standing == Standing::New;
            return Ok(if done { Outcome::DoneBefore } else { Outcome::Left });
        }
        if !self.make_above(path, touched)? {
            self.drop_waiting(waits)?;
            return Ok(Outcome::Left);
        }
        self.renew(operation, waits)?;
        let from = self.directory(waits.directory.as_ref())?;
        let to = self.directory(path.parent().as_ref())?;
        let (from, to) = ((from.as_fd(), &*waits.name), (to.as_fd(), path.file_name()));
        match operation.expected {
            Base::File(_) => self.disk.replace(from, to)?,
            Base::Absent => match self.disk.place(from, to) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.drop_waiting(waits)?;
                    return Ok(Outcome::Left);
                }
                other => other?,
            },
        }
        touched.insert(waits.directory.clone());
        Ok(Outcome::Done)
    }

    /// Makes the directories above a path; says whether they are all there. Somebody may have put a file or a
    /// link in their place after the decision.
    fn make_above(
        &self,
        path: &ProjectPath,
        touched: &mut BTreeSet<Option<ProjectPath>>,
    ) -> io::Result<bool> {
        let mut above: Vec<_> = std::iter::successors(path.parent(), ProjectPath::parent).collect();
        above.reverse();
        for directory in above {
            match self.make(&directory) {
                Ok(true) => drop(touched.insert(directory.parent())),
                Ok(false) => {}
                Err(error) if is_absence(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Sees to it that what waits is what it should be; a crash or a person may have taken it away.
    fn renew(&self, operation: &Operation, waits: &Waiting) -> io::Result<()> {
        let Base::File(stored) = operation.new else { return Ok(()) };
        let directory = self.directory(waits.directory.as_ref())?;
        match self.disk.read(directory.as_fd(), &waits.name, stored.bytes) {
            Ok(bytes) if Digest::of(&bytes) == stored.digest => return Ok(()),
            Ok(_) => self.drop_waiting(waits)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        self.write(operation, waits, &stored)
    }

    /// Writes a new content beside its target, with the mode and the owner that the target has.
    fn write(&self, operation: &Operation, waits: &Waiting, stored: &Stored) -> io::Result<()> {
        let bytes = self.blobs.get(stored).map_err(io_error)?;
        let directory = self.directory(waits.directory.as_ref())?;
        let (at, target) = (directory.as_fd(), self.seen(&operation.path)?);
        let target = target.filter(|seen| seen.kind == FileType::RegularFile);
        let usual = if stored.executable { 0o755 } else { 0o644 };
        let file = self.disk.create(at, &waits.name, usual)?;
        let made = self.disk.look(at, &waits.name)?.ok_or(Errno::NOENT)?;
        let above = self.disk.look(at, ".")?.ok_or(Errno::NOENT)?;
        let owner = match target {
            Some(target) => target.owner,
            None if rustix::process::geteuid().is_root() => above.owner,
            None => made.owner,
        };
        if owner != made.owner {
            match self.disk.give(&file, owner) {
                // Who is not root may not; then it is ours, as with any editor.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                other => other?,
            }
        }
        if let Some(target) = target {
            self.disk.set_mode(&file, mode_like(target.mode, stored.executable))?;
        }
        self.disk.write(&file, &bytes)?;
        self.disk.sync(file.as_fd())
    }

    fn drop_waiting(&self, waits: &Waiting) -> io::Result<()> {
        let directory = self.directory(waits.directory.as_ref());
        match directory.and_then(|at| self.disk.remove(at.as_fd(), &waits.name)) {
            Err(error) if !is_absence(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// What stands at an operation's path.
    fn standing(&self, operation: &Operation) -> io::Result<Standing> {
        let Operation { path, expected, new } = operation;
        let absent = || match (expected, new) {
            (Base::Absent, _) => Standing::Expected,
            (_, Base::Absent) => Standing::New,
            _ => Standing::Other,
        };
        let seen = match self.seen(path) {
            Err(error) if is_link(&error) => return Ok(Standing::Other),
            other => other?,
        };
        let Some(seen) = seen else { return Ok(absent()) };
        match seen.kind {
            FileType::RegularFile => {}
            FileType::Directory => return Ok(Standing::Directory),
            _ => return Ok(Standing::Other),
        }
        let executable = seen.mode & 0o100 != 0;
        let like = |base: &Base| {
            base.file().filter(|file| file.bytes == seen.bytes && file.executable == executable)
        };
        let (expected, new) = (like(expected), like(new));
        if expected.is_none() && new.is_none() {
            return Ok(Standing::Other);
        }
        let directory = self.directory(path.parent().as_ref())?;
        let bytes = self.disk.read(directory.as_fd(), path.file_name(), seen.bytes)?;
        let is = |file: Option<Stored>| file.is_some_and(|file| file.digest == Digest::of(&bytes));
        Ok(match (is(expected), is(new)) {
            (true, _) => Standing::Expected,
            (false, true) => Standing::New,
            (false, false) => Standing::Other,
        })
    }

    /// What stands at a path; nothing also where a file stands above it. A path that leads through a link is
    /// an error.
    fn seen(&self, path: &ProjectPath) -> io::Result<Option<Seen>> {
        match self.directory(path.parent().as_ref()) {
            Ok(directory) => self.disk.look(directory.as_fd(), path.file_name()),
            Err(error) if is_absence(&error) && !is_link(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn directory(&self, path: Option<&ProjectPath>) -> io::Result<OwnedFd> {
        self.disk.directory(self.root(), path.map_or(".", ProjectPath::as_str))
    }

    fn root(&self) -> BorrowedFd<'_> {
        self.tree.root()
    }

    /// Makes a directory; says whether it was not there.
    fn make(&self, path: &ProjectPath) -> io::Result<bool> {
        let above = self.directory(path.parent().as_ref())?;
        match self.disk.make_directory(above.as_fd(), path.file_name()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return self.directory(Some(path)).map(|_| false);
            }
            other => other?,
        }
        if rustix::process::geteuid().is_root() {
            let owner = |name: &str| self.disk.look(above.as_fd(), name);
            let (ours, theirs) = (owner(path.file_name())?, owner(".")?);
            if let (Some(ours), Some(theirs)) = (ours, theirs)
                && ours.owner != theirs.owner
            {
                self.disk.give(&self.directory(Some(path))?.into(), theirs.owner)?;
            }
        }
        Ok(true)
    }

    /// Removes a directory if it is empty; says whether it is gone.
    fn remove_empty(&self, path: &ProjectPath) -> io::Result<bool> {
        let above = self.directory(path.parent().as_ref());
        let removed = above.and_then(|at| self.disk.remove_directory(at.as_fd(), path.file_name()));
        match removed {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) if is_absence(&error) || is_in_use(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn sync(&self, directories: &BTreeSet<Option<ProjectPath>>) -> Result<(), Failed> {
        for path in directories {
            let synced = match self.directory(path.as_ref()) {
                Err(error) if is_absence(&error) => Ok(()),
                other => other.and_then(|directory| self.disk.sync(directory.as_fd())),
            };
            synced.map_err(|source| Failed { what: "syncing", path: path.clone(), source })?;
        }
        Ok(())
    }
}

fn merged(operation: &Operation, outcome: Outcome) -> MergedFile {
    let kind = match (operation.expected, operation.new) {
        (_, Base::Absent) => FileKind::Deleted,
        (Base::Absent, Base::File(_)) => FileKind::Added,
        (Base::File(_), Base::File(_)) => FileKind::Modified,
    };
    MergedFile { path: operation.path.clone(), kind, outcome }
}

/// The mode of a file that is replaced, with the right to execute given to all who may read, or to nobody.
fn mode_like(mode: u32, executable: bool) -> u32 {
    match (mode & 0o100 != 0, executable) {
        (true, true) | (false, false) => mode,
        (false, true) => mode | 0o100 | (mode & 0o444) >> 2,
        (true, false) => mode & !0o111,
    }
}

/// Nothing is there, or a file or a link is where a directory would have to be.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) || is_link(error)
}

fn is_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

/// A directory that is not empty, or that somebody has mounted something on.
fn is_in_use(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::DirectoryNotEmpty
            | io::ErrorKind::AlreadyExists
            | io::ErrorKind::ResourceBusy
    )
}

fn io_error(error: BlobError) -> io::Error {
    match error {
        BlobError::Io { source, .. }
        | BlobError::Directory(source)
        | BlobError::Unsynced(source) => source,
        BlobError::Changed(_) => io::Error::new(io::ErrorKind::InvalidData, error),
        BlobError::Full => io::Error::new(io::ErrorKind::StorageFull, error),
    }
}
