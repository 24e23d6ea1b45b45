//! Makes a step of what a job produced.
//!
//! **Invariant.** Nothing is changed here but the contents that are kept: a step is a proposal until it is
//! in the ledger and promoted.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::ops::Bound;

use fluffy_base::{ByteSize, ProjectPath};

use crate::files::{Found, Staged, Stored, Tree};
use crate::workshop::Produced;

use super::below::files_below;
use super::{Base, Staging, StagingError, StepChange};

/// The largest file of the project that a session may change or delete: what it was is kept.
const LARGEST: ByteSize = ByteSize::from_bytes(64 << 20);

/// Directories whose files are not the project's text but what programs act on.
const RESERVED: &str = ".git";

/// What a path is to hold: a file or nothing.
type Wanted = BTreeMap<ProjectPath, Option<Stored>>;

/// Every path that differs from the session's view, in order.
pub(super) fn changes(
    staging: &Staging,
    produced: &[Produced],
) -> Result<Vec<StepChange>, StagingError> {
    let wanted = completed(staging, &wanted(produced)?)?;
    let mut changes = Vec::new();
    for (path, wanted) in wanted {
        changes.extend(change(staging, path, wanted)?);
    }
    check_nesting(staging, &changes)?;
    Ok(changes)
}

/// The last word about each path.
fn wanted(produced: &[Produced]) -> Result<Wanted, StagingError> {
    let mut wanted = Wanted::new();
    for one in produced {
        let (path, file) = match one {
            Produced::File(path, stored) => (path, Some(*stored)),
            Produced::Nothing(path) => (path, None),
        };
        if path.folded().split('/').any(|name| name == RESERVED) {
            return Err(StagingError::Reserved(path.clone()));
        }
        wanted.insert(path.clone(), file);
    }
    Ok(wanted)
}

/// The same with what has to go so that every file finds its place: a file where a directory must be, and
/// the files of a directory where a file must be.
fn completed(staging: &Staging, wanted: &Wanted) -> Result<Wanted, StagingError> {
    let mut all = wanted.clone();
    for path in wanted.iter().filter(|(_, file)| file.is_some()).map(|(path, _)| path) {
        for above in std::iter::successors(path.parent(), ProjectPath::parent) {
            if matches!(wanted.get(&above), Some(Some(_))) {
                return Err(StagingError::Nested { file: above, below: path.clone() });
            }
            // A file is read for this, and once is enough for all that lies below it.
            if !all.contains_key(&above) && staging.seen(&above)?.is_some() {
                all.insert(above, None);
            }
        }
        let mut below = staged_below(staging, path);
        if staging.tree.look(path)? == Some(Found::Directory) {
            let files = files_below(&staging.tree, path);
            below.extend(
                files.map_err(|source| StagingError::Directory { path: path.clone(), source })?,
            );
        }
        for file in below {
            if matches!(wanted.get(&file), Some(Some(_))) {
                return Err(StagingError::Nested { file: path.clone(), below: file });
            }
            all.insert(file, None);
        }
    }
    Ok(all)
}

fn staged_below(staging: &Staging, path: &ProjectPath) -> Vec<ProjectPath> {
    // Whatever lies below a path sorts behind it, among the names that begin alike.
    let behind = staging.files.0.range((Bound::Excluded(path.clone()), Bound::Unbounded));
    let alike = behind.take_while(|(staged, _)| staged.as_str().starts_with(path.as_str()));
    alike.map(|(staged, _)| staged).filter(|staged| staged.starts_with(path)).cloned().collect()
}

/// What becomes of one path, if anything does.
fn change(
    staging: &Staging,
    path: ProjectPath,
    wanted: Option<Stored>,
) -> Result<Option<StepChange>, StagingError> {
    let before = staging.files.get(&path);
    let base = match before.and_then(|_| staging.bases.get(&path)) {
        Some(base) => *base,
        None => staging.kept(&path)?,
    };
    let after = match wanted {
        // As it was: nothing to stage.
        wanted if wanted == base.file() => None,
        Some(stored) => Some(Staged::File(stored)),
        None => Some(Staged::Deleted),
    };
    if before == after {
        return Ok(None);
    }
    if let Some(Staged::File(stored)) = after {
        let bytes = staging.blobs.get(&stored)?;
        if bytes.len() as u64 != stored.bytes {
            return Err(StagingError::Size(path));
        }
    }
    Ok(Some(StepChange { path, before, base, after }))
}

/// No file would stand below another.
fn check_nesting(staging: &Staging, changes: &[StepChange]) -> Result<(), StagingError> {
    let changed: BTreeMap<_, _> =
        changes.iter().map(|change| (&change.path, change.after)).collect();
    for change in changes {
        let (path, Some(Staged::File(_))) = (&change.path, change.after) else { continue };
        for above in std::iter::successors(path.parent(), ProjectPath::parent) {
            let staged = match changed.get(&above) {
                Some(after) => *after,
                None => staging.files.get(&above),
            };
            if matches!(staged, Some(Staged::File(_))) {
                return Err(StagingError::Nested { file: above, below: path.clone() });
            }
        }
    }
    Ok(())
}

impl Staging {
    /// The file that the session sees at a path; a path that leads through a link is refused.
    fn seen(&self, path: &ProjectPath) -> Result<Option<Staged>, StagingError> {
        match self.files.get(path) {
            Some(Staged::Deleted) => Ok(None),
            Some(file) => Ok(Some(file)),
            None => Ok(self.kept(path)?.file().map(Staged::File)),
        }
    }

    /// What the project has at a path now, kept.
    fn kept(&self, path: &ProjectPath) -> Result<Base, StagingError> {
        match read(&self.tree, path)? {
            None => Ok(Base::Absent),
            Some((bytes, executable)) => Ok(Base::File(self.blobs.put(&bytes, executable)?)),
        }
    }
}

/// A file of the project, and whether it can be executed. A directory is no file; what is stranger is an
/// error.
pub(crate) fn read(
    tree: &Tree,
    path: &ProjectPath,
) -> Result<Option<(Vec<u8>, bool)>, StagingError> {
    let executable = match tree.look(path)? {
        None | Some(Found::Directory) => return Ok(None),
        Some(Found::File { executable, .. }) => executable,
        Some(Found::Link | Found::Special) => return Err(StagingError::NotAFile(path.clone())),
    };
    let mut bytes = Vec::new();
    let failed = |source| StagingError::Read { path: path.clone(), source };
    tree.file(path)?.take(LARGEST.bytes() + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LARGEST.bytes() {
        return Err(StagingError::TooLarge { path: path.clone(), limit: LARGEST });
    }
    Ok(Some((bytes, executable)))
}
