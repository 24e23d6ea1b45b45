//! Lists what an environment consists of, and finds out whether it is still that.
//!
//! **Invariant.** An environment holds directories, regular files and links that stay inside it, or lead to an interpreter;
//! nothing in it has special bits.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use fluffy_base::{Digest, Hasher};

/// The most files and directories of an environment.
const MAX_ENTRIES: usize = 600_000;

/// The files of an environment, by path.
#[derive(Debug, Default)]
pub(super) struct Listing {
    entries: BTreeMap<PathBuf, Metadata>,
    /// The bytes of all files.
    pub(super) bytes: u64,
}

/// Why a directory is no environment.
#[derive(Debug, thiserror::Error)]
pub enum ListingError {
    /// It cannot be read.
    #[error("`{}` cannot be read", path.display())]
    Io {
        /// What.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It holds something that is neither a file nor a directory nor a harmless link.
    #[error("`{}` is not kept: {why}", path.display())]
    Kind {
        /// What.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// It holds too much.
    #[error("it has more than {MAX_ENTRIES} files and directories")]
    Entries,
}

impl Listing {
    /// Lists a directory. No link is followed.
    pub(super) fn of(top: &Path) -> Result<Self, ListingError> {
        let mut listing = Self::default();
        let mut pending = vec![PathBuf::new()];
        while let Some(directory) = pending.pop() {
            let at = top.join(&directory);
            let failed = |source| ListingError::Io { path: at.clone(), source };
            for entry in std::fs::read_dir(&at).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let path = directory.join(entry.file_name());
                let found = entry.metadata().map_err(failed)?;
                check(top, &path, &found)?;
                if found.is_dir() {
                    pending.push(path.clone());
                } else if found.is_file() {
                    listing.bytes = listing.bytes.saturating_add(found.len());
                }
                listing.entries.insert(path, found);
                if listing.entries.len() > MAX_ENTRIES {
                    return Err(ListingError::Entries);
                }
            }
        }
        Ok(listing)
    }

    /// How many files and directories there are.
    pub(super) fn count(&self) -> u64 {
        self.entries.len() as u64
    }

    /// A hash of what the file system says of the files: it changes whenever one of them is written to.
    pub(super) fn stamp(&self) -> Digest {
        let mut hasher = Hasher::default();
        for (path, found) in &self.entries {
            hasher.update(path.as_os_str().as_bytes());
            let numbers = [
                u64::from(found.mode()),
                if found.is_dir() { 0 } else { found.len() },
                found.mtime().unsigned_abs(),
                found.mtime_nsec().unsigned_abs(),
                found.ctime().unsigned_abs(),
                found.ctime_nsec().unsigned_abs(),
            ];
            // A directory's times change when it is renamed or laid over another.
            let numbers = if found.is_dir() { numbers.get(..1) } else { numbers.get(..) };
            hasher.update(&[0]);
            for number in numbers.unwrap_or_default() {
                hasher.update(&number.to_be_bytes());
            }
        }
        hasher.finish()
    }

    /// A hash of the files themselves.
    pub(super) fn content(&self, top: &Path) -> Result<Digest, ListingError> {
        let mut hasher = Hasher::default();
        let mut buffer = vec![0_u8; 64 << 10];
        for (path, found) in &self.entries {
            let at = top.join(path);
            let failed = |source| ListingError::Io { path: at.clone(), source };
            hasher.update(path.as_os_str().as_bytes());
            hasher.update(&[0]);
            hasher.update(&(found.mode() & 0o170_111).to_be_bytes());
            if found.is_symlink() {
                let target = std::fs::read_link(&at).map_err(failed)?;
                hasher.update(target.as_os_str().as_bytes());
            } else if found.is_file() {
                hasher.update(&found.len().to_be_bytes());
                let mut file = File::open(&at).map_err(failed)?;
                loop {
                    let count = file.read(&mut buffer).map_err(failed)?;
                    if count == 0 {
                        break;
                    }
                    hasher.update(buffer.get(..count).unwrap_or_default());
                }
            }
            hasher.update(&[0]);
        }
        Ok(hasher.finish())
    }

    /// Every path with what is there, what holds others first.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&PathBuf, &Metadata)> {
        self.entries.iter()
    }
}

fn check(top: &Path, path: &Path, found: &Metadata) -> Result<(), ListingError> {
    let refuse = |why| Err(ListingError::Kind { path: path.to_owned(), why });
    if is_interpreter(path) && !found.is_symlink() {
        return refuse("a package put its own program where the interpreter of Python is");
    }
    if found.is_symlink() {
        let at = top.join(path);
        let target =
            std::fs::read_link(&at).map_err(|source| ListingError::Io { path: at, source })?;
        return if leads_inside(path, &target) {
            Ok(())
        } else {
            refuse("it is a link that leads out")
        };
    }
    // Overlayfs's sign for a deletion, which a rebuild may leave.
    let whiteout = found.rdev() == 0 && found.mode() & 0o170_000 == 0o020_000;
    if !found.is_dir() && !found.is_file() && !whiteout {
        return refuse("it is neither a file nor a directory");
    }
    if found.mode() & 0o7000 != 0 && !found.is_dir() {
        return refuse("it has special bits");
    }
    Ok(())
}

/// Whether this is where a virtual environment has its interpreter: always a link to the machine's own.
fn is_interpreter(path: &Path) -> bool {
    let in_bin = path.parent().is_some_and(|parent| parent.ends_with(".venv/bin"));
    let name = path.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
    let version = name.strip_prefix("python");
    in_bin && version.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// Whether a link stays in the project: workspaces link packages to their folders. An interpreter of Python is the one thing
/// that is linked from elsewhere. A way up behind a way down could pass over another link, and is none that a package needs.
fn leads_inside(path: &Path, target: &Path) -> bool {
    if target.is_absolute() {
        let in_bin = path.parent().is_some_and(|parent| parent.ends_with(".venv/bin"));
        let name = target.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
        return in_bin && name.starts_with("python");
    }
    let mut depth = path.components().count().saturating_sub(1);
    let mut is_below = false;
    for part in target.components() {
        match part {
            Component::ParentDir if is_below => return false,
            Component::ParentDir => match depth.checked_sub(1) {
                Some(left) => depth = left,
                None => return false,
            },
            Component::Normal(_) => is_below = true,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_out_are_found() {
        let leads = |path: &str, target: &str| leads_inside(Path::new(path), Path::new(target));
        assert!(leads("node_modules/.bin/x", "../x/cli.js"));
        assert!(leads(".venv/bin/python3", "/usr/bin/python3.11"));
        assert!(leads(".venv/lib64", "lib"));
        assert!(!leads("node_modules/x", "/home/user/.ssh"));
        assert!(!leads("node_modules/x", "../../etc"));
        assert!(leads("node_modules/member", "../packages/member"));
        assert!(!leads("node_modules/x", "y/../../.."));
        assert!(!leads("node_modules/x/bin/python3", "/etc/python3"));
        assert!(!leads(".venv/lib/python", "/usr/bin/python3"));
        assert!(!leads(".venv/bin/x", "/bin/sh"));
    }

    #[test]
    fn only_a_link_is_an_interpreter() {
        for (path, expected) in [
            (".venv/bin/python3", true),
            ("sub/.venv/bin/python3.11", true),
            (".venv/bin/python", true),
            (".venv/bin/python-config", false),
            (".venv/bin/flask", false),
            ("node_modules/.bin/python3", false),
        ] {
            assert_eq!(is_interpreter(Path::new(path)), expected, "{path}");
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join(".venv/bin/python3")).unwrap();
        assert!(matches!(Listing::of(dir.path()), Err(ListingError::Kind { .. })));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test makes and changes an environment")]
    fn every_change_shows_in_the_stamp_and_of_contents_in_the_content() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("m/a")).unwrap();
        std::fs::write(dir.path().join("m/a/x.js"), "one").unwrap();
        let (before, content) = {
            let listing = Listing::of(dir.path()).unwrap();
            (listing.stamp(), listing.content(dir.path()).unwrap())
        };
        std::fs::write(dir.path().join("m/a/x.js"), "two").unwrap();
        let listing = Listing::of(dir.path()).unwrap();
        assert_ne!(listing.stamp(), before);
        assert_ne!(listing.content(dir.path()).unwrap(), content);
        std::fs::write(dir.path().join("m/a/x.js"), "one").unwrap();
        let listing = Listing::of(dir.path()).unwrap();
        assert_ne!(listing.stamp(), before);
        assert_eq!(listing.content(dir.path()).unwrap(), content);
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("m/a/l")).unwrap();
        assert!(matches!(Listing::of(dir.path()), Err(ListingError::Kind { .. })));
    }
}
