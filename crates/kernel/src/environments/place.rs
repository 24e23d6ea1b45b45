//! Puts the folder of an environment into the project, where the person's own commands look for it.
//!
//! **Invariant.** The folder is copied beside its place and renamed: it is the old one or the new one. Nothing outside of
//! it is touched, and no link is followed.

use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use fluffy_sandbox::remove_tree;

use super::listing::Listing;
use super::store::{Environment, EnvironmentError};

/// How the names of what is being copied, and of what is being replaced, begin.
const MAKING: &str = ".fluffy-placing-";
const REPLACED: &str = ".fluffy-replaced-";

/// Says in a placed folder which environment it is.
const MARKER: &str = ".fluffy-environment";

/// Copies the folder of an environment into the project at `root`. A folder that is there is replaced.
pub(crate) fn place_in_project(
    environment: &Environment,
    root: &Path,
) -> Result<(), EnvironmentError> {
    let folder = Path::new(&environment.record.folder);
    let to = root.join(folder);
    let failed = |source| EnvironmentError::Store { path: to.clone(), source };
    let above = to.parent().unwrap_or(root);
    if !std::fs::symlink_metadata(above).map_err(failed)?.is_dir() {
        return Err(failed(io::ErrorKind::NotADirectory.into()));
    }
    let marker = Path::new(MARKER);
    let key = environment.record.key.as_bytes();
    // It was placed before; what the person did there since is theirs.
    if std::fs::read(to.join(marker)).is_ok_and(|known| known == key) {
        return Ok(());
    }
    let tag = environment.record.key.get(..12).unwrap_or_default();
    let making = above.join(format!("{MAKING}{tag}"));
    let _left = remove_tree(&making);
    let copied = environment.layers().iter().try_for_each(|layer| {
        let listing = Listing::of(layer)?;
        copy(&listing, layer, folder, &making)
            .map_err(|source| EnvironmentError::Store { path: making.clone(), source })
    });
    let copied = copied.and_then(|()| {
        let marked = File::options().write(true).create_new(true).open(making.join(marker));
        let marked = marked.and_then(|mut file| io::Write::write_all(&mut file, key));
        marked.map_err(|source| EnvironmentError::Store { path: making.clone(), source })
    });
    if let Err(error) = copied {
        let _left = remove_tree(&making);
        return Err(error);
    }
    swap(&making, &to, &above.join(format!("{REPLACED}{tag}"))).map_err(failed)
}

/// Renames the new folder to its place.
fn swap(making: &Path, to: &Path, replaced: &Path) -> io::Result<()> {
    let _left = remove_tree(replaced);
    match std::fs::symlink_metadata(to) {
        Ok(_) => rustix::fs::rename(to, replaced)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    rustix::fs::rename(making, to)?;
    match std::fs::symlink_metadata(replaced) {
        Ok(found) if found.is_dir() => remove_tree(replaced),
        Ok(_link) => remove_file(replaced),
        Err(_gone) => Ok(()),
    }
}

/// Copies what a layer has of a folder over what is there, as overlayfs would show it.
fn copy(listing: &Listing, layer: &Path, folder: &Path, to: &Path) -> io::Result<()> {
    let mut directories: Vec<(PathBuf, u32)> = Vec::new();
    for (path, found) in listing.entries() {
        let Ok(inside) = path.strip_prefix(folder) else { continue };
        let at = if inside == Path::new("") { to.to_owned() } else { to.join(inside) };
        let from = layer.join(path);
        if found.is_dir() {
            match std::fs::create_dir(&at) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            directories.push((at, found.mode()));
            continue;
        }
        clear(&at)?;
        if found.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(&from)?, &at)?;
        } else if found.is_file() {
            copy_file(&from, found, &at)?;
        }
    }
    directories.iter().try_for_each(|(at, mode)| {
        std::fs::set_permissions(at, Permissions::from_mode(0o700 | (mode & 0o777)))
    })
}

/// Removes what a lower layer had there.
fn clear(at: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(at) {
        Ok(found) if found.is_dir() => remove_tree(at),
        Ok(_) => remove_file(at),
        Err(_nothing) => Ok(()),
    }
}

fn copy_file(from: &Path, found: &Metadata, to: &Path) -> io::Result<()> {
    let mode = 0o600 | (found.mode() & 0o777);
    let mut options = File::options();
    let mut target = options.write(true).create_new(true).mode(mode).open(to)?;
    io::copy(&mut File::open(from)?, &mut target)?;
    target.set_permissions(Permissions::from_mode(mode))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that removes what a placed folder replaces"
)]
fn remove_file(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)
}
